//! Keys that wait for workers: each once, not before its time, and never in two hands.
//!
//! What is promised:
//!
//! - **A key is never with two workers at once.** Between [`get`](WorkQueue::get) and the drop of the [`Item`], nobody else
//!   gets it. Added meanwhile, it runs once more afterwards, however often it was added.
//! - **A key waits once.** It is pending once at most: added again, the earliest time and the highest priority win. (In
//!   client-go, a key with a delay that is added without one runs twice.) So the queue is bounded by the number of
//!   different keys; a controller's are its objects.
//! - **In order.** Of the same [`Priority`], the key that became ready first goes first. A key whose priority is raised goes
//!   to the end of its new line.
//! - **No priority starves.** While there are keys of a lower priority, at least one in ten goes to one of them
//!   ([`Settings::patience`]).
//! - **Nobody polls.** A key wakes one of those who wait for one. Of these, one watches the clock, until the next deadline;
//!   there is one timer, and no task.
//! - **Whatever is done to one key takes at most the logarithm of their number,** and no operation looks at all keys, but
//!   for closing, which lets go of the delayed ones.
//! - **A panic of a worker is a drop of its item.** The key is done.
//!
//! What is not promised: that a key runs soon. Failures are counted by [`rate_limit`] alone, for a bounded number of keys.
//!
//! **The end.** [`shut_down`](WorkQueue::shut_down): no key is added any more, keys that are not due are let go, workers get
//! what is ready, and then `None`. [`drain`](WorkQueue::drain) does the same, and waits until the last item is dropped.
//!
//! **Memory.** Some fifty bytes for each key that is known, beside the key, and a hundred more while it is delayed. A key is
//! cloned for each worker that gets it, so it should be cheap to clone. The room is given back when the queue is empty.
//!
//! **Concurrency.** All state is in one mutex. It is held for single steps of a state machine that knows no waiting, and
//! never across an await; of the keys, only `Eq`, `Clone` and `Drop` run under it, and must not call the queue. So steps
//! cannot interleave; what could go wrong are wake-ups that get lost. A getter counts as waiting, and listens, before it
//! looks for the last time: whoever adds after that look sees that someone waits, and wakes one. Whoever takes a key and
//! leaves others in line while someone waits wakes the next. Whoever leaves while there are deadlines, and nobody to watch
//! the clock, wakes one to do it. A `get` that is polled no more must be dropped, as everything that waits: it may be the
//! one that was woken.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

// Structures.
mod delay;
mod hash;
mod priority;
mod table;

// What the queue knows, and who waits for it.
mod shared;
mod state;
mod wait;

// What a worker holds.
mod item;

// How long retries wait.
pub mod rate_limit;

// What can be seen from outside.
mod metrics;

pub use item::Item;
pub use metrics::Metrics;
pub use priority::Priority;

use rate_limit::RateLimiter;
use shared::Shared;
use state::State;

/// What can be queued: anything that is compared, cloned and sent. Clones should be cheap.
pub trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

/// A queue of keys. A clone is the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use kube_informer::workqueue::{Priority, Settings, WorkQueue};
///
/// let queue = WorkQueue::new(Settings::default());
/// queue.add("default/b");
/// queue.add("default/b");                                  // it is there already
/// queue.at(Priority::High).add("default/a");
/// queue.add_after("default/c", Duration::from_secs(60));
///
/// let worker = async |queue: WorkQueue<&'static str>| {
///     let mut seen = Vec::new();
///     while let Some(item) = queue.get().await {
///         seen.push(*item.key());
///         match *item.key() {
///             "default/c" => queue.shut_down(),
///             "default/b" if queue.failures(&"default/b") < 2 => { item.retry(); }
///             _ => item.forget(),
///         }
///     }                                                    // dropped: done
///     seen
/// };
/// let seen = worker(queue).await;
/// assert_eq!(seen, ["default/a", "default/b", "default/b", "default/b", "default/c"]);
/// # }
/// ```
pub struct WorkQueue<K: Key> {
    shared: Arc<Shared<K>>,
}

/// Adds keys with a priority. From [`WorkQueue::at`].
pub struct At<'a, K: Key> {
    shared: &'a Shared<K>,
    priority: Priority,
}

/// How a queue is to be.
///
/// ```
/// use kube_informer::workqueue::{Metrics, Settings, WorkQueue, rate_limit::Exponential};
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// let metrics = Metrics::default();
/// metrics.register(&mut registry);
///
/// let settings = Settings::default().limiter(Exponential::default()).metrics(&metrics, "pods");
/// let queue = WorkQueue::<u64>::new(settings);
/// queue.add(1);
///
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
/// assert!(text.contains("workqueue_depth{name=\"pods\"} 1"));
/// ```
#[must_use]
pub struct Settings<K> {
    limiter: Box<dyn RateLimiter<K>>,
    patience: u32,
    metrics: Option<(Metrics, String)>,
}

impl<K: Key> WorkQueue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(settings: Settings<K>) -> Self {
        Self { shared: Shared::new(settings) }
    }

    /// The key shall run as soon as it can.
    pub fn add(&self, key: K) {
        self.at(Priority::default()).add(key);
    }

    /// The key shall run after that time, or earlier if it was to run earlier anyway.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.at(Priority::default()).add_after(key, delay);
    }

    /// The key failed: it shall run again after the time that the limiter says, which is returned.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        self.at(Priority::default()).add_rate_limited(key)
    }

    /// To add with another priority than [`Priority::Normal`].
    #[must_use]
    pub fn at(&self, priority: Priority) -> At<'_, K> {
        At { shared: &self.shared, priority }
    }

    /// The next key, as soon as there is one, for one of those who ask; `None` when the queue was shut down and nothing is
    /// left. Can be dropped at any time: no key is lost. Needs tokio's clock if there are delays.
    pub async fn get(&self) -> Option<Item<K>> {
        wait::get(&self.shared).await
    }

    /// The key succeeded, or is gone: the limiter forgets its failures. It is no sign that a worker is done; that is the
    /// drop of the item.
    pub fn forget(&self, key: &K) {
        self.shared.limiter().forget(key);
    }

    /// How often the key failed since it was last forgotten.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.limiter().failures(key)
    }

    /// How many keys a worker could get now. Delayed ones, and those that a worker has, do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.look(State::in_line)
    }

    /// Whether a worker would have to wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: keys that are added are ignored from now on, keys that are not due yet are let go. What is ready
    /// can still be got. A [`drain`](Self::drain) that goes on is cut short.
    pub fn shut_down(&self) {
        self.shared.close(false);
    }

    /// Ends the queue, and waits until all that is ready was got by workers, and all items are dropped. A key that was added
    /// while a worker has it runs once more before that.
    ///
    /// Returns whether that came about: it is `false` if [`shut_down`](Self::shut_down) was called meanwhile. If workers are
    /// stuck it waits for ever; dropped, it waits no more, and the queue stays closed.
    pub async fn drain(&self) -> bool {
        wait::drain(&self.shared).await
    }

    /// Whether it was ended.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shared.lock().state.is_closed()
    }
}

impl<K: Key> At<'_, K> {
    /// As [`WorkQueue::add`].
    pub fn add(&self, key: K) {
        self.shared.add(key, self.priority);
    }

    /// As [`WorkQueue::add_after`].
    pub fn add_after(&self, key: K, delay: Duration) {
        self.shared.add_after(key, self.priority, delay);
    }

    /// As [`WorkQueue::add_rate_limited`].
    pub fn add_rate_limited(&self, key: K) -> Duration {
        self.shared.add_rate_limited(key, self.priority)
    }
}

impl<K> Settings<K> {
    /// How long retries wait. [`rate_limit::standard`] unless told otherwise.
    pub fn limiter(mut self, limiter: impl RateLimiter<K> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// How often in a row a priority that has keys is passed over for higher ones: nine times unless told otherwise, at
    /// least once.
    pub fn patience(mut self, times: u32) -> Self {
        self.patience = times;
        self
    }

    /// Where it is counted and measured, under that name. Queues of the same name are counted together. Without this,
    /// nothing is measured.
    pub fn metrics(mut self, metrics: &Metrics, name: impl Into<String>) -> Self {
        self.metrics = Some((metrics.clone(), name.into()));
        self
    }
}

impl<K: Key> Default for Settings<K> {
    fn default() -> Self {
        Self { limiter: Box::new(rate_limit::standard()), patience: 9, metrics: None }
    }
}

impl<K: Key> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Key> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("len", &self.len())
            .field("shut_down", &self.is_shut_down())
            .finish_non_exhaustive()
    }
}

impl<K: Key> fmt::Debug for At<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("At").field("priority", &self.priority).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Settings<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.metrics.as_ref().map(|(_, name)| name);
        f.debug_struct("Settings")
            .field("patience", &self.patience)
            .field("metrics", &name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
