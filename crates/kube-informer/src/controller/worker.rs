//! A worker: takes a key, calls the reconciler, sees what came of it.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

use super::action::{self, Action, BoxError, Then};
use super::context::Context;
use super::engine::{Busy, Engine};
use super::gate::Gate;
use super::reconciler::Reconciler;
use super::request::Request;
use super::source::Source;
use super::writes::{Held, Writes};
use crate::informer::Informer;
use crate::leader::Lost;
use crate::workqueue::{Item, Priority};

pub(super) struct Worker<K, R> {
    pub(super) engine: Arc<Engine>,
    pub(super) informer: Informer<K>,
    pub(super) reconciler: Arc<R>,
    pub(super) number: usize,
    pub(super) gate: Option<Gate>,
    pub(super) hold: mpsc::Sender<Held>,
}

/// A reconcile that takes longer is worth a word.
const SLOW: Duration = Duration::from_secs(60);

/// When a key is tried again that a limiter cannot be asked about: it may be the limiter that panicked.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// How a reconcile ended.
enum Outcome {
    Action(Action),
    Error(BoxError),
    Panic(String),
    Timeout,
}

impl<K: 'static, R: Reconciler<K>> Worker<K, R> {
    /// Works until it is told to stop, or leadership is lost. What it has when it is told, it finishes.
    pub(super) async fn run(self, mut stopped: watch::Receiver<bool>) {
        self.engine.series.workers.inc();
        let _counted = Counted(&self.engine);
        loop {
            let item = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                item = self.engine.queue.get() => item,
            };
            let Some(item) = item else { return };
            let (request, priority) = (item.key().clone(), item.priority());
            match AssertUnwindSafe(self.process(item)).catch_unwind().await {
                Ok(Ok(())) => {}
                // Of all the other keys it could not make a step either.
                Ok(Err(Lost)) => return,
                Err(panic) => self.survive(&request, priority, &*panic),
            }
        }
    }

    /// Something of the user's panicked that is no reconcile: what drops a future, what writes an error, a limiter.
    fn survive(&self, request: &Request, priority: Priority, panic: &(dyn Any + Send)) {
        let Engine { name, queue, series, .. } = &*self.engine;
        series.panics.inc();
        series.errors.inc();
        self.engine.failures().failed(request);
        tracing::error!(
            controller = %name, key = %request, panic = text(panic),
            "something panicked after the reconcile; it is tried again"
        );
        queue.at(priority).add_after(request.clone(), AFTER_PANIC);
    }

    async fn process(&self, mut item: Item<Request>) -> Result<(), Lost> {
        let engine = &self.engine;
        let request = item.key().clone();
        let gaps: Vec<u64> = engine.sources.iter().map(Source::gaps).collect();
        let span = tracing::error_span!("reconcile", controller = %engine.name, key = %request);
        let writes = Arc::new(Writes::default());
        let outcome = {
            let _busy = Working::new(engine, self.number, &request);
            let context = Context::new(
                Arc::clone(engine),
                self.informer.clone(),
                (request.clone(), item.priority()),
                span.clone(),
                Arc::clone(&writes),
            );
            let begun = Instant::now();
            let call = self.reconcile(context).instrument(span.clone());
            let outcome = match &self.gate {
                Some(gate) => gate.guard(call).await,
                None => Ok(call.await),
            };
            if outcome.is_ok() {
                engine.series.time.observe(begun.elapsed().as_secs_f64());
            }
            outcome
        };
        // Another one may lead by now, who reconciles the key again. This controller ends.
        let outcome = outcome.inspect_err(|Lost| {
            span.in_scope(|| tracing::warn!("leadership was lost: the reconcile was given up"));
        })?;
        for (source, gaps) in engine.sources.iter().zip(gaps) {
            source.reconciled(engine, &request, gaps);
        }
        span.in_scope(|| self.conclude(&item, &request, outcome));
        let outstanding = writes.outstanding(engine);
        if !outstanding.is_empty() {
            // It is work no more: it waits.
            item.rest();
            // Where nobody holds keys any more, everything ends.
            let _ = self.hold.send(Held { item, outstanding }).await;
        } else {
            drop(item);
        }
        engine.freed.notify_waiters();
        Ok(())
    }

    async fn reconcile(&self, context: Context<K>) -> Outcome {
        // The call itself may panic, too.
        let call = AssertUnwindSafe(async { self.reconciler.reconcile(context).await }).catch_unwind();
        let mut call = pin!(timeout(self.engine.settings.timeout, call));
        let outcome = tokio::select! {
            biased;
            outcome = &mut call => outcome,
            () = sleep(SLOW) => {
                tracing::warn!("the reconcile takes more than {SLOW:?}, and is still busy");
                call.await
            }
        };
        match outcome {
            Ok(Ok(Ok(action))) => Outcome::Action(action),
            Ok(Ok(Err(error))) => Outcome::Error(error),
            Ok(Err(panic)) => Outcome::Panic(text(&*panic).to_owned()),
            Err(_) => Outcome::Timeout,
        }
    }

    /// Counts it, says it, and queues the key again where that is wanted.
    fn conclude(&self, item: &Item<Request>, request: &Request, outcome: Outcome) {
        let (queue, series) = (&self.engine.queue, &self.engine.series);
        let error = match outcome {
            Outcome::Action(Action { then, priority }) => {
                let queue_at = queue.at(priority.unwrap_or(item.priority()));
                self.engine.failures().forget(request);
                match then {
                    Then::Done => {
                        series.success.inc();
                        queue.forget(request);
                    }
                    Then::Requeue => {
                        series.requeue.inc();
                        queue_at.add_rate_limited(request.clone());
                    }
                    Then::RequeueAfter(delay) => {
                        series.requeue_after.inc();
                        queue.forget(request);
                        queue_at.add_after(request.clone(), delay);
                    }
                }
                tracing::debug!(?then, "reconciled");
                return;
            }
            Outcome::Error(error) if action::is_terminal(&error) => {
                series.errors.inc();
                series.terminal.inc();
                self.engine.failures().forget(request);
                queue.forget(request);
                let error = action::describe(&error);
                tracing::error!(error, "the reconcile failed; it is not tried again until something changes");
                return;
            }
            Outcome::Error(error) => action::describe(&error),
            Outcome::Panic(text) => {
                series.panics.inc();
                format!("it panicked: {text}")
            }
            Outcome::Timeout => {
                series.timeouts.inc();
                format!("it took longer than {:?} and was dropped", self.engine.settings.timeout)
            }
        };
        series.errors.inc();
        let failures = self.engine.failures().failed(request).saturating_add(1);
        let again = queue.at(item.priority()).add_rate_limited(request.clone());
        tracing::warn!(error, failures, ?again, "the reconcile failed");
    }
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}

/// A worker that is busy.
struct Working<'a> {
    engine: &'a Engine,
    number: usize,
}

impl<'a> Working<'a> {
    fn new(engine: &'a Engine, number: usize, request: &Request) -> Self {
        let busy = Busy { request: request.clone(), since: Instant::now() };
        engine.lock_busy().insert(number, busy);
        engine.series.active.inc();
        Self { engine, number }
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.engine.lock_busy().remove(&self.number);
        self.engine.series.active.dec();
    }
}

/// A worker that there is.
struct Counted<'a>(&'a Engine);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.series.workers.dec();
    }
}
