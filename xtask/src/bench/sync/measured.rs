//! What was measured of whom, and what it comes to.

use anyhow::{Result, ensure};

use crate::bench::contestant::Contestant;
use crate::bench::rounds::Rounds;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// Seconds of the processor until everything is in the cache, and the handler has seen it.
    SyncCpu,
    /// Seconds until then.
    SyncWall,
    /// The most memory until then, in bytes.
    SyncPeak,
    /// Instructions of a process that syncs and ends.
    SyncInstructions,
    /// Memory after that, in bytes.
    Rss,
    /// Memory after everything was read, in bytes.
    RssRead,
    /// Seconds of the processor per update, the handler reading metadata.
    UpdateMetadata,
    /// The same with one handler, of a process that has ten at other times.
    UpdateOneHandler,
    /// The same, the handler reading the whole object.
    UpdateWhole,
    /// Seconds to read one object.
    Get,
    /// Seconds to read the objects of one node.
    Indexed,
    /// Seconds to read all objects.
    List,
    /// The same by turns with the others, all of them there, and nothing written.
    ListByTurns,
    /// What reads have found: a checksum of the three.
    Found,
}

/// All values of all rounds.
#[derive(Debug, Default)]
pub(super) struct Measured {
    rounds: Rounds<(Contestant, What)>,
}

impl Measured {
    pub(super) fn add(&mut self, contestant: Contestant, what: What, value: f64) {
        self.rounds.add((contestant, what), value);
    }

    /// All values of the rounds.
    pub(super) fn values(&self, contestant: Contestant, what: What) -> &[f64] {
        self.rounds.values(&(contestant, what))
    }

    /// The median of the rounds.
    pub(super) fn median(&self, contestant: Contestant, what: What) -> Option<f64> {
        self.rounds.median(&(contestant, what))
    }

    /// What one takes in relation to another.
    pub(super) fn ratio(&self, one: Contestant, other: Contestant, what: What) -> Option<f64> {
        self.rounds.ratio(&(one, what), &(other, what))
    }

    /// What an update takes with ten handlers in relation to one, in the same process.
    pub(super) fn ten_handlers(&self, one: Contestant) -> Option<f64> {
        let of = |what| (one, what);
        self.rounds.ratio(&of(What::UpdateMetadata), &of(What::UpdateOneHandler))
    }

    /// The bytes that are kept per object, in a state: what the process has more than an idle one.
    pub(super) fn kept(&self, one: Contestant, what: What, idle: Contestant, objects: usize) -> Option<f64> {
        Some((self.median(one, what)? - self.median(idle, What::Rss)?) / objects as f64)
    }

    /// A contestant that finds other objects than the others is not read as they are.
    pub(super) fn agree_on_what_was_read(&self) -> Result<()> {
        let found: Vec<_> = self.rounds.all().filter(|((_, what), _)| *what == What::Found).collect();
        let mut all = found.iter().flat_map(|(_, values)| values.iter());
        let first = all.next();
        ensure!(all.all(|value| Some(value) == first), "contestants read different things: {found:?}");
        Ok(())
    }

    /// Where they do not agree, nothing is compared.
    pub(super) fn forget_reads(&mut self) {
        let reads = [What::Get, What::Indexed, What::List, What::ListByTurns, What::Found];
        self.rounds.forget(|(_, what)| reads.contains(what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_is_what_an_idle_process_does_not_have() {
        let mut measured = Measured::default();
        measured.add(Contestant::Ours, What::Rss, 5_000.0);
        measured.add(Contestant::OursIdle, What::Rss, 1_000.0);
        assert_eq!(measured.kept(Contestant::Ours, What::Rss, Contestant::OursIdle, 10), Some(400.0));
    }

    #[test]
    fn contestants_that_read_different_things_are_found_out() {
        let mut measured = Measured::default();
        measured.add(Contestant::Ours, What::Found, 7.0);
        measured.add(Contestant::ClientGo, What::Found, 7.0);
        measured.agree_on_what_was_read().unwrap();
        measured.add(Contestant::KubeRuntime, What::Found, 8.0);
        assert!(measured.agree_on_what_was_read().is_err());
        measured.add(Contestant::Ours, What::Get, 1.0);
        measured.add(Contestant::Ours, What::SyncCpu, 1.0);
        measured.forget_reads();
        measured.agree_on_what_was_read().unwrap();
        assert_eq!(measured.median(Contestant::Ours, What::Get), None);
        assert_eq!(measured.median(Contestant::Ours, What::SyncCpu), Some(1.0));
    }
}
