//! One turn of one contestant: its process from the start to the end.

use anyhow::{Context, Result, ensure};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load::{self, Pace, Steady};
use serde_json::Value;

use super::measured::What;
use crate::bench::contestant::{Contestant, Task};
use crate::bench::ground::Ground;
use crate::bench::running::{PATIENCE, Running};

/// What goes on at the server meanwhile.
pub(super) struct Load {
    pub(super) endpoint: Endpoint,
    pub(super) namespace: String,
    pub(super) seed: u64,
    pub(super) objects: usize,
    pub(super) updates: u64,
    pub(super) rate: f64,
}

/// What a turn needs.
pub(super) struct Turn<'a> {
    pub(super) ground: &'a Ground,
    pub(super) load: &'a Load,
}

/// So many of the pods are updated, in no order.
const MOVING: usize = 4_000;

/// One handler and ten have so many turns each in one process: what differs from process to process, and from minute to
/// minute, is more than what they differ by.
const SLICES: u64 = 4;

/// How often it is read in a turn: what differs from second to second is much of what reads differ by.
const READS: usize = 3;

/// How often each is read where they are read by turns.
const TURNS: usize = 9;

/// Updates that may be on their way at a time.
const IN_FLIGHT: usize = 16;

impl Turn<'_> {
    /// Does all that is asked of the contestant.
    pub(super) async fn take(&self, contestant: Contestant) -> Result<Vec<(What, f64)>> {
        let task = contestant.task();
        let mut running = self.ground.start(contestant)?;
        let synced = running.synced().await?;
        if task != Task::Idle {
            let expected = self.load.objects;
            ensure!(synced.objects == expected as u64, "it has {} of {expected} objects", synced.objects);
        }
        let freed = running.after("free").await?;
        let mut values = Vec::new();
        if matches!(task, Task::Idle | Task::SyncCustomResources | Task::Everything) {
            values.push((What::Rss, freed.rss));
        }
        if matches!(task, Task::SyncCustomResources | Task::Read | Task::Everything) {
            values.push((What::SyncCpu, synced.cpu));
            values.push((What::SyncWall, synced.wall));
            values.push((What::SyncPeak, synced.peak));
        }
        let updates = self.load.updates;
        if matches!(task, Task::Read | Task::Follow | Task::Everything) {
            // Memory that was given back is asked for again, and what is done after a list is over then.
            self.follow(&mut running, (updates / SLICES).max(1)).await?;
            values.push((What::UpdateMetadata, self.follow(&mut running, updates).await?));
        }
        if task == Task::FollowByHandlers {
            let updates = (updates / SLICES).max(1);
            // What is done after a list is over then.
            self.follow(&mut running, updates).await?;
            let (one, ten) = ((1, What::UpdateOneHandler), (10, What::UpdateMetadata));
            for slice in 0..SLICES {
                for (handlers, what) in if slice % 2 == 0 { [one, ten] } else { [ten, one] } {
                    running.told(&format!("handlers {handlers}")).await?;
                    values.push((what, self.follow(&mut running, updates).await?));
                }
            }
        }
        if matches!(task, Task::Follow | Task::Everything) {
            running.told("whole").await?;
            values.push((What::UpdateWhole, self.follow(&mut running, updates).await?));
        }
        if matches!(task, Task::BeRead | Task::Everything) {
            values.extend(self.read(&mut running).await?);
        }
        if task == Task::BeRead {
            values.push((What::RssRead, running.after("free").await?.rss));
        }
        running.end().await?;
        Ok(values)
    }

    /// Seconds of the processor per update.
    async fn follow(&self, running: &mut Running, updates: u64) -> Result<f64> {
        let before = running.after("usage").await?;
        let steady = self.updates();
        tokio::time::timeout(PATIENCE, steady.wait(updates)).await.context("the updates do not end")?;
        let updated = steady.stop().await;
        if let Some(failure) = updated.failures.first() {
            anyhow::bail!("an update failed: {failure}");
        }
        let after = running.after(&format!("await {}", before.updates + updated.written)).await?;
        let seen = after.updates - before.updates;
        // An informer may join two updates of one object that follow each other at once.
        ensure!(seen * 100 >= updated.written * 95, "it saw {seen} of {} updates", updated.written);
        Ok((after.cpu - before.cpu) / updated.written as f64)
    }

    /// Seconds per read of each kind, under writes.
    async fn read(&self, running: &mut Running) -> Result<Vec<(What, f64)>> {
        let steady = self.updates();
        let mut values = Vec::new();
        for _ in 0..READS {
            values.extend(times(&running.told("reads").await?)?);
        }
        let updated = steady.stop().await;
        ensure!(updated.failed == 0, "updates failed: {:?}", updated.failures.first());
        Ok(values)
    }

    /// Has contestants that are all there at once read everything, one after the other, again and again. What is looked at
    /// is more than the processor's own caches hold, so that it matters what else the machine does in that second: turns that
    /// lie minutes apart cannot be compared. Nothing is written meanwhile: all of them would work for that.
    pub(super) async fn list_by_turns(
        &self,
        contestants: &[Contestant],
    ) -> Result<Vec<(Contestant, What, f64)>> {
        let mut all = Vec::new();
        for contestant in contestants {
            let mut running = self.ground.start(*contestant)?;
            running.synced().await?;
            running.rested().await?;
            all.push((*contestant, running));
        }
        let mut values = Vec::new();
        for turn in 0..TURNS {
            let first = turn % all.len();
            for at in 0..all.len() {
                let (contestant, running) = &mut all[(first + at) % contestants.len()];
                for (what, value) in times(&running.told("reads").await?)? {
                    match what {
                        What::List => values.push((*contestant, What::ListByTurns, value)),
                        What::Found => values.push((*contestant, What::Found, value)),
                        _ => {}
                    }
                }
            }
        }
        for (_, running) in all {
            running.end().await?;
        }
        Ok(values)
    }

    fn updates(&self) -> Steady {
        let Load { endpoint, namespace, seed, objects, rate, .. } = self.load;
        let pods = load::pods(*seed, (*objects).min(MOVING));
        let pace = Pace { seed: *seed, per_second: *rate, parallelism: IN_FLIGHT };
        Steady::start(endpoint, namespace, pods, pace)
    }
}

/// What a contestant has measured while it was read.
fn times(answer: &Value) -> Result<Vec<(What, f64)>> {
    let seconds = |name: &str| -> Result<f64> {
        Ok(answer[name].as_f64().with_context(|| format!("no {name} in {answer}"))? / 1e9)
    };
    Ok(vec![
        (What::Get, seconds("get_ns")?),
        (What::Indexed, seconds("indexed_ns")?),
        (What::List, seconds("list_ns")?),
        (What::Found, found(&answer["found"]).with_context(|| format!("nothing found in {answer}"))?),
    ])
}

/// The numbers of the three reads, as one number.
fn found(counts: &Value) -> Option<f64> {
    let counts: Vec<f64> = counts.as_array()?.iter().filter_map(Value::as_f64).collect();
    let [get, indexed, list] = counts[..] else { return None };
    (get > 0.0 && indexed > 0.0 && list > 0.0).then_some(get + indexed * 1e4 + list * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_read_that_finds_nothing_is_a_failure() {
        assert!(found(&json!([128, 300, 4000])).is_some());
        assert_ne!(found(&json!([128, 300, 4000])), found(&json!([128, 301, 4000])));
        assert_eq!(found(&json!([128, 0, 4000])), None);
        assert_eq!(found(&json!([128])), None);
    }
}
