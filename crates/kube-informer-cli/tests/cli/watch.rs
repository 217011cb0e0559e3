//! `watch`, on both servers: what there is, what changes, and what is said while it cannot be seen.

use anyhow::Result;
use kube_informer_apiserver::faults::{Answer, Match, Request};
use serde_json::{Value, json};

use crate::harness::{Place, blocking, on_both};
use crate::running::{Running, pipe_size, run, stuck_pipe, text};

on_both! {
    the_table_begins_as_kubectls_and_marks_what_comes_changes_and_goes,
    several_kinds_are_told_apart,
    without_headers_there_is_none_between_kinds_either,
    columns_that_somebody_chose_have_one_header_for_all_kinds,
    only_what_changes_is_shown_where_that_is_asked_for,
    one_object_is_waited_for,
    it_reconnects_for_ever_and_says_when_it_is_stale,
    it_ends_after_its_time,
    it_ends_when_an_object_meets_what_was_waited_for,
    it_ends_when_an_object_has_the_condition_that_was_waited_for,
    it_ends_when_an_object_comes_that_was_waited_for,
    it_looks_once_where_there_is_no_time,
    that_there_is_nothing_is_said,
    it_is_quiet_when_its_reader_has_seen_enough,
    it_ends_when_its_reader_is_gone_though_nothing_changes,
}

/// The next record of which this is so.
pub(crate) fn record(watch: &mut Running, mut wanted: impl FnMut(&Value) -> bool) -> Value {
    loop {
        let line = watch.line("");
        let record: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if wanted(&record) {
            return record;
        }
    }
}

pub(crate) fn of(kind: &str, name: &str) -> impl Fn(&Value) -> bool {
    move |record| record["type"] == kind && record["object"]["metadata"]["name"] == name
}

async fn the_table_begins_as_kubectls_and_marks_what_comes_changes_and_goes(place: Place) -> Result<()> {
    place.config_map("one", json!({ "a": "1" })).await?;
    let mut watch = place.start("watch cm -l app=test");
    let header = blocking(|| watch.line("NAME"));
    assert_eq!(header, "  NAME   DATA   AGE\n");
    assert!(blocking(|| watch.line("one")).starts_with("  one    1      "));
    place.config_map("another-one", json!({})).await?;
    assert!(blocking(|| watch.line("another-one")).starts_with("+ another-one   0      "));
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "b": "2" } })).await?;
    assert!(
        blocking(|| watch.line("one")).starts_with("~ one           2      "),
        "columns stay where they are"
    );
    place.delete(&place.path("configmaps/one")).await?;
    assert!(blocking(|| watch.line("one")).starts_with("- one           2      "));
    assert_eq!(blocking(|| watch.terminate()), Some(130));
    Ok(())
}

async fn several_kinds_are_told_apart(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let mut watch = place.start("watch cm,secrets -l app=test");
    assert!(blocking(|| watch.line("")).contains("NAME"));
    assert!(blocking(|| watch.line("")).starts_with("  configmap/one   0"));
    let secret = json!({ "metadata": { "name": "two", "labels": { "app": "test" } } });
    place.post(&place.path("secrets"), &secret).await?;
    assert_eq!(blocking(|| watch.line("")), "\n");
    assert!(blocking(|| watch.line("")).starts_with("  NAME         TYPE     DATA   AGE"));
    assert!(blocking(|| watch.line("")).starts_with("+ secret/two   Opaque   0"));
    place.delete(&place.path("configmaps/one")).await?;
    assert_eq!(blocking(|| watch.line("")), "\n");
    assert_eq!(
        blocking(|| watch.line("")),
        "  NAME            DATA   AGE\n",
        "rows stand under their own header"
    );
    assert!(blocking(|| watch.line("")).starts_with("- configmap/one   0"));
    place.config_map("two", json!({})).await?;
    assert!(blocking(|| watch.line("")).starts_with("+ configmap/two   0"), "it is there already");
    Ok(())
}

async fn without_headers_there_is_none_between_kinds_either(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let secret = json!({ "metadata": { "name": "two", "labels": { "app": "test" } } });
    place.post(&place.path("secrets"), &secret).await?;
    let mut watch = place.start("watch cm,secrets -l app=test --no-headers");
    assert!(blocking(|| watch.line("")).starts_with("  configmap/one   0"));
    assert!(blocking(|| watch.line("")).starts_with("  secret/two   Opaque   0"));
    place.delete(&place.path("configmaps/one")).await?;
    assert!(blocking(|| watch.line("")).starts_with("- configmap/one   0"));
    Ok(())
}

async fn columns_that_somebody_chose_have_one_header_for_all_kinds(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let secret = |name: &str| json!({ "metadata": { "name": name, "labels": { "app": "test" } } });
    place.post(&place.path("secrets"), &secret("two")).await?;
    let columns = "custom-columns=KIND:.kind,NAME:.metadata.name";
    let mut watch = place.start(&format!("watch cm,secrets -l app=test -o {columns}"));
    let mut next = || blocking(|| watch.line(""));
    assert_eq!(next(), "  KIND        NAME\n");
    assert_eq!(next(), "  ConfigMap   one\n");
    assert_eq!(next(), "  Secret      two\n");
    place.config_map("three", json!({})).await?;
    assert_eq!(next(), "+ ConfigMap   three\n");
    place.delete(&place.path("secrets/two")).await?;
    assert_eq!(next(), "- Secret      two\n");
    place.delete(&place.path("configmaps/one")).await?;
    assert_eq!(next(), "- ConfigMap   one\n");
    Ok(())
}

async fn only_what_changes_is_shown_where_that_is_asked_for(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let mut watch = place.start("watch cm -l app=test -o json --watch-only");
    assert_eq!(blocking(|| record(&mut watch, |_| true))["type"], "SYNCED");
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "a": "2" } })).await?;
    assert!(of("MODIFIED", "one")(&blocking(|| record(&mut watch, |_| true))));
    Ok(())
}

async fn one_object_is_waited_for(place: Place) -> Result<()> {
    place.config_map("other", json!({})).await?;
    let mut watch = place.start("watch cm/late --no-headers");
    let said = blocking(|| watch.note(""));
    assert_eq!(
        said,
        format!("configmaps \"late\" not found in {}: it is shown when it comes\n", place.namespace)
    );
    place.config_map("late", json!({})).await?;
    assert!(blocking(|| watch.line("")).starts_with("+ late   0"));
    Ok(())
}

async fn it_reconnects_for_ever_and_says_when_it_is_stale(place: Place) -> Result<()> {
    let (proxy, file) = place.proxy().await?;
    for name in ["one", "two"] {
        place.config_map(name, json!({ "a": "1" })).await?;
    }
    let args = ["watch", "cm", "-l", "app=test", "-o", "json", "-n", &place.namespace, "--kubeconfig", &file];
    let mut watch = Running::start(&args);
    blocking(|| record(&mut watch, |record| record["type"] == "SYNCED"));
    proxy.go_down().await;
    let stale = blocking(|| record(&mut watch, |_| true));
    assert_eq!((&stale["type"], &stale["resource"]), (&json!("STALE"), &json!("configmaps")), "{stale}");
    let message = stale["message"].as_str().unwrap();
    let is_closed = message == "the server has closed the connection";
    assert!(is_closed || message.contains("check that the API server runs"), "{stale}");
    // What happens meanwhile is not lost.
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "a": "2" } })).await?;
    place.delete(&place.path("configmaps/two")).await?;
    place.config_map("three", json!({})).await?;
    proxy.accept_connections().await;
    let (mut seen, mut is_live) = (Vec::new(), false);
    while seen.len() < 3 || !is_live {
        let record = blocking(|| record(&mut watch, |record| record["type"] != "STALE"));
        if record["type"] == "LIVE" {
            is_live = true;
        } else {
            seen.push(
                format!("{} {}", record["type"], record["object"]["metadata"]["name"]).replace('"', ""),
            );
        }
    }
    seen.sort();
    assert_eq!(seen, ["ADDED three", "DELETED two", "MODIFIED one"]);
    watch.signal("-INT");
    assert_eq!(blocking(|| watch.code()), Some(130));
    let said = blocking(|| watch.said());
    assert!(said.contains("stale since ") && said.contains("live again: configmaps"), "{said}");
    assert!(!said.contains("WARN"), "it is said once: {said}");
    Ok(())
}

async fn it_ends_after_its_time(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let output = place.run("watch cm -l app=test -o name --timeout 0m1s").await;
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(text(&output.stdout), "  configmap/one\n");
    Ok(())
}

async fn it_ends_when_an_object_meets_what_was_waited_for(place: Place) -> Result<()> {
    place.config_map("one", json!({ "phase": "Pending" })).await?;
    let until = "jsonpath={.data.phase}=Running";
    let mut watch = place.start(&format!("watch cm/one -o name --until {until}"));
    assert_eq!(blocking(|| watch.line("")), "  configmap/one\n");
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "phase": "Running" } })).await?;
    assert_eq!(blocking(|| watch.line("")), "~ configmap/one\n");
    assert_eq!(blocking(|| watch.code()), Some(0));
    let said = blocking(|| watch.said());
    assert_eq!(said, format!("ConfigMap {}/one: {until} is met\n", place.namespace));
    // It is met already, or never will be.
    assert_eq!(place.run(&format!("watch cm/one -o name --until {until}")).await.status.code(), Some(0));
    assert_eq!(place.run("watch cm/none -o name --until delete").await.status.code(), Some(0));
    let late = place.run("watch cm/one --until jsonpath={.data.phase}=Done --timeout 1s").await;
    assert_eq!(late.status.code(), Some(1));
    let said = text(&late.stderr);
    for part in ["was not met within 1s", "Running", "give it longer with --timeout"] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
    // Leaving the selection is none.
    let mut watch = place.start("watch cm -l stage=last -o name --until delete");
    let labelled = |value: Value| json!({ "metadata": { "labels": { "stage": value } } });
    blocking(|| watch.note("no configmaps"));
    place.merge(&place.path("configmaps/one"), &labelled(json!("last"))).await?;
    assert_eq!(blocking(|| watch.line("")), "+ configmap/one\n");
    place.merge(&place.path("configmaps/one"), &labelled(json!(null))).await?;
    assert_eq!(blocking(|| watch.line("")), "- configmap/one\n");
    place.merge(&place.path("configmaps/one"), &labelled(json!("last"))).await?;
    assert_eq!(blocking(|| watch.line("")), "+ configmap/one\n", "it goes on");
    watch.signal("-INT");
    assert_eq!(blocking(|| watch.code()), Some(130));
    let mut watch = place.start("watch cm -l stage=last -o name --until delete");
    blocking(|| watch.line("one"));
    let mut other = place.start("watch cm/one -o name --until delete");
    blocking(|| other.line("one"));
    place.delete(&place.path("configmaps/one")).await?;
    for mut watch in [watch, other] {
        assert_eq!(blocking(|| watch.line("")), "- configmap/one\n");
        assert_eq!(blocking(|| watch.code()), Some(0));
    }
    Ok(())
}

async fn it_ends_when_an_object_has_the_condition_that_was_waited_for(place: Place) -> Result<()> {
    place.pod("web", &json!({ "app": "web" })).await?;
    let mut one = place.start("watch pod/web -o name --until condition=Ready");
    let mut chosen = place.start("watch pods -l app=web -o json --until condition=ready=true");
    blocking(|| one.line("pod/web"));
    blocking(|| record(&mut chosen, |record| record["type"] == "SYNCED"));
    // A condition that is another is none.
    place.ready("web", "False").await?;
    assert_eq!(blocking(|| one.line("")), "~ pod/web\n");
    place.ready("web", "True").await?;
    assert_eq!(blocking(|| one.line("")), "~ pod/web\n");
    for (mut watch, condition) in [(one, "condition=Ready"), (chosen, "condition=ready=true")] {
        assert_eq!(blocking(|| watch.code()), Some(0), "{condition}");
        let said = blocking(|| watch.said());
        assert_eq!(said, format!("Pod {}/web: {condition} is met\n", place.namespace));
    }
    let late = place.run("watch pod/web --until condition=Ready=False --timeout 0").await;
    assert_eq!(late.status.code(), Some(1));
    let said = text(&late.stderr);
    assert!(
        said.contains("condition=Ready=False is not met; seen: Pod") && said.contains("Played"),
        "{said}"
    );
    Ok(())
}

async fn it_ends_when_an_object_comes_that_was_waited_for(place: Place) -> Result<()> {
    let mut named = place.start("watch cm/late -o name --until create");
    blocking(|| named.note("configmaps \"late\" not found"));
    let mut chosen = place.start("watch cm -l app=test -o name --until create");
    blocking(|| chosen.note("no configmaps"));
    place.config_map("late", json!({})).await?;
    for mut watch in [named, chosen] {
        assert_eq!(blocking(|| watch.line("")), "+ configmap/late\n");
        assert_eq!(blocking(|| watch.code()), Some(0));
        let said = blocking(|| watch.said());
        assert_eq!(said, format!("ConfigMap {}/late: create is met\n", place.namespace));
    }
    // What is there has come.
    let there = place.run("watch cm/late -o name --until create").await;
    assert_eq!((there.status.code(), text(&there.stdout)), (Some(0), "  configmap/late\n".to_owned()));
    Ok(())
}

async fn it_looks_once_where_there_is_no_time(place: Place) -> Result<()> {
    place.config_map("one", json!({ "phase": "Running" })).await?;
    for more in ["", " --until jsonpath={.data.phase}=Running"] {
        let output = place.run(&format!("watch cm/one -o name --timeout 0{more}")).await;
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "  configmap/one\n");
    }
    let output = place.run("watch cm/one -o name --timeout 0s --until jsonpath={.data.phase}=Done").await;
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "  configmap/one\n".to_owned()));
    let said = text(&output.stderr);
    assert!(said.contains("jsonpath={.data.phase}=Done is not met; seen: ConfigMap"), "{said}");
    Ok(())
}

async fn that_there_is_nothing_is_said(place: Place) -> Result<()> {
    for (args, expected) in [
        ("watch pods", format!("no pods in {}: what comes is shown\n", place.namespace)),
        (
            "watch pods,svc -o name",
            format!("no pods, services in {}: what comes is shown\n", place.namespace),
        ),
        ("watch pods -o json", String::new()),
        ("watch pods --watch-only", String::new()),
        (
            "watch pod/web",
            format!("pods \"web\" not found in {}: it is shown when it comes\n", place.namespace),
        ),
    ] {
        let output = place.run(&format!("{args} --timeout 0")).await;
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), expected), "{args}");
    }
    Ok(())
}

async fn it_is_quiet_when_its_reader_has_seen_enough(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let mut watch = place.start("watch cm -l app=test -o name");
    blocking(|| watch.line("one"));
    watch.close_stdout();
    // It finds out as soon as it has something to say.
    place.config_map("two", json!({})).await?;
    assert_eq!(blocking(|| watch.code()), Some(0));
    assert_eq!(blocking(|| watch.said()), "");
    Ok(())
}

async fn it_ends_when_its_reader_is_gone_though_nothing_changes(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    for form in ["name", "json", "diff"] {
        let mut watch = place.start(&format!("watch cm -l app=test -o {form} --until delete"));
        if form != "diff" {
            blocking(|| watch.line("one"));
        }
        watch.close_stdout();
        assert_eq!(blocking(|| watch.code()), Some(0), "{form}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_at_ctrl_c_though_its_output_is_stuck() -> Result<()> {
    let place = Place::embedded().await?;
    place.config_map("one", json!({})).await?;
    let (reader, writer) = stuck_pipe(0);
    let mut command = place.command("watch cm -o name");
    command.stdout(writer);
    let mut watch = Running::of(command);
    let watches = place.server().unwrap().faults().requests();
    watches.wait_for(Request::is_watch).await?;
    watch.signal("-INT");
    assert_eq!(blocking(|| watch.code()), Some(130));
    drop(reader);
    Ok(())
}

/// Nobody interrupts what has come to its end, and only waits for its reader: the first Ctrl-C there is one too many for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_nothing_more_to_do_but_a_stuck_output_ends_at_ctrl_c() -> Result<()> {
    let place = Place::embedded().await?;
    for number in 0..120 {
        place.config_map(&format!("a-name-that-takes-its-part-of-a-page-{number:03}"), json!({})).await?;
    }
    for args in ["get cm -o name", "watch cm -o name --timeout 0", "wait cm --all --for create"] {
        // The last page of a pipe: what does not fit into that is printed once everything is known.
        let (reader, writer) = stuck_pipe(4096);
        let mut command = place.command(args);
        command.stdout(writer);
        let mut running = Running::of(command);
        blocking(|| {
            running.until_it_is("the pipe is full", || {
                rustix::io::ioctl_fionread(&reader)
                    .is_ok_and(|bytes| bytes > (pipe_size(&reader) - 100) as u64)
            });
            running.signal("-INT");
            assert_eq!(running.code(), Some(130), "{args}");
        });
        drop(reader);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_too_slow_is_told_of_the_gap_and_knows_what_there_is_afterwards() -> Result<()> {
    let place = Place::embedded().await?;
    for name in ["a", "b", "gone"] {
        place.config_map(name, json!({ "n": "0" })).await?;
    }
    let mut watch = place.start("watch cm -l app=test -o json");
    blocking(|| record(&mut watch, |record| record["type"] == "SYNCED"));
    // More than a pipe, the room for output and the registration hold.
    let filler = "x".repeat(2000);
    for number in 1..=6000 {
        let name = if number % 2 == 0 { "a" } else { "b" };
        let patch = json!({ "data": { "n": number.to_string(), "filler": filler } });
        place.merge(&place.path(&format!("configmaps/{name}")), &patch).await?;
        if number == 2000 {
            // Nobody hears of this but by what is missing afterwards.
            place.delete(&place.path("configmaps/gone")).await?;
        }
    }
    place.config_map("last", json!({})).await?;
    let (mut gaps, mut missed) = (0, 0);
    // What was told before.
    let mut known = std::collections::BTreeMap::from([("gone".to_owned(), "0".to_owned())]);
    blocking(|| {
        record(&mut watch, |record| {
            match record["type"].as_str() {
                Some("GAP") => {
                    assert_eq!(record["resource"], "configmaps", "{record}");
                    gaps += 1;
                    missed += record["missed"].as_u64().unwrap();
                }
                Some("DELETED") => {
                    known.remove(record["object"]["metadata"]["name"].as_str().unwrap());
                }
                _ => {
                    let name = record["object"]["metadata"]["name"].as_str().unwrap().to_owned();
                    known.insert(name, record["object"]["data"]["n"].as_str().unwrap_or_default().to_owned());
                }
            }
            known.contains_key("last")
        })
    });
    assert!(gaps >= 1 && missed > 0, "{gaps} gaps, {missed} changes missed");
    assert_eq!((known["a"].as_str(), known["b"].as_str()), ("6000", "5999"));
    assert!(!known.contains_key("gone"));
    assert_eq!(blocking(|| watch.terminate()), Some(130));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_read_the_definition_is_told_why_there_are_few_columns() -> Result<()> {
    let place = Place::embedded().await?;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                "additionalPrinterColumns": [{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }],
            }],
        },
    });
    place.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
    let path = format!("/apis/example.com/v1/namespaces/{}/widgets", place.namespace);
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "a" }, "spec": { "size": 3 },
    });
    place.post(&path, &object).await?;
    assert!(place.ok("get widgets").await.starts_with("NAME   SIZE\na      3\n"));
    let forbidden = Match::get().path_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/");
    let faults = place.server().unwrap().faults();
    faults.on(forbidden).answer(Answer::forbidden());
    // The server knows them.
    assert_eq!(place.ok("get widgets").await, "NAME   SIZE\na      3\n");
    // What it says of each change, nobody is asked for.
    let noted = |said: &str| {
        assert!(said.starts_with("note: widgets.v1.example.com are shown by name and age"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    let watched = place.run("watch widgets --timeout 0").await;
    assert_eq!(watched.status.code(), Some(0));
    assert!(text(&watched.stdout).starts_with("  NAME   AGE\n  a      "), "{}", text(&watched.stdout));
    noted(&text(&watched.stderr));
    // Some servers make no tables.
    let tables = Match::any().path_contains("/widgets").when(|request| request.accept.contains("as=Table"));
    let plain = json!({ "kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {}, "items": [] });
    faults.on(tables).answer(Answer::raw(200, "application/json", plain.to_string()));
    let output = place.run("get widgets").await;
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("NAME   AGE\na      "), "{}", text(&output.stdout));
    noted(&text(&output.stderr));
    Ok(())
}

#[test]
fn the_help_says_how_it_is_read() {
    for (command, words) in [
        ("watch", &["--until", "--watch-only", "-o", "GAP", "STALE", "Examples"][..]),
        ("get", &["--show-managed-fields", "--no-headers", "--as", "--request-timeout", "Examples"]),
    ] {
        let output = run(&[command, "--help"]);
        assert!(output.status.success());
        let help = text(&output.stdout);
        for word in words {
            assert!(help.contains(word), "{help}\nlacks {word}");
        }
    }
}
