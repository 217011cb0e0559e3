//! `cargo xtask bench fan-out`: what it costs to tell one WebSocket client, and a thousand.
//!
//! The feed is a process by itself, so are its clients, and so is the embedded API server: what the feed uses is its own.
//! One Deployment is changed, one change after the other, at first without clients, then with all of them.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;
use tokio::process::Command;

use super::contestant::Programs;
use super::embedded::Embedded;
use super::report::{Failed, Figures, Output, Report};
use super::results::Section;
use super::running::Running;

/// How many of what.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How many clients
    #[arg(long, value_delimiter = ',', default_values_t = [1, 1_000])]
    pub(super) clients: Vec<usize>,
    /// How many changes
    #[arg(long, default_value_t = 200)]
    pub(super) changes: usize,
    /// How often each is measured
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

pub(super) const SECTION: Section = Section {
    name: "fan-out",
    heading: "Fan-out",
    about: "\
Changes of one Deployment on the embedded server, one after the other, told to WebSocket clients over loopback: by the hub
straight from the informer, and by the Deployment controller through its work queue, which tells fewer messages where changes
come faster than it works. The feed, its clients and the API server are three processes; CPU and memory are the feed's. What
a change costs is from the informer to the last socket; what a message costs is what it costs more than without clients, which
is nothing to be seen where there is a dash. Each change is written after the server has answered the one before: with one client,
the messages per second are the writer's. The programs are compiled by cargo's release profile.",
};

const WAYS: [&str; 2] = ["hub", "controller"];

/// What is measured.
const WHAT: [(&str, &str); 6] = [
    ("memory per client, connected", "B"),
    ("memory per client, after the changes", "B"),
    ("CPU per change, nobody told", "s"),
    ("CPU per change, all told", "s"),
    ("CPU per message", "s"),
    ("messages per second", "1/s"),
];

/// The Deployment that is changed, and the way there.
struct Changed {
    endpoint: Endpoint,
    namespace: String,
    path: String,
    replicas: usize,
}

pub(super) async fn measure(root: &Path, programs: &Programs, options: &Options) -> Result<Report> {
    ensure!(options.rounds > 0 && options.changes > 0, "nothing to measure");
    ensure!(options.clients.iter().all(|clients| *clients > 0), "nobody to tell");
    let package = ["--release", "--package", "kube-informer-bench-fan-out", "--bins"];
    let feed = crate::build::program(root, &package, "bench-fan-out-server")?;
    let (mut figures, mut failed) = (Figures::of(SECTION.name), Failed::default());
    let server = Embedded::start(programs).await?;
    let endpoint = Endpoint::new(Access::read(server.kubeconfig()).await?)?;
    for round in 0..options.rounds {
        for clients in &options.clients {
            for way in WAYS {
                eprintln!("==> fan-out, round {} of {}: {way}, {clients} clients", round + 1, options.rounds);
                let namespace = format!("{way}-{clients}-{round}");
                let changed = Changed::make(&endpoint, namespace).await?;
                let values = turn(&feed, server.kubeconfig(), way, *clients, options.changes, changed).await;
                let name = name(way, *clients);
                let values = failed.caught(&format!("{name}, round {}", round + 1), values);
                for ((what, unit), value) in WHAT.into_iter().zip(values.into_iter().flatten()) {
                    figures.add(&name, what, unit, value);
                }
            }
        }
    }
    server.end().await?;
    let tables = tables(&figures, options);
    let (section, medians, plots) = (Some(&SECTION), String::new(), Vec::new());
    Ok(Report { section, tables, medians, plots, figures: figures.into_all(), failed })
}

async fn turn(
    feed: &Path,
    kubeconfig: &Path,
    way: &str,
    clients: usize,
    changes: usize,
    mut changed: Changed,
) -> Result<[f64; WHAT.len()]> {
    let mut command = Command::new(feed);
    command.arg(kubeconfig).args([&changed.namespace, way, &clients.to_string()]);
    command.env("TOKIO_WORKER_THREADS", std::thread::available_parallelism()?.to_string());
    let mut running = Running::start(command)?;
    let said = running.said().await.context("the feed")?;
    let url = said["url"].as_str().with_context(|| format!("no address in {said}"))?;

    // What the changes themselves cost, without anybody who is told.
    let before = running.rested().await?;
    changed.change(changes).await?;
    let alone = running.rested().await?;

    let last = changed.replicas + changes;
    let mut command = Command::new(feed.with_file_name("bench-fan-out-clients"));
    command.args([url, &clients.to_string(), &last.to_string()]);
    let mut readers = Running::start(command)?;
    readers.said().await.context("the clients did not come")?;
    let connected = running.rested().await?;
    let start = Instant::now();
    changed.change(changes).await?;
    let told = readers.said().await.context("not every client was told")?;
    let wall = start.elapsed().as_secs_f64();
    let messages = told["messages"].as_f64().with_context(|| format!("no messages in {told}"))?;
    ensure!(way == "controller" || messages >= (clients * changes) as f64, "{messages} are too few messages");
    let after = running.rested().await?;
    readers.end().await.context("the clients")?;
    running.end().await.context("the feed")?;

    let (each, per_change) = (1.0 / clients as f64, 1.0 / changes as f64);
    let (without, with) = (alone.cpu - before.cpu, after.cpu - connected.cpu);
    Ok([
        (connected.rss - alone.rss).max(0.0) * each,
        (after.rss - alone.rss).max(0.0) * each,
        without * per_change,
        with * per_change,
        (with - without).max(0.0) / messages.max(1.0),
        messages / wall,
    ])
}

impl Changed {
    /// A Deployment in a new namespace.
    async fn make(endpoint: &Endpoint, namespace: String) -> Result<Self> {
        endpoint
            .post("/api/v1/namespaces", &json!({ "metadata": { "name": namespace } }))
            .await?
            .success()?;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        let labels = json!({ "app": "web" });
        let deployment = json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 0, "paused": true, "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
                },
            },
        });
        endpoint.post(&path, &deployment).await?.success()?;
        Ok(Self { endpoint: endpoint.clone(), namespace, path: format!("{path}/web"), replicas: 0 })
    }

    /// Changes it so often.
    async fn change(&mut self, changes: usize) -> Result<()> {
        for _ in 0..changes {
            self.replicas += 1;
            let patch = json!({ "spec": { "replicas": self.replicas } });
            self.endpoint.merge_patch(&self.path, &patch).await?.success()?;
        }
        Ok(())
    }
}

fn name(way: &str, clients: usize) -> String {
    format!("{way}, {clients} clients")
}

fn tables(figures: &Figures, options: &Options) -> String {
    let Options { clients, changes, rounds, .. } = options;
    let columns: Vec<(&str, usize)> =
        WAYS.iter().flat_map(|way| clients.iter().map(|one| (*way, *one))).collect();
    let heads: Vec<String> = columns
        .iter()
        .map(|(way, clients)| format!("{way}, {clients} client{}", if *clients == 1 { "" } else { "s" }))
        .collect();
    let mut text = format!(
        "Medians of {rounds} rounds with {changes} changes.\n\n| | {} |\n|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for (what, unit) in WHAT {
        let cells: Vec<String> = columns
            .iter()
            .map(|(way, clients)| {
                let found = figures.median(&name(way, *clients), what);
                found.map_or("–".to_owned(), |found| shown(found, unit))
            })
            .collect();
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    }
    text
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "B" => format!("{:.1} KiB", value / 1024.0),
        // It took no more with clients than without.
        "s" if value <= 0.0 => "–".to_owned(),
        "s" => format!("{:.1} µs", value * 1e6),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_and_number_of_clients_has_its_column() {
        let mut figures = Figures::of("fan-out");
        figures.add("hub, 1000 clients", "CPU per message", "s", 11.2e-6);
        figures.add("controller, 1 clients", "memory per client, connected", "B", 2048.0);
        let options = Options { clients: vec![1, 1000], changes: 9, rounds: 1, output: Output::default() };
        let table = tables(&figures, &options);
        assert!(
            table.contains("| | hub, 1 client | hub, 1000 clients | controller, 1 client | controller"),
            "{table}"
        );
        assert!(table.contains("| CPU per message | – | 11.2 µs | – | – |"), "{table}");
        assert!(table.contains("| memory per client, connected | – | – | 2.0 KiB | – |"), "{table}");
    }
}
