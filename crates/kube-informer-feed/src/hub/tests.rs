use std::time::Duration;

use kube_informer::connect::Source;
use kube_informer_apiserver::Server;
use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;

use super::*;
use crate::change::What;
use crate::message::Sub;

const SOON: Duration = Duration::from_secs(60);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What waits for a connection.
fn said(link: &Link) -> Vec<Message> {
    let mut said = Vec::new();
    while let Some(outgoing) = link.session().pop() {
        said.push(serde_json::from_slice(&outgoing.text()).unwrap());
    }
    said
}

async fn until(link: &Link, mut is_it: impl FnMut(&Message) -> bool) -> Vec<Message> {
    let mut all = Vec::new();
    let wait = async {
        loop {
            all.extend(said(link));
            if all.iter().any(&mut is_it) {
                return;
            }
            link.wake.notified().await;
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("what is waited for comes");
    all
}

/// More changes come than the hub reads: it is held up until the informer has them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
#[allow(clippy::await_holding_lock, reason = "the hub is to be held up")]
async fn what_came_too_fast_is_told_as_its_result_and_as_a_gap() {
    // What the hub runs on is held up with it; the others are elsewhere.
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let server = elsewhere.spawn(Server::builder().tls(false).start()).await.unwrap().unwrap();
    let file = std::env::temp_dir().join(format!("feed-hub-{}", std::process::id()));
    server.write_kubeconfig(&file).unwrap();
    let endpoint = Endpoint::new(Access::read(&file).await.unwrap()).unwrap();
    let factory = elsewhere.spawn(Factory::from_source(Source::file(&file))).await.unwrap().unwrap();
    std::fs::remove_file(&file).unwrap();
    let add = async |name: &str| {
        let map = json!({ "metadata": { "name": name }, "data": { "key": "0" } });
        endpoint.post(MAPS, &map).await.unwrap().success().unwrap();
    };
    for name in ["changed", "deleted", "made-again", "same"] {
        add(name).await;
    }
    let hub = Hub::builder(factory.clone()).resource("configmaps").queue(1).start().await.unwrap();
    factory.start();
    let link = hub.connect(1 << 20);
    hub.subscribe(&link, Sub::new("s", "configmaps"), 8).await.unwrap();
    until(&link, |message| matches!(message, Message::SnapEnd(_))).await;
    let from = hub.cursor();

    let informer = hub.inner.core().topics.values().next().unwrap().informer.clone();
    let held = hub.inner.core();
    let delete = async |name: &str| {
        endpoint.delete(&format!("{MAPS}/{name}")).await.unwrap().success().unwrap();
    };
    for value in 1..=50 {
        let patch = json!({ "data": { "key": value.to_string() } });
        endpoint.merge_patch(&format!("{MAPS}/changed"), &patch).await.unwrap().success().unwrap();
    }
    delete("deleted").await;
    delete("made-again").await;
    add("made-again").await;
    add("new").await;
    kube_informer_testbed::eventually::eventually("the informer has it", SOON, async || {
        informer.get("default", "new")
    })
    .await;
    // The informer is ahead: who comes now would begin with what was told.
    let mut held = held;
    let known = held.topics.values_mut().next().unwrap().snapshot();
    let value = |name: &str| {
        let object = known.iter().find(|object| object.name() == name)?;
        object.pointer::<String>("/data/key").unwrap()
    };
    assert_eq!((value("new"), value("deleted").as_deref()), (None, Some("0")));
    assert_ne!(value("changed").as_deref(), Some("50"));
    drop(held);

    let mut count = 0;
    let all = until(&link, |message| {
        count += usize::from(matches!(message, Message::Change(change) if change.change.obj.name == "new"));
        count > 0
    });
    let all = all.await;
    let told = |wanted: &str| -> Vec<What> {
        let of = |message: &Message| match message {
            Message::Change(change) if change.change.obj.name == wanted => Some(change.change.what),
            _ => None,
        };
        all.iter().filter_map(of).collect()
    };
    assert_eq!(told("deleted"), [What::Deleted]);
    assert_eq!(told("made-again"), [What::Deleted, What::Added]);
    assert_eq!(told("new"), [What::Added]);
    assert_eq!(told("same"), []);
    // Some may have been read before it was too much.
    assert!(!told("changed").is_empty() && told("changed").len() < 50, "{all:?}");
    let gap = all.iter().find_map(|message| match message {
        Message::Gap(gap) => Some(gap.clone()),
        _ => None,
    });
    let gap = gap.expect("a gap");
    assert!(gap.from.is_some_and(|start| start.seq >= from.seq && start.seq < gap.to.seq), "{gap:?}");
    factory.shutdown().await;
    elsewhere.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_until_it_is_ready_is_told_when_everything_is_read_and_live() {
    let server = Server::builder().tls(false).start().await.unwrap();
    let faults = server.faults();
    let file = std::env::temp_dir().join(format!("feed-hub-ready-{}", std::process::id()));
    server.write_kubeconfig(&file).unwrap();
    let factory = Factory::from_source(Source::file(&file)).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let resources = Hub::builder(factory.clone()).resource("configmaps").resource("services");
    let hub = resources.start().await.unwrap();
    let services = || Match::any().path_contains("/services");
    let silence = faults.on(services()).stall();
    let wait = || {
        let hub = hub.clone();
        tokio::spawn(async move { hub.ready().await })
    };
    let waiting = wait();
    factory.start();
    silence.wait_applied(1).await;
    until_it_is(&hub, "v1/configmaps", StatusState::Live).await;
    assert!(!waiting.is_finished(), "one of them is not read");
    silence.release();
    silence.remove();
    tokio::time::timeout(SOON, waiting).await.expect("it is told").unwrap();
    // Who asks later is told at once.
    hub.ready().await;
    let trouble = faults.on(services()).answer(Answer::internal_error());
    faults.cut_open(&Match::watch().path_contains("/services"));
    until_it_is(&hub, "v1/services", StatusState::Stale).await;
    let waiting = wait();
    trouble.wait_applied(trouble.applied() + 1).await;
    assert!(!waiting.is_finished(), "one of them is stale");
    trouble.remove();
    tokio::time::timeout(SOON, waiting).await.expect("it is told").unwrap();
    factory.shutdown().await;
}

async fn until_it_is(hub: &Hub, gvr: &str, state: StatusState) {
    kube_informer_testbed::eventually::eventually("a resource is so", SOON, async || {
        hub.topics().iter().any(|topic| topic.gvr == gvr && topic.state == state).then_some(())
    })
    .await;
}
