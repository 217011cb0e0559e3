//! Defaults of each kind: its rules, and a function for what depends on other fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Default::{Bool, Empty, Int, One, Text};
use super::{Rule, apply_rules, each, pod, unset, zero};
use crate::fields;
use crate::kinds::Resource;

const DEPLOYMENT: &[Rule] = &[
    unset(&[&["spec!"]], "replicas", Int(1)),
    zero(&[&["spec!"], &["strategy!"]], "type", Text("RollingUpdate")),
    unset(&[&["spec!"]], "revisionHistoryLimit", Int(10)),
    unset(&[&["spec!"]], "progressDeadlineSeconds", Int(600)),
];
const REPLICAS: &[Rule] = &[unset(&[&["spec!"]], "replicas", Int(1))];
const DAEMON_SET: &[Rule] = &[
    zero(&[&["spec!"], &["updateStrategy!"]], "type", Text("RollingUpdate")),
    unset(&[&["spec!"]], "revisionHistoryLimit", Int(10)),
];
const STATEFUL_SET: &[Rule] = &[
    zero(&[&["spec!"]], "podManagementPolicy", Text("OrderedReady")),
    zero(&[&["spec!"], &["persistentVolumeClaimRetentionPolicy!"]], "whenDeleted", Text("Retain")),
    zero(&[&["spec!"], &["persistentVolumeClaimRetentionPolicy!"]], "whenScaled", Text("Retain")),
    unset(&[&["spec!"]], "replicas", Int(1)),
    unset(&[&["spec!"]], "revisionHistoryLimit", Int(10)),
    // Claim templates are whole objects and say so.
    zero(&[&["spec!"], &["volumeClaimTemplates[]"]], "apiVersion", Text("v1")),
    zero(&[&["spec!"], &["volumeClaimTemplates[]"]], "kind", Text("PersistentVolumeClaim")),
    unset(&[&["spec!"], &["volumeClaimTemplates[]"], &["spec!"]], "volumeMode", Text("Filesystem")),
    zero(&[&["spec!"], &["volumeClaimTemplates[]"], &["status!"]], "phase", Text("Pending")),
];
const JOB: &[Rule] = &[
    unset(&[&["spec!"]], "parallelism", Int(1)),
    unset(&[&["spec!"]], "completionMode", Text("NonIndexed")),
    unset(&[&["spec!"]], "suspend", Bool(false)),
    unset(&[&["spec!"]], "manualSelector", Bool(false)),
];
const CRON_JOB: &[Rule] = &[
    zero(&[&["spec!"]], "concurrencyPolicy", Text("Allow")),
    unset(&[&["spec!"]], "suspend", Bool(false)),
    unset(&[&["spec!"]], "successfulJobsHistoryLimit", Int(3)),
    unset(&[&["spec!"]], "failedJobsHistoryLimit", Int(1)),
];
const SERVICE: &[Rule] = &[
    zero(&[&["spec!"]], "sessionAffinity", Text("None")),
    zero(&[&["spec!"]], "type", Text("ClusterIP")),
    zero(&[&["spec!"], &["ports[]"]], "protocol", Text("TCP")),
];
const ENDPOINTS: &[Rule] = &[zero(&[&["subsets[]"], &["ports[]"]], "protocol", Text("TCP"))];
const ENDPOINT_SLICE: &[Rule] =
    &[unset(&[&["ports[]"]], "name", Text("")), unset(&[&["ports[]"]], "protocol", Text("TCP"))];
const SECRET: &[Rule] = &[zero(&[], "type", Text("Opaque"))];
const VOLUME: &[Rule] = &[
    zero(&[&["status!"]], "phase", Text("Pending")),
    zero(&[&["spec!"]], "persistentVolumeReclaimPolicy", Text("Retain")),
    unset(&[&["spec!"]], "volumeMode", Text("Filesystem")),
    unset(&[&["spec!"], &["hostPath"]], "type", Text("")),
    zero(&[&["spec!"], &["iscsi"]], "iscsiInterface", Text("default")),
];
const CLAIM: &[Rule] = &[
    zero(&[&["status!"]], "phase", Text("Pending")),
    unset(&[&["spec!"]], "volumeMode", Text("Filesystem")),
];
const STORAGE_CLASS: &[Rule] =
    &[unset(&[], "reclaimPolicy", Text("Delete")), unset(&[], "volumeBindingMode", Text("Immediate"))];
const CSI_DRIVER: &[Rule] = &[
    unset(&[&["spec!"]], "attachRequired", Bool(true)),
    unset(&[&["spec!"]], "podInfoOnMount", Bool(false)),
    unset(&[&["spec!"]], "storageCapacity", Bool(false)),
    unset(&[&["spec!"]], "fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    zero(&[&["spec!"]], "volumeLifecycleModes", One("Persistent")),
    unset(&[&["spec!"]], "requiresRepublish", Bool(false)),
    unset(&[&["spec!"]], "seLinuxMount", Bool(false)),
    unset(&[&["spec!"]], "preventPodSchedulingIfMissing", Bool(false)),
];
const INGRESS_CLASS: &[Rule] = &[unset(&[&["spec!"], &["parameters"]], "scope", Text("Cluster"))];
const NETWORK_POLICY: &[Rule] =
    &[unset(&[&["spec!"], &["ingress[]", "egress[]"], &["ports[]"]], "protocol", Text("TCP"))];
const AUTOSCALER: &[Rule] = &[unset(&[&["spec!"]], "minReplicas", Int(1))];
const AUTOSCALER_V1: &[Rule] = &[
    unset(&[&["spec!"]], "minReplicas", Int(1)),
    unset(&[&["spec!"]], "targetCPUUtilizationPercentage", Int(80)),
];
const BINDING: &[Rule] = &[zero(&[&["roleRef!"]], "apiGroup", Text(RBAC))];
const NAMESPACE: &[Rule] = &[zero(&[&["status!"]], "phase", Text("Active"))];
const PRIORITY_CLASS: &[Rule] = &[unset(&[], "preemptionPolicy", Text("PreemptLowerPriority"))];
const WEBHOOKS: &[Rule] = &[
    unset(&[&["webhooks[]"]], "failurePolicy", Text("Fail")),
    unset(&[&["webhooks[]"]], "matchPolicy", Text("Equivalent")),
    unset(&[&["webhooks[]"]], "namespaceSelector", Empty),
    unset(&[&["webhooks[]"]], "objectSelector", Empty),
    unset(&[&["webhooks[]"]], "timeoutSeconds", Int(10)),
    unset(&[&["webhooks[]"], &["rules[]"]], "scope", Text("*")),
    unset(&[&["webhooks[]"], &["clientConfig"], &["service"]], "port", Int(443)),
];
const MUTATING_WEBHOOKS: &[Rule] = &[unset(&[&["webhooks[]"]], "reinvocationPolicy", Text("Never"))];
const FLOW_SCHEMA: &[Rule] = &[zero(&[&["spec!"]], "matchingPrecedence", Int(1000))];
const PRIORITY_LEVEL: &[Rule] = &[
    unset(&[&["spec!"], &["exempt"]], "nominalConcurrencyShares", Int(0)),
    unset(&[&["spec!"], &["limited"]], "nominalConcurrencyShares", Int(30)),
    unset(&[&["spec!"], &["exempt", "limited"]], "lendablePercent", Int(0)),
    zero(&[&["spec!"], &["limited"], &["limitResponse"], &["queuing"]], "handSize", Int(8)),
    zero(&[&["spec!"], &["limited"], &["limitResponse"], &["queuing"]], "queues", Int(64)),
    zero(&[&["spec!"], &["limited"], &["limitResponse"], &["queuing"]], "queueLengthLimit", Int(50)),
];
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn apply(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::pod(object),
        ("", "podtemplates") => template(object, &["template", "spec"]),
        ("", "replicationcontrollers") => {
            labels_from_template(object);
            if fields::map(object, &["spec", "selector"]).is_none_or(Map::is_empty) {
                copy_labels(object, &["spec", "selector"]);
            }
            apply_rules(REPLICAS, object);
            if fields::at(object, &["spec", "template"]).is_some() {
                template(object, &["spec", "template", "spec"]);
            }
        }
        ("apps", "deployments") => {
            apply_rules(DEPLOYMENT, object);
            rolling(object, &["spec", "strategy"], json!({ "maxUnavailable": "25%", "maxSurge": "25%" }));
            template(object, &["spec", "template", "spec"]);
        }
        ("apps", "replicasets") => {
            apply_rules(REPLICAS, object);
            template(object, &["spec", "template", "spec"]);
        }
        ("apps", "daemonsets") => {
            apply_rules(DAEMON_SET, object);
            rolling(object, &["spec", "updateStrategy"], json!({ "maxUnavailable": 1, "maxSurge": 0 }));
            // Conversion writes it; the strategy counts it.
            let generation = ["metadata", "annotations", "deprecated.daemonset.template.generation"];
            fields::set_if_absent(object, &generation, "0");
            template(object, &["spec", "template", "spec"]);
        }
        ("apps", "statefulsets") => {
            stateful_set_strategy(object);
            apply_rules(STATEFUL_SET, object);
            template(object, &["spec", "template", "spec"]);
        }
        ("batch", "jobs") => {
            job(object);
            if fields::map(object, &["metadata", "labels"]).is_none_or(Map::is_empty) {
                let labels = fields::at(object, &["spec", "template", "metadata", "labels"]).cloned();
                if let Some(labels) = labels {
                    fields::set(object, &["metadata", "labels"], labels);
                }
            }
        }
        ("batch", "cronjobs") => {
            apply_rules(CRON_JOB, object);
            template(object, &["spec", "jobTemplate", "spec", "template", "spec"]);
        }
        ("", "services") => service(object),
        ("", "endpoints") => apply_rules(ENDPOINTS, object),
        ("discovery.k8s.io", "endpointslices") => apply_rules(ENDPOINT_SLICE, object),
        ("", "secrets") => secret(object),
        ("", "persistentvolumes") => apply_rules(VOLUME, object),
        ("", "persistentvolumeclaims") => apply_rules(CLAIM, object),
        ("storage.k8s.io", "storageclasses") => apply_rules(STORAGE_CLASS, object),
        ("storage.k8s.io", "csidrivers") => apply_rules(CSI_DRIVER, object),
        ("networking.k8s.io", "ingressclasses") => apply_rules(INGRESS_CLASS, object),
        ("networking.k8s.io", "networkpolicies") => network_policy(object),
        ("autoscaling", "horizontalpodautoscalers") if resource.version == "v1" => {
            apply_rules(AUTOSCALER_V1, object);
        }
        ("autoscaling", "horizontalpodautoscalers") => autoscaler(object),
        (RBAC, "rolebindings" | "clusterrolebindings") => {
            apply_rules(BINDING, object);
            each(object, &[&["subjects[]"]], &mut |subject| {
                let named = matches!(fields::text(subject, &["kind"]), "User" | "Group");
                if named && fields::text(subject, &["apiGroup"]).is_empty() {
                    fields::set(subject, &["apiGroup"], RBAC);
                }
            });
        }
        ("", "namespaces") => namespace(object),
        ("", "nodes") => {
            let first = fields::text(object, &["spec", "podCIDR"]).to_owned();
            if !first.is_empty() {
                fields::set_if_absent(object, &["spec", "podCIDRs"], json!([first]));
            }
            if let Some(capacity) = fields::at(object, &["status", "capacity"]).cloned() {
                fields::set_if_absent(object, &["status", "allocatable"], capacity);
            }
        }
        ("", "limitranges") => each(object, &[&["spec"], &["limits[]"]], &mut limit),
        ("scheduling.k8s.io", "priorityclasses") => apply_rules(PRIORITY_CLASS, object),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => apply_rules(WEBHOOKS, object),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => {
            apply_rules(WEBHOOKS, object);
            apply_rules(MUTATING_WEBHOOKS, object);
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => apply_rules(FLOW_SCHEMA, object),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            apply_rules(PRIORITY_LEVEL, object);
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(object),
        _ => {}
    }
}

fn template(object: &mut Value, path: &[&str]) {
    if let Some(spec) = fields::place(object, path) {
        pod::pod_spec(spec);
    }
}

/// An object without labels of its own carries those of its pods.
fn labels_from_template(object: &mut Value) {
    if fields::map(object, &["metadata", "labels"]).is_none_or(Map::is_empty) {
        copy_labels(object, &["metadata", "labels"]);
    }
}

fn copy_labels(object: &mut Value, to: &[&str]) {
    let labels = fields::map(object, &["spec", "template", "metadata", "labels"]);
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()).cloned() {
        fields::set(object, to, Value::Object(labels));
    }
}

/// The settings of a rolling update, unless another strategy was chosen.
fn rolling(object: &mut Value, strategy: &[&str], settings: Value) {
    let Some(strategy) = fields::place(object, strategy) else { return };
    if fields::text(strategy, &["type"]) != "RollingUpdate" {
        return;
    }
    let Value::Object(settings) = settings else { return };
    for (name, value) in settings {
        fields::set_if_absent(strategy, &["rollingUpdate", &name], value);
    }
}

fn stateful_set_strategy(object: &mut Value) {
    let Some(strategy) = fields::place(object, &["spec", "updateStrategy"]) else { return };
    // Unlike in a Deployment, a named RollingUpdate without settings stays without.
    if fields::text(strategy, &["type"]).is_empty() {
        fields::set(strategy, &["type"], "RollingUpdate");
        fields::set_if_absent(strategy, &["rollingUpdate"], json!({}));
    }
    let rolling = fields::text(strategy, &["type"]) == "RollingUpdate";
    if rolling && fields::at(strategy, &["rollingUpdate"]).is_some() {
        fields::set_if_absent(strategy, &["rollingUpdate", "partition"], 0);
        fields::set_if_absent(strategy, &["rollingUpdate", "maxUnavailable"], 1);
    }
}

fn job(object: &mut Value) {
    let Some(spec) = fields::place(object, &["spec"]) else { return };
    if fields::at(spec, &["completions"]).is_none() && fields::at(spec, &["parallelism"]).is_none() {
        fields::set(spec, &["completions"], 1);
    }
    let per_index = fields::at(spec, &["backoffLimitPerIndex"]).is_some();
    fields::set_if_absent(spec, &["backoffLimit"], if per_index { i64::from(i32::MAX) } else { 6 });
    let failure_policy = fields::at(spec, &["podFailurePolicy"]).is_some();
    let replacement = if failure_policy { "Failed" } else { "TerminatingOrFailed" };
    fields::set_if_absent(spec, &["podReplacementPolicy"], replacement);
    apply_rules(JOB, object);
    // A new job's labels are copied when its template has got those that the server makes.
    if fields::at(object, &["spec", "selector"]).is_some() {
        labels_from_template(object);
    }
    template(object, &["spec", "template", "spec"]);
}

fn service(object: &mut Value) {
    apply_rules(SERVICE, object);
    let Some(spec) = fields::place(object, &["spec"]) else { return };
    match fields::text(spec, &["sessionAffinity"]) {
        "None" => {
            fields::remove(spec, &["sessionAffinityConfig"]);
        }
        "ClientIP"
            if fields::at(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() =>
        {
            let three_hours = json!({ "clientIP": { "timeoutSeconds": 10800 } });
            fields::set(spec, &["sessionAffinityConfig"], three_hours);
        }
        _ => {}
    }
    each(spec, &[&["ports[]"]], &mut |port| {
        if fields::is_zero(port.get("targetPort")) {
            fields::copy_within(port, "port", "targetPort");
        }
    });
    let kind = fields::text(spec, &["type"]).to_owned();
    let outside = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !fields::list(spec, &["externalIPs"]).is_empty());
    if outside && fields::text(spec, &["externalTrafficPolicy"]).is_empty() {
        fields::set(spec, &["externalTrafficPolicy"], "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fields::set_if_absent(spec, &["internalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        fields::set_if_absent(spec, &["allocateLoadBalancerNodePorts"], true);
        each(object, &[&["status"], &["loadBalancer"], &["ingress[]"]], &mut |ingress| {
            if !fields::text(ingress, &["ip"]).is_empty() {
                fields::set_if_absent(ingress, &["ipMode"], "VIP");
            }
        });
    }
}

/// `stringData` is a way to write `data`, and is never read back.
fn secret(object: &mut Value) {
    apply_rules(SECRET, object);
    if let Some(Value::Object(plain)) = fields::remove(object, &["stringData"]) {
        for (key, value) in plain {
            if let Some(text) = value.as_str() {
                fields::set(object, &["data", &key], STANDARD.encode(text));
            }
        }
    }
}

fn network_policy(object: &mut Value) {
    apply_rules(NETWORK_POLICY, object);
    if fields::list(object, &["spec", "policyTypes"]).is_empty() {
        let egress = !fields::list(object, &["spec", "egress"]).is_empty();
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        fields::set(object, &["spec", "policyTypes"], types);
    }
}

fn autoscaler(object: &mut Value) {
    apply_rules(AUTOSCALER, object);
    if fields::list(object, &["spec", "metrics"]).is_empty() {
        let cpu = json!([{
            "type": "Resource",
            "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } },
        }]);
        fields::set(object, &["spec", "metrics"], cpu);
    }
    let Some(behavior) = object.get_mut("spec").and_then(|spec| spec.get_mut("behavior")) else { return };
    if !behavior.is_object() {
        return;
    }
    let up = json!([
        { "type": "Pods", "value": 4, "periodSeconds": 15 },
        { "type": "Percent", "value": 100, "periodSeconds": 15 },
    ]);
    let down = json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]);
    for (direction, policies) in [("scaleUp", up), ("scaleDown", down)] {
        fields::set_if_absent(behavior, &[direction, "selectPolicy"], "Max");
        fields::set_if_absent(behavior, &[direction, "policies"], policies);
    }
    fields::set_if_absent(behavior, &["scaleUp", "stabilizationWindowSeconds"], 0);
}

/// Every namespace can be selected by its name.
fn namespace(object: &mut Value) {
    apply_rules(NAMESPACE, object);
    let name = fields::text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        fields::set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
    }
}

fn limit(limit: &mut Value) {
    if fields::text(limit, &["type"]) != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(amounts) = fields::map(limit, &[from]).cloned() else { continue };
        for (name, amount) in amounts {
            fields::set_if_absent(limit, &[to, &name], amount);
        }
    }
}

fn definition(object: &mut Value) {
    let kind = fields::text(object, &["spec", "names", "kind"]).to_owned();
    if !kind.is_empty() {
        if fields::text(object, &["spec", "names", "singular"]).is_empty() {
            fields::set(object, &["spec", "names", "singular"], kind.to_lowercase());
        }
        if fields::text(object, &["spec", "names", "listKind"]).is_empty() {
            fields::set(object, &["spec", "names", "listKind"], format!("{kind}List"));
        }
    }
    fields::set_if_absent(object, &["spec", "conversion"], json!({ "strategy": "None" }));
    let webhook: &[&[&str]] = &[&["spec"], &["conversion"], &["webhook"], &["clientConfig"], &["service"]];
    each(object, webhook, &mut |service| fields::set_if_absent(service, &["port"], 443));
    if fields::list(object, &["status", "storedVersions"]).is_empty() {
        let stored = fields::list(object, &["spec", "versions"])
            .iter()
            .find(|version| fields::is_true(version, &["storage"]))
            .map(|version| fields::text(version, &["name"]).to_owned());
        if let Some(stored) = stored {
            fields::set(object, &["status", "storedVersions"], json!([stored]));
        }
    }
}
