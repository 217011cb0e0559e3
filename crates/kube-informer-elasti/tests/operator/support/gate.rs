//! A stand-in for the resolver as KubeElasti's is: it tells the operator over HTTP of every request that it lets in, also where
//! a pod answers that is to end, keeps requests with their method, path and body until the pods behind the private Service are
//! ready, and passes them on.
//!
//! With its rule: when the first request for a host was answered, it refuses what comes for that host, with 403, `traffic is
//! switched`, and a closed connection; not for some seconds, but until the test says that they are over.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{CONNECTION, HOST};
use http::{HeaderName, HeaderValue, StatusCode};
use kube_informer_elasti::names;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;

use super::client::Routes;
use super::echo::{ASKED, POD};
use super::exchange::{Got, Sent};
use super::network::{Host, Network};

/// What it says to those who come too late.
pub(crate) const SWITCHED: &str = r#"{"error":"traffic is switched"}"#;

/// How often it calls the operator for one service.
const AGAIN: Duration = Duration::from_millis(200);

/// How long a request is kept.
const PATIENCE: Duration = Duration::from_secs(60);

/// The largest body that it keeps.
const LARGEST: usize = 8 << 20;

/// See the module.
pub(crate) struct Gate {
    shared: Arc<Shared>,
    host: Host,
}

struct Shared {
    endpoint: Endpoint,
    namespace: String,
    network: Network,
    /// Where the operator is called.
    operator: Endpoint,
    routes: Mutex<HashMap<String, Routes>>,
    /// The hosts whose traffic is switched.
    switched: Mutex<HashSet<String>>,
    kept: AtomicU64,
}

impl Gate {
    pub(crate) async fn open(
        endpoint: &Endpoint,
        namespace: &str,
        network: &Network,
        operator: SocketAddr,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            endpoint: endpoint.clone(),
            namespace: namespace.to_owned(),
            network: network.clone(),
            operator: Endpoint::new(Access::anonymous(format!("http://{operator}")))?,
            routes: Mutex::default(),
            switched: Mutex::default(),
            kept: AtomicU64::new(0),
        });
        let app = Router::new().fallback(keep).with_state(Arc::clone(&shared));
        let host = network.listen(&network.address(), app).await?;
        Ok(Self { shared, host })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &str {
        self.host.address()
    }

    /// KubeElasti's `TRAFFIC_RE_ENABLE_DURATION` has passed.
    pub(crate) fn re_enable(&self) {
        self.shared.switched.lock().unwrap().clear();
    }

    /// How many requests it has kept so far.
    pub(crate) fn kept(&self) -> u64 {
        self.shared.kept.load(Ordering::Relaxed)
    }
}

async fn keep(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = host.to_owned();
    if shared.switched.lock().unwrap().contains(&host) {
        let mut refused = said(StatusCode::FORBIDDEN, SWITCHED);
        refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return refused;
    }
    shared.kept.fetch_add(1, Ordering::Relaxed);
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return said(StatusCode::PAYLOAD_TOO_LARGE, "too large");
    };
    let pieces: Vec<&[u8]> = if body.is_empty() { Vec::new() } else { vec![&body] };
    let sent = Sent::new(head.method.as_str(), &head.uri.to_string(), &host, &pieces);
    match tokio::time::timeout(PATIENCE, shared.pass_on(&sent)).await {
        Ok(got) => {
            shared.switched.lock().unwrap().insert(host);
            answered(&got)
        }
        Err(_) => said(StatusCode::REQUEST_TIMEOUT, "nobody came"),
    }
}

impl Shared {
    async fn pass_on(&self, sent: &Sent) -> Got {
        let service = sent.host.split(['.', ':']).next().unwrap_or_default();
        let routes = {
            let mut all = self.routes.lock().unwrap();
            let private = names::private_service(service);
            all.entry(private.clone())
                .or_insert_with(|| Routes::follow(&self.endpoint, &self.namespace, &private))
                .clone()
        };
        let call = json!({ "count": 1, "svc": service, "namespace": self.namespace });
        loop {
            // Whatever the answer is: it looks for pods, and calls again where there is none.
            drop(self.operator.post("/informer/incoming-request", &call).await);
            // One that went away meanwhile is no reason to give up.
            if let Some(address) = routes.ready().await
                && let Ok(there) = self.network.at(&address)
                && let Ok(got) = sent.to(there).await
            {
                return got;
            }
            // tidy: allow-sleep a resolver that looks from time to time
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn said(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}

/// What a pod said, with what says which one it was.
fn answered(got: &Got) -> Response {
    let mut response = Response::new(Body::from(got.body.clone()));
    *response.status_mut() = StatusCode::from_u16(got.status).unwrap_or(StatusCode::BAD_GATEWAY);
    for name in [POD, ASKED] {
        if let Some(value) = got.header(name).and_then(|value| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}
