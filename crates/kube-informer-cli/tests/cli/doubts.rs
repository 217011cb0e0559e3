//! Leaving a selection is no deletion: `wait` and `watch` ask the server whether it is one, and hold up nothing meanwhile.

use anyhow::Result;
use kube_informer_apiserver::faults::{Answer, Match, Request};
use kube_informer_testbed::eventually::eventually;
use serde_json::json;

use crate::harness::{Place, SOON, blocking};

/// The question whether a config map is there.
fn question(name: &str) -> Match {
    Match::list().path_contains("/configmaps").field_selector(format!("metadata.name={name}"))
}

/// Whether it is asked by name.
fn is_of(name: &str) -> impl Fn(&Request) -> bool {
    let selector = format!("metadata.name={name}");
    move |request| request.param("fieldSelector").as_deref() == Some(&*selector)
}

async fn labelled(place: &Place, name: &str, app: &str) -> Result<()> {
    let labels = json!({ "metadata": { "labels": { "app": app } } });
    place.merge(&place.path(&format!("configmaps/{name}")), &labels).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_is_not_lost_and_nothing_stands_still_where_nobody_says_whether_it_is_one() -> Result<()> {
    let place = Place::embedded().await?;
    for name in ["one", "two"] {
        place.config_map(name, json!({})).await?;
    }
    let faults = place.server().unwrap().faults();
    for fault in ["stalled", "unavailable"] {
        let fault = match fault {
            "stalled" => faults.on(question("one")).stall(),
            _ => faults.on(question("one")).answer(Answer::unavailable()),
        };
        let mut watch = place.start("watch cm -l app=test -o name --until delete");
        blocking(|| watch.line("two"));
        place.delete(&place.path("configmaps/one")).await?;
        assert_eq!(blocking(|| watch.line("")), "- configmap/one\n");
        // What changes meanwhile is told.
        place.merge(&place.path("configmaps/two"), &json!({ "data": { "f": format!("{fault:?}") } })).await?;
        assert_eq!(blocking(|| watch.line("")), "~ configmap/two\n");
        eventually("it is asked", SOON, async || (fault.applied() > 0).then_some(())).await;
        assert!(watch.child.try_wait()?.is_none(), "nobody has said that it is gone");
        // As soon as somebody answers, it is known.
        faults.heal();
        assert_eq!(blocking(|| watch.code()), Some(0));
        let said = blocking(|| watch.said());
        assert_eq!(said, format!("ConfigMap {}/one: delete is met\n", place.namespace));
        place.config_map("one", json!({})).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_get_no_answer_hold_up_no_others() -> Result<()> {
    let names: Vec<String> = (0..10).map(|number| format!("map-{number}")).collect();
    for (args, seen) in [
        ("wait cm -l app=test --for delete --any --timeout 100s -vv", "what there is was seen"),
        ("watch cm -l app=test -o diff --until delete", "that are there: 11"),
    ] {
        let place = Place::embedded().await?;
        for name in &names {
            place.config_map(name, json!({})).await?;
        }
        place.config_map("last", json!({})).await?;
        let faults = place.server().unwrap().faults();
        let mut command = place.start(args);
        blocking(|| command.note(seen));
        for name in &names {
            let fault = faults.on(question(name)).answer(Answer::unavailable());
            place.delete(&place.path(&format!("configmaps/{name}"))).await?;
            eventually("it is asked", SOON, async || (fault.applied() > 0).then_some(())).await;
        }
        place.delete(&place.path("configmaps/last")).await?;
        assert_eq!(blocking(|| command.code()), Some(0), "{args}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_has_the_time_that_one_gives_it() -> Result<()> {
    for (args, seen) in [
        (
            "wait cm -l app=test --for delete --timeout 100s -vv --request-timeout 1s",
            "what there is was seen",
        ),
        ("watch cm -l app=test -o diff --until delete --request-timeout 1s", "that are there: 1"),
    ] {
        let place = Place::embedded().await?;
        place.config_map("one", json!({})).await?;
        let silence = place.server().unwrap().faults().on(question("one")).stall();
        let mut command = place.start(args);
        blocking(|| command.note(seen));
        place.delete(&place.path("configmaps/one")).await?;
        // With half a minute for each, three of them would be too late.
        eventually("it is asked again", SOON, async || (silence.applied() >= 3).then_some(())).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_left_a_selection_says_nothing_about_what_was_not_read_yet() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    let kept = json!({ "metadata": { "name": "kept", "labels": { "app": "test" } } });
    place.post(&place.path("secrets"), &kept).await?;
    let faults = place.server().unwrap().faults();
    let of = |path: &str| Match::any().path_contains(path);
    let [services, _secrets] = ["/services", "/secrets"].map(|path| faults.on(of(path)).stall());
    let mut wait = place.start("wait cm,services,secrets -l app=test --for delete --timeout 100s -vvv");
    let requests = faults.requests().within(SOON);
    let mut listed = |what: &str| while !blocking(|| wait.note("everything was listed")).contains(what) {};
    listed("configmaps");
    labelled(&place, "one", "other").await?;
    requests.wait_for(|request| request.is_watch() && is_of("one")(request)).await?;
    place.delete(&place.path("configmaps/one")).await?;
    // All but the secrets: there are as many readings as kinds that have come to their end.
    services.release();
    services.remove();
    listed("services");
    faults.on(of("/services")).answer(Answer::unavailable());
    faults.cut_open(&of("/services"));
    // It waits still.
    blocking(|| wait.note("services: still waiting, but what is seen may be old"));
    faults.heal();
    blocking(|| wait.note("what there is was seen"));
    place.delete(&place.path("secrets/kept")).await?;
    for line in ["configmap/one condition met\n", "secret/kept condition met\n"] {
        assert_eq!(blocking(|| wait.line("")), line);
    }
    assert_eq!(blocking(|| wait.code()), Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_a_selection_again_and_again_is_watched_by_name_once() -> Result<()> {
    let place = Place::embedded().await?;
    for name in ["one", "two"] {
        place.config_map(name, json!({})).await?;
    }
    let requests = place.server().unwrap().faults().requests().within(SOON);
    let mut wait = place.start("wait cm -l app=test --for delete --timeout 100s -vv");
    blocking(|| wait.note("what there is was seen"));
    labelled(&place, "one", "other").await?;
    requests.wait_for(|request| request.is_watch() && is_of("one")(request)).await?;
    for app in ["test", "other", "test", "other"] {
        labelled(&place, "one", app).await?;
    }
    // When it is asked for this one, the other was heard of.
    place.delete(&place.path("configmaps/two")).await?;
    requests.wait_for(is_of("two")).await?;
    place.delete(&place.path("configmaps/one")).await?;
    assert_eq!(blocking(|| wait.code()), Some(0));
    let [asked, watched] = [false, true]
        .map(|watch| requests.count(|request| is_of("one")(request) && request.is_watch() == watch));
    assert_eq!((asked, watched), (1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_can_be_watched_by_name_is_an_error_that_says_what_to_do() -> Result<()> {
    let place = Place::embedded().await?;
    let names: Vec<String> = (0..257).map(|number| format!("map-{number}")).collect();
    for name in &names {
        place.config_map(name, json!({})).await?;
    }
    let mut wait = place.start("wait cm -l app=test --for delete --timeout 100s -vv");
    blocking(|| wait.note("what there is was seen"));
    for name in &names {
        labelled(&place, name, "other").await?;
    }
    let error = blocking(|| wait.note("error: "));
    let expected = "error: more than 256 configmaps that are waited for are not chosen any more";
    assert!(error.starts_with(expected) && error.contains("--all"), "{error}");
    assert_eq!(blocking(|| wait.code()), Some(1));
    Ok(())
}
