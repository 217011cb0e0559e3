//! Who one is, and that it may change.

use std::fs;
use std::sync::atomic::Ordering;

use kube_informer_apiserver::Builder;
use tempfile::TempDir;

use super::source::InCluster;
use super::*;

/// A server that takes one token.
fn taking(token: &str) -> Builder {
    Server::builder().tls(true).token(token, "system:serviceaccount:shop:informer", &["system:masters"])
}

/// What a pod of a server's would have, with a token.
fn mount(server: &Server, token: &str) -> (TempDir, InCluster) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.crt"), server.ca_pem().unwrap()).unwrap();
    fs::write(folder.path().join("token"), token).unwrap();
    fs::write(folder.path().join("namespace"), "shop").unwrap();
    let (host, port) = (server.address().ip().to_string(), server.address().port().to_string());
    let in_cluster = InCluster { host, port, folder: folder.path().to_owned() };
    (folder, in_cluster)
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
