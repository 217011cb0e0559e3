//! What is known of a server, and shared by all reflectors of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// See the module.
#[derive(Debug)]
pub(crate) struct Server {
    /// API versions (`apps/v1`) of which it said that it knows no streaming lists, and until when that is believed. One
    /// by one: behind one address, aggregated servers of other ages answer for some.
    plain: Mutex<HashMap<String, Instant>>,
    /// Turns to list.
    pub(super) lists: Arc<Semaphore>,
}

impl Server {
    /// A server that is asked for so many lists at a time.
    pub(crate) fn new(lists: usize) -> Self {
        Self { plain: Mutex::default(), lists: Arc::new(Semaphore::new(lists.max(1))) }
    }

    /// Whether it is known that it has no streaming lists.
    pub(super) fn lists_plainly(&self, api_version: &str) -> bool {
        self.plain().get(api_version).is_some_and(|until| Instant::now() < *until)
    }

    /// It has no streaming lists, which is believed for a time: it may be upgraded.
    pub(super) fn no_streaming_lists(&self, api_version: &str, believed: Duration) {
        self.plain().insert(api_version.to_owned(), Instant::now() + believed);
    }

    fn plain(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_one_api_version_refuses_others_may_have_and_it_is_not_believed_for_ever() {
        let (server, hour) = (Server::default(), Duration::from_secs(3_600));
        server.no_streaming_lists("metrics.k8s.io/v1beta1", hour);
        assert!(server.lists_plainly("metrics.k8s.io/v1beta1") && !server.lists_plainly("v1"));
        tokio::time::advance(hour).await;
        assert!(!server.lists_plainly("metrics.k8s.io/v1beta1"));
    }
}
