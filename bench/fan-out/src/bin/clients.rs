//! Many clients of a feed, in a process by themselves.
//!
//! Called with the address of the feed, how many clients, and a number of replicas. Prints `{"connected": N}` once all
//! have come and know what there is, and `{"messages": N}` once each was told that a Deployment has that many replicas:
//! the changes that were told until then, to all of them together. The end of stdin ends it.

use anyhow::{Context, Result, bail};
use futures_util::StreamExt as _;
use kube_informer_bench_sync::files::allow_sockets;
use kube_informer_bench_sync::protocol::answer;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, count, replicas] = &arguments[..] else { bail!("usage: URL COUNT REPLICAS") };
    let count: usize = count.parse().context("not a number of clients")?;
    allow_sockets(count)?;
    let last = format!("→{replicas}\"");
    let mut readers = JoinSet::new();
    for _ in 0..count {
        readers.spawn(told_until(connected(url).await?, last.clone()));
    }
    let mut answers = std::io::stdout();
    answer(&mut answers, &json!({ "connected": count }))?;
    let (mut sockets, mut messages) = (Vec::new(), 0);
    while let Some(read) = readers.join_next().await {
        let (socket, told) = read??;
        messages += told;
        sockets.push(socket);
    }
    answer(&mut answers, &json!({ "messages": messages }))?;
    // Who leaves costs the server something: nobody does before it is over.
    tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??;
    Ok(())
}

/// A client that knows what there is.
async fn connected(url: &str) -> Result<Socket> {
    let (mut socket, _) = connect_async(url).await?;
    loop {
        let frame = socket.next().await.context("closed before all was told that there is")??;
        if matches!(frame, Frame::Text(text) if text.contains("snap.end")) {
            return Ok(socket);
        }
    }
}

/// How many changes it was told until that one.
async fn told_until(mut socket: Socket, last: String) -> Result<(Socket, usize)> {
    let mut told = 0;
    loop {
        let frame = socket.next().await.context("closed before all was told")??;
        let Frame::Text(text) = frame else { continue };
        told += usize::from(text.starts_with(r#"{"op":"change""#));
        if text.contains(&last) {
            return Ok((socket, told));
        }
    }
}
