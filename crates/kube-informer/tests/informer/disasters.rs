//! What happens to clusters: resources that go and come back, servers that end, stores that are put back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Cause, Health, Informer, Scope, State};
use kube_informer::object::Version;
use kube_informer::resource::Resource;
use kube_informer_testbed::cluster::{Cluster, OwnCluster};
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use kube_informer_testbed::require;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::harness::{Place, SOON, on_both};
use crate::replay::{Replay, cached};
use crate::stage::{MADE_HERE, Stage, health, live, ready, short, stale};

on_both! {
    a_version_that_is_not_served_for_a_while_loses_nothing,
    a_deleted_definition_takes_its_objects_along_and_a_new_one_is_followed,
    a_definition_that_went_unseen_takes_its_objects_along,
    a_proxy_that_knows_no_such_path_proves_nothing,
    a_resource_that_is_defined_later_is_followed,
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A custom resource of the test's own, in two versions.
struct Gears {
    stage: Arc<Stage>,
    group: String,
    /// In the singular, as a kind.
    kind: &'static str,
}

impl Gears {
    async fn at(place: Place) -> Result<Self> {
        let group = format!("{}.kube-informer.dev", place.namespace);
        Ok(Self { stage: Arc::new(Stage::before(place).await?), group, kind: "Gear" })
    }

    /// Others of the same group, which have a definition of their own.
    fn others(&self, kind: &'static str) -> Self {
        Self { stage: Arc::clone(&self.stage), group: self.group.clone(), kind }
    }

    fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    fn resource(&self) -> Resource {
        Resource {
            group: self.group.clone(),
            version: "v1".to_owned(),
            plural: format!("{}s", self.singular()),
            kind: self.kind.to_owned(),
            namespaced: true,
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.resource().path(Some(&self.stage.place.namespace)))
    }

    /// The name of the definition.
    fn name(&self) -> String {
        format!("{}s.{}", self.singular(), self.group)
    }

    fn definition(&self) -> String {
        format!("{DEFINITIONS}/{}", self.name())
    }

    /// The versions, of which the first may not be served.
    fn versions(served: bool) -> Value {
        let schema =
            json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        json!([
            { "name": "v1", "served": served, "storage": true, "schema": schema },
            { "name": "v2", "served": true, "storage": false, "schema": schema },
        ])
    }

    async fn define(&self) -> Result<()> {
        let (kind, singular) = (self.kind, self.singular());
        let (list, plural) = (format!("{kind}List"), format!("{singular}s"));
        let names = json!({ "kind": kind, "listKind": list, "plural": plural, "singular": singular });
        let spec = json!({ "group": self.group, "names": names, "scope": "Namespaced", "versions": Self::versions(true) });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.name() },
            "spec": spec,
        });
        self.stage.place.post(DEFINITIONS, &definition).await?;
        self.until(200).await;
        Ok(())
    }

    async fn serve(&self, served: bool) -> Result<()> {
        let patch = json!({ "spec": { "versions": Self::versions(served) } });
        self.stage.place.merge(&self.definition(), &patch).await?;
        self.until(if served { 200 } else { 404 }).await;
        Ok(())
    }

    async fn undefine(&self) -> Result<()> {
        self.stage.place.delete(&self.definition()).await?;
        eventually("the definition is gone", SOON, async || {
            let answer = self.stage.place.endpoint.get(&self.definition()).await.ok()?;
            (answer.status.as_u16() == 404).then_some(())
        })
        .await;
        self.until(404).await;
        Ok(())
    }

    /// Servers take their time until a path is served, or not.
    async fn until(&self, status: u16) {
        eventually("the path is served, or not", SOON, async || {
            let answer = self.stage.place.endpoint.get(&self.path("")).await.ok()?;
            (answer.status.as_u16() == status).then_some(())
        })
        .await;
    }

    async fn make(&self, names: &[&str]) -> Result<()> {
        for name in names {
            let gear = json!({
                "apiVersion": format!("{}/v1", self.group),
                "kind": self.kind,
                "metadata": { "name": name },
                "spec": { "teeth": 12 },
            });
            self.stage.place.post(&self.path(""), &gear).await?;
        }
        Ok(())
    }

    /// Follows them, from a definition with two of them on.
    async fn follow(&self) -> Result<(Factory, Informer, [Replay; 2])> {
        self.define().await?;
        self.make(&["a", "b"]).await?;
        let factory = self.stage.factory(short()).await?;
        let informer = factory.configure_resource(self.resource(), Scope::All).informer();
        let told = Replay::both(&informer);
        factory.start();
        ready(&factory, &told).await?;
        live(&informer).await;
        Ok((factory, informer, told))
    }
}

async fn a_version_that_is_not_served_for_a_while_loses_nothing(place: Place) -> Result<()> {
    let gears = Gears::at(place).await?;
    let (factory, informer, told) = gears.follow().await?;
    gears.serve(false).await?;
    // Some servers end the watch by themselves.
    gears.stage.proxy.cut_open(Match::watch()).await;
    let text = stale(&informer, Cause::NotServed).await;
    let kept = format!("its objects are kept: its definition {} is there", gears.name());
    assert!(text.contains(&kept) && text.contains("kubectl api-resources"), "{text}");
    assert_eq!(cached(&informer).len(), 2);
    gears.serve(true).await?;
    live(&informer).await;
    gears.make(&["c"]).await?;
    gears.stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    for told in &told {
        assert_eq!((told.told().added, told.told().deleted), (3, 0), "nothing was deleted");
    }
    gears.undefine().await?;
    factory.shutdown().await;
    Ok(())
}

async fn a_deleted_definition_takes_its_objects_along_and_a_new_one_is_followed(place: Place) -> Result<()> {
    let gears = Gears::at(place).await?;
    let (factory, informer, told) = gears.follow().await?;
    // Whom it does not concern.
    let wheels = gears.others("Wheel");
    wheels.define().await?;
    wheels.make(&["a", "b"]).await?;
    gears.stage.config_maps(&["a", "b"], "1").await?;
    let maps = factory.configure::<ConfigMap>(Scope::namespace(&gears.stage.place.namespace));
    let bystanders = [
        (factory.configure_resource(wheels.resource(), Scope::All).informer(), ""),
        (maps.labels("made=here")?.cast().informer(), MADE_HERE),
    ];
    let unharmed = bystanders.each_ref().map(|(bystander, _)| Replay::both(bystander));
    for told in &unharmed {
        ready(&factory, told).await?;
    }

    gears.undefine().await?;
    gears.stage.proxy.cut_open(Match::watch()).await;
    stale(&informer, Cause::NotServed).await;
    eventually("all are gone", SOON, async || {
        (cached(&informer).is_empty() && told.iter().all(|told| told.told().deleted == 2)).then_some(())
    })
    .await;
    for (bystander, _) in &bystanders {
        live(bystander).await;
        assert_eq!(cached(bystander).len(), 2);
    }
    gears.define().await?;
    gears.make(&["a"]).await?;
    live(&informer).await;
    gears.stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    for told in &told {
        assert_eq!((told.told().added, told.told().deleted), (3, 2));
    }
    // They have noticed nothing, and go on.
    wheels.make(&["c"]).await?;
    gears.stage.config_maps(&["c"], "1").await?;
    for ((bystander, query), told) in bystanders.iter().zip(&unharmed) {
        gears.stage.settled(bystander, query, &[&told[0], &told[1]]).await;
        assert_eq!(live(bystander).await.relists.by_reason().map(|(_, count)| count), [1, 0, 0, 0, 0, 0]);
        for told in told {
            assert_eq!((told.told().added, told.told().deleted), (3, 0));
        }
    }
    gears.undefine().await?;
    wheels.undefine().await?;
    factory.shutdown().await;
    Ok(())
}

async fn a_definition_that_went_unseen_takes_its_objects_along(place: Place) -> Result<()> {
    let gears = Gears::at(place).await?;
    let (factory, informer, told) = gears.follow().await?;
    gears.stage.proxy.go_down().await;
    gears.undefine().await?;
    stale(&informer, Cause::Refused).await;
    assert_eq!(cached(&informer).len(), 2);
    gears.stage.proxy.accept_connections().await;
    let text = stale(&informer, Cause::NotServed).await;
    assert!(text.contains("the resource is gone, and its objects with it"), "{text}");
    eventually("that was told", SOON, async || {
        told.iter().all(|told| told.told().found_missing.len() == 2).then_some(())
    })
    .await;
    assert!(cached(&informer).is_empty());
    told.iter().for_each(Replay::assert_sound);
    factory.shutdown().await;
    Ok(())
}

async fn a_proxy_that_knows_no_such_path_proves_nothing(place: Place) -> Result<()> {
    let gears = Gears::at(place).await?;
    let (factory, informer, told) = gears.follow().await?;
    let proxy = &gears.stage.proxy;
    for lies in [Answer::not_served(), Answer::not_found(), Answer::html(404)] {
        // Whatever is asked, discovery and definitions as well.
        let lie = proxy.on(Match::any()).answer(lies);
        proxy.cut_open(Match::watch()).await;
        let text = stale(&informer, Cause::NotServed).await;
        assert!(text.contains("its objects are kept"), "{text}");
        lie.wait_applied(10).await;
        assert_eq!(cached(&informer).len(), 2);
        lie.remove();
        live(&informer).await;
    }
    gears.make(&["c"]).await?;
    gears.stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    for told in &told {
        assert_eq!(told.told().deleted, 0);
    }
    gears.undefine().await?;
    factory.shutdown().await;
    Ok(())
}

async fn a_resource_that_is_defined_later_is_followed(place: Place) -> Result<()> {
    let gears = Gears::at(place).await?;
    let factory = gears.stage.factory(short()).await?;
    let informer = factory.configure_resource(gears.resource(), Scope::All).informer();
    let told = Replay::both(&informer);
    factory.start();
    let text = stale(&informer, Cause::NotServed).await;
    assert!(text.contains(&gears.resource().path(None)), "{text}");
    let error = factory.synced(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains(&format!("gears.v1.{}", gears.group)), "{error}");
    gears.define().await?;
    gears.make(&["a"]).await?;
    ready(&factory, &told).await?;
    gears.stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    gears.undefine().await?;
    factory.shutdown().await;
    Ok(())
}

/// Who is asked to convert objects, and does not answer: nobody listens there, nor will as long as the socket is kept.
fn nobody() -> Result<(Value, Socket)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    let closed = socket.local_addr()?.as_socket().context("no address")?;
    let key = rcgen::KeyPair::generate()?;
    let authority = rcgen::CertificateParams::new(vec!["localhost".to_owned()])?.self_signed(&key)?.pem();
    let client =
        json!({ "url": format!("https://{closed}/convert"), "caBundle": STANDARD.encode(authority) });
    let webhook = json!({ "clientConfig": client, "conversionReviewVersions": ["v1"] });
    Ok((json!({ "strategy": "Webhook", "webhook": webhook }), socket))
}

/// The embedded server asks nobody to convert.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_the_server_cannot_convert_are_kept_and_the_cause_is_named() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let gears = Gears::at(Place::real(cluster, "cannot convert").await?).await?;
    gears.define().await?;
    gears.make(&["a", "b"]).await?;
    let factory = gears.stage.factory(short()).await?;
    // They are stored in the other version.
    let resource = Resource { version: "v2".to_owned(), ..gears.resource() };
    let path = resource.path(Some(&gears.stage.place.namespace));
    let informer =
        factory.configure_resource(resource, Scope::namespace(&gears.stage.place.namespace)).informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    live(&informer).await;

    let place = &gears.stage.place;
    let convert = async |conversion: Value, works: bool| -> Result<()> {
        place.merge(&gears.definition(), &json!({ "spec": { "conversion": conversion } })).await?;
        eventually("the server can convert, or cannot", SOON, async || {
            let answer = place.endpoint.get(&path).await.ok()?;
            (answer.status.is_success() == works).then_some(())
        })
        .await;
        Ok(())
    };
    let (nobody, _socket) = nobody()?;
    convert(nobody, false).await?;
    gears.stage.proxy.cut_open(Match::watch()).await;
    // The server fails to fill its own cache, says why, and asks to come back in half a minute.
    let named = |health: &Health| {
        let text = health.state.to_string();
        text.contains(&path) && text.contains("conversion webhook") && text.contains("connection refused")
    };
    health(&informer, "the cause is named", named).await;
    assert_eq!(cached(&informer).len(), 2);

    convert(json!({ "strategy": "None", "webhook": null }), true).await?;
    eventually("it is live again", 2 * SOON, async || (informer.health().state == State::Live).then_some(()))
        .await;
    gears.make(&["c"]).await?;
    gears.stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    for told in &told {
        assert_eq!((told.told().added, told.told().deleted), (3, 0), "nothing was deleted");
    }
    gears.undefine().await?;
    factory.shutdown().await;
    Ok(())
}

/// A server that is asked for a version that it does not have says so after three seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Servers of its own, and an informer that reaches them without a proxy.
async fn alone(
    own: &OwnCluster,
    test: &str,
    timings: Timings,
) -> Result<(Stage, Factory, Informer<ConfigMap>, [Replay; 2])> {
    let stage = Stage::before(Place::real(Cluster::clone(own), test).await?).await?;
    stage.config_maps(&["a", "b"], "1").await?;
    let factory = stage.place.factory().await?.timings(timings);
    let scope = Scope::namespace(&stage.place.namespace);
    let informer = factory.configure(scope).labels("made=here")?.informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    Ok((stage, factory, informer, told))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_restarted_killed_or_paused_are_followed_again() -> Result<()> {
    let own = require!(Cluster::own(Options::new()).await, else Ok(()));
    // A server that is paused ends no watch.
    let timings = short().watch(Duration::from_secs(1)).patience(PATIENCE);
    let (stage, factory, informer, told) = alone(&own, "followed again", timings).await?;
    let servers = own.control_plane();
    let settled = async || stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;

    servers.restart_apiserver().await?;
    stage.change("a", "restarted").await?;
    settled().await;
    live(&informer).await;

    servers.kill_apiserver().await?;
    stale(&informer, Cause::Refused).await;
    assert_eq!(informer.list().count(), 2, "what is known stays");
    servers.start_apiserver().await?;
    stage.remove("b").await?;
    settled().await;
    live(&informer).await;

    servers.pause_apiserver().await?;
    stale(&informer, Cause::Stalled).await;
    servers.resume_apiserver().await?;
    stage.config_maps(&["c"], "resumed").await?;
    settled().await;
    live(&informer).await;

    servers.restart_etcd().await?;
    stage.change("c", "restarted").await?;
    settled().await;
    live(&informer).await;
    for told in &told {
        assert_eq!((told.told().added, told.told().deleted, told.told().gaps), (3, 1, 0));
    }
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_put_back_is_followed_back() -> Result<()> {
    let own = require!(Cluster::own(Options::new()).await, else Ok(()));
    let (stage, factory, informer, told) = alone(&own, "put back", short().patience(PATIENCE)).await?;
    let servers = own.control_plane();
    let settled = async || stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    let snapshot = servers.snapshot().await?;
    // More than servers write by themselves while they start.
    for value in 2..300 {
        stage.change("a", &value.to_string()).await?;
    }
    stage.remove("b").await?;
    stage.config_maps(&["c"], "new").await?;
    settled().await;
    let seen = informer.snapshot().version(&stage.place.namespace).and_then(Version::number);

    servers.restore(&snapshot).await?;
    settled().await;
    let value = |name: &str| {
        let object = informer.get(&stage.place.namespace, name)?;
        object.pointer::<String>("/data/key").unwrap()
    };
    assert_eq!(["a", "b", "c"].map(value), [Some("1".to_owned()), Some("1".to_owned()), None]);
    // Versions that were given out before the restore are given out anew: what they stand for is taken all the same.
    let written = stage.change("a", "again").await?;
    let version: u64 = written["metadata"]["resourceVersion"].as_str().unwrap().parse()?;
    assert!(seen.is_some_and(|seen| version < seen), "{version} of {seen:?}: the versions did not go back");
    settled().await;
    let relists = live(&informer).await.relists;
    assert!(relists.went_back >= 1, "that it went back was found otherwise: {relists:?}");
    assert_eq!(value("a").as_deref(), Some("again"));
    factory.shutdown().await;
    Ok(())
}
