//! Waiting for a key, and for the end.
//!
//! A getter that finds nothing counts itself as waiting and listens; then it looks once more. If there are deadlines and
//! nobody watches the clock, it does so until it leaves, and whoever leaves sees to it that the next one does.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::Key;
use super::item::Item;
use super::shared::{Next, Shared};

pub(super) async fn get<K: Key>(shared: &Arc<Shared<K>>) -> Option<Item<K>> {
    // A worker that never has to wait lets other tasks run all the same.
    tokio::task::coop::consume_budget().await;
    match shared.take() {
        Next::Item(item) => return Some(item),
        Next::End => return None,
        Next::Nothing => {}
    }
    let mut place = Place::new(shared);
    loop {
        let mut woken = pin!(shared.wake.notified());
        woken.as_mut().enable();
        match shared.take() {
            Next::Item(item) => return Some(item),
            Next::End => return None,
            Next::Nothing => {}
        }
        match place.watch() {
            None => woken.await,
            Some(deadline) => tokio::select! {
                () = woken => {}
                () = shared.earlier.notified() => {}
                () = sleep_until(deadline) => {}
            },
        }
    }
}

pub(super) async fn drain<K: Key>(shared: &Shared<K>) -> bool {
    shared.close(true);
    loop {
        let mut drained = pin!(shared.drained.notified());
        drained.as_mut().enable();
        {
            let inner = shared.lock();
            if inner.state.is_idle() {
                return true;
            }
            if inner.cut_short {
                return false;
            }
        }
        drained.await;
    }
}

/// The place of a getter among those who wait. Dropped, it is left.
struct Place<'a, K: Key> {
    shared: &'a Shared<K>,
    /// This one watches the clock.
    watches: bool,
}

impl<'a, K: Key> Place<'a, K> {
    fn new(shared: &'a Shared<K>) -> Self {
        shared.lock().waiting += 1;
        Self { shared, watches: false }
    }

    /// Until when to watch the clock, if this one is to.
    fn watch(&mut self) -> Option<Instant> {
        let mut inner = self.shared.lock();
        if inner.watched && !self.watches {
            return None;
        }
        let earliest = inner.state.earliest();
        self.watches = earliest.is_some();
        inner.watched = self.watches;
        earliest
    }
}

impl<K: Key> Drop for Place<'_, K> {
    fn drop(&mut self) {
        let unwatched = {
            let mut inner = self.shared.lock();
            inner.waiting -= 1;
            if self.watches {
                inner.watched = false;
            }
            inner.waiting > 0 && !inner.watched && inner.state.has_delayed()
        };
        if unwatched {
            self.shared.wake.notify_one();
        }
    }
}
