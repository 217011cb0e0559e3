//! Volumes, claims and their classes.

use serde_json::{Value, json};

use super::view::View;
use super::{AGE, Col, Layout, NAME, flag, integer, text, wide};
use crate::kinds::Resource;

pub(super) fn layout(group: &str, plural: &str) -> Option<Layout> {
    Some(match (group, plural) {
        ("", "persistentvolumes") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Capacity"),
                    text("Access Modes"),
                    text("Reclaim Policy"),
                    text("Status"),
                    text("Claim"),
                    text("StorageClass"),
                    text("VolumeAttributesClass"),
                    text("Reason"),
                    AGE,
                    wide("VolumeMode"),
                ]
            },
            cells: volume,
        },
        ("", "persistentvolumeclaims") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Status"),
                    text("Volume"),
                    text("Capacity"),
                    text("Access Modes"),
                    text("StorageClass"),
                    text("VolumeAttributesClass"),
                    AGE,
                    wide("VolumeMode"),
                ]
            },
            cells: claim,
        },
        ("storage.k8s.io", "storageclasses") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Provisioner"),
                    text("ReclaimPolicy"),
                    text("VolumeBindingMode"),
                    text("AllowVolumeExpansion"),
                    AGE,
                ]
            },
            cells: |o| {
                vec![
                    json!(o.name()),
                    json!(o.text("/provisioner")),
                    json!(o.text_or("/reclaimPolicy", "Delete")),
                    json!(o.text_or("/volumeBindingMode", "Immediate")),
                    json!(o.flag("/allowVolumeExpansion")),
                    json!(o.age()),
                ]
            },
        },
        ("storage.k8s.io", "volumeattributesclasses") => Layout {
            columns: const { &[NAME, text("DriverName"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.text("/driverName")), json!(o.age())],
        },
        ("storage.k8s.io", "volumeattachments") => Layout {
            columns: const {
                &[
                    NAME,
                    Col { format: "name", ..text("Attacher") },
                    text("PV"),
                    text("Node"),
                    flag("Attached"),
                    AGE,
                ]
            },
            cells: |o| {
                vec![
                    json!(o.name()),
                    json!(o.text("/spec/attacher")),
                    json!(o.text("/spec/source/persistentVolumeName")),
                    json!(o.text("/spec/nodeName")),
                    json!(o.flag("/status/attached")),
                    json!(o.age()),
                ]
            },
        },
        ("storage.k8s.io", "csinodes") => Layout {
            columns: const { &[NAME, integer("Drivers"), AGE] },
            cells: |o| vec![json!(o.name()), json!(o.count("/spec/drivers")), json!(o.age())],
        },
        ("storage.k8s.io", "csidrivers") => Layout {
            columns: const {
                &[
                    NAME,
                    flag("AttachRequired"),
                    flag("PodInfoOnMount"),
                    flag("StorageCapacity"),
                    text("TokenRequests"),
                    flag("RequiresRepublish"),
                    text("Modes"),
                    AGE,
                ]
            },
            cells: csi_driver,
        },
        _ => return None,
    })
}

/// The storage class that a list marks as the default: the newest of those that claim it.
pub(super) fn default_class<'v>(resource: &Resource, objects: &[&'v Value]) -> Option<&'v Value> {
    if !resource.is("storage.k8s.io", "storageclasses") {
        return None;
    }
    let text = |o: &'v Value, pointer: &str| o.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_default = |o: &&&Value| {
        let annotations = o.pointer("/metadata/annotations").and_then(Value::as_object);
        let keys = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        keys.iter().any(|key| annotations.and_then(|a| a.get(*key)).is_some_and(|v| v == "true"))
    };
    objects.iter().filter(is_default).copied().max_by(|a, b| {
        let created = |o| text(o, "/metadata/creationTimestamp");
        let name = |o| text(o, "/metadata/name");
        created(a).cmp(created(b)).then_with(|| name(b).cmp(name(a)))
    })
}

fn phase<'v>(o: &View<'v>) -> &'v str {
    if o.deleting() { "Terminating" } else { o.text("/status/phase") }
}

fn access_modes(o: &View<'_>, pointer: &str) -> String {
    let modes = o.strings(pointer);
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<&str> =
        known.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short).collect();
    shown.join(",")
}

/// The class of a volume or claim; an old annotation goes first.
fn class<'v>(o: &View<'v>) -> &'v str {
    let annotations = o.map("/metadata/annotations");
    let old = annotations.and_then(|a| a.get("volume.beta.kubernetes.io/storage-class"));
    old.and_then(Value::as_str).unwrap_or_else(|| o.text("/spec/storageClassName"))
}

fn volume(o: &View<'_>) -> Vec<Value> {
    let claim = if o.has("/spec/claimRef") {
        format!("{}/{}", o.text("/spec/claimRef/namespace"), o.text("/spec/claimRef/name"))
    } else {
        String::new()
    };
    vec![
        json!(o.name()),
        json!(o.quantity("/spec/capacity/storage")),
        json!(access_modes(o, "/spec/accessModes")),
        json!(o.text("/spec/persistentVolumeReclaimPolicy")),
        json!(phase(o)),
        json!(claim),
        json!(class(o)),
        json!(o.text_or("/spec/volumeAttributesClassName", "<unset>")),
        json!(o.text("/status/reason")),
        json!(o.age()),
        json!(o.text_or("/spec/volumeMode", "<unset>")),
    ]
}

fn claim(o: &View<'_>) -> Vec<Value> {
    let volume = o.text("/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (o.quantity("/status/capacity/storage"), access_modes(o, "/status/accessModes"))
    };
    vec![
        json!(o.name()),
        json!(phase(o)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(class(o)),
        json!(o.text_or("/spec/volumeAttributesClassName", "<unset>")),
        json!(o.age()),
        json!(o.text_or("/spec/volumeMode", "<unset>")),
    ]
}

fn csi_driver(o: &View<'_>) -> Vec<Value> {
    let modes = o.strings("/spec/volumeLifecycleModes").join(",");
    let audiences: Vec<&str> = o.each("/spec/tokenRequests").map(|t| t.text("/audience")).collect();
    let audiences = if o.has("/spec/tokenRequests") { audiences.join(",") } else { "<unset>".to_owned() };
    vec![
        json!(o.name()),
        json!(o.at("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true)),
        json!(o.flag("/spec/podInfoOnMount")),
        json!(o.flag("/spec/storageCapacity")),
        json!(audiences),
        json!(o.flag("/spec/requiresRepublish")),
        json!(if modes.is_empty() { "<none>" } else { modes.as_str() }),
        json!(o.age()),
    ]
}
