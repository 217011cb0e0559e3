//! Who one is, and that it may change.

use std::fs;
use std::sync::atomic::Ordering;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::PostParams;
use kube_informer_apiserver::Builder;
use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::{Access, Credentials};
use kube_informer_testbed::require;
use serde_json::json;
use tempfile::TempDir;

use super::source::InCluster;
use super::*;
use crate::factory::{Factory, Timings};
use crate::informer::{Cause, Informer, Scope, State};

/// A server that takes one token.
fn taking(token: &str) -> Builder {
    Server::builder().tls(true).token(token, "system:serviceaccount:shop:informer", &["system:masters"])
}

/// What a pod of a server's would have, with a token.
fn mount(server: &Server, token: &str) -> (TempDir, InCluster) {
    let (host, port) = (server.address().ip().to_string(), server.address().port());
    mounted(host, port, server.ca_pem().unwrap(), token)
}

fn mounted(host: String, port: u16, ca: &str, token: &str) -> (TempDir, InCluster) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.crt"), ca).unwrap();
    fs::write(folder.path().join("token"), token).unwrap();
    fs::write(folder.path().join("namespace"), "shop").unwrap();
    let in_cluster = InCluster { host, port: port.to_string(), folder: folder.path().to_owned() };
    (folder, in_cluster)
}

/// As it is done for pods: in the place of what was there, at once.
fn replace(folder: &TempDir, token: &str) {
    let beside = folder.path().join("token.new");
    fs::write(&beside, token).unwrap();
    fs::rename(beside, folder.path().join("token")).unwrap();
}

/// Waits until the informer says that its credentials are not accepted.
async fn refused(informer: &Informer<ConfigMap>) {
    eventually("it is refused, and says so", SOON, async || match informer.health().state {
        State::Stale { why, .. } if why.cause == Cause::Unauthorized => Some(()),
        _ => None,
    })
    .await;
}

/// Before anybody would look at the file without having been refused.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_token_that_no_header_can_have_is_an_error() {
    let server = Server::builder().start().await.unwrap();
    let connect = async |user: serde_json::Value| {
        let mut config = Config::new(server.url().parse().unwrap());
        config.auth_info = serde_json::from_value(user).unwrap();
        Connection::from_config(config).await.map(drop)
    };
    for token in ["a\nb", "a\n", "a\u{1b}b"] {
        let connected = connect(serde_json::json!({ "token": token })).await;
        assert!(matches!(connected, Err(ConnectError::Token)), "{token:?}: {connected:?}");
    }
    // One that is not used is not looked at.
    let user = serde_json::json!({ "token": "a\nb", "username": "jane", "password": "p" });
    assert!(connect(user).await.is_ok());
    assert!(connect(serde_json::json!({ "token": "t" })).await.is_ok());
}

#[tokio::test]
async fn a_pod_reaches_its_cluster_with_what_is_mounted() {
    let server = taking("t").start().await.unwrap();
    let (_folder, in_cluster) = mount(&server, "t");
    let connection = Connection::from_source(Source::mounted(in_cluster)).await.unwrap();
    assert_eq!(status(&connection).await, 200);
    assert_eq!(connection.client().default_namespace(), "shop");
}

#[tokio::test]
async fn a_token_that_was_replaced_is_read_anew_when_the_old_one_is_refused() {
    let server = taking("new").start().await.unwrap();
    // New lines at the end are no part of it.
    for ending in ["", "\n"] {
        let (folder, in_cluster) = mount(&server, &format!("old{ending}"));
        let connection = Connection::from_source(Source::mounted(in_cluster)).await.unwrap();
        assert_eq!(status(&connection).await, 401);
        fs::write(folder.path().join("token"), format!("new{ending}")).unwrap();
        // Nobody looks at the file before it is due, but for a refusal.
        assert_eq!(status(&connection).await, 401);
        connection.reload_credentials().await;
        assert_eq!(status(&connection).await, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_informer_in_a_pod_goes_on_when_its_token_was_replaced() {
    let server = taking("old").token("new", "system:serviceaccount:shop:informer", &["system:masters"]);
    let server = server.token("other", "jane", &["system:masters"]).start().await.unwrap();
    // Only what comes from now on can be refused or cut.
    let faults = server.faults();
    let (_other, elsewhere) = mount(&server, "other");
    let others = Connection::from_source(Source::mounted(elsewhere)).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(others.client(), "default");
    let make = async |name: &str| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        maps.create(&PostParams::default(), &map).await.unwrap();
    };
    make("before").await;

    let (folder, in_cluster) = mount(&server, "old");
    let short = Timings::default().waits(Duration::from_millis(20), Duration::from_millis(200));
    let factory = Factory::from_source(Source::mounted(in_cluster)).await.unwrap().timings(short);
    let informer = factory.informer::<ConfigMap>(Scope::namespace("default"));
    factory.start();
    factory.synced(SOON).await.unwrap();
    assert!(informer.get("default", "before").is_some());

    let old = Match::any().when(|request| request.authorization.as_deref() == Some("Bearer old"));
    let unauthorized = faults.on(old).answer(Answer::unauthorized());
    assert_eq!(faults.cut_open(&Match::watch()).len(), 1);
    refused(&informer).await;
    assert!(unauthorized.applied() >= 1);
    make("after").await;
    replace(&folder, "new");
    eventually("it goes on", SOON, async || {
        (informer.health().state == State::Live && informer.get("default", "after").is_some()).then_some(())
    })
    .await;
    assert!(informer.get("default", "before").is_some());
    factory.shutdown().await;
}

/// There, a token is an account's: when that is gone, so is the token, whoever has the account's name then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_informer_in_a_pod_of_the_real_server_goes_on_when_its_token_was_replaced() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("token of a pod").await.unwrap();
    let (name, endpoint, admin) = (namespace.name(), cluster.endpoint(), cluster.admin());
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}");
    let core = format!("/api/v1/namespaces/{name}");
    let make = async |path: String, object: serde_json::Value| {
        endpoint.post(&path, &object).await.unwrap().success().unwrap();
    };
    let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] });
    make(format!("{rbac}/roles"), json!({ "metadata": { "name": "watcher" }, "rules": [rule] })).await;
    let binding = json!({
        "metadata": { "name": "watcher" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "watcher" },
        "subjects": [{ "kind": "ServiceAccount", "namespace": name, "name": "informer" }],
    });
    make(format!("{rbac}/rolebindings"), binding).await;
    let map = async |map: &str| {
        make(format!("{core}/configmaps"), json!({ "metadata": { "name": map } })).await;
    };
    map("before").await;
    // It is made where there is none.
    let token = async || {
        let kubeconfig = cluster.kubeconfig_for_service_account(name, "informer").await.unwrap();
        match Access::read(&kubeconfig).await.unwrap().credentials {
            Credentials::Token(token) => token,
            other => panic!("{other:?} is no token"),
        }
    };

    let address: http::Uri = admin.url.parse().unwrap();
    let (host, port) = (address.host().unwrap().to_owned(), address.port_u16().unwrap_or(443));
    let old = token().await;
    let (folder, in_cluster) = mounted(host, port, admin.ca_pem.as_deref().unwrap(), &old);
    // Nobody on the way could cut a watch, so none is long.
    let short = Timings::default().waits(Duration::from_millis(20), Duration::from_millis(200));
    let short = short.watch(Duration::from_secs(2)).overdue(SOON);
    let factory = Factory::from_source(Source::mounted(in_cluster)).await.unwrap().timings(short);
    let informer = factory.informer::<ConfigMap>(Scope::namespace(name));
    factory.start();
    factory.synced(SOON).await.unwrap();
    let live = async |map: &str| {
        eventually("it works", SOON, async || {
            (informer.health().state == State::Live && informer.get(name, map).is_some()).then_some(())
        })
        .await;
        informer.health().relists
    };
    let relists = live("before").await;

    endpoint.delete(&format!("{core}/serviceaccounts/informer")).await.unwrap().success().unwrap();
    let new = token().await;
    // The server remembers for some seconds whom it has let in.
    let as_before = Endpoint::new(admin.clone().with_token(&old)).unwrap();
    eventually("the token is refused", SOON, async || {
        as_before.get("/version").await.ok().filter(|answer| answer.status == 401)
    })
    .await;
    refused(&informer).await;
    map("after").await;
    assert!(informer.get(name, "before").is_some(), "what is known stays");
    replace(&folder, &new);
    assert_eq!(live("after").await, relists, "the watch was resumed, and nothing listed");
    assert!(informer.get(name, "before").is_some());
    factory.shutdown().await;
}

#[tokio::test]
async fn a_kubeconfig_that_was_rewritten_is_read_anew() {
    let server = Server::builder().token("new", "jane", &["system:masters"]).start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, server.kubeconfig().replace("\"new\"", "\"old\"")).unwrap();
    let connection = Connection::from_source(Source::file(&path)).await.unwrap();
    assert_eq!(status(&connection).await, 401);
    server.write_kubeconfig(&path).unwrap();
    connection.reload_credentials().await;
    assert_eq!(status(&connection).await, 200);
}

/// A kubeconfig with a context for each of two servers.
fn two_contexts(one: &str, two: &str, token: &str, current: &str) -> String {
    let cluster =
        |name: &str, server: &str| serde_json::json!({ "name": name, "cluster": { "server": server } });
    let context =
        |name: &str| serde_json::json!({ "name": name, "context": { "cluster": name, "user": "u" } });
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": current,
        "clusters": [cluster("one", one), cluster("two", two)],
        "contexts": [context("one"), context("two")],
        "users": [{ "name": "u", "user": { "token": token } }],
    })
    .to_string()
}

#[tokio::test]
async fn credentials_that_are_read_anew_are_never_for_another_cluster() {
    let start = || Server::builder().token("new", "jane", &["system:masters"]).start();
    let (server, other) = (start().await.unwrap(), start().await.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let write = |one: &str, token, current| {
        fs::write(&path, two_contexts(one, &other.url(), token, current)).unwrap();
    };
    write(&server.url(), "old", "one");
    let connection = Connection::from_source(Source::file(&path)).await.unwrap();
    assert_eq!(status(&connection).await, 401);
    // Somebody chooses another context for themselves; the token is renewed.
    write(&server.url(), "new", "two");
    connection.reload_credentials().await;
    assert_eq!(status(&connection).await, 200);
    let requests = other.stats();
    // Its own context leads elsewhere now: what there is stays in use.
    write(&other.url(), "newer", "one");
    let error = connection.new_client().await.err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("another cluster")), "{error:?}");
    connection.reload_credentials().await;
    assert_eq!(status(&connection).await, 200);
    assert_eq!(format!("{:?}", other.stats()), format!("{requests:?}"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_gives_tokens_is_asked_anew() {
    let server = Server::builder().token("new", "jane", &["system:masters"]).start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "old").unwrap();
    let print = format!(
        r#"printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"%s"}}}}' "$(cat {})""#,
        token.display()
    );
    let mut config = Config::new(server.url().parse().unwrap());
    config.auth_info = serde_json::from_value(serde_json::json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", print],
        "interactiveMode": "Never",
    }}))
    .unwrap();
    let connection = Connection::from_config(config).await.unwrap();
    assert_eq!(status(&connection).await, 401);
    fs::write(&token, "new").unwrap();
    connection.reload_credentials().await;
    assert_eq!(status(&connection).await, 200);
}

#[tokio::test]
async fn many_who_are_refused_at_once_read_them_anew_once() {
    let server = taking("new").start().await.unwrap();
    let (folder, in_cluster) = mount(&server, "old");
    let connection = Connection::from_source(Source::mounted(in_cluster)).await.unwrap();
    let reflectors: Vec<Connection> = (0..20).map(|_| connection.clone()).collect();
    for reflector in &reflectors {
        assert_eq!(status(reflector).await, 401);
    }
    fs::write(folder.path().join("token"), "new").unwrap();
    futures_util::future::join_all(reflectors.iter().map(Connection::reload_credentials)).await;
    // The last one comes late.
    connection.clone().reload_credentials().await;
    assert_eq!(connection.current().0, 1);
    assert_eq!(connection.used.load(Ordering::Relaxed), 0);
    for reflector in &reflectors {
        assert_eq!(status(reflector).await, 200);
    }
}

#[tokio::test]
async fn what_cannot_be_read_anew_leaves_what_there_is() {
    let server = taking("t").start().await.unwrap();
    let (folder, in_cluster) = mount(&server, "t");
    let connection = Connection::from_source(Source::mounted(in_cluster)).await.unwrap();
    folder.close().unwrap();
    connection.reload_credentials().await;
    assert_eq!((status(&connection).await, connection.current().0), (200, 0));
}

#[tokio::test]
async fn somebody_s_client_is_left_as_it_is() {
    let server = Server::builder().start().await.unwrap();
    let client = embedded(&server).await.client();
    let connection = Connection::new(client);
    connection.reload_credentials().await;
    assert_eq!((status(&connection).await, connection.current().0), (200, 0));
}
