//! When a cache can be trusted again after its watch was interrupted.
//!
//! A watch that is opened again is live, but what was missed comes only after that, or waits to be applied. So what is
//! known is trusted when the watch has been open for a while: nearly always, everything has come by then. It is a matter of
//! probability, not of proof, as the server does not say when it has told everything.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// See the module.
#[derive(Debug)]
pub(super) struct Trust {
    /// How long a watch must have been open after an interruption.
    settling: Duration,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// How many watches were opened.
    watches: u64,
    /// When the last of them was first seen; `None` of the first one, which follows a list that was read in whole.
    since: Option<Instant>,
}

impl Trust {
    pub(super) fn new(settling: Duration) -> Self {
        Self { settling, seen: Mutex::default() }
    }

    /// Whether what is known can be trusted, after so many watches were opened. To be asked whenever that may have changed.
    pub(super) fn is_given(&self, watches: u64) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.watches != watches {
            let is_first = seen.watches == 0;
            *seen = Seen { watches, since: (!is_first).then(Instant::now) };
        }
        seen.since.is_none_or(|since| since.elapsed() >= self.settling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLING: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_first_watch_is_trusted_at_once_and_others_after_a_while() {
        let trust = Trust::new(SETTLING);
        assert!(trust.is_given(1));
        for watches in 2..5 {
            assert!(!trust.is_given(watches));
            tokio::time::advance(SETTLING - Duration::from_millis(1)).await;
            assert!(!trust.is_given(watches));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(trust.is_given(watches));
        }
        // Interrupted again before it was trusted: it begins anew.
        assert!(!trust.is_given(5));
        tokio::time::advance(SETTLING / 2).await;
        assert!(!trust.is_given(6));
        tokio::time::advance(SETTLING / 2).await;
        assert!(!trust.is_given(6));
    }
}
