//! What runs for an informer, and how its end is awaited.
//!
//! Ends are awaited on a channel whose other end goes with whatever runs. So many can wait for the same end, give up, and
//! wait again.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::mailbox::Mailbox;

/// How long it may take to drop a task that is told to end. One that does not return to its runtime cannot be dropped.
const TO_DROP: Duration = Duration::from_secs(1);

/// A task of the informer itself.
#[derive(Debug, Clone)]
pub(super) struct Task {
    abort: AbortHandle,
    done: watch::Receiver<()>,
}

/// A handler, in tasks or threads.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) mailbox: Arc<Mailbox>,
    /// Closed when nothing runs any more.
    pub(super) done: watch::Receiver<()>,
    /// An asynchronous handler goes with its task, and can be ended wherever it waits; a closure cannot.
    pub(super) task: Option<AbortHandle>,
}

impl Task {
    pub(super) fn spawn(runtime: &Handle, run: impl Future<Output = ()> + Send + 'static) -> Self {
        let (running, done) = watch::channel(());
        let task = runtime.spawn(async move {
            run.await;
            drop(running);
        });
        Self { abort: task.abort_handle(), done }
    }

    pub(super) fn abort(&self) {
        self.abort.abort();
    }

    /// Ends it; whether it has ended before the deadline, or a moment after.
    pub(super) async fn end(mut self, deadline: Instant) -> bool {
        self.abort();
        timeout_at(deadline.max(Instant::now() + TO_DROP), until_closed(&mut self.done)).await.is_ok()
    }
}

impl Running {
    pub(super) fn has_ended(&self) -> bool {
        self.done.has_changed().is_err()
    }

    /// Waits for its end; whether it has ended. A task that is busy past the deadline is dropped where it waits. Whoever
    /// waits for itself is told at once that it is busy.
    pub(super) async fn end(&self, deadline: Instant) -> bool {
        if self.has_ended() {
            return true;
        }
        // Not by its task: another one may be calling it.
        if self.mailbox.is_here() {
            return false;
        }
        let mut done = self.done.clone();
        if timeout_at(deadline, until_closed(&mut done)).await.is_ok() {
            return true;
        }
        let Some(task) = &self.task else { return false };
        task.abort();
        timeout_at(Instant::now() + TO_DROP, until_closed(&mut done)).await.is_ok()
    }
}

/// Waits until the other side is gone.
pub(super) async fn until_closed(done: &mut watch::Receiver<()>) {
    while done.changed().await.is_ok() {}
}
