//! `cargo xtask bench relist`: what it costs when a watch ends with 410, and everything has to be listed again.
//!
//! A proxy stands between the contestant and the real server. It lets nothing of what happens through, objects are changed
//! meanwhile, and then it says that the version is too old, as a server does that has forgotten it. The contestant lists
//! again, and has to find out what was changed.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::contestant::Contestant;
use super::ground::{Ground, Turns};
use super::report::{Failed, Figures, Report};
use super::rest::rest;
use super::results::Section;
use super::rounds::ratio;
use super::running::Running;

pub(super) const SECTION: Section = Section {
    name: "relist",
    heading: "After a 410",
    about: "\
The watch of pods is told that its version is too old, and everything is listed again; one pod alone, the last of the list, in
place of none, so that the end can be seen, or one in a hundred was changed meanwhile, each in a process of its own. A turn
begins, and its watch ends, when the machine has nothing to do any more. All goes through a proxy, without TLS and compression.
*Wall* is from the 410 until the handler has seen everything that was changed: pauses before somebody asks again are part of it.
*CPU* is what the contestant used until it had nothing more to do. *Memory* is what it had at most meanwhile, more than before.
kube-runtime's handler is given every object again, and cannot tell which of them have changed. Ratios are ours to theirs: less
is better.",
};

/// How many of the objects are changed meanwhile, of a hundred; but one at least, so that the end can be seen.
const CHANGED: [usize; 2] = [0, 1];

/// What is measured of each.
const WHAT: [(&str, &str); 3] = [("wall", "s"), ("CPU", "s"), ("memory", "B")];

pub(super) async fn measure(ground: &Ground, options: &Turns) -> Result<Report> {
    ensure!(options.rounds > 0, "nothing to measure");
    let (mut figures, mut failed) = (Figures::of(SECTION.name), Failed::default());
    let mut writer = ground.writer()?;
    for round in 0..options.rounds {
        for at in 0..Contestant::TYPED.len() {
            let contestant = Contestant::TYPED[(at + round as usize) % Contestant::TYPED.len()];
            let name = contestant.name();
            eprintln!("==> relist, round {} of {}: {name}", round + 1, options.rounds);
            for percent in CHANGED {
                rest().await;
                let changed = (ground.objects * percent / 100).max(1);
                let turn = turn(ground, contestant, &mut writer, changed).await;
                let turn =
                    failed.caught(&format!("{name}, {}, round {}", self::changed(percent), round + 1), turn);
                for ((what, unit), value) in WHAT.into_iter().zip(turn.unwrap_or_default()) {
                    if let Some(value) = value {
                        figures.add(name, &figure(what, percent), unit, value);
                    }
                }
            }
        }
    }
    writer.end().await.context("the writer")?;
    let tables = tables(&figures, options.rounds, ground.objects);
    let (section, medians, plots) = (Some(&SECTION), medians(&figures), Vec::new());
    Ok(Report { section, tables, medians, plots, figures: figures.into_all(), failed })
}

/// With a process by itself: where one had listed again before, its memory would be there already.
async fn turn(
    ground: &Ground,
    contestant: Contestant,
    writer: &mut Running,
    changed: usize,
) -> Result<[Option<f64>; WHAT.len()]> {
    let kubeconfig = ground.programs.folder().join("bench-sync-proxy.kubeconfig");
    let mut proxy = proxy(ground, &kubeconfig).await.context("the proxy")?;
    let mut running = ground.programs.start(contestant, &kubeconfig)?;
    let synced = running.synced().await?;
    ensure!(
        synced.objects == ground.objects as u64,
        "it has {} of {} objects",
        synced.objects,
        ground.objects
    );
    running.rested().await?;
    let values = relist(&mut running, &mut proxy, writer, changed).await?;
    running.end().await?;
    proxy.end().await.context("the proxy")?;
    Ok(values)
}

async fn proxy(ground: &Ground, kubeconfig: &Path) -> Result<Running> {
    let mut command = ground.programs.tool("bench-sync-proxy");
    command.arg(ground.kubeconfig()).arg(kubeconfig);
    let mut proxy = Running::start(command)?;
    proxy.said().await?;
    Ok(proxy)
}

/// Wall, CPU and memory of one of them, with so many objects changed meanwhile; no memory where the kernel keeps its peak.
async fn relist(
    running: &mut Running,
    proxy: &mut Running,
    writer: &mut Running,
    changed: usize,
) -> Result<[Option<f64>; WHAT.len()]> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    running.told(&format!("since {now}")).await?;
    proxy.told("deaf").await.context("the proxy")?;
    writer.told(&format!("change {changed}")).await.context("the writer")?;
    rest().await;
    let knows_peak = running.forget_peak()?;
    let before = running.rested().await?;
    ensure!(before.fresh == 0, "it saw {} changes before it was told to list again", before.fresh);
    let start = Instant::now();
    let told = proxy.told("gone").await.context("the proxy")?;
    ensure!(told["open"] == 1, "not one watch, as expected: {told}");
    let seen = running.after(&format!("fresh {changed}")).await?;
    let wall = start.elapsed().as_secs_f64();
    ensure!(seen.fresh >= changed as u64, "it saw {} of {changed} changes", seen.fresh);
    let after = running.rested().await?;
    let memory = knows_peak.then_some((after.peak - before.rss).max(0.0));
    Ok([Some(wall), Some(after.cpu - before.cpu), memory])
}

fn figure(what: &str, percent: usize) -> String {
    format!("{what}, {} changed", changed(percent))
}

/// How many of the objects are.
fn changed(percent: usize) -> String {
    if percent == 0 { "one".to_owned() } else { format!("{percent} %") }
}

fn tables(figures: &Figures, rounds: u32, objects: usize) -> String {
    let mut text = format!(
        "Medians of {rounds} rounds with {objects} pods.\n\n\
         | changed | | of client-go's | of kube-runtime's |\n|---|---|---|---|\n"
    );
    let [client_go, kube_runtime, ours] = Contestant::TYPED.map(Contestant::name);
    for percent in CHANGED {
        for (what, _) in WHAT {
            let cell = |other| {
                let found = figures.ratio(ours, other, &figure(what, percent));
                found.filter(|found| found.is_finite()).map_or("–".to_owned(), ratio)
            };
            let (first, second) = (cell(client_go), cell(kube_runtime));
            let _ = writeln!(text, "| {} | {what} | {first} | {second} |", changed(percent));
        }
    }
    text
}

/// As they are. Not for documents: they are of one machine.
fn medians(figures: &Figures) -> String {
    let mut text = "| | changed | wall, s | CPU, s | memory, MB |\n|---|---|---|---|---|\n".to_owned();
    for name in Contestant::TYPED.map(Contestant::name) {
        for percent in CHANGED {
            let cells = WHAT.map(|(what, unit)| {
                let scale = if unit == "B" { 1e6 } else { 1.0 };
                let found = figures.median(name, &figure(what, percent));
                found.map_or("–".to_owned(), |found| format!("{:.2}", found / scale))
            });
            let _ = writeln!(text, "| {name} | {} | {} |", changed(percent), cells.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_costs_is_a_ratio_to_what_it_costs_others() {
        let mut figures = Figures::of("relist");
        for (name, value) in
            [("kube-informer", 1.0), ("client-go, typed", 4.0), ("kube-runtime, typed", 10.0)]
        {
            figures.add(name, "CPU, one changed", "s", value);
        }
        let table = tables(&figures, 1, 50);
        assert!(table.contains("| one | CPU | 0.25 | 0.10 |"), "{table}");
        assert!(table.contains("| 1 % | wall | – | – |"), "{table}");
        assert!(medians(&figures).contains("| kube-informer | one | – | 1.00 | – |"));
    }
}
