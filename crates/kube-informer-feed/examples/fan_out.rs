//! What many clients cost: memory per client, and CPU per message.
//!
//! ```console
//! cargo run --release -p kube-informer-feed --example fan_out -- 1000 200 hub
//! cargo run --release -p kube-informer-feed --example fan_out -- 1000 200 controller
//! ```
//!
//! A Deployment and a feed of it; so many clients in another process, which is this program again. The Deployment is changed so
//! often, one change after the other, and every client is told. `hub` is the way that tells each change by itself; `controller`
//! is the one through a work queue and workers. The API server is in this process, or, where `KUBECONFIG` is set, elsewhere:
//! then what is measured is the feed alone. Only Linux says what a process takes.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use kube_informer::connect::Source;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message as Frame;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    match arguments.first().map(String::as_str) {
        Some("clients") => {
            let url = arguments.get(1).context("clients URL COUNT CHANGES")?;
            clients(url, number(2, 1)?, number(3, 1)?).await
        }
        _ => {
            let way = arguments.get(2).map_or("hub", String::as_str);
            ensure!(matches!(way, "hub" | "controller"), "{way:?} is neither hub nor controller");
            serve(number(0, 1_000)?, number(1, 200)?, way == "controller").await
        }
    }
}

/// An API server, and the way to it.
struct Api {
    endpoint: Endpoint,
    factory: Factory,
    /// The Deployments of a namespace that is made for this.
    namespace: String,
    _server: Option<kube_informer_apiserver::Server>,
}

impl Api {
    async fn start() -> Result<Self> {
        let namespace = format!("fan-out-{}", std::process::id());
        let (endpoint, factory, server) = match std::env::var_os("KUBECONFIG") {
            Some(file) => {
                let endpoint = Endpoint::new(Access::read(Path::new(&file)).await?)?;
                (endpoint, Factory::from_source(Source::file(file)).await?, None)
            }
            None => {
                let server = kube_informer_apiserver::Server::builder().tls(false).start().await?;
                let file = std::env::temp_dir().join(&namespace);
                std::fs::write(&file, server.kubeconfig())?;
                let endpoint = Endpoint::new(Access::read(&file).await?)?;
                let factory = Factory::from_source(Source::file(&file)).await;
                std::fs::remove_file(&file)?;
                (endpoint, factory?, Some(server))
            }
        };
        let object = json!({ "metadata": { "name": namespace } });
        endpoint.post("/api/v1/namespaces", &object).await?.success()?;
        Ok(Self { endpoint, factory, namespace, _server: server })
    }

    /// The server of a feed, by one of two ways.
    async fn feed(&self, count: usize, is_controller: bool) -> Result<Server> {
        let (factory, scope) = (&self.factory, Scope::namespace(&self.namespace));
        let hub = Hub::builder(factory.clone());
        if !is_controller {
            let hub = hub.resource("deployments").scope(scope).start().await?;
            factory.start();
            return Ok(Server::builder(hub).connections(count + 1).start().await?);
        }
        let hub = hub.start().await?;
        let controller = DeploymentController::new(factory, scope);
        let publisher = hub.publisher(controller.informer());
        let controller = controller.begin_with(&publisher);
        let sink = move |reported: Reported| {
            publisher.publish(reported.change, reported.old.as_ref(), reported.new.as_ref());
        };
        tokio::spawn(controller.run(sink, std::future::pending()));
        Ok(Server::builder(hub).connections(count + 1).start().await?)
    }
}

/// The side that is measured.
async fn serve(count: usize, changes: usize, is_controller: bool) -> Result<()> {
    let api = Api::start().await?;
    let endpoint = &api.endpoint;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", api.namespace);
    let labels = json!({ "app": "web" });
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 0, "paused": true, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
        },
    });
    endpoint.post(&path, &deployment).await?.success()?;
    let server = api.feed(count, is_controller).await?;
    let change = async |replicas: usize| {
        let patch = json!({ "spec": { "replicas": replicas } });
        endpoint.merge_patch(&format!("{path}/web"), &patch).await?.success()
    };

    // What the changes themselves cost, without anybody who is told.
    let (cpu, wall) = (cpu()?, Instant::now());
    for replicas in 1..=changes {
        change(replicas).await?;
    }
    let alone = (self::cpu()? - cpu, wall.elapsed());

    let empty = resident()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["clients", &server.url(), &count.to_string(), &(2 * changes).to_string()])
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    ensure!(lines.next_line().await?.as_deref() == Some("ready"), "the clients did not come");
    let connected = resident()?;
    let (cpu, wall) = (self::cpu()?, Instant::now());
    for replicas in 1..=changes {
        change(changes + replicas).await?;
    }
    let messages = lines.next_line().await?.context("not every client was told")?;
    let messages: usize = messages.parse()?;
    // Where there are controllers, the status changes, too.
    ensure!(is_controller || messages >= count * changes, "{messages} and not {count} times {changes}");
    let told = (self::cpu()? - cpu, wall.elapsed());
    let full = resident()?;

    let fan_out = told.0.saturating_sub(alone.0);
    println!("way                            {}", if is_controller { "controller" } else { "hub" });
    println!("clients                        {count}");
    println!("changes                        {changes}");
    println!("messages                       {messages}");
    println!("memory per client, connected   {:.1} KiB", kib(connected, empty, count));
    println!("memory per client, after       {:.1} KiB", kib(full, empty, count));
    println!("CPU per change, nobody told    {:.0} µs", micros(alone.0, changes));
    println!("CPU per change, all told       {:.0} µs", micros(told.0, changes));
    println!("CPU per message                {:.2} µs", micros(fan_out, messages));
    println!("messages per second            {:.0}", messages as f64 / told.1.as_secs_f64());
    child.wait().await?;
    server.shutdown(Duration::from_secs(10)).await;
    endpoint.delete(&format!("/api/v1/namespaces/{}", api.namespace)).await?.success()?;
    Ok(())
}

/// The side that is told: until the Deployment has so many replicas. Says how many messages that were.
async fn clients(url: &str, count: usize, replicas: usize) -> Result<()> {
    let mut readers = JoinSet::new();
    let last = format!("→{replicas}\"");
    for _ in 0..count {
        let (mut socket, _) = connect_async(url).await?;
        while let Some(frame) = socket.next().await {
            if matches!(frame?, Frame::Text(text) if text.contains("snap.end")) {
                break;
            }
        }
        let last = last.clone();
        readers.spawn(async move {
            let mut told = 0_usize;
            loop {
                let frame = socket.next().await.context("closed")??;
                let Frame::Text(text) = frame else { continue };
                told += usize::from(text.starts_with(r#"{"op":"change""#));
                if text.contains(&last) {
                    return anyhow::Ok((socket, told));
                }
            }
        });
    }
    println!("ready");
    let (mut sockets, mut messages) = (Vec::new(), 0);
    while let Some(read) = readers.join_next().await {
        let (socket, told) = read??;
        messages += told;
        sockets.push(socket);
    }
    println!("{messages}");
    Ok(())
}

fn kib(after: usize, before: usize, count: usize) -> f64 {
    after.saturating_sub(before) as f64 / 1024.0 / count as f64
}

fn micros(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1e6 / count as f64
}

/// What this process holds, in bytes.
fn resident() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<usize>()? * 1024)
}

/// The time that this process was on a processor.
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(')').context("no name")?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).context("too short")?.parse::<u64>().map_err(anyhow::Error::from);
    // A tick is a hundredth of a second, whatever the kernel was built with.
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}
