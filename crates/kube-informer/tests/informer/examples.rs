//! The examples, run as people run them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use anyhow::Result;
use kube_informer_apiserver::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::Identity;
use kube_informer_testbed::proxy::Request;
use kube_informer_testbed::skip::skip;
use regex::Regex;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, on_both};

on_both! {
    pod_informer_prints_what_happens_to_pods,
    pod_informer_says_everything_again,
    dynamic_informer_tells_of_any_resource,
    the_program_of_the_first_page_runs,
    indexed_pods_finds_pods_by_node,
    metadata_only_sees_no_secret,
    narrow_view_reads_two_fields,
    sample_controller_keeps_deployments_as_foos_want_them,
    manager_tells_the_story_of_one_object,
}

const EXAMPLES: [&str; 6] =
    ["first_page", "pod_informer", "dynamic_informer", "indexed_pods", "metadata_only", "narrow_view"];

#[test]
fn the_examples_to_begin_with_have_less_than_sixty_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in EXAMPLES {
        let text = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let lines = text.lines().count();
        assert!((10..60).contains(&lines), "{name} has {lines} lines");
    }
}

/// An example that runs, and the lines that it prints.
struct Example {
    child: Child,
    lines: Receiver<String>,
    _kubeconfig: tempfile::TempDir,
    /// What a pod is given.
    mount: Option<tempfile::TempDir>,
}

/// Puts a folder where pods find what they are given, and becomes the program that follows.
const POD: &str = r#"
    set -e
    mount -t tmpfs none /var/run
    mkdir -p /var/run/secrets/kubernetes.io
    cp -r "$1" /var/run/secrets/kubernetes.io/serviceaccount
    shift
    exec "$@"
"#;

/// A shell with mounts of its own, of which nobody else knows.
fn own_mounts(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command
}

impl Example {
    fn run(name: &str, arguments: &[&str], place: &Place) -> Self {
        let mut command = Command::new(built(name));
        command.args(arguments).env_remove("KUBERNETES_SERVICE_HOST");
        Self::spawn(command, place)
    }

    /// In a pod of a server's, to which a token is mounted. The kubeconfig leads to another server.
    fn in_pod(name: &str, arguments: &[&str], server: &Server, token: &str, elsewhere: &Place) -> Self {
        let mount = tempfile::tempdir().unwrap();
        std::fs::write(mount.path().join("ca.crt"), server.ca_pem().unwrap()).unwrap();
        std::fs::write(mount.path().join("token"), token).unwrap();
        std::fs::write(mount.path().join("namespace"), "shop").unwrap();
        let mut command = own_mounts(POD);
        command.arg(mount.path()).arg(built(name)).args(arguments);
        let address = server.address();
        command.env("KUBERNETES_SERVICE_HOST", address.ip().to_string());
        command.env("KUBERNETES_SERVICE_PORT", address.port().to_string());
        let mut example = Self::spawn(command, elsewhere);
        example.mount = Some(mount);
        example
    }

    fn spawn(mut command: Command, place: &Place) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, place.kubeconfig()).unwrap();
        let mut child = command.env("KUBECONFIG", kubeconfig).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines, _kubeconfig: folder, mount: None }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("a line")
    }

    /// The next line that has this in it. Others may come for ever.
    fn until(&self, part: &str) -> String {
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line with {part:?}: {error}"),
            }
        }
    }

    /// Stands still when this returns: what happens from now on comes at once when it goes on.
    fn pause(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP)?;
        waitpid(Some(pid), WaitOptions::UNTRACED)?;
        Ok(())
    }

    fn resume(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::CONT)?)
    }

    /// All lines until it ends by itself.
    fn rest(mut self) -> String {
        let lines: Vec<String> = std::iter::from_fn(|| self.lines.recv_timeout(SOON).ok()).collect();
        assert!(self.child.wait().unwrap().success(), "{lines:?}");
        lines.join("\n")
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn built(name: &str) -> PathBuf {
    kube_informer_testbed::examples::example("kube-informer", name).unwrap()
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": "node-1",
            "containers": [{ "name": "main", "image": "nginx:1" }],
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0
        }
    })
}

async fn with_account(place: &Place) -> Result<()> {
    // What controllers do where there are some: pods belong to it.
    let account = json!({ "metadata": { "name": "default" } });
    let answer = place.endpoint.post(&place.path("serviceaccounts"), &account).await?;
    assert!(answer.status.is_success() || answer.status == 409, "{answer:?}");
    Ok(())
}

async fn pod_informer_prints_what_happens_to_pods(place: Place) -> Result<()> {
    with_account(&place).await?;
    let names = ["first", "second", "third", "fourth", "fifth"];
    for name in names {
        place.post(&place.path("pods"), &pod(name)).await?;
    }
    let example = Example::run("pod_informer", &["--run-every", "0.2", "--resync", "3600"], &place);
    let line =
        |what: &str, name: &str| format!(" {what} is called for Pod (key: {}/{name})", place.namespace);
    // The pods that there are come before it is said that they are all there.
    let mut before = Vec::new();
    loop {
        let line = example.line();
        if line.ends_with(" cache is synced") {
            break;
        }
        before.push(line);
    }
    let time = Regex::new(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ")?;
    assert!(before.iter().all(|line| time.is_match(line)), "{before:?}");
    for name in names {
        let added = line("handleAdd", name);
        assert_eq!(before.iter().filter(|line| line.ends_with(&added)).count(), 1, "{name}: {before:?}");
    }
    // Not once, but again and again.
    for _ in 0..3 {
        example.until(" run");
    }
    place.post(&place.path("pods"), &pod("nginx")).await?;
    example.until(&line("handleAdd", "nginx"));
    // Each update is shown, also those that come at once.
    let versions = 5;
    example.pause()?;
    for version in 0..versions {
        let patch = json!({ "metadata": { "annotations": { "version": version.to_string() } } });
        place.merge(&place.path("pods/nginx"), &patch).await?;
    }
    place.post(&place.path("pods"), &pod("later")).await?;
    example.resume()?;
    let updated = line("handleUpdate", "nginx");
    let until_later = std::iter::from_fn(|| {
        let next = example.until(" is called for Pod ");
        (!next.ends_with(&line("handleAdd", "later"))).then_some(next)
    });
    assert_eq!(until_later.filter(|line| line.ends_with(&updated)).count(), versions);
    place.delete(&place.path("pods/nginx?gracePeriodSeconds=0")).await?;
    example.until(&line("handleDelete", "nginx"));
    Ok(())
}

async fn pod_informer_says_everything_again(place: Place) -> Result<()> {
    with_account(&place).await?;
    place.post(&place.path("pods"), &pod("first")).await?;
    let example = Example::run("pod_informer", &["--resync", "1"], &place);
    example.until(" cache is synced");
    // Nothing happens to it.
    for _ in 0..2 {
        example.until(&format!("handleUpdate is called for Pod (key: {}/first)", place.namespace));
    }
    Ok(())
}

#[test]
fn pod_informer_runs_every_ten_seconds_and_says_everything_again_every_thirty() {
    let output = Command::new(built("pod_informer")).arg("--help").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("only --resync 30, --run-every 10, --deadline 60"), "{said}");
}

#[tokio::test]
async fn pod_informer_says_that_the_cache_is_not_synced_and_why() {
    let place = Place::embedded().await.unwrap();
    place.refuse_connections().await;
    let example = Example::run("pod_informer", &["--deadline", "0.5"], &place);
    let line = example.until("cache is not synced");
    assert!(line.contains("pods") && line.contains("refused"), "{line}");
    example.until(" run");
}

#[tokio::test]
async fn pod_informer_says_which_flag_is_wrong() {
    let place = Place::embedded().await.unwrap();
    for (arguments, says) in [
        (["--rsync", "3"], "there is no flag --rsync"),
        (["--resync", "-1"], "--resync takes a number of seconds, not \"-1\""),
        (["--resync", "soon"], "--resync takes a number of seconds, not \"soon\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, place.kubeconfig()).unwrap();
        let output = Command::new(built("pod_informer"))
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says), "{error}");
    }
}

async fn dynamic_informer_tells_of_any_resource(place: Place) -> Result<()> {
    let example = Example::run("dynamic_informer", &["cm"], &place);
    example.until("objects of configmaps are in the cache");
    place.post(&place.path("configmaps"), &json!({ "metadata": { "name": "a" } })).await?;
    example.until(&format!("added: ConfigMap {}/a", place.namespace));
    place.merge(&place.path("configmaps/a"), &json!({ "data": { "k": "v" } })).await?;
    example.until(&format!("updated: ConfigMap {}/a", place.namespace));
    place.delete(&place.path("configmaps/a")).await?;
    example.until(&format!("deleted: ConfigMap {}/a", place.namespace));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dynamic_informer_takes_the_cluster_that_it_runs_in_before_the_kubeconfig() -> Result<()> {
    let tried = own_mounts("mount -t tmpfs none /var/run").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        let test = "examples::dynamic_informer_takes_the_cluster_that_it_runs_in_before_the_kubeconfig";
        skip(test, "no process can have mounts of its own here (unshare --map-root-user --mount)");
        return Ok(());
    }
    let groups = &["system:masters"];
    let server = Server::builder().tls(true).token("of-the-pod", "system:serviceaccount:shop:it", groups);
    let server = server.token("of-the-test", "jane", groups).start().await?;
    let faults = server.faults();
    let (here, elsewhere) = (Place::of(server).await?, Place::embedded().await?);
    here.post(&here.path("configmaps"), &json!({ "metadata": { "name": "here" } })).await?;
    elsewhere.post(&elsewhere.path("configmaps"), &json!({ "metadata": { "name": "elsewhere" } })).await?;
    let others = elsewhere.server().unwrap().faults().requests();

    let pod = Example::in_pod("dynamic_informer", &["cm"], here.server().unwrap(), "of-the-pod", &elsewhere);
    pod.until(&format!("added: ConfigMap {}/here", here.namespace));
    here.delete(&here.path("configmaps/here")).await?;
    pod.until(&format!("deleted: ConfigMap {}/here", here.namespace));
    let watch = faults.requests().matching(Request::is_watch);
    assert!(watch.iter().all(|watch| watch.authorization.as_deref() == Some("Bearer of-the-pod")));
    assert!(!watch.is_empty());
    assert_eq!(others.count(|_| true), 0, "the kubeconfig's server was not asked");

    // The same program, where nothing is mounted.
    let outside = Example::run("dynamic_informer", &["cm"], &elsewhere);
    outside.until(&format!("added: ConfigMap {}/elsewhere", elsewhere.namespace));
    Ok(())
}

#[test]
fn the_program_of_the_first_page_is_an_example() {
    let example = include_str!("../../examples/first_page.rs");
    let (_, program) = example.split_once("\n\n").unwrap();
    let page = include_str!("../../../../README.md");
    assert!(page.contains(&format!("```rust,no_run\n{program}```\n")), "they differ");
}

async fn the_program_of_the_first_page_runs(place: Place) -> Result<()> {
    with_account(&place).await?;
    place.post(&place.path("pods"), &pod("first")).await?;
    let output = Example::run("first_page", &[], &place).rest();
    assert!(output.contains(&format!("{}/first Some(PodStatus", place.namespace)), "{output}");
    Ok(())
}

async fn indexed_pods_finds_pods_by_node(place: Place) -> Result<()> {
    with_account(&place).await?;
    place.post(&place.path("pods"), &pod("first")).await?;
    let output = Example::run("indexed_pods", &[], &place).rest();
    assert!(output.contains("node node-1: "), "{output}");
    assert!(output.contains(&format!("  {}/first", place.namespace)), "{output}");
    assert!(output.contains("image nginx:1: "), "{output}");
    Ok(())
}

async fn metadata_only_sees_no_secret(place: Place) -> Result<()> {
    let secret =
        json!({ "metadata": { "name": "s", "labels": { "a": "b" } }, "stringData": { "k": "hidden" } });
    place.post(&place.path("secrets"), &secret).await?;
    let output = Example::run("metadata_only", &[], &place).rest();
    assert!(output.contains(&format!("{}/s (1 labels)", place.namespace)), "{output}");
    // Neither as it was written nor as it is kept.
    assert!(!output.contains("hidden") && !output.contains("aGlkZGVu"), "{output}");
    Ok(())
}

async fn narrow_view_reads_two_fields(place: Place) -> Result<()> {
    with_account(&place).await?;
    place.post(&place.path("pods"), &pod("first")).await?;
    let output = Example::run("narrow_view", &[], &place).rest();
    assert!(output.contains("node-1 Pending: "), "{output}");
    assert!(output.contains(" containers"), "{output}");
    Ok(())
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn sample_controller_keeps_deployments_as_foos_want_them(place: Place) -> Result<()> {
    let definition: Value = serde_json::from_str(include_str!("../../examples/sample_controller.crd.json"))?;
    let answer = place.endpoint.post(DEFINITIONS, &definition).await?;
    assert!(answer.status.is_success() || answer.status == 409, "{answer:?}");
    let in_namespace =
        |group: &str, rest: &str| format!("/apis/{group}/namespaces/{}/{rest}", place.namespace);
    let foos = |rest: &str| in_namespace("samplecontroller.k8s.io/v1alpha1", &format!("foos{rest}"));
    let deployments = |rest: &str| in_namespace("apps/v1", &format!("deployments{rest}"));
    eventually("foos are served", SOON, async || {
        place.endpoint.get(&foos("")).await.ok().filter(|answer| answer.status.is_success())
    })
    .await;
    let a_foo = |name: &str, deployment: &str, replicas: u32| {
        json!({
            "apiVersion": "samplecontroller.k8s.io/v1alpha1",
            "kind": "Foo",
            "metadata": { "name": name },
            "spec": { "deploymentName": deployment, "replicas": replicas },
        })
    };
    let key = |name: &str| format!("{}/{name}", place.namespace);
    place.post(&foos(""), &a_foo("early", "early-web", 1)).await?;
    let example = Example::run("sample_controller", &[], &place);

    // What was there before it, and what comes.
    example.until(&format!("{}: made Deployment early-web", key("early")));
    let made = place.post(&foos(""), &a_foo("example", "web", 2)).await?;
    example.until(&format!("{}: made Deployment web", key("example")));
    example.until(&format!("{}: 0 available", key("example")));
    let deployment = place.endpoint.get_json(&deployments("/web")).await?;
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(deployment["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"]);

    // Whoever scales it, or the Foo.
    place.merge(&deployments("/web"), &json!({ "spec": { "replicas": 7 } })).await?;
    example.until(&format!("{}: scaled Deployment web from Some(7) to Some(2)", key("example")));
    place.merge(&foos("/example"), &json!({ "spec": { "replicas": 3 } })).await?;
    example.until(&format!("{}: scaled Deployment web from Some(2) to Some(3)", key("example")));
    assert_eq!(place.endpoint.get_json(&deployments("/web")).await?["spec"]["replicas"], 3);

    // What the Deployment says is said by the Foo.
    let status = json!({ "status": { "replicas": 3, "readyReplicas": 3, "availableReplicas": 3 } });
    place.merge(&deployments("/web/status"), &status).await?;
    example.until(&format!("{}: 3 available", key("example")));
    assert_eq!(place.endpoint.get_json(&foos("/example")).await?["status"]["availableReplicas"], 3);

    // One that belongs to nobody is not touched.
    let mut foreign = deployment.clone();
    foreign["metadata"] = json!({ "name": "foreign" });
    place.post(&deployments(""), &foreign).await?;
    place.post(&foos(""), &a_foo("greedy", "foreign", 5)).await?;
    example.until(&format!("warning: {}: Deployment foreign exists and is not managed by it", key("greedy")));
    assert_eq!(place.endpoint.get_json(&deployments("/foreign")).await?["spec"]["replicas"], 2);
    // When it is gone, there is one of its own.
    place.delete(&deployments("/foreign")).await?;
    example.until(&format!("{}: made Deployment foreign", key("greedy")));

    // One that is deleted comes back, as long as its Foo is there.
    place.delete(&deployments("/web")).await?;
    example.until(&format!("{}: made Deployment web", key("example")));
    place.delete(&foos("/example")).await?;
    example.until(&format!("{} is gone", key("example")));
    place.post(&foos(""), &a_foo("nameless", "", 1)).await?;
    example.until(&format!("{} names no Deployment", key("nameless")));
    // As a cluster ends it.
    Identity::of(example.child.id()).unwrap().stop(SOON).await?;
    example.rest();
    Ok(())
}

async fn manager_tells_the_story_of_one_object(place: Place) -> Result<()> {
    let example = Example::run("manager", &["cm", &place.namespace, "web"], &place);
    example.until(&format!("/configmaps/{}/web is missing", place.namespace));
    place.post(&place.path("configmaps"), &json!({ "metadata": { "name": "web" } })).await?;
    example.until(&format!("added: {}/web at version ", place.namespace));
    place.merge(&place.path("configmaps/web"), &json!({ "data": { "k": "v" } })).await?;
    example.until(&format!("updated: {}/web from version ", place.namespace));
    place.delete(&place.path("configmaps/web")).await?;
    example.until(&format!("deleted: {}/web", place.namespace));
    Ok(())
}
