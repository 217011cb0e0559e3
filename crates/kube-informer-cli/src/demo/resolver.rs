//! A stand-in for the resolver: it takes the request for a service that sleeps, and has the operator wake it.
//!
//! In a cluster, requests come to the resolver through the EndpointSlices that the operator writes. Here the pods are
//! simulated, and nothing leads to them; so the address is asked directly, by the demo or by `curl`.
//!
//! Bounded: connections, the head of a request, how long one may take.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube_informer::informer::Informer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::stage::Stage;

/// Connections at a time; more wait.
const CONNECTIONS: usize = 16;

/// The largest head of a request, and the largest answer, that is read.
const LARGEST: u64 = 16 << 10;

/// How long a request may take to come, and an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Resolver {
    listener: TcpListener,
    address: SocketAddr,
}

/// Which service it stands before, and who wakes it.
#[derive(Clone)]
pub(super) struct Before {
    pub(super) namespace: &'static str,
    pub(super) service: &'static str,
    pub(super) operator: SocketAddr,
    pub(super) stage: Stage,
    /// Who knows how the service is.
    pub(super) deployments: Informer<Deployment>,
    pub(super) elastis: Option<Informer>,
}

/// How the service is, for somebody who asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// Nobody looks after it yet.
    Unknown,
    Awake,
    /// It sleeps, or is about to.
    Asleep,
}

impl Service {
    /// By the mode of its ElastiService, and how many pods it is to have.
    fn of(mode: Option<&str>, replicas: i64) -> Self {
        match mode {
            None => Self::Unknown,
            Some("serve") if replicas > 0 => Self::Awake,
            Some(_) => Self::Asleep,
        }
    }
}

impl Resolver {
    pub(super) async fn listen() -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr().context("cannot listen on 127.0.0.1")?;
        Ok(Self { listener, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers, until it is dropped.
    pub(super) async fn run(self, before: Before) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut busy = JoinSet::new();
        loop {
            // Never closed.
            let place = Arc::clone(&places).acquire_owned().await;
            while busy.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let before = before.clone();
                    busy.spawn(async move {
                        let _place = place;
                        // Who goes away, or says nothing, is not answered.
                        let _ = tokio::time::timeout(PATIENCE, before.answer(stream)).await;
                    });
                }
                // Too many open files, for example: others end, and it goes on.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

impl Before {
    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        let mut reader = (&mut stream).take(LARGEST);
        while !head.windows(4).any(|window| window == b"\r\n\r\n") {
            if reader.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let Self { namespace, service, .. } = self;
        let (status, words) = match self.service() {
            Service::Unknown => {
                (503, format!("{namespace}/{service} is not there yet: try again in some seconds"))
            }
            Service::Awake => (200, format!("{namespace}/{service} is awake already")),
            Service::Asleep => self.wake().await,
        };
        let reason = if status == 200 { "OK" } else { "Service Unavailable" };
        let length = words.len() + 1;
        let answer = format!(
            "HTTP/1.1 {status} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{words}\n"
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }
}

impl Before {
    fn service(&self) -> Service {
        let Self { namespace, service, deployments, elastis, .. } = self;
        let elasti = elastis.as_ref().and_then(|elastis| elastis.get(namespace, service));
        let mode = elasti.and_then(|elasti| elasti.pointer::<String>("/status/mode").ok().flatten());
        let replicas = deployments.get(namespace, service);
        let replicas = replicas.and_then(|object| object.pointer::<i64>("/spec/replicas").ok().flatten());
        Service::of(mode.as_deref(), replicas.unwrap_or(0))
    }

    /// Has the operator wake it: what to answer.
    async fn wake(&self) -> (u16, String) {
        let Self { namespace, service, operator, stage, .. } = self;
        stage.narrate(&format!(
            "a request for {namespace}/{service} is at the resolver, which asks the operator to wake it"
        ));
        let body = json!({ "count": 1, "svc": service, "namespace": namespace }).to_string();
        match call(*operator, "POST", "/informer/incoming-request", &body).await {
            Ok((status, body)) => (status, message(&body)),
            Err(error) => (503, format!("the operator does not answer: {error}")),
        }
    }
}

/// What the operator says: `{"message": "…"}`.
fn message(body: &str) -> String {
    let read = serde_json::from_str::<Value>(body).ok();
    read.and_then(|body| Some(body.get("message")?.as_str()?.to_owned())).unwrap_or_else(|| body.to_owned())
}

/// One request to somebody in this process: the status and the body of the answer.
pub(super) async fn call(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, String)> {
    let asked = async {
        let mut stream = TcpStream::connect(to).await?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(LARGEST).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer?,
        Err(_) => return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time")),
    };
    read(&answer).ok_or_else(|| std::io::Error::other("this is no answer of HTTP"))
}

fn read(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.split_whitespace().next()?.parse().ok()?;
    Some((status, body.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_sleeps_is_woken() {
        for (mode, replicas, expected) in [
            (None, 1, Service::Unknown),
            (Some("serve"), 1, Service::Awake),
            // Somebody scales it to zero, and the operator is about to see it.
            (Some("serve"), 0, Service::Asleep),
            (Some("proxy"), 0, Service::Asleep),
            (Some("proxy"), 1, Service::Asleep),
        ] {
            assert_eq!(Service::of(mode, replicas), expected, "{mode:?} {replicas}");
        }
    }

    #[test]
    fn an_answer_is_its_status_and_its_body() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes\n";
        assert_eq!(read(answer), Some((200, "yes".to_owned())));
        for wrong in ["", "HTTP/1.1 200 OK\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 many\r\n\r\n"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(message(r#"{"message":"woken"}"#), "woken");
        assert_eq!(message("as it is"), "as it is");
    }
}
