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
use super::report::{Figures, Output, Report};
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
the cost is linear, it stays the same.",
};

/// What an object may cost of what it costs at the first size. Caches of the processor are not linear.
const TARGET: f64 = 1.5;

/// What is measured: in the answer of a contestant, in tables, and whether it is about all objects, or about one.
const COLUMNS: [(&str, &str, bool); 5] = [
    ("", "CPU to sync, per object", true),
    ("", "memory kept, per object", true),
    ("get_ns", "read of one object", false),
    ("indexed_ns", "read by an index, per object", true),
    ("list_ns", "read of all, per object", true),
];
const CPU: &str = COLUMNS[0].1;
const MEMORY: &str = COLUMNS[1].1;

/// Measures at every size.
pub(super) async fn measure(programs: &Programs, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && !options.sizes.is_empty(), "nothing to measure");
    ensure!(
        options.sizes.is_sorted() && options.sizes.iter().all(|size| *size > 0),
        "sizes that do not grow"
    );
    let mut figures = Figures::of(SECTION.name);
    let mut server = Embedded::start(programs).await?;
    for size in &options.sizes {
        eprintln!("==> growth: {size} custom resources");
        server.holds(*size).await?;
        for _ in 0..options.rounds {
            turn(&server, *size, &mut figures).await?;
        }
    }
    server.end().await?;
    let (section, medians) = (Some(&SECTION), String::new());
    let tables = format!("Medians of {} rounds.\n\n{}", options.rounds, table(&figures, &options.sizes));
    let plots = vec![("growth.svg", plot(&figures, &options.sizes).svg())];
    Ok(Report { section, tables, medians, plots, figures: figures.into_all() })
}

/// What one size costs, per object where it is about all of them.
async fn turn(server: &Embedded<'_>, size: usize, figures: &mut Figures) -> Result<()> {
    let mut idle = server.contestant(Contestant::OursIdle)?;
    let empty = idle.synced().await?.rss;
    idle.end().await?;
    let mut running = server.contestant(Contestant::OursDynamicReads)?;
    let synced = running.synced().await?;
    ensure!(synced.objects == size as u64, "it has {} of {size} objects", synced.objects);
    let kept = running.rested().await?.rss - empty;
    let times = running.told("reads").await?;
    running.end().await?;
    let (of, each) = (name(size), 1.0 / size as f64);
    figures.add(&of, CPU, "s", synced.cpu * each);
    figures.add(&of, MEMORY, "B", kept * each);
    for (field, what, is_of_all) in COLUMNS.iter().skip(2) {
        let nanos = times[field].as_f64().with_context(|| format!("no {field} in {times}"))?;
        figures.add(&of, what, "ns", if *is_of_all { nanos * each } else { nanos });
    }
    Ok(())
}

fn name(size: usize) -> String {
    format!("{size} objects")
}

/// What something costs at a size, of what it costs at the first.
fn relative(figures: &Figures, sizes: &[usize], size: usize, what: &str) -> Option<f64> {
    figures.ratio(&name(size), &name(*sizes.first()?), what)
}

fn table(figures: &Figures, sizes: &[usize]) -> String {
    let heads = COLUMNS.map(|(_, head, _)| head).join(" | ");
    let mut table =
        format!("| objects | {heads} | target | |\n|---|{}---|---|\n", "---|".repeat(COLUMNS.len()));
    for size in sizes {
        let ratios = COLUMNS.map(|(_, what, _)| relative(figures, sizes, *size, what));
        let met = ratios.iter().all(|ratio| ratio.is_some_and(|ratio| ratio <= TARGET));
        let shown = ratios.map(|found| found.map_or("–".to_owned(), ratio)).join(" | ");
        let verdict = if met { "met" } else { "missed" };
        let _ = writeln!(table, "| {size} | {shown} | ≤ {TARGET} | {verdict} |");
    }
    table
}

fn plot(figures: &Figures, sizes: &[usize]) -> Plot {
    let line = |(colour, (_, what, _)): (usize, &(&str, &str, bool))| {
        let points =
            sizes.iter().filter_map(|size| Some((*size as f64, relative(figures, sizes, *size, what)?)));
        // The legend is narrow.
        let name = what.trim_end_matches(", per object").to_owned();
        Line { name, colour, dashed: false, points: points.collect() }
    };
    let lines: Vec<Line> = COLUMNS.iter().enumerate().map(line).collect();
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
            for (_, what, _) in COLUMNS {
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
                "| 2000 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | ≤ 1.5 | met |",
                "| 20000 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | ≤ 1.5 | met |",
                "| 200000 | 1.6 | 1.6 | 1.6 | 1.6 | 1.6 | ≤ 1.5 | missed |",
            ]
        );
    }

    #[test]
    fn a_plot_has_a_line_for_each_cost() {
        let plot = plot(&grown(&[(2_000, 1.0), (20_000, 1.2)]), &[2_000, 20_000]);
        assert_eq!(plot.lines.len(), COLUMNS.len());
        assert!(plot.lines.iter().all(|line| line.points == [(2_000.0, 1.0), (20_000.0, 1.2)]));
    }
}
