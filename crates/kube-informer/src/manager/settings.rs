//! How a manager is to be.

use std::sync::Arc;
use std::time::Duration;

use super::Manager;
use super::metrics::Metrics;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) name: Arc<str>,
    pub(super) health_check: Duration,
    pub(super) grace: Duration,
    pub(super) restarts: (Duration, Duration),
    pub(super) resync: Duration,
    pub(super) sync_deadline: Duration,
    pub(super) share_from: usize,
    pub(super) probe: Duration,
    pub(super) workers: usize,
    pub(super) timeout: Duration,
    pub(super) retries: (Duration, Duration),
    pub(super) drain: Duration,
    pub(super) metrics: Option<Metrics>,
}

/// No clock is asked more often.
const SHORTEST: Duration = Duration::from_millis(1);

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "manager".into(),
            health_check: Duration::from_secs(5),
            grace: Duration::from_secs(60),
            restarts: (Duration::from_secs(1), Duration::from_secs(300)),
            resync: Duration::from_secs(300),
            sync_deadline: Duration::from_secs(30),
            share_from: 4,
            probe: Duration::from_secs(600),
            workers: 8,
            timeout: Duration::from_secs(60),
            retries: (Duration::from_millis(5), Duration::from_secs(300)),
            drain: Duration::from_secs(10),
            metrics: None,
        }
    }
}

impl Manager {
    /// What it is called in logs and metrics: `manager` unless said otherwise.
    #[must_use]
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        self.set(|settings| settings.name = name.into())
    }

    /// How often it is looked how each informer is. Five seconds unless said otherwise.
    #[must_use]
    pub fn health_check(self, period: Duration) -> Self {
        self.set(|settings| settings.health_check = period.max(SHORTEST))
    }

    /// How long an informer may be stale before it begins anew. A minute unless said otherwise.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.set(|settings| settings.grace = grace)
    }

    /// How long it is waited until an informer begins anew, at first and at most: each time twice as long. From a second to
    /// five minutes unless said otherwise.
    #[must_use]
    pub fn restarts(self, first: Duration, longest: Duration) -> Self {
        self.set(|settings| settings.restarts = (first.max(SHORTEST), longest.max(first)))
    }

    /// How often everything is said again: handlers are told [`Updated`](super::WatchEvent::Updated) with `resync`, and so are the
    /// readers of [`requests`](Self::requests). Five minutes unless said otherwise; zero is never.
    #[must_use]
    pub fn resync(self, period: Duration) -> Self {
        self.set(|settings| settings.resync = period)
    }

    /// How long [`add`](Self::add) waits until it is known whether the object is there. Half a minute unless said otherwise.
    #[must_use]
    pub fn sync_deadline(self, deadline: Duration) -> Self {
        self.set(|settings| settings.sync_deadline = deadline)
    }

    /// From so many watched objects of one resource and namespace on, they are seen through one informer of the whole
    /// namespace, and no longer by their names. That is one connection instead of many, and one watch for the server; but all
    /// objects of the namespace are sent and kept, and what is added waits until all were read once. Four unless said
    /// otherwise; more where namespaces are huge and few of their objects are watched.
    #[must_use]
    pub fn share_from(self, objects: usize) -> Self {
        self.set(|settings| settings.share_from = objects.max(1))
    }

    /// How long it is waited until a namespace that may not be seen as a whole is tried again. Ten minutes unless said
    /// otherwise.
    #[must_use]
    pub fn probe(self, after: Duration) -> Self {
        self.set(|settings| settings.probe = after)
    }

    /// How many handlers are called at the same time, each of another watch; those that take longer than a second do not
    /// count. Eight unless said otherwise.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        self.set(|settings| settings.workers = workers.max(1))
    }

    /// How long a call of a handler may take; it is dropped then, which is an error. A minute unless said otherwise.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.timeout = timeout)
    }

    /// How long it is waited until a handler that failed is called again, at first and at most: each time twice as long. From
    /// five milliseconds to five minutes unless said otherwise.
    #[must_use]
    pub fn retries(self, first: Duration, longest: Duration) -> Self {
        self.set(|settings| settings.retries = (first, longest.max(first)))
    }

    /// How long a handler may be in a call when its watch is stopped, until it is dropped where it waits. Ten seconds unless
    /// said otherwise.
    #[must_use]
    pub fn drain(self, deadline: Duration) -> Self {
        self.set(|settings| settings.drain = deadline)
    }

    /// Where it is counted and measured.
    #[must_use]
    pub fn metrics(self, metrics: &Metrics) -> Self {
        metrics.add(&self.inner);
        self.set(|settings| settings.metrics = Some(metrics.clone()))
    }

    fn set(self, set: impl FnOnce(&mut Settings)) -> Self {
        set(&mut self.inner.lock_settings());
        self
    }
}
