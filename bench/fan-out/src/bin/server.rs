//! A feed of the Deployments of one namespace, which measures itself.
//!
//! Called with a kubeconfig, the namespace, `hub` or `controller`, and how many clients may come. `hub` tells each change
//! by itself, straight from the informer; `controller` is the Deployment controller, with a work queue and workers. It
//! prints its address, `{"url": …}`, once it serves; then every line of stdin that says `usage` is answered with what it
//! has used, see `bench/sync/src/usage.rs`. The end of stdin ends it.

use std::io::BufRead as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube_informer::connect::Source;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_bench_sync::files::allow_sockets;
use kube_informer_bench_sync::protocol::answer;
use kube_informer_bench_sync::usage::Usage;
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use serde_json::json;

/// Beyond this, clients that do not leave are left.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let start = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, namespace, way, clients] = &arguments[..] else {
        bail!("usage: KUBECONFIG NAMESPACE hub|controller CLIENTS");
    };
    ensure!(matches!(&way[..], "hub" | "controller"), "{way:?} is neither hub nor controller");
    let clients = clients.parse().context("not a number of clients")?;
    allow_sockets(clients)?;
    // As many workers as $TOKIO_WORKER_THREADS says.
    let runtime = tokio::runtime::Runtime::new()?;
    let server =
        runtime.block_on(feed(Path::new(kubeconfig), Scope::namespace(namespace), way == "hub", clients))?;
    let mut answers = std::io::stdout().lock();
    answer(&mut answers, &json!({ "url": server.url() }))?;
    for command in std::io::stdin().lock().lines() {
        let command = command?;
        ensure!(command.trim() == "usage", "no such command: {command:?}");
        answer(&mut answers, &Usage::since(start)?)?;
    }
    runtime.block_on(server.shutdown(PATIENCE));
    runtime.shutdown_background();
    Ok(())
}

async fn feed(kubeconfig: &Path, scope: Scope, is_hub: bool, clients: usize) -> Result<Server> {
    let factory = Factory::from_source(Source::file(kubeconfig)).await?;
    let hub = Hub::builder(factory.clone());
    if is_hub {
        let hub = hub.resource("deployments").scope(scope).start().await?;
        factory.start();
        return Ok(Server::builder(hub).connections(clients + 1).start().await?);
    }
    let hub = hub.start().await?;
    let controller = DeploymentController::new(&factory, scope);
    let publisher = hub.publisher(controller.informer());
    let controller = controller.begin_with(&publisher);
    let sink = move |reported: Reported| {
        publisher.publish(reported.change, reported.old.as_ref(), reported.new.as_ref());
    };
    tokio::spawn(controller.run(sink, std::future::pending()));
    Ok(Server::builder(hub).connections(clients + 1).start().await?)
}
