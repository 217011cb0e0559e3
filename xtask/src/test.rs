//! `cargo xtask test`: every check and every test, in one command.
//!
//! The steps run one after the other ([`Step`], in this order); a failed one does not keep
//! the next from running. At the end come the times, what was left out and why, what
//! failed, and the line `N passed, N failed, N skipped`. The exit status is 0 if nothing
//! failed.
//!
//! A part whose tool is missing is left out, by name. With `CI=true` it is a failure
//! instead, if the tool can be installed; cargo-deny alone is left out there, too, because
//! building it takes longer than everything that it would check.
//!
//! One real control plane serves all tests that want one. It ends with this process,
//! however that ends.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use tokio::process::Command;

use crate::process::{self, Ended};
use crate::tidy;

mod bench;
mod commands;
mod libtest;
mod real_server;
mod report;
mod skips;

use real_server::RealServer;
use report::{Report, human};
use skips::SkipFile;

/// The arguments of `cargo xtask test`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Also the long forms of tests, long soak and fuzz runs (sets KUBE_INFORMER_FULL=1), and the benchmarks' own tests
    #[arg(long)]
    full: bool,
    /// Run this step only; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
}

/// A step of the test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The formatting
    Fmt,
    /// What no compiler checks
    Tidy,
    /// Licences and sources of the dependencies
    Deny,
    /// The lints; a warning is an error
    Clippy,
    /// Builds (once) and starts the real control plane for the tests
    ControlPlane,
    /// The embedded server's tables are what the pinned Kubernetes release gives
    Kinds,
    /// The library's table of protobuf messages is what the pinned Kubernetes release gives
    Schema,
    /// Unit and integration tests, examples are built
    Tests,
    /// The examples in the API documentation
    DocTests,
    /// The API documentation; a warning is an error
    Docs,
    /// The commands in the Markdown documents
    Commands,
    /// With --full: the tests under load and the soaks once more, as optimised code
    Load,
    /// With --full: lints and tests of the benchmarks, and a run of all of them with very little
    Bench,
}

/// The packages of the benchmarks, which one step alone compiles.
const BENCH: [&str; 2] = ["--package", "kube-informer-bench*"];
const EXCEPT_BENCH: [&str; 3] = ["--workspace", "--exclude", "kube-informer-bench*"];

const MINUTE: Duration = Duration::from_secs(60);

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| Some(value.get_help()?.to_string())).unwrap_or_default()
    }

    /// Beyond this, something hangs; generous, because a cold machine compiles everything.
    fn limit(self, full: bool) -> Duration {
        match self {
            Step::Fmt | Step::Tidy | Step::Deny => 5 * MINUTE,
            Step::Clippy | Step::ControlPlane | Step::DocTests | Step::Docs => 30 * MINUTE,
            Step::Kinds | Step::Schema => 30 * MINUTE,
            Step::Tests if full => 75 * MINUTE,
            Step::Tests => 45 * MINUTE,
            // Each command on its own.
            Step::Commands => 15 * MINUTE,
            Step::Load | Step::Bench => 60 * MINUTE,
        }
    }
}

/// A test run on its way.
struct Run {
    root: PathBuf,
    full: bool,
    report: Report,
    skips: SkipFile,
    server: RealServer,
}

/// Runs what was asked for; Ctrl-C and SIGTERM end it with a report of what there is.
pub(crate) async fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let mut run = Run {
        root: crate::root(),
        full: options.full,
        report: Report::new(std::env::var("CI").is_ok_and(|ci| ci == "true")),
        skips: SkipFile::create()?,
        server: RealServer::default(),
    };
    tokio::select! {
        () = run.steps(&options.only) => {}
        signal = interrupted() => run.report.fail("the run", format!("ended by {signal}")),
    }
    if let Err(error) = run.server.stop().await {
        run.report.fail(Step::ControlPlane.name(), format!("does not stop: {error:#}"));
    }
    run.report.took("everything", started.elapsed());
    println!("\n{}", run.report.render());
    Ok(if run.report.ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn interrupted() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => "Ctrl-C",
        _ = terminate.recv() => "SIGTERM",
    }
}

impl Run {
    async fn steps(&mut self, only: &[Step]) {
        for step in Step::value_variants() {
            if !wanted(*step, only) {
                self.report.skip(step.name(), "not asked for (--only)");
                continue;
            }
            println!("\n==> {}: {}", step.name(), step.about());
            let (started, failures) = (Instant::now(), self.report.failures());
            if let Err(error) = self.step(*step).await {
                self.report.fail(step.name(), format!("{error:#}"));
            }
            let took = started.elapsed();
            let word = if self.report.failures() == failures { "done" } else { "FAILED" };
            println!("<== {}: {word} in {}", step.name(), human(took));
            self.report.took(step.name(), took);
        }
    }

    async fn step(&mut self, step: Step) -> anyhow::Result<()> {
        match step {
            Step::Fmt => {
                self.component(step, "fmt", "rustfmt", &["--all", "--check", "--", "--color", "never"]).await
            }
            Step::Tidy => {
                tidy::run(&self.root)?;
                self.report.pass(1);
                Ok(())
            }
            Step::Deny => self.deny().await,
            Step::Clippy => {
                let args = [&EXCEPT_BENCH[..], &["--all-targets", "--", "-D", "warnings"]].concat();
                self.component(step, "clippy", "clippy", &args).await
            }
            Step::ControlPlane => self.server.start(&mut self.report, step.limit(self.full)).await,
            Step::Kinds | Step::Schema => self.generated(step).await,
            Step::Tests => {
                // Tests run them; each by itself would be built with other features.
                let examples = self.cargo(&[&["build"], &EXCEPT_BENCH[..], &["--examples"]].concat());
                let built = process::stream(examples, step.limit(self.full), |_| ControlFlow::Continue(()));
                let built = built.await?;
                if !built.ok() {
                    self.report.fail("examples", format!("not built: {built}"));
                }
                let args = [&["test"], &EXCEPT_BENCH[..], &["--all-targets", "--no-fail-fast"]].concat();
                self.tests(step, &args).await
            }
            Step::DocTests => {
                let args = [&["test"], &EXCEPT_BENCH[..], &["--doc", "--no-fail-fast"]].concat();
                self.tests(step, &args).await
            }
            Step::Docs => {
                let mut command = self.cargo(&[&["doc"], &EXCEPT_BENCH[..], &["--no-deps"]].concat());
                command.env("RUSTDOCFLAGS", "-D warnings");
                self.command(step, command).await
            }
            Step::Commands => self.commands(step).await,
            Step::Load => self.load(step).await,
            Step::Bench => self.bench(step).await,
        }
    }

    /// Unoptimised, writers and servers are too slow for the rates that are asked for, and for as many operations on the
    /// real server. One test at a time, and what it reached is shown.
    async fn load(&mut self, step: Step) -> anyhow::Result<()> {
        if !self.full {
            self.report.skip(step.name(), "takes long; only with --full");
            return Ok(());
        }
        for (target, filter) in [("informer", "load::"), ("memory", ""), ("soak", "")] {
            let args = ["test", "--release", "--package", "kube-informer", "--test", target];
            self.tests(step, &[&args[..], &["--", "--test-threads", "1", "--show-output", filter]].concat())
                .await?;
        }
        Ok(())
    }

    /// A cargo command that comes with a component of the toolchain.
    async fn component(
        &mut self,
        step: Step,
        subcommand: &str,
        component: &str,
        args: &[&str],
    ) -> anyhow::Result<()> {
        if !self.has_subcommand(subcommand).await {
            let why = format!("not installed; install it with: rustup component add {component}");
            self.report.missing(step.name(), why);
            return Ok(());
        }
        let command = self.cargo(&[&[subcommand], args].concat());
        self.command(step, command).await
    }

    async fn deny(&mut self) -> anyhow::Result<()> {
        if !self.has_subcommand("deny").await {
            let why = "optional, and not installed; install it with: cargo install --locked cargo-deny";
            self.report.skip(Step::Deny.name(), why);
            return Ok(());
        }
        let command = self.cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"]);
        self.command(Step::Deny, command).await
    }

    /// A committed file is what the command of the same name makes, which needs Go.
    async fn generated(&mut self, step: Step) -> anyhow::Result<()> {
        if !self.has_go(&step.name()).await {
            return Ok(());
        }
        let args = ["run", "--quiet", "--package", "xtask", "--", &step.name(), "--check"];
        let mut command = self.cargo(&args);
        command.stdin(std::process::Stdio::null());
        self.command(step, command).await
    }

    /// A command that counts as one.
    async fn command(&mut self, step: Step, command: Command) -> anyhow::Result<()> {
        let ended = process::stream(command, step.limit(self.full), |_| ControlFlow::Continue(())).await?;
        if ended.ok() {
            self.report.pass(1);
        } else {
            self.report.fail(step.name(), ended.to_string());
        }
        Ok(())
    }

    /// A command that tells of many tests.
    async fn tests(&mut self, step: Step, args: &[&str]) -> anyhow::Result<()> {
        let mut command = self.cargo(args);
        command.env(kube_informer_testbed::skip::SKIP_FILE, self.skips.path());
        command.envs(self.server.environment());
        command.env(kube_informer_testbed::examples::BUILT, "1");
        if self.full {
            command.env("KUBE_INFORMER_FULL", "1");
        }
        let mut parser = libtest::Parser::default();
        let ended = process::stream(command, step.limit(self.full), |line| {
            parser.line(line);
            ControlFlow::Continue(())
        })
        .await?;
        if let Ended::TimedOut(_) = ended {
            parser.killed();
        }
        let summary = parser.finish(ended.ok());
        self.report.pass(summary.passed);
        for test in summary.failed {
            self.report.fail(test.name, test.why);
        }
        for test in summary.ignored {
            self.report.skip(test.name, test.why);
        }
        if let Ended::TimedOut(_) = ended {
            self.report.fail(step.name(), ended.to_string());
        }
        self.skips.apply(&mut self.report)
    }

    fn cargo(&self, args: &[&str]) -> Command {
        let mut command = std::process::Command::new(crate::cargo());
        kube_informer_testbed::examples::without_package(&mut command);
        command.args(args).current_dir(&self.root);
        command.into()
    }

    /// Whether there is Go; where there is none, what needs it is left out.
    async fn has_go(&mut self, what: &str) -> bool {
        let go = Command::new("go").arg("version").output().await;
        let is_there = go.is_ok_and(|output| output.status.success());
        if !is_there {
            self.report.missing(what, "needs Go; install Go 1.26 or newer, and put it on the PATH");
        }
        is_there
    }

    async fn has_subcommand(&self, name: &str) -> bool {
        let output = self.cargo(&[name, "--version"]).output().await;
        output.is_ok_and(|output| output.status.success())
    }
}

/// The tests want the control plane: who asks for them asks for it.
fn wanted(step: Step, only: &[Step]) -> bool {
    let for_tests = step == Step::ControlPlane
        && [Step::Tests, Step::Commands, Step::Load].iter().any(|step| only.contains(step));
    only.is_empty() || only.contains(&step) || for_tests
}

#[cfg(test)]
mod tests;
