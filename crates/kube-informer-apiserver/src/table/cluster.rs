//! Nodes, namespaces, events, configuration, access rules and the rest of the cluster's furniture.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::view::View;
use super::{AGE, Col, Layout, NAME, flag, integer, text, wide};

pub(super) fn layout(group: &str, plural: &str) -> Option<Layout> {
    Some(match (group, plural) {
        ("", "nodes") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Status"),
                    text("Roles"),
                    AGE,
                    text("Version"),
                    wide("Internal-IP"),
                    wide("External-IP"),
                    wide("OS-Image"),
                    wide("Kernel-Version"),
                    wide("Container-Runtime"),
                ]
            },
            cells: node,
        },
        ("" | "events.k8s.io", "events") => Layout {
            columns: const {
                &[
                    text("Last Seen"),
                    text("Type"),
                    text("Reason"),
                    text("Object"),
                    wide("Subobject"),
                    wide("Source"),
                    text("Message"),
                    wide("First Seen"),
                    wide("Count"),
                    Col { priority: 1, ..NAME },
                ]
            },
            cells: event,
        },
        ("", "namespaces") => Layout {
            columns: const { &[NAME, text("Status"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.text("/status/phase")), json!(o.age())],
        },
        ("", "configmaps") => Layout {
            columns: const { &[NAME, text("Data"), AGE] },
            cells: |o| {
                let entries = o.count("/data") + o.count("/binaryData");
                vec![json!(o.name()), json!(entries), json!(o.age())]
            },
        },
        ("", "secrets") => Layout {
            columns: const { &[NAME, text("Type"), text("Data"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.text("/type")), json!(o.count("/data")), json!(o.age())],
        },
        ("", "serviceaccounts")
        | ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates")
        | ("scheduling.k8s.io", "workloads") => {
            Layout { columns: const { &[NAME, AGE] }, cells: |o| vec![json!(o.name()), json!(o.age())] }
        }
        ("", "resourcequotas") => {
            Layout { columns: const { &[NAME, text("Request"), text("Limit"), AGE] }, cells: resource_quota }
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => Layout {
            columns: const { &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")] },
            cells: role_binding,
        },
        ("coordination.k8s.io", "leases") => Layout {
            columns: const { &[NAME, text("Holder"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.text("/spec/holderIdentity")), json!(o.age())],
        },
        ("coordination.k8s.io", "leasecandidates") => Layout {
            columns: const { &[NAME, text("LeaseName"), text("BinaryVersion"), text("EmulationVersion"), AGE] },
            cells: |o| {
                let fields = ["/spec/leaseName", "/spec/binaryVersion", "/spec/emulationVersion"];
                let mut cells = vec![json!(o.name())];
                cells.extend(fields.iter().map(|field| json!(o.text(field))));
                cells.push(json!(o.age()));
                cells
            },
        },
        ("scheduling.k8s.io", "priorityclasses") => Layout {
            columns: const { &[NAME, integer("Value"), flag("Global-Default"), AGE, text("PreemptionPolicy")] },
            cells: |o| {
                vec![
                    json!(o.name()),
                    json!(o.int("/value")),
                    json!(o.flag("/globalDefault")),
                    json!(o.age()),
                    json!(o.text("/preemptionPolicy")),
                ]
            },
        },
        ("node.k8s.io", "runtimeclasses") => Layout {
            columns: const { &[NAME, text("Handler"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.text("/handler")), json!(o.age())],
        },
        _ => return None,
    })
}

fn node(o: &View<'_>) -> Vec<Value> {
    let mut status = match o.each("/status/conditions").rfind(|c| c.text("/type") == "Ready") {
        None => "Unknown",
        Some(ready) if ready.text("/status") == "True" => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if o.flag("/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let labels = o.map("/metadata/labels").into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let address = |kind: &str| {
        let found = o.each("/status/addresses").find(|a| a.text("/type") == kind);
        found.map_or("<none>", |a| a.text("/address"))
    };
    let info = |field: &str| o.text_or(field, "<unknown>");
    let mut kernel = info("/status/nodeInfo/kernelVersion").to_owned();
    let architecture = o.text("/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        json!(o.name()),
        json!(status),
        json!(if roles.is_empty() { "<none>" } else { roles.as_str() }),
        json!(o.age()),
        json!(o.text("/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(info("/status/nodeInfo/osImage")),
        json!(kernel),
        json!(info("/status/nodeInfo/containerRuntimeVersion")),
    ]
}

/// Events have two sets of field names, by API group.
fn event(o: &View<'_>) -> Vec<Value> {
    let either = |one: &str, other: &str| if o.has(one) { o.text(one) } else { o.text(other) };
    let time = |one: &str, other: &str| if o.has(one) { o.time(one) } else { o.time(other) };
    let since = |time: Option<jiff::Timestamp>| {
        time.map_or_else(|| "<unknown>".to_owned(), |time| o.since_time(time))
    };
    let first = time("/firstTimestamp", "/deprecatedFirstTimestamp").or_else(|| o.time("/eventTime"));
    let mut last = time("/lastTimestamp", "/deprecatedLastTimestamp").or(first);
    let mut count = o.int("/count").max(o.int("/deprecatedCount")).max(1);
    if o.has("/series") {
        last = o.time("/series/lastObservedTime");
        count = o.int("/series/count");
    }
    let about = |field: &str| either(&format!("/involvedObject/{field}"), &format!("/regarding/{field}"));
    let mut target = about("kind").to_lowercase();
    if !about("name").is_empty() {
        target = format!("{target}/{}", about("name"));
    }
    let first_filled = |names: [&str; 3]| {
        names.into_iter().map(|name| o.text(name)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let mut source =
        first_filled(["/source/component", "/deprecatedSource/component", "/reportingComponent"]);
    if source.is_empty() {
        source = o.text("/reportingController");
    }
    let host = first_filled(["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    let source = if host.is_empty() { source.to_owned() } else { format!("{source}, {host}") };
    vec![
        json!(since(last)),
        json!(o.text("/type")),
        json!(o.text("/reason")),
        json!(target),
        json!(about("fieldPath")),
        json!(source),
        json!(either("/message", "/note").trim()),
        json!(since(first)),
        json!(count),
        json!(o.name()),
    ]
}

fn resource_quota(o: &View<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let used = o.map("/status/used");
    for (name, hard) in o.map("/status/hard").into_iter().flatten() {
        let shown = |value: Option<&Value>| match value {
            None => "0".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let line = format!("{name}: {}/{}", shown(used.and_then(|u| u.get(name))), shown(Some(hard)));
        if name.starts_with("limits.") { limits.push(line) } else { requests.push(line) }
    }
    vec![json!(o.name()), json!(requests.join(", ")), json!(limits.join(", ")), json!(o.age())]
}

fn role_binding(o: &View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let all: Vec<String> = o
            .each("/subjects")
            .filter(|s| s.text("/kind") == kind)
            .map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", s.text("/namespace"), s.text("/name")),
                _ => s.text("/name").to_owned(),
            })
            .collect();
        all.join(", ")
    };
    vec![
        json!(o.name()),
        json!(format!("{}/{}", o.text("/roleRef/kind"), o.text("/roleRef/name"))),
        json!(o.age()),
        json!(subjects("User")),
        json!(subjects("Group")),
        json!(subjects("ServiceAccount")),
    ]
}
