//! SIGKILL at every write of putting to sleep: whoever comes next finds a state that loses nothing, and goes on from there.
//!
//! Who is killed is a process: this program once more, told by a variable what to do.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer::manager::Manager;
use kube_informer::runner::Runner;
use kube_informer_elasti::operator::{Operator, OperatorSettings, SleepError};
use kube_informer_testbed::process::{Launch, Process};
use kube_informer_testbed::proxy::{Fault, Match, Proxy, Request, Verb};
use serde_json::{Value, json};

use crate::harness::{Stage, on_both};
use crate::interrupted::noted;
use crate::support::resolver::{PORT, SERVICE};

on_both! {
    killed_at_any_write_of_putting_to_sleep_nothing_is_lost,
}

/// What the process is told: where the server is, and which namespace is meant.
const TOLD: &str = "KUBE_INFORMER_ELASTI_PUTS_TO_SLEEP";

/// What there is to write, at least: the slice, the note, the number of replicas, that the note goes, the status.
const LEAST: u64 = 5;

/// More writes than it has.
const MOST: u64 = 20;

/// Where a write is held when the process is killed.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// The server has not seen it.
    Before,
    /// The server has done it, and its answer is on the way.
    After,
}

/// What the other process does. Where nobody has told it to, it is nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_puts_to_sleep() -> Result<()> {
    let Ok(told) = std::env::var(TOLD) else { return Ok(()) };
    let (kubeconfig, namespace) = told.split_once('\n').context("two lines")?;
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.token = None;
    let factory = Factory::from_config(config).await?;
    let manager = Manager::new(&factory);
    let mut settings = OperatorSettings::new(namespace, SERVICE, PORT).scope(Scope::namespace(namespace));
    settings.linger = Duration::from_secs(1);
    let operator = Operator::new(settings, &factory, &manager);
    manager.start();
    let runner = operator.run_under(Runner::new(&factory));
    let runs = tokio::spawn(runner.run(std::future::pending()));
    loop {
        match operator.put_to_sleep(namespace, "web").await {
            // It does not know yet what there is.
            Err(SleepError::Unknown(_)) => tokio::task::yield_now().await,
            other => {
                writeln!(std::io::stderr(), "{other:?}")?;
                break;
            }
        }
    }
    ensure!(runs.await?.is_ok(), "it goes on until it is killed");
    Ok(())
}

/// Starts it behind a proxy.
pub(crate) fn start(proxy: &Proxy, namespace: &str, log: &std::path::Path) -> Result<Process> {
    Launch::new("operator", std::env::current_exe()?, log)
        .args(["--exact", "killed::a_process_that_puts_to_sleep", "--nocapture"])
        .env(TOLD, format!("{}\n{namespace}", proxy.kubeconfig("none")))
        .spawn()
}

/// A write that counts. Events are for people: nothing depends on them.
fn is_counted(request: &Request) -> bool {
    let is_write = matches!(request.verb(), Verb::Create | Verb::Update | Verb::Patch | Verb::Delete);
    is_write && !request.path.contains("/events")
}

fn hold(proxy: &Proxy, n: u64, held: Held) -> Fault {
    let on = proxy.on(Match::any().when(is_counted)).skip(n).once();
    match held {
        Held::Before => on.stall(),
        Held::After => on.stall_after_bytes(0),
    }
}

async fn killed_at_any_write_of_putting_to_sleep_nothing_is_lost(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    let folder = tempfile::tempdir()?;
    let (mut writes, mut was_noted) = (0, false);
    for n in 0..MOST {
        let mut was_held = true;
        for (turn, held) in [Held::Before, Held::After].into_iter().enumerate() {
            serves(&stage).await;
            stage.retire().await;
            stage.resolver.ask_nobody();
            // Where nothing differs nothing is written: what it writes belongs to its putting to sleep.
            let proxy = stage.proxy().await?;
            let fault = hold(&proxy, n, held);
            let mut process = start(&proxy, &stage.namespace, &folder.path().join(format!("{n}-{turn}")))?;
            let asleep = |elasti: &Value| {
                elasti["status"]["mode"] == "proxy" && elasti["status"]["replicas"] == 0 && !noted(elasti)
            };
            let elasti = stage.elasti_path("web");
            tokio::select! {
                () = fault.wait_applied(1) => {}
                _ = stage.until("it sleeps", &elasti, asleep) => {}
                ended = process.ended() => panic!("it ended with {ended:?}: {}", process.logged()),
            }
            // The last write is what makes it sleep: that is seen before its answer is held, or after it.
            was_held &= proxy.requests().count(is_counted) as u64 > n;
            process.kill()?;
            // What it has sent and nobody has passed on is lost.
            proxy.shut_down().await;
            was_noted |= noted(&stage.get(&elasti).await?);
            if turn == 0 {
                // Nobody asks: either it is asleep and redirected, or awake and serves. Nothing stays between them.
                stage.operate().await?;
                settled(&stage).await;
                assert_eq!(stage.ask("web").await?.status, 200);
            } else {
                // Somebody asks all the time, also while nobody looks after it.
                let clients = stage.clients("web");
                stage.operate().await?;
                serves(&stage).await;
                let (answered, lost) = clients.stop().await;
                ensure!(lost.is_empty(), "{} of {answered} were lost: {lost:#?}", lost.len());
            }
        }
        if !was_held {
            break;
        }
        writes = n + 1;
    }
    assert!((LEAST..MOST).contains(&writes), "there were {writes} writes");
    assert!(was_noted, "whoever comes next is not told what was about to be done");
    stage.close().await
}

/// Waits until the pods answer, and all of that is said.
async fn serves(stage: &Stage) {
    stage.replicas("deployments/web", 1).await;
    stage.serves("web").await;
    stage.gone(&stage.slice_path("web")).await;
    let says_so = |elasti: &Value| {
        elasti["status"]["replicas"] == 1
            && crate::harness::conditions(elasti).any(|each| each["reason"] == "PodsReady")
    };
    stage.until("it is said", &stage.elasti_path("web"), says_so).await;
}

/// Waits until it is what the target's replicas say.
async fn settled(stage: &Stage) {
    let target = stage.path("apps/v1/deployments/web");
    let replicas = stage.until("it is there", &target, |_| true).await["spec"]["replicas"].clone();
    if replicas == json!(0) {
        stage.sleeps("web", "deployments/web").await;
    } else {
        serves(stage).await;
    }
}
