//! What goes wrong on the way, and what is said of it.

use std::sync::Arc;
use std::time::Duration;

use kube_informer_testbed::certs::Authority;
use kube_informer_testbed::kubeconfig::Access;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::encoding::ServerVersion;

async fn trouble(connection: &Connection) -> Failure {
    connection.get("/version", "application/json").await.unwrap_err()
}

#[tokio::test]
async fn that_nobody_listens_is_told_from_everything_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failure = trouble(&plain(address).await).await;
    assert!(failure.refused, "{failure:?}");
    assert!(failure.message.contains("refused"), "{failure}");

    // Somebody hangs up.
    let (address, _) = saying([String::new()]).await;
    assert!(!trouble(&plain(address).await).await.refused);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_said_to_be_one() {
    let server = Server::builder().tls(true).start().await.unwrap();
    // One with another name, and one with the same.
    let unknown = Authority::generate().unwrap().pem().public;
    let other = Server::builder().tls(true).start().await.unwrap();
    for (trusted, said) in [
        (unknown.as_str(), "signed by an authority that is not known here"),
        (other.ca_pem().unwrap(), "signed by another authority than the one of that name here"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        Access::anonymous(server.url()).with_ca(trusted).write(&path).unwrap();
        let failure = trouble(&of_file(&path).await).await;
        assert!(failure.message.contains(said) && !failure.refused, "{failure}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_said_to_be_one() {
    let server = Server::builder().tls(true).start().await.unwrap();
    let mut config = config(Kubeconfig::from_yaml(&server.kubeconfig()).unwrap()).await;
    config.tls_server_name = Some("elsewhere.example.com".to_owned());
    let failure = trouble(&Connection::from_config(config).await.unwrap()).await;
    assert!(failure.message.contains("for another name"), "{failure}");
    assert!(failure.message.contains("elsewhere.example.com"), "{failure}");
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_said_to_have() {
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&authority).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut expired = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let certificate = expired.signed_by(&key, &Issuer::new(params, authority)).unwrap();

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
    config.root_cert = Some(vec![root.der().to_vec()]);
    let connection = Connection::from_config(config).await.unwrap();
    let door = async {
        let (stream, _) = listener.accept().await.unwrap();
        TlsAcceptor::from(Arc::new(tls)).accept(stream).await.unwrap_err();
    };
    let (failure, ()) = tokio::join!(trouble(&connection), door);
    assert!(failure.message.contains("has expired"), "{failure}");
}

#[tokio::test]
async fn nothing_is_compressed_and_nothing_is_asked_again() {
    let (address, asked) = saying([answer("503 Unavailable\r\nRetry-After: 7", "later")]).await;
    let response = plain(address).await.get("/api/v1/pods?watch=1", "a/b").await.unwrap();
    assert_eq!((response.status, response.retry_after), (503, Some(Duration::from_secs(7))));
    // The one answer that there was is what came.
    let heads = asked.await.unwrap();
    assert!(heads[0].starts_with("GET /api/v1/pods?watch=1 HTTP/1.1\r\n"), "{heads:?}");
    let head = heads[0].to_lowercase();
    assert!(head.contains("accept-encoding: identity\r\n") && head.contains("accept: a/b\r\n"), "{heads:?}");
}

#[tokio::test]
async fn the_version_is_asked_for_once_and_none_where_it_is_not_told() {
    let told = answer("200 OK\r\nContent-Type: application/json", r#"{"major":"1","minor":"31+"}"#);
    let (address, asked) = saying([told]).await;
    let connection = plain(address).await;
    for _ in 0..3 {
        assert_eq!(connection.version().await.unwrap(), Some(ServerVersion { major: 1, minor: 31 }));
    }
    assert_eq!(asked.await.unwrap().len(), 1);

    for nothing in [
        answer("403 Forbidden\r\nContent-Type: application/json", "{}"),
        answer("404 Not Found", "404 page not found"),
        answer("200 OK\r\nContent-Type: text/html", "<html>Sign in</html>"),
        answer("200 OK\r\nContent-Type: application/json", r#"{"major":"","minor":""}"#),
        answer("200 OK\r\nContent-Type: application/json", "[]"),
    ] {
        let (address, _) = saying([nothing.clone()]).await;
        assert_eq!(plain(address).await.version().await.unwrap(), None, "{nothing}");
    }
    // A server that is in trouble may tell later.
    let (address, _) = saying([answer("500 Error", "oh")]).await;
    assert!(plain(address).await.version().await.is_err());
}

#[tokio::test]
async fn both_servers_tell_their_version() {
    let server = Server::builder().start().await.unwrap();
    let version = Some(ServerVersion { major: 1, minor: 37 });
    assert_eq!(embedded(&server).await.version().await.unwrap(), version);
    let cluster = kube_informer_testbed::require!(Cluster::shared().await);
    assert!(real(&cluster).await.version().await.unwrap().is_some());
}

/// The kernel tells which timer of a socket runs: 02 is that of keepalives.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_connection_is_kept_alive_so_that_a_dead_peer_is_found() {
    let server = Server::builder().start().await.unwrap();
    let connection = embedded(&server).await;
    connection.version().await.unwrap();
    let sockets = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let peer = format!("0100007F:{:04X}", server.address().port());
    let timers: Vec<&str> = sockets
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(2) == Some(&peer.as_str()) && fields.get(3) == Some(&"01"))
        .filter_map(|fields| fields.get(5)?.split(':').next())
        .collect();
    assert_eq!(timers, ["02"], "{sockets}");
}

#[tokio::test]
async fn a_document_that_never_ends_is_cut() {
    let body = "x".repeat(200_000);
    let (address, _) = saying([answer("200 OK\r\nContent-Type: application/json", &body)]).await;
    let fault = plain(address).await.version().await.unwrap_err();
    assert!(fault.to_string().contains("more than 65536 bytes"), "{fault}");
}
