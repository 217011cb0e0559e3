//! `cargo xtask bench`: what things cost, contestants side by side in one run.
//!
//! Nothing here fails because something is slow: the tables say what was reached and what was not. Tables are Markdown,
//! on stdout; what goes on is told on stderr.

use anyhow::Result;
use clap::{Args, Subcommand};

// Everything, and each by itself.
mod all;

mod sync;

mod latency;
mod relist;

mod readers;

mod burst;
mod growth;

mod fan_out;
mod queue;

mod micro;

// Who takes part, on what.
mod contestant;
mod embedded;
mod ground;
mod running;

// What is counted, and what becomes of it.
mod instructions;
mod machine;
mod plot;
mod report;
mod rest;
mod results;
mod rounds;

use contestant::{Contestant, DIST, Programs};
use ground::Ground;
use report::{Output, Reports};

/// What to measure: all of it, unless one is named.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    #[command(flatten)]
    all: all::Options,
}

/// One of them.
#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// What one object costs: framed, cut, packed, viewed; beside serde_json, sonic-rs and prost
    Micro(micro::Options),
    /// The informer beside client-go and kube-runtime, on the real server: to sync, to follow, to be read
    Sync(sync::Options),
    /// From a write on the API to the call of the handler, at rates
    Latency(latency::Options),
    /// What it costs to list everything again after a 410
    Relist(ground::Turns),
    /// Caches that are read by one and by eight threads under writes
    Readers(ground::Turns),
    /// Whether memory is given back after many objects have come and gone
    Burst(burst::Options),
    /// From 2,000 to 200,000 objects, on the embedded server
    Growth(growth::Options),
    /// The work queue beside client-go's and kube-runtime's scheduler: to add, to get, to wait, to retry
    Queue(queue::Options),
    /// What one WebSocket client costs, and a thousand
    FanOut(fan_out::Options),
}

/// All that are compared, by their names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all::SECTIONS.iter().map(|section| section.name)
}

/// Measures what was asked for.
pub(crate) async fn run(bench: &Bench) -> Result<()> {
    let Some(command) = &bench.command else { return all::run(&bench.all).await };
    let mut reports = Reports::begin(command.output().unwrap_or(&Output::default()));
    let root = reports.root().to_owned();
    let ground = async |options: &ground::Where| Ground::prepare(&root, options, &Contestant::TYPED).await;
    let report = match command {
        BenchCommand::Micro(options) => micro::measure(&root, options),
        BenchCommand::Sync(options) => {
            sync::measure(&Ground::prepare(&root, &options.ground, &sync::WARM).await?, options).await
        }
        BenchCommand::Latency(options) => latency::measure(&ground(&options.ground).await?, options).await,
        BenchCommand::Relist(options) => relist::measure(&ground(&options.ground).await?, options).await,
        BenchCommand::Readers(options) => readers::measure(&ground(&options.ground).await?, options).await,
        BenchCommand::Burst(options) => burst::measure(&Programs::build(&root, DIST)?, options).await,
        BenchCommand::Growth(options) => growth::measure(&Programs::build(&root, DIST)?, options).await,
        BenchCommand::Queue(options) => queue::measure(&root, options).await,
        BenchCommand::FanOut(options) => {
            fan_out::measure(&root, &Programs::build(&root, DIST)?, options).await
        }
    };
    let added = report.and_then(|report| reports.add(report));
    reports.end()?;
    added
}

impl BenchCommand {
    /// Where it puts what it finds; `micro` only prints it.
    fn output(&self) -> Option<&Output> {
        match self {
            Self::Micro(_) => None,
            Self::Sync(options) => Some(&options.output),
            Self::Latency(options) => Some(&options.output),
            Self::Relist(options) => Some(&options.output),
            Self::Readers(options) => Some(&options.output),
            Self::Burst(options) => Some(&options.output),
            Self::Growth(options) => Some(&options.output),
            Self::Queue(options) => Some(&options.output),
            Self::FanOut(options) => Some(&options.output),
        }
    }
}
