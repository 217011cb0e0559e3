//! What the operator counts, under the names that dashboards for KubeElasti know.
//!
//! | metric | labels | |
//! |---|---|---|
//! | `elasti_operator_reconcile` | `error` | seconds that reconciles took |
//! | `elasti_operator_CRD_update_counter` | `mode`, `error` | reconciles of ElastiServices that are there, by the mode that they had |
//! | `elasti_operator_CRD_finalizer_counter` | `error` | reconciles of those that go |
//! | `elasti_operator_mode` | `crd_name`, `namespace` | 1 where the resolver answers, 0 where the pods do |
//! | `elasti_operator_informer_count` | `informer_name` | targets and Services that are watched, by resource: `deployments.apps` |
//! | `elasti_operator_informer_counter` | `action`, `error` | watches of targets and Services that were begun (`add`), and informers that were begun anew (`restart`) |
//! | `elasti_operator_informer_handler_counter` | `error` | changes of targets that were handed on |
//! | `elasti_operator_scale_counter` | `error` | calls of the resolver, by what became of them |
//! | `elasti_operator_wake_joined_total` | | of these, those that found their service being woken |
//!
//! Labels have few values, which are known here: `error` is `success` or a reason of one word. KubeElasti writes the
//! error's text there, and names of ElastiServices and of objects; here these are in the logs. `elasti_operator_mode` and
//! `elasti_operator_informer_count` are read when they are asked for, so they have what there is. The names of KubeElasti's
//! counters do not end in `_total`: in OpenMetrics they are of no known type, which changes nothing for those who read them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::informer::Informer;
use kube_informer::manager::{KeyParams, Manager, ManagerStats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

use crate::api::{ElastiService, Mode};
use crate::wake::Outcome;

#[cfg(test)]
mod tests;

/// What is counted. A clone is the same.
#[derive(Clone, Default)]
pub struct Metrics {
    counted: Arc<Counted>,
}

struct Counted {
    reconcile: Family<Labels, Histogram, fn() -> Histogram>,
    updates: Family<UpdateLabels, Plain>,
    finalized: Family<Labels, Plain>,
    scaled: Family<Labels, Plain>,
    joined: Counter,
}

/// Whether it went well, or why not, in one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpdateLabels {
    mode: &'static str,
    error: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    namespace: String,
    crd_name: String,
}

/// A counter whose name stays as it is.
#[derive(Debug, Clone, Default)]
struct Plain(Counter);

/// What a reconcile was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// An ElastiService with this mode.
    Present(Option<Mode>),
    /// One that goes.
    Deleting,
    /// One that is not there.
    Gone,
}

/// When it went well.
const SUCCESS: &str = "success";

impl Metrics {
    /// Puts them into a registry, once.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("elasti_operator");
        let Counted { reconcile, updates, finalized, scaled, joined } = &*self.counted;
        registry.register("reconcile", "Seconds that reconciles took", reconcile.clone());
        registry.register("CRD_update_counter", "Reconciles of ElastiServices", updates.clone());
        registry.register("CRD_finalizer_counter", "Reconciles of ElastiServices that go", finalized.clone());
        registry.register("scale_counter", "Calls of the resolver, by what became of them", scaled.clone());
        registry.register("wake_joined", "Calls that found their service being woken", joined.clone());
    }

    /// Puts the modes of the ElastiServices of a cache into a registry, once.
    pub fn register_modes(&self, registry: &mut Registry, informer: &Informer<ElastiService>) {
        registry.register_collector(Box::new(Modes(informer.clone())));
    }

    /// Puts what a manager watches, and what it did for that, into a registry, once.
    pub fn register_watches(&self, registry: &mut Registry, manager: &Manager) {
        registry.register_collector(Box::new(Watches(manager.clone())));
    }

    pub(crate) fn reconciled(&self, about: About, took: Duration, is_ok: bool) {
        let error = if is_ok { SUCCESS } else { "failed" };
        self.counted.reconcile.get_or_create(&Labels { error }).observe(took.as_secs_f64());
        match about {
            About::Present(mode) => {
                let mode = mode.map_or("unknown", Mode::as_str);
                self.counted.updates.get_or_create(&UpdateLabels { mode, error }).0.inc();
            }
            About::Deleting => {
                self.counted.finalized.get_or_create(&Labels { error }).0.inc();
            }
            About::Gone => {}
        }
    }

    pub(crate) fn woken(&self, outcome: &Outcome) {
        let error = match outcome {
            Outcome::Woken(_) => SUCCESS,
            Outcome::Unknown => "unknown_service",
            Outcome::Failed(_) => "failed",
            Outcome::Late => "timeout",
            Outcome::Busy(_) => "busy",
        };
        self.counted.scaled.get_or_create(&Labels { error }).0.inc();
    }

    pub(crate) fn wake_joined(&self) {
        self.counted.joined.inc();
    }
}

/// The mode that a text of a status names.
pub(crate) fn mode(status: Option<&str>) -> Option<Mode> {
    [Mode::Serve, Mode::Proxy].into_iter().find(|mode| Some(mode.as_str()) == status)
}

impl Default for Counted {
    fn default() -> Self {
        // From a millisecond to half a minute: reconciles wait for the server, not for time to pass.
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        Self {
            reconcile: Family::new_with_constructor(buckets),
            updates: Family::default(),
            finalized: Family::default(),
            scaled: Family::default(),
            joined: Counter::default(),
        }
    }
}

impl EncodeMetric for Plain {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Plain {
    const TYPE: MetricType = MetricType::Unknown;
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InformerLabels {
    informer_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    error: &'static str,
}

/// Reads what a manager watches, and what it did for that.
struct Watches(Manager);

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut counts = BTreeMap::<String, u32>::new();
        for watch in self.0.list() {
            let KeyParams { resource_type, group, .. } = &watch.key;
            let dot = if group.is_empty() { "" } else { "." };
            *counts.entry(format!("{resource_type}{dot}{group}")).or_default() += 1;
        }
        let help = "Targets and Services that are watched, by resource";
        let mut watches =
            encoder.encode_descriptor("elasti_operator_informer_count", help, None, MetricType::Gauge)?;
        for (informer_name, count) in counts {
            watches.encode_family(&InformerLabels { informer_name })?.encode_gauge(&count)?;
        }
        done(&self.0.stats(), &mut encoder)
    }
}

/// What a manager did, under the names of counters that KubeElasti has.
fn done(stats: &ManagerStats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let name = "elasti_operator_informer_counter";
    let help = "Watches that were begun, and informers that were begun anew";
    let mut informers = encoder.encode_descriptor(name, help, None, Plain::TYPE)?;
    let adds = stats.adds.iter().map(|(&error, &count)| (ActionLabels { action: "add", error }, count));
    let restarts = (ActionLabels { action: "restart", error: SUCCESS }, stats.restarts);
    for (labels, count) in adds.chain([restarts]) {
        informers.encode_family(&labels)?.encode_gauge(&count)?;
    }
    let name = "elasti_operator_informer_handler_counter";
    let help = "Changes of targets that were handed on";
    let mut handlers = encoder.encode_descriptor(name, help, None, Plain::TYPE)?;
    for (&error, count) in &stats.calls {
        handlers.encode_family(&Labels { error })?.encode_gauge(count)?;
    }
    Ok(())
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").finish_non_exhaustive()
    }
}

/// Reads the modes out of a cache.
struct Modes(Informer<ElastiService>);

impl Collector for Modes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "1 where the resolver answers, 0 where the pods do";
        let mut modes = encoder.encode_descriptor("elasti_operator_mode", help, None, MetricType::Gauge)?;
        for object in self.0.list() {
            let status = object.pointer::<String>("/status/mode").ok().flatten();
            // Where nobody has decided yet, there is nothing to tell.
            let Some(mode) = mode(status.as_deref()) else { continue };
            let labels =
                NameLabels { namespace: object.namespace().to_owned(), crd_name: object.name().to_owned() };
            modes.encode_family(&labels)?.encode_gauge(&u32::from(mode == Mode::Proxy))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modes").finish_non_exhaustive()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
