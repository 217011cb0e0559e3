//! What the informers of a factory do, in numbers.
//!
//! Everything is read when it is asked for: nothing is counted twice, and what belongs to an informer or a handler goes
//! away with it.

use std::fmt::{self, Write};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;

use super::Inner;
use crate::informer::{InformerStats, RegistrationStats};

/// Reads the informers of a factory, for as long as there is one.
pub(super) struct Metrics(pub(super) Weak<Inner>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(factory) = self.0.upgrade() else { return Ok(()) };
        let mut informers: Vec<InformerStats> = factory.cores().iter().map(|core| core.stats()).collect();
        // A factory that is dropped here, as the last who has it, ends its informers: not while they are read.
        drop(factory);
        informers
            .sort_by(|a, b| (&a.resource, &a.scope, &a.selector).cmp(&(&b.resource, &b.scope, &b.selector)));
        Page { encoder, informers: &informers }.write()
    }
}

struct Page<'a, 'e> {
    encoder: DescriptorEncoder<'e>,
    informers: &'a [InformerStats],
}

/// One value, and what tells it from others of its informer.
type Values = Vec<(Vec<(&'static str, String)>, f64)>;

impl Page<'_, '_> {
    fn write(mut self) -> fmt::Result {
        self.gauge("objects", "Objects in the cache", |i| one(i.cache.objects as f64))?;
        self.gauge("kept_bytes", "What is kept of them, packed", |i| one(i.cache.kept_bytes as f64))?;
        self.gauge("plain_bytes", "What that is unpacked", |i| one(i.cache.plain_bytes as f64))?;
        self.counter("events", "Changes that were applied, by what became of the object", |i| {
            let kinds = [
                ("added", i.added),
                ("updated", i.updated),
                ("deleted", i.deleted),
                ("bookmark", i.bookmarks),
            ];
            by("type", kinds.map(|(kind, count)| (kind, count as f64)))
        })?;
        self.counter("stale_events", "Events that were older than what was known", |i| {
            one(i.cache.ignored_stale as f64)
        })?;
        self.counter("received_bytes", "Bytes that came from the server", |i| one(i.received_bytes as f64))?;
        self.gauge("gather_seconds", "How long changes may wait for others before they are read", |i| {
            one(i.gather.as_secs_f64())
        })?;
        self.counter("gathered", "How often changes that had waited for others were read", |i| {
            one(i.gathered as f64)
        })?;
        self.gauge("queue_length", "Changes on their way to the cache", |i| one(i.queue_length as f64))?;
        self.gauge("queue_bytes", "What they take", |i| one(i.queue_bytes as f64))?;
        self.counter("relists", "How often everything was listed, by why", |i| {
            by("reason", i.health.relists.by_reason().map(|(reason, count)| (reason, count as f64)))
        })?;
        self.counter("watches", "Watches that were opened", |i| one(i.health.watches as f64))?;
        self.counter("unreadable", "Objects that could not be read", |i| one(i.health.unreadable as f64))?;
        self.counter("index_faults", "Failures of index functions", |i| one(i.cache.index_faults as f64))?;
        self.gauge("encoding", "1 for the encoding in use", |i| {
            let encoding = i.health.encoding.map(|encoding| (encoding.as_str(), 1.0));
            by("encoding", encoding)
        })?;
        self.gauge("health", "1 for the state in which it is", |i| {
            let states = ["starting", "syncing", "live", "stale", "stopped"];
            let is = |state: &str| f64::from(i.health.state.as_str() == state);
            by("state", states.map(|state| (state, is(state))))
        })?;
        self.gauge("last_version", "The last version that was seen", |i| {
            let version = |(namespace, version): &(String, String)| {
                Some((vec![("namespace", namespace.clone())], version.parse().ok()?))
            };
            i.versions.iter().filter_map(version).collect()
        })?;
        self.gauge("last_event_timestamp_seconds", "When something was last heard of an object", |i| {
            i.health.last_event.map(|at| (Vec::new(), seconds(at))).into_iter().collect()
        })?;
        self.gauge(
            "last_bookmark_timestamp_seconds",
            "When the server last said that nothing had happened",
            |i| i.health.last_bookmark.map(|at| (Vec::new(), seconds(at))).into_iter().collect(),
        )?;
        self.gauge("handler_backlog", "Changes that wait for a handler", |i| {
            each_handler(i, |stats| stats.backlog as f64)
        })?;
        self.gauge("handler_behind_seconds", "How long a handler has been behind", |i| {
            each_handler(i, |stats| stats.behind.unwrap_or_default().as_secs_f64())
        })?;
        self.counter("handler_panics", "Calls of a handler that panicked", |i| {
            each_handler(i, |stats| stats.panics as f64)
        })?;
        self.counter("handler_gaps", "How often a handler missed changes", |i| {
            each_handler(i, |stats| stats.gaps as f64)
        })?;
        self.counter("handler_missed", "Changes that a handler missed", |i| {
            each_handler(i, |stats| stats.missed as f64)
        })?;
        self.durations()
    }

    fn gauge(&mut self, name: &str, help: &str, values: impl Fn(&InformerStats) -> Values) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, values, |mut encoder, value| encoder.encode_gauge(&value))
    }

    fn counter(&mut self, name: &str, help: &str, values: impl Fn(&InformerStats) -> Values) -> fmt::Result {
        self.family(name, help, MetricType::Counter, values, |mut encoder, value| {
            encoder.encode_counter::<Vec<(String, String)>, _, f64>(&value, None)
        })
    }

    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Fn(&InformerStats) -> Values,
        write: impl Fn(MetricEncoder<'_>, f64) -> fmt::Result,
    ) -> fmt::Result {
        let name = format!("kube_informer_{name}");
        let mut encoder = self.encoder.encode_descriptor(&name, help, None, kind)?;
        for informer in self.informers {
            for (more, value) in values(informer) {
                write(encoder.encode_family(&Labels { informer, more: &more })?, value)?;
            }
        }
        Ok(())
    }

    /// How long calls of handlers take.
    fn durations(&mut self) -> fmt::Result {
        let mut encoder = self.encoder.encode_descriptor(
            "kube_informer_handler_duration_seconds",
            "How long calls of a handler take",
            None,
            MetricType::Histogram,
        )?;
        for informer in self.informers {
            // Streams are read, not called.
            for (name, stats) in informer.handlers.iter().filter(|(_, stats)| stats.durations.calls() > 0) {
                let more = [("handler", name.to_string())];
                let labels = Labels { informer, more: &more };
                let (busy, buckets) = (stats.busy.as_secs_f64(), stats.durations.buckets());
                let mut family = encoder.encode_family(&labels)?;
                let calls = stats.durations.calls();
                family.encode_histogram::<Vec<(String, String)>>(busy, calls, &buckets, None)?;
            }
        }
        Ok(())
    }
}

fn one(value: f64) -> Values {
    vec![(Vec::new(), value)]
}

fn by(label: &'static str, values: impl IntoIterator<Item = (&'static str, f64)>) -> Values {
    values.into_iter().map(|(name, value)| (vec![(label, name.to_owned())], value)).collect()
}

fn each_handler(informer: &InformerStats, value: impl Fn(&RegistrationStats) -> f64) -> Values {
    let handlers = informer.handlers.iter();
    handlers.map(|(name, stats)| (vec![("handler", name.to_string())], value(stats))).collect()
}

fn seconds(at: Timestamp) -> f64 {
    at.as_duration().as_secs_f64()
}

/// What tells an informer from others, and one of its values from its others.
struct Labels<'a> {
    informer: &'a InformerStats,
    more: &'a [(&'static str, String)],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let InformerStats { name, resource, scope, selector, .. } = self.informer;
        let own = [("informer", &**name), ("resource", resource), ("scope", scope), ("selector", selector)];
        let more = self.more.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in own.into_iter().chain(more) {
            let mut label = encoder.encode_label();
            let mut key = label.encode_label_key()?;
            key.write_str(name)?;
            let mut text = key.encode_label_value()?;
            text.write_str(value)?;
            text.finish()?;
        }
        Ok(())
    }
}

/// For all that comes: see [`Factory::register_metrics`](super::Factory::register_metrics).
pub(super) fn collector(inner: &Arc<Inner>) -> Box<dyn Collector> {
    Box::new(Metrics(Arc::downgrade(inner)))
}

#[cfg(test)]
mod tests;
