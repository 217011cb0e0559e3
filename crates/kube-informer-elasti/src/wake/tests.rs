use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use kube_informer_testbed::http::{Endpoint, Response};
use kube_informer_testbed::kubeconfig::Access;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::http::{Limits as HttpLimits, Serving};

/// Services that are woken when the test says so.
#[derive(Default)]
struct Bed {
    woken: AtomicUsize,
    begun: Notify,
    /// Without it, services wake at once.
    alarm: Option<Arc<Notify>>,
    not_ready: bool,
}

impl Wake for Bed {
    fn is_ready(&self) -> bool {
        !self.not_ready
    }

    fn wake(&self, _: String, service: String) -> BoxFuture<'static, Result<String, NotWoken>> {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.begun.notify_one();
        let alarm = self.alarm.clone();
        Box::pin(async move {
            if let Some(alarm) = alarm {
                alarm.notified().await;
            }
            match service.as_str() {
                "nobody" => Err(NotWoken::Unknown),
                "broken" => Err(NotWoken::Failed("it is forbidden".to_owned())),
                "panics" => panic!("as it was told to"),
                _ => Ok("it has 1 replica".to_owned()),
            }
        })
    }
}

struct Door {
    serving: Serving,
    wakes: Wakes,
    metrics: Metrics,
    endpoint: Endpoint,
}

impl Door {
    async fn open(bed: &Arc<Bed>, limits: Limits) -> Self {
        let metrics = Metrics::default();
        let wakes = Wakes::new(Arc::<Bed>::clone(bed), limits, &metrics);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let serving = Serving::start(listener, router(wakes.clone()), HttpLimits::default()).unwrap();
        let endpoint = Endpoint::new(Access::anonymous(format!("http://{}", serving.address()))).unwrap();
        Self { serving, wakes, metrics, endpoint }
    }

    async fn call(&self, service: &str) -> Response {
        let call = json!({ "count": 1, "svc": service, "namespace": "shop" });
        self.endpoint.post(routes::PATH, &call).await.unwrap()
    }

    /// The answer to these bytes, and that is all of it.
    async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.serving.address()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn counted(&self, line: &str) -> bool {
        let (mut registry, mut page) = (Registry::default(), String::new());
        self.metrics.register(&mut registry);
        encode(&mut page, &registry).unwrap();
        page.lines().any(|found| found == line)
    }
}

fn message(answer: &Response) -> String {
    assert_eq!(answer.headers["content-type"], "application/json");
    let body: Value = answer.json().unwrap();
    body["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_was_scaled_is_200() {
    let bed = Arc::default();
    let door = Door::open(&bed, Limits::default()).await;
    let answer = door.call("web").await;
    assert_eq!((answer.status.as_u16(), &*message(&answer)), (200, "it has 1 replica"));
    assert!(door.counted(r#"elasti_operator_scale_counter{error="success"} 1"#));
}

#[tokio::test]
async fn an_unknown_service_is_404_and_a_failed_scaling_503() {
    let bed = Arc::default();
    let door = Door::open(&bed, Limits::default()).await;
    let answer = door.call("nobody").await;
    assert_eq!(answer.status, 404);
    assert!(message(&answer).contains("shop/nobody"));
    let answer = door.call("broken").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(message(&answer).contains("it is forbidden"));
    assert!(door.counted(r#"elasti_operator_scale_counter{error="failed"} 1"#));
    assert!(door.counted(r#"elasti_operator_scale_counter{error="unknown_service"} 1"#));
}

#[tokio::test]
async fn other_methods_are_405() {
    let bed = Arc::<Bed>::default();
    let door = Door::open(&bed, Limits::default()).await;
    let answer = door.endpoint.get(routes::PATH).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.headers["allow"].to_str().unwrap()), (405, "POST"));
    message(&answer);
    assert_eq!(door.endpoint.delete(routes::PATH).await.unwrap().status, 405);
    let elsewhere = door.endpoint.post("/elsewhere", &json!({})).await.unwrap();
    assert_eq!(elsewhere.status, 404);
    assert!(message(&elsewhere).contains(routes::PATH));
    assert_eq!(bed.woken.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_body_that_cannot_be_used_is_400() {
    let bed = Arc::<Bed>::default();
    let door = Door::open(&bed, Limits::default()).await;
    for body in [
        json!("text"),
        json!(null),
        json!({}),
        json!({ "svc": "web" }),
        json!({ "svc": "web", "namespace": "" }),
        json!({ "svc": "", "namespace": "shop" }),
        json!({ "svc": "web", "namespace": 1 }),
        json!({ "svc": "../web", "namespace": "shop" }),
        json!({ "svc": "w".repeat(64), "namespace": "shop" }),
        json!({ "svc": "web", "namespace": "shop", "count": "many" }),
    ] {
        let answer = door.endpoint.post(routes::PATH, &body).await.unwrap();
        assert_eq!(answer.status, 400, "{body}");
        assert!(!message(&answer).is_empty());
    }
    let cut = b"POST /informer/incoming-request HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{\"a\"";
    assert!(door.raw(cut).await.starts_with("HTTP/1.1 400"));
    // What the resolver of later versions may send beside.
    let more = json!({ "svc": "web", "namespace": "shop", "heartbeat": true });
    assert_eq!(door.endpoint.post(routes::PATH, &more).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let bed = Arc::<Bed>::default();
    let door = Door::open(&bed, Limits::default()).await;
    let said = b"POST /informer/incoming-request HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n";
    assert!(door.raw(said).await.starts_with("HTTP/1.1 413"));
    let mut unsaid =
        b"POST /informer/incoming-request HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n"
            .to_vec();
    unsaid.extend(std::iter::repeat_n(b' ', 0x10001));
    assert!(door.raw(&unsaid).await.starts_with("HTTP/1.1 413"));
    assert_eq!(bed.woken.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn many_calls_for_one_service_are_one_scaling() {
    let alarm = Arc::<Notify>::default();
    let bed = Arc::new(Bed { alarm: Some(Arc::clone(&alarm)), ..Bed::default() });
    let door = Door::open(&bed, Limits::default()).await;
    let wakes = door.wakes.clone();
    let call = |service: &str| {
        let (wakes, service) = (wakes.clone(), service.to_owned());
        async move { wakes.wake("shop".to_owned(), service).await }
    };
    let mut calls: Vec<_> = (0..50).map(|_| Box::pin(call("web"))).collect();
    for call in &mut calls {
        assert!(call.now_or_never().is_none());
    }
    // One that goes away takes nothing from the others.
    drop(calls.swap_remove(0));
    let mut other = Box::pin(call("other"));
    assert!((&mut other).now_or_never().is_none());
    bed.begun.notified().await;
    while bed.woken.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    alarm.notify_waiters();
    for call in calls {
        assert_eq!(call.await, Outcome::Woken("it has 1 replica".to_owned()));
    }
    assert!(matches!(other.await, Outcome::Woken(_)));
    assert_eq!(bed.woken.load(Ordering::SeqCst), 2);
    assert!(door.counted("elasti_operator_wake_joined_total 49"));
    // Afterwards it is scaled anew: it may sleep again.
    alarm.notify_one();
    assert!(matches!(call("web").await, Outcome::Woken(_)));
    assert_eq!(bed.woken.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn past_the_limit_callers_are_told_to_come_again() {
    let alarm = Arc::<Notify>::default();
    let bed = Arc::new(Bed { alarm: Some(Arc::clone(&alarm)), ..Bed::default() });
    let limits = Limits { waiting: 2, at_once: 1, ..Limits::default() };
    let door = Arc::new(Door::open(&bed, limits).await);
    let calls: Vec<_> = ["a", "b"]
        .map(|service| {
            let door = Arc::clone(&door);
            tokio::spawn(async move { door.call(service).await.status })
        })
        .into();
    while door.wakes.lock().all.len() < 2 {
        tokio::task::yield_now().await;
    }
    let answer = door.call("c").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(door.counted(r#"elasti_operator_scale_counter{error="busy"} 1"#));
    // They have their turn one after the other.
    bed.begun.notified().await;
    assert_eq!(bed.woken.load(Ordering::SeqCst), 1);
    alarm.notify_one();
    bed.begun.notified().await;
    alarm.notify_one();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn before_the_cluster_is_read_nothing_is_unknown() {
    let bed = Arc::new(Bed { not_ready: true, ..Bed::default() });
    let door = Door::open(&bed, Limits::default()).await;
    let answer = door.call("nobody").await;
    assert_eq!(answer.status, 503);
    assert!(message(&answer).contains("not been read yet"));
}

#[tokio::test]
async fn a_panic_is_told_to_who_waits_and_holds_up_nobody() {
    let bed = Arc::<Bed>::default();
    let door = Door::open(&bed, Limits { waiting: 1, at_once: 1, ..Limits::default() }).await;
    assert_eq!(door.call("panics").await.status, 503);
    assert_eq!(door.call("web").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_given_up() {
    let bed = Arc::new(Bed { alarm: Some(Arc::default()), ..Bed::default() });
    let wakes = Wakes::new(Arc::<Bed>::clone(&bed), Limits::default(), &Metrics::default());
    assert_eq!(wakes.wake("shop".to_owned(), "web".to_owned()).await, Outcome::Late);
    assert!(wakes.lock().all.is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_the_end_nothing_is_left_and_nothing_begins() {
    let bed = Arc::new(Bed { alarm: Some(Arc::default()), ..Bed::default() });
    let wakes = Wakes::new(Arc::<Bed>::clone(&bed), Limits::default(), &Metrics::default());
    let waits = tokio::spawn({
        let wakes = wakes.clone();
        async move { wakes.wake("shop".to_owned(), "web".to_owned()).await }
    });
    bed.begun.notified().await;
    wakes.shutdown(Duration::from_secs(1)).await;
    assert!(wakes.lock().all.is_empty());
    assert!(matches!(waits.await.unwrap(), Outcome::Failed(_)));
    let refused = wakes.wake("shop".to_owned(), "web".to_owned()).await;
    assert!(matches!(refused, Outcome::Busy(_)), "{refused:?}");
    // What wakes is dropped with the last who knows it: no task holds it.
    drop(wakes);
    assert_eq!(Arc::strong_count(&bed), 1);
}
