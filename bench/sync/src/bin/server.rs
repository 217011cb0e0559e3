//! The embedded server, filled with custom resources: for measures with more objects than a real one is filled with in a
//! reasonable time.
//!
//! Its argument is the file that gets its kubeconfig. Every line of stdin is a number: it makes that many custom
//! resources of those that it has, and then answers with how many there are. The end of stdin ends it.

use std::io::BufRead as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use kube_informer_apiserver::Server;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load;

const NAMESPACE: &str = "default";

/// Decides what the objects are.
const SEED: u64 = 37;

/// How many objects are written at a time.
const WRITERS: usize = 16;

fn main() -> Result<()> {
    let kubeconfig = std::env::args_os().nth(1).map(PathBuf::from).context("usage: KUBECONFIG")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let server = runtime.block_on(Server::builder().start())?;
    server.write_kubeconfig(&kubeconfig)?;
    let endpoint = runtime.block_on(Endpoint::from_kubeconfig(&kubeconfig))?;
    runtime.block_on(load::install_custom_resources(&endpoint))?;
    let mut there = 0;
    for line in std::io::stdin().lock().lines() {
        let wanted: usize = line?.trim().parse().context("not a number of objects")?;
        let missing = load::custom_resources(SEED, wanted).skip(there);
        runtime.block_on(load::write_all(&endpoint, NAMESPACE, missing, WRITERS))?;
        there = there.max(wanted);
        println!("{there}");
    }
    runtime.block_on(server.shutdown());
    Ok(())
}
