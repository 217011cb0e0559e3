//! Candidates that are processes: of one that is stopped, and goes on, no work is seen while another one works.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::{Launch, Process};

use crate::harness::{Place, SOON, on_both};

on_both! {
    promise_19_a_process_that_is_stopped_and_goes_on_does_no_work_of_a_leader,
}

/// The example `leader_election`, as a process that dies with this one.
struct Member {
    process: Process,
}

/// A piece of work: in which term, and when.
type Work = (u64, u64);

impl Member {
    fn start(name: &str, folder: &Path, place: &Place) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, place.kubeconfig())?;
        let process = Launch::new(name, program(), folder.join(name))
            .args([&place.namespace, "the-lease", "4", "3", "0.4"])
            .env("KUBECONFIG", kubeconfig.display().to_string())
            .spawn()?;
        Ok(Self { process })
    }

    fn work(&self) -> Vec<Work> {
        let line = |line: &str| {
            let mut words = line.strip_prefix("work ")?.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        // The last line may be half written.
        let logged = self.process.logged();
        let whole = logged.rfind('\n').map_or("", |end| &logged[..end]);
        whole.lines().filter_map(line).collect()
    }

    fn says(&self, what: &str) -> usize {
        self.process.logged().matches(what).count()
    }

    /// Waits until it has done some more work.
    async fn works(&self) {
        let before = self.work().len();
        let more = async || (self.work().len() >= before + 5).then_some(());
        eventually(&format!("{} works", self.process.name()), SOON, more).await;
    }

    /// From the first to the last work of each term.
    fn terms(&self) -> Vec<(u64, u64)> {
        let work = self.work();
        work.chunk_by(|one, two| one.0 == two.0)
            .filter_map(|term| Some((term.first()?.1, term.last()?.1)))
            .collect()
    }
}

fn program() -> PathBuf {
    kube_informer_testbed::examples::example("kube-informer", "leader_election").unwrap()
}

async fn promise_19_a_process_that_is_stopped_and_goes_on_does_no_work_of_a_leader(
    place: Place,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut first = Member::start("first", folder.path(), &place)?;
    first.works().await;
    let mut second = Member::start("second", folder.path(), &place)?;
    eventually("the second one stands, too", SOON, async || (second.says("stands") > 0).then_some(())).await;

    first.process.pause().await?;
    let before = first.work().len();
    second.works().await;
    assert_eq!(first.work().len(), before, "it is stopped");
    first.process.resume()?;
    eventually("it notices", SOON, async || (first.says("leads no more") > 0).then_some(())).await;
    second.works().await;
    // Each piece was allowed, by the clock, at the time that stands there. The last one may be printed only now.
    let (last, begin) = (first.work().last().copied(), second.work().first().copied());
    assert!(last.map(|work| work.1) < begin.map(|work| work.1), "{last:?} {begin:?}");

    // Ended cleanly, it hands over.
    assert!(second.process.stop(SOON).await?.success(), "{}", second.process.logged());
    assert_eq!(second.says("ends: Released"), 1, "{}", second.process.logged());
    first.works().await;
    first.process.stop(SOON).await?;

    let mut terms: Vec<_> = first.terms().into_iter().chain(second.terms()).collect();
    terms.sort_unstable();
    assert!(terms.len() >= 3, "{terms:?}");
    for pair in terms.windows(2) {
        assert!(pair[0].1 < pair[1].0, "they overlap: {terms:?}");
    }
    Ok(())
}
