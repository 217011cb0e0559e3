//! `kube-informer demo`: a living cluster in one process, and what its informers see.
//!
//! Everything that the project has, on the embedded API server with simulated workloads and a story: the controller of
//! Deployments, the ElastiService operator, the feed over WebSocket. What is printed comes from informers over HTTP and from the
//! feed's own change model, as any program would see it. It ends by itself after `--duration`, at Ctrl-C, or when nobody reads
//! what it prints, and leaves nothing behind.

// What there is to say, and how it is said.
mod stage;
mod words;

// What the demo itself does: somebody who scales and asks, and who takes the question.
mod play;
mod resolver;

// Everything that runs.
mod house;

use std::time::{Duration, Instant};

use crate::apiserver::Pace;
use crate::interrupt::{Ended, Interrupt};
use crate::output::Output;
use crate::style::{Style, When};
use crate::time::duration;
use crate::vitals;
use house::{House, Lively, Numbers};

/// Run the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End by itself after this time, such as 30s or 1m30s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    pace: Pace,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Until Ctrl-C
  kube-informer demo

  # Half a minute of it, in a hurry
  kube-informer demo --duration 30s --speed 5";

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    let begun = Instant::now();
    let house = tokio::select! {
        house = House::start(&args.pace) => house?,
        () = interrupt.wait() => return Ok(Ended::Interrupted),
    };
    let mut output = Output::start()?;
    output.lines().offer(house.intro());
    let lively = house.run(output.lines(), Style::stdout(When::Auto));
    let over = async {
        match args.duration {
            Some(duration) => tokio::time::sleep(duration.saturating_sub(begun.elapsed())).await,
            None => std::future::pending().await,
        }
    };
    let (ended, is_read) = tokio::select! {
        () = over => (Ok(Ended::Done), true),
        () = interrupt.wait() => (Ok(Ended::Interrupted), true),
        // `demo | head`: the reader has seen enough.
        closed = output.closed() => (closed, false),
    };
    lively.stage.settle_all();
    let summary = summary(&lively, begun.elapsed());
    let end = async {
        lively.end().await;
        match ended {
            Ok(ended) if is_read => {
                output.lines().offer(summary);
                match output.end().await? {
                    Ended::Interrupted => Ok(Ended::Interrupted),
                    _ => Ok(ended),
                }
            }
            ended => ended,
        }
    };
    tokio::select! {
        ended = end => ended,
        // Once more: at once.
        () = interrupt.wait() => Ok(Ended::Interrupted),
    }
}

/// What there was to see, in two lines.
fn summary(lively: &Lively, time: Duration) -> String {
    let (Numbers { objects, held }, tally) = (lively.numbers(), lively.stage.tally());
    let memory = vitals::memory().map_or_else(String::new, |bytes| {
        format!("; this process, with everything in it, takes {}", mebibytes(bytes))
    });
    format!(
        "\nended after {}s: {objects} objects are in the cluster; the informers hold {} of them in {} KiB, and have seen \
         {} changes, of which {} lines were made{memory}\nnothing is left behind\n",
        time.as_secs(),
        held.0,
        held.1.div_ceil(1024),
        tally.changes,
        tally.lines,
    )
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB of memory", bytes.div_ceil(1 << 20))
}
