//! Since when something is so, for each ElastiService: by a clock that nobody sets, and only for as long as it is so.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube_informer::controller::Request;
use tokio::time::Instant;

/// See the [module](self). What is kept is bounded by how many ElastiServices there are.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Mutex<HashMap<Request, Instant>>,
}

impl Patience {
    /// It is so, now or still. How long it may go on; `None` where that is over.
    pub(super) fn left(&self, request: &Request, patience: Duration) -> Option<Duration> {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let since = since.entry(request.clone()).or_insert_with(Instant::now);
        patience.checked_sub(since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Whether it has been so for long enough. Nothing begins by asking.
    pub(super) fn is_over(&self, request: &Request, patience: Duration) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.get(request).is_some_and(|since| since.elapsed() >= patience)
    }

    /// Whether it is so.
    pub(super) fn is_on(&self, request: &Request) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).contains_key(request)
    }

    /// It is so no more.
    pub(super) fn over(&self, request: &Request) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_and_begins_anew() {
        let (patience, web) = (Patience::default(), Request::new("shop", "web"));
        let ten = Duration::from_secs(10);
        assert_eq!(patience.left(&web, ten), Some(ten));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(patience.left(&web, ten), Some(Duration::from_secs(6)));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(patience.left(&web, ten), None);
        assert!(patience.is_over(&web, ten));
        patience.over(&web);
        assert!(!patience.is_over(&web, ten) && !patience.is_on(&web), "nothing begins by asking");
        assert_eq!(patience.left(&web, ten), Some(ten));
    }
}
