//! HTTP/1.1 and HTTP/2, with TLS or without; tokens.

use futures_util::future::join_all;
use http::Method;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer_apiserver::Server;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Connection, Protocol, Watch, raw_health_checks, soon, tls};
use crate::{MAPS, map};

const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

#[tokio::test]
async fn both_protocols_work_on_one_port_with_and_without_tls() {
    for secure in [false, true] {
        let server = Server::builder().tls(secure).start().await.unwrap();
        assert_eq!(server.url().starts_with("https://"), secure);
        for protocol in PROTOCOLS {
            let mut connection = match server.ca_pem() {
                Some(ca) => Connection::open_tls(server.address(), ca, protocol).await,
                None => Connection::open(server.address(), protocol).await,
            };
            let name = format!("{protocol:?}").to_lowercase();
            let (status, made) = connection.ask(Method::POST, MAPS, Some(&map(&name, 3))).await;
            assert_eq!((status.as_u16(), &made["data"]["text"]), (201, &"xxx".into()));
            let mut other = match server.ca_pem() {
                Some(ca) => Connection::open_tls(server.address(), ca, protocol).await,
                None => Connection::open(server.address(), protocol).await,
            };
            let version = made["metadata"]["resourceVersion"].as_str().unwrap();
            let path = format!("{MAPS}?watch=true&resourceVersion={version}");
            let mut watch = Watch::open(&mut other, &path).await;
            let (status, _) = connection.ask(Method::DELETE, &format!("{MAPS}/{name}"), None).await;
            assert_eq!(status, 200);
            let event = watch.next().await.unwrap().unwrap();
            assert_eq!(
                (&event["type"], &event["object"]["metadata"]["name"]),
                (&"DELETED".into(), &name.into())
            );
        }
    }
}

#[tokio::test]
async fn the_certificate_is_refused_by_who_does_not_trust_it() {
    let server = Server::builder().tls(true).start().await.unwrap();
    let other = Server::builder().tls(true).start().await.unwrap();
    assert!(tls(server.address(), None, Protocol::Http1).await.is_err());
    assert!(tls(server.address(), other.ca_pem(), Protocol::Http1).await.is_err());
    assert!(tls(server.address(), server.ca_pem(), Protocol::Http1).await.is_ok());
    // Who speaks plain HTTP to it, or nothing at all, disturbs nobody.
    let _silent = TcpStream::connect(server.address()).await.unwrap();
    let mut plain = TcpStream::connect(server.address()).await.unwrap();
    plain.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let ca = server.ca_pem().unwrap();
    let mut connection = Connection::open_tls(server.address(), ca, Protocol::Http2).await;
    assert_eq!(connection.get("/api/v1/namespaces").await.0, 200);
}

#[tokio::test]
async fn a_kubeconfig_leads_other_clients_to_the_server() {
    for secure in [false, true] {
        let server = Server::builder().tls(secure).token("secret", "me", &[]).start().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        server.write_kubeconfig(&path).unwrap();
        let kubeconfig = Kubeconfig::read_from(&path).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        assert_eq!(config.cluster_url.to_string().trim_end_matches('/'), server.url());
        assert_eq!(config.default_namespace, "default");
        let client = kube_client::Client::try_from(config).unwrap();
        assert!(client.apiserver_version().await.unwrap().git_version.starts_with("v1.37.1"));
        let error = server.write_kubeconfig(directory.path().join("no/such/place")).unwrap_err();
        assert!(error.to_string().contains("no/such/place"), "{error}");
    }
}

#[tokio::test]
async fn with_tokens_only_those_who_have_one_get_in() {
    let builder = Server::builder().token("one", "ann", &["dev"]).token("two", "bob", &[]);
    let server = builder.start().await.unwrap();
    let mut connection = Connection::open(server.address(), Protocol::Http1).await;
    for authorization in [None, Some("Bearer three"), Some("Bearer"), Some("Basic one"), Some("one")] {
        let headers: Vec<_> = authorization.map(|value| ("authorization", value)).into_iter().collect();
        for path in [MAPS, "/api", "/openapi/v3", "/nowhere"] {
            let (answer, body) = connection.ask_with(Method::GET, path, &headers, None).await;
            assert_eq!(answer.status(), 401, "{authorization:?} {path}");
            let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((&status["reason"], &status["kind"]), (&"Unauthorized".into(), &"Status".into()));
        }
    }
    for token in ["Bearer one", "bearer two"] {
        let headers = [("authorization", token)];
        assert_eq!(connection.ask_with(Method::GET, MAPS, &headers, None).await.0.status(), 200);
    }
    for path in ["/healthz", "/livez", "/readyz", "/version", "/readyz/ping"] {
        assert_eq!(connection.get(path).await.0, 200, "{path} is open to load balancers");
    }
    let review = serde_json::json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let headers = [("authorization", "Bearer one"), ("content-type", "application/json")];
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (answer, body) = connection.ask_with(Method::POST, path, &headers, Some(&review)).await;
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((answer.status().as_u16(), &body["status"]["userInfo"]["username"]), (201, &"ann".into()));
}

#[tokio::test]
async fn a_connection_is_kept_and_requests_may_be_sent_ahead() {
    let server = Server::builder().start().await.unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(raw_health_checks(&mut stream, 1).await, 1);
    }
    assert_eq!(raw_health_checks(&mut stream, 50).await, 50);
}

#[tokio::test]
async fn many_connections_and_many_streams_work_at_once() {
    let server = Server::builder().start().await.unwrap();
    let create = |at: usize| {
        let address = server.address();
        async move {
            let mut connection = Connection::open(address, PROTOCOLS[at % 2]).await;
            // A watch on the same connection holds up nobody in HTTP/2.
            let watch = match PROTOCOLS[at % 2] {
                Protocol::Http2 => Some(Watch::open(&mut connection, &format!("{MAPS}?watch=true")).await),
                Protocol::Http1 => None,
            };
            let (status, _) = connection.ask(Method::POST, MAPS, Some(&map(&format!("map-{at}"), 10))).await;
            assert_eq!(status, 201);
            if let Some(mut watch) = watch {
                watch.next().await.unwrap().unwrap();
            }
        }
    };
    soon("all", join_all((0..60).map(create))).await;
    let mut connection = Connection::open(server.address(), Protocol::Http2).await;
    assert_eq!(connection.get(MAPS).await.1["items"].as_array().unwrap().len(), 60);
}
