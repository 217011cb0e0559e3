//! `serve`, as a daemon: who is told what, whether it is ready, and how it begins and ends.

use anyhow::Result;
use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::bad_input::one_line;
use crate::client::{File, NO_CONTEXT, closed, message, op, taken_address, word};
use crate::harness::{Place, SOON, on_both};
use crate::running::{Running, run, stuck_pipe, text};

on_both! {
    any_client_hears_what_changes_and_that_it_is_over,
    it_is_not_ready_while_something_is_stale_and_ready_again_after,
    it_is_not_ready_before_everything_is_read,
    what_may_not_be_read_is_one_line,
}

/// The command, and where it listens.
pub(crate) struct Served {
    pub(crate) running: Running,
    /// For WebSocket clients.
    pub(crate) url: String,
    /// For probes.
    pub(crate) http: Endpoint,
}

impl Served {
    /// Starts it, and waits until it says where it listens.
    pub(crate) fn start(kubeconfig: &str, args: &[&str]) -> Self {
        let args = [&["serve", "--kubeconfig", kubeconfig], args].concat();
        tokio::task::block_in_place(|| {
            let mut running = Running::start(&args);
            let url = word(&running.line("ws://"), "ws://").to_owned();
            let line = running.line("/readyz");
            let base = word(&line, "http://").split_once("/readyz").unwrap().0.to_owned();
            running.line("Ctrl-C ends it");
            let http = Endpoint::new(Access::anonymous(base)).unwrap();
            Self { running, url, http }
        })
    }

    /// Starts it, and waits until everything is read.
    pub(crate) fn ready(kubeconfig: &str, args: &[&str]) -> Self {
        let mut served = Self::start(kubeconfig, args);
        tokio::task::block_in_place(|| served.running.line("ready: "));
        served
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.http.get(path).await.unwrap();
        (answer.status.as_u16(), answer.text().into_owned())
    }

    /// Waits until it is ready, or is not.
    async fn readiness(&self, status: u16) -> String {
        eventually("its readiness is another", SOON, async || {
            let (is, text) = self.get("/readyz").await;
            (is == status).then_some(text)
        })
        .await
    }

    pub(crate) async fn terminate(self) -> Option<i32> {
        tokio::task::spawn_blocking(|| self.running.terminate()).await.unwrap()
    }
}

async fn any_client_hears_what_changes_and_that_it_is_over(place: Place) -> Result<()> {
    let map = json!({ "metadata": { "name": "settings" }, "data": { "banner": "Welcome" } });
    place.post(&place.path("configmaps"), &map).await?;
    let kubeconfig = place.file();
    let served = Served::ready(&kubeconfig, &["cm,deploy", "-n", &place.namespace]);
    assert_eq!(
        served.get("/readyz").await,
        (200, "apps/v1/deployments live\nv1/configmaps live\n".to_owned())
    );
    let (mut socket, _) = connect_async(&served.url).await?;
    let item = message(&mut socket, |message| message["obj"]["name"] == "settings").await;
    assert_eq!((&item["op"], &item["object"]["data"]["banner"]), (&json!("snap.item"), &json!("Welcome")));
    let patch = json!({ "data": { "banner": "Sale" } });
    place.merge(&place.path("configmaps/settings"), &patch).await?;
    let change = op(&mut socket, "change").await;
    assert_eq!(change["changes"], json!([{ "path": "/data/banner", "old": "Welcome", "new": "Sale" }]));
    let (status, metrics) = served.get("/metrics").await;
    assert_eq!(status, 200);
    for name in [
        "kube_informer_objects{",
        "kube_informer_health{",
        "kube_informer_feed_connections 1",
        "kube_informer_feed_changes_total{type=\"modified\"} 1",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
    ] {
        assert!(metrics.contains(name), "{name} in\n{metrics}");
    }
    // As whoever runs daemons ends them: everyone is told, and that is a success.
    let ended = tokio::spawn(served.terminate());
    let bye = op(&mut socket, "bye").await;
    assert!(bye["code"] == 1001 && bye["resume"].is_string(), "{bye}");
    closed(socket).await;
    assert_eq!(ended.await?, Some(0));
    Ok(())
}

async fn it_is_not_ready_while_something_is_stale_and_ready_again_after(place: Place) -> Result<()> {
    let (proxy, kubeconfig) = place.proxy().await?;
    let mut served = Served::ready(&kubeconfig, &["configmaps", "services", "-n", &place.namespace]);
    let (mut socket, _) = connect_async(&served.url).await?;
    op(&mut socket, "snap.end").await;
    op(&mut socket, "snap.end").await;
    // One of them is enough.
    let trouble = proxy.on(Match::any().path_contains("/configmaps")).answer(Answer::internal_error());
    proxy.cut_open(Match::watch().path_contains("/configmaps")).await;
    let said = served.readiness(503).await;
    assert!(said.contains("v1/configmaps stale: ") && said.contains("v1/services live"), "{said}");
    assert_eq!(served.get("/healthz").await, (200, "ok\n".to_owned()));
    let metrics = served.get("/metrics").await.1;
    let stale = metrics.lines().filter(|line| line.contains("state=\"stale\"") && line.ends_with(" 1.0"));
    assert_eq!(stale.count(), 1, "{metrics}");
    let status = message(&mut socket, |message| message["state"] == "stale").await;
    assert_eq!(status["gvr"], "v1/configmaps");
    trouble.remove();
    served.readiness(200).await;
    // Who reads the log is told of both, and of what.
    for said in ["watching does not work", "watching works again"] {
        let line = tokio::task::block_in_place(|| served.running.note(said));
        assert!(line.contains("configmaps") && !line.contains("services"), "{line}");
    }
    // Who stayed is told what happened since.
    let map = json!({ "metadata": { "name": "settings" }, "data": { "banner": "Welcome" } });
    place.post(&place.path("configmaps"), &map).await?;
    let change = message(&mut socket, |message| message["obj"]["name"] == "settings").await;
    assert_eq!(change["type"], "ADDED");
    drop(socket);
    assert_eq!(served.terminate().await, Some(0));
    Ok(())
}

async fn it_is_not_ready_before_everything_is_read(place: Place) -> Result<()> {
    let (proxy, kubeconfig) = place.proxy().await?;
    let silence = proxy.on(Match::any().path_contains("/configmaps")).stall();
    let mut served = Served::start(&kubeconfig, &["configmaps", "-n", &place.namespace]);
    silence.wait_applied(1).await;
    let (status, said) = served.get("/readyz").await;
    assert!(status == 503 && said.starts_with("v1/configmaps syncing"), "{status} {said}");
    assert_eq!(served.get("/healthz").await.0, 200);
    silence.release();
    silence.remove();
    tokio::task::block_in_place(|| served.running.line("ready: "));
    assert_eq!(served.get("/readyz").await.0, 200);
    assert_eq!(served.terminate().await, Some(0));
    Ok(())
}

async fn what_may_not_be_read_is_one_line(place: Place) -> Result<()> {
    let (proxy, through) = place.proxy().await?;
    // Somebody who may ask what there is, and nothing else.
    let nobody = place.endpoint.access().clone().acting_as("nobody", &["system:authenticated"]);
    let nobody = File::kubeconfig(&nobody);
    let kubeconfig = if place.is_real() {
        nobody.path()
    } else {
        proxy.on(Match::any().path_contains("/configmaps")).answer(Answer::forbidden());
        &through
    };
    let args = ["serve", "configmaps", "--kubeconfig", kubeconfig, "-n", &place.namespace];
    let output = tokio::task::block_in_place(|| run(&args));
    assert_eq!(output.status.code(), Some(1));
    one_line(&output.stderr, &["configmaps cannot be read", "auth can-i"]);
    // Who asks for what is logged has that, too.
    let logged = tokio::task::block_in_place(|| run(&[&args[..], &["-v"]].concat()));
    let said = text(&logged.stderr);
    assert!(said.contains("watching does not work") && said.contains("\nerror: "), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_namespaces_that_may_not_be_read_is_enough() -> Result<()> {
    let place = Place::embedded().await?;
    let faults = place.server().unwrap().faults();
    let of = |namespace: &str| Match::any().path_contains(format!("/namespaces/{namespace}/configmaps"));
    for name in ["first", "second"] {
        place.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
    }
    // Something else is wrong with the other one, and was before.
    let silence = faults.on(of("first")).stall();
    faults.on(of("second")).answer(Answer::unavailable());
    let args = ["configmaps", "-n", "first", "-n", "second"];
    let mut served = Served::start(&place.file(), &args);
    eventually("it is known what is wrong", SOON, async || {
        served.get("/readyz").await.1.contains("stale").then_some(())
    })
    .await;
    eventually("the other one is asked for", SOON, async || (silence.applied() > 0).then_some(())).await;
    silence.remove();
    faults.on(of("first")).answer(Answer::forbidden());
    faults.cut_open(&of("first"));
    assert_eq!(tokio::task::block_in_place(|| served.running.code()), Some(1));
    let said = tokio::task::block_in_place(|| served.running.said());
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.contains("configmaps cannot be read") && error.contains("auth can-i"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_goes_on_and_ends_at_sigterm_though_nobody_reads_what_it_prints() -> Result<()> {
    // Nobody else's, so that nobody else listens there.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = format!("127.{}.{b}.{c}:8080", a | 0x80);
    for is_stuck in [false, true] {
        let place = Place::embedded().await?;
        let (reader, writer) = stuck_pipe(0);
        // Its other end is open, and nobody reads; or it is closed.
        let reader = is_stuck.then_some(reader);
        let mut command = place.command(&format!("serve configmaps --listen {address}"));
        command.stdout(writer);
        let mut serving = Running::of(command);
        let http = Endpoint::new(Access::anonymous(format!("http://{address}")))?;
        eventually("it is ready, whatever it could print", SOON, async || {
            http.get("/readyz").await.is_ok_and(|answer| answer.status == 200).then_some(())
        })
        .await;
        serving.signal("-TERM");
        assert_eq!(tokio::task::block_in_place(|| serving.code()), Some(0), "stuck: {is_stuck}");
        drop(reader);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_origins_that_are_allowed_are_told_what_changes() -> Result<()> {
    let place = Place::embedded().await?;
    let served = Served::ready(&place.file(), &["configmaps", "--allow-origin", "https://dash.example.com"]);
    for (origin, is_let_in) in [("https://dash.example.com", true), ("https://evil.example.com", false)] {
        let mut request = served.url.as_str().into_client_request()?;
        request.headers_mut().insert("origin", origin.parse()?);
        assert_eq!(connect_async(request).await.is_ok(), is_let_in, "{origin}");
    }
    assert_eq!(served.terminate().await, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_alone_is_every_address_of_this_machine() -> Result<()> {
    let place = Place::embedded().await?;
    let token = File::token("a-token-that-nobody-guesses");
    let served =
        Served::ready(&place.file(), &["configmaps", "--listen", ":0", "--token-file", token.path()]);
    let (_, port) = served.http.url().rsplit_once(':').unwrap();
    let here = Endpoint::new(Access::anonymous(format!("http://127.0.0.1:{port}")))?;
    assert_eq!(here.get("/healthz").await?.status, 200);
    assert_eq!(served.terminate().await, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_it_with_130_and_a_second_signal_at_once() -> Result<()> {
    let place = Place::embedded().await?;
    let kubeconfig = place.file();
    let mut served = Served::ready(&kubeconfig, &["configmaps"]);
    served.running.signal("-INT");
    assert_eq!(tokio::task::block_in_place(|| served.running.code()), Some(130));

    let mut served = Served::ready(&kubeconfig, &["configmaps"]);
    // Somebody who never answers a goodbye, and is waited for.
    let (silent, _) = connect_async(&served.url).await?;
    served.running.signal("-TERM");
    tokio::task::block_in_place(|| served.running.line("ending: "));
    served.running.signal("-TERM");
    assert_eq!(tokio::task::block_in_place(|| served.running.code()), Some(130), "it did not end in order");
    drop(silent);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasons_and_numbers_are_for_those_who_know_the_token() -> Result<()> {
    const TOKEN: &str = "a-token-that-nobody-guesses";
    let place = Place::embedded().await?;
    let token = File::token(TOKEN);
    let served =
        Served::ready(&place.file(), &["configmaps", "--token-file", token.path(), "--allow-host", "feed"]);
    assert_eq!(served.get("/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(served.get("/healthz").await.0, 200);
    assert_eq!(served.get("/metrics").await.0, 401);
    assert!(connect_async(&served.url).await.unwrap_err().to_string().contains("401"));
    let knows = Endpoint::new(served.http.access().clone().with_token(TOKEN))?;
    assert_eq!(knows.get("/readyz").await?.text(), "v1/configmaps live\n");
    assert_eq!(knows.get("/metrics").await?.status, 200);
    let mut request = served.url.as_str().into_client_request()?;
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse()?);
    request.headers_mut().insert("host", "feed:80".parse()?);
    let (mut socket, _) = connect_async(request).await?;
    op(&mut socket, "snap.end").await;
    assert_eq!(served.terminate().await, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_ask_for_other_resources_where_that_is_allowed() -> Result<()> {
    let place = Place::embedded().await?;
    for (args, answer) in [(&["configmaps"][..], "err"), (&["configmaps", "--any-resource"], "snap.end")] {
        let served = Served::ready(&place.file(), args);
        let mut request = served.url.as_str().into_client_request()?;
        request.headers_mut().insert("sec-websocket-protocol", "kube-informer.v1.json".parse()?);
        let (mut socket, _) = connect_async(request).await?;
        let sub = json!({ "op": "sub", "id": "s", "gvr": "services" }).to_string();
        futures_util::SinkExt::send(&mut socket, sub.into()).await?;
        op(&mut socket, answer).await;
        assert_eq!(served.terminate().await, Some(0));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_wait_for_others_where_that_is_allowed() -> Result<()> {
    let place = Place::embedded().await?;
    for (args, seconds) in [(&["configmaps"][..], "0"), (&["configmaps", "--gather", "20ms"], "0.02")] {
        let served = Served::ready(&place.file(), args);
        let (_, page) = served.get("/metrics").await;
        let line = page.lines().find(|line| line.starts_with("kube_informer_gather_seconds{"));
        let value = line.and_then(|line| line.rsplit(' ').next()).map(str::parse::<f64>);
        assert_eq!(value, Some(Ok(seconds.parse()?)), "{page}");
        assert_eq!(served.terminate().await, Some(0));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_in_one_line_why_it_does_not_start() -> Result<()> {
    let place = Place::embedded().await?;
    let (there, away) = (place.file(), File::kubeconfig(&Access::anonymous("http://127.0.0.1:1")));
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    for (args, code, expected) in [
        (&["pods", "--kubeconfig", "/nowhere/at/all"][..], 1, "/nowhere/at/all"),
        (&["pods", "--kubeconfig", &there, "--context", "none"], 1, NO_CONTEXT),
        (&["pods", "--kubeconfig", away.path()], 1, "127.0.0.1:1"),
        (&["deploymets", "--kubeconfig", &there], 1, "did you mean deployments"),
        (&["pods", "--kubeconfig", &there, "--listen", &address], 1, &taken_address(&address)),
        (&["pods", "--kubeconfig", &there, "--listen", "0.0.0.0:0"], 2, "give --token-file FILE"),
        // Before anybody else is asked for anything.
        (&["pods", "--kubeconfig", "/nowhere/at/all", "--listen", "0.0.0.0:0"], 2, "give --token-file FILE"),
        (&["pods", "--kubeconfig", "/nowhere/at/all", "--listen", ":0"], 2, "give --token-file FILE"),
        (&["pods", "--kubeconfig", &there, "--token-file", "/nowhere/at/all"], 1, "/nowhere/at/all"),
        (&["nodes", "--kubeconfig", &there, "-n", "shop"], 2, "nodes are in no namespace"),
        (&["pods", "--kubeconfig", &there, "--gather", "20"], 2, "too long: at most 50ms"),
        (&["pods", "--kubeconfig", &there, "--gather", "20us"], 2, "too short: at least 1ms"),
        (&["pods", "--kubeconfig", &there, "--gather", "soon"], 2, "such as 30s"),
    ] {
        let output = tokio::task::block_in_place(|| run(&[&["serve"], args].concat()));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    Ok(())
}
