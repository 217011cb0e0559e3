//! Keys that are told to any number of readers.
//!
//! A key waits once for each reader, however often it is told: a reader that is slow reads less, and what it reads is never
//! over already, as a key says nothing but "look again". Each reader begins with the keys that there are when it comes. What
//! waits is bounded by the keys that there are: one that is [forgotten](News::forget) waits for nobody any more. Streams end
//! with the last handle of what they are about.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_core::Stream;
use kube_informer::controller::Request;
use tokio::sync::Notify;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct News {
    readers: Mutex<Vec<Weak<Reader>>>,
}

#[derive(Debug, Default)]
struct Reader {
    waiting: Mutex<Waiting>,
    more: Notify,
}

/// In the order in which they were told first.
#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<Request>,
    keys: HashSet<Request>,
    closed: bool,
}

impl News {
    /// What is told from now on, after these keys.
    pub(crate) fn read(&self, first: Vec<Request>) -> impl Stream<Item = Request> + Send + use<> + 'static {
        let reader = Arc::new(Reader::default());
        first.into_iter().for_each(|key| reader.put(&key));
        let mut readers = self.lock();
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(&reader));
        drop(readers);
        futures_util::stream::unfold(reader, |reader| async {
            let key = reader.next().await?;
            Some((key, reader))
        })
    }

    /// Tells a key to everyone who does not have it waiting.
    pub(crate) fn tell(&self, key: &Request) {
        self.each(|reader| reader.put(key));
    }

    /// A key that there is no more.
    pub(crate) fn forget(&self, key: &Request) {
        self.each(|reader| {
            let mut waiting = reader.lock();
            if waiting.keys.remove(key) {
                waiting.order.retain(|each| each != key);
            }
        });
    }

    fn each(&self, act: impl Fn(&Reader)) {
        self.lock().iter().filter_map(Weak::upgrade).for_each(|reader| act(&reader));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Reader>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.each(|reader| {
            reader.lock().closed = true;
            reader.more.notify_one();
        });
    }
}

impl Reader {
    fn put(&self, key: &Request) {
        let mut waiting = self.lock();
        if waiting.keys.insert(key.clone()) {
            waiting.order.push_back(key.clone());
            drop(waiting);
            self.more.notify_one();
        }
    }

    async fn next(&self) -> Option<Request> {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(key) = waiting.order.pop_front() {
                    waiting.keys.remove(&key);
                    return Some(key);
                }
                if waiting.closed {
                    return None;
                }
            }
            // One who is told between the look and this has left a permit.
            self.more.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use futures_util::future::FutureExt;

    use super::*;

    fn key(name: &str) -> Request {
        Request::new("shop", name)
    }

    #[tokio::test]
    async fn a_key_waits_once_and_comes_again_after_it_was_read() {
        let news = News::default();
        let mut reader = Box::pin(news.read(vec![key("first")]));
        for name in ["a", "b", "a", "first", "b"] {
            news.tell(&key(name));
        }
        for name in ["first", "a", "b"] {
            assert_eq!(reader.next().await, Some(key(name)));
        }
        assert!(reader.next().now_or_never().is_none());
        news.tell(&key("a"));
        assert_eq!(reader.next().await, Some(key("a")));
    }

    #[tokio::test]
    async fn what_is_told_while_a_reader_waits_wakes_it() {
        let news = Arc::new(News::default());
        let mut reader = Box::pin(news.read(Vec::new()));
        let waiting = tokio::spawn(async move { reader.next().await });
        tokio::task::yield_now().await;
        news.tell(&key("a"));
        assert_eq!(waiting.await.unwrap(), Some(key("a")));
    }

    #[tokio::test]
    async fn all_readers_are_told_and_end_with_it() {
        let news = News::default();
        let (mut one, mut two) = (Box::pin(news.read(Vec::new())), Box::pin(news.read(Vec::new())));
        news.tell(&key("a"));
        drop(news);
        assert_eq!((one.next().await, one.next().await), (Some(key("a")), None));
        assert_eq!((two.next().await, two.next().await), (Some(key("a")), None));
    }

    #[tokio::test]
    async fn a_key_that_is_forgotten_waits_no_more() {
        let news = News::default();
        let mut reader = Box::pin(news.read(Vec::new()));
        for name in ["a", "b", "c"] {
            news.tell(&key(name));
        }
        news.forget(&key("b"));
        news.forget(&key("d"));
        assert_eq!(reader.next().await, Some(key("a")));
        assert_eq!(reader.next().await, Some(key("c")));
        assert!(reader.next().now_or_never().is_none());
        drop(reader);
        news.tell(&key("a"));
        drop(Box::pin(news.read(Vec::new())));
        assert_eq!(news.lock().len(), 1, "those who are gone are forgotten when others come");
    }
}
