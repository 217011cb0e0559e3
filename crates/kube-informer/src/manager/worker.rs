//! Who calls handlers: workers that take watches from a queue, each watch in one hand at a time.
//!
//! A call that takes longer than a moment is put aside, and its worker goes on with others: of those that hang, each holds up
//! the others for that moment at most. What is put aside is bounded by the watches that there are, each of which has one call
//! at most, and ends after its timeout.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::Instrument;

use super::Inner;
use super::entry::{Entry, Life};
use super::key::KeyParams;
use super::metrics::Series;
use super::request::{Handles, WatchEvent};
use crate::controller::action::describe;
use crate::workqueue::Item;

tokio::task_local! {
    /// The watch whose handler runs here.
    static HERE: Arc<KeyParams>;
}

/// How long a call keeps a worker.
const MOMENT: Duration = Duration::from_secs(1);

impl Inner {
    /// Calls handlers until it is told to stop.
    pub(super) async fn work(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let Some(queue) = self.queue.get() else { return };
        loop {
            let item = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                item = queue.get() => item,
            };
            let Some(item) = item else { return };
            let entry = self.lock().entries.get(item.key()).cloned();
            let Some(entry) = entry.filter(|entry| entry.is_ready()) else {
                item.forget();
                continue;
            };
            let Some(handler) = entry.handler.clone() else { continue };
            let mut call: BoxFuture<'static, ()> = Box::pin(Arc::clone(&self).serve(item, entry, handler));
            if timeout(MOMENT, &mut call).await.is_err() {
                self.set_aside(call);
            }
        }
    }

    /// What takes its time goes on elsewhere.
    fn set_aside(&self, call: BoxFuture<'static, ()>) {
        let mut tasks = self.tasks();
        while tasks.aside.try_join_next().is_some() {}
        tasks.aside.spawn_on(call, self.factory.runtime());
    }

    /// Tells a handler what is next, and sees what comes of it.
    async fn serve(self: Arc<Self>, item: Item<Arc<KeyParams>>, entry: Arc<Entry>, handler: Arc<Handles>) {
        let Some(event) = entry.story().next() else {
            item.forget();
            return;
        };
        let _busy = Busy::new(&entry);
        let mut life = entry.life.subscribe();
        // From here on, whoever stops the watch waits for this call.
        if !entry.is_ready() {
            return;
        }
        let span = tracing::error_span!("watch", manager = %self.name(), watch = %entry.key);
        let called = call(handler, event.clone(), self.settings().timeout).instrument(span.clone());
        let outcome = tokio::select! {
            biased;
            _ = life.wait_for(|life| *life == Life::Cut) => return,
            outcome = HERE.scope(Arc::clone(&entry.key), called) => outcome,
        };
        let _in = span.enter();
        let count = |counter: fn(&Series) -> &Counter| {
            counter(&entry.series).inc();
            counter(&self.total).inc();
        };
        let error = match outcome {
            Ok(()) => {
                count(|series| &series.handled);
                entry.failures.store(0, Ordering::Relaxed);
                item.forget();
                let mut story = entry.story();
                story.told(event);
                if story.next().is_some() {
                    self.queue_up(&entry);
                }
                return;
            }
            Err(Failure::Error(error)) => {
                count(|series| &series.errors);
                error
            }
            Err(Failure::Panic(text)) => {
                count(|series| &series.panics);
                format!("it panicked: {text}")
            }
            Err(Failure::Timeout(after)) => {
                count(|series| &series.timeouts);
                format!("it took longer than {after:?} and was dropped")
            }
        };
        entry.failures.fetch_add(1, Ordering::Relaxed);
        entry.story().failed(event);
        if entry.is_ready() {
            let again = item.retry();
            tracing::warn!(error, ?again, "the handler of a watch failed; it is called again");
        } else {
            item.forget();
        }
    }
}

/// How a call failed.
enum Failure {
    Error(String),
    Panic(String),
    Timeout(Duration),
}

async fn call(handler: Arc<Handles>, event: WatchEvent, longest: Duration) -> Result<(), Failure> {
    // The call itself may panic, too.
    let call = AssertUnwindSafe(async { handler(event).await }).catch_unwind();
    match timeout(longest, call).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(Failure::Error(describe(&error))),
        Ok(Err(panic)) => Err(Failure::Panic(text(&*panic).to_owned())),
        Err(_) => Err(Failure::Timeout(longest)),
    }
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}

/// Waits until the handler of a watch that was stopped is in no call any more. After so long, the call is dropped where it
/// waits. A handler that stops its own watch is not waited for.
pub(super) async fn finish(entry: &Arc<Entry>, drain: Duration) {
    if HERE.try_with(|here| *here == entry.key).unwrap_or(false) {
        return;
    }
    let mut busy = entry.busy.subscribe();
    if timeout(drain, busy.wait_for(|busy| *busy == 0)).await.is_err() {
        tracing::warn!(watch = %entry.key, "the handler of a watch was still busy when it was stopped: it is dropped");
        entry.turn(&Life::Stopped, Life::Cut);
        // Unless it blocks its thread.
        let _ = timeout(MOMENT, busy.wait_for(|busy| *busy == 0)).await;
    }
}

/// A handler is in a call.
pub(super) struct Busy<'a>(&'a Entry);

impl<'a> Busy<'a> {
    pub(super) fn new(entry: &'a Entry) -> Self {
        entry.busy.send_modify(|busy| *busy += 1);
        Self(entry)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.send_modify(|busy| *busy -= 1);
    }
}
