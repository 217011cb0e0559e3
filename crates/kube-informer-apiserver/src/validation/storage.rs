//! Volumes, claims and storage classes.

use std::cmp::Ordering;

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, selector, volumes};
use crate::fields;
use crate::schema::Quantity;
use crate::status::FieldError;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// What a volume can be, in the order in which the real server looks.
const VOLUME_SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn access_modes(modes: &At<'_>, errors: &mut Errors) {
    let (mut single, mut other) = (false, false);
    for mode in modes.items() {
        if !ACCESS_MODES.contains(&mode.text()) {
            errors.unsupported(&mode.named(&modes.path), ACCESS_MODES);
        } else if mode.text() == "ReadWriteOncePod" {
            single = true;
        } else {
            other = true;
        }
    }
    if single && other {
        errors.forbidden(modes, "may not use ReadWriteOncePod with other access modes");
    }
}

fn class_name(name: &At<'_>, errors: &mut Errors) {
    if !name.text().is_empty() {
        errors.invalid_each(name, formats::dns_subdomain(name.text()));
    }
}

pub(super) fn claim(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        errors.required(&modes, "at least 1 access mode is required");
    }
    selector::check(&spec.get("selector"), errors);
    access_modes(&modes, errors);
    // Asked for under `requests`, complained about under `resources`.
    let path = spec.get("resources").key("storage");
    match fields::at(spec.value, &["resources", "requests", "storage"]).and_then(Value::as_str) {
        None => errors.push(FieldError::required(path, "")),
        Some(text) => {
            if let Some(amount) =
                Quantity::parse(text).ok().filter(|amount| amount.sign() != Ordering::Greater)
            {
                errors.push(FieldError::invalid(path, amount.to_string(), "must be greater than zero"));
            }
        }
    }
    class_name(&spec.get("storageClassName"), errors);
    errors.one_of_if_set(&spec.get("volumeMode"), VOLUME_MODES);
}

pub(super) fn update_claim(old: &Value, new: &Value, errors: &mut Errors) {
    let bound = fields::text(new, &["status", "phase"]) == "Bound";
    let mut spec = At::root(new).get("spec").value.clone();
    let before = At::root(old).get("spec").value;
    // A claim is bound by naming its volume.
    if fields::text(before, &["volumeName"]).is_empty() {
        fields::copy(before, &mut spec, &["volumeName"]);
    }
    let size: &[&str] = &["resources", "requests", "storage"];
    let class_given_later = fields::at(before, &["storageClassName"]).is_none();
    if class_given_later {
        fields::copy(before, &mut spec, &["storageClassName"]);
    }
    if bound {
        fields::copy(before, &mut spec, size);
        fields::copy(before, &mut spec, &["volumeAttributesClassName"]);
    }
    let spec_at = At::root(new).get("spec");
    if !fields::same(Some(&spec), Some(before)) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                   bound claims";
        errors.forbidden(&spec_at, why);
    }
    let amount = |object: &Value, path: &[&str]| Quantity::parse(fields::text(object, path)).ok();
    if let (Some(old_size), Some(new_size)) = (amount(before, size), amount(spec_at.value, size)) {
        let capacity = amount(old, &["status", "capacity", "storage"]);
        let floor = capacity.as_ref().is_some_and(|capacity| new_size <= *capacity);
        if new_size < old_size && (floor || (capacity.is_none() && new_size.sign() != Ordering::Greater)) {
            errors.forbidden(&spec_at.walk(size), "field can not be less than status.capacity");
        }
    }
    let mode = At::root(new).walk(&["spec", "volumeMode"]).named("volumeMode");
    errors.immutable(&mode, &At::root(old).walk(&["spec", "volumeMode"]));
}

pub(super) fn volume(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        errors.required(&modes, "");
    }
    access_modes(&modes, errors);
    capacity(&spec.get("capacity"), errors);
    errors.one_of_if_set(&spec.get("persistentVolumeReclaimPolicy"), &["Delete", "Recycle", "Retain"]);
    let mut found = false;
    for field in VOLUME_SOURCES {
        let source = spec.get(field);
        if !source.is_set() {
            continue;
        }
        if found {
            errors.forbidden(&source, "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        match *field {
            "hostPath" => volumes::host_path(&source, errors),
            "nfs" => volumes::nfs(&source, errors),
            "csi" => {
                for field in ["driver", "volumeHandle"] {
                    if source.get(field).text().is_empty() {
                        errors.required(&source.get(field), "");
                    }
                }
            }
            _ => {}
        }
    }
    if !found {
        errors.required(&spec, "must specify a volume type");
    }
    class_name(&spec.get("storageClassName"), errors);
    errors.one_of_if_set(&spec.get("volumeMode"), VOLUME_MODES);
}

fn capacity(capacity: &At<'_>, errors: &mut Errors) {
    if capacity.is_empty() {
        errors.required(capacity, "");
    }
    if capacity.value.get("storage").is_none() || capacity.entries().count() > 1 {
        errors.unsupported(capacity, &["storage"]);
    }
    for (_, amount) in capacity.entries() {
        let Some(quantity) = Quantity::parse(amount.text()).ok() else { continue };
        if quantity.sign() == Ordering::Less {
            errors.invalid_shown(&amount.path, &quantity.to_string(), "must be a valid resource quantity");
        }
        if quantity.sign() != Ordering::Greater {
            let shown = quantity.to_string();
            errors.push(FieldError::invalid(&amount.path, shown, "must be greater than zero"));
        }
    }
}

pub(super) fn update_volume(old: &Value, new: &Value, errors: &mut Errors) {
    let changed =
        |field: &&str| !fields::same(fields::at(old, &["spec", field]), fields::at(new, &["spec", field]));
    if VOLUME_SOURCES.iter().any(changed) {
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", why));
    }
    let mode = At::root(new).walk(&["spec", "volumeMode"]).named("volumeMode");
    errors.immutable(&mode, &At::root(old).walk(&["spec", "volumeMode"]));
}

pub(super) fn class(object: &Value, errors: &mut Errors) {
    let class = At::root(object);
    let provisioner = class.get("provisioner");
    if provisioner.text().is_empty() {
        errors.declare(FieldError::required(&provisioner.path, ""));
    } else {
        errors.invalid_each(&provisioner, formats::qualified_name(&provisioner.text().to_lowercase()));
    }
    errors.one_of_if_set(&class.get("reclaimPolicy"), &["Delete", "Retain"]);
    errors.one_of(&class.get("volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"]);
}

pub(super) fn update_class(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
        super::declared_frozen(old, new, field, errors);
    }
}
