//! `wait`: how it ends, what it says, what it outlasts.

use std::process::Stdio;

use anyhow::Result;
use kube_informer_apiserver::Server;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Answer, Match, Proxy};
use kube_informer_testbed::require;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::harness::{Place, SOON, blocking, on_both};
use crate::running::{Running, kube_informer, stuck_pipe};

on_both! {
    a_pod_that_comes_later_and_becomes_ready_ends_the_wait,
    it_says_what_kubectl_says,
    what_must_not_be_ends_it_with_3,
    when_the_time_is_up_it_says_what_it_saw,
    deletion_is_told_apart_from_being_made_again,
    of_chosen_objects_those_that_come_later_count,
    leaving_a_selection_is_no_deletion,
    one_of_several_can_be_enough,
    it_outlasts_a_lost_connection_and_says_so,
    it_outlasts_a_server_that_has_forgotten_what_it_missed,
    it_looks_once_where_there_is_no_time,
    cluster_scoped_and_grouped_objects_have_their_names,
    a_path_is_waited_for_as_kubectl_does,
    what_may_not_be_read_is_told_at_once,
}

/// How a command ended, and what it said.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Place {
    /// Makes a pod.
    pub(crate) async fn pod(&self, name: &str, labels: &Value) -> Result<Value> {
        // What controllers do where there are some: pods belong to an account.
        let account = json!({ "metadata": { "name": "default" } });
        self.endpoint.post(&self.path("serviceaccounts"), &account).await?;
        let pod = json!({
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "containers": [{ "name": "main", "image": "nginx:1" }],
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0
            }
        });
        self.post(&self.path("pods"), &pod).await
    }

    /// Says how a pod is.
    async fn status(&self, name: &str, status: &Value) -> Result<Value> {
        self.merge(&self.path(&format!("pods/{name}/status")), &json!({ "status": status })).await
    }

    /// Says whether a pod is ready.
    pub(crate) async fn ready(&self, name: &str, status: &str) -> Result<Value> {
        let condition =
            json!({ "type": "Ready", "status": status, "reason": "Played", "message": "as the test has it" });
        self.status(name, &json!({ "phase": "Running", "conditions": [condition] })).await
    }
}

/// A wait that goes through a proxy, and may be told of troubles.
struct Waiting {
    child: Child,
    proxy: Proxy,
}

impl Waiting {
    async fn start(place: &Place, arguments: &str) -> Result<Self> {
        let (proxy, kubeconfig) = place.proxy().await?;
        let mut command = kube_informer(&arguments.split(' ').collect::<Vec<_>>());
        command.args(["-vv", "--timeout", "100s", "--kubeconfig", &kubeconfig, "-n", &place.namespace]);
        Ok(Self { child: Command::from(command).kill_on_drop(true).spawn()?, proxy })
    }

    /// Reads stderr up to a line that has this in it.
    async fn until(&mut self, part: &str) {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut said = Vec::new();
        let read = async {
            while !String::from_utf8_lossy(&said).contains(part) {
                let mut byte = [0];
                assert_ne!(stderr.read(&mut byte).await.unwrap(), 0, "{}", String::from_utf8_lossy(&said));
                said.push(byte[0]);
            }
        };
        tokio::time::timeout(SOON, read).await.unwrap();
    }

    /// It has seen everything that there is.
    async fn ready(&mut self) {
        self.until("what there is was seen").await;
    }

    async fn lose_connection(&self) {
        self.proxy.refuse_connections().await;
        self.proxy.cut_open(Match::any_watch()).await;
    }

    async fn ended(self) -> Said {
        ended(self.child).await
    }
}

/// Runs a command to its end.
async fn run(place: &Place, arguments: &str) -> Said {
    let mut command = Command::from(place.command(arguments));
    ended(command.kill_on_drop(true).spawn().unwrap()).await
}

/// The same with another kubeconfig.
async fn run_through(place: &Place, kubeconfig: &str, arguments: &str) -> Said {
    let mut command = kube_informer(&arguments.split(' ').collect::<Vec<_>>());
    command.args(["--kubeconfig", kubeconfig, "-n", &place.namespace]);
    ended(Command::from(command).kill_on_drop(true).spawn().unwrap()).await
}

/// Waits for the end of a command.
async fn ended(child: Child) -> Said {
    let output = tokio::time::timeout(2 * SOON, child.wait_with_output()).await;
    let output = output.expect("it does not end").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

async fn a_pod_that_comes_later_and_becomes_ready_ends_the_wait(place: Place) -> Result<()> {
    let mut waiting = Waiting::start(&place, "wait pod/web --for condition=Ready").await?;
    waiting.ready().await;
    place.pod("web", &json!({})).await?;
    place.ready("web", "False").await?;
    place.ready("web", "True").await?;
    let said = waiting.ended().await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/web condition met\n"), "{said:?}");
    Ok(())
}

async fn it_says_what_kubectl_says(place: Place) -> Result<()> {
    for name in ["a", "b"] {
        place.pod(name, &json!({ "app": "web" })).await?;
        place.ready(name, "True").await?;
    }
    for arguments in [
        "wait pod/a --for condition=Ready",
        "wait pod/a --for=condition=ready=TRUE",
        "wait pod/a pod/b --for condition=Ready",
        "wait pod a b --for condition=Ready",
        "wait pod -l app=web --for condition=Ready",
        "wait pods --all --for jsonpath={.status.phase}=Running",
        "wait pod/a --for jsonpath={.status.phase}",
        "wait pod/a --for condition=Ready --timeout=0",
    ] {
        let ours = run(&place, arguments).await;
        let words: Vec<&str> = arguments.split(' ').collect();
        let theirs = require!(place.kubectl(&words).await, else Ok(()));
        assert_eq!(ours.code, theirs.status.code(), "{arguments}: {ours:?} {theirs:?}");
        assert_eq!(ours.out, String::from_utf8(theirs.stdout)?, "{arguments}: {ours:?}");
        assert_eq!(ours.err, "", "{arguments}");
    }
    // kubectl takes several conditions since 1.35, and says each.
    let said = run(&place, "wait pod/a --for condition=Ready --for create").await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/a condition met\npod/a condition met\n"), "{said:?}");
    Ok(())
}

async fn what_must_not_be_ends_it_with_3(place: Place) -> Result<()> {
    place.pod("good", &json!({})).await?;
    place.pod("bad", &json!({})).await?;
    place.ready("good", "True").await?;
    place.status("bad", &json!({ "phase": "Failed", "reason": "Evicted" })).await?;
    let arguments = "wait pod/good pod/bad --for condition=Ready --fail-on jsonpath={.status.phase}=Failed --timeout 100s";
    let said = run(&place, arguments).await;
    assert_eq!(said.code, Some(3), "{said:?}");
    let expected =
        "error: pod/bad: {.status.phase} is Failed; that is --fail-on jsonpath={.status.phase}=Failed\n";
    assert_eq!(said.err, expected);
    Ok(())
}

async fn when_the_time_is_up_it_says_what_it_saw(place: Place) -> Result<()> {
    for name in ["a", "b"] {
        place.pod(name, &json!({})).await?;
    }
    place.ready("a", "True").await?;
    place.ready("b", "False").await?;
    let said = run(&place, "wait pod/a pod/b pod/c --for condition=Ready --timeout 3s").await;
    assert_eq!((said.code, &*said.out), (Some(1), "pod/a condition met\n"), "{said:?}");
    let expected = "error: timed out after 3s waiting for condition=Ready: 2 of 3 objects have not met it\n  \
                    pod/b: Ready is False (Played: as the test has it)\n  pod/c: is not there\n";
    assert_eq!(said.err, expected);
    let said = run(&place, "wait pods -l app=none --for condition=Ready --timeout 1s").await;
    let expected = format!(
        "error: timed out after 1s waiting for condition=Ready: there are no such pods in {}\n",
        place.namespace
    );
    assert_eq!((said.code, said.err), (Some(1), expected));
    Ok(())
}

async fn deletion_is_told_apart_from_being_made_again(place: Place) -> Result<()> {
    place.pod("web", &json!({})).await?;
    let mut waiting = Waiting::start(&place, "wait pod/web --for delete").await?;
    waiting.ready().await;
    // It misses the deletion: all that it sees is that there is another one.
    waiting.lose_connection().await;
    place.delete(&place.path("pods/web")).await?;
    place.pod("web", &json!({})).await?;
    waiting.proxy.accept_connections().await;
    let said = waiting.ended().await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/web condition met\n"), "{said:?}");
    // What is not there was deleted.
    let said = run(&place, "wait pod/nobody --for delete").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    Ok(())
}

async fn of_chosen_objects_those_that_come_later_count(place: Place) -> Result<()> {
    place.pod("old", &json!({ "app": "web" })).await?;
    let mut waiting = Waiting::start(&place, "wait pods -l app=web --for condition=Ready").await?;
    waiting.ready().await;
    // A rollout: a new one comes, the old one goes without ever having been ready.
    place.pod("new", &json!({ "app": "web" })).await?;
    place.delete(&place.path("pods/old")).await?;
    place.ready("new", "True").await?;
    let said = waiting.ended().await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/new condition met\n"), "{said:?}");
    Ok(())
}

async fn leaving_a_selection_is_no_deletion(place: Place) -> Result<()> {
    place.pod("web", &json!({ "app": "web" })).await?;
    let mut waiting = Waiting::start(&place, "wait pods -l app=web --for delete").await?;
    waiting.ready().await;
    place.merge(&place.path("pods/web"), &json!({ "metadata": { "labels": { "app": "other" } } })).await?;
    // It asks for the object by its name from then on.
    let watches = waiting.proxy.requests().within(SOON);
    watches
        .wait_for(|request| {
            request.is_watch() && request.param("fieldSelector").as_deref() == Some("metadata.name=web")
        })
        .await?;
    place.delete(&place.path("pods/web")).await?;
    let said = waiting.ended().await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/web condition met\n"), "{said:?}");
    Ok(())
}

async fn one_of_several_can_be_enough(place: Place) -> Result<()> {
    for name in ["a", "b"] {
        place.pod(name, &json!({})).await?;
    }
    place.ready("b", "True").await?;
    let said = run(&place, "wait pods --all --any --for condition=Ready").await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/b condition met\n"), "{said:?}");
    let either = "wait pod/b --any-condition --for condition=Failed --for condition=Ready";
    let said = run(&place, either).await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/b condition met\n"), "{said:?}");
    Ok(())
}

async fn it_outlasts_a_lost_connection_and_says_so(place: Place) -> Result<()> {
    place.pod("web", &json!({})).await?;
    let mut waiting = Waiting::start(&place, "wait pod/web --for condition=Ready").await?;
    waiting.ready().await;
    waiting.lose_connection().await;
    waiting.until("pod/web: still waiting, but what is seen may be old").await;
    place.ready("web", "True").await?;
    waiting.proxy.accept_connections().await;
    let said = waiting.ended().await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/web condition met\n"), "{said:?}");
    Ok(())
}

async fn it_outlasts_a_server_that_has_forgotten_what_it_missed(place: Place) -> Result<()> {
    for name in ["a", "b"] {
        place.pod(name, &json!({ "app": "web" })).await?;
    }
    let mut ready = Waiting::start(&place, "wait pod/a --for condition=Ready").await?;
    let mut gone = Waiting::start(&place, "wait pods -l app=web --for delete").await?;
    let mut forgotten = Vec::new();
    for waiting in [&mut ready, &mut gone] {
        waiting.ready().await;
        waiting.lose_connection().await;
        // Who wants to go on where it was is told that nobody knows that any more.
        let resumed = Match::watch().send_initial_events(false);
        forgotten.push(waiting.proxy.on(resumed).once().answer(Answer::gone()));
    }
    place.ready("a", "True").await?;
    ready.proxy.accept_connections().await;
    let said = ready.ended().await;
    assert_eq!((said.code, &*said.out), (Some(0), "pod/a condition met\n"), "{said:?}");
    for name in ["a", "b"] {
        place.delete(&place.path(&format!("pods/{name}"))).await?;
    }
    gone.proxy.accept_connections().await;
    let said = gone.ended().await;
    let mut lines: Vec<&str> = said.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((said.code, lines), (Some(0), vec!["pod/a condition met", "pod/b condition met"]), "{said:?}");
    assert!(forgotten.iter().all(|fault| fault.applied() == 1));
    Ok(())
}

async fn it_looks_once_where_there_is_no_time(place: Place) -> Result<()> {
    place.pod("web", &json!({})).await?;
    place.ready("web", "False").await?;
    let said = run(&place, "wait pod/web --for condition=Ready --timeout 0").await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.starts_with("error: not met waiting for condition=Ready: 1 of 1 objects"), "{said:?}");
    assert!(said.err.contains("pod/web: Ready is False (Played"), "{said:?}");
    Ok(())
}

async fn cluster_scoped_and_grouped_objects_have_their_names(place: Place) -> Result<()> {
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] }
            }
        }
    });
    place.post(&place.path("apps/v1/deployments"), &deployment).await?;
    let said = run(&place, "wait deploy/web --for create").await;
    assert_eq!((said.code, &*said.out), (Some(0), "deployment.apps/web condition met\n"), "{said:?}");
    let namespace = format!("wait ns/{} --for jsonpath=.status.phase=Active", place.namespace);
    let said = run(&place, &namespace).await;
    assert_eq!(said.out, format!("namespace/{} condition met\n", place.namespace), "{said:?}");
    Ok(())
}

async fn a_path_is_waited_for_as_kubectl_does(place: Place) -> Result<()> {
    place.pod("web", &json!({})).await?;
    place.ready("web", "True").await?;
    let several = run(&place, "wait pod/web --for jsonpath={.spec.containers[0]}=x").await;
    assert_eq!(several.code, Some(1), "{several:?}");
    assert!(several.err.contains("can never be met") && several.err.lines().count() == 1, "{several:?}");
    let later = run(&place, "wait pod/web --for jsonpath={.status.podIPs[0].ip} --timeout 2s").await;
    assert_eq!(later.code, Some(1), "{later:?}");
    assert!(later.err.contains("{.status.podIPs[0].ip} finds nothing"), "{later:?}");
    for fields in ["{.metadata.managedFields[0].operation}=Update", "{.metadata.managedFields}"] {
        let written = run(&place, &format!("wait pod/web --for jsonpath={fields}")).await;
        assert_eq!(written.out, "pod/web condition met\n", "{written:?}");
        let watched =
            place.run(&format!("watch pod/web -o diff --until jsonpath={fields} --timeout 100s")).await;
        assert_eq!(watched.status.code(), Some(0), "{fields}");
    }
    Ok(())
}

async fn what_may_not_be_read_is_told_at_once(place: Place) -> Result<()> {
    let (proxy, kubeconfig) = place.proxy().await?;
    proxy.on(Match::any().path_contains("/pods")).answer(Answer::forbidden());
    let said = run_through(&place, &kubeconfig, "wait pod/web --for condition=Ready --timeout 100s").await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.starts_with("error: pod/web: ") && said.err.contains("kubectl auth can-i"), "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_waited_for_is_explained_with_exit_code_2() {
    let place = Place::embedded().await.unwrap();
    for (arguments, expected) in [
        ("wait pod/web", "--for <CONDITION>"),
        ("wait --for delete", "<TYPE"),
        ("wait pod/web --for ready", "is nothing to wait for"),
        ("wait pod/web --for jsonpath={.a[}", "unterminated array at character 4"),
        ("wait pod/web --for delete --timeout soon", "such as 30s"),
        ("wait pod/web --for delete --fail-in x", "--fail-on"),
        ("wait pods --for delete", "TYPE/NAME, TYPE -l LABELS, or TYPE --all"),
        ("wait pod/web --for delete -l app=web", "not by both"),
        ("wait pods -l app==,, --for delete", "--selector"),
        ("wait pod/web svc --for delete", "TYPE/NAME for each"),
    ] {
        let said = run(&place, arguments).await;
        assert_eq!(said.code, Some(2), "{arguments}: {said:?}");
        assert!(said.err.contains(expected), "{arguments}: {said:?}");
    }
    let unknown = run(&place, "wait poods/web --for delete").await;
    assert_eq!((unknown.code, unknown.err.lines().count()), (Some(1), 1), "{unknown:?}");
    assert!(unknown.err.contains("pods"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_outlasts_a_server_that_begins_anew() -> Result<()> {
    let map = |data| json!({ "metadata": { "name": "job" }, "data": data });
    let path = "/api/v1/namespaces/default/configmaps";
    let before = Server::builder().start().await?;
    let address = before.address();
    let endpoint = Endpoint::new(Access::anonymous(before.url()))?;
    for _ in 0..20 {
        // So that what comes later has lower versions.
        endpoint
            .post("/api/v1/namespaces", &json!({ "metadata": { "generateName": "n-" } }))
            .await?
            .success()?;
    }
    endpoint.post(path, &map(json!({ "phase": "Running" }))).await?.success()?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("config");
    before.write_kubeconfig(&kubeconfig)?;
    let mut all = Vec::new();
    for condition in ["jsonpath={.data.phase}=Done", "delete"] {
        let args = ["wait", "cm/job", "-vv", "--timeout", "100s", "--for", condition, "--kubeconfig"];
        let mut running = Running::start(&[&args[..], &[kubeconfig.to_str().unwrap()]].concat());
        blocking(|| running.note("what there is was seen"));
        all.push(running);
    }
    before.shutdown().await;
    let after = Server::builder().listen(address).start().await?;
    let endpoint = Endpoint::new(Access::anonymous(after.url()))?;
    // It is another object of the same name.
    endpoint.post(path, &map(json!({ "phase": "Done" }))).await?.success()?;
    for mut running in all {
        blocking(|| running.line("configmap/job condition met"));
        assert_eq!(blocking(|| running.code()), Some(0));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_it_with_130() {
    let place = Place::embedded().await.unwrap();
    let mut waiting = Waiting::start(&place, "wait pod/web --for create").await.unwrap();
    waiting.ready().await;
    let id = waiting.child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let said = waiting.ended().await;
    assert_eq!((said.code, &*said.out), (Some(130), ""), "{said:?}");
    // What there was to see, too.
    let last =
        "error: interrupted waiting for create: 1 of 1 objects have not met it\n  pod/web: is not there\n";
    assert!(said.err.ends_with(last), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_what_it_says_still_gets_its_code() {
    let place = Place::embedded().await.unwrap();
    place.pod("web", &json!({})).await.unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::from(place.command("wait pod/web --for create"));
    let said = ended(command.stdout(Stdio::from(writer)).kill_on_drop(true).spawn().unwrap()).await;
    assert_eq!((said.code, &*said.err), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_it_though_nobody_reads_its_last_words() {
    let place = Place::embedded().await.unwrap();
    place.pod("web", &json!({})).await.unwrap();
    let (reader, writer) = stuck_pipe(0);
    let mut command = place.command("wait pod/web pod/other --for create --timeout 100s");
    command.stderr(writer);
    let mut waiting = Running::of(command);
    // It has seen everything, and would say what.
    blocking(|| waiting.line("pod/web condition met"));
    waiting.signal("-INT");
    assert_eq!(blocking(|| waiting.code()), Some(130));
    drop(reader);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_one_line() {
    let place = Place::embedded().await.unwrap();
    let (proxy, kubeconfig) = place.proxy().await.unwrap();
    proxy.refuse_connections().await;
    let said = run_through(&place, &kubeconfig, "wait pod/web --for create").await;
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{said:?}");
    assert!(said.err.starts_with("error: ") && said.err.contains("refused"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_namespaces_that_may_not_be_read_is_enough() -> Result<()> {
    let place = Place::embedded().await?;
    let faults = place.server().unwrap().faults();
    let of = |namespace: &str| Match::any().path_contains(format!("/namespaces/{namespace}/configmaps"));
    for name in ["first", "second"] {
        place.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
    }
    // Something else is wrong with the other one, which comes after it by name, and was before.
    let silence = faults.on(of("first")).stall();
    faults.on(of("second")).answer(Answer::unavailable());
    let mut wait = place.start("wait cm --all --for delete --timeout 1h -n first -n second");
    blocking(|| wait.note("still waiting"));
    silence.wait_applied(1).await;
    silence.remove();
    faults.on(of("first")).answer(Answer::forbidden());
    faults.cut_open(&of("first"));
    blocking(|| wait.note("error: configmaps"));
    assert_eq!(blocking(|| wait.code()), Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_objects_and_some_of_them_is_a_contradiction() -> Result<()> {
    let place = Place::embedded().await?;
    for args in ["wait cm/one --all --for create", "wait cm --all -l a=b --for create"] {
        let said = run(&place, args).await;
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains("--all is all objects of a type"), "{}", said.err);
    }
    Ok(())
}
