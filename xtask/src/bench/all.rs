//! `cargo xtask bench`: everything that is compared, in one run on one control plane.
//!
//! What one benchmark has found is written before the next begins. One that fails does not keep the others from running,
//! and a contestant that fails does not keep the others of its benchmark; the run fails at its end, and says which did.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::contestant::DIST;
use super::ground::{self, Ground};
use super::report::{Output, Report, Reports};
use super::results::Section;
use super::{burst, fan_out, growth, latency, micro, queue, readers, relist, sync};

/// How much of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Fewer objects and one round: ten minutes on two quiet processors, once everything is compiled; bench/RESULTS.md and
    /// its plots stay as they are
    #[arg(long)]
    quick: bool,
    /// Write bench/RESULTS.md and its plots although it is quick
    #[arg(long, conflicts_with = "no_results")]
    results: bool,
    /// How many pods, and how many custom resources; with fewer than 2000, a quick run has less of everything else, too
    /// [default: 20000, or 2000 where it is to be quick]
    #[arg(long)]
    pods: Option<usize>,
    /// How often each contestant has its turn [default: 3, or 1 where it is to be quick]
    #[arg(long)]
    rounds: Option<u32>,
    /// Measure what one object costs, too
    #[arg(long)]
    micro: bool,
    /// Measure on a control plane that is up, by its folder; it is filled if it is empty, and stays filled
    #[arg(long, value_name = "DIR")]
    on: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// In the order of the document.
pub(super) const SECTIONS: [&Section; 8] = [
    &sync::SECTION,
    &latency::SECTION,
    &relist::SECTION,
    &readers::SECTION,
    &burst::SECTION,
    &growth::SECTION,
    &queue::SECTION,
    &fan_out::SECTION,
];

/// How many pods a quick run has, unless it is told otherwise.
const FEW: usize = 2_000;

/// What of each, for a run of this size.
struct Plan {
    sync: sync::Options,
    latency: latency::Options,
    relist: ground::Turns,
    readers: ground::Turns,
    burst: burst::Options,
    growth: growth::Options,
    queue: queue::Options,
    fan_out: fan_out::Options,
    micro: Option<micro::Options>,
}

/// Runs all of it.
pub(super) async fn run(options: &Options) -> Result<()> {
    let plan = Plan::of(options);
    let mut run = Run { reports: Reports::begin(&options.output()), failed: Vec::new() };
    let root = run.reports.root().to_owned();
    let ground = Ground::prepare(&root, &plan.sync.ground, &sync::WARM).await?;
    run.add("sync", sync::measure(&ground, &plan.sync).await);
    run.add("latency", latency::measure(&ground, &plan.latency).await);
    run.add("relist", relist::measure(&ground, &plan.relist).await);
    run.add("readers", readers::measure(&ground, &plan.readers).await);
    // The rest needs no control plane: one that is idle does something all the same.
    let programs = ground.into_programs();
    run.add("burst", burst::measure(&programs, &plan.burst).await);
    run.add("growth", growth::measure(&programs, &plan.growth).await);
    run.add("queue", queue::measure(&root, &plan.queue).await);
    run.add("fan-out", fan_out::measure(&root, &programs, &plan.fan_out).await);
    if let Some(options) = &plan.micro {
        run.add("micro", micro::measure(&root, options));
    }
    run.end()
}

/// What was found, and what was not.
struct Run {
    reports: Reports,
    failed: Vec<&'static str>,
}

impl Run {
    fn add(&mut self, name: &'static str, measured: Result<Report>) {
        let added = measured.and_then(|report| self.reports.add(report)).with_context(|| name.to_owned());
        if let Err(error) = added {
            eprintln!("FAILED: {error:#}");
            self.failed.push(name);
        }
    }

    fn end(self) -> Result<()> {
        self.reports.end()?;
        if self.failed.is_empty() {
            return Ok(());
        }
        bail!("failed, as said above: {}", self.failed.join(", "))
    }
}

impl Options {
    /// Small figures do not stand where people look for large ones, unless that is asked for.
    fn output(&self) -> Output {
        let output = self.output.clone();
        if self.quick && !self.results { output.without_results() } else { output }
    }
}

impl Plan {
    fn of(options: &Options) -> Self {
        let Options { quick, pods, rounds, micro, on, .. } = options;
        let rounds = rounds.unwrap_or(if *quick { 1 } else { 3 });
        let pods = pods.unwrap_or(if *quick { FEW } else { 20_000 });
        let part = |of: usize| (of * pods.min(FEW) / FEW).max(1);
        let ground = ground::Where {
            pods,
            on: on.clone(),
            // To compile them as what is shipped takes longer than a quick run does.
            profile: (if *quick { "release" } else { DIST }).to_owned(),
        };
        let output = Output::default;
        Self {
            sync: sync::Options {
                ground: ground.clone(),
                rounds,
                updates: if *quick { 500 } else { 2_000 },
                rate: 170.0,
                output: output(),
            },
            latency: latency::Options {
                ground: ground.clone(),
                rounds,
                rates: vec![100, 1_000],
                seconds: if *quick { 3 } else { 10 },
                output: output(),
            },
            relist: ground::Turns { ground: ground.clone(), rounds, output: output() },
            readers: ground::Turns { ground, rounds, output: output() },
            burst: burst::Options {
                kept: if *quick { part(2_000) } else { 2_000 },
                burst: if *quick { part(5_000) } else { 20_000 },
                rounds,
                output: output(),
            },
            growth: growth::Options {
                sizes: if *quick { vec![part(2_000), part(20_000)] } else { vec![2_000, 20_000, 200_000] },
                rounds,
                output: output(),
            },
            queue: queue::Options {
                keys: if *quick { vec![part(1_000_000)] } else { vec![1_000, 100_000, 1_000_000] },
                rounds,
                output: output(),
            },
            fan_out: fan_out::Options {
                clients: if *quick { vec![1, part(1_000)] } else { vec![1, 1_000] },
                changes: if *quick { 50 } else { 200 },
                rounds,
                output: output(),
            },
            micro: micro.then_some(micro::Options { rounds: 60, no_counts: *quick, no_compile: true }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{Failed, Figures};
    use super::*;
    use clap::Parser;

    /// As they are typed.
    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    fn typed(arguments: &[&str]) -> Result<Options, clap::Error> {
        Ok(Typed::try_parse_from([&["bench"], arguments].concat())?.options)
    }

    #[test]
    fn a_quick_run_leaves_the_document_as_it_is_unless_it_is_told_otherwise() {
        let has_results = |arguments: &[&str]| typed(arguments).unwrap().output().has_results();
        assert!(has_results(&[]) && has_results(&["--pods", "50"]));
        assert!(!has_results(&["--quick"]) && !has_results(&["--no-results"]));
        assert!(has_results(&["--quick", "--results"]));
        assert!(typed(&["--quick", "--results", "--no-results"]).is_err());
    }

    #[test]
    fn a_quick_run_is_smaller_unless_it_is_told_otherwise() {
        let mut options = typed(&["--quick"]).unwrap();
        let plan = Plan::of(&options);
        assert_eq!((plan.sync.ground.pods, plan.relist.rounds, plan.queue.keys.len()), (2_000, 1, 1));
        assert_eq!((plan.burst.kept, plan.burst.burst, plan.queue.keys), (2_000, 5_000, vec![1_000_000]));
        assert_eq!((plan.growth.sizes, plan.fan_out.clients), (vec![2_000, 20_000], vec![1, 1_000]));
        // With more pods, the rest stays as it is; with fewer, it does not.
        options.pods = Some(20_000);
        assert_eq!(Plan::of(&options).fan_out.clients, [1, 1_000]);
        options.pods = Some(200);
        let plan = Plan::of(&options);
        assert_eq!((plan.latency.ground.pods, plan.burst.kept, plan.burst.burst), (200, 200, 500));
        assert_eq!((plan.growth.sizes, plan.queue.keys), (vec![200, 2_000], vec![100_000]));
        assert_eq!(plan.fan_out.clients, [1, 100]);
        options.quick = false;
        let plan = Plan::of(&options);
        assert_eq!((plan.readers.rounds, plan.growth.sizes.last()), (3, Some(&200_000)));
        assert_eq!((plan.fan_out.clients, plan.latency.ground.pods), (vec![1, 1_000], 200));
    }

    fn report(failed: Failed) -> Report {
        let mut figures = Figures::of("rain");
        figures.add("ours", "drops", "1", 7.0);
        let (tables, medians, plots) = ("| x |".to_owned(), String::new(), Vec::new());
        Report { section: None, tables, medians, plots, figures: figures.into_all(), failed }
    }

    #[test]
    fn what_fails_is_named_at_the_end_and_keeps_nothing_from_running() {
        let output = Output::default();
        let mut run = Run { reports: Reports::begin(&output), failed: Vec::new() };
        run.add("a", Err(anyhow::anyhow!("it rains")));
        run.add("b", Ok(report(Failed::default())));
        let mut failed = Failed::default();
        assert_eq!(failed.caught("ours, round 1", Ok(7)), Some(7));
        assert_eq!(failed.caught("theirs, round 1", Err::<i32, _>(anyhow::anyhow!("it snows"))), None);
        run.add("c", Ok(report(failed)));
        assert_eq!(run.reports.figures().len(), 2);
        run.add("d", Ok(Report { figures: Vec::new(), ..report(Failed::default()) }));
        assert_eq!(run.failed, ["a", "c", "d"]);
        assert_eq!(run.end().unwrap_err().to_string(), "failed, as said above: a, c, d");
    }
}
