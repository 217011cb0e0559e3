//! Events about objects, for people.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube_client::Client;
use kube_client::core::Resource as KubeResource;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

// What is said, and whether it is said again.
mod correlate;
mod text;

// Who says it.
mod task;

use correlate::{Correlator, Report};

use crate::object::Object;

/// Tells people what is done about objects, as `kubectl describe` and `kubectl events` show it: `events.k8s.io/v1`.
///
/// ```no_run
/// use std::time::Duration;
///
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::object::Object;
/// use kube_informer::write::Recorder;
///
/// # async fn example(client: kube_client::Client, object: Object<ConfigMap>) {
/// let recorder = Recorder::new(client, "example.com/my-controller");
/// recorder.normal(&object, "Created", "CreateBucket", "bucket b-7 was created");
/// recorder.warning(&object, "Failed", "CreateBucket", "no bucket can be had: quota exceeded");
/// recorder.shutdown(Duration::from_secs(5)).await;
/// # }
/// ```
///
/// - **Nobody waits for it.** What is said goes into a queue of [`QUEUE`](Self::QUEUE); what does not fit is dropped, and
///   counted. One task writes it, and tries again where the server cannot be reached: 12 times, 10 s apart.
/// - **What is said again is counted**, not written again: one event with a series, its count and when it was last so. If
///   more than 10 of one reason about one object differ in their words within 10 minutes, those beyond are one event, with
///   the words of the first of them.
/// - **Nobody is flooded.** About one object 25 events are written at once, then one in 5 minutes. What is known of objects
///   for that is bounded, too.
/// - What is too long is cut: 1024 bytes of words, 128 of a reason and an action. Events about objects without a namespace
///   are in `default`.
/// - The task ends with the last clone, after up to 30 s for what is queued; [`shutdown`](Self::shutdown) waits for it.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    queue: mpsc::Sender<Report>,
    end: watch::Sender<Option<Instant>>,
    ended: watch::Receiver<bool>,
    counts: Arc<Counts>,
}

/// What an event is about.
///
/// From an [`Object`] of a cache, or from a reference.
#[derive(Debug, Clone, PartialEq)]
pub struct About(ObjectReference);

/// What became of what was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// Events that were created.
    pub created: u64,
    /// Events whose series was counted on.
    pub counted: u64,
    /// Not written: there were too many about one object.
    pub limited: u64,
    /// Not written: the queue was full, or the recorder had ended.
    pub dropped: u64,
    /// Not written: the server refused, or could not be reached.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counts {
    created: AtomicU64,
    counted: AtomicU64,
    limited: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Recorder {
    /// How many can wait to be written.
    pub const QUEUE: usize = 1000;

    /// A recorder for a controller of that name: `example.com/my-controller`. Characters that such a name cannot have become
    /// dashes.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which a client needs, too.
    #[must_use]
    pub fn new(client: Client, controller: &str) -> Self {
        Self::with(client, controller, task::Tries::default())
    }

    fn with(client: Client, controller: &str, tries: task::Tries) -> Self {
        let (queue, queued) = mpsc::channel(Self::QUEUE);
        let (end, ends) = watch::channel(None);
        let (done, ended) = watch::channel(false);
        let counts = Arc::<Counts>::default();
        let controller = text::controller(controller);
        let instance = text::instance(&controller);
        let correlator = Correlator::new(controller, instance);
        let writer = task::Writer { client, correlator, counts: Arc::clone(&counts), tries };
        tokio::spawn(writer.run(queued, ends, done));
        Self { inner: Arc::new(Inner { queue, end, ended, counts }) }
    }

    /// All is well: `reason` why it was done and `action` what was done, in one word each, and the same for people.
    pub fn normal(&self, about: impl Into<About>, reason: &str, action: &str, note: impl Into<String>) {
        self.record(Report::new("Normal", about.into().0, reason, action, note.into()));
    }

    /// Somebody should have a look.
    pub fn warning(&self, about: impl Into<About>, reason: &str, action: &str, note: impl Into<String>) {
        self.record(Report::new("Warning", about.into().0, reason, action, note.into()));
    }

    fn record(&self, report: Report) {
        let is_over = self.inner.end.borrow().is_some();
        if is_over || self.inner.queue.try_send(report).is_err() {
            let before = self.inner.counts.dropped.fetch_add(1, Ordering::Relaxed);
            if before == 0 {
                tracing::warn!(
                    "an event was dropped: too many wait to be written, or the recorder has ended"
                );
            }
        }
    }

    /// Writes what is queued, and ends. What is left at the deadline is dropped. Of several calls, the first one's counts.
    pub async fn shutdown(&self, deadline: Duration) -> RecorderStats {
        self.inner.end.send_if_modified(|end| {
            let first = end.is_none();
            let now = Instant::now();
            end.get_or_insert_with(|| now.checked_add(deadline).unwrap_or(now + LONGEST));
            first
        });
        // Where the runtime is gone, the task is, too.
        let _ = self.inner.ended.clone().wait_for(|ended| *ended).await;
        self.stats()
    }

    /// What became of what was said so far.
    #[must_use]
    pub fn stats(&self) -> RecorderStats {
        self.inner.counts.read()
    }

    /// Registers `kube_informer_recorded_events_total`, by what became of them (`result`). Once for each registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Metrics(Arc::downgrade(&self.inner.counts))));
    }
}

/// What a deadline without an end is taken for.
const LONGEST: Duration = Duration::from_secs(86_400);

impl Counts {
    fn read(&self) -> RecorderStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RecorderStats {
            created: read(&self.created),
            counted: read(&self.counted),
            limited: read(&self.limited),
            dropped: read(&self.dropped),
            failed: read(&self.failed),
        }
    }
}

impl<K> From<&Object<K>> for About {
    fn from(object: &Object<K>) -> Self {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Self(ObjectReference {
            api_version: some(object.api_version().to_owned()),
            kind: some(object.kind().to_owned()),
            namespace: some(object.namespace().to_owned()),
            name: some(object.name().to_owned()),
            uid: some(object.uid().to_string()),
            resource_version: some(object.version().to_string()),
            field_path: None,
        })
    }
}

impl About {
    /// An object that a client gave.
    #[must_use]
    pub fn object<K: KubeResource<DynamicType = ()>>(object: &K) -> Self {
        let resource_version = object.meta().resource_version.clone();
        Self(ObjectReference { resource_version, ..object.object_ref(&()) })
    }
}

impl From<ObjectReference> for About {
    fn from(reference: ObjectReference) -> Self {
        Self(reference)
    }
}

/// Reads the counts of a recorder, for as long as there is one.
#[derive(Debug)]
struct Metrics(Weak<Counts>);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(counts) = self.0.upgrade() else { return Ok(()) };
        let RecorderStats { created, counted, limited, dropped, failed } = counts.read();
        let results = BTreeMap::from([
            ("counted", counted),
            ("created", created),
            ("dropped", dropped),
            ("failed", failed),
            ("limited", limited),
        ]);
        // The encoder adds `_total`.
        let (name, help) = ("kube_informer_recorded_events", "Events about objects, by what became of them");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (result, count) in results {
            let labels = [("result", result)];
            family.encode_family(&labels)?.encode_counter::<Vec<(String, String)>, _, u64>(&count, None)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
