//! `cargo xtask bench sync`: the informer beside client-go and kube-runtime, on the real server.
//!
//! Each contestant is a process by itself, which syncs, follows a stream of updates, and is read while updates go on; it
//! measures itself, see `bench/sync/src/protocol.rs`. Never do two of them work at once. They take turns, beginning with
//! another one in every round, each when the machine has nothing to do any more, and the medians of the rounds count. Reads
//! of everything have turns of their own at the end, a second each, with all who are compared still there.

use anyhow::{Result, ensure};
use clap::Args;

use super::contestant::Contestant;
use super::ground::{self, Ground};
use super::instructions;
use super::report::{Failed, Output, Report};
use super::rest::rest;
use super::results::Section;

mod measured;
mod table;
mod turn;

use measured::{Measured, What};
use turn::{Load, Turn};

/// How much of what, and how often.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) ground: ground::Where,
    /// How often each contestant has its turn
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    /// How many updates a handler sees in each of its tasks
    #[arg(long, default_value_t = 2_000)]
    pub(super) updates: u64,
    /// Updates per second
    #[arg(long, default_value_t = 170.0)]
    pub(super) rate: f64,
    #[command(flatten)]
    pub(super) output: Output,
}

pub(super) const SECTION: Section = Section {
    name: "sync",
    heading: "Beside its peers",
    about: "\
The informer, client-go and kube-runtime on one kube-apiserver, each as a process by itself, never two at work at once, with as
many threads as there are processors. A turn begins when the machine has nothing to do any more. Each has one handler, and the
managed fields are dropped. Handlers of ours are asynchronous, as theirs are, unless it is said otherwise; reads of ours lend
what they find. *Sync* is from the start of the process until the handler has seen every object. *Update* is what the processor
does for one update of a pod, after some hundred others. *Kept* is the memory after the sync, which Go's runtime and glibc were
told to give back where they could, less that of the same program without an informer. *Reads* take place while updates go on;
those *by turns* when nothing is written, in nine turns of one process of each, all of which are there. Ratios are ours to
theirs: less is better.",
};

/// Those that sync.
pub(super) const WARM: [Contestant; 6] = [
    Contestant::ClientGo,
    Contestant::KubeRuntime,
    Contestant::Ours,
    Contestant::ClientGoDynamic,
    Contestant::KubeRuntimeDynamic,
    Contestant::OursDynamic,
];

/// Those whose reads of everything are compared. More at once would only make the caches smaller.
const READ_BY_TURNS: [Contestant; 3] =
    [Contestant::ClientGo, Contestant::KubeRuntime, Contestant::OursAllViews];

/// Has all of them take their turns.
pub(super) async fn measure(ground: &Ground, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && options.updates > 0, "nothing to measure");
    ensure!(options.rate > 0.0, "without a rate there are no updates");
    let load = Load {
        endpoint: ground.endpoint().clone(),
        namespace: ground::NAMESPACE.to_owned(),
        seed: ground::SEED,
        objects: ground.objects,
        updates: options.updates,
        rate: options.rate,
    };
    let turn = Turn { ground, load: &load };
    let (mut measured, mut failed) = (Measured::default(), Failed::default());
    for round in 0..options.rounds {
        for at in 0..Contestant::ALL.len() {
            let contestant = Contestant::ALL[(at + round as usize) % Contestant::ALL.len()];
            let name = contestant.name();
            eprintln!("==> sync, round {} of {}: {name}", round + 1, options.rounds);
            rest().await;
            let values = turn.take(contestant).await;
            let values = failed.caught(&format!("{name}, round {}", round + 1), values);
            for (what, value) in values.unwrap_or_default() {
                eprintln!("    {}", table::value(what, value, ground.objects));
                measured.add(contestant, what, value);
            }
        }
    }
    eprintln!("==> sync: everything is read by turns");
    let by_turns = turn.list_by_turns(&READ_BY_TURNS).await;
    for (contestant, what, value) in failed.caught("reads by turns", by_turns).unwrap_or_default() {
        eprintln!("    {}, {}", contestant.name(), table::value(what, value, ground.objects));
        measured.add(contestant, what, value);
    }
    if failed.caught("reads", measured.agree_on_what_was_read()).is_none() {
        measured.forget_reads();
    }
    if instructions::can_be_counted() {
        for contestant in WARM {
            eprintln!("==> sync, instructions: {}", contestant.name());
            let count = instructions::of_sync(ground, contestant).await;
            let count = failed.caught(&format!("{}, instructions", contestant.name()), count);
            if let Some(count) = count {
                measured.add(contestant, What::SyncInstructions, count);
            }
        }
    } else {
        eprintln!("left out: perf has no counter for instructions here");
    }
    let tables = table::section(&measured, options, ground.objects);
    let medians = table::medians(&measured, ground.objects);
    let figures = table::figures(&measured);
    Ok(Report { section: Some(&SECTION), tables, medians, plots: Vec::new(), figures, failed })
}
