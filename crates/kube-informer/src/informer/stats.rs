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

const BOUNDS: [Duration; 7] = [
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

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
        let bounds = BOUNDS.iter().map(Duration::as_secs_f64);
        bounds.chain([f64::INFINITY]).zip(self.counts).collect()
    }

    /// Of calls that took so long.
    #[cfg(test)]
    pub(crate) fn of(calls: impl IntoIterator<Item = Duration>) -> Self {
        let counters = DurationCounters::default();
        calls.into_iter().for_each(|took| counters.add(took));
        counters.read()
    }
}

/// Where they are counted.
#[derive(Debug, Default)]
pub(super) struct DurationCounters([AtomicU64; BOUNDS.len() + 1]);

impl DurationCounters {
    pub(super) fn add(&self, took: Duration) {
        let bucket = BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(BOUNDS.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_at_the_first_bound_that_it_is_not_longer_than() {
        let mut below = 0.0;
        for (number, (bound, _)) in Durations::default().buckets().into_iter().enumerate() {
            let at = |took: Duration| Durations::of([took]).buckets()[number];
            let least = Duration::from_secs_f64(below) + Duration::from_nanos(1);
            assert_eq!(at(least), (bound, 1), "a moment longer than {below} s");
            if bound.is_finite() {
                assert_eq!(at(Duration::from_secs_f64(bound)), (bound, 1));
            }
            below = bound;
        }
        assert_eq!(below, f64::INFINITY);
        let all = Durations::of([Duration::ZERO, Duration::from_secs(3), Duration::MAX]);
        assert_eq!(all.calls(), 3);
        assert_eq!(
            all.buckets().iter().map(|(_, count)| *count).collect::<Vec<_>>(),
            [1, 0, 0, 0, 0, 0, 1, 1]
        );
    }
}
