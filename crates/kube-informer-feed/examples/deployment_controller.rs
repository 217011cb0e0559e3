//! Observe Deployments, keep a cache, queue what changed, let workers handle it, and tell everyone who is connected.
//!
//! `cargo run -p kube-informer-feed --example deployment_controller`, then connect any WebSocket client to the address that
//! it prints, and scale something.

use std::time::Duration;

use anyhow::Result;
use kube_informer::controller::Metrics;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_feed::deployments::DeploymentController;
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use prometheus_client::registry::Registry;

#[tokio::main]
async fn main() -> Result<()> {
    let factory = Factory::try_default().await?;
    // Informer, work queue and workers, and what they do, for /metrics.
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    let controller = DeploymentController::new(&factory, Scope::All).workers(2).metrics(&metrics);
    // What they find goes to everyone who is connected.
    let hub = Hub::builder(factory.clone()).start().await?;
    let publisher = hub.publisher(controller.informer());
    let server = Server::builder(hub).registry(registry).start().await?;
    println!("connect to {}", server.url());

    let controller = controller.begin_with(&publisher);
    let tell = move |reported: kube_informer_feed::deployments::Reported| {
        println!("{}", reported.change);
        publisher.publish(reported.change, reported.old.as_ref(), reported.new.as_ref());
    };
    let ended = controller.run(tell, interrupted()).await;
    println!("{} changes were told", ended.reported);
    server.shutdown(Duration::from_secs(5)).await;
    factory.shutdown().await;
    Ok(())
}

/// Ctrl-C, or SIGTERM, with which a cluster ends what runs in it.
async fn interrupted() {
    let told_to_end = async {
        #[cfg(unix)]
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut terminate) => return terminate.recv().await,
            Err(error) => eprintln!("SIGTERM does not work here: {error}"),
        }
        std::future::pending().await
    };
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => {
            if let Err(error) = pressed {
                eprintln!("Ctrl-C does not work here: {error}");
            }
        }
        _ = told_to_end => {}
    }
}
