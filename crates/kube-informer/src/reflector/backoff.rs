//! How long to wait after a failure: longer each time, with jitter, anew after a healthy while.

use std::time::Duration;

use tokio::time::Instant;

/// How waiting grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BackoffSettings {
    /// The first wait.
    pub(crate) initial: Duration,
    /// The longest wait. Each is twice the one before it until then.
    pub(crate) max: Duration,
    /// Without a failure for so long, the next wait is the first again.
    pub(crate) reset_after: Duration,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            reset_after: Duration::from_secs(120),
        }
    }
}

/// Counts failures and tells how long to wait after each.
#[derive(Debug)]
pub(crate) struct Backoff {
    settings: BackoffSettings,
    /// How long the next wait is, before jitter.
    next: Duration,
    /// When the last wait was over.
    last: Option<Instant>,
    jitter: fastrand::Rng,
}

impl Backoff {
    pub(crate) fn new(settings: BackoffSettings) -> Self {
        Self { settings, next: settings.initial, last: None, jitter: fastrand::Rng::new() }
    }

    /// Something worked for so long. If that is longer than the longest wait, the next one is the first again: what is cut
    /// every minute, and works until then, is not to be waited for longer and longer.
    pub(crate) fn worked(&mut self, time: Duration) {
        if time >= self.settings.max {
            self.next = self.settings.initial;
        }
    }

    /// How long to wait after a failure now, at least as long as the server asks for. Between half of the wait and all
    /// of it, so that many clients that failed at once do not come back at once.
    pub(crate) fn failed(&mut self, asked: Option<Duration>) -> Duration {
        let now = Instant::now();
        let healthy =
            self.last.is_some_and(|last| now.saturating_duration_since(last) >= self.settings.reset_after);
        if healthy {
            self.next = self.settings.initial;
        }
        let half = self.next / 2;
        let wait = half + half.mul_f64(self.jitter.f64());
        self.next = (self.next * 2).min(self.settings.max);
        // What the server asks for is a wish, not an order to sleep for ever.
        let wait = wait.max(asked.unwrap_or_default().min(LONGEST_ASKED));
        self.last = Some(now + wait);
        wait
    }
}

/// A server that asks for more is asked again all the same.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(BackoffSettings::default())
    }

    #[tokio::test(start_paused = true)]
    async fn promise_03_each_wait_is_twice_the_one_before_until_the_longest() {
        let mut backoff = backoff();
        for seconds in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let wait = backoff.failed(None).as_secs_f64();
            assert!((seconds / 2.0..=seconds).contains(&wait), "{wait} for {seconds}");
            tokio::time::advance(Duration::from_secs_f64(wait)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn promise_03_after_a_healthy_while_it_begins_anew() {
        let mut backoff = backoff();
        for _ in 0..6 {
            let wait = backoff.failed(None);
            tokio::time::advance(wait).await;
        }
        tokio::time::advance(Duration::from_secs(119)).await;
        let wait = backoff.failed(None);
        assert!(wait > Duration::from_secs(10), "{wait:?}");
        tokio::time::advance(wait + Duration::from_secs(120)).await;
        assert!(backoff.failed(None) <= Duration::from_millis(800));
    }

    #[test]
    fn what_worked_for_long_before_it_failed_is_no_failure_after_failure() {
        let mut backoff = backoff();
        for _ in 0..6 {
            backoff.failed(None);
        }
        backoff.worked(Duration::from_secs(29));
        assert!(backoff.failed(None) > Duration::from_secs(10));
        backoff.worked(Duration::from_secs(30));
        assert!(backoff.failed(None) <= Duration::from_millis(800));
    }

    #[tokio::test(start_paused = true)]
    async fn promise_03_the_server_s_wish_is_honoured_within_reason() {
        let mut backoff = backoff();
        assert_eq!(backoff.failed(Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(backoff.failed(Some(Duration::from_secs(86_400))), LONGEST_ASKED);
        assert!(backoff.failed(Some(Duration::ZERO)) > Duration::ZERO);
    }
}
