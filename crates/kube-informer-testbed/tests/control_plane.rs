//! The control plane does what tests rely on.

use std::time::Duration;

use anyhow::{Result, bail};
use http::{HeaderMap, Method, StatusCode};
use kube_informer_testbed::binaries::{self, Tool};
use kube_informer_testbed::cluster::{Cluster, E2E_DIR, KUBECONFIG_E2E, own_servers};
use kube_informer_testbed::control_plane::{ControlPlane, Options, Record};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::process::Identity;
use kube_informer_testbed::require;
use kube_informer_testbed::skip::SKIP_FILE;
use serde_json::{Value, json};

/// For what another process does in its own time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folder that a test gives to its own child process.
const CHILD_DIR: &str = "TESTBED_CHILD_DIR";

/// Runs tests of this file in another process that has none of the run's own settings. Returns whether they
/// passed, and what they said.
async fn run_again(tests: &[&str], environment: &[(&str, &str)]) -> Result<(bool, String)> {
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    for variable in [KUBECONFIG_E2E, E2E_DIR, SKIP_FILE, "CI"] {
        command.env_remove(variable);
    }
    command.args(["--exact", "--nocapture"]).args(tests).envs(environment.iter().copied());
    let output = command.output().await?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

async fn whoami(endpoint: &Endpoint) -> Result<Value> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    Ok(endpoint.post(path, &review).await?.success()?.json()?["status"]["userInfo"].clone())
}

async fn create_configmap(endpoint: &Endpoint, namespace: &str, name: &str) -> Result<u64> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let created = endpoint.post(&path, &json!({ "metadata": { "name": name } })).await?.success()?.json()?;
    match created["metadata"]["resourceVersion"].as_str().map(str::parse) {
        Some(Ok(version)) => Ok(version),
        _ => bail!("no version in {created}"),
    }
}

#[tokio::test]
async fn the_servers_are_of_the_pinned_version() {
    let cluster = require!(Cluster::shared().await);
    let version = cluster.endpoint().get_json("/version").await.unwrap();
    if !cluster.is_existing() && std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(version["gitVersion"], "v1.37.1", "{version}");
    }
}

#[tokio::test]
async fn a_user_may_do_what_rbac_allows_and_nothing_else() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("rbac").await.unwrap();
    let kubeconfig = cluster.kubeconfig_for_user("jane", &[]).await.unwrap();
    let jane = Endpoint::from_kubeconfig(&kubeconfig).await.unwrap();
    assert_eq!(whoami(&jane).await.unwrap()["username"], "jane");

    let secrets = format!("/api/v1/namespaces/{}/secrets", namespace.name());
    assert_eq!(jane.get(&secrets).await.unwrap().status, StatusCode::FORBIDDEN);

    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", namespace.name());
    let rules = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["list"] }]);
    let role = json!({ "metadata": { "name": "reader" }, "rules": rules });
    let binding = json!({
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }],
    });
    for (resource, object) in [("roles", role), ("rolebindings", binding)] {
        cluster.endpoint().post(&format!("{rbac}/{resource}"), &object).await.unwrap().success().unwrap();
    }
    // The authorizer sees roles through watches of its own.
    eventually("the role takes effect", PATIENCE, async || {
        (jane.get(&secrets).await.unwrap().status == StatusCode::OK).then_some(())
    })
    .await;
    let create = jane.post(&secrets, &json!({ "metadata": { "name": "x" } })).await.unwrap();
    assert_eq!(create.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_user_has_the_groups_that_were_asked_for() {
    let cluster = require!(Cluster::shared().await);
    for groups in [&["dev"][..], &["dev", "ops", "qa"]] {
        let kubeconfig = cluster.kubeconfig_for_user("joe", groups).await.unwrap();
        let joe = whoami(&Endpoint::from_kubeconfig(&kubeconfig).await.unwrap()).await.unwrap();
        let has: Vec<&str> = joe["groups"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(joe["username"] == "joe" && groups.iter().all(|group| has.contains(group)), "{joe}");
    }
}

#[tokio::test]
async fn a_service_account_authenticates_with_its_kubeconfig() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("service account").await.unwrap();
    // The second time it exists already.
    for _ in 0..2 {
        let kubeconfig = cluster.kubeconfig_for_service_account(namespace.name(), "robot").await.unwrap();
        let robot = whoami(&Endpoint::from_kubeconfig(&kubeconfig).await.unwrap()).await.unwrap();
        assert_eq!(robot["username"], format!("system:serviceaccount:{}:robot", namespace.name()));
    }
}

#[tokio::test]
async fn a_dropped_namespace_is_gone_with_all_that_lay_in_it() {
    let cluster = require!(Cluster::shared().await);
    let endpoint = cluster.endpoint();
    let namespace = cluster.namespace("dropped").await.unwrap();
    let other = cluster.namespace("dropped").await.unwrap();
    assert_ne!(namespace.name(), other.name());
    let path = format!("/api/v1/namespaces/{}", namespace.name());
    create_configmap(endpoint, namespace.name(), "left").await.unwrap();
    drop(namespace);
    eventually("the namespace is gone", PATIENCE, async || {
        (endpoint.get(&path).await.unwrap().status == StatusCode::NOT_FOUND).then_some(())
    })
    .await;
    let left = endpoint.get_json(&format!("{path}/configmaps")).await.unwrap();
    assert_eq!(left["items"], json!([]));
    other.close().await.unwrap();
}

#[tokio::test]
async fn servers_come_back_on_the_same_address_with_the_same_data() {
    let cluster = require!(Cluster::own(Options::new()).await);
    let (servers, endpoint) = (cluster.control_plane(), cluster.endpoint());
    create_configmap(endpoint, "default", "kept").await.unwrap();
    let kept = "/api/v1/namespaces/default/configmaps/kept";
    let watch = "/api/v1/namespaces/default/configmaps?watch=true";

    // A restart ends watches in good order.
    let mut stream = endpoint.stream(Method::GET, watch, HeaderMap::new(), "").await.unwrap();
    assert!(stream.line().await.unwrap().is_some());
    let before = servers.processes().await;
    servers.restart_apiserver().await.unwrap();
    while stream.line().await.unwrap().is_some() {}
    endpoint.get_json(kept).await.unwrap();
    let after = servers.processes().await;
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);

    servers.restart_etcd().await.unwrap();
    endpoint.get_json(kept).await.unwrap();

    // A paused server answers nobody and loses nobody.
    let mut stream = endpoint.stream(Method::GET, watch, HeaderMap::new(), "").await.unwrap();
    assert!(stream.line().await.unwrap().is_some());
    servers.pause_apiserver().await.unwrap();
    let hasty = endpoint.clone().with_timeout(Duration::from_millis(300));
    let error = hasty.get(kept).await.unwrap_err().to_string();
    assert!(error.contains("no answer within"), "{error}");
    servers.resume_apiserver().await.unwrap();
    create_configmap(endpoint, "default", "after-the-pause").await.unwrap();
    let line = stream.line().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&line).contains("after-the-pause"));

    // A killed one breaks connections, and refuses new ones until it is started again.
    servers.kill_apiserver().await.unwrap();
    assert!(!matches!(stream.line().await, Ok(Some(_))));
    let error = format!("{:#}", endpoint.get(kept).await.unwrap_err());
    assert!(error.contains("refused") || error.contains("reset") || error.contains("closed"), "{error}");
    servers.start_apiserver().await.unwrap();
    endpoint.get_json(kept).await.unwrap();
}

#[tokio::test]
async fn a_restore_takes_data_and_versions_back() {
    let cluster = require!(Cluster::own(Options::new()).await);
    let (servers, endpoint) = (cluster.control_plane(), cluster.endpoint());
    let early = create_configmap(endpoint, "default", "early").await.unwrap();
    let snapshot = servers.snapshot().await.unwrap();
    let mut last = early;
    for number in 0..50 {
        last = create_configmap(endpoint, "default", &format!("late-{number}")).await.unwrap();
    }
    servers.restore(&snapshot).await.unwrap();

    let names = endpoint.get_json("/api/v1/namespaces/default/configmaps").await.unwrap().to_string();
    assert!(names.contains("early") && !names.contains("late-"), "{names}");
    let again = create_configmap(endpoint, "default", "again").await.unwrap();
    assert!(early < again && again < last, "{early} < {again} < {last}");

    // A snapshot can be restored more than once.
    servers.restore(&snapshot).await.unwrap();
    assert_eq!(
        endpoint.get("/api/v1/namespaces/default/configmaps/again").await.unwrap().status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn with_controllers_pods_are_admitted_and_owners_take_their_dependents_along() {
    let cluster = require!(Cluster::shared_with_controllers().await);
    let endpoint = cluster.endpoint();
    let namespace = cluster.namespace("controllers").await.unwrap();
    let template = json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let deployment = json!({
        "metadata": { "name": "a" },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "a" } }, "template": template },
    });
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", namespace.name());
    endpoint.post(&deployments, &deployment).await.unwrap().success().unwrap();
    let pods = format!("/api/v1/namespaces/{}/pods", namespace.name());
    let count = async || endpoint.get_json(&pods).await.unwrap()["items"].as_array().unwrap().len();
    eventually("two pods", PATIENCE, async || (count().await == 2).then_some(())).await;
    endpoint.delete(&format!("{deployments}/a")).await.unwrap().success().unwrap();
    eventually("no pods", PATIENCE, async || (count().await == 0).then_some(())).await;
}

#[tokio::test]
async fn a_server_that_cannot_start_is_reported_with_the_end_of_its_log() {
    require!(own_servers().await);
    let options = Options::new().apiserver_flag("--no-such-flag=1");
    let error = format!("{:#}", ControlPlane::start(options).await.unwrap_err());
    for part in
        ["kube-apiserver ended with exit status: 1", "--no-such-flag=1", "unknown flag: --no-such-flag"]
    {
        assert!(error.contains(part), "{part:?} in {error}");
    }
}

#[tokio::test]
async fn a_panicking_process_leaves_no_server_behind() {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        let control_plane = ControlPlane::start(Options::new().dir(dir)).await.unwrap();
        // Nobody drops it: only the kernel can end the servers.
        std::mem::forget(control_plane);
        panic!("as planned");
    }
    require!(own_servers().await);
    let dir = tempfile::tempdir().unwrap();
    let name = "a_panicking_process_leaves_no_server_behind";
    let (passed, said) = run_again(&[name], &[(CHILD_DIR, dir.path().to_str().unwrap())]).await.unwrap();
    assert!(!passed && said.contains("as planned"), "{said}");
    let record = Record::read(dir.path()).unwrap().unwrap();
    assert_eq!(record.servers.len(), 2);
    eventually("the servers are gone", PATIENCE, async || (!record.any_alive()).then_some(())).await;
}

#[tokio::test]
async fn detached_servers_outlive_their_handle_and_are_ended_by_their_record() {
    require!(own_servers().await);
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().dir(dir.path()).detached(true);
    let control_plane = ControlPlane::start(options).await.unwrap();
    let started: Vec<(String, Identity)> = control_plane.processes().await;
    control_plane.leave_running();

    let record = Record::read(dir.path()).unwrap().unwrap();
    assert!(record.is_up());
    let cluster = Cluster::open(dir.path()).await.unwrap();
    let kubeconfig = cluster.kubeconfig_for_user("jane", &["dev"]).await.unwrap();
    let jane = whoami(&Endpoint::from_kubeconfig(&kubeconfig).await.unwrap()).await.unwrap();
    assert_eq!(jane["username"], "jane");
    let error = ControlPlane::start(Options::new().dir(dir.path())).await.unwrap_err().to_string();
    assert!(error.contains("still run"), "{error}");

    assert_eq!(record.stop().await.unwrap().len(), started.len());
    assert!(started.iter().all(|(_, identity)| !identity.is_alive()));
    assert!(record.stop().await.unwrap().is_empty());
}

#[tokio::test]
async fn on_an_existing_cluster_tests_run_except_those_that_need_the_servers() {
    let cluster = require!(Cluster::shared().await);
    let kubectl = require!(binaries::kubectl().await);
    // As people have it: in YAML.
    let yaml = tokio::process::Command::new(kubectl)
        .args(["config", "view", "--raw", "-o", "yaml", "--kubeconfig"])
        .arg(cluster.admin_kubeconfig())
        .output()
        .await
        .unwrap();
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(kubeconfig.path(), yaml.stdout).unwrap();
    let tests = [
        "a_user_has_the_groups_that_were_asked_for",
        "a_service_account_authenticates_with_its_kubeconfig",
        "servers_come_back_on_the_same_address_with_the_same_data",
    ];
    let environment = [(KUBECONFIG_E2E, kubeconfig.path().to_str().unwrap())];
    let (passed, said) = run_again(&tests, &environment).await.unwrap();
    assert!(passed && said.contains("3 passed"), "{said}");
    let skipped: Vec<&str> =
        said.lines().filter_map(|line| line.split_once("SKIP ")).map(|(_, what)| what).collect();
    assert_eq!(
        skipped,
        ["control_plane::servers_come_back_on_the_same_address_with_the_same_data: \
          tests that restart, kill or restore servers do not run on an existing cluster"]
    );
}

#[tokio::test]
async fn a_folder_with_servers_is_used_and_nothing_is_built() {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        let cluster = require!(Cluster::own(Options::new().dir(dir)).await);
        let version = cluster.endpoint().get_json("/version").await.unwrap();
        let kubectl = binaries::kubectl().await.unwrap();
        println!("{} answers, and kubectl is {}", version["gitVersion"], kubectl.display());
        return;
    }
    require!(own_servers().await);
    // As setup-envtest makes it, of the binaries that are there.
    let assets = tempfile::tempdir().unwrap();
    for tool in [Tool::Etcd, Tool::KubeApiserver, Tool::Kubectl] {
        let binary = require!(binaries::locate(tool).await);
        std::os::unix::fs::symlink(binary, assets.path().join(tool.name())).unwrap();
    }
    let (empty, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let nothing = empty.path().to_str().unwrap();
    let environment = [
        ("PATH", nothing),
        ("KUBE_INFORMER_CACHE", nothing),
        ("KUBEBUILDER_ASSETS", assets.path().to_str().unwrap()),
        (CHILD_DIR, dir.path().to_str().unwrap()),
    ];
    let name = "a_folder_with_servers_is_used_and_nothing_is_built";
    let (passed, said) = run_again(&[name], &environment).await.unwrap();
    let kubectl = format!("kubectl is {}", assets.path().join("kubectl").display());
    assert!(passed && said.contains("\" answers, and ") && said.contains(&kubectl), "{said}");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "something was built");

    // Half a folder is no reason to take the other half from elsewhere.
    std::fs::remove_file(assets.path().join("kube-apiserver")).unwrap();
    let (passed, said) = run_again(&[name], &environment).await.unwrap();
    let line = format!("MISSING control_plane::{name}: kube-apiserver in the folder KUBEBUILDER_ASSETS");
    assert!(passed && said.contains(&line), "{said}");
}

#[tokio::test]
async fn without_servers_and_go_a_test_is_skipped_by_name_and_on_ci_it_fails() {
    let empty = tempfile::tempdir().unwrap();
    let nothing = empty.path().to_str().unwrap();
    let name = "the_servers_are_of_the_pinned_version";
    let environment = [("PATH", nothing), ("KUBE_INFORMER_CACHE", nothing), ("KUBEBUILDER_ASSETS", "")];
    let (passed, said) = run_again(&[name], &environment).await.unwrap();
    let line = format!("MISSING control_plane::{name}: Go (to build etcd) not found; install it with: ");
    assert!(passed && said.contains(&line), "{said}");

    let (passed, said) = run_again(&[name], &[&environment[..], &[("CI", "true")]].concat()).await.unwrap();
    assert!(!passed && said.contains("on CI this is no reason to skip"), "{said}");
}
