//! Between the version that objects are stored in and the one that is asked for.
//!
//! Custom resources convert by changing `apiVersion` (strategy None). Events live once and are shown as
//! `v1` and as `events.k8s.io/v1`, whose fields have other names.

use serde_json::Value;

use crate::crd;
use crate::kinds::Resource;

/// (in `v1`, in `events.k8s.io/v1`)
const EVENT_FIELDS: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
const EVENT_CONTROLLER: (&str, &str) = ("reportingComponent", "reportingController");

/// The group whose bucket holds the objects of `resource`.
pub(crate) fn storage_group(resource: &Resource) -> &str {
    if is_new_event(resource) { "" } else { &resource.group }
}

/// Whether stored bytes differ from what `resource` shows.
pub(crate) fn is_needed(resource: &Resource) -> bool {
    is_new_event(resource) || resource.version != resource.storage_version
}

/// From what `resource` shows to what is stored.
pub(crate) fn to_storage(resource: &Resource, object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    if is_new_event(resource) {
        map.insert("apiVersion".into(), "v1".into());
        for (old, new) in EVENT_FIELDS.into_iter().chain([EVENT_CONTROLLER]) {
            if let Some(value) = map.remove(new) {
                map.insert(old.into(), value);
            }
        }
    } else if resource.version != resource.storage_version {
        map.insert("apiVersion".into(), with_version(resource, &resource.storage_version).into());
    }
}

/// From what is stored to what `resource` shows.
pub(crate) fn from_storage(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() || resource.version != resource.storage_version {
        crd::convert(object, resource);
        return;
    }
    let Some(map) = object.as_object_mut() else { return };
    if is_new_event(resource) {
        map.insert("apiVersion".into(), "events.k8s.io/v1".into());
        for (old, new) in EVENT_FIELDS.into_iter().chain([EVENT_CONTROLLER]) {
            if let Some(value) = map.remove(old) {
                map.insert(new.into(), value);
            }
        }
        for optional in ["reportingController", "reportingInstance"] {
            if map.get(optional).is_some_and(|value| value == "") {
                map.remove(optional);
            }
        }
    }
}

fn is_new_event(resource: &Resource) -> bool {
    resource.is("events.k8s.io", "events")
}

fn with_version(resource: &Resource, version: &str) -> String {
    if resource.group.is_empty() { version.to_owned() } else { format!("{}/{version}", resource.group) }
}
