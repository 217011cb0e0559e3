//! `cargo xtask bench sync`: the informer beside client-go and kube-runtime, on the real server.
//!
//! A control plane of its own is filled with pods and custom resources. Each contestant is a process by itself, which
//! syncs, follows a stream of updates, and is read while updates go on; it measures itself, see
//! `bench/sync/src/protocol.rs`. Never do two of them run at once. They take turns, beginning with another one in every
//! round, and the medians of the rounds count. Before that each has synced once, so that the server's cache is warm and
//! its code is loaded for whoever is first.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use kube_informer_testbed::cluster::{Cluster, OwnCluster};
use kube_informer_testbed::control_plane;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load::{self, Kind};
use serde_json::json;

mod contestant;
mod growth;
mod measured;
mod table;
mod turn;

use contestant::{Contestant, Programs, Task};
use measured::Measured;
use turn::{Load, Turn};

/// How much of what, and how often.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How many pods, and how many custom resources
    #[arg(long, default_value_t = 20_000)]
    pods: usize,
    /// How often each contestant has its turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// How many updates a handler sees in each of its tasks
    #[arg(long, default_value_t = 2_000)]
    updates: u64,
    /// Updates per second
    #[arg(long, default_value_t = 170.0)]
    rate: f64,
    /// Measure growth, too: from 2,000 to 200,000 custom resources on the embedded server
    #[arg(long)]
    growth: bool,
    /// Measure on a control plane that is up, by its folder; it is filled if it is empty, and stays filled
    #[arg(long, value_name = "DIR")]
    on: Option<PathBuf>,
    /// Leave bench/RESULTS.md as it is
    #[arg(long)]
    no_results: bool,
}

/// What the document says of the table about growth.
const GROWTH: &str =
    "From 2,000 to 200,000 custom resources on the embedded server, as ratios to the first line:";

/// Where the objects are.
const NAMESPACE: &str = "bench";

/// Decides what the objects are.
const SEED: u64 = 37;

/// How many objects are written at a time.
const WRITERS: usize = 16;

/// Measures, prints the tables, and puts them into `bench/RESULTS.md`.
pub(super) async fn run(options: &Options) -> Result<()> {
    ensure!(options.pods > 0 && options.rounds > 0 && options.updates > 0, "nothing to measure");
    ensure!(options.rate > 0.0, "without a rate there are no updates");
    let root = crate::root();
    let programs = Programs::build(&root)?;
    let (cluster, _servers) = match &options.on {
        Some(dir) => (Cluster::open(dir).await.context("no control plane to measure on")?, None),
        None => {
            let own = own_cluster().await?;
            ((*own).clone(), Some(own))
        }
    };
    fill(cluster.endpoint(), options.pods).await?;

    let load = Load {
        endpoint: cluster.endpoint().clone(),
        namespace: NAMESPACE.to_owned(),
        seed: SEED,
        objects: options.pods,
        updates: options.updates,
        rate: options.rate,
    };
    let turn = Turn { programs: &programs, kubeconfig: cluster.admin_kubeconfig(), load: &load };
    eprintln!("==> each syncs once, so that the server is warm");
    let syncs =
        |contestant: &Contestant| matches!(contestant.task(), Task::Everything | Task::SyncCustomResources);
    for contestant in Contestant::ALL.into_iter().filter(syncs) {
        turn.warm_up(contestant).await.with_context(|| contestant.name().to_owned())?;
    }
    let mut measured = Measured::default();
    for round in 0..options.rounds {
        for at in 0..Contestant::ALL.len() {
            let contestant = Contestant::ALL[(at + round as usize) % Contestant::ALL.len()];
            eprintln!("==> round {} of {}: {}", round + 1, options.rounds, contestant.name());
            let values = turn.take(contestant).await.with_context(|| contestant.name().to_owned())?;
            for (what, value) in values {
                eprintln!("    {}", table::value(what, value, options.pods));
                measured.add(contestant, what, value);
            }
        }
    }
    measured.agree_on_what_was_read()?;

    println!("{}", table::medians(&measured, options.pods));
    let mut section = table::section(&measured, options);
    if options.growth {
        section = format!("{section}\n{GROWTH}\n\n{}", growth::run(&programs, options.rounds).await?);
    }
    println!("{section}");
    if !options.no_results {
        super::results::write(&root, "sync", &section)?;
    }
    Ok(())
}

async fn own_cluster() -> Result<OwnCluster> {
    eprintln!("==> starting a control plane");
    let options = control_plane::Options::new()
        // Every update leaves an old version behind: without compactions, which would come at any time and be
        // measured, the store grows past its usual limit.
        .etcd_flag("--quota-backend-bytes=8589934592")
        .apiserver_flag("--etcd-compaction-interval=0");
    Ok(Cluster::own(options).await?)
}

/// Writes what is not there.
async fn fill(endpoint: &Endpoint, objects: usize) -> Result<()> {
    let start = Instant::now();
    let namespace = json!({ "metadata": { "name": NAMESPACE } });
    let answer = endpoint.post("/api/v1/namespaces", &namespace).await?;
    if answer.status.as_u16() != 409 {
        answer.success().context("cannot create the namespace")?;
    }
    load::install_custom_resources(endpoint).await?;
    if is_empty(endpoint, Kind::Pod, objects).await? {
        eprintln!("==> writing {objects} pods");
        load::write_all(endpoint, NAMESPACE, load::pods(SEED, objects), WRITERS).await?;
    }
    if is_empty(endpoint, Kind::Gadget, objects).await? {
        eprintln!("==> writing {objects} custom resources");
        load::write_all(endpoint, NAMESPACE, load::custom_resources(SEED, objects), WRITERS).await?;
    }
    eprintln!("    filled in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Whether there are none yet. There may be all of them, and nothing else.
async fn is_empty(endpoint: &Endpoint, kind: Kind, objects: usize) -> Result<bool> {
    let page = endpoint.get_json(&format!("{}?limit=1", kind.path(NAMESPACE))).await?;
    let shown = page["items"].as_array().map_or(0, Vec::len) as u64;
    let there = shown + page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    ensure!(there == 0 || there == objects as u64, "there are {there} objects already, and not {objects}");
    Ok(there == 0)
}
