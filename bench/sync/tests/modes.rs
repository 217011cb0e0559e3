//! Every mode of the contestants, played with few objects on the embedded server: client-go's, too, where there is Go.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use kube_informer_apiserver::Server;
use kube_informer_bench_sync::program::Program;
use kube_informer_bench_sync::stamps::now;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::{load, skip};
use serde_json::Value;
use tokio::runtime::Runtime;

const OURS: &str = env!("CARGO_BIN_EXE_bench-sync-kube-informer");
const IN_RUST: [&str; 2] = [env!("CARGO_BIN_EXE_bench-sync-kube-runtime"), OURS];
/// Built once, by the first test that comes.
const IN_GO: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/bench-sync-client-go");
const WRITER: &str = env!("CARGO_BIN_EXE_bench-sync-writer");
const PROXY: &str = env!("CARGO_BIN_EXE_bench-sync-proxy");
const SERVER: &str = env!("CARGO_BIN_EXE_bench-sync-server");

const OBJECTS: u64 = 50;

/// Those that there are: client-go's is left out where there is no Go, which a test by itself tells.
fn contestants() -> &'static [&'static str] {
    static ALL: OnceLock<Vec<&str>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = IN_RUST.to_vec();
        all.extend(has_go().then(|| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers");
            let built = Command::new("go").args(["build", "-o", IN_GO, "."]).current_dir(folder).status();
            assert!(built.is_ok_and(|status| status.success()), "go build has failed");
            IN_GO
        }));
        all
    })
}

fn has_go() -> bool {
    let version = Command::new("go").arg("version").output();
    version.is_ok_and(|output| output.status.success())
}

/// An embedded server with as many pods, and the way there. The pods have no owners: it collects those whose owners are
/// not there.
fn pods(name: &str) -> Result<(Runtime, Server, PathBuf)> {
    let runtime = Runtime::new()?;
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let server = runtime.block_on(async {
        let server = Server::builder().tls(false).start().await?;
        server.write_kubeconfig(&kubeconfig)?;
        let endpoint = Endpoint::from_kubeconfig(&kubeconfig).await?;
        for pod in load::pods(37, OBJECTS as usize) {
            let mut manifest = pod.manifest().clone();
            let metadata = manifest["metadata"].as_object_mut().context("no metadata")?;
            metadata.remove("ownerReferences");
            endpoint.post(&pod.kind().path("default"), &manifest).await?.success()?;
        }
        anyhow::Ok(server)
    })?;
    Ok((runtime, server, kubeconfig))
}

fn writer(kubeconfig: &Path) -> Result<Program> {
    let file = kubeconfig.to_str().context("not UTF-8")?;
    Program::start(WRITER, &[file, "pods", "default", &OBJECTS.to_string()], kubeconfig)
}

#[test]
fn client_go_takes_part() {
    if !has_go() {
        skip::skip_missing("client_go_takes_part", "Go 1.26", "https://go.dev/doc/install");
        return;
    }
    assert!(contestants().contains(&IN_GO));
}

#[test]
fn what_was_used_is_told_after_every_command() -> Result<()> {
    let (_runtime, _server, kubeconfig) = pods("usage.kubeconfig")?;
    let mut writer = writer(&kubeconfig)?;
    for contestant in contestants() {
        let mut running = Program::start(contestant, &["typed"], &kubeconfig)?;
        let mut used = vec![running.said()?, running.told("free")?, running.told("whole")?];
        let written = writer.told("change 10")?["written"].as_u64().context("nothing written")?;
        used.push(running.told(&format!("await {written}"))?);
        used.push(running.told("usage")?);
        assert_eq!(used.last().map(|usage| &usage["updates"]), Some(&Value::from(written)), "{contestant}");
        for usage in used {
            assert_eq!(usage["objects"], OBJECTS, "{contestant}");
            for number in ["wall_ns", "cpu_ns", "rss_bytes", "peak_bytes"] {
                assert!(usage[number].as_u64() > Some(0), "{contestant}: {number}: {usage}");
            }
        }
        running.end()?;
        let mut idle = Program::start(contestant, &["idle"], &kubeconfig)?;
        assert_eq!(idle.said()?["objects"], 0, "{contestant}");
        idle.end()?;
    }
    writer.end()
}

#[test]
fn ours_has_as_many_handlers_as_it_is_told_and_the_first_one_counts() -> Result<()> {
    let (_runtime, _server, kubeconfig) = pods("handlers.kubeconfig")?;
    let mut writer = writer(&kubeconfig)?;
    for kind in [&["typed"][..], &["typed", "--closures"], &["typed", "--gather", "50", "--every"]] {
        let mut running = Program::start(OURS, kind, &kubeconfig)?;
        let mut seen = running.said()?["updates"].as_u64().context("no updates")?;
        for handlers in [10, 1, 3, 0] {
            running.told(&format!("handlers {handlers}"))?;
            seen += writer.told("change 5")?["written"].as_u64().context("nothing written")?;
            assert_eq!(running.told(&format!("await {seen}"))?["updates"], seen, "{handlers} handlers");
        }
        running.end()?;
    }
    writer.end()
}

#[test]
fn the_age_of_every_update_is_told() -> Result<()> {
    let (_runtime, _server, kubeconfig) = pods("latency.kubeconfig")?;
    let mut writer = writer(&kubeconfig)?;
    for contestant in contestants() {
        let mut running = Program::start(contestant, &["typed"], &kubeconfig)?;
        assert_eq!(running.said()?["objects"], OBJECTS, "{contestant}");
        running.told(&format!("since {}", now()))?;
        // Fewer, where the machine is too busy for the rate.
        let written = writer.told("rate 100 40")?["written"].as_u64().context("nothing written")?;
        assert!((1..=40).contains(&written), "{written}");
        assert_eq!(running.told(&format!("fresh {written}"))?["fresh"], written, "{contestant}");
        let ages = running.told("ages")?;
        let ages = ages["ages_ns"].as_array().context("no ages")?.clone();
        assert_eq!(ages.len() as u64, written, "{contestant}");
        assert!(ages.iter().all(|age| age.as_u64().is_some_and(|age| (1..60_000_000_000).contains(&age))));
        running.end()?;
    }
    writer.end()
}

#[test]
fn after_a_410_what_was_changed_meanwhile_is_seen_and_not_before() -> Result<()> {
    let (_runtime, _server, kubeconfig) = pods("relist.kubeconfig")?;
    let mut writer = writer(&kubeconfig)?;
    for contestant in contestants() {
        let of_proxy = kubeconfig.with_file_name("relist-proxy.kubeconfig");
        let [from, to] = [&kubeconfig, &of_proxy].map(|path| path.to_str().unwrap_or_default());
        let mut proxy = Program::start(PROXY, &[from, to], &kubeconfig)?;
        proxy.said()?;
        let mut running = Program::start(contestant, &["typed"], &of_proxy)?;
        running.said()?;
        for changed in [1, 10] {
            running.told(&format!("since {}", now()))?;
            proxy.told("deaf")?;
            assert_eq!(writer.told(&format!("change {changed}"))?["written"], changed);
            assert_eq!(running.told("usage")?["fresh"], 0, "{contestant}");
            assert_eq!(proxy.told("gone")?["open"], 1, "{contestant}");
            assert_eq!(running.told(&format!("fresh {changed}"))?["fresh"], changed, "{contestant}");
        }
        running.end()?;
        proxy.end()?;
    }
    writer.end()
}

#[test]
fn all_read_the_same_with_one_reader_and_with_many() -> Result<()> {
    let (_runtime, _server, kubeconfig) = pods("readers.kubeconfig")?;
    let mut found = Vec::new();
    for contestant in contestants() {
        let mut running = Program::start(contestant, &["typed"], &kubeconfig)?;
        running.said()?;
        for readers in [1, 3] {
            let times = running.told(&format!("readers {readers}"))?;
            for kind in ["get", "indexed", "labelled", "snapshot"] {
                for time in [format!("{kind}_ns"), format!("{kind}_cpu_ns")] {
                    assert!(times[&time].as_f64() > Some(0.0), "{contestant}: {time}: {times}");
                }
            }
            found.push(times["found"].clone());
        }
        running.end()?;
    }
    let numbers = found.first().and_then(Value::as_array).context("nothing found")?;
    assert!(numbers.len() == 4 && numbers.iter().all(|number| number.as_u64() > Some(0)), "{numbers:?}");
    assert!(found.iter().all(|other| Some(other) == found.first()), "{found:?}");
    Ok(())
}

#[test]
fn the_server_makes_and_deletes_until_it_has_what_is_wanted() -> Result<()> {
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join("server.kubeconfig");
    let mut server = Program::start(SERVER, &[kubeconfig.to_str().context("not UTF-8")?], &kubeconfig)?;
    assert_eq!(server.told("5")?, 5);
    for contestant in contestants() {
        let mut running = Program::start(contestant, &["dynamic"], &kubeconfig)?;
        assert_eq!(running.said()?["objects"], 5);
        for wanted in [OBJECTS, 5] {
            assert_eq!(server.told(&wanted.to_string())?, wanted);
            while running.told("objects")?["objects"] != wanted {}
        }
        running.end()?;
    }
    server.end()
}
