//! `cargo xtask bench readers`: caches that are read by one and by eight threads while they are written to.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::contestant::Contestant;
use super::ground::{Ground, Turns};
use super::report::{Figures, Report};
use super::results::Section;
use super::rounds::{ratio, verdict};

pub(super) const SECTION: Section = Section {
    name: "readers",
    heading: "Many readers",
    about: "\
Pods, read by one thread and by eight on the real server while updates go on. *One* is by key, of 64 pods again and again;
*of a node* is by an index, of 8 nodes: both look into the typed pods. *With a label* looks at the names of those with one
of eight values of a label that has no index; *all, as they are at one time* at how many there are. kube-runtime has no
indexes: the pods of a node are found by looking at all. Times are those of the wall by the reads of all threads; ratios
are ours to theirs: less is better.",
};

/// How many read at once.
const READERS: [usize; 2] = [1, 8];

/// The answer's name of each kind of read, what it is, and whether it is not to be slower than others'.
const READS: [(&str, &str, bool); 4] = [
    ("get_ns", "one", true),
    ("indexed_ns", "of a node", true),
    ("labelled_ns", "with a label", false),
    ("snapshot_ns", "all, as they are at one time", false),
];

/// Updates per second meanwhile, and how many: for longer than it is read.
const RATE: u32 = 170;
const SECONDS: u32 = 8;

pub(super) async fn measure(ground: &Ground, options: &Turns) -> Result<Report> {
    ensure!(options.rounds > 0, "nothing to measure");
    let mut figures = Figures::of(SECTION.name);
    let mut writer = ground.writer()?;
    let mut found: Option<Value> = None;
    for round in 0..options.rounds {
        for at in 0..Contestant::TYPED.len() {
            let contestant = Contestant::TYPED[(at + round as usize) % Contestant::TYPED.len()];
            let name = contestant.name();
            eprintln!("==> readers, round {} of {}: {name}", round + 1, options.rounds);
            let mut running = ground.start(contestant)?;
            running.synced().await.with_context(|| name.to_owned())?;
            for readers in READERS {
                let (updates, command) =
                    (format!("rate {RATE} {}", RATE * SECONDS), format!("readers {readers}"));
                let (written, answer) = tokio::join!(writer.told(&updates), running.told(&command));
                written.context("the writer")?;
                let answer = answer.with_context(|| name.to_owned())?;
                for (field, what, _) in READS {
                    figures.add(name, &figure(what, readers), "ns", number(&answer, field)?);
                }
                // Updates change no number of what is found: who finds other things is not read as others are.
                let first = found.get_or_insert_with(|| answer["found"].clone());
                ensure!(*first == answer["found"], "{name} has read other things than {first}: {answer}");
            }
            running.end().await.with_context(|| name.to_owned())?;
        }
    }
    writer.end().await.context("the writer")?;
    let tables = tables(&figures, options.rounds, ground.objects);
    let (section, medians, plots) = (Some(&SECTION), medians(&figures), Vec::new());
    Ok(Report { section, tables, medians, plots, figures: figures.into_all() })
}

fn number(answer: &Value, field: &str) -> Result<f64> {
    answer[field].as_f64().with_context(|| format!("no {field} in {answer}"))
}

fn figure(what: &str, readers: usize) -> String {
    format!("{what}, by {readers}")
}

fn tables(figures: &Figures, rounds: u32, objects: usize) -> String {
    let mut text = format!(
        "Medians of {rounds} rounds with {objects} pods, {RATE} updates per second.\n\n\
         | read | readers | of client-go's | of kube-runtime's | target | |\n|---|---|---|---|---|---|\n"
    );
    let [client_go, kube_runtime, ours] = Contestant::TYPED.map(Contestant::name);
    for (_, what, is_judged) in READS {
        for readers in READERS {
            let ratios =
                [client_go, kube_runtime].map(|other| figures.ratio(ours, other, &figure(what, readers)));
            let [first, second] = ratios.map(|found| found.map_or("–".to_owned(), ratio));
            let worst = ratios.into_iter().flatten().reduce(f64::max);
            let (target, said) = if is_judged { ("≤ 1", verdict(worst, Some(1.0))) } else { ("–", "") };
            let _ = writeln!(text, "| {what} | {readers} | {first} | {second} | {target} | {said} |");
        }
    }
    text
}

/// As they are. Not for documents: they are of one machine.
fn medians(figures: &Figures) -> String {
    let mut text = "| ns per read | readers |".to_owned();
    for name in Contestant::TYPED.map(Contestant::name) {
        let _ = write!(text, " {name} |");
    }
    text += "\n|---|---|---|---|---|\n";
    for (_, what, _) in READS {
        for readers in READERS {
            let cells = Contestant::TYPED.map(|one| {
                let found = figures.median(one.name(), &figure(what, readers));
                found.map_or("–".to_owned(), |found| format!("{found:.0}"))
            });
            let _ = writeln!(text, "| {what} | {readers} | {} |", cells.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_two_ratios_is_held_against_the_target() {
        let mut figures = Figures::of("readers");
        for (name, one, all) in
            [("kube-informer", 2.0, 9.0), ("client-go, typed", 4.0, 1.0), ("kube-runtime, typed", 1.0, 1.0)]
        {
            figures.add(name, "one, by 8", "ns", one);
            figures.add(name, "all, as they are at one time, by 1", "ns", all);
        }
        let table = tables(&figures, 1, 50);
        assert!(table.contains("| one | 8 | 0.50 | 2.0 | ≤ 1 | missed |"), "{table}");
        assert!(table.contains("| one | 1 | – | – | ≤ 1 |  |"), "{table}");
        assert!(table.contains("| all, as they are at one time | 1 | 9.0 | 9.0 | – |  |"), "{table}");
        assert!(medians(&figures).contains("| one | 8 | 4 | 1 | 2 |"));
    }
}
