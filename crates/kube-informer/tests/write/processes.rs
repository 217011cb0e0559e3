//! Candidates that are processes: of one that is stopped, and goes on, no work is seen while another one works.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::{Launch, Process};
use serde_json::json;

use crate::harness::{Place, SOON, on_both, soon};

on_both! {
    promise_19_a_process_that_is_stopped_and_goes_on_does_no_work_of_a_leader,
    promise_19_reconciles_of_a_process_that_is_stopped_never_overlap_with_those_of_another_one,
}

/// An example that stands for election, as a process that dies with this one.
struct Member {
    process: Process,
}

/// A piece of work: in which term, and when.
type Work = (u64, u64);

impl Member {
    fn start(example: &str, name: &str, folder: &Path, place: &Place) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, place.kubeconfig())?;
        let program = kube_informer_testbed::examples::example("kube-informer", example)?;
        let process = Launch::new(name, program, folder.join(name))
            .args([&place.namespace, "the-lease", "4", "3", "0.4"])
            .env("KUBECONFIG", kubeconfig.display().to_string())
            .spawn()?;
        Ok(Self { process })
    }

    fn work(&self) -> Vec<Work> {
        self.lines("work ", |words| Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
    }

    /// What is said in the lines that begin so.
    fn lines<T>(&self, begin: &str, read: impl Fn(&mut std::str::Split<'_, char>) -> Option<T>) -> Vec<T> {
        // The last line may be half written.
        let logged = self.process.logged();
        let whole = logged.rfind('\n').map_or("", |end| &logged[..end]);
        whole.lines().filter_map(|line| read(&mut line.strip_prefix(begin)?.split(' '))).collect()
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

async fn promise_19_a_process_that_is_stopped_and_goes_on_does_no_work_of_a_leader(
    place: Place,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut first = Member::start("leader_election", "first", folder.path(), &place)?;
    first.works().await;
    let mut second = Member::start("leader_election", "second", folder.path(), &place)?;
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

/// A reconcile: when its first and its last step were made, and whether it came to its end.
#[derive(Debug, Clone, Copy)]
struct Reconcile {
    first: u64,
    last: u64,
    is_done: bool,
}

impl Member {
    fn reconciles(&self) -> Vec<Reconcile> {
        let number = |text: Option<&str>| text?.parse::<u64>().ok();
        let done: BTreeSet<u64> = self.lines("done ", |words| number(words.next())).into_iter().collect();
        let mut all = BTreeMap::new();
        for (at, time) in self.lines("step ", |words| Some((number(words.next())?, number(words.next())?))) {
            let new = Reconcile { first: time, last: time, is_done: done.contains(&at) };
            all.entry(at).or_insert(new).last = time;
        }
        all.into_values().collect()
    }

    /// Waits until it has made some more steps.
    async fn reconciles_on(&self) {
        let steps = || self.says("step ");
        let before = steps();
        let more = async || (steps() >= before + 8).then_some(());
        eventually(&format!("{} reconciles", self.process.name()), SOON, more).await;
    }
}

async fn promise_19_reconciles_of_a_process_that_is_stopped_never_overlap_with_those_of_another_one(
    place: Place,
) -> Result<()> {
    for name in ["one", "two", "three"] {
        place.post(&place.path("configmaps"), &json!({ "metadata": { "name": name } })).await?;
    }
    let folder = tempfile::tempdir()?;
    let member = |name: &str| Member::start("standby", name, folder.path(), &place);
    let stands = async |member: &Member| {
        eventually("it stands, too", SOON, async || (member.says("stands") > 0).then_some(())).await;
    };
    let mut first = member("first")?;
    first.reconciles_on().await;
    let mut second = member("second")?;
    stands(&second).await;

    first.process.pause().await?;
    second.reconciles_on().await;
    let began = second.reconciles()[0].first;
    first.process.resume()?;
    // It notices, gives up what it was at, and ends: it must not go on with what it knew.
    let ended = soon("the first one ends", first.process.ended()).await?;
    assert!(!ended.success() && first.says("LeadershipLost") > 0, "{}", first.process.logged());
    let last = first.reconciles().into_iter().map(|reconcile| reconcile.last).max();
    assert!(last < Some(began), "{last:?} {began}");
    let given_up = first.reconciles().iter().filter(|reconcile| !reconcile.is_done).count();
    assert!((1..=2).contains(&given_up), "two workers were busy: {given_up}");

    // Ended cleanly, a leader finishes what it is at, and hands over.
    let third = member("third")?;
    stands(&third).await;
    second.reconciles_on().await;
    assert!(second.process.stop(SOON).await?.success(), "{}", second.process.logged());
    assert_eq!(second.says("ends: Released"), 1, "{}", second.process.logged());
    assert!(second.reconciles().iter().all(|reconcile| reconcile.is_done), "{}", second.process.logged());
    third.reconciles_on().await;

    let members = [first.reconciles(), second.reconciles(), third.reconciles()];
    for (at, one) in members.iter().enumerate() {
        for (one, other) in
            one.iter().flat_map(|one| members[at + 1..].iter().flatten().map(move |other| (one, other)))
        {
            let apart = one.last < other.first || other.last < one.first;
            assert!(apart, "they overlap: {one:?} {other:?}");
        }
    }
    Ok(())
}
