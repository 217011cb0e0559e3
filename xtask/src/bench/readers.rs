//! `cargo xtask bench readers`: caches that are read by one and by eight threads while they are written to.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::contestant::Contestant;
use super::ground::{Ground, Turns};
use super::report::{Failed, Figures, Report};
use super::rest::rest;
use super::results::Section;
use super::rounds::{ratio, verdict};
use super::running::Running;

pub(super) const SECTION: Section = Section {
    name: "readers",
    heading: "Many readers",
    about: "\
Pods, read by one thread and by eight on the real server while updates go on; both begin when the machine has nothing to do
any more. *One* is by key, of 64 pods again and again;
*of a node* is by an index, of 8 nodes: both look into the typed pods. *With a label* looks at the names of those with one
of eight values of a label that has no index; *all, as they are at one time* at how many there are. kube-runtime has no
indexes: the pods of a node are found by looking at all.

What counts is *CPU*: what the whole process used meanwhile, by the reads of all threads. What it did for updates and to collect
garbage is part of it. *Wall* is the time that passed, by the same reads; it depends on who gets the processors: ours and
kube-runtime's readers are threads of the kernel, client-go's are goroutines on as many threads as there are processors, and
server and writer run on the same ones. Ratios are ours to theirs: less is better. Below are the updates per second that were
written while each was read, and those that its handler saw meanwhile.",
};

/// How many read at once.
const READERS: [usize; 2] = [1, 8];

/// The answer's name of each kind of read, what it is, and whether it is not to cost more than others'.
const READS: [(&str, &str, bool); 4] = [
    ("get", "one", true),
    ("indexed", "of a node", true),
    ("labelled", "with a label", false),
    ("snapshot", "all, as they are at one time", false),
];

/// How long a read takes, and the end of its name in an answer.
const TIMES: [(&str, &str); 2] = [("CPU", "_cpu_ns"), ("wall", "_ns")];

/// Updates per second meanwhile, and how many: for longer than it is read.
const RATE: u32 = 170;
const SECONDS: u32 = 8;

/// What is told of the updates.
const WRITTEN: &str = "updates written per second";
const SEEN: &str = "updates seen per second";

/// What one contestant has found: of which figure, in which unit.
type Found = Vec<(String, &'static str, f64)>;

pub(super) async fn measure(ground: &Ground, options: &Turns) -> Result<Report> {
    ensure!(options.rounds > 0, "nothing to measure");
    let (mut figures, mut failed) = (Figures::of(SECTION.name), Failed::default());
    let mut writer = ground.writer()?;
    let mut read: Option<Value> = None;
    for round in 0..options.rounds {
        for at in 0..Contestant::TYPED.len() {
            let contestant = Contestant::TYPED[(at + round as usize) % Contestant::TYPED.len()];
            let name = contestant.name();
            eprintln!("==> readers, round {} of {}: {name}", round + 1, options.rounds);
            rest().await;
            let found = turn(ground, contestant, &mut writer, &mut read).await;
            let found = failed.caught(&format!("{name}, round {}", round + 1), found);
            for (what, unit, value) in found.unwrap_or_default() {
                figures.add(name, &what, unit, value);
            }
        }
    }
    writer.end().await.context("the writer")?;
    let tables = tables(&figures, options.rounds, ground.objects);
    let (section, medians, plots) = (Some(&SECTION), medians(&figures), Vec::new());
    Ok(Report { section, tables, medians, plots, figures: figures.into_all(), failed })
}

/// One contestant with every number of readers. What is read is the same for all of them.
async fn turn(
    ground: &Ground,
    contestant: Contestant,
    writer: &mut Running,
    read: &mut Option<Value>,
) -> Result<Found> {
    let mut running = ground.start(contestant)?;
    running.synced().await?;
    let mut found = Found::new();
    for readers in READERS {
        rest().await;
        let updates = format!("rate {RATE} {}", RATE * SECONDS);
        let (written, looked) = tokio::join!(writer.told(&updates), looked(&mut running, readers));
        let (written, (answer, seen)) = (written.context("the writer")?, looked?);
        for (field, what, _) in READS {
            for (time, end) in TIMES {
                let nanos = number(&answer, &format!("{field}{end}"))?;
                found.push((figure(what, readers, time), "ns", nanos));
            }
        }
        let written = number(&written, "written")? / number(&written, "seconds")?;
        found.push((by(WRITTEN, readers), "1/s", written));
        found.push((by(SEEN, readers), "1/s", seen));
        // Updates change no number of what is found: who finds other things is not read as others are.
        let first = read.get_or_insert_with(|| answer["found"].clone());
        ensure!(*first == answer["found"], "it has read other things than {first}: {answer}");
    }
    running.end().await?;
    Ok(found)
}

/// What so many readers say, and the updates per second that the handler saw meanwhile.
async fn looked(running: &mut Running, readers: usize) -> Result<(Value, f64)> {
    let before = running.after("usage").await?;
    let answer = running.told(&format!("readers {readers}")).await?;
    let after = running.after("usage").await?;
    let seen = (after.updates - before.updates) as f64;
    Ok((answer, seen / (after.wall - before.wall)))
}

fn number(answer: &Value, field: &str) -> Result<f64> {
    answer[field].as_f64().with_context(|| format!("no {field} in {answer}"))
}

fn figure(what: &str, readers: usize, time: &str) -> String {
    format!("{}, {time}", by(what, readers))
}

fn by(what: &str, readers: usize) -> String {
    format!("{what}, by {readers}")
}

fn tables(figures: &Figures, rounds: u32, objects: usize) -> String {
    let mut text = format!(
        "Medians of {rounds} rounds with {objects} pods, {RATE} updates per second.\n\n\
         | read | readers | CPU, of client-go's | of kube-runtime's | target | | wall, of client-go's | of \
         kube-runtime's |\n|---|---|---|---|---|---|---|---|\n"
    );
    let [client_go, kube_runtime, ours] = Contestant::TYPED.map(Contestant::name);
    for (_, what, is_judged) in READS {
        for readers in READERS {
            let [cpu, wall] = TIMES.map(|(time, _)| {
                [client_go, kube_runtime]
                    .map(|other| figures.ratio(ours, other, &figure(what, readers, time)))
            });
            let worst = cpu.into_iter().flatten().reduce(f64::max);
            let (target, said) = if is_judged { ("≤ 1", verdict(worst, Some(1.0))) } else { ("–", "") };
            let [cpu, wall] =
                [cpu, wall].map(|both| both.map(|found| found.map_or("–".to_owned(), ratio)).join(" | "));
            let _ = writeln!(text, "| {what} | {readers} | {cpu} | {target} | {said} | {wall} |");
        }
    }
    text += "\n| | readers | updates written per second | seen |\n|---|---|---|---|\n";
    for contestant in [ours, client_go, kube_runtime] {
        for readers in READERS {
            let [written, seen] = [WRITTEN, SEEN].map(|what| {
                let found = figures.median(contestant, &by(what, readers));
                found.map_or("–".to_owned(), |found| format!("{found:.0}"))
            });
            let _ = writeln!(text, "| {contestant} | {readers} | {written} | {seen} |");
        }
    }
    text
}

/// As they are. Not for documents: they are of one machine.
fn medians(figures: &Figures) -> String {
    let mut text = "| ns per read | readers | |".to_owned();
    for name in Contestant::TYPED.map(Contestant::name) {
        let _ = write!(text, " {name} |");
    }
    text += "\n|---|---|---|---|---|---|\n";
    for (_, what, _) in READS {
        for readers in READERS {
            for (time, _) in TIMES {
                let cells = Contestant::TYPED.map(|one| {
                    let found = figures.median(one.name(), &figure(what, readers, time));
                    found.map_or("–".to_owned(), |found| format!("{found:.0}"))
                });
                let _ = writeln!(text, "| {what} | {readers} | {time} | {} |", cells.join(" | "));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_two_ratios_of_the_processor_is_held_against_the_target() {
        let mut figures = Figures::of("readers");
        for (name, one, all) in
            [("kube-informer", 2.0, 9.0), ("client-go, typed", 4.0, 1.0), ("kube-runtime, typed", 1.0, 1.0)]
        {
            figures.add(name, "one, by 8, CPU", "ns", one);
            figures.add(name, "of a node, by 1, wall", "ns", all);
            figures.add(name, "all, as they are at one time, by 1, CPU", "ns", all);
        }
        let table = tables(&figures, 1, 50);
        assert!(table.contains("| one | 8 | 0.50 | 2.0 | ≤ 1 | missed | – | – |"), "{table}");
        assert!(table.contains("| of a node | 1 | – | – | ≤ 1 |  | 9.0 | 9.0 |"), "{table}");
        let all = "| all, as they are at one time | 1 | 9.0 | 9.0 | – |  | – | – |";
        assert!(table.contains(all), "{table}");
        assert!(medians(&figures).contains("| one | 8 | CPU | 4 | 1 | 2 |"));
    }

    #[test]
    fn the_updates_meanwhile_are_told_of_each() {
        let mut figures = Figures::of("readers");
        figures.add("client-go, typed", "updates written per second, by 8", "1/s", 169.6);
        figures.add("client-go, typed", "updates seen per second, by 8", "1/s", 12.0);
        let table = tables(&figures, 1, 50);
        assert!(table.contains("| client-go, typed | 8 | 170 | 12 |"), "{table}");
        assert!(table.contains("| kube-informer | 1 | – | – |"), "{table}");
    }
}
