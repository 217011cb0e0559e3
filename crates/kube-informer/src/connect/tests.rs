//! Against servers: the embedded one, the real one, and some that only say what they are told to say.

use std::net::SocketAddr;
use std::path::Path;

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer_apiserver::Server;
use kube_informer_testbed::cluster::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

mod credentials;
mod follow;
mod gone;
mod names;
mod places;
mod trouble;

/// What a kubeconfig says; proxies of whoever runs the tests are left out.
async fn config(kubeconfig: Kubeconfig) -> Config {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.proxy_url = None;
    config
}

async fn embedded(server: &Server) -> Connection {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    Connection::from_config(config(kubeconfig).await).await.unwrap()
}

async fn of_file(kubeconfig: &Path) -> Connection {
    Connection::from_config(config(Kubeconfig::read_from(kubeconfig).unwrap()).await).await.unwrap()
}

async fn real(cluster: &Cluster) -> Connection {
    of_file(&cluster.admin_kubeconfig()).await
}

/// The status of a small list.
async fn status(connection: &Connection) -> u16 {
    connection.get("/api/v1/namespaces?limit=1", "application/json").await.unwrap().status
}

/// A server that answers the first requests with these texts, one connection each, and tells what it was asked.
async fn saying<const N: usize>(answers: [String; N]) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = tokio::spawn(async move {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            heads.push(String::from_utf8(head).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        heads
    });
    (address, asked)
}

fn answer(head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

async fn plain(address: SocketAddr) -> Connection {
    Connection::from_config(Config::new(format!("http://{address}").parse().unwrap())).await.unwrap()
}
