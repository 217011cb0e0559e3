//! How far a long reading is: a bar where the server says how many objects there are, and what that question may cost.

use anyhow::Result;
use kube_informer_apiserver::faults::{Answer, Match, Request};
use kube_informer_testbed::eventually::eventually;
use serde_json::{Value, json};

use crate::harness::{Place, SOON, blocking, on_both};
use crate::running::Running;
use crate::terminal::{start, start_sized};

on_both! {
    it_is_a_bar_where_the_server_says_how_many_there_are,
}

/// What an informer asks for: all of them, and what changes.
fn reading() -> Match {
    Match::any_watch().path_contains("/configmaps")
}

/// How many there are.
fn is_question(request: &Request) -> bool {
    request.is_list() && request.param("limit").as_deref() == Some("1")
}

fn question() -> Match {
    Match::list().path_contains("/configmaps").when(is_question)
}

async fn four(place: &Place) -> Result<()> {
    for name in ["a", "b", "c", "d"] {
        place.config_map(name, json!({})).await?;
    }
    Ok(())
}

/// What a command has printed that has come to its end.
#[track_caller]
fn ended(terminal: &mut Running) -> String {
    blocking(|| {
        assert_eq!(terminal.code(), Some(0));
        terminal.screen()
    })
}

async fn it_is_a_bar_where_the_server_says_how_many_there_are(place: Place) -> Result<()> {
    four(&place).await?;
    let list = place.get(&place.path("configmaps")).await?;
    let total = list["items"].as_array().unwrap().len();
    let shown = format!("{:>3}%, 2 of {total} objects, ", 200 / total);
    for command in ["get cm -o name", "watch cm -o name --timeout 0", "wait cm --all --for create"] {
        let (proxy, file) = place.proxy().await?;
        let stalled = proxy.on(reading()).stall_after_events(2);
        let args: Vec<&str> = command.split(' ').collect();
        let mut terminal = start(place.command_through(&file, &args));
        let seen = blocking(|| terminal.shows(&shown));
        assert!(seen.contains("\r\x1b[Kreading configmaps: [#"), "{seen:?}");
        let asked = proxy.requests().matching(is_question);
        assert_eq!(asked.len(), 1, "{command}: it is asked once: {asked:?}");
        let [asked] = &asked[..] else { unreachable!() };
        assert_eq!((asked.path.as_str(), asked.query.as_str()), (&*place.path("configmaps"), "limit=1"));
        assert!(asked.accept.starts_with("application/json;as=PartialObjectMetadataList;"), "{asked:?}");
        stalled.release();
        let seen = ended(&mut terminal);
        // The line is gone, and what was asked for is there.
        let (_, after) = seen.rsplit_once("\r\x1b[K").unwrap();
        assert!(after.contains("configmap/a") && after.contains("configmap/d"), "{command}: {seen:?}");
        assert!(!after.contains('%') && !after.contains("reading"), "{command}: {seen:?}");
        assert_eq!(proxy.requests().count(is_question), 1, "{command}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_resource_and_namespace_is_counted_once() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    place.post("/api/v1/namespaces", &json!({ "metadata": { "name": "other" } })).await?;
    let one = json!({ "metadata": { "name": "one" } });
    place.post("/api/v1/namespaces/other/configmaps", &one).await?;
    place.post("/api/v1/namespaces/other/secrets", &one).await?;
    let faults = place.server().unwrap().faults();
    let read = Match::any_watch().path_prefix("/api/v1/namespaces/");
    let stalled = faults.on(read).stall_after_events(1);
    let mut terminal = start(place.command("get cm,secrets -n test -n other -o name"));
    // One of each of the lists that have something.
    blocking(|| terminal.shows("reading configmaps, secrets: [###############---------------]  50%, 3 of 6"));
    let mut asked: Vec<String> =
        faults.requests().matching(is_question).into_iter().map(|request| request.path).collect();
    asked.sort();
    assert_eq!(
        asked,
        [
            "/api/v1/namespaces/other/configmaps",
            "/api/v1/namespaces/other/secrets",
            "/api/v1/namespaces/test/configmaps",
            "/api/v1/namespaces/test/secrets",
        ]
    );
    stalled.release();
    ended(&mut terminal);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_not_answered_holds_up_nobody() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    let faults = place.server().unwrap().faults();
    let without_count = json!({ "metadata": { "continue": "x" }, "items": [{}] });
    let raw = |body: String| Answer::raw(200, "application/json", body);
    for (odd, answer) in [
        ("forbidden", Some(Answer::forbidden())),
        ("broken", Some(Answer::internal_error())),
        ("a page", Some(Answer::html(200))),
        ("no JSON", Some(raw("{".to_owned()))),
        ("no count", Some(raw(without_count.to_string()))),
        ("too much", Some(raw(json!({ "items": [{}, {}], "more": "x".repeat(3 << 20) }).to_string()))),
        ("nothing", None),
    ] {
        let asked = match answer {
            Some(answer) => faults.on(question()).answer(answer),
            None => faults.on(question()).stall(),
        };
        let stalled = faults.on(reading()).stall_after_events(2);
        let mut terminal = start(place.command("get cm -o name"));
        eventually(odd, SOON, async || (asked.applied() == 1).then_some(())).await;
        blocking(|| terminal.shows("reading configmaps: 2 objects, "));
        // Where there is none, nobody waits for it: it comes to its end, and there was none.
        stalled.release();
        let seen = ended(&mut terminal);
        assert!(seen.ends_with("configmap/a\r\nconfigmap/b\r\nconfigmap/c\r\nconfigmap/d\r\n"), "{seen:?}");
        assert!(!seen.contains('%') && !seen.contains("error"), "{odd}: {seen:?}");
        assert_eq!(asked.applied(), 1, "{odd}: it is not asked again");
        faults.heal();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_chosen_or_named_is_not_counted_beforehand() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    let faults = place.server().unwrap().faults();
    for what in ["cm -l app=test", "cm --field-selector metadata.name!=x", "cm a b"] {
        let stalled = faults.on(reading()).stall();
        let mut terminal = start(place.command(&format!("get {what} -o name")));
        // It is written anew: what there was to ask was asked.
        blocking(|| terminal.shows(")\r\x1b[Kreading configmaps: 0 objects"));
        stalled.release();
        ended(&mut terminal);
        assert_eq!(faults.requests().count(is_question), 0, "{what}");
        faults.heal();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_asked_where_nobody_sees_it() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    let faults = place.server().unwrap().faults();
    let stalled = faults.on(reading()).stall();
    let mut dumb = place.command("get cm -o name");
    dumb.env("TERM", "dumb");
    let (mut piped, mut dumb) = (place.start("get cm -o name"), start(dumb));
    eventually("both read", SOON, async || (stalled.applied() == 2).then_some(())).await;
    // Who began later is shown how far it is: so both of them have waited long enough to ask.
    let mut terminal = start(place.command("get cm -o name"));
    blocking(|| terminal.shows("  0%, 0 of 4 objects"));
    assert_eq!(faults.requests().count(is_question), 1, "the third");
    stalled.release();
    let all = "configmap/a\nconfigmap/b\nconfigmap/c\nconfigmap/d\n";
    assert_eq!(ended(&mut piped), all);
    assert_eq!(blocking(|| piped.said()), "");
    assert_eq!(ended(&mut dumb).replace('\r', ""), all);
    ended(&mut terminal);
    assert_eq!(faults.requests().count(is_question), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_there_was_to_come_is_counted() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    let faults = place.server().unwrap().faults();
    // One was there when it was asked, three when it was read.
    let answer = Answer::raw(200, "application/json", json!({ "metadata": {}, "items": [{}] }).to_string());
    let asked = faults.on(question()).answer(answer);
    let stalled = faults.on(reading()).stall_after_events(3);
    let mut terminal = start(place.command("get cm -o name"));
    eventually("it is asked", SOON, async || (asked.applied() == 1).then_some(())).await;
    blocking(|| terminal.shows(")\r\x1b[Kreading configmaps: 3 objects"));
    stalled.release();
    let seen = ended(&mut terminal);
    assert!(!seen.contains("3 of 1 objects"), "{seen:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_again_does_not_make_it_look_further_than_it_is() -> Result<()> {
    let place = Place::embedded().await?;
    // So large that each is told of by itself when it came.
    for name in ["a", "b", "c", "d"] {
        place.config_map(name, json!({ "filler": "x".repeat(600_000) })).await?;
    }
    let faults = place.server().unwrap().faults();
    let _stalled = faults.on(reading()).stall_after_events(2);
    // What it does after that, without a word, as nothing is wrong with it.
    let list = Match::list().path_contains("/configmaps").when(|request| !is_question(request));
    let stalled = faults.on(list).stall_inside_object(2);
    let mut terminal = start(place.command("watch cm -o jsonpath={.metadata.name} --until create"));
    blocking(|| terminal.shows(" 50%, 2 of 4 objects"));
    faults.cut_open(&reading());
    blocking(|| terminal.shows("reading configmaps: 4 objects"));
    stalled.release();
    let seen = ended(&mut terminal);
    assert!(!seen.contains("4 of 4"), "{seen:?}");
    assert!(!seen.contains("stale"), "nothing was wrong: {seen:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_meanwhile_has_a_line_of_its_own() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    let faults = place.server().unwrap().faults();
    let _stalled = faults.on(reading()).stall_after_events(2);
    let mut terminal = start_sized(place.command("watch cm -o name"), 60);
    blocking(|| terminal.shows(" 50%, 2 of 4 objects"));
    faults.on(Match::any().path_contains("/configmaps")).answer(Answer::unavailable());
    faults.cut_open(&reading());
    let seen = blocking(|| terminal.shows("stale since"));
    let (before, _) = seen.split_once("stale since").unwrap();
    let before = before.strip_suffix("\x1b[1;33m").unwrap_or(before);
    assert!(before.ends_with("\r\x1b[K"), "{seen:?}");
    let rows = before.split("\r\x1b[K").map(|row| row.chars().count());
    assert!(rows.max() < Some(60), "{seen:?}");
    Ok(())
}

/// What somebody else's server says of a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_limit_is_believed_all_the_same() -> Result<()> {
    let place = Place::embedded().await?;
    four(&place).await?;
    let faults = place.server().unwrap().faults();
    let all: Vec<Value> = (0..4).map(|_| json!({ "metadata": {} })).collect();
    let answer = Answer::raw(200, "application/json", json!({ "metadata": {}, "items": all }).to_string());
    faults.on(question()).answer(answer);
    let _stalled = faults.on(reading()).stall_after_events(1);
    let mut terminal = start(place.command("get cm -o name"));
    blocking(|| terminal.shows(" 25%, 1 of 4 objects"));
    Ok(())
}
