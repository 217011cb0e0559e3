//! How long things may take, and how long it is waited.

use std::time::Duration;

use crate::reflector::Settings;

/// How long things may take on the way to the server, and how long it is waited after failures.
///
/// The defaults suit clusters; others are for tests, which are to be short, and for unusual networks.
///
/// ```
/// # use std::time::Duration;
/// use kube_informer::factory::Timings;
///
/// let timings = Timings::default().patience(Duration::from_secs(5)).waits(Duration::from_millis(50), Duration::from_secs(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    patience: Duration,
    watch: Duration,
    overdue: Duration,
    bookmarks: Duration,
    first_wait: Duration,
    longest_wait: Duration,
    slow: Duration,
    call: Duration,
}

/// Servers count the time of a watch in seconds, and take zero for no wish.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// Whatever is asked for, a server that fails is not asked without a pause.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// Longer than anybody waits, and far from the end of the clock.
const LONGEST: Duration = Duration::from_secs(86_400);

impl Default for Timings {
    fn default() -> Self {
        let Settings { patience, watch_timeout, liveness, backoff, slow, call, .. } = Settings::default();
        Self {
            patience,
            watch: watch_timeout,
            overdue: liveness.grace,
            bookmarks: liveness.shortest,
            first_wait: backoff.initial,
            longest_wait: backoff.max,
            slow,
            call,
        }
    }
}

impl Timings {
    /// How long a request or a list may be silent. Half a minute unless said otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long a watch lasts: between this and twice as long, then the server ends it and another one follows. Five
    /// minutes unless said otherwise; a second at least, and half an hour at most.
    #[must_use]
    pub fn watch(mut self, watch: Duration) -> Self {
        self.watch = watch;
        self
    }

    /// How much longer than that a silent watch may last before it is taken for dead. Half a minute unless said
    /// otherwise.
    #[must_use]
    pub fn overdue(mut self, overdue: Duration) -> Self {
        self.overdue = overdue;
        self
    }

    /// The shortest interval of the server's bookmarks that is counted on. Where three of them in a row do not come, a
    /// silent watch is taken for dead before its time. Ten seconds unless said otherwise.
    #[must_use]
    pub fn bookmarks(mut self, interval: Duration) -> Self {
        self.bookmarks = interval;
        self
    }

    /// How long it is waited after a first failure, and how long at most: each time twice as long. It is a time by chance
    /// between half of that and all of it, so that many who failed at once do not come back at once, and longer where the
    /// server asks for it. Unless said otherwise, that is 0.4 to 0.8 seconds at first, and 15 to 30 in the end.
    #[must_use]
    pub fn waits(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_wait, self.longest_wait) = (first, longest);
        self
    }

    /// How long it is waited, at least, where something is forbidden or not served. Half a minute unless said otherwise.
    #[must_use]
    pub fn slow(mut self, slow: Duration) -> Self {
        self.slow = slow;
        self
    }

    /// How long one call of a handler may take before a warning says so, once until it returns. Half a minute unless said
    /// otherwise.
    #[must_use]
    pub fn call(mut self, call: Duration) -> Self {
        self.call = call;
        self
    }

    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.patience = self.patience.min(LONGEST);
        settings.watch_timeout = self.watch.clamp(SHORTEST_WATCH, LONGEST);
        settings.liveness.grace = self.overdue.min(LONGEST);
        settings.liveness.shortest = self.bookmarks.min(LONGEST);
        settings.backoff.initial = self.first_wait.clamp(SHORTEST_WAIT, LONGEST);
        settings.backoff.max = self.longest_wait.clamp(settings.backoff.initial, LONGEST);
        settings.slow = self.slow.min(LONGEST);
        settings.call = self.call.min(LONGEST);
    }
}
