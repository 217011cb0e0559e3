//! The API's own machinery: definitions, certificates, admission, priorities, devices.

use serde_json::{Value, json};

use super::view::View;
use super::{AGE, Col, Layout, NAME, integer, text, wide};

pub(super) fn layout(group: &str, plural: &str) -> Option<Layout> {
    Some(match (group, plural) {
        ("certificates.k8s.io", "certificatesigningrequests") => Layout {
            columns: const {
                &[
                    NAME,
                    AGE,
                    text("SignerName"),
                    text("Requestor"),
                    text("RequestedDuration"),
                    text("Condition"),
                ]
            },
            cells: signing_request,
        },
        ("certificates.k8s.io", "podcertificaterequests") => Layout {
            columns: const {
                &[
                    NAME,
                    text("PodName"),
                    text("ServiceAccountName"),
                    text("NodeName"),
                    text("SignerName"),
                    text("State"),
                    text("UnverifiedUserAnnotations"),
                ]
            },
            cells: pod_certificate_request,
        },
        ("certificates.k8s.io", "clustertrustbundles") => Layout {
            columns: const { &[NAME, text("SignerName")] },
            cells: |o| vec![json!(o.name()), json!(o.text_or("/spec/signerName", "<none>"))],
        },
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => Layout {
            columns: const { &[NAME, integer("Webhooks"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.count("/webhooks")), json!(o.age())],
        },
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => Layout {
            columns: const { &[NAME, integer("Validations"), text("ParamKind"), AGE] },
            cells: |o| admission_policy(o, "/spec/validations"),
        },
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => Layout {
            columns: const { &[NAME, integer("Mutations"), text("ParamKind"), AGE] },
            cells: |o| admission_policy(o, "/spec/mutations"),
        },
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings",
        ) => Layout {
            columns: const { &[NAME, text("PolicyName"), text("ParamRef"), AGE] },
            cells: admission_policy_binding,
        },
        ("apiregistration.k8s.io", "apiservices") => {
            Layout { columns: const { &[NAME, text("Service"), text("Available"), AGE] }, cells: api_service }
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Scope"),
                    text("Versions"),
                    Col { kind: "date", ..text("Created At") },
                    wide("Group"),
                    wide("Kind"),
                    wide("ShortNames"),
                    Col { kind: "boolean", ..wide("Established") },
                ]
            },
            cells: definition,
        },
        ("storagemigration.k8s.io", "storageversionmigrations") => Layout {
            columns: const { &[text("Name"), text("Resource"), text("Status")] },
            cells: storage_version_migration,
        },
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => Layout {
            columns: const {
                &[
                    NAME,
                    text("PriorityLevel"),
                    text("MatchingPrecedence"),
                    text("DistinguisherMethod"),
                    AGE,
                    text("MissingPL"),
                ]
            },
            cells: flow_schema,
        },
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Type"),
                    text("NominalConcurrencyShares"),
                    text("Queues"),
                    text("HandSize"),
                    text("QueueLengthLimit"),
                    AGE,
                ]
            },
            cells: priority_level,
        },
        ("resource.k8s.io", "resourceclaims") => Layout {
            columns: const { &[NAME, text("State"), AGE] },
            cells: |o| vec![json!(o.name()), json!(claim_state(o)), json!(o.age())],
        },
        ("resource.k8s.io", "devicetaintrules") => Layout {
            columns: const { &[NAME, text("Key"), text("Value"), text("Effect"), text("TimeAdded"), AGE] },
            cells: |o| {
                let added = "/spec/taint/timeAdded";
                vec![
                    json!(o.name()),
                    json!(o.text("/spec/taint/key")),
                    json!(o.text("/spec/taint/value")),
                    json!(o.text("/spec/taint/effect")),
                    json!(if o.has(added) { o.since(added) } else { String::new() }),
                    json!(o.age()),
                ]
            },
        },
        ("resource.k8s.io", "resourceslices") => Layout {
            columns: const { &[NAME, text("Node"), text("Driver"), text("Pool"), AGE] },
            cells: |o| {
                vec![
                    json!(o.name()),
                    json!(o.text("/spec/nodeName")),
                    json!(o.text("/spec/driver")),
                    json!(o.text("/spec/pool/name")),
                    json!(o.age()),
                ]
            },
        },
        _ => return None,
    })
}

fn signing_request(o: &View<'_>) -> Vec<Value> {
    let has = |kind: &str| o.condition(kind).is_some();
    let mut status = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !o.text("/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let duration = if o.has("/spec/expirationSeconds") {
        super::human_duration(jiff::SignedDuration::from_secs(o.int("/spec/expirationSeconds")))
    } else {
        "<none>".to_owned()
    };
    vec![
        json!(o.name()),
        json!(o.age()),
        json!(o.text_or("/spec/signerName", "<none>")),
        json!(o.text("/spec/username")),
        json!(duration),
        json!(status),
    ]
}

fn admission_policy(o: &View<'_>, rules: &str) -> Vec<Value> {
    let kind = if o.has("/spec/paramKind") {
        format!("{}/{}", o.text("/spec/paramKind/apiVersion"), o.text("/spec/paramKind/kind"))
    } else {
        "<unset>".to_owned()
    };
    vec![json!(o.name()), json!(o.count(rules)), json!(kind), json!(o.age())]
}

fn admission_policy_binding(o: &View<'_>) -> Vec<Value> {
    let name = o.text("/spec/paramRef/name");
    let reference = if !name.is_empty() {
        format!("{}/{name}", o.text_or("/spec/paramRef/namespace", "*"))
    } else if o.has("/spec/paramRef/selector") {
        o.selector_or_none("/spec/paramRef/selector")
    } else {
        "<unset>".to_owned()
    };
    vec![json!(o.name()), json!(o.text("/spec/policyName")), json!(reference), json!(o.age())]
}

fn api_service(o: &View<'_>) -> Vec<Value> {
    let service = if o.has("/spec/service") {
        format!("{}/{}", o.text("/spec/service/namespace"), o.text("/spec/service/name"))
    } else {
        "Local".to_owned()
    };
    let available = o.condition("Available").map_or_else(
        || "Unknown".to_owned(),
        |c| match (c.text("/status"), c.text("/reason")) {
            (status, reason) if status == "True" || reason.is_empty() => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    vec![json!(o.name()), json!(service), json!(available), json!(o.age())]
}

fn flow_schema(o: &View<'_>) -> Vec<Value> {
    vec![
        json!(o.name()),
        json!(o.text("/spec/priorityLevelConfiguration/name")),
        json!(o.int("/spec/matchingPrecedence")),
        json!(o.text_or("/spec/distinguisherMethod/type", "<none>")),
        json!(o.age()),
        json!(o.condition("Dangling").map_or("?", |c| c.text("/status"))),
    ]
}

fn priority_level(o: &View<'_>) -> Vec<Value> {
    let number = |within: &str, field: &str| {
        if o.has(within) { json!(o.int(&format!("{within}/{field}"))) } else { json!("<none>") }
    };
    let queuing = "/spec/limited/limitResponse/queuing";
    vec![
        json!(o.name()),
        json!(o.text("/spec/type")),
        number("/spec/limited", "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        json!(o.age()),
    ]
}

fn claim_state(o: &View<'_>) -> String {
    let mut states = Vec::new();
    if o.deleting() {
        states.push("deleted");
    }
    if o.has("/status/allocation") {
        states.push("allocated");
        if o.count("/status/reservedFor") > 0 {
            states.push("reserved");
        }
    } else if !o.deleting() {
        states.push("pending");
    }
    states.join(",")
}

fn pod_certificate_request(o: &View<'_>) -> Vec<Value> {
    // The last of the conditions that end a request; they exclude each other.
    let ends = ["Issued", "Denied", "Failed"];
    let end = o.each("/status/conditions").map(|c| c.text("/type")).rfind(|kind| ends.contains(kind));
    vec![
        json!(o.name()),
        json!(o.text("/spec/podName")),
        json!(o.text("/spec/serviceAccountName")),
        json!(o.text("/spec/nodeName")),
        json!(o.text("/spec/signerName")),
        json!(end.unwrap_or("Pending")),
        json!(o.labels("/spec/unverifiedUserAnnotations")),
    ]
}

fn definition(o: &View<'_>) -> Vec<Value> {
    let mut versions: Vec<String> = o
        .each("/spec/versions")
        .filter(|v| v.flag("/served"))
        .map(|v| format!("{}{}", v.text("/name"), if v.flag("/storage") { "(storage)" } else { "" }))
        .collect();
    versions.sort();
    vec![
        json!(o.name()),
        json!(o.text("/spec/scope")),
        json!(versions.join(",")),
        json!(o.text("/metadata/creationTimestamp")),
        json!(o.text("/spec/group")),
        json!(o.text("/spec/names/kind")),
        json!(o.strings("/spec/names/shortNames").join(",")),
        json!(o.condition_true("Established")),
    ]
}

fn storage_version_migration(o: &View<'_>) -> Vec<Value> {
    let resource =
        crate::status::qualified(o.text("/spec/resource/group"), o.text("/spec/resource/resource"));
    let known = ["Running", "Failed", "Succeeded"];
    let holding = o.each("/status/conditions").filter(|c| c.text("/status") == "True");
    let status = holding.map(|c| c.text("/type")).rfind(|kind| known.contains(kind));
    vec![json!(o.name()), json!(resource), json!(status.unwrap_or("Unknown"))]
}
