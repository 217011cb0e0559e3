//! What contestants meet on: the real server, filled with objects, and the programs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use kube_informer_testbed::cluster::{Cluster, OwnCluster};
use kube_informer_testbed::control_plane;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load::{self, Kind};
use serde_json::json;

use super::contestant::{Contestant, DIST, Programs};
use super::report::Output;
use super::running::Running;

/// On which server, and what is in it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Where {
    /// How many pods, and how many custom resources
    #[arg(long, default_value_t = 20_000)]
    pub(super) pods: usize,
    /// Measure on a control plane that is up, by its folder; it is filled if it is empty, and stays filled
    #[arg(long, value_name = "DIR")]
    pub(super) on: Option<PathBuf>,
    /// How contestants in Rust are compiled: a profile of cargo's
    #[arg(long, default_value = DIST)]
    pub(super) profile: String,
}

/// On what, and how often: for those that can be told nothing else.
#[derive(Debug, Clone, Args)]
pub(crate) struct Turns {
    #[command(flatten)]
    pub(super) ground: Where,
    /// How often each contestant has its turn
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: u32,
    #[command(flatten)]
    pub(super) output: Output,
}

/// Where the objects are.
pub(super) const NAMESPACE: &str = "bench";

/// Decides what the objects are.
pub(super) const SEED: u64 = 37;

/// How many objects are written at a time.
const WRITERS: usize = 16;

/// See the module.
pub(super) struct Ground {
    pub(super) programs: Programs,
    pub(super) objects: usize,
    cluster: Cluster,
    /// Where it was started for this; it ends when this is dropped.
    _servers: Option<OwnCluster>,
}

impl Ground {
    /// Builds the programs, starts a control plane if there is none, fills it, and has each contestant sync once, so that
    /// the server's cache is warm and code is loaded for whoever is first.
    pub(super) async fn prepare(root: &Path, options: &Where, warm: &[Contestant]) -> Result<Self> {
        ensure!(options.pods > 0, "nothing to measure");
        let programs = Programs::build(root, &options.profile)?;
        let (cluster, servers) = match &options.on {
            Some(dir) => (Cluster::open(dir).await.context("no control plane to measure on")?, None),
            None => {
                let own = own_cluster().await?;
                ((*own).clone(), Some(own))
            }
        };
        fill(cluster.endpoint(), options.pods).await?;
        let ground = Self { programs, objects: options.pods, cluster, _servers: servers };
        eprintln!("==> each syncs once, so that the server is warm");
        for contestant in warm {
            let synced = async {
                let mut running = ground.start(*contestant)?;
                running.synced().await?;
                running.end().await
            };
            // It fails in its turns, too, and is counted there.
            if let Err(error) = synced.await {
                eprintln!("FAILED: {}: {error:#}", contestant.name());
            }
        }
        Ok(ground)
    }

    /// Ends the server, if it was started for this.
    pub(super) fn into_programs(self) -> Programs {
        self.programs
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        self.cluster.endpoint()
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.cluster.admin_kubeconfig()
    }

    /// Starts a contestant on the server.
    pub(super) fn start(&self, contestant: Contestant) -> Result<Running> {
        self.programs.start(contestant, &self.kubeconfig())
    }

    /// Starts the program that stamps pods.
    pub(super) fn writer(&self) -> Result<Running> {
        let mut command = self.programs.tool("bench-sync-writer");
        command.arg(self.kubeconfig()).args(["pods", NAMESPACE, &self.objects.to_string()]);
        Running::start(command)
    }
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
