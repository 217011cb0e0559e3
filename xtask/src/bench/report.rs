//! What a benchmark has found: for the document, for a file, for who sits there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::machine::Machine;
use super::results::{self, Section};
use super::rounds::median;

/// Where to put it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Output {
    /// Leave bench/RESULTS.md and its plots as they are
    #[arg(long)]
    no_results: bool,
    /// Write every figure of every round into this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Output {
    /// The same, and the document stays as it is.
    pub(super) fn without_results(self) -> Self {
        Self { no_results: true, ..self }
    }

    pub(super) fn has_results(&self) -> bool {
        !self.no_results
    }
}

/// What one benchmark has found.
#[derive(Debug)]
pub(super) struct Report {
    /// Its place in the document; none where people put it there.
    pub(super) section: Option<&'static Section>,
    /// What is written there: tables, in Markdown.
    pub(super) tables: String,
    /// What they are made of, for who sits there: of one machine.
    pub(super) medians: String,
    /// Files of `bench/plots`, by their names.
    pub(super) plots: Vec<(&'static str, String)>,
    pub(super) figures: Vec<Figure>,
    pub(super) failed: Failed,
}

/// Turns that failed. They keep nobody else from being measured; the run fails at its end.
#[derive(Debug, Default)]
pub(super) struct Failed {
    turns: Vec<String>,
}

impl Failed {
    /// What a turn has found; nothing where it failed, which is told and kept.
    pub(super) fn caught<T>(&mut self, turn: &str, found: Result<T>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                eprintln!("FAILED: {turn}: {error:#}");
                self.turns.push(turn.to_owned());
                None
            }
        }
    }

    /// For the document: nothing where nothing failed.
    fn text(&self) -> String {
        if self.turns.is_empty() {
            return String::new();
        }
        format!("Not measured, because it failed: {}.\n\n", self.turns.join("; "))
    }
}

/// One thing that was measured, in every round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// The benchmark.
    pub(super) bench: &'static str,
    /// Of whom.
    pub(super) of: String,
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) rounds: Vec<f64>,
}

/// The figures of one benchmark, in the order in which they came.
#[derive(Debug)]
pub(super) struct Figures {
    bench: &'static str,
    all: Vec<Figure>,
}

impl Figures {
    pub(super) fn of(bench: &'static str) -> Self {
        Self { bench, all: Vec::new() }
    }

    pub(super) fn add(&mut self, of: &str, what: &str, unit: &'static str, value: f64) {
        eprintln!("    {of}: {what}: {value:.4} {unit}");
        match self.all.iter_mut().find(|figure| figure.of == of && figure.what == what) {
            Some(figure) => figure.rounds.push(value),
            None => self.all.push(Figure {
                bench: self.bench,
                of: of.to_owned(),
                what: what.to_owned(),
                unit,
                rounds: vec![value],
            }),
        }
    }

    /// All values of the rounds.
    pub(super) fn rounds(&self, of: &str, what: &str) -> &[f64] {
        let found = self.all.iter().find(|figure| figure.of == of && figure.what == what);
        found.map_or(&[], |figure| &figure.rounds)
    }

    /// The median of the rounds.
    pub(super) fn median(&self, of: &str, what: &str) -> Option<f64> {
        median(self.rounds(of, what))
    }

    /// What the median of one is of that of the other.
    pub(super) fn ratio(&self, one: &str, other: &str, what: &str) -> Option<f64> {
        Some(self.median(one, what)? / self.median(other, what)?)
    }

    pub(super) fn into_all(self) -> Vec<Figure> {
        self.all
    }
}

/// Where the reports of one run go.
pub(super) struct Reports {
    root: PathBuf,
    output: Output,
    machine: Machine,
    began: Instant,
    figures: Vec<Value>,
}

impl Reports {
    /// Nothing yet. The machine is looked at now, before it has anything to do.
    pub(super) fn begin(output: &Output) -> Self {
        let root = crate::root();
        let (machine, began) = (Machine::look(&root), Instant::now());
        Self { root, output: output.clone(), machine, began, figures: Vec::new() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    #[cfg(test)]
    pub(super) fn figures(&self) -> &[Value] {
        &self.figures
    }

    /// One benchmark is over: what it has found is written at once, whatever becomes of those that follow. It is an error
    /// where some of its turns failed; where none was measured, nothing is written.
    pub(super) fn add(&mut self, report: Report) -> Result<()> {
        ensure!(!report.figures.is_empty(), "nothing was measured");
        self.write(&report)?;
        let turns = report.failed.turns;
        if !turns.is_empty() {
            bail!("failed, and everything else is measured: {}", turns.join("; "));
        }
        Ok(())
    }

    fn write(&mut self, report: &Report) -> Result<()> {
        let Report { section, tables, medians, plots, figures, failed } = report;
        let tables = failed.text() + tables;
        println!("{medians}\n{tables}");
        self.figures.extend(figures.iter().map(Figure::json));
        self.write_json()?;
        let (Some(section), true) = (section, self.output.has_results()) else { return Ok(()) };
        let folder = self.root.join("bench/plots");
        let mut shown = String::new();
        for (name, svg) in plots {
            std::fs::create_dir_all(&folder).context("cannot make bench/plots")?;
            let file = folder.join(name);
            std::fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
            shown += &format!("\n![{}](plots/{name})\n", name.trim_end_matches(".svg").replace('-', " "));
        }
        results::write(&self.root, section, &format!("{}\n\n{tables}{shown}", self.machine.text()))
    }

    /// The run is over: how long it took is told, and is in the file.
    pub(super) fn end(&self) -> Result<()> {
        eprintln!("the run took {:.1} minutes", self.began.elapsed().as_secs_f64() / 60.0);
        self.write_json()
    }

    fn write_json(&self) -> Result<()> {
        let Some(file) = &self.output.json else { return Ok(()) };
        let text = serde_json::to_string_pretty(&self.json(self.began.elapsed()))?;
        std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("written to {}", file.display());
        Ok(())
    }

    fn json(&self, took: Duration) -> Value {
        json!({ "run": self.machine.json(took), "figures": self.figures })
    }
}

impl Figure {
    fn json(&self) -> Value {
        let Self { bench, of, what, unit, rounds } = self;
        json!({
            "bench": bench, "of": of, "what": what, "unit": unit, "median": median(rounds), "rounds": rounds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_the_run_took_is_in_the_file() {
        let reports = Reports::begin(&Output::default());
        assert_eq!(reports.json(Duration::from_millis(90_500))["run"]["seconds"], 90.5);
    }

    #[test]
    fn the_file_has_every_figure_as_soon_as_its_benchmark_is_over() {
        let file = std::env::temp_dir().join(format!("xtask-report-{}.json", std::process::id()));
        let read = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
        let report = |bench: &'static str, failed| {
            let mut figures = Figures::of(bench);
            figures.add("ours", "drops", "1", 7.0);
            let (tables, medians, plots) = (String::new(), String::new(), Vec::new());
            Report { section: None, tables, medians, plots, figures: figures.into_all(), failed }
        };
        let figure = |bench: &str| json!({ "bench": bench, "of": "ours", "what": "drops", "unit": "1", "median": 7.0, "rounds": [7.0] });
        let mut reports = Reports::begin(&Output { no_results: true, json: Some(file.clone()) });
        reports.add(report("rain", Failed::default())).unwrap();
        assert_eq!(read()["figures"], json!([figure("rain")]));
        // What was measured of one that has failed is there, too.
        let mut failed = Failed::default();
        failed.caught("theirs, round 1", Err::<(), _>(anyhow::anyhow!("it hails")));
        reports.add(report("snow", failed)).unwrap_err();
        std::fs::write(&file, "").unwrap();
        reports.end().unwrap();
        assert_eq!(read()["figures"], json!([figure("rain"), figure("snow")]));
        assert!(read()["run"]["seconds"].is_number(), "{}", read());
        std::fs::remove_file(&file).unwrap();
        let nowhere = Output { no_results: true, json: Some("/nowhere/at/all".into()) };
        let why = Reports::begin(&nowhere).add(report("rain", Failed::default())).unwrap_err();
        assert!(why.to_string().contains("/nowhere/at/all"), "{why}");
    }

    #[test]
    fn the_document_says_what_failed() {
        let mut failed = Failed::default();
        assert_eq!(failed.text(), "");
        failed.caught("client-go, round 2", Err::<(), _>(anyhow::anyhow!("it rains")));
        assert_eq!(failed.text(), "Not measured, because it failed: client-go, round 2.\n\n");
    }

    #[test]
    fn a_figure_has_the_values_of_all_rounds() {
        let mut figures = Figures::of("latency");
        figures.add("ours", "p50", "ms", 2.0);
        figures.add("ours", "p50", "ms", 4.0);
        figures.add("theirs", "p50", "ms", 6.0);
        assert_eq!(figures.ratio("ours", "theirs", "p50"), Some(0.5));
        assert_eq!(figures.median("ours", "p99"), None);
        let expected = json!({
            "bench": "latency", "of": "ours", "what": "p50", "unit": "ms", "median": 3.0, "rounds": [2.0, 4.0],
        });
        assert_eq!(figures.into_all().first().map(Figure::json), Some(expected));
    }
}
