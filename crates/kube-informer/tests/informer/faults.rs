//! What goes wrong between a server and its clients, one thing after the other. Each time, in the end the cache is what
//! the server has, everyone who was told knows the same, and health said what was wrong.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Cause, Informer, Scope};
use kube_informer_apiserver::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Events, Match, Request};

use crate::harness::{Place, SOON, on_both};
use crate::replay::Replay;
use crate::stage::{MADE_HERE, Stage, health, live, ready, short, stale};

on_both! {
    a_watch_that_is_cut_is_resumed_and_nothing_is_listed,
    a_watch_that_is_cut_inside_an_object_is_made_good,
    a_list_that_is_cut_is_read_again,
    a_connection_that_stalls_is_found,
    a_slow_server_is_waited_for,
    a_version_that_has_expired_is_listed_anew,
    an_expired_version_inside_a_watch_is_listed_anew,
    a_server_that_is_too_busy_is_asked_again_when_it_said_so,
    a_server_that_fails_is_asked_again,
    a_page_for_people_is_not_taken_for_an_answer,
    what_was_lost_is_found_with_the_next_list,
    an_error_inside_a_watch_is_followed_by_a_list_and_only_what_is_missing_is_deleted,
    what_comes_twice_or_late_is_told_once,
    a_list_whose_end_does_not_come_is_read_in_another_way,
    a_server_that_knows_no_streaming_lists_is_asked_for_plain_ones_and_not_again_for_a_stream,
    a_server_that_is_gone_is_waited_for,
}

/// Config maps behind a proxy, an informer of them, and two who are told.
struct Play {
    stage: Stage,
    factory: Factory,
    informer: Informer<ConfigMap>,
    told: [Replay; 2],
}

impl Play {
    /// Up to the start, which is the test's.
    async fn prepare(place: Place, timings: Timings) -> Result<Self> {
        let stage = Stage::before(place).await?;
        stage.config_maps(&["changes", "goes", "stays"], "1").await?;
        let factory = stage.factory(timings).await?;
        let scope = Scope::namespace(&stage.place.namespace);
        let informer = factory.configure(scope).labels("made=here")?.informer();
        let told = Replay::both(&informer);
        Ok(Self { stage, factory, informer, told })
    }

    /// Up to where everything works.
    async fn begin(place: Place, timings: Timings) -> Result<Self> {
        let play = Self::prepare(place, timings).await?;
        play.factory.start();
        ready(&play.factory, &play.told).await?;
        live(&play.informer).await;
        Ok(play)
    }

    /// One of each kind of change.
    async fn act(&self) -> Result<()> {
        self.stage.config_maps(&["comes"], "1").await?;
        self.stage.change("changes", "2").await?;
        self.stage.remove("goes").await
    }

    /// Everything is well again.
    async fn end(self) -> Result<()> {
        self.stage.proxy.heal();
        self.stage.settled(&self.informer, MADE_HERE, &[&self.told[0], &self.told[1]]).await;
        live(&self.informer).await;
        // And goes on.
        self.stage.change("stays", "last").await?;
        self.stage.settled(&self.informer, MADE_HERE, &[&self.told[0], &self.told[1]]).await;
        for told in &self.told {
            let told = told.told();
            assert_eq!((told.added, told.initial, told.deleted, told.gaps), (4, 3, 1, 0), "{told:#?}");
        }
        self.factory.shutdown().await;
        Ok(())
    }
}

async fn a_watch_that_is_cut_is_resumed_and_nothing_is_listed(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    play.stage.proxy.cut_open(Match::watch()).await;
    play.act().await?;
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    let health = live(&play.informer).await;
    assert_eq!((health.relists.first, health.relists.failure), (1, 0), "nothing was missed");
    play.end().await
}

async fn a_watch_that_is_cut_inside_an_object_is_made_good(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    play.stage.proxy.on_all(Match::watch()).cut_inside_object(0);
    play.act().await?;
    let text = stale(&play.informer, Cause::Connection).await;
    assert!(
        text.contains("WATCH /api/v1/namespaces/") && text.contains("the server has closed the connection"),
        "{text}"
    );
    assert_eq!(play.informer.list().count(), 3, "what is known stays");
    // No watch and no stream gets further than this: in the end everything is read as a list.
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    assert!(play.informer.health().relists.failure >= 1);
    play.end().await
}

async fn a_list_that_is_cut_is_read_again(place: Place) -> Result<()> {
    let play = Play::prepare(place, short()).await?;
    // First as a stream, then as a list: the second object is never whole.
    let proxy = &play.stage.proxy;
    let streams = proxy.on(Match::watch().send_initial_events(true)).cut_inside_object(1);
    let lists = proxy.on(Match::list()).cut_inside_object(1);
    play.factory.start();
    streams.wait_applied(1).await;
    lists.wait_applied(3).await;
    assert_eq!(streams.applied(), 1, "another stream would be cut, too");
    stale(&play.informer, Cause::Connection).await;
    assert_eq!(play.informer.list().count(), 0, "half a list is none");
    lists.remove();
    ready(&play.factory, &play.told).await?;
    play.act().await?;
    play.end().await
}

async fn a_connection_that_stalls_is_found(place: Place) -> Result<()> {
    let timings = short().watch(Duration::from_secs(1)).patience(Duration::from_millis(700));
    let play = Play::begin(place, timings).await?;
    let stall = play.stage.proxy.on_all(Match::watch()).stall();
    stall.wait_applied(1).await;
    play.act().await?;
    stale(&play.informer, Cause::Stalled).await;
    // It fell silent; the next one does not even begin.
    let part = "no progress for 700ms";
    health(&play.informer, part, |health| health.state.to_string().contains(part)).await;
    // Lists are not held up: it is known all the same what there is.
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    stall.remove();
    play.end().await
}

async fn a_slow_server_is_waited_for(place: Place) -> Result<()> {
    let play = Play::prepare(place, short()).await?;
    let delay = play.stage.proxy.on(Match::any()).delay(Duration::from_millis(300));
    let throttle = play.stage.proxy.on(Match::any()).throttle(4_000);
    play.factory.start();
    ready(&play.factory, &play.told).await?;
    play.act().await?;
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    assert!(delay.applied() >= 1 && throttle.applied() >= 1);
    let health = live(&play.informer).await;
    assert_eq!((health.watches, health.relists.first, health.relists.failure), (1, 1, 0));
    play.end().await
}

async fn a_version_that_has_expired_is_listed_anew(place: Place) -> Result<()> {
    let play = Play::begin(place, short().watch(Duration::from_secs(1))).await?;
    // The next watch resumes, and may not.
    let resumed = Match::watch().send_initial_events(false);
    let gone = play.stage.proxy.on(resumed).once().answer(Answer::gone());
    gone.wait_applied(1).await;
    play.act().await?;
    let health = health(&play.informer, "listed", |health| health.relists.expired == 1).await;
    assert_eq!(health.relists.failure, 0);
    play.end().await
}

async fn an_expired_version_inside_a_watch_is_listed_anew(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    let gone = play.stage.proxy.on_open(Match::watch()).error_event(Answer::gone());
    play.act().await?;
    gone.wait_applied(1).await;
    let health = health(&play.informer, "listed", |health| health.relists.expired == 1).await;
    assert_eq!(health.relists.failure, 0);
    play.end().await
}

async fn a_server_that_is_too_busy_is_asked_again_when_it_said_so(place: Place) -> Result<()> {
    let play = Play::begin(place, short().watch(Duration::from_secs(1))).await?;
    let busy = Match::any().path_contains("/configmaps");
    let throttled = play.stage.proxy.on(busy.clone()).times(1).answer(Answer::too_many_requests(2));
    let overloaded = play.stage.proxy.on(busy).times(1).answer(Answer::overloaded(1));
    throttled.wait_applied(1).await;
    let why =
        health(&play.informer, "throttled", |health| format!("{:?}", health.state).contains("Throttled"));
    let text = why.await.state.to_string();
    assert!(text.contains("tried again after 2.0s"), "{text}");
    overloaded.wait_applied(1).await;
    play.act().await?;
    let health = live(&play.informer).await;
    assert_eq!(health.relists.failure, 0, "what was seen is still good");
    play.end().await
}

async fn a_server_that_fails_is_asked_again(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    let proxy = &play.stage.proxy;
    for (answer, part) in [
        (Answer::internal_error(), "etcdserver: request timed out"),
        (Answer::unavailable(), "currently unable to handle the request"),
        (Answer::html(503), "503"),
    ] {
        let fault = proxy.on(Match::any()).answer(answer);
        proxy.cut_open(Match::watch()).await;
        health(&play.informer, part, |health| health.state.to_string().contains(part)).await;
        let text = stale(&play.informer, Cause::Server).await;
        assert!(text.contains(part), "{text}");
        fault.remove();
        live(&play.informer).await;
    }
    play.act().await?;
    play.end().await
}

async fn a_page_for_people_is_not_taken_for_an_answer(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    play.stage.proxy.on(Match::any()).answer(Answer::html(200));
    play.stage.proxy.cut_open(Match::watch()).await;
    play.act().await?;
    let text = stale(&play.informer, Cause::NotAnApi).await;
    assert!(text.contains("<!DOCTYPE html>") && text.contains("proxies"), "{text}");
    assert_eq!(play.informer.list().count(), 3, "what is known stays");
    play.end().await
}

async fn what_was_lost_is_found_with_the_next_list(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    let proxy = &play.stage.proxy;
    let lost = proxy.on_all(Match::watch()).drop_events(Events::all());
    play.act().await?;
    lost.wait_events(3).await;
    assert_eq!(play.told[0].told().added, 3);
    proxy.heal();
    proxy.on_open(Match::watch()).error_event(Answer::gone());
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    for told in &play.told {
        let goes = format!("{}/goes", play.stage.place.namespace);
        assert_eq!(told.told().found_missing, [goes], "nobody said that it was deleted");
    }
    play.end().await
}

async fn an_error_inside_a_watch_is_followed_by_a_list_and_only_what_is_missing_is_deleted(
    place: Place,
) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    let proxy = &play.stage.proxy;
    let lost = proxy.on_all(Match::watch()).drop_events(Events::deleted());
    play.stage.remove("goes").await?;
    lost.wait_events(1).await;
    proxy.heal();
    proxy.on_open(Match::watch()).error_event(Answer::internal_error());
    let health = health(&play.informer, "listed", |health| health.relists.failure == 1).await;
    assert_eq!((health.relists.first, health.relists.expired), (1, 0));
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    for told in &play.told {
        let told = told.told();
        assert_eq!(told.found_missing, [format!("{}/goes", play.stage.place.namespace)]);
        assert_eq!((told.added, told.updated, told.deleted), (3, 0, 1), "{told:#?}");
    }
    play.stage.config_maps(&["comes"], "1").await?;
    play.end().await
}

async fn what_comes_twice_or_late_is_told_once(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    let proxy = &play.stage.proxy;
    // What follows on the same watch shows that the second ones have come.
    let doubled = proxy.on_all(Match::watch()).duplicate_events(Events::all());
    play.act().await?;
    doubled.wait_events(3).await;
    doubled.remove();
    let late = proxy.on_all(Match::watch()).reorder_events(Events::modified().at_most(1));
    play.stage.change("changes", "3").await?;
    play.stage.change("changes", "4").await?;
    late.wait_events(1).await;
    proxy.heal();
    play.stage.change("stays", "2").await?;
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    assert_eq!(live(&play.informer).await.watches, 1);
    let stats = play.informer.stats();
    assert_eq!((stats.added, stats.updated, stats.deleted), (4, 3, 1), "{stats:#?}");
    assert!(stats.cache.ignored_stale >= 1, "{stats:#?}");
    play.end().await
}

async fn a_list_whose_end_does_not_come_is_read_in_another_way(place: Place) -> Result<()> {
    let play = Play::prepare(place, short().patience(Duration::from_secs(1))).await?;
    let lost = play.stage.proxy.on(Match::watch()).swallow_initial_events_end();
    play.factory.start();
    ready(&play.factory, &play.told).await?;
    assert!(lost.events() >= 1);
    assert!(play.stage.proxy.requests().count(Request::is_list) >= 1);
    assert_eq!(live(&play.informer).await.relists.first, 1);
    play.act().await?;
    play.end().await
}

async fn a_server_that_knows_no_streaming_lists_is_asked_for_plain_ones_and_not_again_for_a_stream(
    place: Place,
) -> Result<()> {
    let play = Play::prepare(place, short()).await?;
    let proxy = &play.stage.proxy;
    let refused = proxy.on(Match::watch().send_initial_events(true)).answer(Answer::no_streaming_lists());
    play.factory.start();
    ready(&play.factory, &play.told).await?;
    play.act().await?;
    proxy.on_open(Match::watch()).error_event(Answer::gone());
    health(&play.informer, "listed twice", |health| health.relists.expired == 1).await;
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    live(&play.informer).await;
    assert_eq!(refused.applied(), 1, "it is asked for that once");
    play.end().await
}

async fn a_server_that_is_gone_is_waited_for(place: Place) -> Result<()> {
    let play = Play::begin(place, short()).await?;
    play.stage.proxy.go_down().await;
    play.act().await?;
    let text = stale(&play.informer, Cause::Refused).await;
    assert!(text.contains("connection refused") && text.contains("check that the API server runs"), "{text}");
    let stopped = play.stage.proxy.requests().last_id();
    play.stage.proxy.accept_connections().await;
    eventually("it is asked again", SOON, async || {
        (play.stage.proxy.requests().last_id() > stopped).then_some(())
    })
    .await;
    play.end().await
}

#[tokio::test]
async fn a_watch_whose_bookmarks_stop_is_opened_again() -> Result<()> {
    let often = Duration::from_millis(100);
    let place = Place::of(Server::builder().bookmark_interval(often).start().await?).await?;
    let play = Play::begin(place, short().bookmarks(often)).await?;
    eventually("the interval is known", SOON, async || (play.informer.stats().bookmarks >= 3).then_some(()))
        .await;
    assert_eq!(play.informer.health().watches, 1, "as long as they come, it is left alone");
    assert!(play.informer.health().last_bookmark.is_some());
    let silence = play.stage.proxy.on_all(Match::watch()).swallow_bookmarks();
    let health = health(&play.informer, "opened again", |health| health.watches >= 2).await;
    assert_eq!((health.relists.first, health.relists.failure), (1, 0), "nothing was missed");
    silence.remove();
    play.act().await?;
    play.end().await
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_version_is_listed_anew() -> Result<()> {
    let play = Play::begin(Place::embedded().await?, short().watch(Duration::from_secs(1))).await?;
    let resumed = Match::watch().send_initial_events(false);
    let held = play.stage.proxy.on(resumed).once().stall();
    held.wait_applied(1).await;
    play.act().await?;
    play.stage.place.server().unwrap().compact();
    held.release();
    let health = health(&play.informer, "listed", |health| health.relists.expired == 1).await;
    assert_eq!((health.relists.first, health.relists.failure), (1, 0));
    play.end().await
}
