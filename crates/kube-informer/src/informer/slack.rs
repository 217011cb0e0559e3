//! Memory that many objects took is given back when they are gone.
//!
//! Allocators keep what is freed for later: what came and went with a burst would stay the process's, however small the cache
//! is afterwards. glibc's gives it back when it is asked. It is asked a moment after a cache has become much smaller, or a long
//! list was read, which takes more on the way than in the end; never more often than that, and by a thread that may take its
//! time. Other allocators see to it by themselves, and are not asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::cache::Cache;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Slack {
    /// The most that the cache held since memory was last given back, about.
    most: AtomicUsize,
    due: Notify,
}

/// What goes in a row is given back together.
const MOMENT: Duration = Duration::from_secs(1);

/// Less than this is not worth to ask for, or less than such a part of what there was.
const LEAST: usize = 4 << 20;
const PART: usize = 8;

/// What an object takes beside its bytes.
const BESIDE: usize = 512;

impl Slack {
    /// Objects are gone.
    pub(super) fn look(&self, cache: &Cache) {
        let stats = cache.stats();
        let held = usize::try_from(stats.kept_bytes).unwrap_or(usize::MAX);
        if self.is_less(held.saturating_add(stats.objects * BESIDE)) {
            self.due.notify_one();
        }
    }

    /// A list of so many objects was read.
    pub(super) fn listed(&self, objects: usize) {
        if objects.saturating_mul(BESIDE) >= LEAST {
            self.due.notify_one();
        }
    }

    /// Whether what is held is so much less than it was that it is worth to do something. One calls at a time.
    fn is_less(&self, held: usize) -> bool {
        let most = self.most.load(Ordering::Relaxed).max(held);
        let is_less = most - held >= LEAST.max(most / PART);
        self.most.store(if is_less { held } else { most }, Ordering::Relaxed);
        is_less
    }

    /// Gives back what there is to give back, for ever.
    pub(super) async fn run(&self) {
        loop {
            self.due.notified().await;
            tokio::time::sleep(MOMENT).await;
            // It cannot fail but by a panic, which it does not have.
            let _ = tokio::task::spawn_blocking(give_back).await;
        }
    }
}

/// Asks the allocator to give back what is free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    use std::sync::{Mutex, PoisonError};
    /// One at a time is enough.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    #[expect(unsafe_code, reason = "there is no other way to ask; `bench burst` shows what it is worth")]
    // SAFETY: it has no precondition, and may be called from any thread. Where another allocator is in use, it finds nothing.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_much_is_asked_back_and_only_once() {
        let (slack, mega) = (Slack::default(), 1 << 20);
        assert!(!slack.is_less(100 * mega), "it grew");
        assert!(!slack.is_less(97 * mega), "little");
        assert!(!slack.is_less(90 * mega), "a small part");
        assert!(slack.is_less(80 * mega));
        assert!(!slack.is_less(79 * mega), "that was given back");
        assert!(!slack.is_less(200 * mega));
        assert!(slack.is_less(0));
        assert!(!slack.is_less(3 * mega));
        assert!(!slack.is_less(0), "not worth it");
    }
}
