//! A Kubernetes API on loopback until Ctrl-C: `cargo run -p kube-informer-apiserver --example serve`.

use kube_informer_apiserver::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().start().await?;
    println!("kubectl --server {} get namespaces", server.url());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
