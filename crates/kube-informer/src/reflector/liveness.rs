//! Whether a silent watch is idle or dead.
//!
//! Servers send bookmarks at a steady interval, on the resources that have a watch cache. Where they were seen,
//! silence past a multiple of that interval is suspicious. Where none come, only the server's own timeout tells: an idle
//! watch is not reopened for ever.

use std::time::Duration;

use tokio::time::Instant;

/// What silence may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LivenessSettings {
    /// The shortest interval that is believed. Bookmarks right after each other, as around a busy moment, say nothing
    /// about it.
    pub(crate) shortest: Duration,
    /// How much longer than its own timeout a watch may take to end.
    pub(crate) grace: Duration,
}

impl Default for LivenessSettings {
    fn default() -> Self {
        Self { shortest: SHORTEST, grace: GRACE }
    }
}

/// Learns how often bookmarks come on one resource.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    settings: LivenessSettings,
    /// The longest of the last intervals between two bookmarks of one watch.
    interval: Option<Duration>,
    /// The last bookmark of this watch.
    last: Option<Instant>,
}

/// How many missed bookmarks are suspicious.
const MISSED: u32 = 3;

const SHORTEST: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(30);

impl Liveness {
    pub(crate) fn new(settings: LivenessSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A watch begins: what was learned stays, what was counted does not.
    pub(crate) fn opened(&mut self) {
        self.last = None;
    }

    /// A bookmark came.
    pub(crate) fn bookmark(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            let seen = now.saturating_duration_since(last).max(self.settings.shortest);
            // It follows the server at once where that is slower than thought, and slowly where it is faster.
            self.interval = Some(
                self.interval.map_or(seen, |known| if seen > known { seen } else { (known * 3 + seen) / 4 }),
            );
        }
    }

    /// When the silence of a watch becomes suspicious that was opened and last heard of at these times, and that the
    /// server ends by itself after a timeout.
    pub(crate) fn suspicious_at(&self, opened: Instant, heard: Instant, timeout: Duration) -> Instant {
        let end = opened + timeout + self.settings.grace;
        match self.interval {
            Some(interval) => end.min(heard + interval * MISSED),
            None => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(400);

    async fn advance(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn without_bookmarks_only_the_timeout_tells() {
        let liveness = Liveness::default();
        let now = Instant::now();
        assert_eq!(liveness.suspicious_at(now, now, TIMEOUT), now + TIMEOUT + GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn with_bookmarks_silence_of_some_intervals_is_suspicious() {
        let mut liveness = Liveness::default();
        let opened = Instant::now();
        liveness.opened();
        for _ in 0..3 {
            advance(60).await;
            liveness.bookmark();
        }
        let heard = Instant::now();
        assert_eq!(liveness.suspicious_at(opened, heard, TIMEOUT), heard + Duration::from_secs(180));
        // What was learned holds for the next watch of the resource.
        liveness.opened();
        assert_eq!(liveness.suspicious_at(heard, heard, TIMEOUT), heard + Duration::from_secs(180));
    }

    #[tokio::test(start_paused = true)]
    async fn bookmarks_right_after_each_other_do_not_make_it_nervous() {
        let mut liveness = Liveness::default();
        liveness.opened();
        for _ in 0..100 {
            liveness.bookmark();
        }
        let now = Instant::now();
        assert_eq!(liveness.suspicious_at(now, now, TIMEOUT), now + SHORTEST * MISSED);
        // One long interval is enough to be patient again.
        advance(60).await;
        liveness.bookmark();
        let heard = Instant::now();
        assert_eq!(liveness.suspicious_at(heard, heard, TIMEOUT), heard + Duration::from_secs(180));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_between_two_watches_is_no_interval() {
        let mut liveness = Liveness::default();
        liveness.bookmark();
        advance(3_600).await;
        liveness.opened();
        liveness.bookmark();
        let now = Instant::now();
        assert_eq!(liveness.suspicious_at(now, now, TIMEOUT), now + TIMEOUT + GRACE);
    }
}
