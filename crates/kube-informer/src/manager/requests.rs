//! Owners whose watched objects changed, for controllers.
//!
//! An owner waits once for each reader, however often something changes, and only for as long as something is watched for
//! it: what waits is bounded by the owners that there are.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::key::Owner;
use crate::controller::Request;

/// Those who read.
#[derive(Default)]
pub(super) struct Requests {
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    all: Vec<Weak<Reader>>,
    is_closed: bool,
}

struct Reader {
    /// Only owners of this kind.
    kind: Option<String>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// In the order in which they came.
    order: BTreeMap<u64, Owner>,
    places: HashMap<Owner, u64>,
    last: u64,
    is_closed: bool,
    waker: Option<Waker>,
}

/// The owners whose watched objects changed; from [`Manager::requests`](super::Manager::requests). It ends when the manager
/// does.
#[must_use = "streams do nothing unless polled"]
pub struct Owners {
    reader: Arc<Reader>,
}

impl Requests {
    /// One more reader, who begins with these.
    pub(super) fn read(&self, kind: Option<String>, owners: impl Iterator<Item = Owner>) -> Owners {
        let reader = Arc::new(Reader { kind, pending: Mutex::default() });
        let mut readers = lock(&self.readers);
        owners.for_each(|owner| reader.push(&owner));
        lock(&reader.pending).is_closed = readers.is_closed;
        readers.all.retain(|reader| reader.strong_count() > 0);
        readers.all.push(Arc::downgrade(&reader));
        Owners { reader }
    }

    /// Something changed for an owner.
    pub(super) fn push(&self, owner: &Owner) {
        self.each(|reader| reader.push(owner));
    }

    /// Nothing is watched for an owner any more.
    pub(super) fn forget(&self, owner: &Owner) {
        self.each(|reader| {
            let mut pending = lock(&reader.pending);
            if let Some(place) = pending.places.remove(owner) {
                pending.order.remove(&place);
            }
        });
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        lock(&self.readers).is_closed = true;
        self.each(|reader| {
            let waker = {
                let mut pending = lock(&reader.pending);
                pending.is_closed = true;
                pending.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        });
    }

    fn each(&self, act: impl FnMut(Arc<Reader>)) {
        let readers: Vec<Arc<Reader>> = lock(&self.readers).all.iter().filter_map(Weak::upgrade).collect();
        readers.into_iter().for_each(act);
    }
}

impl Reader {
    fn push(&self, owner: &Owner) {
        if self.kind.as_ref().is_some_and(|kind| kind != owner.kind_name()) {
            return;
        }
        let waker = {
            let mut pending = lock(&self.pending);
            if pending.is_closed || pending.places.contains_key(owner) {
                return;
            }
            pending.last += 1;
            let place = pending.last;
            pending.places.insert(owner.clone(), place);
            pending.order.insert(place, owner.clone());
            pending.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Stream for Owners {
    type Item = Request;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Request>> {
        let mut pending = lock(&self.reader.pending);
        if let Some((_, owner)) = pending.order.pop_first() {
            pending.places.remove(&owner);
            return Poll::Ready(Some(owner.request().clone()));
        }
        if pending.is_closed {
            return Poll::Ready(None);
        }
        pending.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owners")
            .field("waiting", &lock(&self.reader.pending).order.len())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn owner(name: &str) -> Owner {
        Request::new("n", name).into()
    }

    fn read(owners: &mut Owners) -> Vec<String> {
        std::iter::from_fn(|| owners.next().now_or_never().flatten())
            .map(|each| each.name().to_owned())
            .collect()
    }

    #[test]
    fn an_owner_waits_once_for_each_reader_in_the_order_in_which_it_came() {
        let requests = Requests::default();
        let mut one = requests.read(None, std::iter::empty());
        let mut two = requests.read(None, std::iter::empty());
        for name in ["b", "a", "b", "a"] {
            requests.push(&owner(name));
        }
        assert_eq!(read(&mut one), ["b", "a"]);
        requests.push(&owner("b"));
        assert_eq!(read(&mut one), ["b"], "what was read waits again");
        assert_eq!(read(&mut two), ["b", "a"]);
    }

    #[test]
    fn a_reader_that_comes_late_begins_with_every_owner() {
        let requests = Requests::default();
        requests.push(&owner("a"));
        let mut late = requests.read(None, [owner("a"), owner("c")].into_iter());
        assert_eq!(read(&mut late), ["a", "c"]);
    }

    #[test]
    fn an_owner_for_whom_nothing_is_watched_does_not_wait() {
        let requests = Requests::default();
        let mut owners = requests.read(None, std::iter::empty());
        for name in 0..10_000 {
            let owner = owner(&name.to_string());
            requests.push(&owner);
            requests.forget(&owner);
        }
        let Pending { order, places, .. } = std::mem::take(&mut *lock(&owners.reader.pending));
        assert_eq!((order.len(), places.len()), (0, 0));
        assert_eq!(read(&mut owners), [""; 0]);
    }

    #[test]
    fn owners_of_another_kind_are_for_others() {
        let requests = Requests::default();
        let mut owners = requests.read(Some("Foo".to_owned()), std::iter::empty());
        requests.push(&owner("a").kind("Bar"));
        requests.push(&owner("a").kind("Foo"));
        assert_eq!(read(&mut owners), ["a"]);
    }

    #[tokio::test]
    async fn a_reader_is_woken_and_ends_with_the_manager() {
        let requests = Arc::new(Requests::default());
        let mut owners = requests.read(None, std::iter::empty());
        let reading = tokio::spawn(async move { (owners.next().await, owners.next().await) });
        tokio::task::yield_now().await;
        requests.push(&owner("a"));
        tokio::task::yield_now().await;
        requests.close();
        assert_eq!(reading.await.unwrap(), (Some(Request::new("n", "a")), None));
        assert_eq!(requests.read(None, std::iter::empty()).next().await, None, "and whoever comes later");
    }
}
