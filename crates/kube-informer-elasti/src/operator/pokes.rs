//! Keys that are to be reconciled for reasons of our own: each once, until it is taken.
//!
//! What waits is bounded by how many ElastiServices there are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::Stream;
use kube_informer::controller::Request;
use tokio::sync::Notify;

/// See the [module](self). A clone is the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Pokes {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: Mutex<BTreeSet<Request>>,
    some: Notify,
}

impl Pokes {
    pub(super) fn add(&self, request: Request) {
        self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(request);
        self.inner.some.notify_one();
    }

    fn take(&self) -> Option<Request> {
        self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    /// The keys. There is to be one who takes them.
    pub(super) fn stream(&self) -> impl Stream<Item = Request> + Send + 'static {
        futures_util::stream::unfold(self.clone(), |pokes| async move {
            loop {
                if let Some(request) = pokes.take() {
                    return Some((request, pokes));
                }
                pokes.inner.some.notified().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::{FutureExt, StreamExt};

    use super::*;

    #[tokio::test]
    async fn each_key_is_given_once_until_it_is_taken() {
        let pokes = Pokes::default();
        let mut stream = pin!(pokes.stream());
        assert!(stream.next().now_or_never().is_none());
        for name in ["b", "a", "b"] {
            pokes.add(Request::new("n", name));
        }
        assert_eq!(stream.next().await, Some(Request::new("n", "a")));
        assert_eq!(stream.next().await, Some(Request::new("n", "b")));
        assert!(stream.next().now_or_never().is_none());
        pokes.add(Request::new("n", "b"));
        assert_eq!(stream.next().await, Some(Request::new("n", "b")));
    }
}
