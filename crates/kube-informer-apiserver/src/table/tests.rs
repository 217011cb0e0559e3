use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn resource(group: &str, plural: &str) -> Resource {
    crate::kinds::test_resource(group, "v1", "", plural)
}

fn now() -> Timestamp {
    "2030-01-01T01:00:00Z".parse().unwrap()
}

fn options() -> Options {
    Options { include: IncludeObject::Metadata, headers: true, version: MetaVersion::V1, now: now() }
}

fn pod(spec: &Value, status: &Value) -> Value {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "c"}, {"name": "d"}]);
    json!({"metadata": {"name": "p", "creationTimestamp": "2030-01-01T00:00:00Z"}, "spec": spec, "status": status})
}

/// Ready, status and restarts.
fn summary(pod: &Value) -> (String, String, String) {
    let cells = row(&resource("", "pods"), pod, None, now());
    let cell = |i: usize| cells[i].as_str().unwrap().to_owned();
    (cell(1), cell(2), cell(3))
}

fn triple(ready: &str, status: &str, restarts: &str) -> (String, String, String) {
    (ready.to_owned(), status.to_owned(), restarts.to_owned())
}

#[test]
fn durations_have_two_or_three_figures() {
    for (seconds, want) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86_400, "8d"),
        (729 * 86_400, "729d"),
        (730 * 86_400, "2y"),
        (731 * 86_400, "2y1d"),
        (9 * 365 * 86_400, "9y"),
    ] {
        assert_eq!(human_duration(SignedDuration::from_secs(seconds)), want, "{seconds}");
    }
}

#[test]
fn a_pods_status_is_one_word() {
    let none = json!({});
    let running = json!({"running": {}});
    let container =
        |name: &str, state: &Value, ready: bool| json!({"name": name, "state": state, "ready": ready});
    let ended = |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});

    let plain = pod(&none, &json!({"phase": "Pending"}));
    assert_eq!(summary(&plain), triple("0/2", "Pending", "0"));

    let evicted = pod(&none, &json!({"phase": "Failed", "reason": "Evicted"}));
    assert_eq!(summary(&evicted), triple("0/2", "Evicted", "0"));

    let mut crashing = container("c", &waiting("CrashLoopBackOff"), false);
    crashing["restartCount"] = json!(5);
    crashing["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": "2030-01-01T00:55:00Z"}});
    let status = json!({"phase": "Running", "containerStatuses": [crashing, container("d", &running, true)]});
    assert_eq!(summary(&pod(&none, &status)), triple("1/2", "CrashLoopBackOff", "5 (5m ago)"));

    let half = json!([container("c", &ended(0, "Completed"), false), container("d", &running, true)]);
    let mut status = json!({"phase": "Running", "containerStatuses": half});
    assert_eq!(summary(&pod(&none, &status)), triple("1/2", "NotReady", "0"));
    status["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    assert_eq!(summary(&pod(&none, &status)), triple("1/2", "Running", "0"));

    let failed = json!([container("c", &ended(0, "Completed"), false), container("d", &ended(3, ""), false)]);
    let status = json!({"phase": "Failed", "containerStatuses": failed});
    assert_eq!(summary(&pod(&none, &status)), triple("0/2", "ExitCode:3", "0"));

    let gated =
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]});
    assert_eq!(summary(&pod(&none, &gated)), triple("0/2", "SchedulingGated", "0"));
}

#[test]
fn a_pod_that_initializes_says_how_far_it_is() {
    let two = json!({"initContainers": [{"name": "i"}, {"name": "j"}]});
    let init = |first: Value, second: Value| {
        let statuses = json!([{"name": "i", "state": first}, {"name": "j", "state": second}]);
        summary(&pod(&two, &json!({"phase": "Pending", "initContainerStatuses": statuses}))).1
    };
    let done = json!({"terminated": {"exitCode": 0}});
    let wait = |reason: &str| json!({"waiting": {"reason": reason}});
    assert_eq!(init(done.clone(), wait("PodInitializing")), "Init:1/2");
    assert_eq!(init(wait("ErrImagePull"), wait("PodInitializing")), "Init:ErrImagePull");
    assert_eq!(init(json!({"terminated": {"exitCode": 2}}), done), "Init:ExitCode:2");
    assert_eq!(init(json!({"terminated": {"exitCode": 1, "signal": 9}}), json!({})), "Init:Signal:9");
}

#[test]
fn sidecars_count_and_finished_init_containers_do_not() {
    let spec = json!({"initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]});
    let status = json!({
        "phase": "Running",
        "initContainerStatuses": [
            {"name": "s", "state": {"running": {}}, "started": true, "ready": true, "restartCount": 4},
            {"name": "i", "state": {"terminated": {"exitCode": 0}}, "restartCount": 7},
        ],
        "containerStatuses": [{"name": "c", "state": {"running": {}}, "ready": true, "restartCount": 1}],
    });
    assert_eq!(summary(&pod(&spec, &status)), triple("2/3", "Running", "5"));
}

#[test]
fn a_pod_that_goes_is_terminating_unless_it_has_finished() {
    let mut leaving = pod(&json!({}), &json!({"phase": "Running"}));
    leaving["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:30:00Z");
    assert_eq!(summary(&leaving).1, "Terminating");
    leaving["status"]["phase"] = json!("Succeeded");
    assert_eq!(summary(&leaving).1, "Succeeded");
    leaving["status"]["reason"] = json!("NodeLost");
    assert_eq!(summary(&leaving).1, "Unknown");
}

#[test]
fn a_table_of_pods_has_wide_columns_and_finished_rows() {
    let done = pod(&json!({"nodeName": "n"}), &json!({"phase": "Succeeded", "podIPs": [{"ip": "1.2.3.4"}]}));
    let list = json!({"resourceVersion": "7", "continue": ""});
    let table = render(&resource("", "pods"), [&done], &list, None, options());
    let columns: Vec<(&str, i64)> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["priority"].as_i64().unwrap()))
        .collect();
    assert_eq!(columns[..3], [("Name", 0), ("Ready", 0), ("Status", 0)]);
    assert_eq!(columns[5..7], [("IP", 1), ("Node", 1)]);
    let row = &table["rows"][0];
    let want = json!(["p", "0/2", "Succeeded", "0", "60m", "1.2.3.4", "n", "<none>", "<none>"]);
    assert_eq!(row["cells"], want);
    assert_eq!(row["conditions"][0]["reason"], "Succeeded");
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"], done["metadata"]);
    assert_eq!((&table["kind"], &table["metadata"]), (&json!("Table"), &json!({"resourceVersion": "7"})));
}

#[test]
fn the_row_holds_as_much_of_the_object_as_was_asked_for() {
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "v"}});
    let object = |include| {
        let options = Options { include, headers: false, ..options() };
        let table = render(&resource("", "configmaps"), [&map], &json!({}), None, options);
        assert_eq!(table["columnDefinitions"], Value::Null);
        table["rows"][0]["object"].clone()
    };
    assert_eq!(object(IncludeObject::None), Value::Null);
    assert_eq!(object(IncludeObject::Object), map);
    assert!(
        IncludeObject::parse("All").unwrap_err().ends_with("must be 'Metadata', 'Object', 'None', or empty")
    );
}

#[test]
fn kinds_without_columns_show_name_and_creation() {
    let roles = resource("rbac.authorization.k8s.io", "roles");
    let role = json!({"metadata": {"name": "r", "creationTimestamp": "2030-01-01T00:00:00Z"}});
    assert_eq!(row(&roles, &role, None, now()), [json!("r"), json!("2030-01-01T00:00:00Z")]);
    let empty = render(&roles, [], &json!({}), None, options());
    assert_eq!(empty["rows"], Value::Null);
    assert_eq!(render(&resource("", "pods"), [], &json!({}), None, options())["rows"], json!([]));
}

#[test]
fn printer_columns_take_the_type_they_declare() {
    let column = |name: &str, kind: &str| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
    };
    let find = |object: &Value| {
        let paths = ["/a", "/n", "/n", "/d", "/m", "/none", "/b", "/a"];
        paths.iter().map(|path| object.pointer(path).cloned()).collect()
    };
    let kinds = ["string", "integer", "string", "date", "string", "string", "boolean", "integer"];
    let custom = CustomColumns { columns: kinds.iter().map(|kind| column("c", kind)).collect(), find: &find };
    let object = json!({
        "metadata": {"name": "w"}, "a": "x", "n": 3.7, "d": "2030-01-01T00:59:00Z", "m": {"k": [1]}, "b": true,
    });
    let cells = row(&resource("ex.io", "widgets"), &object, Some(&custom), now());
    let want = json!(["w", "x", 3, "3.7", "60s", "{\"k\":[1]}", null, true, null]);
    assert_eq!(Value::Array(cells), want);
}

#[test]
fn the_newest_default_storage_class_is_marked_in_lists_only() {
    let class = |name: &str, created: &str| {
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        json!({"metadata": {"name": name, "uid": "u", "annotations": annotations, "creationTimestamp": created}})
    };
    let old = class("old", "2029-01-01T00:00:00Z");
    let new = class("new", "2030-01-01T00:00:00Z");
    let classes = resource("storage.k8s.io", "storageclasses");
    let table = render(&classes, [&old, &new], &json!({}), None, options());
    assert_eq!(
        (&table["rows"][0]["cells"][0], &table["rows"][1]["cells"][0]),
        (&json!("old"), &json!("new (default)"))
    );
    let single = render(&classes, [&new], &new["metadata"], None, options());
    assert_eq!(single["rows"][0]["cells"][0], "new");
}

#[test]
fn services_show_where_they_can_be_reached() {
    let external = |spec: Value, status: Value| {
        let service = json!({"metadata": {"name": "s"}, "spec": spec, "status": status});
        row(&resource("", "services"), &service, None, now())[3..5].to_vec()
    };
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 81, "nodePort": 30081, "protocol": "UDP"}]);
    assert_eq!(
        external(json!({"type": "ClusterIP", "ports": ports}), json!({})),
        [json!("<none>"), json!("80/TCP,81:30081/UDP")]
    );
    assert_eq!(external(json!({"type": "LoadBalancer"}), json!({})), [json!("<pending>"), json!("<none>")]);
    let status = json!({"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "a.example"}]}});
    let spec = json!({"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]});
    assert_eq!(external(spec, status)[0], "2.2.2.2,a.example,9.9.9.9");
}

/// Every kind that has a layout of its own.
const KINDS: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "podtemplates"),
    ("", "services"),
    ("", "endpoints"),
    ("", "nodes"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("", "namespaces"),
    ("", "configmaps"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "resourcequotas"),
    ("", "replicationcontrollers"),
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("apps", "controllerrevisions"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("policy", "poddisruptionbudgets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("discovery.k8s.io", "endpointslices"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "networkpolicies"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("coordination.k8s.io", "leases"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "csidrivers"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("rbac.authorization.k8s.io", "roles"),
];

fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "metadata",
        "name",
        "spec",
        "status",
        "conditions",
        "type",
        "phase",
        "containers",
        "containerStatuses",
        "initContainerStatuses",
        "state",
        "terminated",
        "restartCount",
        "creationTimestamp",
        "ports",
        "subsets",
        "metrics",
        "rules",
        "selector",
        "matchExpressions",
        "addresses",
        "replicas",
        "labels",
        "hard",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["Ready", "True", "2030-01-01T00:00:00Z", "9999-99-99", "é"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_object_has_as_many_cells_as_columns(object in any_json()) {
        for (group, plural) in KINDS {
            let resource = resource(group, plural);
            prop_assert_eq!(
                row(&resource, &object, None, now()).len(),
                columns(&resource, None).len(),
                "{}", plural
            );
        }
    }
}
