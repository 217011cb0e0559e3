//! Names, as people write them.

use super::*;

/// Two documents as a server gives them, with what is special about some.
fn discovery() -> Discovery {
    let resource = |plural: &str, singular: &str, kind: &str, short: &str, verbs: &str| {
        format!(
            r#"{{"resource":"{plural}","singularResource":"{singular}","responseKind":{{"group":"","version":"","kind":"{kind}"}},
            "scope":"Namespaced","shortNames":[{short}],"verbs":[{verbs}]}}"#
        )
    };
    let all = r#""create","list","watch""#;
    let group = |name: &str, versions: &[(&str, Vec<String>)]| {
        let versions: Vec<String> = versions
            .iter()
            .map(|(version, resources)| {
                format!(
                    r#"{{"version":"{version}","resources":[{}],"freshness":"Current"}}"#,
                    resources.join(",")
                )
            })
            .collect();
        format!(r#"{{"metadata":{{"name":"{name}"}},"versions":[{}]}}"#, versions.join(","))
    };
    let document = |groups: &[String]| {
        format!(
            r#"{{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{}]}}"#,
            groups.join(",")
        )
    };
    let core = document(&[group(
        "",
        &[(
            "v1",
            vec![
                resource("pods", "pod", "Pod", r#""po""#, all),
                resource("events", "event", "Event", r#""ev""#, all),
                resource("bindings", "binding", "Binding", "", r#""create""#),
                // Without a singular name, as older servers have it.
                resource("replicationcontrollers", "", "ReplicationController", r#""rc""#, all),
            ],
        )],
    )]);
    let apis = document(&[
        group(
            "apps",
            &[("v1", vec![resource("deployments", "deployment", "Deployment", r#""deploy""#, all)])],
        ),
        group("events.k8s.io", &[("v1", vec![resource("events", "event", "Event", r#""ev""#, all)])]),
        group(
            "stable.example.com",
            &[
                ("v2", vec![resource("crontabs", "crontab", "CronTab", r#""ct""#, r#""get""#)]),
                ("v1", vec![resource("crontabs", "crontab", "CronTab", r#""ct""#, all)]),
                // Its short name is another one's plural.
                ("v1beta1", vec![resource("olds", "old", "Old", r#""pods""#, all)]),
            ],
        ),
        group(
            "metrics.k8s.io",
            &[("v1beta1", vec![resource("pods", "", "PodMetrics", "", r#""get","list""#)])],
        ),
        r#"{"metadata":{"name":"down.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}"#
            .to_owned(),
    ]);
    Discovery::of(&[&core, &apis])
}

fn found(name: &str) -> String {
    match find(&discovery(), name) {
        Ok(resource) => format!("{} {}", resource.root(), resource.plural),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_catalog_lists_what_can_be_watched_in_the_version_that_has_it() {
    let catalog = Catalog { discovery: Arc::new(discovery()) };
    let all: Vec<String> = catalog.resources().iter().map(ToString::to_string).collect();
    for name in
        ["pods", "events", "deployments.v1.apps", "events.v1.events.k8s.io", "crontabs.v1.stable.example.com"]
    {
        assert_eq!(all.iter().filter(|each| *each == name).count(), 1, "{name} in {all:?}");
    }
    assert!(!all.iter().any(|each| each == "bindings"), "{all:?}");
}

#[test]
fn plural_singular_short_name_and_kind_are_the_same() {
    for name in ["deploy", "deployments", "deployment", "Deployment", "DEPLOYMENTS", "Deploy"] {
        assert_eq!(found(name), "/apis/apps/v1 deployments", "{name}");
    }
    for name in ["rc", "replicationcontroller", "ReplicationController"] {
        assert_eq!(found(name), "/api/v1 replicationcontrollers", "{name}");
    }
}

#[test]
fn a_group_and_a_version_may_be_said() {
    for name in ["deploy.apps", "deployments.apps", "Deployment.v1.apps", "deployments.v1.apps", "deploy.app"]
    {
        assert_eq!(found(name), "/apis/apps/v1 deployments", "{name}");
    }
    assert_eq!(found("events.events.k8s.io"), "/apis/events.k8s.io/v1 events");
    assert_eq!(found("events.v1.events.k8s.io"), "/apis/events.k8s.io/v1 events");
    assert_eq!(found("pods.v1."), "/api/v1 pods");
    assert_eq!(found("olds.stable.example.com"), "/apis/stable.example.com/v1beta1 olds");
}

#[test]
fn of_several_groups_it_is_the_one_that_the_server_puts_first() {
    assert_eq!(found("events"), "/api/v1 events");
    assert_eq!(found("ev"), "/api/v1 events");
    // A plural name comes before a short one.
    assert_eq!(found("pods"), "/api/v1 pods");
}

#[test]
fn of_several_versions_it_is_the_first_that_can_be_watched() {
    assert_eq!(found("crontabs"), "/apis/stable.example.com/v1 crontabs");
    assert_eq!(
        found("crontabs.v2.stable.example.com"),
        "crontabs.v2.stable.example.com cannot be listed and watched, only: get"
    );
}

#[test]
fn what_cannot_be_watched_is_said_to_be_so() {
    assert_eq!(found("bindings"), "bindings cannot be listed and watched, only: create");
    assert_eq!(
        found("pods.metrics.k8s.io"),
        "pods.v1beta1.metrics.k8s.io cannot be listed and watched, only: get, list"
    );
}

#[test]
fn what_is_not_found_is_told_with_what_was_looked_at_and_what_may_be_meant() {
    let Err(ResolveError::NotFound(error)) = find(&discovery(), "deploymets") else { panic!("it is found") };
    assert_eq!(error.near, ["deployments.apps"]);
    assert_eq!(error.groups.len(), 6);
    assert_eq!(error.unreadable, ["down.example.com/v1: its server does not answer"]);
    assert_eq!(
        error.to_string(),
        "the server has no resource \"deploymets\"; did you mean deployments.apps? Looked at: core, apps, \
         events.k8s.io, stable.example.com, metrics.k8s.io, down.example.com. Could not be read: \
         down.example.com/v1: its server does not answer"
    );
    // Letters that are missing, too many, wrong, or have changed places.
    for (name, near) in [
        ("pdos", "pods"),
        ("pds", "pods"),
        ("popds", "pods"),
        ("podz", "pods"),
        ("deplyomnets", "deployments.apps"),
    ] {
        let Err(ResolveError::NotFound(error)) = find(&discovery(), name) else { panic!("{name} is found") };
        assert!(error.near.iter().any(|found| found == near), "{error}");
    }
    // The group is wrong.
    let Err(ResolveError::NotFound(error)) = find(&discovery(), "deployments.extensions") else {
        panic!("it is found")
    };
    assert_eq!(error.near, ["deployments.apps"]);
    let Err(ResolveError::NotFound(error)) = find(&discovery(), "zebras") else { panic!("it is found") };
    assert!(error.near.is_empty(), "{error}");
}

#[test]
fn odd_names_are_not_found() {
    for name in ["", ".", "..", "...", "pods.", ".apps", "pods.v2.", "pods/status", "ß".repeat(200).as_str()]
    {
        let result = find(&discovery(), name);
        assert!(matches!(result, Err(ResolveError::NotFound(_))) || name == "pods.", "{name}: {result:?}");
    }
}

#[test]
fn words_that_differ_in_few_letters_for_their_length_are_near() {
    for (a, b, expected) in [
        ("pods", "pods", Some(0)),
        ("pds", "pods", Some(1)),
        ("deploymets", "deployments", Some(1)),
        ("sevrices", "services", Some(1)),
        ("po", "no", None),
        ("", "pods", None),
        ("", "", Some(0)),
    ] {
        assert_eq!(distance(a, b), expected, "{a} {b}");
    }
}
