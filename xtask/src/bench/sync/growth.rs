//! How what it costs grows with the number of objects, on the embedded server.
//!
//! One server gets more and more custom resources; at each number our informer syncs them and is read, some times over.
//! What an object costs is held against what it costs where there are few: in a linear cost it stays the same.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::contestant::{Contestant, Programs, Running};
use super::measured::{Measured, What};
use crate::bench::rounds::ratio;

/// So many objects.
const SIZES: [usize; 3] = [2_000, 20_000, 200_000];

/// What an object may cost of what it costs at the first size. Caches of the processor are not linear.
const TARGET: f64 = 1.5;

/// Which of the measures are per object; the others are about one.
const COLUMNS: [(What, &str, bool); 5] = [
    (What::SyncCpu, "CPU to sync, per object", true),
    (What::Rss, "memory kept, per object", true),
    (What::Get, "read of one object", false),
    (What::Indexed, "read by an index, per object", true),
    (What::List, "read of all, per object", true),
];

/// Measures at every size; the table for the document.
pub(super) async fn run(programs: &Programs, rounds: u32) -> Result<String> {
    let folder = programs.folder();
    let kubeconfig = folder.join("bench-sync-server.kubeconfig");
    let mut command = Command::new(folder.join("bench-sync-server"));
    command.arg(&kubeconfig);
    let mut server = Running::start(command)?;
    let mut idle = Measured::default();
    let mut sizes = Vec::new();
    for size in SIZES {
        eprintln!("==> growth: {size} custom resources");
        let there = server.told(&size.to_string()).await.context("the embedded server")?;
        ensure!(there == size, "the embedded server has {there} objects");
        let mut measured = Measured::default();
        for _ in 0..rounds {
            for contestant in [Contestant::OursIdle, Contestant::OursDynamicReads] {
                let (rss, values) = turn(programs, contestant, &kubeconfig, size).await?;
                let kept = if contestant == Contestant::OursIdle { &mut idle } else { &mut measured };
                kept.add(contestant, What::Rss, rss);
                for (what, value) in values {
                    measured.add(contestant, what, value);
                }
            }
        }
        sizes.push((size, measured));
    }
    server.end().await.context("the embedded server")?;
    Ok(table(&sizes, idle.median(Contestant::OursIdle, What::Rss).unwrap_or_default()))
}

async fn turn(
    programs: &Programs,
    contestant: Contestant,
    kubeconfig: &Path,
    size: usize,
) -> Result<(f64, Vec<(What, f64)>)> {
    let mut running = programs.start(contestant, kubeconfig)?;
    let synced = running.synced().await?;
    let mut values = Vec::new();
    if contestant != Contestant::OursIdle {
        ensure!(synced.objects == size as u64, "it has {} of {size} objects", synced.objects);
        values.push((What::SyncCpu, synced.cpu));
        values.extend(super::turn::times(&running.told("reads").await?)?);
    }
    running.end().await?;
    Ok((synced.rss, values))
}

fn table(sizes: &[(usize, Measured)], idle: f64) -> String {
    let heads = COLUMNS.map(|(_, head, _)| head).join(" | ");
    let mut table =
        format!("| objects | {heads} | target | |\n|---|{}---|---|\n", "---|".repeat(COLUMNS.len()));
    let costs: Vec<[Option<f64>; 5]> = sizes
        .iter()
        .map(|(size, measured)| COLUMNS.map(|column| cost(measured, column, *size, idle)))
        .collect();
    let Some(first) = costs.first() else { return table };
    for ((size, _), costs) in sizes.iter().zip(&costs) {
        let ratios = costs.iter().zip(first).map(|(cost, first)| Some((*cost)? / (*first)?));
        let ratios: Vec<Option<f64>> = ratios.collect();
        let met = ratios.iter().all(|ratio| ratio.is_some_and(|ratio| ratio <= TARGET));
        let shown: Vec<String> = ratios.iter().map(|found| found.map_or("–".to_owned(), ratio)).collect();
        let verdict = if met { "met" } else { "missed" };
        let _ = writeln!(table, "| {size} | {} | ≤ {TARGET} | {verdict} |", shown.join(" | "));
    }
    table
}

fn cost(
    measured: &Measured,
    (what, _, per_object): (What, &str, bool),
    size: usize,
    idle: f64,
) -> Option<f64> {
    let value = measured.median(Contestant::OursDynamicReads, what)?;
    let value = if what == What::Rss { value - idle } else { value };
    Some(if per_object { value / size as f64 } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(size: usize, factor: f64) -> (usize, Measured) {
        let mut measured = Measured::default();
        for (what, _, per_object) in COLUMNS {
            let cost = if per_object { size as f64 } else { 1.0 } * factor;
            let idle = if what == What::Rss { 1000.0 } else { 0.0 };
            measured.add(Contestant::OursDynamicReads, what, cost + idle);
        }
        (size, measured)
    }

    #[test]
    fn a_linear_cost_stays_the_same_per_object() {
        let table = table(&[at(2_000, 1.0), at(20_000, 1.2), at(200_000, 1.6)], 1000.0);
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
}
