//! What `watch` shows of what it did not see: objects that were found missing, and gaps, in every form.

use anyhow::Result;
use kube_informer_apiserver::faults::{Answer, Match};
use serde_json::{Value, json};

use crate::harness::{Place, blocking};
use crate::terminal::start;
use crate::watch::{of, record};

/// Watches of config maps, by streams that begin with everything and by those that go on.
fn watches() -> Match {
    Match::any_watch().path_contains("/configmaps")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_found_missing_is_deleted_in_every_form_and_diffs_and_records_say_how() -> Result<()>
{
    let place = Place::embedded().await?;
    place.config_map("stays", json!({})).await?;
    let faults = place.server().unwrap().faults();
    for (form, begin, expected) in [
        ("table", "  stays ", "- one     1 "),
        ("table --output-watch-events", "ADDED      stays ", "DELETED    one     1 "),
        ("name", "  configmap/stays", "- configmap/one\n"),
        ("jsonpath={.metadata.name}={.data.a}", "  stays=", "- one=last\n"),
        ("diff", "configmaps that are there: 2", " - ConfigMap test/one deleted, found missing"),
        ("json", "\"SYNCED\"", "\"reason\":\"found-missing\""),
        ("yaml", "type: SYNCED", "reason: found-missing\n"),
    ] {
        place.config_map("one", json!({ "a": "last" })).await?;
        let mut watch = place.start(&format!("watch cm -l app=test -o {form}"));
        blocking(|| if form == "diff" { watch.note(begin) } else { watch.line(begin) });
        // The watch tells nothing of it, and cannot go on: everything is read again.
        faults.on_open(watches()).stall();
        let expired = faults.on(watches().without_param("sendInitialEvents")).once().answer(Answer::gone());
        place.delete(&place.path("configmaps/one")).await?;
        faults.cut_open(&watches());
        let line = blocking(|| watch.line(expected));
        if form == "json" {
            let record: Value = serde_json::from_str(&line)?;
            assert!(of("DELETED", "one")(&record), "{record}");
            assert_eq!(record["object"]["data"]["a"], "last", "the last known state: {record}");
        }
        assert_eq!(expired.applied(), 1, "{form}");
        faults.heal();
        // Of a deletion that is seen, they do not say it.
        place.config_map("two", json!({ "a": "last" })).await?;
        place.delete(&place.path("configmaps/two")).await?;
        match form {
            "diff" => {
                let seen = blocking(|| watch.line(" - ConfigMap test/two "));
                assert!(seen.contains(" deleted") && !seen.contains("missing"), "{seen}");
            }
            "json" => {
                let seen = blocking(|| record(&mut watch, of("DELETED", "two")));
                assert_eq!(seen.get("reason"), None, "{seen}");
            }
            "yaml" => {
                // Of the one before, whose reason comes first.
                blocking(|| watch.line("type: DELETED"));
                let mut line = String::new();
                while line != "type: DELETED\n" {
                    line = blocking(|| watch.line(""));
                    assert!(!line.starts_with("reason:"), "{line}");
                }
            }
            // The others have only the sign, or the word, that it is gone.
            _ => drop(blocking(|| watch.line(&expected.replace("one", "two")))),
        }
        watch.signal("-INT");
        assert_eq!(blocking(|| watch.code()), Some(130), "{form}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gap_is_a_line_and_then_comes_what_is_different() -> Result<()> {
    let place = Place::embedded().await?;
    for name in ["a", "b"] {
        place.config_map(name, json!({ "n": "0" })).await?;
    }
    // On terminals, where stdout and stderr are in order.
    let columns = "custom-columns=N:.data.n,NAME:.metadata.name,F:.data.f";
    let mut table = start(place.command(&format!("watch cm -l app=test -o {columns} --color never")));
    let mut diff = start(place.command("watch cm -l app=test -o diff --color never"));
    blocking(|| table.line("  0     b "));
    blocking(|| diff.line("configmaps that are there: 2"));
    // More than a terminal, the room for output and the registration hold.
    let filler = "x".repeat(500);
    for number in 1..=6000 {
        let name = if number % 2 == 0 { "a" } else { "b" };
        let [n, f] = [number.to_string(), format!("{number}{filler}")];
        let data = json!({ "n": n, "f": f.repeat(4), "g": f, "h": f, "i": f });
        place.merge(&place.path(&format!("configmaps/{name}")), &json!({ "data": data })).await?;
    }
    place.config_map("last", json!({ "n": "1" })).await?;
    for (watch, marks) in [
        (&mut table, ["~ 6000   a ", "~ 5999   b ", "+ 1      last "]),
        (&mut diff, ["→ \"6000\"", "→ \"5999\"", " + ConfigMap test/last "]),
    ] {
        let gap = blocking(|| watch.line("gap: "));
        let (missed, what) = gap.trim().strip_prefix("gap: ").unwrap().split_once(' ').unwrap();
        assert!(missed.parse::<u64>().unwrap() > 0, "{gap}");
        assert!(what.starts_with("changes of configmaps were not shown, "), "{gap}");
        assert!(what.ends_with("; what is different now follows"), "{gap}");
        // What came before is left out; of each object, the last there is.
        let mut left = marks.to_vec();
        while !left.is_empty() {
            let line = blocking(|| watch.line(""));
            left.retain(|mark| !line.contains(mark));
        }
    }
    Ok(())
}
