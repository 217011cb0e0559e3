//! A server behind a fault proxy, a manager that goes through it, and a handler that checks what it is told.

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::controller::Request;
use kube_informer::factory::{Factory, Timings};
use kube_informer::manager::{Manager, RequestWatch, WatchEvent};
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::place;
use kube_informer_testbed::proxy::{self, Match, Proxy};
use serde_json::{Value, json};

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A server with a namespace of the test's own, and a proxy before it.
pub(crate) struct Place {
    place: place::Place,
    pub(crate) proxy: Proxy,
}

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.place
    }
}

impl Place {
    pub(crate) async fn embedded() -> Result<Self> {
        Self::before(place::Place::embedded().await?).await
    }

    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Self::before(place::Place::real(cluster, test).await?).await
    }

    async fn before(place: place::Place) -> Result<Self> {
        let proxy = proxy::Config::new(place.endpoint.access()).add_credentials().transcript(100_000);
        Ok(Self { proxy: proxy.start().await?, place })
    }

    /// A factory that goes through the proxy, with waits that a test does not notice.
    pub(crate) async fn factory(&self) -> Result<Factory> {
        let kubeconfig = Kubeconfig::from_yaml(&self.proxy.kubeconfig("none"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // The proxy has credentials of its own for those who bring none.
        config.auth_info.token = None;
        Ok(Factory::from_config(config).await?.timings(short()))
    }

    /// A manager of such a factory, with short periods.
    pub(crate) async fn manager(&self) -> Result<Manager> {
        Ok(quick(&self.factory().await?))
    }

    /// A config map, watched for an owner of the same name.
    pub(crate) fn watch(&self, name: &str) -> RequestWatch {
        RequestWatch::new(self.owner(name), config_maps(), &*self.namespace, name)
    }

    pub(crate) fn owner(&self, name: &str) -> Request {
        Request::new(&self.namespace, name)
    }

    pub(crate) async fn make(&self, name: &str, value: &str) -> Result<Value> {
        let object = json!({ "metadata": { "name": name }, "data": { "key": value } });
        self.post(&self.path("configmaps"), &object).await
    }

    pub(crate) async fn change(&self, name: &str, value: &str) -> Result<Value> {
        self.merge(&self.path(&format!("configmaps/{name}")), &json!({ "data": { "key": value } })).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        self.delete(&self.path(&format!("configmaps/{name}"))).await
    }

    /// Requests for all config maps of the namespace.
    pub(crate) fn whole(&self) -> Match {
        Match::any().path(self.path("configmaps")).without_param("fieldSelector")
    }

    /// Watches that are open now.
    pub(crate) fn open_watches(&self) -> usize {
        self.proxy.requests().count(|request| request.is_watch() && request.is_open())
    }

    /// Waits until so many watches are open.
    pub(crate) async fn watches(&self, count: usize) {
        eventually("watches are open", SOON, async || (self.open_watches() == count).then_some(())).await;
    }
}

/// Waits between failures that a test does not notice.
pub(crate) fn short() -> Timings {
    Timings::default()
        .waits(Duration::from_millis(20), Duration::from_millis(200))
        .slow(Duration::from_millis(100))
        .overdue(Duration::from_millis(500))
        .bookmarks(Duration::from_millis(200))
}

pub(crate) fn quick(factory: &Factory) -> Manager {
    let manager = unstarted(factory);
    manager.start();
    manager
}

/// The same, not started.
pub(crate) fn unstarted(factory: &Factory) -> Manager {
    Manager::new(factory)
        .health_check(Duration::from_millis(50))
        .grace(Duration::from_millis(300))
        .restarts(Duration::from_millis(20), Duration::from_millis(200))
        .sync_deadline(SOON)
}

pub(crate) fn config_maps() -> Resource {
    Resource::of::<ConfigMap>()
}

/// What one handler was told, and whether that makes sense.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    now: Option<Object>,
    all: Vec<String>,
    wrong: Vec<String>,
}

impl Told {
    /// A watch whose handler this is.
    pub(crate) fn of(watch: RequestWatch) -> (RequestWatch, Self) {
        let told = Self::default();
        let hears = told.clone();
        let watch = watch.on(move |event| {
            hears.hear(event);
            std::future::ready(Ok::<_, std::io::Error>(()))
        });
        (watch, told)
    }

    fn hear(&self, event: WatchEvent) {
        let mut inner = self.0.lock().unwrap();
        let Inner { now, all, wrong } = &mut *inner;
        let key = |object: &Object| value(object);
        let is_older = |object: &Object| now.as_ref().is_some_and(|now| object.version() < now.version());
        if is_older(event.object()) {
            wrong.push(format!("{event:?} is older than {now:?}"));
        }
        match event {
            WatchEvent::Added { new, initial } => {
                if now.is_some() {
                    wrong.push(format!("{new:?} was added, and was there"));
                }
                all.push(format!("+{}{}", key(&new), if initial { "!" } else { "" }));
                *now = Some(new);
            }
            WatchEvent::Updated { old, new, resync } => {
                if now.as_ref().is_none_or(|now| now.version() != old.version() || now.uid() != new.uid()) {
                    wrong.push(format!("{old:?} became {new:?}, and it was {now:?}"));
                }
                all.push(format!("{}{}", if resync { "=" } else { "~" }, key(&new)));
                *now = Some(new);
            }
            WatchEvent::Deleted { last, certain } => {
                if now.as_ref().is_none_or(|now| now.uid() != last.uid()) {
                    wrong.push(format!("{last:?} is gone, and it was {now:?}"));
                }
                all.push(format!("-{}{}", key(&last), if certain { "" } else { "?" }));
                *now = None;
            }
            other => wrong.push(format!("{other:?}")),
        }
    }

    /// All that was told, in short: `+1!` added with the value 1 at the beginning, `~2` updated, `-2` deleted, `?` not certain.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().all.clone()
    }

    /// Waits until it was told of this value last; `None`: that it is gone. Nothing that was told was wrong.
    pub(crate) async fn knows(&self, wanted: Option<&str>) {
        let knows = || self.0.lock().unwrap().now.as_ref().map(value);
        let what = format!("{wanted:?} is told");
        let in_time = eventually(&what, SOON, async || (knows().as_deref() == wanted).then_some(()));
        if tokio::time::timeout(SOON - Duration::from_secs(1), in_time).await.is_err() {
            panic!("{what}: not so, but {:?}", self.all());
        }
        self.sound();
    }

    pub(crate) fn sound(&self) {
        let inner = self.0.lock().unwrap();
        assert!(inner.wrong.is_empty(), "{:#?}\nof {:?}", inner.wrong, inner.all);
    }
}

fn value(object: &Object) -> String {
    object.pointer::<String>("/data/key").unwrap().unwrap_or_default()
}
