//! `kube-informer`: see what is changing in a Kubernetes cluster.
//!
//! Arguments and wiring only. Exit codes: 0 done, 1 failed (one line says what and what to do), 2 wrong
//! arguments, 130 ended by Ctrl-C or SIGTERM; the operator ends in order at the first one, with 0.

mod apiserver;
mod controller;
mod demo;
mod elasti;
mod interrupt;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::interrupt::Ended;

/// See what is changing in a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
struct Args {
    /// Say more on stderr; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the embedded API server: a Kubernetes API in this process, nothing to install
    Apiserver(apiserver::Args),
    /// Run the embedded API server with simulated workloads and show what changes
    Demo(demo::Args),
    /// Run a controller: what changes is printed, and told over WebSocket
    Controller(controller::Args),
    /// Run the ElastiService operator: services sleep at zero replicas, and wake when they are asked for
    Elasti(elasti::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    // Of an operator, people read the logs.
    let chatty = u8::from(matches!(args.command, Command::Elasti(_)));
    log_to_stderr(args.verbose.saturating_add(chatty));
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::anyhow!("cannot start: {error}")),
    };
    let result = runtime.block_on(async {
        match args.command {
            Command::Apiserver(args) => apiserver::run(args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Controller(args) => controller::run(args).await,
            Command::Elasti(args) => elasti::run(args).await,
        }
    });
    match result {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Interrupted) => ExitCode::from(130),
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", one_line(error));
    ExitCode::FAILURE
}

/// An error with every cause, each once: many errors say what caused them, and have it as their cause, too.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // What follows in other lines shows a place in a file, as parsers do.
        let cause = cause.lines().next().unwrap_or_default();
        if !line.contains(cause) {
            let colon = if line.is_empty() { "" } else { ": " };
            line = format!("{line}{colon}{cause}");
        }
    }
    line
}

fn log_to_stderr(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    let wants_color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(wants_color && std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn an_error_is_one_line_and_says_nothing_twice() {
        let cause = std::io::Error::other("no such file\n --> here");
        let said = Err::<(), _>(cause).context("cannot read it: no such file").context("cannot start");
        assert_eq!(one_line(&said.unwrap_err()), "cannot start: cannot read it: no such file");
        let said = Err::<(), _>(std::io::Error::other("the disk is full")).context("cannot write");
        assert_eq!(one_line(&said.unwrap_err()), "cannot write: the disk is full");
    }
}
