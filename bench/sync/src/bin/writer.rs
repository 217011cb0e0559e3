//! Updates objects, and writes into each when that was sent.
//!
//! Called with a kubeconfig, `pods` or `gadgets`, a namespace and how many of the objects that the benchmark makes there
//! are. It is a program by itself, and compiled as fast as it gets, so that it keeps to its rate. Every line of stdin is a
//! command, answered with one line of JSON: how many were `written`, in how many `seconds`; and, at a rate, after how many
//! nanoseconds half of them were answered (`answered_ns`).
//!
//! | command | what it does |
//! |---|---|
//! | `rate R N` | stamps R objects per second, N in all or fewer: no longer than N take at that rate; one after the other, each once before one is stamped again |
//! | `change N` | stamps N objects, from everywhere and the last one of a list among them, as fast as the server takes it |
//!
//! Where the server does not take as many per second as it is told to write, it writes as many as the server takes in
//! that time.
//! Whatever goes wrong ends it, with a message on stderr.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube_informer_bench_sync::protocol::answer;
use kube_informer_bench_sync::stamps::{SENT, now};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load::{self, Kind};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Decides what the objects are.
const SEED: u64 = 37;

/// How many writes are on their way at most.
const IN_FLIGHT: usize = 32;

/// The step from one object to the next of those that are stamped at a rate: with no divisor in common with a number of
/// objects that people take, so that neighbours in a list are not neighbours in time.
const STEP: usize = 7919;

struct Writer {
    endpoint: Endpoint,
    /// Of all objects, in the order of a list.
    paths: Vec<String>,
    /// Where the next stamp at a rate goes.
    next: usize,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, kind, namespace, count] = &arguments[..] else {
        bail!("usage: KUBECONFIG pods|gadgets NAMESPACE COUNT");
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let endpoint = runtime.block_on(Endpoint::from_kubeconfig(&PathBuf::from(kubeconfig)))?;
    let paths = paths(kind, namespace, count.parse().context("not a number of objects")?)?;
    let mut writer = Writer { endpoint, paths, next: 0 };
    let mut answers = std::io::stdout().lock();
    for command in std::io::stdin().lock().lines() {
        let command = command?;
        let written = match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["rate", rate, count] => runtime.block_on(writer.at_rate(rate.parse()?, count.parse()?))?,
            ["change", count] => runtime.block_on(writer.change(count.parse()?))?,
            _ => bail!("no such command: {command:?}"),
        };
        answer(&mut answers, &written)?;
    }
    Ok(())
}

/// The paths of all objects, in the order of a list.
fn paths(kind: &str, namespace: &str, count: usize) -> Result<Vec<String>> {
    ensure!(count > 0, "there is nothing to write");
    let (kind, mut names): (Kind, Vec<String>) = match kind {
        "pods" => (Kind::Pod, load::pods(SEED, count).map(|pod| pod.name().to_owned()).collect()),
        "gadgets" => {
            let names = load::custom_resources(SEED, count).map(|gadget| gadget.name().to_owned());
            (Kind::Gadget, names.collect())
        }
        _ => bail!("neither pods nor gadgets: {kind}"),
    };
    names.sort_unstable();
    let collection = kind.path(namespace);
    Ok(names.into_iter().map(|name| format!("{collection}/{name}?fieldManager=bench")).collect())
}

impl Writer {
    async fn at_rate(&mut self, rate: f64, count: u64) -> Result<Value> {
        ensure!(rate > 0.0, "without a rate nothing is written");
        let (start, mut flying) = (Instant::now(), JoinSet::new());
        let end = start + Duration::from_secs_f64(count as f64 / rate);
        let (mut written, mut took) = (0, Vec::new());
        for number in 0..count {
            tokio::time::sleep_until(start + Duration::from_secs_f64(number as f64 / rate)).await;
            if Instant::now() >= end {
                break;
            }
            written += 1;
            let path = self.paths.get(self.next).context("no such object")?.clone();
            self.next = (self.next + STEP) % self.paths.len();
            room(&mut flying, &mut took).await?;
            flying.spawn(stamp(self.endpoint.clone(), path));
        }
        landed(flying, &mut took).await?;
        took.sort_unstable();
        let answered_ns = took.get(took.len() / 2).map(Duration::as_nanos);
        let seconds = start.elapsed().as_secs_f64();
        Ok(json!({ "written": written, "seconds": seconds, "answered_ns": answered_ns }))
    }

    async fn change(&self, count: usize) -> Result<Value> {
        let (start, mut flying) = (Instant::now(), JoinSet::new());
        let count = count.min(self.paths.len());
        for number in 1..=count {
            let path = self.paths.get(number * self.paths.len() / count - 1).context("no such object")?;
            room(&mut flying, &mut Vec::new()).await?;
            flying.spawn(stamp(self.endpoint.clone(), path.clone()));
        }
        landed(flying, &mut Vec::new()).await?;
        Ok(json!({ "written": count, "seconds": start.elapsed().as_secs_f64() }))
    }
}

/// Awaits that there is room for one more; notes how long those took that were answered.
async fn room(flying: &mut JoinSet<Result<Duration>>, took: &mut Vec<Duration>) -> Result<()> {
    while flying.len() >= IN_FLIGHT {
        if let Some(landed) = flying.join_next().await {
            took.push(landed??);
        }
    }
    while let Some(landed) = flying.try_join_next() {
        took.push(landed??);
    }
    Ok(())
}

/// Awaits them all.
async fn landed(mut flying: JoinSet<Result<Duration>>, took: &mut Vec<Duration>) -> Result<()> {
    while let Some(landed) = flying.join_next().await {
        took.push(landed??);
    }
    Ok(())
}

/// How long the server took for it.
async fn stamp(endpoint: Endpoint, path: String) -> Result<Duration> {
    let (begun, sent) = (Instant::now(), now().to_string());
    let patch = json!({ "metadata": { "annotations": { SENT: sent } } });
    endpoint.merge_patch(&path, &patch).await?.success()?;
    Ok(begun.elapsed())
}
