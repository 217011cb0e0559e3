//! Versions that are no numbers, as aggregated APIs may have them: of two, it is only known whether they are the same.
//!
//! The server is one as any other, behind a scribe who writes its versions in another way: what comes gets letters, what
//! is asked for loses them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response, Uri};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_client::client::Body;
use kube_informer::encoding::Encoding;
use kube_informer::factory::Factory;
use kube_informer::informer::{CaughtUpError, Cause, Health, Informer, Scope, Written};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Events, Match, Request as Asked};
use regex::bytes::Regex;
use tokio::time::timeout;
use tower_service::Service;

use crate::harness::{Place, SOON, on_both};
use crate::replay::Replay;
use crate::stage::{MADE_HERE, Stage, health, live, ready, short, stale};

on_both! {
    promise_06_versions_that_are_no_numbers_are_compared_for_equality_alone,
}

/// What all versions begin with.
const LETTERS: &str = "etag-";

/// Long enough to show that nothing waited for it.
const NEVER: Duration = Duration::from_secs(86_400);

/// See the module.
#[derive(Clone)]
struct Scribe(Client);

type Pieces = Pin<Box<dyn Stream<Item = kube_client::Result<Frame<Bytes>>> + Send>>;

impl Service<Request<Body>> for Scribe {
    type Response = Response<StreamBody<Pieces>>;
    type Error = anyhow::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let asked = format!("resourceVersion={LETTERS}");
            head.uri = head.uri.to_string().replace(&asked, "resourceVersion=").parse::<Uri>()?;
            let answer = client.send(Request::from_parts(head, body)).await?;
            Ok(answer.map(|body| StreamBody::new(rewritten(body))))
        })
    }
}

/// Line by line: watches have one for each event, and what is no watch has one.
fn rewritten(body: Body) -> Pieces {
    let pieces = stream::unfold(Some((body.into_data_stream(), Vec::new())), async |state| {
        let (mut data, mut held): (_, Vec<u8>) = state?;
        loop {
            match data.next().await {
                Some(Ok(bytes)) => held.extend_from_slice(&bytes),
                Some(Err(error)) => return Some((Err(error), None)),
                None => return (!held.is_empty()).then(|| (Ok(with_letters(&held)), None)),
            }
            if let Some(end) = held.iter().rposition(|byte| *byte == b'\n') {
                let rest = held.split_off(end + 1);
                return Some((Ok(with_letters(&held)), Some((data, rest))));
            }
        }
    });
    Box::pin(pieces)
}

fn with_letters(text: &[u8]) -> Frame<Bytes> {
    static VERSION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""resourceVersion":\s*"([0-9]+)""#).unwrap());
    let new = format!(r#""resourceVersion":"{LETTERS}$1""#);
    Frame::data(Bytes::from(VERSION.replace_all(text, new.as_bytes()).into_owned()))
}

/// Waits until the cache has the versions that the server has, as the scribe writes them, and everyone knows the same.
async fn settled(stage: &Stage, informer: &Informer<ConfigMap>, told: &[Replay]) {
    let path = format!("{}{MADE_HERE}", stage.place.path("configmaps"));
    eventually("the cache, and what was told, equal the server", SOON, async || {
        let list = stage.place.get(&path).await.ok()?;
        let items = list["items"].as_array()?.iter();
        let text = |field: &serde_json::Value| field.as_str().unwrap_or_default().to_owned();
        let server: BTreeMap<String, String> = items
            .map(|item| &item["metadata"])
            .map(|meta| (text(&meta["name"]), format!("{LETTERS}{}", text(&meta["resourceVersion"]))))
            .collect();
        let cache = informer.list().iter();
        let cache = cache.map(|object| (object.name().to_owned(), object.version().to_string())).collect();
        (server == cache && told.iter().all(|replay| replay.knows(informer))).then_some(())
    })
    .await;
    told.iter().for_each(Replay::assert_sound);
}

/// Nothing is said to be wrong, and everything was listed so often: at first, and because a version had expired.
fn assert_well(health: &Health, expired: u64) {
    assert_eq!((health.unreadable, &health.last_unreadable), (0, &None));
    let relists = &health.relists;
    assert_eq!((relists.first, relists.expired), (1, expired));
    assert_eq!((relists.failure, relists.went_back, relists.unreadable), (0, 0, 0), "{health:#?}");
}

async fn promise_06_versions_that_are_no_numbers_are_compared_for_equality_alone(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let (namespace, proxy) = (&stage.place.namespace, &stage.proxy);
    // What was seen last is an object's version then, which a test can name.
    let bookmarks = Events::bookmarks().when(|event| !event.is_initial_events_end());
    proxy.on(Match::watch()).drop_events(bookmarks);
    stage.config_maps(&["goes", "stays"], "1").await?;
    let client = Client::try_from(stage.config().await?)?;
    let factory = Factory::new(Client::new(Scribe(client), "default")).timings(short());
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(namespace))
        .labels("made=here")?
        .encoding(Encoding::Json)
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    assert_well(&live(&informer).await, 0);
    settled(&stage, &informer, &told).await;

    // Whoever wrote something finds that it has arrived by its very version.
    let written = stage.change("stays", "2").await?;
    let number = written["metadata"]["resourceVersion"].as_str().unwrap();
    let version = format!("{LETTERS}{number}");
    settled(&stage, &informer, &told).await;
    let seen = informer.snapshot().version(namespace).unwrap().clone();
    assert_eq!((seen.number(), seen.to_string()), (None, version.clone()));
    let token = |version: &str| Written::new(informer.resource().clone(), namespace, version);
    informer.caught_up(&token(&version), SOON).await?;
    // Of any other one it cannot be told, which is said at once, also where it looks like a number.
    for other in [&format!("{LETTERS}1"), number] {
        let error = timeout(SOON, informer.caught_up(&token(other), NEVER)).await?.unwrap_err();
        assert!(matches!(error, CaughtUpError::Version { .. }), "{error}");
        let said = format!("version {other} cannot be compared to version {version}");
        assert!(error.to_string().contains(&said), "{error}");
    }

    // The server is gone for a while: what was known stays, and the watch resumes at that version.
    let last = proxy.requests().last_id();
    proxy.go_down().await;
    let text = stale(&informer, Cause::Refused).await;
    for part in [&stage.place.path("configmaps"), "connection refused", Cause::Refused.advice()] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert_eq!(informer.list().count(), 2);
    informer.caught_up(&token(&version), SOON).await?;
    stage.change("stays", "3").await?;
    stage.remove("goes").await?;
    proxy.accept_connections().await;
    assert_well(&live(&informer).await, 0);
    settled(&stage, &informer, &told).await;
    let resumed = |request: &Asked| request.is_watch() && request.id > last;
    assert_eq!(proxy.requests().matching(resumed)[0].resource_version().as_deref(), Some(number));

    // The version expires: everything is listed, not older than what was seen.
    let last = proxy.requests().last_id();
    proxy.on_open(Match::watch()).error_event(Answer::gone());
    stage.change("stays", "4").await?;
    let listed = health(&informer, "listed", |health| health.relists.expired == 1).await;
    assert_well(&listed, 1);
    settled(&stage, &informer, &told).await;
    assert_well(&live(&informer).await, 1);
    let again = proxy.requests().matching(|request| request.is_watch() && request.id > last);
    assert_eq!(again[0].param("sendInitialEvents").as_deref(), Some("true"));
    assert!(again[0].resource_version().is_some_and(|version| !version.is_empty()), "{}", again[0]);
    let every = told[1].told();
    assert_eq!((every.added, every.initial, every.deleted, every.gaps), (2, 2, 1, 0), "{every:#?}");
    factory.shutdown().await;
    Ok(())
}
