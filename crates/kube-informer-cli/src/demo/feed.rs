//! One watch of one resource, from HTTP to changes.
//!
//! Objects come with what they were before, so that a change can be told from a heartbeat.

use std::collections::HashMap;

use bytes::BytesMut;
use http_body_util::BodyExt;
use kube_informer_apiserver::Service;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tower_service::Service as _;

/// Something happened to an object.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: &'static str,
    pub(crate) old: Option<Value>,
    /// `None`: it was deleted.
    pub(crate) new: Option<Value>,
}

/// Watches `path` from its current state on, until the receiver or the server is gone.
pub(crate) async fn follow(mut service: Service, path: &str, kind: &'static str, changes: Sender<Change>) {
    let mut seen: HashMap<String, Value> = HashMap::new();
    let request = http::Request::get(format!("{path}?watch=true"));
    let Ok(request) = request.body(http_body_util::Empty::<bytes::Bytes>::new()) else { return };
    let Ok(response) = service.call(request).await else { return };
    let mut body = response.into_body();
    let mut buffer = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(end + 1);
            let Some(change) = read(&line, kind, &mut seen) else { continue };
            if changes.send(change).await.is_err() {
                return;
            }
        }
    }
}

fn read(line: &[u8], kind: &'static str, seen: &mut HashMap<String, Value>) -> Option<Change> {
    let mut event: Value = serde_json::from_slice(line).ok()?;
    let object = event["object"].take();
    let uid = object.pointer("/metadata/uid")?.as_str()?.to_owned();
    match event["type"].as_str()? {
        "DELETED" => {
            let old = seen.remove(&uid).or(Some(object));
            Some(Change { kind, old, new: None })
        }
        "ADDED" | "MODIFIED" => {
            let old = seen.insert(uid, object.clone());
            Some(Change { kind, old, new: Some(object) })
        }
        _ => None,
    }
}
