//! The promises about managers, with caches that are written by hand and a clock that is set forward.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::*;
use crate::controller::{BoxError, Request};
use crate::informer::Scope;
use crate::informer::tests::hand::Hand;
use crate::object::Object;
use crate::resource::Resource;

mod adding;
mod calls;
mod chance;
mod feeds;
mod ghosts;

/// Longer than anything waits.
const AGES: Duration = Duration::from_secs(3600 * 100);

/// Shorter than anything that is said again.
const A_WHILE: Duration = Duration::from_secs(100);

/// A manager whose informers nobody starts.
fn manager() -> Manager {
    as_it_is_made().resync(Duration::ZERO)
}

/// The same, with nothing said of how it is to be.
fn as_it_is_made() -> Manager {
    let config = Config::new("http://127.0.0.1:9".parse().unwrap());
    Manager::new(&Factory::new(Client::try_from(config).unwrap()))
}

impl Manager {
    /// Handlers are called; informers are not started.
    fn started(self) -> Self {
        self.inner.start();
        self
    }

    /// The cache of a new informer, as soon as there is one.
    async fn hand(&self, scope: &Scope) -> Hand {
        let all = || self.inner.factory.cores().into_iter();
        let found = || all().filter(|core| core.spec().scope == *scope).find_map(Hand::over);
        eventually("an informer", found).await
    }

    /// The cache of the informer of one object, as soon as there is one.
    async fn one(&self, name: &str) -> Hand {
        self.hand(&Scope::object("d", name)).await
    }

    /// The cache of the informer of the namespace, as soon as there is one.
    async fn whole(&self) -> Hand {
        self.hand(&Scope::namespace("d")).await
    }

    /// The scopes of the informers that there are.
    fn scopes(&self) -> Vec<String> {
        let mut scopes: Vec<String> =
            self.inner.factory.cores().iter().map(|core| core.spec().scope.to_string()).collect();
        scopes.sort();
        scopes
    }

    /// Waits until these are the scopes of the informers that there are.
    async fn has(&self, scopes: &[&str]) {
        eventually(&format!("{scopes:?}"), || (self.scopes() == scopes).then_some(())).await;
    }

    /// Whether nothing is left of anything.
    fn is_bare(&self) -> bool {
        let state = self.inner.lock();
        let State { entries, owners, groups, series, .. } = &*state;
        entries.is_empty() && owners.is_empty() && groups.is_empty() && series.is_empty()
    }
}

async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            match look() {
                Some(found) => return found,
                // tidy: allow-sleep the clock is paused: no real time passes
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let hour = Duration::from_secs(3600);
    timeout(hour, found).await.unwrap_or_else(|_| panic!("not within an hour: {what}"))
}

fn pods() -> Resource {
    Resource::of::<Pod>()
}

/// A pod, watched for an owner of the same name.
fn pod(name: &str) -> RequestWatch {
    RequestWatch::new(Request::new("o", name), pods(), "d", name)
}

/// What a handler was told, in short.
struct Heard(mpsc::UnboundedReceiver<String>);

impl Heard {
    async fn next(&mut self) -> String {
        timeout(AGES, self.0.recv()).await.expect("something is told").expect("somebody tells")
    }

    async fn nothing(&mut self) {
        if let Ok(Some(what)) = timeout(A_WHILE, self.0.recv()).await {
            panic!("{what:?} is told");
        }
    }
}

fn short(event: &WatchEvent) -> String {
    let of = |object: &Object| format!("{}@{}", object.name(), object.version());
    match event {
        WatchEvent::Added { new, initial } => format!("+{}{}", of(new), if *initial { "!" } else { "" }),
        WatchEvent::Updated { new, resync: true, .. } => format!("={}", of(new)),
        WatchEvent::Updated { old, new, .. } => format!("~{}→{}", of(old), new.version()),
        WatchEvent::Deleted { last, certain } => format!("-{}{}", of(last), if *certain { "" } else { "?" }),
    }
}

/// A watch whose handler tells what it was told, and then does what the closure says.
fn telling<F, Fut>(watch: RequestWatch, act: F) -> (RequestWatch, Heard)
where
    F: Fn(WatchEvent) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let (told, heard) = mpsc::unbounded_channel();
    let watch = watch.on(move |event| {
        let _ = told.send(short(&event));
        act(event)
    });
    (watch, Heard(heard))
}

fn heard(watch: RequestWatch) -> (RequestWatch, Heard) {
    telling(watch, async |_| Ok(()))
}

/// Adds a watch in a task of its own.
fn adding(manager: &Manager, watch: RequestWatch) -> tokio::task::JoinHandle<Result<Watch, AddError>> {
    let manager = manager.clone();
    tokio::spawn(async move { manager.add(watch).await })
}

fn page(metrics: &Metrics) -> String {
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    page
}
