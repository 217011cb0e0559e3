//! Somebody else's client on the embedded server: kube-client and kube-runtime, unchanged, in process,
//! over HTTP, and over HTTPS with a token.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

mod controller;
mod verbs;
mod watching;
mod widget;

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_core::ObjectMeta;
use kube_informer_apiserver::Server;

/// How a client reaches the server.
#[derive(Debug, Clone, Copy)]
enum Way {
    InProcess,
    Http,
    HttpsWithToken,
}

const WAYS: [Way; 3] = [Way::InProcess, Way::Http, Way::HttpsWithToken];

async fn start(way: Way) -> (Server, Client) {
    let builder = Server::builder().seed(1).bookmark_interval(Duration::from_millis(200));
    let builder = match way {
        Way::HttpsWithToken => builder.tls(true).token("open-sesame", "ali", &["system:masters"]),
        _ => builder,
    };
    let server = builder.start().await.unwrap();
    let client = match way {
        Way::InProcess => Client::new(server.service(), "default"),
        Way::Http => Client::try_from(Config::new(server.url().parse().unwrap())).unwrap(),
        Way::HttpsWithToken => {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("config");
            server.write_kubeconfig(&path).unwrap();
            let kubeconfig = Kubeconfig::read_from(&path).unwrap();
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
            Client::try_from(config).unwrap()
        }
    };
    (server, client)
}

async fn in_process() -> (Server, Client) {
    start(Way::InProcess).await
}

/// Fails instead of hanging.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..Default::default() },
        data: Some(data.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
        ..Default::default()
    }
}

/// The code and reason of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, kube_client::Error>) -> (u16, String) {
    match result {
        Err(kube_client::Error::Api(status)) => (status.code, status.reason.clone()),
        other => panic!("not refused: {other:?}"),
    }
}
