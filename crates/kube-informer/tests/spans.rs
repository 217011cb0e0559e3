//! What is said is said in spans: those of an informer name its resource, those of its lists and watches the version at which
//! they begin. That is so also where little is listened to, as by default.
//!
//! By itself, because closures are called by threads of their own, which hear only whom the whole process listens to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Handler, Informer, Scope, State};
use kube_informer::object::Object;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::place::Place;
use kube_informer_testbed::proxy::{self, Answer, Events, Match};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const SOON: Duration = Duration::from_secs(60);

/// Writes down what the library says, each line with the spans that it is said in.
#[derive(Clone, Default)]
struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    spans: AtomicU64,
    /// Of each span, whether it is there where little is listened to, and its text.
    names: Mutex<BTreeMap<u64, (bool, String)>>,
    lines: Mutex<Vec<String>>,
    /// What is left of them where little is listened to.
    few: Mutex<Vec<String>>,
}

/// Whether it passes the filter of a command that nobody asked to say more: `warn,kube_informer::informer::health=info`. It is
/// for spans as it is for events.
fn is_among_few(metadata: &Metadata<'_>) -> bool {
    let most = if metadata.target().starts_with("kube_informer::informer::health") {
        Level::INFO
    } else {
        Level::WARN
    };
    *metadata.level() <= most
}

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("kube_informer::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.spans.fetch_add(1, Ordering::SeqCst) + 1;
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Text(&mut text));
        self.0.names.lock().unwrap().insert(id, (is_among_few(span.metadata()), text));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        panic!("the usual formatter would append what is recorded later");
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let (mut text, mut short) = (String::new(), String::new());
        for id in ENTERED.with_borrow(Clone::clone) {
            let (is_among_few, name) = &self.0.names.lock().unwrap()[&id];
            write!(text, "{name}: ").unwrap();
            if *is_among_few {
                write!(short, "{name}: ").unwrap();
            }
        }
        event.record(&mut Text(&mut text));
        event.record(&mut Text(&mut short));
        self.0.lines.lock().unwrap().push(text);
        if is_among_few(event.metadata()) {
            self.0.few.lock().unwrap().push(short);
        }
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| assert_eq!(entered.pop(), Some(span.into_u64())));
    }
}

impl Lines {
    /// The lines that have all of these.
    fn with(&self, parts: &[&str]) -> Vec<String> {
        let lines = self.0.lines.lock().unwrap();
        lines.iter().filter(|line| parts.iter().all(|part| line.contains(part))).cloned().collect()
    }

    async fn until(&self, parts: &[&str]) -> String {
        let found = eventually("something is said", SOON, async || self.with(parts).pop());
        tokio::time::timeout(SOON / 2, found)
            .await
            .unwrap_or_else(|_| panic!("nothing says {parts:?}: {:#?}", self.with(&[])))
    }
}

struct Panics;

impl Handler<Deployment> for Panics {
    async fn updated(&mut self, _old: Object<Deployment>, _new: Object<Deployment>, _resync: bool) {
        panic!("a method that panics");
    }
}

async fn live(informer: &Informer<Deployment>) {
    eventually("live", SOON, async || (informer.health().state == State::Live).then_some(())).await;
}

fn version(informer: &Informer<Deployment>) -> String {
    informer.snapshot().version("test").unwrap().to_string()
}

#[tokio::test]
async fn what_is_said_names_the_resource_and_the_version_at_which_a_list_or_a_watch_begins() -> Result<()> {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone())?;
    let place = Place::embedded().await?;
    let proxy = proxy::Config::new(place.endpoint.access()).add_credentials().start().await?;
    let kubeconfig = Kubeconfig::from_yaml(&proxy.kubeconfig("none"))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.token = None;
    let short = Duration::from_millis(20);
    let factory =
        Factory::from_config(config).await?.timings(Timings::default().waits(short, short).call(short));
    let informer = factory.informer::<Deployment>(Scope::namespace("test"));
    let closure = informer.subscribe().name("closure").on(|event| {
        if event.object().is_some_and(|object| object.name() == "bad") {
            panic!("a closure that panics");
        }
    });
    let methods = informer.subscribe().name("methods").handler(Panics);
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let stuck = informer.subscribe().name("stuck").on(move |_| _ = gate.recv());

    // The informer, in each of its tasks.
    let of = "informer resource=deployments.v1.apps api_version=apps/v1";
    let within = &*format!("{of} namespace=\"test\": ");
    factory.start();
    live(&informer).await;
    lines.until(&[within, ": list version=any: ", "everything was listed"]).await;
    let first = version(&informer);

    // A version that is too old: the list begins there.
    proxy.on_open(Match::watch()).error_event(Answer::gone());
    let again = format!(": list version={first}: ");
    lines.until(&[within, &again, "everything is being listed", "Expired"]).await;
    lines.until(&[within, &again, "everything was listed"]).await;
    live(&informer).await;

    // What a watch brings is said in the watch, which begins where the list ended.
    let second = version(&informer);
    let labels = json!({ "app": "a" });
    let template = json!({ "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let deployment = json!({ "metadata": { "name": "bad" },
        "spec": { "selector": { "matchLabels": labels }, "template": template } });
    let path = "/apis/apps/v1/namespaces/test/deployments";
    let once = Events::added().named("bad").at_most(1);
    proxy.on_all(Match::watch()).edit_events(once, |event| {
        event.edit_json(|object| object["metadata"]["labels"] = json!([7]));
    });
    place.post(path, &deployment).await?;
    let watch = format!(": watch version={second}: ");
    lines.until(&[within, &watch, "it cannot be read", "test/bad", "labels"]).await;
    lines.until(&[within, &watch, "watching does not work", "unreadable"]).await;

    // Handlers say whose they are, wherever they run.
    lines
        .until(&[&*format!("{of}: "), "a handler panicked", "handler=closure", "a closure that panics"])
        .await;
    place.merge(&format!("{path}/bad"), &json!({ "metadata": { "annotations": { "a": "b" } } })).await?;
    lines
        .until(&[&*format!("{of}: "), "a handler panicked", "handler=methods", "a method that panics"])
        .await;
    eventually("it is left again", SOON, async || (closure.stats().panics == 2).then_some(())).await;
    for line in lines.with(&["a handler panicked"]) {
        assert_eq!(line.matches("informer resource=").count(), 1, "{line}");
        assert!(line.contains("this one not again: mend the handler"), "{line}");
    }
    assert_eq!(methods.stats().panics, 1);

    // One that does not return is said, too.
    lines.until(&[&*format!("{of}: "), "has not returned", "handler=stuck", "look what it waits for"]).await;
    assert_eq!(stuck.stats().handled, 0);
    drop(open);

    // It can be read again: that is said as well, and where little is listened to, everything names the resource, too.
    live(&informer).await;
    // By whoever puts the list into the cache, or by the watch that has begun: whichever comes last.
    lines.until(&[of, "namespace=\"test\"", "watching works again"]).await;
    let few = lines.0.few.lock().unwrap().clone();
    for said in [
        "watching works again",
        "it cannot be read",
        "watching does not work",
        "a handler panicked",
        "has not returned",
    ] {
        assert!(few.iter().any(|line| line.contains(said)), "{said}: {few:#?}");
    }
    for line in few {
        assert!(line.starts_with(of), "{line}");
    }
    factory.shutdown().await;
    Ok(())
}
