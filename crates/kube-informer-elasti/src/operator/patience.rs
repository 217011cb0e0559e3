//! Since when something is so, for each ElastiService, or for each of several things that it is about: by a clock that nobody
//! sets, and only for as long as it is so.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube_informer::controller::Request;
use tokio::time::Instant;

/// See the [module](self). What is kept is bounded by how many ElastiServices there are.
#[derive(Debug)]
pub(super) struct Patience<K = Request> {
    since: Mutex<HashMap<K, Instant>>,
}

impl<K> Default for Patience<K> {
    fn default() -> Self {
        Self { since: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash> Patience<K> {
    /// It is so, now or still. How long it may go on; `None` where that is over.
    pub(super) fn left(&self, request: &K, patience: Duration) -> Option<Duration> {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let since = since.entry(request.clone()).or_insert_with(Instant::now);
        patience.checked_sub(since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Whether it has been so for long enough. Nothing begins by asking.
    pub(super) fn is_over(&self, request: &K, patience: Duration) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.get(request).is_some_and(|since| since.elapsed() >= patience)
    }

    /// Whether it is so.
    pub(super) fn is_on(&self, request: &K) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).contains_key(request)
    }

    /// It is so no more.
    pub(super) fn over(&self, request: &K) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
    }

    /// It is so only of these.
    pub(super) fn only(&self, is_so: impl Fn(&K) -> bool) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| is_so(key));
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
        patience.only(|key| *key == web);
        assert!(patience.is_on(&web));
        patience.only(|key| *key != web);
        assert!(!patience.is_on(&web));
    }
}
