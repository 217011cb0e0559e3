//! Defaults of pod specs, in pods and in the templates of everything that makes pods.

use serde_json::{Map, Value, json};

use super::Default::{Bool, Empty, Int, Text};
use super::{Rule, apply_rules, each, unset, zero};
use crate::fields;

type Step = &'static [&'static str];

const CONTAINERS: Step = &["containers[]", "initContainers[]", "ephemeralContainers[]"];
const PROBES: Step = &["livenessProbe", "readinessProbe", "startupProbe"];
const VOLUMES: Step = &["volumes[]"];

const SPEC: &[Rule] = &[
    zero(&[], "dnsPolicy", Text("ClusterFirst")),
    zero(&[], "restartPolicy", Text("Always")),
    unset(&[], "securityContext", Empty),
    unset(&[], "terminationGracePeriodSeconds", Int(30)),
    zero(&[], "schedulerName", Text("default-scheduler")),
    zero(&[CONTAINERS], "terminationMessagePath", Text("/dev/termination-log")),
    zero(&[CONTAINERS], "terminationMessagePolicy", Text("File")),
    zero(&[CONTAINERS, &["ports[]"]], "protocol", Text("TCP")),
    zero(&[CONTAINERS, &["env[]"], &["valueFrom"], &["fieldRef"]], "apiVersion", Text("v1")),
    unset(&[CONTAINERS, &["env[]"], &["valueFrom"], &["fileKeyRef"]], "optional", Bool(false)),
    zero(&[CONTAINERS, PROBES], "timeoutSeconds", Int(1)),
    zero(&[CONTAINERS, PROBES], "periodSeconds", Int(10)),
    zero(&[CONTAINERS, PROBES], "successThreshold", Int(1)),
    zero(&[CONTAINERS, PROBES], "failureThreshold", Int(3)),
    zero(&[CONTAINERS, PROBES, &["httpGet"]], "path", Text("/")),
    zero(&[CONTAINERS, PROBES, &["httpGet"]], "scheme", Text("HTTP")),
    unset(&[CONTAINERS, PROBES, &["grpc"]], "service", Text("")),
    zero(&[CONTAINERS, &["lifecycle"], &["postStart", "preStop"], &["httpGet"]], "path", Text("/")),
    zero(&[CONTAINERS, &["lifecycle"], &["postStart", "preStop"], &["httpGet"]], "scheme", Text("HTTP")),
    unset(&[VOLUMES, &["secret", "configMap", "downwardAPI", "projected"]], "defaultMode", Int(0o644)),
    unset(&[VOLUMES, &["hostPath"]], "type", Text("")),
    zero(&[VOLUMES, &["downwardAPI"], &["items[]"], &["fieldRef"]], "apiVersion", Text("v1")),
    zero(
        &[VOLUMES, &["projected"], &["sources[]"], &["downwardAPI"], &["items[]"], &["fieldRef"]],
        "apiVersion",
        Text("v1"),
    ),
    unset(
        &[VOLUMES, &["projected"], &["sources[]"], &["serviceAccountToken"]],
        "expirationSeconds",
        Int(3600),
    ),
    unset(&[VOLUMES, &["ephemeral"], &["volumeClaimTemplate"], &["spec!"]], "volumeMode", Text("Filesystem")),
    zero(&[VOLUMES, &["iscsi"]], "iscsiInterface", Text("default")),
    zero(&[VOLUMES, &["rbd"]], "pool", Text("rbd")),
    zero(&[VOLUMES, &["rbd"]], "user", Text("admin")),
    zero(&[VOLUMES, &["rbd"]], "keyring", Text("/etc/ceph/keyring")),
    unset(&[VOLUMES, &["azureDisk"]], "cachingMode", Text("ReadWrite")),
    unset(&[VOLUMES, &["azureDisk"]], "fsType", Text("ext4")),
    unset(&[VOLUMES, &["azureDisk"]], "readOnly", Bool(false)),
    unset(&[VOLUMES, &["azureDisk"]], "kind", Text("Shared")),
    zero(&[VOLUMES, &["scaleIO"]], "storageMode", Text("ThinProvisioned")),
    zero(&[VOLUMES, &["scaleIO"]], "fsType", Text("xfs")),
];

/// A pod's own spec has a few defaults more than a template's.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = fields::place(object, &["spec"]) else { return };
    if fields::int(spec, &["terminationGracePeriodSeconds"]).is_some_and(|seconds| seconds < 0) {
        fields::set(spec, &["terminationGracePeriodSeconds"], 1);
    }
    each(spec, &[&["containers[]", "initContainers[]"]], &mut requests_from_limits);
    fields::set_if_absent(spec, &["enableServiceLinks"], true);
    if fields::is_true(spec, &["hostNetwork"]) {
        let ports: &[&[&str]] = &[&["containers[]", "initContainers[]"], &["ports[]"]];
        each(spec, ports, &mut |port| {
            if fields::is_zero(port.get("hostPort")) && !fields::is_zero(port.get("containerPort")) {
                fields::copy_within(port, "containerPort", "hostPort");
            }
        });
    }
    pod_spec(spec);
    pod_addresses(object);
}

/// The spec of a pod template.
pub(super) fn pod_spec(spec: &mut Value) {
    if spec.is_null() {
        *spec = json!({});
    }
    // `serviceAccount` is the old name of `serviceAccountName`; both are kept the same.
    let account = match fields::text(spec, &["serviceAccountName"]) {
        "" => fields::text(spec, &["serviceAccount"]),
        name => name,
    };
    if !account.is_empty() {
        let account = Value::from(account);
        fields::set(spec, &["serviceAccountName"], account.clone());
        fields::set(spec, &["serviceAccount"], account);
    }
    each(spec, &[CONTAINERS], &mut |container| pull_policy(container, "image", "imagePullPolicy"));
    each(spec, &[VOLUMES], &mut |volume| {
        let nothing =
            volume.as_object().is_some_and(|v| v.iter().all(|(key, value)| key == "name" || value.is_null()));
        if nothing {
            fields::set(volume, &["emptyDir"], json!({}));
        }
    });
    each(spec, &[VOLUMES, &["image"]], &mut |image| pull_policy(image, "reference", "pullPolicy"));
    apply_rules(SPEC, spec);
}

fn pull_policy(object: &mut Value, image: &str, policy: &str) {
    if object.is_object() && fields::is_zero(object.get(policy)) {
        let latest = is_latest(fields::text(object, &[image]));
        fields::set(object, &[policy], if latest { "Always" } else { "IfNotPresent" });
    }
}

/// An image without tag and digest is `latest`; a digest alone is not.
fn is_latest(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    // A colon before the last slash belongs to the registry's port.
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        // What cannot be parsed has no tag at all.
        None => !digest && !last.is_empty(),
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = fields::map(container, &["resources", "limits"]).cloned() else { return };
    let Some(requests) = fields::place(container, &["resources", "requests"]) else { return };
    if requests.is_null() {
        *requests = Value::Object(Map::new());
    }
    if let Some(requests) = requests.as_object_mut() {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

/// `podIP` is the first of `podIPs`, and wins.
fn pod_addresses(object: &mut Value) {
    let first = fields::list(object, &["status", "podIPs"]).first().map(|ip| fields::text(ip, &["ip"]));
    match (fields::text(object, &["status", "podIP"]), first) {
        ("", Some(first)) if !first.is_empty() => {
            let first = first.to_owned();
            fields::set(object, &["status", "podIP"], first);
        }
        (ip, first) if !ip.is_empty() && first != Some(ip) => {
            let ips = json!([{ "ip": ip }]);
            fields::set(object, &["status", "podIPs"], ips);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn only_an_image_that_may_move_is_always_pulled() {
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1", false),
            ("repo:5000/nginx", true),
            ("repo:5000/nginx:2", false),
            ("nginx@sha256:00", false),
            ("nginx:latest@sha256:00", true),
            ("", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
