//! A stage: a server, embedded or real, with a namespace of the test's own; in it a kubelet, a resolver, and an operator that
//! can be stopped and started.

use std::fmt::Debug;
use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer::manager::Manager;
use kube_informer::runner::Runner;
use kube_informer_apiserver::{Server, Simulation};
use kube_informer_elasti::operator::{Operator, OperatorSettings};
use kube_informer_elasti::{crd, names};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::place::Place;
use kube_informer_testbed::proxy::{self, Fault, Proxy};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::client::Clients;
use crate::support::kubelet::Kubelet;
use crate::support::network::{Answer, Network};
use crate::support::resolver::{PORT, Resolver, SERVICE};

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// See the module.
pub(crate) struct Stage {
    pub(crate) network: Network,
    pub(crate) kubelet: Kubelet,
    pub(crate) resolver: Resolver,
    running: Option<Running>,
    // Last: what runs in the namespace ends before it.
    place: Place,
}

struct Running {
    operator: Operator,
    manager: Manager,
    factory: Factory,
    stop: oneshot::Sender<()>,
    runs: JoinHandle<()>,
}

impl Stage {
    /// On the embedded server, whose simulator makes pods.
    pub(crate) async fn embedded() -> Result<Self> {
        let simulation = Simulation::default().with_speed(50.0).with_events(0);
        let place = Place::of(Server::builder().simulate(simulation).start().await?).await?;
        Self::on(place).await
    }

    /// On the real server, with its controllers.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Self::on(Place::real(cluster, test).await?).await
    }

    async fn on(place: Place) -> Result<Self> {
        define(&place).await?;
        let network = Network::default();
        let kubelet = Kubelet::start(&place.endpoint, &place.namespace, &network, place.is_real()).await?;
        let resolver = Resolver::start(&place.endpoint, &place.namespace, &network).await?;
        let mut stage = Self { network, kubelet, resolver, running: None, place };
        stage.operate().await?;
        Ok(stage)
    }

    /// How the operator works here.
    pub(crate) fn settings(&self) -> OperatorSettings {
        let mut settings =
            OperatorSettings::new(&self.namespace, SERVICE, PORT).scope(Scope::namespace(&self.namespace));
        settings.restore_deadline = Duration::from_secs(60);
        settings.linger = Duration::from_secs(1);
        settings.endpoints_patience = Duration::from_secs(2);
        settings.in_flight = Duration::from_secs(1);
        settings.retry = Duration::from_secs(1);
        settings
    }

    /// Starts the operator.
    pub(crate) async fn operate(&mut self) -> Result<()> {
        let kubeconfig = self.place.kubeconfig().to_owned();
        self.operate_as(&kubeconfig).await
    }

    /// A factory for the server, as somebody.
    pub(crate) async fn factory(kubeconfig: &str) -> Result<Factory> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Factory::from_config(config).await?)
    }

    /// Starts the operator as somebody.
    pub(crate) async fn operate_as(&mut self, kubeconfig: &str) -> Result<()> {
        let factory = Self::factory(kubeconfig).await?;
        self.operate_with(factory, self.settings());
        Ok(())
    }

    /// Starts the operator with other settings.
    pub(crate) async fn operate_as_said(&mut self, settings: OperatorSettings) -> Result<()> {
        let factory = Self::factory(self.place.kubeconfig()).await?;
        self.operate_with(factory, settings);
        Ok(())
    }

    fn operate_with(&mut self, factory: Factory, settings: OperatorSettings) {
        let manager = Manager::new(&factory);
        let operator = Operator::new(settings, &factory, &manager);
        manager.start();
        let runner = operator.run_under(Runner::new(&factory));
        let (stop, stopped) = oneshot::channel();
        let runs = tokio::spawn(async move {
            let ended = runner.run(async { drop(stopped.await) }).await;
            assert!(ended.is_ok(), "{ended:?}");
        });
        self.resolver.ask(&operator);
        self.running = Some(Running { operator, manager, factory, stop, runs });
    }

    /// A fault proxy before the server.
    pub(crate) async fn proxy(&self) -> Result<Proxy> {
        proxy::Config::new(self.endpoint.access()).add_credentials().start().await
    }

    /// Starts the operator behind a proxy.
    pub(crate) async fn operate_behind(&mut self, proxy: &Proxy) -> Result<()> {
        self.operate_behind_as_said(proxy, self.settings()).await
    }

    /// Starts the operator behind a proxy, with other settings.
    pub(crate) async fn operate_behind_as_said(
        &mut self,
        proxy: &Proxy,
        settings: OperatorSettings,
    ) -> Result<()> {
        let factory = Self::factory_behind(proxy).await?;
        self.operate_with(factory, settings);
        Ok(())
    }

    /// A factory for the server behind a proxy.
    pub(crate) async fn factory_behind(proxy: &Proxy) -> Result<Factory> {
        let kubeconfig = Kubeconfig::from_yaml(&proxy.kubeconfig("none"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.auth_info.token = None;
        Ok(Factory::from_config(config).await?)
    }

    /// Starts the operator anew behind a proxy.
    pub(crate) async fn operate_through_proxy(&mut self) -> Result<Proxy> {
        self.retire().await;
        let proxy = self.proxy().await?;
        self.operate_behind(&proxy).await?;
        Ok(proxy)
    }

    /// Stops the operator, and waits for its end.
    pub(crate) async fn retire(&mut self) {
        if let Some(Running { operator, manager, stop, runs, .. }) = self.running.take() {
            let _ = stop.send(());
            runs.await.unwrap();
            manager.shutdown(SOON).await;
            operator.recorder().shutdown(Duration::from_secs(5)).await;
        }
    }

    /// The operator goes in the middle of whatever it does.
    pub(crate) async fn crash(&mut self) {
        if let Some(Running { manager, factory, runs, .. }) = self.running.take() {
            runs.abort();
            drop(runs.await);
            manager.shutdown(Duration::ZERO).await;
            factory.shutdown_within(Duration::ZERO).await;
        }
    }

    pub(crate) fn operator(&self) -> &Operator {
        &self.running.as_ref().unwrap().operator
    }

    /// What ends in order, and leaves nothing that nobody would clean up after.
    pub(crate) async fn close(mut self) -> Result<()> {
        self.retire().await;
        if self.is_real() {
            let path = self.path("elasti.truefoundry.com/v1alpha1/elastiservices");
            let all = self.find(&path).await.unwrap_or_default();
            for elasti in all["items"].as_array().into_iter().flatten() {
                let path = self.elasti_path(elasti["metadata"]["name"].as_str().unwrap());
                self.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?;
            }
            self.place.delete(&format!("/api/v1/nodes/{}", self.namespace)).await?;
        }
        Ok(())
    }

    // ### What users make.

    /// A workload with a Service of the same name, and an ElastiService for both.
    pub(crate) async fn app(&self, name: &str, replicas: u32) -> Result<()> {
        self.deployment(name, replicas).await?;
        self.service(name, json!({ "app": name })).await?;
        self.elasti(name, name, ("apps/v1", "Deployment", name)).await
    }

    pub(crate) async fn deployment(&self, name: &str, replicas: u32) -> Result<()> {
        self.post(&self.path("apps/v1/deployments"), &workload(name, replicas)).await?;
        Ok(())
    }

    pub(crate) async fn stateful_set(&self, name: &str, replicas: u32) -> Result<()> {
        let mut set = workload(name, replicas);
        set["spec"]["serviceName"] = name.into();
        set["spec"]["podManagementPolicy"] = "Parallel".into();
        self.post(&self.path("apps/v1/statefulsets"), &set).await?;
        Ok(())
    }

    pub(crate) async fn service(&self, name: &str, selector: Value) -> Result<()> {
        let port = json!({ "name": "http", "port": 80, "targetPort": 8080 });
        let service =
            json!({ "metadata": { "name": name }, "spec": { "selector": selector, "ports": [port] } });
        self.post(&self.path("services"), &service).await?;
        Ok(())
    }

    pub(crate) async fn elasti(&self, name: &str, service: &str, target: (&str, &str, &str)) -> Result<()> {
        self.elasti_of(name, &spec(service, target)).await
    }

    pub(crate) async fn elasti_of(&self, name: &str, spec: &Value) -> Result<()> {
        let mut object = json!({ "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": { "name": name }, "spec": spec });
        if spec.is_null() {
            object.as_object_mut().unwrap().remove("spec");
        }
        self.post(&self.path("elasti.truefoundry.com/v1alpha1/elastiservices"), &object).await?;
        Ok(())
    }

    /// Scales a workload as people do.
    pub(crate) async fn scale(&self, workload: &str, replicas: u32) -> Result<()> {
        self.merge(
            &self.path(&format!("apps/v1/{workload}/scale")),
            &json!({ "spec": { "replicas": replicas } }),
        )
        .await?;
        Ok(())
    }

    // ### What users see.

    pub(crate) fn elasti_path(&self, name: &str) -> String {
        self.path(&format!("elasti.truefoundry.com/v1alpha1/elastiservices/{name}"))
    }

    /// An object, if it is there.
    pub(crate) async fn find(&self, path: &str) -> Option<Value> {
        let answer = self.endpoint.get(path).await.ok()?;
        answer.status.is_success().then(|| answer.json().ok()).flatten()
    }

    /// Waits until an object is like that.
    pub(crate) async fn until(&self, what: &str, path: &str, like: impl Fn(&Value) -> bool) -> Value {
        let last = std::sync::Mutex::new(Value::Null);
        let look = async || {
            let found = self.find(path).await?;
            let is_it = like(&found);
            *last.lock().unwrap() = found.clone();
            is_it.then_some(found)
        };
        let found = tokio::time::timeout(SOON, async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                // tidy: allow-sleep polls an object of the server, and says at the end what it was last
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("not within {SOON:?}: {what}; {path} is {:#}", last.lock().unwrap()),
        }
    }

    /// Waits until an object is gone.
    pub(crate) async fn gone(&self, path: &str) {
        let gone = async || {
            let answer = self.endpoint.get(path).await.ok()?;
            (answer.status == http::StatusCode::NOT_FOUND).then_some(())
        };
        eventually(&format!("{path} is gone"), SOON, gone).await;
    }

    /// Waits until an ElastiService has a mode.
    pub(crate) async fn mode(&self, name: &str, mode: &str) -> Value {
        let what = format!("{name} is in mode {mode}");
        self.until(&what, &self.elasti_path(name), |elasti| elasti["status"]["mode"] == mode).await
    }

    /// Waits until the pods of a service answer, and the resolver knows of them.
    pub(crate) async fn serves(&self, service: &str) {
        self.mode(service, "serve").await;
        self.resolver.until_found(service, true).await;
    }

    /// Waits until what [served](Self::serves) sleeps, and everybody knows: its Service leads to the resolver alone, which
    /// knows of no pod. Slices follow pods after a while; until then, a pod that is to end may answer, and nobody is woken.
    pub(crate) async fn sleeps(&self, service: &str, workload: &str) {
        let resolver = self.resolver.addresses();
        self.mode(service, "proxy").await;
        self.redirected(service, &resolver).await;
        self.replicas(workload, 0).await;
        let slices = format!(
            "discovery.k8s.io/v1/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        );
        let is_alone = |list: &Value| {
            let slices = list["items"].as_array().into_iter().flatten();
            let endpoints = slices.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
            let mut ready = endpoints.filter(|each| each["conditions"]["ready"] != false);
            ready.all(|each| resolver.iter().any(|address| each["addresses"][0] == **address))
        };
        self.until(&format!("{service} leads to the resolver alone"), &self.path(&slices), is_alone).await;
        self.resolver.until_found(service, false).await;
    }

    /// Waits until an ElastiService has a condition with a status and a reason.
    pub(crate) async fn condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> Value {
        let what = format!("{name} is {kind}={status} for {reason}");
        let is_it =
            |each: &Value| each["type"] == kind && each["status"] == status && each["reason"] == reason;
        let elasti = self.until(&what, &self.elasti_path(name), |elasti| conditions(elasti).any(is_it)).await;
        conditions(&elasti).find(|each| is_it(each)).unwrap().clone()
    }

    /// Waits for an event about an ElastiService.
    pub(crate) async fn event(&self, name: &str, reason: &str) -> Value {
        let path = self.path("events.k8s.io/v1/events");
        let is_it = |each: &&Value| each["regarding"]["name"] == name && each["reason"] == reason;
        let find = |list: &Value| list["items"].as_array().into_iter().flatten().find(is_it).cloned();
        let list =
            self.until(&format!("an event {reason} about {name}"), &path, |list| find(list).is_some()).await;
        find(&list).unwrap()
    }

    pub(crate) fn private_path(&self, service: &str) -> String {
        self.path(&format!("services/{}", names::private_service(service)))
    }

    pub(crate) fn slice_path(&self, service: &str) -> String {
        self.path(&format!("discovery.k8s.io/v1/endpointslices/{}", names::resolver_slice(service)))
    }

    /// Waits until the slice to the resolver leads to these addresses.
    pub(crate) async fn redirected(&self, service: &str, to: &[String]) -> Value {
        let what = format!("{service} is redirected to {to:?}");
        self.until(&what, &self.slice_path(service), |slice| addresses(slice) == to).await
    }

    /// Waits until a workload is to have so many replicas, and has as many ready ones.
    pub(crate) async fn replicas(&self, workload: &str, count: u64) -> Value {
        let path = self.path(&format!("apps/v1/{workload}"));
        let is_it = |object: &Value| {
            object["spec"]["replicas"] == count
                && object["status"]["readyReplicas"].as_u64().unwrap_or(0) == count
        };
        self.until(&format!("{workload} has {count} replicas"), &path, is_it).await
    }

    pub(crate) fn clients(&self, service: &str) -> Clients {
        Clients::start(&self.endpoint, &self.namespace, service, &self.network)
    }

    /// Asks a service once, as a client that is routed by its slices.
    pub(crate) async fn ask(&self, service: &str) -> Result<Answer> {
        let routes = crate::support::client::Routes::follow(&self.endpoint, &self.namespace, service);
        let address = routes.route().await.context("the service leads nowhere")?;
        self.network.ask(&address, service, "/").await
    }
}

impl Deref for Stage {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// The conditions of an ElastiService.
pub(crate) fn conditions(elasti: &Value) -> impl Iterator<Item = &Value> {
    elasti["status"]["conditions"].as_array().into_iter().flatten()
}

/// Where a slice leads.
pub(crate) fn addresses(slice: &Value) -> Vec<String> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    endpoints.map(|each| each["addresses"][0].as_str().unwrap_or_default().to_owned()).collect()
}

/// The spec of an ElastiService.
pub(crate) fn spec(service: &str, (version, kind, name): (&str, &str, &str)) -> Value {
    json!({ "service": service, "minTargetReplicas": 1,
        "scaleTargetRef": { "apiVersion": version, "kind": kind, "name": name } })
}

fn workload(name: &str, replicas: u32) -> Value {
    json!({ "metadata": { "name": name }, "spec": {
        "replicas": replicas,
        "selector": { "matchLabels": { "app": name } },
        "template": {
            "metadata": { "labels": { "app": name } },
            "spec": { "containers": [{ "name": "main", "image": "httpbin" }] },
        },
    } })
}

/// Waits until a fault has met a request of something that is done meanwhile, and that is not to end before.
pub(crate) async fn met<T: Debug>(fault: &Fault, meanwhile: &mut JoinHandle<T>) {
    tokio::select! {
        () = met_once(fault) => {}
        ended = meanwhile => panic!("it ended, and sent nothing of the kind: {ended:?}"),
    }
}

/// Waits until a fault has met a request.
pub(crate) async fn met_once(fault: &Fault) {
    let met = tokio::time::timeout(SOON, fault.wait_applied(1)).await;
    assert!(met.is_ok(), "no such request within {SOON:?}: {fault:?}");
}

/// The definition, as JSON.
pub(crate) fn definition() -> Result<Value> {
    // What reads kubeconfigs reads YAML, and keeps what it does not know.
    let indented: String = crd::manifest().lines().map(|line| format!("      {line}\n")).collect();
    let text = format!("preferences:\n  extensions:\n  - name: crd\n    extension:\n{indented}");
    let preferences = Kubeconfig::from_yaml(&text)?.preferences.context("nothing was read")?;
    let extension = preferences.extensions.into_iter().flatten().next().context("nothing was read")?;
    Ok(extension.extension)
}

/// Installs the definition, and waits until it is served. Others may do the same at the same time.
pub(crate) async fn define(place: &Place) -> Result<()> {
    let answer = place.endpoint.post(DEFINITIONS, &definition()?).await?;
    let is_there = answer.status.is_success() || answer.status == http::StatusCode::CONFLICT;
    ensure!(is_there, "the definition was refused: {answer:?}");
    let served = async || {
        let list = place.path("elasti.truefoundry.com/v1alpha1/elastiservices");
        place.endpoint.get(&list).await.ok().filter(|answer| answer.status.is_success())
    };
    eventually("ElastiServices are served", SOON, served).await;
    Ok(())
}

/// Removes the definition, with all objects.
pub(crate) async fn undefine(place: &Place) -> Result<()> {
    place.delete(&format!("{DEFINITIONS}/{}", crd::NAME)).await
}

/// Makes two tests of a function over a [`Stage`].
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> anyhow::Result<()> {
                super::$name($crate::harness::Stage::embedded().await?).await
            })*
        }
        $crate::harness::on_real!($($name),*);
    };
}
pub(crate) use on_both;

/// Makes a test on the embedded server of a function over a [`Stage`].
macro_rules! on_embedded {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> anyhow::Result<()> {
                super::$name($crate::harness::Stage::embedded().await?).await
            })*
        }
    };
}
pub(crate) use on_embedded;

/// Makes a test on the real server of a function over a [`Stage`].
macro_rules! on_real {
    ($($name:ident),* $(,)?) => {
        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use kube_informer_testbed::cluster::Cluster;
                let cluster = kube_informer_testbed::require!(Cluster::shared_with_controllers().await);
                let stage = $crate::harness::Stage::real(cluster, stringify!($name)).await.unwrap();
                super::$name(stage).await.unwrap();
            })*
        }
    };
}
pub(crate) use on_real;
