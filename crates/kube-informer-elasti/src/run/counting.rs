//! Counts what is reconciled.

use kube_informer::controller::{Action, BoxError, Context, Reconciler};
use tokio::time::Instant;

use crate::api::ElastiService;
use crate::metrics::{self, About, Metrics};

/// A reconciler whose calls are counted.
pub(super) struct Counting<R> {
    inner: R,
    metrics: Metrics,
}

impl<R> Counting<R> {
    pub(super) fn new(inner: R, metrics: &Metrics) -> Self {
        Self { inner, metrics: metrics.clone() }
    }
}

impl<R: Reconciler<ElastiService>> Reconciler<ElastiService> for Counting<R> {
    async fn reconcile(&self, context: Context<ElastiService>) -> Result<Action, BoxError> {
        let begun = Instant::now();
        let about = match context.object() {
            None => About::Gone,
            Some(object) if object.deletion().is_some() => About::Deleting,
            Some(object) => {
                let mode = object.pointer::<String>("/status/mode").ok().flatten();
                About::Present(metrics::mode(mode.as_deref()))
            }
        };
        let done = self.inner.reconcile(context).await;
        self.metrics.reconciled(about, begun.elapsed(), done.is_ok());
        done
    }
}
