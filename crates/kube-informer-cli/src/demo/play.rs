//! The play: a service falls asleep when nobody needs it, and wakes when somebody asks for it.
//!
//! What the operator does is real. What is played is the person who scales the service to zero, and the one who asks for it
//! later; both are announced. Each round begins with making what is missing, whoever took it away, and each step waits for what
//! the one before led to. Where that does not come, this is said, and the next round begins.

use std::time::Duration;

use anyhow::Context as _;
use http::{Method, Request, header};
use k8s_openapi::api::apps::v1::Deployment;
use kube_informer::factory::Factory;
use kube_informer::informer::{Event, Informer};
use kube_informer::object::Object;
use kube_informer_elasti::crd;
use serde_json::{Value, json};

use super::resolver;
use super::stage::Stage;

/// Where it is played.
pub(super) const NAMESPACE: &str = "shop";
/// Who falls asleep.
pub(super) const SERVICE: &str = "gallery";
/// Where the resolver is.
pub(super) const ELASTI: &str = "elasti";
/// What the resolver's Service is called, and its port.
pub(super) const RESOLVER: (&str, u16) = ("elasti-resolver-service", 8012);

/// How long (in simulated seconds) people look at something before the next step.
const LOOK: f64 = 5.0;
/// How long (in simulated seconds, and in real ones) a step may take.
const STEP: (f64, f64) = (120.0, 30.0);

/// See the module.
pub(super) struct Play {
    pub(super) api: Api,
    pub(super) stage: Stage,
    pub(super) deployments: Informer<Deployment>,
    pub(super) elastis: Informer,
    /// Where requests for the service come to while it sleeps.
    pub(super) resolver: std::net::SocketAddr,
    pub(super) speed: f64,
}

impl Play {
    /// Plays until it is dropped.
    pub(super) async fn run(self) {
        // First the shop comes alive. Where it does not, there is something to see all the same.
        if let Err(error) = self.ready(NAMESPACE, "web").await {
            tracing::info!(%error, "the play begins without the shop");
        }
        self.look().await;
        loop {
            if let Err(error) = self.round().await {
                self.stage.narrate(&format!("the play begins anew: {error:#}"));
            }
            self.look().await;
        }
    }

    async fn round(&self) -> anyhow::Result<()> {
        self.api.furnish().await?;
        if !self.api.has_elasti().await {
            self.ready(ELASTI, "resolver").await?;
            self.ready(NAMESPACE, SERVICE).await?;
            self.api.answered().await?;
            let what = format!("an ElastiService for {NAMESPACE}/{SERVICE}, which may sleep from now on");
            self.stage.narrate(&format!("somebody applies {what}"));
            self.api.make_elasti().await?;
        }
        self.mode("serve").await?;
        self.look().await;
        self.stage.narrate(&format!("nobody looks at {NAMESPACE}/{SERVICE}: somebody scales it to zero"));
        self.api.scale(0).await?;
        self.mode("proxy").await?;
        self.look().await;
        self.stage
            .narrate(&format!("somebody opens {NAMESPACE}/{SERVICE}, and does not know that it sleeps"));
        let (status, words) = resolver::call(self.resolver, "GET", "/", "").await?;
        anyhow::ensure!(status == 200, "the resolver says {status}: {words}");
        self.mode("serve").await?;
        self.look().await;
        self.look().await;
        Ok(())
    }

    /// Waits until a Deployment has a pod that is ready.
    async fn ready(&self, namespace: &str, name: &str) -> anyhow::Result<()> {
        self.until(&format!("{namespace}/{name} is ready"), &self.deployments, |each| {
            let ready = each.pointer::<i64>("/status/readyReplicas").ok().flatten();
            (each.namespace(), each.name()) == (namespace, name) && ready.unwrap_or(0) > 0
        })
        .await
    }

    /// Waits until the ElastiService is in a mode.
    async fn mode(&self, mode: &str) -> anyhow::Result<()> {
        self.until(&format!("{NAMESPACE}/{SERVICE} is in mode {mode}"), &self.elastis, |elasti| {
            let is = elasti.pointer::<String>("/status/mode").ok().flatten();
            (elasti.namespace(), elasti.name()) == (NAMESPACE, SERVICE) && is.as_deref() == Some(mode)
        })
        .await
    }

    /// Waits until there is such an object.
    async fn until<K: Send + Sync + 'static>(
        &self,
        what: &str,
        informer: &Informer<K>,
        is_it: impl Fn(&Object<K>) -> bool,
    ) -> anyhow::Result<()> {
        let mut events = informer.subscribe().name("play").events();
        let found = async {
            while let Some(event) = events.next().await {
                if let Event::Added { new, .. } | Event::Updated { new, .. } = &event
                    && is_it(new)
                {
                    return Ok(());
                }
            }
            Err(anyhow::anyhow!("nobody tells whether {what}"))
        };
        let (simulated, real) = STEP;
        let patience =
            Duration::try_from_secs_f64((simulated / self.speed).max(real)).unwrap_or(Duration::MAX);
        tokio::time::timeout(patience, found)
            .await
            .with_context(|| format!("not within {patience:?}: {what}"))?
    }

    async fn look(&self) {
        // However fast the simulation is, people have to read.
        let seconds = (LOOK / self.speed).clamp(0.3, 3600.0);
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }
}

/// What is written, and as whom.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) factory: Factory,
}

impl Api {
    /// Defines ElastiServices, and waits until they are served.
    pub(super) async fn define(&self) -> anyhow::Result<()> {
        let definition: Value = serde_saphyr::from_str(crd::manifest())
            .context("the definition of ElastiServices cannot be read")?;
        self.provide("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
        let served = async {
            let collection = "/apis/elasti.truefoundry.com/v1alpha1/elastiservices";
            while self.get(collection).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), served).await.context("ElastiServices are not served")
    }

    /// Makes what is missing of the play, but for the ElastiService.
    async fn furnish(&self) -> anyhow::Result<()> {
        for name in [NAMESPACE, ELASTI] {
            self.provide("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
        }
        let (resolver, port) = RESOLVER;
        for (namespace, app, service, port) in
            [(ELASTI, "resolver", resolver, port), (NAMESPACE, SERVICE, SERVICE, 80)]
        {
            let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
            self.provide(&deployments, &deployment(app)).await?;
            let services = format!("/api/v1/namespaces/{namespace}/services");
            self.provide(&services, &service_for(service, app, port)).await?;
        }
        Ok(())
    }

    /// Waits until the service leads to a pod: who takes it over before finds it asleep.
    async fn answered(&self) -> anyhow::Result<()> {
        let slices = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices?labelSelector=kubernetes.io/service-name={SERVICE}"
        );
        let is_ready = |endpoint: &Value| endpoint["conditions"]["ready"] == true;
        let answered = async {
            loop {
                let list = self.get(&slices).await?;
                let slices = list["items"].as_array().into_iter().flatten();
                if slices.flat_map(|slice| slice["endpoints"].as_array()).flatten().any(is_ready) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let patience = Duration::from_secs(30);
        tokio::time::timeout(patience, answered).await.context("no pod answers for the service")?
    }

    async fn has_elasti(&self) -> bool {
        self.get(&format!("{}/{SERVICE}", elastis())).await.is_ok()
    }

    async fn make_elasti(&self) -> anyhow::Result<()> {
        self.send(Method::POST, &elastis(), Some(&elasti())).await?;
        Ok(())
    }

    async fn scale(&self, replicas: u32) -> anyhow::Result<()> {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{SERVICE}/scale");
        let patch = json!({ "spec": { "replicas": replicas } });
        self.send(Method::PATCH, &path, Some(&patch)).await?;
        Ok(())
    }

    /// Makes an object where there is none.
    async fn provide(&self, collection: &str, object: &Value) -> anyhow::Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if self.get(&format!("{collection}/{name}")).await.is_err() {
            self.send(Method::POST, collection, Some(object)).await?;
        }
        Ok(())
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let said = format!("{method} {path}");
        let uri = if method == Method::GET { path.to_owned() } else { format!("{path}?fieldManager=demo") };
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::CONTENT_TYPE, content)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())?;
        self.factory.client().request(request).await.with_context(|| said)
    }
}

fn deployment(name: &str) -> Value {
    let labels = json!({ "app": name });
    let image = format!("registry.example.com/{name}:1.0");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": name, "image": image }] },
            },
        },
    })
}

fn service_for(name: &str, app: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": { "selector": { "app": app }, "ports": [{ "name": "http", "port": port }] },
    })
}

/// Where ElastiServices of the play are.
fn elastis() -> String {
    format!("/apis/elasti.truefoundry.com/v1alpha1/namespaces/{NAMESPACE}/elastiservices")
}

fn elasti() -> Value {
    json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1",
        "kind": "ElastiService",
        "metadata": { "name": SERVICE },
        "spec": {
            "service": SERVICE,
            "minTargetReplicas": 1,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": SERVICE },
        },
    })
}
