//! `cargo xtask bench`: what things cost, contestants side by side in one run.
//!
//! Nothing here fails because something is slow: the tables say what was reached and what was not. Tables are Markdown,
//! on stdout; what goes on is told on stderr.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use serde_json::Value;

mod compile;
mod counts;
mod queue;
mod results;
mod rounds;
mod sync;
mod table;

use table::{Measured, Size};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// What one object costs: framed, cut, packed, viewed; beside serde_json, sonic-rs and prost
    Micro {
        /// How often each case has its turn
        #[arg(long, default_value_t = 60)]
        rounds: u32,
        /// Leave out the instruction counts, which take minutes
        #[arg(long)]
        no_counts: bool,
        /// Leave out the compile times, which take minutes
        #[arg(long)]
        no_compile: bool,
    },
    /// The informer beside client-go and kube-runtime, on the real server: to sync, to follow, to be read
    Sync(sync::Options),
    /// The work queue beside client-go's and kube-runtime's scheduler: to add, to get, to wait, to retry
    Queue(queue::Options),
}

/// Measures what was asked for.
pub(crate) async fn run(command: &BenchCommand) -> Result<()> {
    match command {
        BenchCommand::Micro { rounds, no_counts, no_compile } => micro(*rounds, *no_counts, *no_compile),
        BenchCommand::Sync(options) => sync::run(options).await,
        BenchCommand::Queue(options) => queue::run(options),
    }
}

fn micro(rounds: u32, no_counts: bool, no_compile: bool) -> Result<()> {
    let root = crate::root();
    let binary =
        build(&root, &["--release", "--package", "kube-informer-bench", "--bins"], "kube-informer-bench")?;
    let lines = |arguments: &[&str]| -> Result<Vec<Vec<String>>> {
        eprintln!("==> kube-informer-bench {}", arguments.join(" "));
        let output = Command::new(&binary).args(arguments).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "kube-informer-bench {arguments:?}: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    };
    let cases = lines(&["list"])?;
    let times = lines(&["time", &rounds.to_string()])?;
    let counts = if no_counts { None } else { counts::count(&binary, cases.len())? };
    let measured = measured(&cases, &times, counts.as_deref())?;
    println!("{}", table::targets(&measured));
    println!("{}", table::views(&measured));
    println!("{}", table::packing(&measured, &sizes(&lines(&["sizes"])?)?));
    if !no_compile {
        println!("{}", table::compile(&compile::measure(&root)?));
    }
    Ok(())
}

fn measured(cases: &[Vec<String>], times: &[Vec<String>], counts: Option<&[f64]>) -> Result<Vec<Measured>> {
    ensure!(cases.len() == times.len(), "{} cases, and times of {}", cases.len(), times.len());
    let mut measured = Vec::new();
    for (at, (case, time)) in cases.iter().zip(times).enumerate() {
        let ([name, target], [timed, least, median]) = (&case[..], &time[..]) else {
            anyhow::bail!("not what was expected: {case:?}, {time:?}");
        };
        ensure!(name == timed, "the time of {timed} in the place of {name}");
        measured.push(Measured {
            name: name.clone(),
            target: if target.is_empty() { None } else { Some(target.parse()?) },
            least: least.parse()?,
            median: median.parse()?,
            instructions: counts.and_then(|counts| counts.get(at)).copied(),
        });
    }
    Ok(measured)
}

fn sizes(lines: &[Vec<String>]) -> Result<Vec<Size>> {
    let size = |line: &Vec<String>| -> Result<Size> {
        let [name, arrived, stored, packed] = &line[..] else {
            anyhow::bail!("not what was expected: {line:?}");
        };
        Ok(Size {
            name: name.clone(),
            arrived: arrived.parse()?,
            stored: stored.parse()?,
            packed: packed.parse()?,
        })
    };
    lines.iter().map(size).collect()
}

/// Builds, and says where the executable of that name is.
fn build(root: &Path, arguments: &[&str], name: &str) -> Result<PathBuf> {
    eprintln!("==> cargo build {}", arguments.join(" "));
    let mut command = Command::new(crate::cargo());
    kube_informer_testbed::examples::without_package(&mut command);
    let output = command
        .args(["build", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "cargo build {arguments:?}: {}", output.status);
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    executable.with_context(|| format!("cargo build {arguments:?} made no {name}"))
}
