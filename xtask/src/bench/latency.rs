//! `cargo xtask bench latency`: from a write on the API to the call of the handler.
//!
//! A program by itself writes at a rate, and puts into each object when it was sent; the contestant's handler looks at the
//! clock when it is called. On the real server these are pods, on the embedded one, which takes more writes, custom
//! resources. Contestants take turns, beginning with another one in every round; the medians of the rounds count.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use super::contestant::Contestant;
use super::embedded::Embedded;
use super::ground::{self, Ground};
use super::plot::{Axis, Line, Plot};
use super::report::{Failed, Figures, Output, Report};
use super::rest::rest;
use super::results::Section;
use super::rounds::{percentile, ratio};
use super::running::Running;

/// How fast, and how long.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) ground: ground::Where,
    /// How often each contestant has its turn
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    /// Updates per second
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000])]
    pub(super) rates: Vec<u32>,
    /// For so many seconds each
    #[arg(long, default_value_t = 10)]
    pub(super) seconds: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

pub(super) const SECTION: Section = Section {
    name: "latency",
    heading: "From a write to its handler",
    about: "\
Updates at a rate, by a program that does nothing else, each of another object than those before it. It writes into the
object when the request was sent; the time from there to the call of the handler is measured, which includes the server's
work for the write. One contestant runs at a time, with all objects in its cache; its turn, and each rate in it, begins when
the machine has nothing to do any more. On the real server these are pods, on the
embedded one custom resources. *P50 of the write* is after how long the server had answered half of the writes: where that is much, the
server was slow, whoever watched. *Reached* is how many updates per second the server took while the contestant ran. Where that
is less than nine tenths of what was asked for, the writes themselves had to wait, and the times are those of a server that is
at its end: it is marked *too few*, and nothing is compared. *Ours of it* is what our time is of the one before it: less is
better. In the last column changes may wait up to 50 ms for others (`gather`), which costs less of the processor.",
};

/// The servers that it is measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Real,
    Embedded,
}

/// Where a contestant's turn takes place.
enum Place<'a> {
    Real(&'a Ground),
    Embedded(&'a Embedded<'a>),
}

/// The percentiles of the plots, by what they leave out: each a tenth of, or half of, the one before it.
const SHOWN: [(f64, &str); 6] =
    [(50.0, "50 %"), (75.0, "75 %"), (90.0, "90 %"), (95.0, "95 %"), (99.0, "99 %"), (99.9, "99.9 %")];

/// Those of the tables.
const HALF: f64 = 50.0;
const TAIL: f64 = 99.0;

/// Less than this of a rate is too few.
const ENOUGH: f64 = 0.9;

/// Writes before it is measured, so that connections are there.
const WARM_UP: u32 = 50;

/// How long nothing may come before the rest counts as joined with what came.
const SILENCE: Duration = Duration::from_secs(2);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);

/// Measures on both servers.
pub(super) async fn measure(ground: &Ground, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && options.seconds > 0, "nothing to measure");
    ensure!(!options.rates.is_empty() && options.rates.iter().all(|rate| *rate > 0), "no rates");
    let (mut figures, mut failed) = (Figures::of(SECTION.name), Failed::default());
    let mut embedded = Embedded::start(&ground.programs).await?;
    embedded.holds(ground.objects).await?;
    let mut all = Vec::new();
    for round in 0..options.rounds {
        for on in [On::Real, On::Embedded] {
            let place = match on {
                On::Real => Place::Real(ground),
                On::Embedded => Place::Embedded(&embedded),
            };
            let contestants = on.contestants();
            for at in 0..contestants.len() {
                let contestant = contestants[(at + round as usize) % contestants.len()];
                let name = contestant.name();
                eprintln!("==> latency, round {} of {}: {name}", round + 1, options.rounds);
                rest().await;
                let turns = turn(&place, contestant, ground.objects, options).await;
                let turns = failed.caught(&format!("{name}, round {}", round + 1), turns);
                for Turn { rate, reached, write, mut ages } in turns.unwrap_or_default() {
                    ages.sort_unstable_by(f64::total_cmp);
                    for (percent, what) in [(HALF, half(rate)), (TAIL, tail(rate))] {
                        if let Some(value) = percentile(&ages, percent) {
                            figures.add(name, &what, "ms", value);
                        }
                    }
                    figures.add(name, &reached_at(rate), "1/s", reached);
                    figures.add(name, &write_at(rate), "ms", write);
                    all.push((on, name, rate, ages));
                }
            }
        }
    }
    embedded.end().await?;
    let plots = [(On::Real, "latency-real.svg"), (On::Embedded, "latency-embedded.svg")];
    let plots = plots.map(|(on, file)| (file, plot(on, &all, &options.rates).svg())).to_vec();
    let tables = tables(&figures, options, ground.objects);
    let (section, medians) = (Some(&SECTION), String::new());
    Ok(Report { section, tables, medians, plots, figures: figures.into_all(), failed })
}

/// One contestant at one rate.
struct Turn {
    rate: u32,
    /// What was reached of it.
    reached: f64,
    /// The milliseconds after which half of the writes were answered.
    write: f64,
    /// Those of every update.
    ages: Vec<f64>,
}

/// One contestant at every rate.
async fn turn(
    place: &Place<'_>,
    contestant: Contestant,
    objects: usize,
    options: &Options,
) -> Result<Vec<Turn>> {
    let (mut running, mut writer) = match place {
        Place::Real(ground) => (ground.start(contestant)?, ground.writer()?),
        Place::Embedded(server) => (server.contestant(contestant)?, server.writer(objects)?),
    };
    let synced = running.synced().await?;
    ensure!(synced.objects == objects as u64, "it has {} of {objects} objects", synced.objects);
    writer.told(&format!("rate {WARM_UP} {WARM_UP}")).await.context("the writer")?;
    running.rested().await?;
    let mut turns = Vec::new();
    for rate in &options.rates {
        rest().await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        running.told(&format!("since {now}")).await?;
        let written = writer.told(&format!("rate {rate} {}", rate * options.seconds)).await;
        let written = written.context("the writer")?;
        let number = |name: &str| written[name].as_f64().with_context(|| format!("no {name} in {written}"));
        let (count, seconds) = (number("written")?, number("seconds")?);
        all_seen(&mut running, count as u64).await?;
        let ages = ages(&running.told("ages").await?)?;
        // An informer may join two updates of one object that follow each other at once.
        ensure!(
            !ages.is_empty() && ages.len() as f64 >= count * 0.95,
            "it saw {} of {count} updates",
            ages.len()
        );
        let write = number("answered_ns")? / 1e6;
        turns.push(Turn { rate: *rate, reached: count / seconds, write, ages });
    }
    writer.end().await.context("the writer")?;
    running.end().await?;
    Ok(turns)
}

/// Awaits that so many stamps were seen, or that nothing more comes.
async fn all_seen(running: &mut Running, stamps: u64) -> Result<()> {
    let (mut seen, mut silent) = (0, Duration::ZERO);
    while seen < stamps && silent < SILENCE {
        tokio::time::sleep(LOOK).await;
        let now = running.after("usage").await?.fresh;
        silent = if now == seen { silent + LOOK } else { Duration::ZERO };
        seen = now;
    }
    Ok(())
}

/// What a contestant tells, in milliseconds.
fn ages(answer: &Value) -> Result<Vec<f64>> {
    let ages = answer["ages_ns"].as_array().with_context(|| format!("no ages in {answer}"))?;
    ages.iter().map(|age| Ok(age.as_f64().context("an age that is no number")? / 1e6)).collect()
}

fn half(rate: u32) -> String {
    format!("p50 at {rate}/s")
}

fn tail(rate: u32) -> String {
    format!("p99 at {rate}/s")
}

fn reached_at(rate: u32) -> String {
    format!("reached of {rate}/s")
}

fn write_at(rate: u32) -> String {
    format!("p50 of the write at {rate}/s")
}

fn tables(figures: &Figures, options: &Options, objects: usize) -> String {
    let mut text = format!(
        "Medians of {} rounds with {objects} objects, in milliseconds, for {} seconds at each rate.\n\n\
         | server | updates per second | | kube-informer | client-go | ours of it | kube-runtime | ours of it | ours, \
         gathered |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        options.rounds, options.seconds
    );
    for on in [On::Real, On::Embedded] {
        let all = on.contestants().map(Contestant::name);
        let [client_go, kube_runtime, ours, _] = all;
        for rate in &options.rates {
            let mut row = |what: &str, [first, second, own, late]: [String; 4], of: [String; 2]| {
                let [of_first, of_second] = of;
                let cells = [own, first, of_first, second, of_second, late].join(" | ");
                let _ = writeln!(text, "| {} | {rate} | {what} | {cells} |", on.name());
            };
            let times =
                |what: &str| all.map(|name| figures.median(name, what).map_or("–".to_owned(), millis));
            row("reached", all.map(|name| reached(figures, name, *rate)), Default::default());
            row("p50 of the write", times(&write_at(*rate)), Default::default());
            for (percentile, what) in [("p50", half(*rate)), ("p99", tail(*rate))] {
                let of = |other| compared(figures, ours, other, *rate, &what);
                row(percentile, times(&what), [of(client_go), of(kube_runtime)]);
            }
        }
    }
    text
}

/// How many updates per second the server took while a contestant ran.
fn reached(figures: &Figures, name: &str, rate: u32) -> String {
    match figures.median(name, &reached_at(rate)) {
        Some(reached) if is_enough(reached, rate) => format!("{reached:.0}"),
        Some(reached) => format!("{reached:.0}, too few"),
        None => "–".to_owned(),
    }
}

/// What our time is of another's, where the server took what was asked for while either of them ran.
fn compared(figures: &Figures, ours: &str, other: &str, rate: u32, what: &str) -> String {
    let is_enough = |name| {
        let reached = figures.median(name, &reached_at(rate));
        reached.is_some_and(|reached| is_enough(reached, rate))
    };
    match figures.ratio(ours, other, what) {
        Some(found) if is_enough(ours) && is_enough(other) => ratio(found),
        Some(_) => "not compared".to_owned(),
        None => "–".to_owned(),
    }
}

fn is_enough(reached: f64, rate: u32) -> bool {
    reached >= f64::from(rate) * ENOUGH
}

fn millis(millis: f64) -> String {
    match millis {
        100.0.. => format!("{millis:.0}"),
        10.0.. => format!("{millis:.1}"),
        _ => format!("{millis:.2}"),
    }
}

/// Every contestant at every rate: how many of the updates took no longer.
fn plot(on: On, all: &[(On, &'static str, u32, Vec<f64>)], rates: &[u32]) -> Plot {
    let place = |percent: f64| -(1.0 - percent / 100.0).log10();
    let mut lines = Vec::new();
    let [client_go, kube_runtime, ours, _] = on.contestants();
    for (colour, contestant) in [ours, client_go, kube_runtime].into_iter().enumerate() {
        for (at, rate) in rates.iter().enumerate() {
            let of = all
                .iter()
                .filter(|(place, name, at, _)| (*place, *name, at) == (on, contestant.name(), rate));
            let mut ages: Vec<f64> = of.flat_map(|(.., ages)| ages.iter().copied()).collect();
            ages.sort_unstable_by(f64::total_cmp);
            let points =
                SHOWN.iter().filter_map(|(percent, _)| Some((place(*percent), percentile(&ages, *percent)?)));
            let name = format!("{}, {rate}/s", contestant.maker());
            lines.push(Line { name, colour, dashed: at + 1 < rates.len(), points: points.collect() });
        }
    }
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).collect();
    Plot {
        title: format!("From a write to its handler, {} server", on.name()),
        x: Axis {
            label: "so many of the updates took no longer",
            ticks: SHOWN.map(|(percent, label)| (place(percent), label.to_owned())).to_vec(),
            log: false,
        },
        y: Axis::decades("milliseconds", values.into_iter(), |value| format!("{value}")),
        lines,
    }
}

impl On {
    fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Embedded => "embedded",
        }
    }

    /// Ours last, in both ways.
    fn contestants(self) -> [Contestant; 4] {
        let ([client_go, kube_runtime, ours], gathered) = match self {
            Self::Real => (Contestant::TYPED, Contestant::OursGathered),
            Self::Embedded => (Contestant::DYNAMIC, Contestant::OursDynamicGathered),
        };
        [client_go, kube_runtime, ours, gathered]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ages_are_milliseconds() {
        assert_eq!(ages(&json!({ "ages_ns": [1_500_000, 250_000] })).unwrap(), [1.5, 0.25]);
        assert!(ages(&json!({ "ages_ns": ["soon"] })).is_err() && ages(&json!({})).is_err());
    }

    /// The rows of the real server at 100 updates per second, of which client-go was measured at so many.
    fn rows(reached: f64) -> Vec<String> {
        let mut figures = Figures::of("latency");
        for (contestant, half, tail, reached) in
            [("kube-informer", 1.5, 12.0, 99.7), ("client-go, typed", 2.0, 240.0, reached)]
        {
            figures.add(contestant, "p50 at 100/s", "ms", half);
            figures.add(contestant, "p99 at 100/s", "ms", tail);
            figures.add(contestant, "reached of 100/s", "1/s", reached);
            figures.add(contestant, "p50 of the write at 100/s", "ms", half / 2.0);
        }
        let options = Options {
            ground: ground::Where { pods: 5, on: None, profile: "dev".to_owned() },
            rounds: 1,
            rates: vec![100],
            seconds: 1,
            output: Output::default(),
        };
        tables(&figures, &options, 5).lines().skip(4).take(4).map(str::to_owned).collect()
    }

    #[test]
    fn both_percentiles_of_all_stand_in_the_table_with_the_rate_of_each() {
        assert_eq!(
            rows(90.0),
            [
                "| real | 100 | reached | 100 | 90 |  | – |  | – |",
                "| real | 100 | p50 of the write | 0.75 | 1.00 |  | – |  | – |",
                "| real | 100 | p50 | 1.50 | 2.00 | 0.75 | – | – | – |",
                "| real | 100 | p99 | 12.0 | 240 | 0.050 | – | – | – |",
            ]
        );
    }

    #[test]
    fn what_was_measured_at_another_rate_is_not_compared() {
        assert_eq!(
            rows(89.0),
            [
                "| real | 100 | reached | 100 | 89, too few |  | – |  | – |",
                "| real | 100 | p50 of the write | 0.75 | 1.00 |  | – |  | – |",
                "| real | 100 | p50 | 1.50 | 2.00 | not compared | – | – | – |",
                "| real | 100 | p99 | 12.0 | 240 | not compared | – | – | – |",
            ]
        );
    }

    #[test]
    fn a_line_goes_through_all_percentiles() {
        let ages: Vec<f64> = (1..=1000).map(f64::from).collect();
        let plot = plot(On::Real, &[(On::Real, "kube-informer", 100, ages)], &[100]);
        let line = plot.lines.first().map(|line| &line.points[..]).unwrap_or_default();
        assert_eq!(
            line.iter().map(|point| point.1).collect::<Vec<_>>(),
            [500.0, 750.0, 900.0, 950.0, 990.0, 999.0]
        );
        assert!(plot.lines.iter().skip(1).all(|line| line.points.is_empty()));
        assert_eq!(plot.lines.len(), 3);
    }
}
