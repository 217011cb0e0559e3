//! Lists that a server gives out in pages. One with a watch cache does so only where it reads from its store: when streams
//! are refused, and the list of any version is, too.

use anyhow::Result;
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer_testbed::load;
use kube_informer_testbed::proxy::{Answer, Fault, Match, Request};
use serde_json::json;
use tokio::time::timeout;

use crate::harness::{Place, SOON, on_both};
use crate::replay::Replay;
use crate::stage::{Stage, live, ready, short};

on_both! {
    what_is_read_in_pages_is_the_list_of_one_version,
    a_page_that_has_expired_is_followed_by_the_whole_list_at_once,
}

/// Two pages, and a part of a third.
const OBJECTS: usize = 1_100;

/// Many objects behind a proxy, an informer that will list them from the store, and two who are told.
struct Play {
    stage: Stage,
    collection: String,
    /// Of the first object in the order of the list, and of the last.
    ends: [String; 2],
    factory: Factory,
    informer: Informer,
    told: [Replay; 2],
}

impl Play {
    /// Up to the start, which is the test's.
    async fn prepare(place: Place) -> Result<Self> {
        let stage = Stage::before(place).await?;
        let (endpoint, namespace) = (&stage.place.endpoint, &stage.place.namespace);
        load::install_custom_resources(endpoint).await?;
        load::write_all(endpoint, namespace, load::custom_resources(1, OBJECTS), 8).await?;
        let collection = load::Kind::Gadget.path(namespace);
        let listed = stage.place.get(&collection).await?;
        let path =
            |at: usize| format!("{collection}/{}", listed["items"][at]["metadata"]["name"].as_str().unwrap());
        let ends = [path(0), path(OBJECTS - 1)];
        let proxy = &stage.proxy;
        proxy.on(Match::watch().send_initial_events(true)).answer(Answer::no_streaming_lists());
        let any = Match::list().path(&collection).resource_version("0");
        proxy.on(any).once().answer(Answer::gone());
        let factory = stage.factory(short()).await?;
        let scope = Scope::namespace(namespace);
        let informer = factory.resource("gadgets.load.kube-informer.dev", scope).await?;
        let told = Replay::both(&informer);
        Ok(Self { stage, collection, ends, factory, informer, told })
    }

    /// Requests for a page that is not the first.
    fn later_pages(&self) -> Match {
        Match::list().path(&self.collection).when(|request| request.param("continue").is_some())
    }

    /// While the second page is waited for, an object of the first one goes, one of the last one, and one comes.
    async fn act(&self, second: &Fault) -> Result<()> {
        timeout(SOON, second.wait_applied(1)).await?;
        for path in &self.ends {
            self.stage.place.delete(path).await?;
        }
        let new = json!({
            "apiVersion": "load.kube-informer.dev/v1", "kind": "Gadget", "metadata": { "name": "a-new-one" },
        });
        self.stage.place.post(&self.collection, &new).await?;
        Ok(())
    }

    /// What was asked for one list after the other, and how it was answered.
    fn lists(&self) -> Vec<String> {
        let lists = |request: &Request| request.is_list() && request.path == self.collection;
        let short = |request: Request| {
            let parameter = |text: &str| match text.split_once('=') {
                Some(("continue", _)) => "continue".to_owned(),
                _ => text.to_owned(),
            };
            let query: Vec<String> = request.query.split('&').map(parameter).collect();
            format!("{} → {}", query.join(" "), request.status.unwrap_or_default())
        };
        self.stage.proxy.requests().matching(lists).into_iter().map(short).collect()
    }

    /// The cache is the server, whoever is told knows the same, and the list was one.
    async fn end(self) -> Result<()> {
        self.stage.settled(&self.informer, "", &[&self.told[0], &self.told[1]]).await;
        let relists = live(&self.informer).await.relists;
        assert_eq!((relists.first, relists.expired, relists.failure), (1, 1, 0));
        self.factory.shutdown().await;
        Ok(())
    }
}

async fn what_is_read_in_pages_is_the_list_of_one_version(place: Place) -> Result<()> {
    let play = Play::prepare(place).await?;
    let second = play.stage.proxy.on(play.later_pages()).once().stall();
    play.factory.start();
    play.act(&second).await?;
    assert_eq!(play.informer.list().count(), 0, "a part of a list is none");
    second.release();
    ready(&play.factory, &play.told).await?;
    assert_eq!(
        play.lists(),
        [
            "limit=500 resourceVersion=0 → 410",
            "limit=500 → 200",
            "limit=500 continue → 200",
            "limit=500 continue → 200"
        ]
    );
    // What happened meanwhile is told by the watch that follows, from the version of all pages on.
    play.stage.settled(&play.informer, "", &[&play.told[0], &play.told[1]]).await;
    let told = play.told[1].told();
    assert_eq!((told.initial, told.added, told.deleted), (OBJECTS as u64, OBJECTS as u64 + 1, 2));
    assert_eq!((told.found_missing, told.gaps), (Vec::new(), 0));
    assert_eq!(play.informer.stats().begun_anew, 0);
    play.end().await
}

async fn a_page_that_has_expired_is_followed_by_the_whole_list_at_once(place: Place) -> Result<()> {
    let play = Play::prepare(place).await?;
    let expired = play.stage.proxy.on(play.later_pages()).once().answer(Answer::continue_expired());
    play.factory.start();
    ready(&play.factory, &play.told).await?;
    assert_eq!(expired.applied(), 1);
    assert_eq!(
        play.lists(),
        ["limit=500 resourceVersion=0 → 410", "limit=500 → 200", "limit=500 continue → 410", " → 200"]
    );
    for told in &play.told {
        let told = told.told();
        assert_eq!((told.initial, told.added, told.deleted), (OBJECTS as u64, OBJECTS as u64, 0));
    }
    live(&play.informer).await;
    let stats = play.informer.stats();
    assert_eq!(
        (stats.received_objects, stats.begun_anew),
        (500 + OBJECTS as u64, 1),
        "a page came for nothing"
    );
    play.end().await
}
