//! `cargo xtask bench micro`: what one object costs, beside serde_json, sonic-rs and prost.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use clap::Args;

use super::report::{Failed, Figure, Report};

mod compile;
mod counts;
mod table;

use table::{Measured, Size};

/// How often, and what else.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How often each case has its turn
    #[arg(long, default_value_t = 60)]
    pub(super) rounds: u32,
    /// Leave out the instruction counts, which take minutes
    #[arg(long)]
    pub(super) no_counts: bool,
    /// Leave out the compile times, which take minutes
    #[arg(long)]
    pub(super) no_compile: bool,
}

pub(super) fn measure(root: &Path, options: &Options) -> Result<Report> {
    let package = ["--release", "--package", "kube-informer-bench", "--bins"];
    let binary = crate::build::program(root, &package, "kube-informer-bench")?;
    let lines = |arguments: &[&str]| -> Result<Vec<Vec<String>>> {
        eprintln!("==> kube-informer-bench {}", arguments.join(" "));
        let output = Command::new(&binary).args(arguments).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "kube-informer-bench {arguments:?}: {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    };
    let cases = lines(&["list"])?;
    let times = lines(&["time", &options.rounds.to_string()])?;
    let counts = if options.no_counts { None } else { counts::count(&binary, cases.len())? };
    let measured = measured(&cases, &times, counts.as_deref())?;
    let sizes = sizes(&lines(&["sizes"])?)?;
    let mut tables =
        [table::targets(&measured), table::views(&measured), table::packing(&measured, &sizes)].join("\n");
    if !options.no_compile {
        tables = [tables, table::compile(&compile::measure(root)?)].join("\n");
    }
    let figures = measured.iter().flat_map(figures).collect();
    // People put these tables into the document, with words between them.
    let (medians, plots, failed) = (String::new(), Vec::new(), Failed::default());
    Ok(Report { section: None, tables, medians, plots, figures, failed })
}

/// One case, for who reads a file.
fn figures(case: &Measured) -> Vec<Figure> {
    let figure = |what: &str, unit: &'static str, value: f64| Figure {
        bench: "micro",
        of: case.name.clone(),
        what: what.to_owned(),
        unit,
        rounds: vec![value],
    };
    let mut figures = vec![figure("least", "ns", case.least), figure("median", "ns", case.median)];
    figures.extend(case.instructions.map(|count| figure("instructions", "1", count)));
    figures
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
