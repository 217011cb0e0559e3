//! `kube-informer apiserver`: the embedded server alone.
//!
//! The first Ctrl-C or SIGTERM lets open requests end, for some seconds; the second does not wait for them. Both end it
//! with 130.

use std::error::Error as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use kube_informer_apiserver::{Builder, Server, ServerError, Simulation};

use crate::door::{ELSEWHERE, address};
use crate::interrupt::{Ended, Interrupt};
use crate::naming;
use crate::output::first_words;
use crate::usage::Usage;

/// Run the embedded API server.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on: 127.0.0.1:8001, or :8001 for every address of this machine; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// Write a kubeconfig for it
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    /// Play controllers, scheduler and kubelets, so that workloads come alive
    #[arg(long)]
    simulate: bool,
    #[command(flatten)]
    pace: Pace,
    /// Serve HTTPS with a certificate made for the occasion
    #[arg(long)]
    tls: bool,
    /// Take only requests with this bearer token
    #[arg(long, value_name = "TOKEN", env = "KUBE_INFORMER_TOKEN", hide_env_values = true, value_parser = token)]
    token: Option<String>,
    /// Changes per resource that a watch can resume from
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = window)]
    watch_window: usize,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  # An empty cluster, and a kubeconfig for it
  kube-informer apiserver --write-kubeconfig config

  # One in which workloads come alive, ten times as fast as usual
  kube-informer apiserver --simulate --speed 10 --write-kubeconfig config";

/// How the simulation goes.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub(crate) struct Pace {
    /// Simulated workloads run this many times faster
    #[arg(long, value_name = "X", default_value_t = Self::default().speed, value_parser = positive)]
    pub(crate) speed: f64,
    /// The same seed gives the same names and the same course of events
    #[arg(long, value_name = "N", default_value_t = Self::default().seed, value_parser = seed)]
    pub(crate) seed: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { speed: 1.0, seed: 1 }
    }
}

impl Pace {
    pub(crate) fn simulation(&self) -> Simulation {
        Simulation::default().with_seed(self.seed).with_speed(self.speed)
    }
}

fn token(text: &str) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            Err("must have no spaces or line breaks".to_owned())
        }
        text => Ok(text.to_owned()),
    }
}

fn window(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(changes) if changes > 0 => Ok(changes),
        _ => Err("must be a whole number above 0".to_owned()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number from 0 on, such as 7".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("must be a number above 0, such as 0.5 or 10".to_owned()),
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    let mut builder: Builder =
        Server::builder().listen(args.listen).tls(args.tls).watch_window(args.watch_window);
    if let Some(token) = &args.token {
        builder = builder.token(token, "kubernetes-admin", &["system:masters"]);
    }
    if !args.simulate && args.pace != Pace::default() {
        return Err(Usage::new("--speed and --seed are of what is simulated: give --simulate, too").into());
    }
    if args.simulate {
        builder = builder.seed(args.pace.seed).simulate(args.pace.simulation());
    }
    let started = builder.start().await.map_err(|error| match error {
        ServerError::Listen { address, source } => {
            anyhow::anyhow!("cannot listen on {address}: {source}; {ELSEWHERE}")
        }
        error => error.into(),
    });
    let server = started.context("the embedded API server did not start")?;
    let next = match &args.write_kubeconfig {
        Some(path) => {
            server.write_kubeconfig(path).map_err(|error| {
                let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
                anyhow::anyhow!(
                    "{error}{why}; give --write-kubeconfig a file in a folder that is there and yours"
                )
            })?;
            format!("try: kubectl --kubeconfig {} get namespaces", naming::quoted(path))
        }
        None if args.token.is_none() && !args.tls => {
            format!("try: kubectl --server {} get namespaces", server.url())
        }
        None => "pass --write-kubeconfig FILE to get a kubeconfig for it".to_owned(),
    };
    let intro =
        format!("Kubernetes API on {}\n{next}\nCtrl-C ends it; everything is in memory\n", server.url());
    tokio::select! {
        said = first_words(intro) => {
            said?;
            interrupt.wait().await;
        }
        () = interrupt.wait() => {}
    }
    tokio::select! {
        () = server.shutdown() => {}
        () = interrupt.wait() => {}
    }
    Ok(Ended::Interrupted)
}
