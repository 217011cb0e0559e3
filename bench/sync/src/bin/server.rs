//! The embedded server with custom resources: for measures with more objects, or more writes, than a real one takes in a
//! reasonable time.
//!
//! Its argument is the file that gets its kubeconfig. Every line of stdin is a number: it makes and deletes custom
//! resources until it has that many, and then answers with how many there are. The end of stdin ends it.

use std::io::BufRead as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube_informer_apiserver::Server;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load::{self, Kind};

const NAMESPACE: &str = "default";

/// Decides what the objects are.
const SEED: u64 = 37;

/// How many objects are written at a time.
const WRITERS: usize = 16;

fn main() -> Result<()> {
    let kubeconfig = std::env::args_os().nth(1).map(PathBuf::from).context("usage: KUBECONFIG")?;
    let runtime = tokio::runtime::Runtime::new()?;
    // Without TLS: what it costs to write is nobody's measure.
    let server = runtime.block_on(Server::builder().tls(false).start())?;
    server.write_kubeconfig(&kubeconfig)?;
    let endpoint = runtime.block_on(Endpoint::from_kubeconfig(&kubeconfig))?;
    runtime.block_on(load::install_custom_resources(&endpoint))?;
    let mut there = 0;
    for line in std::io::stdin().lock().lines() {
        let wanted: usize = line?.trim().parse().context("not a number of objects")?;
        if wanted > there {
            let missing = load::custom_resources(SEED, wanted).skip(there);
            runtime.block_on(load::write_all(&endpoint, NAMESPACE, missing, WRITERS))?;
        } else {
            runtime.block_on(delete(&endpoint, wanted, there))?;
        }
        there = wanted;
        println!("{there}");
    }
    runtime.block_on(server.shutdown());
    Ok(())
}

/// Deletes all from one number to the other.
async fn delete(endpoint: &Endpoint, from: usize, to: usize) -> Result<()> {
    let collection = Kind::Gadget.path(NAMESPACE);
    let superfluous = load::custom_resources(SEED, to).skip(from);
    let paths = superfluous.map(|gadget| format!("{collection}/{}", gadget.name()));
    let deleted = stream::iter(paths).map(|path| async move { endpoint.delete(&path).await?.success() });
    deleted.buffer_unordered(WRITERS).try_for_each(|_| async { Ok(()) }).await
}
