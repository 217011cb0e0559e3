//! Many objects, many watchers: bytes are made once and shared, nobody waits for the slow, lists are
//! streamed. `KUBE_INFORMER_FULL=1` does it with up to 200,000 objects and 1,000 watchers. What is asserted are
//! bytes and memory, never time; times are printed (`--nocapture`).

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::{Body, Server};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tower_service::Service;

/// How an item of a list begins.
const ITEM: &[u8] = br#"{"data""#;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// One test at a time: they measure the memory of the process.
static ALONE: Mutex<()> = Mutex::const_new(());

fn full() -> bool {
    std::env::var_os("KUBE_INFORMER_FULL").is_some_and(|value| value == "1")
}

fn of(usual: usize, full_size: usize) -> usize {
    if full() { full_size } else { usual }
}

async fn ask(server: &Server, method: Method, path: &str, body: Option<Value>) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    server.service().call(request).await.unwrap()
}

async fn ok(server: &Server, method: Method, path: &str, body: Value) -> Value {
    let answer = ask(server, method, path, Some(body)).await;
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

fn map(at: usize, round: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": format!("map-{at:06}"), "labels": { "app": format!("app-{}", at % 100) } },
        "data": { "round": format!("{round:06}"), "text": "x".repeat(400) },
    })
}

async fn fill(server: &Server, objects: usize) {
    let (before, start) = (resident(), Instant::now());
    for at in 0..objects {
        ok(server, Method::POST, MAPS, map(at, 0)).await;
    }
    let (took, grown) = (start.elapsed().as_secs_f64(), resident().saturating_sub(before));
    let (rate, each) = (objects as f64 / took, grown / objects as u64);
    println!("{objects} objects created in {took:.2} s: {rate:.0}/s, {each} bytes of memory each");
}

/// A watch as a client in the same process has it.
struct Watch(Body);

impl Watch {
    async fn from(server: &Server, version: u64) -> Self {
        let path = format!("{MAPS}?watch=true&resourceVersion={version}");
        let answer = ask(server, Method::GET, &path, None).await;
        assert_eq!(answer.status(), 200);
        Self(answer.into_body())
    }

    async fn next(&mut self) -> Option<Value> {
        let frame = tokio::time::timeout(Duration::from_secs(120), self.0.frame()).await;
        let data = frame.expect("an event in time")?.unwrap().into_data().ok()?;
        Some(serde_json::from_slice(&data).unwrap())
    }

    async fn round(&mut self) -> String {
        let event = self.next().await.unwrap();
        assert_eq!(event["type"], "MODIFIED", "{event}");
        event["object"]["data"]["round"].as_str().unwrap().to_owned()
    }
}

/// Bytes of memory that the process uses.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

async fn update(server: &Server, rounds: std::ops::Range<usize>) {
    for round in rounds {
        ok(server, Method::PUT, &format!("{MAPS}/map-000007"), map(7, round)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_serialised_per_event_do_not_depend_on_the_number_of_watchers() {
    let _alone = ALONE.lock().await;
    let (objects, watchers, updates) = (of(2_000, 200_000), of(200, 1_000), 10);
    let server = Server::builder().seed(1).start().await.unwrap();
    fill(&server, objects).await;
    update(&server, 0..1).await;

    let mut costs = Vec::new();
    for (attempt, count) in [1, watchers].into_iter().enumerate() {
        let before = server.stats();
        let mut watches = Vec::new();
        for _ in 0..count {
            watches.push(Watch::from(&server, before.version).await);
        }
        let rounds: Vec<String> =
            (0..updates).map(|at| format!("{:06}", 1 + attempt * updates + at)).collect();
        let start = Instant::now();
        let readers: Vec<_> = watches
            .into_iter()
            .map(|mut watch| {
                let rounds = rounds.clone();
                tokio::spawn(async move {
                    for round in rounds {
                        assert_eq!(watch.round().await, round, "every event, in order");
                    }
                })
            })
            .collect();
        let first = 1 + attempt * updates;
        update(&server, first..first + updates).await;
        for reader in readers {
            reader.await.unwrap();
        }
        println!("{updates} updates to {count} watchers of {objects} objects: {:?}", start.elapsed());
        let after = server.stats();
        assert_eq!(before.version.to_string().len(), after.version.to_string().len(), "comparable");
        costs.push((
            after.serialised_objects - before.serialised_objects,
            after.serialised_bytes - before.serialised_bytes,
        ));
    }
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0].0, updates as u64, "each version once");
    server.shutdown().await;
}

#[tokio::test]
async fn a_slow_watcher_holds_up_nobody_and_is_told_when_it_has_missed_something() {
    let _alone = ALONE.lock().await;
    let server = Server::builder().seed(1).watch_window(50).start().await.unwrap();
    fill(&server, 10).await;
    update(&server, 0..1).await;
    let version = server.stats().version;
    let mut slow = Watch::from(&server, version).await;
    let mut almost = Watch::from(&server, version).await;
    let mut quick = Vec::new();
    for _ in 0..20 {
        quick.push(Watch::from(&server, version).await);
    }
    for round in 1..=50 {
        update(&server, round..round + 1).await;
        for watch in &mut quick {
            assert_eq!(watch.round().await, format!("{round:06}"));
        }
    }
    // All 50 are still in the window; this one reads them now.
    for round in 1..=50 {
        assert_eq!(almost.round().await, format!("{round:06}"));
    }
    update(&server, 51..52).await;
    assert_eq!(almost.round().await, "000051");
    let error = slow.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)), "{error}");
    assert!(slow.next().await.is_none(), "and it has ended");
}

#[tokio::test]
async fn memory_does_not_grow_with_the_number_of_changes_or_of_idle_watchers() {
    let _alone = ALONE.lock().await;
    let server = Server::builder().seed(1).watch_window(100).start().await.unwrap();
    fill(&server, 10).await;
    let mut idle = Vec::new();
    for _ in 0..of(200, 1_000) {
        idle.push(Watch::from(&server, server.stats().version).await);
    }
    update(&server, 0..200).await;
    let before = resident();
    let changes = of(3_000, 30_000);
    let bytes = server.stats().serialised_bytes;
    update(&server, 200..200 + changes).await;
    let written = server.stats().serialised_bytes - bytes;
    let grown = resident().saturating_sub(before);
    println!("{changes} changes, {written} bytes: memory grew by {grown}");
    assert!(grown < written / 2 + (1 << 20), "{grown} of {written}");
}

#[tokio::test]
async fn a_long_list_is_never_whole_in_memory() {
    let _alone = ALONE.lock().await;
    let objects = of(8_000, 50_000);
    let server = Server::builder().seed(1).watch_window(100).start().await.unwrap();
    fill(&server, objects).await;
    let (before, start) = (resident(), Instant::now());
    let serialised = server.stats().serialised_bytes;
    let mut body = ask(&server, Method::GET, MAPS, None).await.into_body();
    let (mut size, mut peak, mut frames, mut items, mut tail) = (0, before, 0, 0, Vec::new());
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        size += data.len() as u64;
        // An item may begin in one piece and end in the next.
        tail.extend_from_slice(&data);
        items += tail.windows(ITEM.len()).filter(|part| *part == ITEM).count();
        tail.drain(..tail.len() - (ITEM.len() - 1));
        frames += 1;
        if frames % 64 == 0 {
            peak = peak.max(resident());
        }
    }
    let grown = peak - before;
    println!("a list of {size} bytes in {frames} pieces took {:?}; memory grew by {grown}", start.elapsed());
    assert_eq!(items, objects, "all of them");
    assert_eq!(server.stats().serialised_bytes, serialised, "nothing is serialised again");
    assert!(grown < size / 4, "{grown} of {size}");
}

#[tokio::test]
async fn pages_cost_no_more_than_the_list() {
    let _alone = ALONE.lock().await;
    let objects = of(5_000, 50_000);
    let server = Server::builder().seed(1).start().await.unwrap();
    fill(&server, objects).await;
    let serialised = server.stats().serialised_bytes;
    let (start, mut token, mut count) = (Instant::now(), String::new(), 0);
    loop {
        let page = ask(&server, Method::GET, &format!("{MAPS}?limit=500&continue={token}"), None).await;
        let page = page.into_body().collect().await.unwrap().to_bytes();
        let page: Value = serde_json::from_slice(&page).unwrap();
        count += page["items"].as_array().unwrap().len();
        // A change on the way, so that later pages show the past.
        let at = 10_000_000 + count;
        ok(&server, Method::POST, MAPS, map(at, 0)).await;
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    println!("{objects} objects in pages of 500: {:?}", start.elapsed());
    assert_eq!(count, objects);
    let written = server.stats().serialised_bytes - serialised;
    assert!(written < 2_000 * (objects as u64 / 500 + 1), "only what was created: {written}");
}
