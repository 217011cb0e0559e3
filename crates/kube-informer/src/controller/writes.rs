//! Reading one's own writes: a key that wrote waits until the cache has what it wrote.
//!
//! The key waits, not a worker: its item is kept, so that nobody gets it, and the worker takes another one.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};

use super::engine::Engine;
use super::request::Request;
use crate::informer::{CaughtUpError, Informer, Scope, Written};
use crate::workqueue::Item;

/// What one reconcile wrote: per resource and namespace, the last of it; per object, where one is watched alone.
#[derive(Default)]
pub(super) struct Writes(Mutex<Vec<Written>>);

/// So many resources and namespaces are remembered of one reconcile.
const MOST: usize = 64;

/// So many keys wait at a time. Then workers wait with them.
const MOST_HELD: usize = 1024;

impl Writes {
    pub(super) fn add(&self, engine: &Engine, written: &Written) {
        let alone = |informer: &Informer| {
            matches!(informer.scope(), Scope::Object { .. }) && written.is_of(informer.resource())
        };
        let one_by_one = engine.sources.iter().any(|source| alone(&source.informer));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = all.len() >= MOST;
        match all.iter_mut().find(|known| known.is_beside(written, one_by_one)) {
            Some(known) if written.is_older(known) => {}
            Some(known) => *known = written.clone(),
            None if !is_full => all.push(written.clone()),
            None => tracing::debug!(%written, "too many writes at once: this one is not waited for"),
        }
    }

    /// What has not arrived yet, with those who will see it. What none of them watches is nobody's concern.
    pub(super) fn outstanding(&self, engine: &Engine) -> Vec<(Informer, Written)> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut outstanding = Vec::new();
        for written in all {
            for source in &engine.sources {
                if source.informer.has(&written) == Some(false) {
                    outstanding.push((source.informer.clone(), written.clone()));
                }
            }
        }
        outstanding
    }
}

/// A key that waits.
pub(super) struct Held {
    pub(super) item: Item<Request>,
    pub(super) outstanding: Vec<(Informer, Written)>,
}

/// Where keys are brought that wait.
pub(super) fn channel() -> (mpsc::Sender<Held>, mpsc::Receiver<Held>) {
    mpsc::channel(1)
}

/// Holds keys until what they wrote has arrived, or it is told to stop.
pub(super) async fn hold(
    engine: Arc<Engine>,
    mut keys: mpsc::Receiver<Held>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut held = FuturesUnordered::new();
    loop {
        tokio::select! {
            // Then nobody reconciles them again.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            Some(key) = keys.recv(), if held.len() < MOST_HELD => held.push(wait(&engine, key)),
            Some(()) = held.next() => {}
        }
    }
}

/// One more, until it is dropped.
struct Counted<'a>(&'a Gauge);

impl<'a> Counted<'a> {
    fn new(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

async fn wait(engine: &Engine, Held { item, outstanding }: Held) {
    let _counted = Counted::new(&engine.series.held);
    let deadline = engine.settings.write_deadline;
    let waits = outstanding.iter().map(|(informer, written)| informer.caught_up(written, deadline));
    let outcomes = futures_util::future::join_all(waits).await;
    let late = outcomes.iter().find_map(|outcome| match outcome {
        Err(error @ CaughtUpError::Deadline { .. }) => Some(error),
        _ => None,
    });
    match late {
        None => engine.series.arrived.inc(),
        Some(error) => {
            tracing::warn!(
                controller = %engine.name, key = %item.key(), %error,
                "the cache does not have what was written; the key goes on without it"
            );
            engine.series.late.inc()
        }
    };
    drop(item);
}
