//! What a watch tells, without the library that is tested: lines of JSON, from the beginning, and again when it ends.

use anyhow::{Context, Result};
use http::{HeaderMap, Method};
use kube_informer_testbed::http::Endpoint;
use serde_json::Value;
use tokio::sync::mpsc;

/// What happened.
pub(crate) enum Told {
    /// This is everything.
    Anew(Vec<Value>),
    Put(Value),
    Gone(Value),
}

/// What happens to a collection, until the receiver is dropped.
pub(crate) fn follow(endpoint: Endpoint, path: String) -> mpsc::Receiver<Told> {
    let (tell, told) = mpsc::channel(1000);
    tokio::spawn(async move {
        while !tell.is_closed() {
            tokio::select! {
                ended = once(&endpoint, &path, &tell) => drop(ended),
                () = tell.closed() => return,
            }
            // tidy: allow-sleep a server that is away is not asked without end
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    told
}

async fn once(endpoint: &Endpoint, path: &str, tell: &mpsc::Sender<Told>) -> Result<()> {
    let and = if path.contains('?') { '&' } else { '?' };
    let list: Value = endpoint.get_json(path).await?;
    tell.send(Told::Anew(list["items"].as_array().context("a list without items")?.clone())).await?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
    let watch = format!("{path}{and}watch=1&resourceVersion={version}&timeoutSeconds=600");
    let mut stream = endpoint.stream(Method::GET, &watch, HeaderMap::new(), "").await?;
    while let Some(line) = stream.line().await? {
        let mut event: Value = serde_json::from_slice(&line)?;
        let object = event["object"].take();
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => tell.send(Told::Put(object)).await?,
            Some("DELETED") => tell.send(Told::Gone(object)).await?,
            Some("BOOKMARK") => {}
            _ => break,
        }
    }
    Ok(())
}
