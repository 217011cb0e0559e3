//! A small shop on a simulated cluster, on loopback until Ctrl-C:
//! `cargo run -p kube-informer-apiserver --example simulate -- [SPEED]`.

use kube_informer_apiserver::{Server, Simulation};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let speed = match std::env::args().nth(1) {
        Some(speed) => speed.parse()?,
        None => 1.0,
    };
    let simulation = Simulation::default().with_speed(speed).with_story(true);
    let server = Server::builder().simulate(simulation).start().await?;
    println!("kubectl --server {} --namespace shop get pods --watch", server.url());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
