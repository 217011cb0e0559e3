//! `watch -o`: what each form prints, on both servers.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Place, blocking, on_both};
use crate::running::text;
use crate::watch::{of, record};

on_both! {
    words_instead_of_signs_are_kubectls_events,
    a_wide_table_has_the_columns_that_others_leave_out,
    json_is_one_record_per_line,
    yaml_is_one_document_per_record,
    names_are_marked,
    the_diff_shows_what_changed_by_path_and_containers_by_name,
    a_template_makes_a_line_of_each_object_after_the_mark_of_what_happened,
    with_events_a_template_is_given_what_kubectl_gives_it,
    what_a_template_makes_nothing_of_is_a_note_and_the_watch_goes_on,
}

async fn words_instead_of_signs_are_kubectls_events(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let mut watch = place.start("watch cm -l app=test --output-watch-events");
    assert_eq!(blocking(|| watch.line("NAME")), "EVENT      NAME   DATA   AGE\n");
    assert!(blocking(|| watch.line("one")).starts_with("ADDED      one    0      "));
    place.delete(&place.path("configmaps/one")).await?;
    assert!(blocking(|| watch.line("one")).starts_with("DELETED    one    0      "));
    Ok(())
}

async fn a_wide_table_has_the_columns_that_others_leave_out(place: Place) -> Result<()> {
    let labels = json!({ "app": "web" });
    let container = |image: &str| json!([{ "name": "main", "image": image }]);
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": container("nginx:1") } },
        },
    });
    place.post(&place.path("apps/v1/deployments"), &deployment).await?;
    let mut watch = place.start("watch deploy/web -o wide");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words(&blocking(|| watch.line(""))),
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    );
    let row = blocking(|| watch.line("web"));
    assert!(row.starts_with("  web ") && row.ends_with(" main         nginx:1   app=web\n"), "{row:?}");
    let change = json!({ "spec": { "template": { "spec": { "containers": container("nginx:2") } } } });
    place.merge(&place.path("apps/v1/deployments/web"), &change).await?;
    let row = blocking(|| watch.line("nginx:2"));
    assert!(row.starts_with("~ web ") && row.ends_with(" main         nginx:2   app=web\n"), "{row:?}");
    Ok(())
}

async fn json_is_one_record_per_line(place: Place) -> Result<()> {
    place.config_map("one", json!({ "a": "1" })).await?;
    let mut watch = place.start("watch cm -l app=test -o json");
    let first = blocking(|| record(&mut watch, |_| true));
    assert_eq!((&first["type"], &first["initial"]), (&json!("ADDED"), &json!(true)));
    let object = &first["object"];
    assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert_eq!(object["metadata"].get("managedFields"), None);
    let synced = blocking(|| record(&mut watch, |_| true));
    assert_eq!(synced, json!({ "type": "SYNCED", "resource": "configmaps", "objects": 1 }));
    place.config_map("two", json!({})).await?;
    let added = blocking(|| record(&mut watch, |_| true));
    assert!(of("ADDED", "two")(&added) && added.get("initial").is_none(), "{added}");
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "a": "2" } })).await?;
    let modified = blocking(|| record(&mut watch, of("MODIFIED", "one")));
    assert_eq!(modified["object"]["data"]["a"], "2");
    place.delete(&place.path("configmaps/one")).await?;
    let deleted = blocking(|| record(&mut watch, of("DELETED", "one")));
    assert_eq!(deleted["object"]["data"]["a"], "2", "the last known state");
    assert_eq!(blocking(|| watch.terminate()), Some(130));
    Ok(())
}

async fn yaml_is_one_document_per_record(place: Place) -> Result<()> {
    place.config_map("one", json!({ "a": "1" })).await?;
    let mut watch = place.start("watch cm -l app=test -o yaml --show-managed-fields");
    assert_eq!(blocking(|| watch.line("")), "---\n");
    assert_eq!(blocking(|| watch.line("initial")), "initial: true\n");
    blocking(|| watch.line("    managedFields:"));
    assert_eq!(blocking(|| watch.line("type: ADDED")), "type: ADDED\n");
    assert_eq!(blocking(|| watch.line("")), "---\n");
    blocking(|| watch.line("type: SYNCED"));
    Ok(())
}

async fn names_are_marked(place: Place) -> Result<()> {
    place.config_map("one", json!({})).await?;
    let mut watch = place.start("watch cm -l app=test -o name");
    assert_eq!(blocking(|| watch.line("")), "  configmap/one\n");
    place.config_map("two", json!({})).await?;
    assert_eq!(blocking(|| watch.line("")), "+ configmap/two\n");
    place.merge(&place.path("configmaps/two"), &json!({ "data": { "a": "2" } })).await?;
    assert_eq!(blocking(|| watch.line("")), "~ configmap/two\n");
    place.delete(&place.path("configmaps/two")).await?;
    assert_eq!(blocking(|| watch.line("")), "- configmap/two\n");
    Ok(())
}

async fn the_diff_shows_what_changed_by_path_and_containers_by_name(place: Place) -> Result<()> {
    let labels = json!({ "app": "web" });
    let containers = |web: &str| json!([{ "name": "side", "image": "envoy:1" }, { "name": "web", "image": format!("nginx:{web}") }]);
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers("1") } },
        },
    });
    place.post(&place.path("apps/v1/deployments"), &deployment).await?;
    let mut watch = place.start("watch deploy -o diff --field-selector metadata.name=web");
    let begun = blocking(|| watch.note(""));
    assert_eq!(begun, "deployments.v1.apps that are there: 1; what changes follows\n");
    let change =
        json!({ "spec": { "replicas": 5, "template": { "spec": { "containers": containers("2") } } } });
    place.merge(&place.path("apps/v1/deployments/web"), &change).await?;
    let head = blocking(|| watch.line("replicas"));
    assert!(head.contains(&format!("~ Deployment {}/web replicas 3→5", place.namespace)), "{head}");
    let line = blocking(|| watch.line("/spec/replicas"));
    assert_eq!(line, "    ~ /spec/replicas: 3 → 5\n");
    let line = blocking(|| watch.line("/image"));
    assert_eq!(line, "    ~ /spec/template/spec/containers/web/image: \"nginx:1\" → \"nginx:2\"\n");
    place.delete(&place.path("apps/v1/deployments/web")).await?;
    let gone = blocking(|| watch.line(" - Deployment"));
    assert!(gone.contains("deleted"), "{gone}");
    Ok(())
}

async fn a_template_makes_a_line_of_each_object_after_the_mark_of_what_happened(place: Place) -> Result<()> {
    place.config_map("one", json!({ "a": "1" })).await?;
    let mut watch = place.start("watch cm -l app=test -o jsonpath={.metadata.name}={.data.a}");
    assert_eq!(blocking(|| watch.line("")), "  one=1\n");
    place.config_map("two", json!({ "a": "5" })).await?;
    assert_eq!(blocking(|| watch.line("")), "+ two=5\n");
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "a": "2" } })).await?;
    assert_eq!(blocking(|| watch.line("")), "~ one=2\n");
    place.delete(&place.path("configmaps/one")).await?;
    assert_eq!(blocking(|| watch.line("")), "- one=2\n");
    Ok(())
}

async fn with_events_a_template_is_given_what_kubectl_gives_it(place: Place) -> Result<()> {
    place.config_map("one", json!({ "a": "1" })).await?;
    let template = "jsonpath={.type}:{.object.kind}/{.object.metadata.name}={.object.data.a}";
    let mut watch = place.start(&format!("watch cm -l app=test --output-watch-events -o {template}"));
    assert_eq!(blocking(|| watch.line("")), "ADDED:ConfigMap/one=1\n");
    place.merge(&place.path("configmaps/one"), &json!({ "data": { "a": "2" } })).await?;
    assert_eq!(blocking(|| watch.line("")), "MODIFIED:ConfigMap/one=2\n");
    place.delete(&place.path("configmaps/one")).await?;
    assert_eq!(blocking(|| watch.line("")), "DELETED:ConfigMap/one=2\n");
    Ok(())
}

async fn what_a_template_makes_nothing_of_is_a_note_and_the_watch_goes_on(place: Place) -> Result<()> {
    let ports = |ports: &[u16]| -> Value {
        let port = |port: &u16| json!({ "name": format!("p{port}"), "port": port });
        json!({ "ports": ports.iter().map(port).collect::<Vec<_>>() })
    };
    for (name, spec) in [("one", ports(&[80])), ("two", ports(&[80, 81]))] {
        let service = json!({ "metadata": { "name": name, "labels": { "app": "test" } }, "spec": spec });
        place.post(&place.path("services"), &service).await?;
    }
    for (form, begin, second) in [
        ("jsonpath={.spec.ports[1].port}", "  81\n", 91),
        ("custom-columns=PORT:.spec.ports[1].port", "  PORT\n", 92),
    ] {
        place.merge(&place.path("services/one"), &json!({ "spec": ports(&[80]) })).await?;
        let mut watch = place.start(&format!("watch svc -l app=test -o {form}"));
        let note = blocking(|| watch.note("out of bounds"));
        let option = form.split('=').next().unwrap();
        let expected =
            format!("not shown: Service {}/one (ADDED): -o {option}: array index", place.namespace);
        assert!(note.starts_with(&expected), "{note}");
        assert_eq!(blocking(|| watch.line("")), begin);
        // As soon as it can be shown, it is.
        place.merge(&place.path("services/one"), &json!({ "spec": ports(&[80, second]) })).await?;
        assert_eq!(blocking(|| watch.line("~ ")), format!("~ {second}\n"));
        place.merge(&place.path("services/one"), &json!({ "spec": ports(&[80]) })).await?;
        let note = blocking(|| watch.note("not shown"));
        assert!(note.contains("/one (MODIFIED): "), "{note}");
        watch.signal("-INT");
        assert_eq!(blocking(|| watch.code()), Some(130));
    }
    // What is read once fails, as kubectl does.
    let output = place.run("get svc one -o jsonpath={.spec.ports[1].port}").await;
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    Ok(())
}
