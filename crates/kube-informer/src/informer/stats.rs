//! What an informer has done, and what it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::core::Core;
use super::health::Health;
use super::registration::{self, RegistrationStats};
use crate::cache::Stats;

/// What an informer has done, and what it holds; see [`Informer::stats`](super::Informer::stats).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InformerStats {
    /// Tells it from others of its factory.
    pub name: Arc<str>,
    /// The resource: `deployments.v1.apps`.
    pub resource: String,
    /// Which of its objects: `all`, or namespaces.
    pub scope: String,
    /// Labels and fields that are selected.
    pub selector: String,
    /// What the cache holds.
    pub cache: Stats,
    /// How it goes.
    pub health: Health,
    /// The last version that was seen of each namespace; of all, where the name is empty.
    pub versions: Vec<(String, String)>,
    /// Objects that were added, so far.
    pub added: u64,
    /// Updates, so far.
    pub updated: u64,
    /// Deletions, so far.
    pub deleted: u64,
    /// How often the server said that nothing had happened.
    pub bookmarks: u64,
    /// Bytes that came from the server.
    pub received_bytes: u64,
    /// Objects in them, as events and in lists that may not be complete yet.
    pub received_objects: u64,
    /// How often a list was begun anew when some of its objects had come: these are counted again.
    pub begun_anew: u64,
    /// How long changes may wait for others before they are read.
    pub gather: Duration,
    /// How often changes that had waited were read. Where it stays at zero, none did: they come seldom, or the connection
    /// cannot do that.
    pub gathered: u64,
    /// Changes on their way to the cache.
    pub queue_length: usize,
    /// What they take.
    pub queue_bytes: usize,
    /// Those who are told, by name.
    pub handlers: Vec<(Arc<str>, RegistrationStats)>,
}

impl Core {
    pub(crate) fn stats(&self) -> InformerStats {
        let spec = self.spec();
        let snapshot = self.cache().snapshot();
        let versions = snapshot.versions().map(|(namespace, version)| {
            (namespace.unwrap_or_default().to_owned(), version.map(ToString::to_string).unwrap_or_default())
        });
        let selectors = [&spec.labels, &spec.fields];
        let traffic = self.traffic();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mailboxes = self.hub().mailboxes();
        let handlers =
            mailboxes.iter().map(|mailbox| (Arc::clone(&mailbox.name), registration::stats(mailbox)));
        InformerStats {
            name: Arc::clone(self.name()),
            resource: spec.resource.to_string(),
            scope: spec.scope.to_string(),
            selector: selectors.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" "),
            cache: self.cache().stats(),
            health: self.board().health(),
            versions: versions.collect(),
            added: count(&traffic.added),
            updated: count(&traffic.updated),
            deleted: count(&traffic.deleted),
            bookmarks: count(&traffic.bookmarks),
            received_bytes: count(&traffic.bytes),
            received_objects: count(&traffic.objects),
            begun_anew: count(&traffic.begun_anew),
            gather: self.gather().get(),
            gathered: self.gather().reads(),
            queue_length: self.gauge().length(),
            queue_bytes: self.gauge().bytes(),
            handlers: handlers.collect(),
        }
    }
}

/// How long calls took: how many were not longer than each bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durations {
    counts: [u64; BOUNDS.len() + 1],
}

/// In microseconds.
const BOUNDS: [u64; 7] = [10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

impl Durations {
    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The bounds in seconds, each with the number of calls that took that long, and not less than the bound before. The
    /// last bound is without end.
    #[must_use]
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|bound| Duration::from_micros(*bound).as_secs_f64());
        bounds.chain([f64::INFINITY]).zip(self.counts).collect()
    }
}

/// Where they are counted.
#[derive(Debug, Default)]
pub(super) struct DurationCounters([AtomicU64; BOUNDS.len() + 1]);

impl DurationCounters {
    pub(super) fn add(&self, took: Duration) {
        let micros = took.as_micros();
        let bucket = BOUNDS.iter().position(|bound| micros <= u128::from(*bound)).unwrap_or(BOUNDS.len());
        if let Some(counter) = self.0.get(bucket) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> Durations {
        Durations {
            counts: std::array::from_fn(|at| {
                self.0.get(at).map_or(0, |counter| counter.load(Ordering::Relaxed))
            }),
        }
    }
}
