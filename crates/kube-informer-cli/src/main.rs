//! `kube-informer`: see what is changing in a Kubernetes cluster.
//!
//! Arguments and wiring only. Exit codes: 0 done, 1 failed (one line says what and what to do), 2 wrong
//! arguments, 130 ended by Ctrl-C or SIGTERM.

mod apiserver;
mod controller;
mod demo;
mod interrupt;

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
}

fn main() -> ExitCode {
    let args = Args::parse();
    log_to_stderr(args.verbose);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::anyhow!("cannot start: {error}")),
    };
    let result = runtime.block_on(async {
        match args.command {
            Command::Apiserver(args) => apiserver::run(args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Controller(args) => controller::run(args).await,
        }
    });
    match result {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Interrupted) => ExitCode::from(130),
        Err(error) => failed(&error),
    }
}

/// One line, with every cause.
fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
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
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
