//! `cargo xtask bench burst`: whether memory is given back once it is not needed any more.
//!
//! Many custom resources are created on the embedded server and deleted again, while a contestant keeps a cache of them.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use super::contestant::{Contestant, Programs};
use super::embedded::Embedded;
use super::report::{Failed, Figures, Output, Report};
use super::results::Section;
use super::rounds::ratio;
use super::running::Running;

/// How many.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How many custom resources there are before and after
    #[arg(long, default_value_t = 2_000)]
    pub(super) kept: usize,
    /// How many come and go
    #[arg(long, default_value_t = 20_000)]
    pub(super) burst: usize,
    /// How often each contestant has its turn
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

pub(super) const SECTION: Section = Section {
    name: "burst",
    heading: "Memory after a burst",
    about: "\
Custom resources are created on the embedded server and deleted again, as fast as it takes them, while each contestant keeps
a cache of all. Memory is what the kernel says that the process has (RSS). *Ten seconds after* the last one is gone nothing
has happened any more. *Told to* is after Go's runtime or glibc was told to give back what it can; our informer tells glibc by
itself after a burst, which is why ten seconds later there is nothing left to be told, and kube-runtime does not. *Kept*
is what is left, ten seconds after, of what came on top. *Ours of it* is what ours is of the one before it: less is better.",
};

/// How long after.
const AFTER: Duration = Duration::from_secs(10);

/// How often it is looked whether everything has arrived, and for how long at most.
const LOOK: Duration = Duration::from_millis(500);
const LOOKS: usize = 240;

/// What is measured, in bytes.
const WHAT: [&str; 4] = ["before", "at most", "ten seconds after", "told to"];

pub(super) async fn measure(programs: &Programs, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && options.burst > 0, "nothing to measure");
    let (mut figures, mut failed) = (Figures::of(SECTION.name), Failed::default());
    let mut server = Embedded::start(programs).await?;
    for round in 0..options.rounds {
        for at in 0..Contestant::DYNAMIC.len() {
            let contestant = Contestant::DYNAMIC[(at + round as usize) % Contestant::DYNAMIC.len()];
            let name = contestant.name();
            eprintln!("==> burst, round {} of {}: {name}", round + 1, options.rounds);
            // Whoever was before may have failed on the way.
            server.holds(options.kept).await?;
            let values = turn(&mut server, contestant, options).await;
            let values = failed.caught(&format!("{name}, round {}", round + 1), values);
            for (what, value) in WHAT.iter().zip(values.unwrap_or_default()) {
                if let Some(value) = value {
                    figures.add(name, what, "B", value);
                }
            }
        }
    }
    server.end().await?;
    let tables = tables(&figures, options);
    let (section, medians, plots) = (Some(&SECTION), String::new(), Vec::new());
    Ok(Report { section, tables, medians, plots, figures: figures.into_all(), failed })
}

async fn turn(
    server: &mut Embedded<'_>,
    contestant: Contestant,
    options: &Options,
) -> Result<[Option<f64>; WHAT.len()]> {
    let mut running = server.contestant(contestant)?;
    running.synced().await?;
    running.told("free").await?;
    let before = running.rested().await?;
    let knows_peak = running.forget_peak()?;
    for objects in [options.kept + options.burst, options.kept] {
        server.holds(objects).await?;
        has(&mut running, objects).await?;
    }
    let most = running.after("usage").await?.peak;
    tokio::time::sleep(AFTER).await;
    let after = running.after("usage").await?;
    let told = running.after("free").await?;
    running.end().await?;
    Ok([Some(before.rss), knows_peak.then_some(most), Some(after.rss), Some(told.rss)])
}

/// Awaits that it has so many objects.
async fn has(running: &mut Running, objects: usize) -> Result<()> {
    let mut there = 0;
    for _ in 0..LOOKS {
        there = running.told("objects").await?["objects"].as_u64().unwrap_or(0);
        if there == objects as u64 {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    anyhow::bail!("it has {there} objects, and not {objects}")
}

fn tables(figures: &Figures, options: &Options) -> String {
    let Options { kept, burst, rounds, .. } = options;
    let mut text = format!(
        "Medians of {rounds} rounds; {kept} custom resources stay, {burst} come and go. In MB.\n\n\
         | | kube-informer | client-go | ours of it | kube-runtime | ours of it |\n|---|---|---|---|---|---|\n"
    );
    let [client_go, kube_runtime, ours] = Contestant::DYNAMIC.map(Contestant::name);
    let shown = |name, what| {
        figures.median(name, what).map_or("–".to_owned(), |bytes| format!("{:.1}", bytes / 1e6))
    };
    for what in WHAT {
        let of = |other| figures.ratio(ours, other, what).map_or("–".to_owned(), ratio);
        let cells = [
            shown(ours, what),
            shown(client_go, what),
            of(client_go),
            shown(kube_runtime, what),
            of(kube_runtime),
        ];
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    }
    let kept = |name| {
        let [before, most, after, _] = WHAT.map(|what| figures.median(name, what));
        match (before, most, after) {
            (Some(before), Some(most), Some(after)) if most > before => {
                format!("{:.0} %", (after - before) / (most - before) * 100.0)
            }
            _ => "–".to_owned(),
        }
    };
    let _ = writeln!(text, "| kept | {} | {} | | {} | |", kept(ours), kept(client_go), kept(kube_runtime));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_a_part_of_what_came_on_top() {
        let mut figures = Figures::of("burst");
        for (contestant, all) in [
            (Contestant::OursDynamic, [10.0, 50.0, 14.0, 14.0]),
            (Contestant::ClientGoDynamic, [20.0, 500.0, 260.0, 20.0]),
        ] {
            for (what, megabytes) in WHAT.iter().zip(all) {
                figures.add(contestant.name(), what, "B", megabytes * 1e6);
            }
        }
        let options = Options { kept: 2, burst: 20, rounds: 1, output: Output::default() };
        let table = tables(&figures, &options);
        assert!(table.contains("| at most | 50.0 | 500.0 | 0.10 | – | – |"), "{table}");
        assert!(table.contains("| kept | 10 % | 50 % | | – | |"), "{table}");
    }

    #[test]
    fn without_a_peak_nothing_is_said_of_what_is_kept() {
        let mut figures = Figures::of("burst");
        figures.add(Contestant::OursDynamic.name(), "before", "B", 1e6);
        figures.add(Contestant::OursDynamic.name(), "ten seconds after", "B", 2e6);
        let options = Options { kept: 2, burst: 20, rounds: 1, output: Output::default() };
        let table = tables(&figures, &options);
        assert!(table.contains("| at most | – |") && table.contains("| kept | – |"), "{table}");
    }
}
