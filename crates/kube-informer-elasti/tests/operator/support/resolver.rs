//! A stand-in for the resolver: where no pod behind the private Service is ready, it keeps a request, has the target woken,
//! waits for the pods, and passes it on.
//!
//! Who finds a pod at once wakes nobody. KubeElasti's tells the operator of every request, but of one service once in half a
//! minute; this one calls as often as it looks, and clients that send throughout would never let their target sleep. So a
//! pod that is to end, and that is still led to, may be the one who answers: whoever wants a request to wake something waits
//! until [nobody is found](Resolver::until_found).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use http::{HeaderMap, StatusCode, Uri};
use kube_informer_elasti::names;
use kube_informer_elasti::operator::Operator;
use kube_informer_testbed::http::Endpoint;
use serde_json::{Value, json};

use super::client::Routes;
use super::network::{Host, Network};
use crate::harness::SOON;

/// The resolver's Service.
pub(crate) const SERVICE: &str = "elasti-resolver-service";

/// The port at which it takes requests for others.
pub(crate) const PORT: u16 = 8012;

/// How long a request is kept.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it asks for a wake, and looks whether somebody came: it is not told.
const AGAIN: Duration = Duration::from_millis(250);

/// See the module.
pub(crate) struct Resolver {
    shared: Arc<Shared>,
    hosts: Vec<Host>,
}

struct Shared {
    endpoint: Endpoint,
    namespace: String,
    network: Network,
    /// Whom it asks to wake; the operator that runs now.
    operator: Mutex<Option<Operator>>,
    routes: Mutex<HashMap<String, Routes>>,
    kept: AtomicU64,
}

impl Resolver {
    /// With one endpoint, which is ready.
    pub(crate) async fn start(endpoint: &Endpoint, namespace: &str, network: &Network) -> Result<Self> {
        let shared = Arc::new(Shared {
            endpoint: endpoint.clone(),
            namespace: namespace.to_owned(),
            network: network.clone(),
            operator: Mutex::default(),
            routes: Mutex::default(),
            kept: AtomicU64::new(0),
        });
        let service = json!({ "metadata": { "name": SERVICE }, "spec": { "ports": [{ "port": PORT }] } });
        endpoint.post(&format!("/api/v1/namespaces/{namespace}/services"), &service).await?.success()?;
        let slice = json!({
            "metadata": { "name": "resolver-1", "labels": { "kubernetes.io/service-name": SERVICE } },
            "addressType": "IPv4", "ports": [{ "name": "", "port": PORT, "protocol": "TCP" }], "endpoints": [],
        });
        endpoint.post(&shared.slices(), &slice).await?.success()?;
        let mut resolver = Self { shared, hosts: Vec::new() };
        resolver.scale(1).await?;
        Ok(resolver)
    }

    /// Whom it asks to wake from now on.
    pub(crate) fn ask(&self, operator: &Operator) {
        *self.shared.operator.lock().unwrap() = Some(operator.clone());
    }

    /// There is nobody whom it could ask, until it is told of somebody.
    pub(crate) fn ask_nobody(&self) {
        *self.shared.operator.lock().unwrap() = None;
    }

    /// So many endpoints from now on. Those that stay keep their addresses.
    pub(crate) async fn scale(&mut self, count: usize) -> Result<()> {
        while self.hosts.len() < count {
            let app = Router::new().fallback(keep).with_state(Arc::clone(&self.shared));
            let address = self.shared.network.address();
            self.hosts.push(self.shared.network.listen(&address, app).await?);
        }
        let gone = self.hosts.split_off(count);
        let endpoints: Vec<_> = self.addresses().iter().map(|each| endpoint(each, true)).collect();
        self.write(&endpoints.into()).await?;
        drop(gone);
        Ok(())
    }

    /// Its endpoints are not ready from now on.
    pub(crate) async fn unready(&self) -> Result<()> {
        let endpoints: Vec<_> = self.addresses().iter().map(|each| endpoint(each, false)).collect();
        self.write(&endpoints.into()).await
    }

    /// Where it is.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let mut all: Vec<_> = self.hosts.iter().map(|host| host.address().to_owned()).collect();
        all.sort();
        all
    }

    /// How many requests it has kept so far.
    pub(crate) fn kept(&self) -> u64 {
        self.shared.kept.load(Ordering::Relaxed)
    }

    /// Waits until it knows of a ready pod behind the private Service of a service, or of none. Once there was one and its
    /// target is at zero, none stays none until somebody wakes it.
    pub(crate) async fn until_found(&self, service: &str, somebody: bool) {
        let routes = self.shared.routes(service);
        let found = tokio::time::timeout(SOON, routes.until_ready(somebody)).await;
        let what = if somebody { "a ready pod" } else { "no pod" };
        assert!(found.is_ok(), "not within {SOON:?}: the resolver knows of {what} for {service}");
    }

    async fn write(&self, endpoints: &Value) -> Result<()> {
        let path = format!("{}/resolver-1", self.shared.slices());
        self.shared.endpoint.merge_patch(&path, &json!({ "endpoints": endpoints })).await?.success()?;
        Ok(())
    }
}

fn endpoint(address: &str, ready: bool) -> Value {
    json!({ "addresses": [address], "conditions": { "ready": ready, "serving": ready, "terminating": false } })
}

async fn keep(State(shared): State<Arc<Shared>>, headers: HeaderMap, uri: Uri) -> (StatusCode, String) {
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    shared.kept.fetch_add(1, Ordering::Relaxed);
    match tokio::time::timeout(PATIENCE, shared.pass_on(&host, uri.path())).await {
        Ok(Ok(body)) => (StatusCode::OK, body),
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, format!("{error:#}")),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "nobody came".to_owned()),
    }
}

impl Shared {
    fn slices(&self) -> String {
        format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", self.namespace)
    }

    /// Where the private Service of a service leads.
    fn routes(&self, service: &str) -> Routes {
        let private = names::private_service(service);
        let mut all = self.routes.lock().unwrap();
        all.entry(private.clone())
            .or_insert_with(|| Routes::follow(&self.endpoint, &self.namespace, &private))
            .clone()
    }

    async fn pass_on(&self, host: &str, path: &str) -> Result<String> {
        let service = host.split(['.', ':']).next().unwrap_or_default();
        let routes = self.routes(service);
        loop {
            // Ready ones only, as their list says; one that went away meanwhile is no reason to give up.
            if let Some(address) = routes.ready().await
                && let Ok(answer) = self.network.ask(&address, host, path).await
            {
                anyhow::ensure!(answer.status == 200, "the pod answered {}", answer.status);
                return Ok(answer.body);
            }
            let operator = self.operator.lock().unwrap().clone();
            // It asks again and again, as a resolver should.
            if let Some(operator) = operator {
                drop(operator.wake(&self.namespace, service).await);
            }
            // tidy: allow-sleep a resolver that looks from time to time
            tokio::time::sleep(AGAIN).await;
        }
    }
}
