//! Who is told: a handler with one method per kind of event, or a closure over all of them.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;

use super::callers::{Step, Work};
use super::event::Event;
use super::inbox::Inbox;
use super::mailbox::Mailbox;
use crate::cache::Snapshot;
use crate::object::Object;

/// Handles what changes, one event after the other. All methods do nothing unless they are written.
///
/// Handlers may take their time: each has its own queue, and holds up nobody. They must not block the thread; for that,
/// give a closure to [`Informer::on`](super::Informer::on). A handler that panics is told the next event as if nothing
/// had happened; the panic is logged and counted.
///
/// Handlers of an informer that take microseconds are called in one task, one after the other. So a handler is not always
/// in the same task: [`tokio::task::id`] says nothing about it.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::informer::Handler;
/// use kube_informer::object::Object;
///
/// struct Count(usize);
///
/// impl Handler<Pod> for Count {
///     async fn added(&mut self, _new: Object<Pod>, _initial: bool) {
///         self.0 += 1;
///     }
/// }
/// ```
pub trait Handler<K>: Send + 'static {
    /// An object is new. `initial`: it was there when it all began.
    fn added(&mut self, new: Object<K>, initial: bool) -> impl Future<Output = ()> + Send {
        let _ = (new, initial);
        std::future::ready(())
    }

    /// An object has changed; or, with `resync`, is only said again.
    fn updated(&mut self, old: Object<K>, new: Object<K>, resync: bool) -> impl Future<Output = ()> + Send {
        let _ = (old, new, resync);
        std::future::ready(())
    }

    /// An object is gone. Where that is not `certain`, it was found missing, and may have changed before.
    fn deleted(&mut self, last: Object<K>, certain: bool) -> impl Future<Output = ()> + Send {
        let _ = (last, certain);
        std::future::ready(())
    }

    /// Changes were missed. Everything that there is `now` follows, as `added`; what is not among it is gone.
    fn gap(&mut self, missed: u64, now: Snapshot<K>) -> impl Future<Output = ()> + Send {
        let _ = (missed, now);
        std::future::ready(())
    }
}

async fn call<K, H: Handler<K>>(handler: &mut H, event: Event<K>) {
    match event {
        Event::Added { new, initial } => handler.added(new, initial).await,
        Event::Updated { old, new, resync } => handler.updated(old, new, resync).await,
        Event::Deleted { last, certain } => handler.deleted(last, certain).await,
        Event::Gap { missed, now } => handler.gap(missed, now).await,
    }
}

/// Runs a handler until its registration ends.
pub(super) async fn run_handler<K: 'static, H: Handler<K>>(mut inbox: Inbox, mut handler: H) {
    while let Some(event) = poll_fn(|cx| inbox.poll_next(cx)).await {
        let begun = Instant::now();
        let outcome = AssertUnwindSafe(call(&mut handler, event.cast())).catch_unwind().await;
        note(inbox.mailbox(), begun, outcome.err());
        // A handler that never waits must not keep its thread from everyone else.
        consume_budget().await;
    }
}

/// A closure, until its registration ends.
pub(super) struct Closure<K, F> {
    inbox: Inbox,
    closure: F,
    view: PhantomData<fn(K)>,
    /// Closed when nothing of the others is left: fields are dropped in their order.
    _running: watch::Sender<()>,
}

impl<K, F: FnMut(Event<K>)> Closure<K, F> {
    pub(super) fn new(inbox: Inbox, closure: F, running: watch::Sender<()>) -> Self {
        Self { inbox, closure, view: PhantomData, _running: running }
    }
}

impl<K: 'static, F: FnMut(Event<K>) + Send + 'static> Work for Closure<K, F> {
    fn step(&mut self, context: &mut Context<'_>) -> Step {
        let event = match self.inbox.poll_next(context) {
            Poll::Ready(Some(event)) => event.cast(),
            Poll::Ready(None) => return Step::Ended,
            Poll::Pending => return Step::Waits,
        };
        let (mailbox, closure) = (self.inbox.mailbox(), &mut self.closure);
        let begun = Instant::now();
        let outcome = mailbox.calling(|| catch_unwind(AssertUnwindSafe(|| closure(event))));
        Step::Called(note(mailbox, begun, outcome.err()))
    }
}

/// Counts a call, and how it ended; how long it took.
fn note(mailbox: &Mailbox, begun: Instant, panic: Option<Box<dyn std::any::Any + Send>>) -> Duration {
    let took = begun.elapsed();
    let counters = &mailbox.counters;
    counters.handled.fetch_add(1, Ordering::Relaxed);
    counters.busy.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    counters.durations.add(took);
    mailbox.calls.add(took);
    if let Some(panic) = panic {
        counters.panics.fetch_add(1, Ordering::Relaxed);
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a panic without a text");
        tracing::error!(
            handler = %mailbox.name, panic = text,
            "a handler panicked; it is told the next event, and this one not again: mend the handler"
        );
        // A stranger's value, which may panic once more.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
    }
    took
}
