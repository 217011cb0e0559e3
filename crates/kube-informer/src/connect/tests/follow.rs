//! A reflector over a connection, on real servers.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::require;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::encoding::{Codec, Encoding, Rules};
use crate::object::{Intake, KeyRef, Object};
use crate::reflector::request::{Form, Target};
use crate::reflector::{Delta, Gone, Reflector, Report, Settings, Sink};

enum Told {
    Delta(Delta),
    Report(Report),
}

struct Listener(mpsc::UnboundedSender<Told>);

impl Sink for Listener {
    async fn deliver(&mut self, delta: Delta) -> Result<(), Gone> {
        self.0.send(Told::Delta(delta)).map_err(|_| Gone)
    }

    fn current(&self, _: KeyRef<'_>) -> Option<Object> {
        None
    }

    fn held(&self) -> Vec<Object> {
        Vec::new()
    }

    fn report(&self, report: Report) {
        let _ = self.0.send(Told::Report(report));
    }
}

/// The next of what is told that is of interest.
async fn next<T>(told: &mut mpsc::UnboundedReceiver<Told>, mut want: impl FnMut(Told) -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = want(told.recv().await.expect("the reflector runs")) {
                return found;
            }
        }
    };
    timeout(Duration::from_secs(30), found).await.expect("it is told in time")
}

fn map(name: &str) -> serde_json::Value {
    json!({ "metadata": { "name": name, "labels": { "app": "web" } }, "data": { "k": "v" } })
}

/// Lists and watches config maps of a namespace, in a form and an encoding.
async fn follows(
    connection: &Connection,
    endpoint: &Endpoint,
    namespace: &str,
    form: Form,
    ask: Encoding,
) -> Encoding {
    let resource = Resource::of::<ConfigMap>();
    let path = resource.path(Some(namespace));
    let name = format!("first-{form:?}-{ask:?}").to_lowercase();
    endpoint.post(&path, &map(&name)).await.unwrap().success().unwrap();

    let intake = |encoding| {
        let (api_version, kind) = form.kind(&resource);
        Intake::new(Codec::new(encoding, &api_version, kind, Rules::default()).unwrap())
    };
    let protobuf = (ask == Encoding::Protobuf).then(|| intake(Encoding::Protobuf));
    let target = Target {
        resource: resource.clone(),
        namespace: Some(namespace.to_owned()),
        label_selector: Some("app=web".to_owned()),
        field_selector: None,
        form,
    };
    let (sender, mut told) = mpsc::unbounded_channel();
    let reflector = Reflector::new(
        target,
        connection.clone(),
        Listener(sender),
        Arc::default(),
        intake(Encoding::Json),
        protobuf,
        Settings::default(),
    );
    let running = tokio::spawn(reflector.run());

    let listed = next(&mut told, |told| match told {
        Told::Delta(Delta::Replace { objects, unreadable, complete, .. }) => {
            assert!(complete && unreadable.is_empty());
            objects.into_iter().find(|object| object.name() == name)
        }
        _ => None,
    })
    .await;
    let encoding = next(&mut told, |told| match told {
        Told::Report(Report::Watching { encoding }) => Some(encoding),
        _ => None,
    })
    .await;
    endpoint.post(&path, &map(&format!("second-{name}"))).await.unwrap().success().unwrap();
    let changed = next(&mut told, |told| match told {
        Told::Delta(Delta::Put(object)) => Some(object),
        Told::Report(Report::Unreadable { error, .. }) => panic!("{error}"),
        _ => None,
    })
    .await;
    assert_eq!(changed.name(), format!("second-{name}"));
    for object in [listed, changed] {
        assert_eq!(object.encoding(), encoding);
        assert_eq!(object.labels().get("app"), Some("web"));
        let data: Option<String> = object.pointer("/data/k").unwrap();
        let kind: Option<String> = object.pointer("/kind").unwrap();
        match form {
            Form::Full => assert_eq!((data.as_deref(), kind.as_deref()), (Some("v"), Some("ConfigMap"))),
            Form::Metadata => {
                assert_eq!((data.as_deref(), kind.as_deref()), (None, Some("PartialObjectMetadata")));
            }
        }
    }
    running.abort();
    encoding
}

#[tokio::test]
async fn every_form_in_every_encoding_is_followed_on_the_real_server() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("follow").await.unwrap();
    let connection = real(&cluster).await;
    for form in [Form::Full, Form::Metadata] {
        for ask in [Encoding::Json, Encoding::Protobuf] {
            let came = follows(&connection, cluster.endpoint(), namespace.name(), form, ask).await;
            assert_eq!(came, ask, "{form:?}");
        }
    }
    namespace.close().await.unwrap();
}

#[tokio::test]
async fn the_embedded_server_is_followed_in_json_whatever_is_asked_for() {
    let server = Server::builder().start().await.unwrap();
    let endpoint = Endpoint::new(Access::anonymous(server.url())).unwrap();
    let connection = embedded(&server).await;
    for form in [Form::Full, Form::Metadata] {
        let came = follows(&connection, &endpoint, "default", form, Encoding::Protobuf).await;
        assert_eq!(came, Encoding::Json, "{form:?}");
    }
}

/// The connection of a watch can be told how long what comes may wait, and forgets it with its end. No other can.
async fn gathers(connection: &Connection) {
    let gather = Gather::new(Duration::from_millis(20));
    let connection = connection.gathering(&gather);
    let before = gather.holders();
    for (uri, is_told) in
        [("/api/v1/configmaps?watch=1&resourceVersion=0", true), ("/api/v1/configmaps?limit=1", false)]
    {
        let mut response = connection.get(uri, "application/json").await.unwrap();
        assert_eq!(response.status, 200);
        response.body.gather();
        assert_eq!(gather.holders(), before + usize::from(is_told), "{uri}");
        drop(response);
        assert_eq!(gather.holders(), before, "{uri}");
    }
}

#[tokio::test]
async fn what_comes_over_a_watch_may_wait_as_long_as_was_said() {
    let server = Server::builder().start().await.unwrap();
    gathers(&embedded(&server).await).await;
}

#[tokio::test]
async fn what_comes_over_a_watch_of_the_real_server_may_wait_as_long_as_was_said() {
    let cluster = require!(Cluster::shared().await);
    gathers(&real(&cluster).await).await;
}
