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
More and more custom resources on the embedded server. At each number our informer syncs them and is read: one by key, those
of a value of an index, all; metadata is looked at. What an object costs is a ratio to what it costs in the first line: where
the cost is linear, it stays the same. Memory is what the process has more than one without an informer; its *peak* is the most
until it was in sync.",
};

/// What an object may cost of what it costs at the first size. Caches of the processor are not linear.
const TARGET: f64 = 1.5;

/// What is measured.
struct Column {
    what: &'static str,
    /// Whether it is about all objects, or about one.
    is_of_all: bool,
    /// Its line in the plot: the wall and the peak have the colours of what they are seen beside.
    colour: usize,
    dashed: bool,
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
            for (column, (unit, value)) in COLUMNS.iter().zip(values.unwrap_or_default()) {
                let each = if column.is_of_all { 1.0 / *size as f64 } else { 1.0 };
                figures.add(&name(*size), column.what, unit, value * each);
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
    Ok(vec![
        ("s", synced.cpu),
        ("s", synced.wall),
        ("B", kept),
        ("B", synced.peak - empty),
        ("ns", nanos("get_ns")?),
        ("ns", nanos("indexed_ns")?),
        ("ns", nanos("list_ns")?),
    ])
}

fn name(size: usize) -> String {
    format!("{size} objects")
}

/// What something costs at a size, of what it costs at the first.
fn relative(figures: &Figures, sizes: &[usize], size: usize, what: &str) -> Option<f64> {
    figures.ratio(&name(size), &name(*sizes.first()?), what)
}

fn table(figures: &Figures, sizes: &[usize]) -> String {
    let heads = COLUMNS.map(|column| column.what).join(" | ");
    let mut table =
        format!("| objects | {heads} | target | |\n|---|{}---|---|\n", "---|".repeat(COLUMNS.len()));
    for size in sizes {
        let ratios = COLUMNS.map(|column| relative(figures, sizes, *size, column.what));
        let met = ratios.iter().all(|ratio| ratio.is_some_and(|ratio| ratio <= TARGET));
        let shown = ratios.map(|found| found.map_or("–".to_owned(), ratio)).join(" | ");
        let verdict = if met { "met" } else { "missed" };
        let _ = writeln!(table, "| {size} | {shown} | ≤ {TARGET} | {verdict} |");
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
            for column in COLUMNS {
                figures.add(&name(*size), column.what, "ns", *factor);
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
                "| 2000 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | ≤ 1.5 | met |",
                "| 20000 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | ≤ 1.5 | met |",
                "| 200000 | 1.6 | 1.6 | 1.6 | 1.6 | 1.6 | 1.6 | 1.6 | ≤ 1.5 | missed |",
            ]
        );
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
