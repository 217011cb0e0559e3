//! A server, a namespace with a resolver in it, and what becomes of services there.

use std::path::{Path, PathBuf};

use http::{HeaderMap, HeaderValue, Method};
use kube_informer_apiserver::{Server, Simulation};
use kube_informer_elasti::{crd, names};
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};

use super::kubelet::Kubelet;
use super::{SOON, objects};

/// The group and version of ElastiServices.
pub(crate) const ELASTI: &str = "elasti.truefoundry.com/v1alpha1";

/// See the module.
pub(crate) struct World {
    pub(crate) endpoint: Endpoint,
    pub(crate) namespace: String,
    /// Whether the operator looks after all namespaces, or only this one: others may have an operator of their own.
    pub(crate) everywhere: bool,
    /// How the operator comes to the server, where it has rights of its own.
    pub(super) account: Option<Access>,
    folder: Folder,
    /// What ends with the test.
    _kubelet: Option<Kubelet>,
    _server: Option<Server>,
    _own: Option<Namespace>,
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl World {
    /// The embedded server. Its simulator plays controllers, scheduler and kubelets.
    pub(crate) async fn embedded(test: &str) -> Self {
        Self::bare(test).await.furnished().await
    }

    /// The same, with nothing in it.
    pub(crate) async fn bare(test: &str) -> Self {
        let simulation = Simulation::default().with_speed(20.0).with_nodes(8).with_events(0);
        let server = Server::builder().seed(1).simulate(simulation).start().await.unwrap();
        let endpoint = Endpoint::new(Access::anonymous(server.url())).unwrap();
        let namespace = "shop".to_owned();
        let body = json!({ "metadata": { "name": namespace } });
        endpoint.post("/api/v1/namespaces", &body).await.unwrap().success().unwrap();
        let folder = Folder::create(&format!("embedded-{test}"));
        Self {
            endpoint,
            namespace,
            everywhere: false,
            account: None,
            folder,
            _kubelet: None,
            _server: Some(server),
            _own: None,
        }
    }

    /// The real server with its controllers. The operator has the rights that the manifests give it, in this namespace.
    pub(crate) async fn real(cluster: &Cluster, test: &str) -> Self {
        Self::unmanned(cluster, test).await.manned(cluster).await
    }

    /// The same, without an account for the operator.
    pub(crate) async fn unmanned(cluster: &Cluster, test: &str) -> Self {
        let own = cluster.namespace(test).await.unwrap();
        let (endpoint, namespace) = (cluster.endpoint().clone(), own.name().to_owned());
        let kubelet = Some(Kubelet::start(&endpoint, &namespace));
        let folder = Folder::create(&format!("real-{test}"));
        let world = Self {
            endpoint,
            namespace,
            everywhere: false,
            account: None,
            folder,
            _kubelet: kubelet,
            _server: None,
            _own: Some(own),
        };
        world.furnished().await
    }

    /// With ElastiServices, and a resolver of two pods.
    pub(crate) async fn furnished(self) -> Self {
        self.install_crd().await;
        self.create("apps/v1", "deployments", &objects::deployment("elasti-resolver", 2)).await;
        let service = objects::service("elasti-resolver-service", "elasti-resolver", 8012);
        self.create("v1", "services", &service).await;
        self
    }

    async fn install_crd(&self) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let defined = match self._server {
            // It speaks no YAML.
            Some(_) => self.endpoint.post(definitions, &objects::definition()).await.unwrap(),
            None => self.apply(&format!("{definitions}/{}", crd::NAME), crd::manifest()).await,
        };
        defined.success().unwrap();
        let collection = self.path(ELASTI, "elastiservices");
        eventually("ElastiServices are served", SOON, async || {
            self.endpoint.get(&collection).await.ok().filter(|answer| answer.status.is_success())
        })
        .await;
    }

    /// Applies a document of YAML, as `kubectl apply --server-side` does.
    pub(crate) async fn apply(&self, path: &str, yaml: &str) -> kube_informer_testbed::http::Response {
        let content = HeaderValue::from_static("application/apply-patch+yaml");
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, content)]);
        let path = format!("{path}?fieldManager=test&force=true");
        self.endpoint.request(Method::PATCH, &path, headers, yaml.to_owned()).await.unwrap()
    }

    /// How the administrator comes to the server.
    pub(crate) fn admin(&self) -> Access {
        self.endpoint.access().clone()
    }

    /// How the operator comes to the server.
    pub(crate) fn access(&self) -> Access {
        self.account.clone().unwrap_or_else(|| self.admin())
    }

    /// For files of this test.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// The path of a resource in the namespace.
    pub(crate) fn path(&self, version: &str, rest: &str) -> String {
        let root = if version == "v1" { "/api" } else { "/apis" };
        format!("{root}/{version}/namespaces/{}/{rest}", self.namespace)
    }

    pub(crate) async fn create(&self, version: &str, plural: &str, object: &Value) {
        self.endpoint.post(&self.path(version, plural), object).await.unwrap().success().unwrap();
    }

    /// A Deployment, a Service, and an ElastiService for them.
    pub(crate) async fn service(&self, name: &str, replicas: u32) {
        self.create("apps/v1", "deployments", &objects::deployment(name, replicas)).await;
        self.create("v1", "services", &objects::service(name, name, 80)).await;
        self.create(ELASTI, "elastiservices", &objects::elasti(name)).await;
    }

    /// Somebody edits an object.
    pub(crate) async fn edit(&self, version: &str, rest: &str, patch: &Value) {
        let path = self.path(version, rest);
        self.endpoint.merge_patch(&path, patch).await.unwrap().success().unwrap();
    }

    /// Somebody deletes an object.
    pub(crate) async fn delete(&self, version: &str, rest: &str) {
        self.endpoint.delete(&self.path(version, rest)).await.unwrap().success().unwrap();
    }

    /// Somebody edits an ElastiService.
    pub(crate) async fn edit_elasti(&self, name: &str, patch: &Value) {
        self.edit(ELASTI, &format!("elastiservices/{name}"), patch).await;
    }

    /// Somebody scales a Deployment.
    pub(crate) async fn scale(&self, name: &str, replicas: u32) {
        let patch = json!({ "spec": { "replicas": replicas } });
        self.edit("apps/v1", &format!("deployments/{name}"), &patch).await;
    }

    /// How many replicas a Deployment is to have.
    pub(crate) async fn replicas(&self, name: &str) -> u64 {
        let path = self.path("apps/v1", &format!("deployments/{name}"));
        self.endpoint.get_json(&path).await.unwrap()["spec"]["replicas"].as_u64().unwrap()
    }

    pub(crate) async fn elasti(&self, name: &str) -> Option<Value> {
        let path = self.path(ELASTI, &format!("elastiservices/{name}"));
        let answer = self.endpoint.get(&path).await.unwrap();
        (answer.status != 404).then(|| answer.success().unwrap().json().unwrap())
    }

    pub(crate) async fn delete_elasti(&self, name: &str) {
        let path = self.path(ELASTI, &format!("elastiservices/{name}"));
        self.endpoint.delete(&path).await.unwrap().success().unwrap();
    }

    /// Waits until a service is as it should be while it sleeps.
    pub(crate) async fn sleeps(&self, name: &str) {
        self.becomes(name, name, "proxy").await;
    }

    /// Waits until a service is as it should be while it is awake.
    pub(crate) async fn serves(&self, name: &str) {
        self.becomes(name, name, "serve").await;
    }

    /// Waits until the Service of an ElastiService is as it should be in this mode.
    pub(crate) async fn becomes(&self, elasti: &str, service: &str, mode: &str) {
        let mut last = String::new();
        let done = eventually_or(async || match self.wrong(elasti, service, mode).await {
            None => true,
            Some(wrong) => {
                last = wrong;
                false
            }
        });
        assert!(done.await, "{elasti} is not in mode {mode}: {last}");
    }

    /// What is wrong with a service that should be in this mode.
    async fn wrong(&self, elasti: &str, name: &str, mode: &str) -> Option<String> {
        let Some(elasti) = self.elasti(elasti).await else { return Some("it is gone".to_owned()) };
        let is_seen = elasti["status"]["observedGeneration"] == elasti["metadata"]["generation"];
        if elasti["status"]["mode"] != mode || !is_seen {
            return Some(format!("its status is {}", elasti["status"]));
        }
        let private = names::private_service(name);
        let service = self.endpoint.get(&self.path("v1", &format!("services/{private}"))).await.unwrap();
        if mode == "proxy" && !service.status.is_success() {
            return Some(format!("{private}: {}", service.status));
        }
        let (to_resolver, own) = self.endpoints(name).await;
        let resolver = self.endpoints("elasti-resolver-service").await.1;
        match mode {
            "proxy" if resolver.is_empty() || to_resolver != resolver => {
                Some(format!("its slices lead to {to_resolver:?}, the resolver is {resolver:?}"))
            }
            "serve" if !to_resolver.is_empty() || own.is_empty() => {
                Some(format!("its slices lead to {to_resolver:?} and {own:?}"))
            }
            _ => None,
        }
    }

    /// The ready addresses behind a Service: those of the operator's slices, and those of all others, in order.
    pub(crate) async fn endpoints(&self, service: &str) -> (Vec<String>, Vec<String>) {
        let path = format!("endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}");
        let slices = self.endpoint.get_json(&self.path("discovery.k8s.io/v1", &path)).await.unwrap();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for slice in slices["items"].as_array().into_iter().flatten() {
            let name = slice["metadata"]["name"].as_str().unwrap();
            let to = if name.starts_with(&names::resolver_slice(service)) { &mut ours } else { &mut theirs };
            for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
                if endpoint["conditions"]["ready"] != false {
                    to.extend(
                        endpoint["addresses"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|at| at.as_str().unwrap().to_owned()),
                    );
                }
            }
        }
        ours.sort();
        theirs.sort();
        (ours, theirs)
    }

    /// Waits until nothing is left of what was made for a service, whose ElastiService was deleted.
    pub(crate) async fn forgotten(&self, name: &str) {
        eventually("nothing is left of it", SOON, async || {
            (self.elasti(name).await.is_none() && self.is_unredirected(name).await).then_some(())
        })
        .await;
    }

    /// Whether nothing is there of what is made for a Service.
    pub(crate) async fn is_unredirected(&self, service: &str) -> bool {
        let private = self.path("v1", &format!("services/{}", names::private_service(service)));
        self.endpoint.get(&private).await.unwrap().status == 404 && self.endpoints(service).await.0.is_empty()
    }

    /// Waits until a service whose ElastiService was deleted is as it should be: its target has so many replicas, its pods
    /// answer, and nothing else is left.
    pub(crate) async fn given_back(&self, name: &str, replicas: u64) {
        self.forgotten(name).await;
        // Both were so before the redirect went.
        assert_eq!(self.replicas(name).await, replicas, "{name} is not as awake as it was to be");
        assert!(!self.endpoints(name).await.1.is_empty(), "nobody answers for {name}");
        eventually("all its pods answer", SOON, async || {
            (self.endpoints(name).await.1.len() as u64 == replicas).then_some(())
        })
        .await;
    }
}

/// Looks until it is so, or for too long.
async fn eventually_or(mut condition: impl AsyncFnMut() -> bool) -> bool {
    let looks = eventually("it is so", SOON * 2, async || condition().await.then_some(()));
    tokio::time::timeout(SOON, looks).await.is_ok()
}

impl Folder {
    fn create(test: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // It is in a folder for such things.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
