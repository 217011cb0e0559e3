//! The step `bench`: what measures is linted and tested as everything else is, and measures once, with very little.
//!
//! What is measured so means nothing; that it is measured, and written to a file, does. Everything that is compared is built for
//! it, which takes minutes by itself.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;

use super::{BENCH, Run, Step};
use crate::{bench, process};

/// So few that it is over soon, and so many that an object is not written again before its last change is told.
const PODS: &str = "200";

impl Run {
    pub(super) async fn bench(&mut self, step: Step) -> anyhow::Result<()> {
        if !self.full {
            self.report.skip(step.name(), "compiles a lot; only with --full");
            return Ok(());
        }
        let args = [&BENCH[..], &["--all-targets", "--", "-D", "warnings"]].concat();
        self.component(step, "clippy", "clippy", &args).await?;
        let args = [&["test"], &BENCH[..], &["--lib", "--bins", "--tests", "--no-fail-fast"]].concat();
        self.tests(step, &args).await?;
        if !self.has_go("bench/peers").await {
            return Ok(());
        }
        for subcommand in ["vet", "test"] {
            let mut command = Command::new("go");
            command.args([subcommand, "./..."]).current_dir(self.root.join("bench/peers"));
            self.command(step, command).await?;
        }
        self.measured(step).await
    }

    /// All of it in one run, as people start it.
    async fn measured(&mut self, step: Step) -> anyhow::Result<()> {
        let file =
            Figures(std::env::temp_dir().join(format!("kube-informer-figures-{}", std::process::id())));
        let name = format!("cargo xtask bench --quick --pods {PODS}");
        println!("--- {name}");
        let args = [
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "bench",
            "--quick",
            "--pods",
            PODS,
            "--no-results",
        ];
        let mut command = self.cargo(&args);
        command.arg("--json").arg(&file.0);
        let ended = process::stream(command, step.limit(self.full), |_| ControlFlow::Continue(())).await?;
        if !ended.ok() {
            self.report.fail(name, ended.to_string());
            return Ok(());
        }
        let text = std::fs::read_to_string(&file.0).context("the bench has written no figures")?;
        match &unmeasured(&serde_json::from_str(&text)?)[..] {
            [] => self.report.pass(1),
            missing => self.report.fail(name, format!("no figures of {}", missing.join(", "))),
        }
        Ok(())
    }
}

/// The file for the figures, gone with this value.
struct Figures(PathBuf);

impl Drop for Figures {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The benchmarks of which there is no figure in what a run has written.
fn unmeasured(run: &Value) -> Vec<&'static str> {
    let figures = run["figures"].as_array().map_or(&[][..], Vec::as_slice);
    let is_there =
        |name| figures.iter().any(|figure| figure["bench"] == name && figure["median"].is_number());
    bench::names().filter(|name| !is_there(*name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_benchmark_without_figures_is_missed() {
        let figure = |bench: &str| json!({ "bench": bench, "median": 1.5 });
        let figures: Vec<Value> = bench::names().map(figure).collect();
        assert_eq!(figures.len(), 8);
        assert!(unmeasured(&json!({ "figures": figures })).is_empty());
        let mut fewer = figures.clone();
        fewer.retain(|figure| figure["bench"] != "relist");
        fewer
            .iter_mut()
            .filter(|figure| figure["bench"] == "queue")
            .for_each(|figure| drop(figure["median"].take()));
        assert_eq!(unmeasured(&json!({ "figures": fewer })), ["relist", "queue"]);
        assert_eq!(unmeasured(&json!({})).len(), 8);
    }
}
