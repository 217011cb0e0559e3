//! Who one is: tokens and certificates that are not accepted, those that a server shows, and that both are read anew.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::connect::Source;
use kube_informer::encoding::Encoding;
use kube_informer::factory::Factory;
use kube_informer::informer::{Cause, Informer, Scope};
use kube_informer_apiserver::Server;
use kube_informer_testbed::certs::Authority;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Credentials;
use kube_informer_testbed::proxy::{Answer, Match};
use kube_informer_testbed::require;
use serde_json::json;

use crate::harness::{Place, SOON};
use crate::replay::Replay;
use crate::somebody::{account, may_watch, token, user};
use crate::stage::{MADE_HERE, Stage, live, ready, short, stale};

fn kubeconfig(url: &str, ca: Option<&str>, token: &str) -> String {
    use base64::Engine;
    let mut cluster = json!({ "server": url });
    if let Some(ca) = ca {
        cluster["certificate-authority-data"] = base64::engine::general_purpose::STANDARD.encode(ca).into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "it", "cluster": cluster }],
        "users": [{ "name": "it", "user": { "token": token } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        "current-context": "it",
    })
    .to_string()
}

/// In the place of what was there, at once.
fn replace(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    Ok(std::fs::rename(beside, path)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_expire_are_read_anew() -> Result<()> {
    let server =
        Server::builder().token("old", "jane", &["system:masters"]).token("new", "jane", &["system:masters"]);
    let stage = Stage::before(Place::of(server.start().await?).await?).await?;
    stage.config_maps(&["one"], "1").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    replace(&file, &kubeconfig(&stage.proxy.url(), None, "old"))?;
    let factory = Factory::from_source(Source::file(&file)).await?.timings(short());
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    factory.synced(SOON).await?;
    let old = Match::any().when(|request| request.authorization.as_deref() == Some("Bearer old"));
    stage.proxy.on(old).answer(Answer::unauthorized());
    stage.proxy.cut_open(Match::watch()).await;
    let text = stale(&informer, Cause::Unauthorized).await;
    assert!(text.contains("Unauthorized") && text.contains("log in anew"), "{text}");
    stage.change("one", "2").await?;
    replace(&file, &kubeconfig(&stage.proxy.url(), None, "new"))?;
    live(&informer).await;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    factory.shutdown().await;
    Ok(())
}

/// Config maps of a test's namespace, in JSON: the server's version need not be known for that.
async fn watched(source: Source, place: &Place) -> Result<(Factory, Informer<ConfigMap>, [Replay; 2])> {
    // No watch is long: on the way of some to the server there is nobody who could cut it.
    let timings = short().watch(Duration::from_secs(5)).overdue(SOON);
    let factory = Factory::from_source(source).await?.timings(timings);
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&place.namespace))
        .labels("made=here")?
        .encoding(Encoding::Json)
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    Ok((factory, informer, told))
}

/// What is wrong is said with what was asked for, of which resource, why, and what to do.
fn assert_said(text: &str, place: &Place, cause: Cause, says: &str) {
    let path = format!("WATCH {}?", place.path("configmaps"));
    for part in [&*path, says, cause.advice()] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_whose_account_is_gone_is_said_and_a_new_one_is_read() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let stage = Stage::before(Place::real(cluster, "revoked token").await?).await?;
    let place = &stage.place;
    stage.config_maps(&["one"], "1").await?;
    may_watch(place, "watcher", &[], account(place, "watcher")).await?;
    let old = token(place, "watcher").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    replace(&file, &kubeconfig(&stage.proxy.url(), None, &old))?;
    let (factory, informer, told) = watched(Source::file(&file), place).await?;
    ready(&factory, &told).await?;
    let relists = live(&informer).await.relists;

    place.delete(&place.path("serviceaccounts/watcher")).await?;
    // The server remembers for some seconds whom it has let in.
    let endpoint = stage.proxy.endpoint(&old)?;
    eventually("the token is refused", SOON, async || {
        endpoint.get("/version").await.ok().filter(|answer| answer.status == 401)
    })
    .await;
    stage.proxy.cut_open(Match::watch()).await;
    assert_said(&stale(&informer, Cause::Unauthorized).await, place, Cause::Unauthorized, "Unauthorized");
    stage.change("one", "2").await?;
    stage.config_maps(&["two"], "1").await?;
    assert_eq!(informer.list().count(), 1, "what is known stays");
    for told in &told {
        let told = told.told();
        assert_eq!((told.added, told.updated, told.deleted), (1, 0, 0), "{told:#?}");
    }

    replace(&file, &kubeconfig(&stage.proxy.url(), None, &token(place, "watcher").await?))?;
    live(&informer).await;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    assert_eq!(live(&informer).await.relists, relists, "the watch was resumed, and nothing listed");
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_that_has_expired_is_said_and_a_new_one_is_read() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let stage = Stage::before(Place::real(cluster.clone(), "expired certificate").await?).await?;
    let place = &stage.place;
    stage.config_maps(&["one"], "1").await?;
    let name = format!("user-{}", place.namespace);
    may_watch(place, "watcher", &[], user(&name)).await?;
    let expired = require!(cluster.user_until(&name, SystemTime::now() - SOON), else Ok(()));
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    expired.write(&file)?;
    let (factory, informer, told) = watched(Source::file(&file), place).await?;
    assert_said(&stale(&informer, Cause::Unauthorized).await, place, Cause::Unauthorized, "Unauthorized");
    assert!(!informer.is_synced() && told.iter().all(|told| told.told().known.is_empty()));

    let valid = std::fs::read_to_string(cluster.kubeconfig_for_user(&name, &[]).await?)?;
    replace(&file, &valid)?;
    ready(&factory, &told).await?;
    live(&informer).await;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_that_expires_on_the_way_is_said_and_a_new_one_is_read() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let stage = Stage::before(Place::real(cluster.clone(), "expiring certificate").await?).await?;
    let place = &stage.place;
    stage.config_maps(&["one"], "1").await?;
    let name = format!("user-{}", place.namespace);
    may_watch(place, "watcher", &[], user(&name)).await?;
    // Long enough to list one object on a busy machine; the server's clock goes on as it likes.
    let user = require!(cluster.user_until(&name, SystemTime::now() + SOON / 3), else Ok(()));
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    user.write(&file)?;
    let (factory, informer, told) = watched(Source::file(&file), place).await?;
    ready(&factory, &told).await?;
    let relists = live(&informer).await.relists;

    let endpoint = Endpoint::new(user)?;
    eventually("the certificate is refused", SOON, async || {
        endpoint.get("/version").await.ok().filter(|answer| answer.status == 401)
    })
    .await;
    // The watch goes on until it ends, and is the last one.
    assert_said(&stale(&informer, Cause::Unauthorized).await, place, Cause::Unauthorized, "Unauthorized");
    stage.change("one", "2").await?;
    assert_eq!(informer.list().count(), 1, "what is known stays");

    let valid = std::fs::read_to_string(cluster.kubeconfig_for_user(&name, &[]).await?)?;
    replace(&file, &valid)?;
    live(&informer).await;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    assert_eq!(live(&informer).await.relists, relists, "the watch was resumed, and nothing listed");
    factory.shutdown().await;
    Ok(())
}

/// The kubeconfig trusts another authority than the server's, and then the right one.
async fn an_unknown_authority_is_said_and_the_right_one_is_read(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let access = stage.place.endpoint.access();
    let token = match &access.credentials {
        Credentials::Token(token) => token,
        _ => "none",
    };
    stage.config_maps(&["one"], "1").await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    let other = Authority::generate()?.pem().public;
    replace(&file, &kubeconfig(&access.url, Some(&other), token))?;
    let (factory, informer, told) = watched(Source::file(&file), &stage.place).await?;
    // Whoever takes protobuf asks for the server's version first.
    let secrets = factory.informer::<Secret>(Scope::namespace(&stage.place.namespace));
    let says = "the server's certificate is signed by an";
    assert_said(&stale(&informer, Cause::Connection).await, &stage.place, Cause::Connection, says);
    let text = stale(&secrets, Cause::Connection).await;
    assert!(text.contains("GET /version: ") && text.contains(says), "{text}");
    let error = factory.synced(Duration::from_millis(1)).await.unwrap_err().to_string();
    for part in ["configmaps", "secrets", says, Cause::Connection.advice()] {
        assert!(error.contains(part), "{part:?} is missing: {error}");
    }

    replace(&file, &kubeconfig(&access.url, access.ca_pem.as_deref(), token))?;
    ready(&factory, &told).await?;
    live(&informer).await;
    live(&secrets).await;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_authority_of_the_embedded_server_is_said_and_the_right_one_is_read() -> Result<()> {
    let server = Server::builder().tls(true).start().await?;
    an_unknown_authority_is_said_and_the_right_one_is_read(Place::of(server).await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_authority_of_the_real_server_is_said_and_the_right_one_is_read() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    an_unknown_authority_is_said_and_the_right_one_is_read(Place::real(cluster, "unknown authority").await?)
        .await
}
