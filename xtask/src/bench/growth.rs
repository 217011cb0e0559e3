//! `cargo xtask bench growth`: how what it costs grows with the number of objects, on the embedded server.
//!
//! One server gets more and more custom resources; at each number our informer syncs them and is read, some times over.
//! What an object costs is held against what it costs where there are few: in a linear cost it stays the same.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::contestant::{Contestant, Programs};
use super::embedded::Embedded;
use super::plot::{Axis, Line, Plot};
use super::report::{Failed, Figures, Output, Report};
use super::results::Section;
use super::rounds::ratio;

/// How many, and how often.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// With how many objects, each more than the one before it
    #[arg(long, value_delimiter = ',', default_values_t = [2_000, 20_000, 200_000])]
    pub(super) sizes: Vec<usize>,
    /// How often it is measured at each
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

pub(super) const SECTION: Section = Section {
    name: "growth",
    heading: "Growth",
    about: "\
More and more custom resources on the embedded server. At each number our informer syncs them and is read: one by key, those of
a value of an index, all; metadata is looked at. What an object costs is a ratio to what it costs in the first line: where the
cost is linear, it stays the same. To sync and to keep one may cost half more than at the best of the numbers before. Memory is
what the process has more than one without an informer; its *peak* is the most until it was in sync.

2,000 objects are in the processor's caches, and 200,000 are not: to look at one costs more there, however it is found. So the
same objects are looked at without the informer's cache, too: one of them in a hash map, those of a value and all in vectors, in
the same order. A read meets its target if it grows by no more than half more than that.",
};

/// What an object may cost of what it costs at the first size.
const TARGET: f64 = 1.5;

/// Reads, and the same without a cache, which is what memory alone costs: that grows, too.
const PLAIN: [(&str, &str); 3] = [
    ("read of one object", "one, in a hash map"),
    ("read by an index, per object", "those of a value, in vectors"),
    ("read of all, per object", "all, in a vector"),
];

/// What is measured.
struct Column {
    what: &'static str,
    /// Whether it is about all objects, or about one.
    is_of_all: bool,
    /// Its line in the plot: the wall and the peak have the colours of what they are seen beside.
    colour: usize,
    dashed: bool,
}

impl Column {
    /// By what a value is to be multiplied, to be that of one object.
    fn each(&self, size: usize) -> f64 {
        if self.is_of_all { 1.0 / size as f64 } else { 1.0 }
    }
}

const fn column(what: &'static str, is_of_all: bool, colour: usize, dashed: bool) -> Column {
    Column { what, is_of_all, colour, dashed }
}

const COLUMNS: [Column; 7] = [
    column("CPU to sync, per object", true, 0, false),
    column("wall time to sync, per object", true, 0, true),
    column("memory kept, per object", true, 1, false),
    column("peak memory, per object", true, 1, true),
    column("read of one object", false, 2, false),
    column("read by an index, per object", true, 3, false),
    column("read of all, per object", true, 4, false),
];

/// Measures at every size.
pub(super) async fn measure(programs: &Programs, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && !options.sizes.is_empty(), "nothing to measure");
    ensure!(
        options.sizes.is_sorted() && options.sizes.iter().all(|size| *size > 0),
        "sizes that do not grow"
    );
    let (mut figures, mut failed) = (Figures::of(SECTION.name), Failed::default());
    let mut server = Embedded::start(programs).await?;
    for size in &options.sizes {
        eprintln!("==> growth: {size} custom resources");
        server.holds(*size).await?;
        for round in 0..options.rounds {
            let values = turn(&server, *size).await;
            let values = failed.caught(&format!("{}, round {}", name(*size), round + 1), values);
            let values = values.unwrap_or_default();
            for (column, (unit, value)) in COLUMNS.iter().zip(&values) {
                figures.add(&name(*size), column.what, unit, value * column.each(*size));
            }
            for ((of, plain), (unit, value)) in PLAIN.iter().zip(values.iter().skip(COLUMNS.len())) {
                let each =
                    COLUMNS.iter().find(|column| column.what == *of).map_or(1.0, |column| column.each(*size));
                figures.add(&name(*size), plain, unit, value * each);
            }
        }
    }
    server.end().await?;
    let (section, medians) = (Some(&SECTION), String::new());
    let tables = format!("Medians of {} rounds.\n\n{}", options.rounds, table(&figures, &options.sizes));
    let plots = vec![("growth.svg", plot(&figures, &options.sizes).svg())];
    Ok(Report { section, tables, medians, plots, figures: figures.into_all(), failed })
}

/// What one size costs, column by column, with its unit.
async fn turn(server: &Embedded<'_>, size: usize) -> Result<Vec<(&'static str, f64)>> {
    let mut idle = server.contestant(Contestant::OursIdle)?;
    let empty = idle.synced().await?.rss;
    idle.end().await?;
    let mut running = server.contestant(Contestant::OursDynamicReads)?;
    let synced = running.synced().await?;
    ensure!(synced.objects == size as u64, "it has {} of {size} objects", synced.objects);
    let kept = running.rested().await?.rss - empty;
    let times = running.told("reads").await?;
    running.end().await?;
    let nanos = |field: &str| times[field].as_f64().with_context(|| format!("no {field} in {times}"));
    let plain = |field: &str| {
        times["plain"][field].as_f64().with_context(|| format!("no {field} without a cache in {times}"))
    };
    ensure!(times["found"] == times["plain"]["found"], "not the same was found without a cache: {times}");
    Ok(vec![
        ("s", synced.cpu),
        ("s", synced.wall),
        ("B", kept),
        ("B", synced.peak - empty),
        ("ns", nanos("get_ns")?),
        ("ns", nanos("indexed_ns")?),
        ("ns", nanos("list_ns")?),
        ("ns", plain("get_ns")?),
        ("ns", plain("indexed_ns")?),
        ("ns", plain("list_ns")?),
    ])
}

fn name(size: usize) -> String {
    format!("{size} objects")
}

/// What something costs at a size, of what it costs at the first.
fn relative(figures: &Figures, sizes: &[usize], size: usize, what: &str) -> Option<f64> {
    figures.ratio(&name(size), &name(*sizes.first()?), what)
}

/// The least that something costs up to a size, of what it costs at the first.
fn least(figures: &Figures, sizes: &[usize], size: usize, what: &str) -> Option<f64> {
    let smaller = sizes.iter().filter(|one| **one <= size);
    smaller.filter_map(|one| relative(figures, sizes, *one, what)).min_by(f64::total_cmp)
}

fn table(figures: &Figures, sizes: &[usize]) -> String {
    let heads = COLUMNS.map(|column| column.what).join(" | ");
    let target = "target; of reads, beyond what they grow by without a cache";
    let mut table =
        format!("| objects | {heads} | {target} | |\n|---|{}---|---|\n", "---|".repeat(COLUMNS.len()));
    for size in sizes {
        let of = |what: &str| relative(figures, sizes, *size, what);
        let is_met = |column: &Column| {
            let plain = PLAIN.iter().find(|(of, _)| *of == column.what);
            // Where memory alone costs less with more of them, that is noise. What is not read is held against what it costs at
            // its best: where there are few, what is there without any object counts for much.
            let basis = plain.map_or_else(
                || least(figures, sizes, *size, column.what),
                |(_, plain)| of(plain).map(|grown| grown.max(1.0)),
            );
            of(column.what).zip(basis).is_some_and(|(ratio, basis)| ratio <= TARGET * basis)
        };
        let verdict = if COLUMNS.iter().all(is_met) { "met" } else { "missed" };
        let shown = COLUMNS.map(|column| of(column.what).map_or("–".to_owned(), ratio)).join(" | ");
        let _ = writeln!(table, "| {size} | {shown} | ≤ {TARGET} | {verdict} |");
    }
    let heads = PLAIN.map(|(_, plain)| plain).join(" | ");
    let _ = writeln!(table, "\n| objects, without a cache | {heads} |\n|---|{}", "---|".repeat(PLAIN.len()));
    for size in sizes {
        let of =
            |(_, plain): (&str, &str)| relative(figures, sizes, *size, plain).map_or("–".to_owned(), ratio);
        let _ = writeln!(table, "| {size} | {} |", PLAIN.map(of).join(" | "));
    }
    table
}

fn plot(figures: &Figures, sizes: &[usize]) -> Plot {
    let line = |Column { what, colour, dashed, .. }: &Column| {
        let points =
            sizes.iter().filter_map(|size| Some((*size as f64, relative(figures, sizes, *size, what)?)));
        // The legend is narrow.
        let name = what.trim_end_matches(", per object").to_owned();
        Line { name, colour: *colour, dashed: *dashed, points: points.collect() }
    };
    let lines: Vec<Line> = COLUMNS.iter().map(line).collect();
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).collect();
    Plot {
        title: "What an object costs where there are more of them".to_owned(),
        x: Axis::decades("objects", sizes.iter().map(|size| *size as f64), |value| format!("{value}")),
        y: Axis::from_zero("of what it costs where there are few", values.into_iter()),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(factors: &[(usize, f64)]) -> Figures {
        let mut figures = Figures::of("growth");
        for (size, factor) in factors {
            for what in COLUMNS.map(|column| column.what).into_iter().chain(PLAIN.map(|(_, plain)| plain)) {
                figures.add(&name(*size), what, "ns", *factor);
            }
        }
        figures
    }

    #[test]
    fn a_linear_cost_stays_the_same_per_object() {
        let figures = grown(&[(2_000, 2.0), (20_000, 2.4), (200_000, 3.2)]);
        let table = table(&figures, &[2_000, 20_000, 200_000]);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| 2000 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | ≤ 1.5 | met |",
                "| 20000 | 1.20 | 1.20 | 1.20 | 1.20 | 1.20 | 1.20 | 1.20 | ≤ 1.5 | met |",
                "| 200000 | 1.60 | 1.60 | 1.60 | 1.60 | 1.60 | 1.60 | 1.60 | ≤ 1.5 | missed |",
                "",
                "| objects, without a cache | one, in a hash map | those of a value, in vectors | all, in a vector |",
                "|---|---|---|---|",
                "| 2000 | 1.00 | 1.00 | 1.00 |",
                "| 20000 | 1.20 | 1.20 | 1.20 |",
                "| 200000 | 1.60 | 1.60 | 1.60 |",
            ]
        );
    }

    #[test]
    fn a_read_is_held_against_what_memory_costs_and_nothing_else_is() {
        let verdicts = |reads: f64, memory: f64, rest: f64| {
            let mut figures = grown(&[(2_000, 1.0)]);
            for column in COLUMNS {
                let is_read = PLAIN.iter().any(|(of, _)| *of == column.what);
                figures.add(&name(20_000), column.what, "ns", if is_read { reads } else { rest });
            }
            for (_, plain) in PLAIN {
                figures.add(&name(20_000), plain, "ns", memory);
            }
            let table = table(&figures, &[2_000, 20_000]);
            table.lines().nth(3).is_some_and(|line| line.ends_with("| met |"))
        };
        assert!(verdicts(5.0, 4.0, 1.0), "as memory does");
        assert!(!verdicts(5.0, 3.0, 1.0), "more than memory does");
        assert!(!verdicts(1.6, 0.5, 1.0) && verdicts(1.4, 0.5, 1.0), "memory does not become cheaper");
        assert!(!verdicts(1.0, 4.0, 1.6), "to sync and to keep is linear");
    }

    #[test]
    fn what_grows_later_has_grown() {
        let last = |more: f64| {
            let figures = grown(&[(2_000, 1.0), (20_000, 0.1), (200_000, more)]);
            let table = table(&figures, &[2_000, 20_000, 200_000]);
            table.lines().nth(4).map(|line| line.ends_with("| met |"))
        };
        assert_eq!((last(0.14), last(0.16)), (Some(true), Some(false)));
    }

    #[test]
    fn a_plot_has_a_line_for_each_cost() {
        let plot = plot(&grown(&[(2_000, 1.0), (20_000, 1.2)]), &[2_000, 20_000]);
        assert_eq!(plot.lines.len(), COLUMNS.len());
        assert!(plot.lines.iter().all(|line| line.points == [(2_000.0, 1.0), (20_000.0, 1.2)]));
        let looks = |line: &Line| (line.colour, line.dashed);
        let others = |at: usize| plot.lines.iter().skip(at + 1);
        for (at, line) in plot.lines.iter().enumerate() {
            assert!(others(at).all(|other| looks(other) != looks(line)), "{} looks like another", line.name);
        }
    }
}
