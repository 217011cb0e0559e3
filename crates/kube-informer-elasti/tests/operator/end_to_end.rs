//! From a client's request to a pod's answer, with everything between them that there is in a cluster: slices, a resolver as
//! KubeElasti's is, its call over HTTP, the operator as it is run. Requests of all kinds come out as they went in.

use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use kube_informer::connect::Source;
use kube_informer_elasti::run::Running;
use kube_informer_elasti::settings::{Flags, Settings};
use serde_json::json;
use tokio::sync::oneshot;

use crate::harness::{SOON, Stage, on_both};
use crate::support::client::Routes;
use crate::support::echo::{self, ASKED, POD};
use crate::support::exchange::{Got, Sent};
use crate::support::gate::{Gate, SWITCHED};
use crate::support::network::Network;

on_both! {
    requests_of_all_kinds_wake_it_and_come_out_as_they_went_in,
}

/// What clients call the service.
const HOST: &str = "web.shop.svc.cluster.local:80";

/// The operator as it is run, for one namespace.
async fn run(stage: &Stage, kubeconfig: &std::path::Path) -> Result<Running> {
    std::fs::write(kubeconfig, stage.kubeconfig())?;
    let mut settings = Settings::read(Flags::default(), |_| None)?;
    settings.operator_namespace = Some(stage.namespace.clone());
    settings.watch_namespaces = [stage.namespace.clone()].into();
    settings.wake = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
    (settings.metrics, settings.probes) = (None, None);
    settings.source = Source::file(kubeconfig);
    Ok(Running::start(settings).await?)
}

/// Requests, and what a pod is to answer to each.
fn requests() -> Vec<(Sent, Vec<u8>)> {
    let sent = |method, path, body: &[&[u8]]| Sent::new(method, path, HOST, body);
    let large = echo::bytes("300000");
    let lines: String = (0..1000).map(echo::line).collect();
    let pieces: Vec<_> = large.chunks(7919).collect();
    vec![
        (sent("GET", "/ip", &[]), Vec::new()),
        (sent("GET", "/bytes/1048576", &[]), echo::bytes("1048576")),
        (sent("GET", "/stream/1000", &[]), lines.into_bytes()),
        (sent("GET", "/search?q=a%20b&q=c", &[]), Vec::new()),
        (sent("POST", "/orders?dry=1", &[b"{\"id\": 1}"]), b"{\"id\": 1}".to_vec()),
        (sent("PUT", "/files/a%2Fb", &[&large]), large.clone()),
        (sent("POST", "/streamed", &pieces), large.clone()),
        (sent("DELETE", "/orders/1", &[]), Vec::new()),
    ]
}

/// Asks as a client that is routed by slices, and asks again only where it was refused because the traffic is switched.
async fn ask(routes: &Routes, network: &Network, sent: &Sent) -> Result<Got> {
    loop {
        let address = routes.route().await.context("the service leads nowhere")?;
        let got = sent.to(network.at(&address)?).await?;
        if got.status != 403 {
            return Ok(got);
        }
        refused(&got);
        // tidy: allow-sleep a client that asks again after a while
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The one way in which KubeElasti's resolver refuses: with these words, and a connection that is at its end.
fn refused(got: &Got) {
    assert_eq!((got.status, &*String::from_utf8_lossy(&got.body)), (403, SWITCHED), "{got:?}");
    assert_eq!(got.header("connection"), Some("close"), "{got:?}");
}

async fn requests_of_all_kinds_wake_it_and_come_out_as_they_went_in(mut stage: Stage) -> Result<()> {
    // The operator of the stage is called without a network.
    stage.retire().await;
    let folder = tempfile::tempdir()?;
    let running = run(&stage, &folder.path().join("kubeconfig")).await?;
    let gate = Gate::open(&stage.endpoint, &stage.namespace, &stage.network, running.wake_address()).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let runs = tokio::spawn(running.run(async { drop(stopped.await) }));
    let endpoints =
        json!({ "endpoints": [{ "addresses": [gate.address()], "conditions": { "ready": true } }] });
    stage.merge(&stage.path("discovery.k8s.io/v1/endpointslices/resolver-1"), &endpoints).await?;

    stage.app("web", 0).await?;
    for _ in 0..2 {
        stage.mode("web", "proxy").await;
        stage.redirected("web", &[gate.address().to_owned()]).await;
        stage.replicas("deployments/web", 0).await;
        let (kept, all) = (gate.kept(), requests());
        let routes = Routes::follow(&stage.endpoint, &stage.namespace, "web");
        let asked = all.iter().map(|(sent, _)| ask(&routes, &stage.network, sent));
        let answers = tokio::time::timeout(SOON, try_join_all(asked)).await.context("not in time")??;
        for ((sent, wanted), got) in all.iter().zip(&answers) {
            let what = format!("{} {}", sent.method, sent.path);
            assert_eq!(got.status, 200, "{what}: {got:?}");
            assert_eq!(got.header(ASKED), Some(what.as_str()));
            assert!(got.header(POD).is_some_and(|pod| pod.starts_with("web-")), "{what}: {got:?}");
            assert!(got.body == *wanted, "{what}: {} bytes, and not {}", got.body.len(), wanted.len());
        }
        assert!(gate.kept() > kept, "it was the resolver that woke it");
        // Who comes to the resolver after that is refused, and led to the pods when it asks again.
        let late = Sent::new("GET", "/late", HOST, &[]);
        refused(&late.to(stage.network.at(gate.address())?).await?);
        assert_eq!(ask(&routes, &stage.network, &late).await?.status, 200);
        stage.mode("web", "serve").await;
        stage.gone(&stage.slice_path("web")).await;
        gate.re_enable();
        stage.scale("deployments/web", 0).await?;
    }
    let _ = stop.send(());
    runs.await??;
    stage.close().await
}
