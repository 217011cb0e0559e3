//! How long changes may wait on the connection for others, to be read together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// As long as all agree who are told of the changes: the least that one of them has asked for. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Gather(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// In microseconds.
    longest: AtomicU64,
    /// How often something that had waited was read.
    reads: AtomicU64,
}

/// The longest that changes wait for others, whatever was asked for.
///
/// kube-apiserver ends watches that it cannot send to, after what buffers hold and as many milliseconds of each second.
pub const LONGEST: Duration = Duration::from_millis(50);

/// The runtime's clock has nothing shorter.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

impl Gather {
    /// At most so long: not longer than [`LONGEST`], and not at all where it is less than [`SHORTEST`].
    pub(crate) fn new(longest: Duration) -> Self {
        Self(Arc::new(Shared { longest: AtomicU64::new(micros(longest)), reads: AtomicU64::new(0) }))
    }

    /// Somebody else is told of the same, and does not want to wait longer than this.
    pub(crate) fn at_most(&self, longest: Duration) {
        self.0.longest.fetch_min(micros(longest), Ordering::Relaxed);
    }

    /// How many know of it.
    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// How long; zero if nothing is to wait.
    pub(crate) fn get(&self) -> Duration {
        Duration::from_micros(self.0.longest.load(Ordering::Relaxed))
    }

    /// Something has waited, and was read.
    pub(super) fn note_read(&self) {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// How often something that had waited was read: zero where nothing ever waits, whatever was asked for.
    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }
}

fn micros(longest: Duration) -> u64 {
    if longest < SHORTEST {
        return 0;
    }
    // It is some milliseconds.
    longest.min(LONGEST).as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn who_wants_to_wait_least_decides() {
        let gather = Gather::new(ms(20));
        let same = gather.clone();
        same.at_most(ms(50));
        assert_eq!(gather.get(), ms(20));
        same.at_most(ms(5));
        assert_eq!(gather.get(), ms(5));
        same.at_most(Duration::ZERO);
        assert_eq!(gather.get(), Duration::ZERO);
    }

    #[test]
    fn nothing_waits_longer_than_a_server_does_and_nothing_for_less_than_the_clock_knows() {
        assert_eq!(Gather::new(Duration::MAX).get(), LONGEST);
        assert_eq!(Gather::new(Duration::from_micros(999)).get(), Duration::ZERO);
        assert_eq!(Gather::new(SHORTEST).get(), SHORTEST);
    }
}
