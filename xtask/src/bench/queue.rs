//! `cargo xtask bench queue`: the work queue beside client-go's and kube-runtime's scheduler.
//!
//! A contestant is a program that plays one case with so many keys and measures itself, see `bench/queue/src/lib.rs`.
//! Each case is a process of its own. The contestants take turns at every case and size, beginning with another one in
//! every round, so that those that are compared ran within seconds of each other. The medians of the rounds count.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use tokio::process::Command;

use super::contestant::as_it_comes;
use super::report::{Failed, Figure, Output, Report};
use super::results::Section;
use super::rounds::Rounds;
use super::running::PATIENCE;

mod table;

/// How many keys, and how often.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// With how many keys
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000, 1_000_000])]
    pub(super) keys: Vec<usize>,
    /// How often each contestant has its turn
    #[arg(long, default_value_t = 5)]
    pub(super) rounds: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

pub(super) const SECTION: Section = Section {
    name: "queue",
    heading: "The work queue",
    about: "\
The work queue beside client-go's typed rate-limiting queue and kube-runtime's scheduler. Each case is a process by itself,
with as many threads as there are processors, and begins with a new queue. Ratios are ours to theirs, of the time and of what
the processor did: less is better. Where keys wait for their time, the processor alone is asked. Memory is the most that the
program ever had, its keys included; with few keys that is the program itself, and is left out. Those in Rust are compiled by
cargo's release profile.",
};

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Contestant {
    ClientGo,
    KubeRuntime,
    Ours,
}

/// One of the contestants' cases, by the name that they know it by.
#[derive(Debug, PartialEq, Eq)]
struct Case {
    name: &'static str,
    work: &'static str,
    /// Keys have to wait for their time in it: the wall says how long that is, and nothing about the queue.
    waits: bool,
}

const CASES: [Case; 7] = [
    Case { name: "fill-and-drain", work: "add all, one worker gets all", waits: false },
    Case { name: "fill-and-drain-by-four", work: "add all, four workers get all", waits: false },
    Case { name: "add-pending", work: "add what is pending already", waits: false },
    Case { name: "steady", work: "get, done, add again, all others pending", waits: false },
    Case { name: "delayed", work: "add after up to 10 ms, one worker gets all", waits: true },
    Case { name: "rate-limited", work: "add rate limited, get, forget", waits: true },
    Case { name: "forget", work: "forget what failed", waits: false },
];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    /// Nanoseconds per key.
    Wall,
    Cpu,
    /// Bytes, at most.
    Peak,
}

/// Of whom, at which case, with how many keys.
type Measured = Rounds<(Contestant, &'static str, usize, What)>;

impl Contestant {
    const ALL: [Self; 3] = [Self::ClientGo, Self::KubeRuntime, Self::Ours];

    fn program(self) -> &'static str {
        match self {
            Self::ClientGo => "bench-queue-client-go",
            Self::KubeRuntime => "bench-queue-kube-runtime",
            Self::Ours => "bench-queue-kube-informer",
        }
    }

    fn name(self) -> &'static str {
        self.program().trim_start_matches("bench-queue-")
    }
}

/// With up to so many keys a case is over in a moment, and two of them differ by more than contestants do.
const FEW: usize = 10_000;

/// So often such a case is played for each time that another one is.
const OFTENER: u32 = 5;

/// Has all cases played.
pub(super) async fn measure(root: &Path, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && options.keys.iter().all(|keys| *keys > 0), "nothing to measure");
    let folder = build(root)?;
    let (mut measured, mut failed) = (Measured::default(), Failed::default());
    for round in 0..options.rounds * OFTENER {
        for keys in &options.keys {
            if round >= options.rounds && *keys > FEW {
                continue;
            }
            for case in &CASES {
                eprintln!("==> round {}: {}, {keys} keys", round + 1, case.name);
                for at in 0..Contestant::ALL.len() {
                    let contestant = Contestant::ALL[(at + round as usize) % Contestant::ALL.len()];
                    let values = play(&folder, contestant, case, *keys).await.and_then(|answer| {
                        eprintln!("    {contestant:?}: {answer}");
                        values(&answer)
                    });
                    let turn = format!("{}, {}, {keys} keys", contestant.name(), case.name);
                    let values = failed.caught(&format!("{turn}, round {}", round + 1), values);
                    for (what, value) in values.unwrap_or_default() {
                        measured.add((contestant, case.name, *keys, what), value);
                    }
                }
            }
        }
    }
    let (tables, medians) = (table::section(&measured, options), table::medians(&measured, &options.keys));
    let figures = figures(&measured, &options.keys);
    Ok(Report { section: Some(&SECTION), tables, medians, plots: Vec::new(), figures, failed })
}

/// Every value, for who reads a file.
fn figures(measured: &Measured, sizes: &[usize]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for case in &CASES {
        for keys in sizes {
            for contestant in Contestant::ALL {
                for (what, words, unit) in [
                    (What::Wall, "wall per key", "ns"),
                    (What::Cpu, "CPU per key", "ns"),
                    (What::Peak, "peak memory", "B"),
                ] {
                    let rounds = measured.values(&(contestant, case.name, *keys, what)).to_vec();
                    let of = contestant.name().to_owned();
                    let what = format!("{}, {keys} keys, {words}", case.name);
                    let figure = Figure { bench: SECTION.name, of, what, unit, rounds };
                    figures.extend((!figure.rounds.is_empty()).then_some(figure));
                }
            }
        }
    }
    figures
}

/// Builds the programs; the folder that they are in.
fn build(root: &Path) -> Result<PathBuf> {
    let package = ["--release", "--package", "kube-informer-bench-queue", "--bins"];
    let ours = crate::build::program(root, &package, Contestant::Ours.program())?;
    eprintln!("==> go build, in bench/peers");
    let client_go = ours.with_file_name(Contestant::ClientGo.program());
    let output = client_go.to_str().context("the path of the target folder is not UTF-8")?;
    crate::kinds::go(&root.join("bench/peers"), &["build", "-trimpath", "-o", output, "./queue"])?;
    Ok(ours.parent().context("a program that is in no folder")?.to_owned())
}

/// All get as many threads as the machine has processors, which is what each would take by itself.
async fn play(folder: &Path, contestant: Contestant, case: &Case, keys: usize) -> Result<Value> {
    let mut command = Command::new(folder.join(contestant.program()));
    command.args([case.name, &keys.to_string()]).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    as_it_comes(&mut command, &std::thread::available_parallelism()?.to_string());
    let child = command.spawn().context("it does not start")?;
    let output =
        tokio::time::timeout(PATIENCE, child.wait_with_output()).await.context("it does not end")??;
    ensure!(output.status.success(), "it ended with {}", output.status);
    let line = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&line).with_context(|| format!("not what was expected: {line}"))
}

/// What a contestant says that it took: nothing, where it left the case out.
fn values(answer: &Value) -> Result<Vec<(What, f64)>> {
    if answer["left_out"].is_string() {
        return Ok(Vec::new());
    }
    let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name} in {answer}"));
    Ok(vec![
        (What::Wall, number("wall_ns")?),
        (What::Cpu, number("cpu_ns")?),
        (What::Peak, number("peak_bytes")?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_measured_is_a_figure() {
        let mut measured = Measured::default();
        measured.add((Contestant::Ours, "steady", 10, What::Cpu), 2.5);
        measured.add((Contestant::Ours, "steady", 10, What::Cpu), 3.5);
        let figures = figures(&measured, &[10, 20]);
        let [figure] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!((&figure.of[..], &figure.rounds[..]), ("kube-informer", &[2.5, 3.5][..]));
        assert_eq!(figure.what, "steady, 10 keys, CPU per key");
    }

    #[test]
    fn a_case_that_was_left_out_has_no_values() {
        let answer =
            json!({ "case": "steady", "keys": 1000, "wall_ns": 2.5, "cpu_ns": 3, "peak_bytes": 4096 });
        let expected = [(What::Wall, 2.5), (What::Cpu, 3.0), (What::Peak, 4096.0)];
        assert_eq!(values(&answer).unwrap(), expected);
        assert_eq!(values(&json!({ "left_out": "it cannot" })).unwrap(), []);
        assert!(values(&json!({ "wall_ns": 1, "cpu_ns": 1 })).is_err());
    }
}
