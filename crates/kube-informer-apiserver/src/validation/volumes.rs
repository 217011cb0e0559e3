//! Volumes of pods.

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::formats;

/// Sources in the order in which the real server looks at them.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Checks all volumes; the names of those that are right can be mounted.
pub(super) fn check<'a>(volumes: &At<'a>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        let before = errors.len();
        source(&volume, errors);
        let name = volume.get("name");
        if name.text().is_empty() {
            errors.required(&name, "");
        } else {
            errors.invalid_each(&name, formats::dns_label(name.text()));
        }
        if names.contains(name.text()) {
            errors.duplicate(&name);
        }
        if errors.len() == before {
            names.insert(name.text());
        }
    }
    names
}

fn source(volume: &At<'_>, errors: &mut Errors) {
    let mut found = false;
    for field in SOURCES {
        let at = volume.get(field);
        if !at.is_set() {
            continue;
        }
        if found {
            errors.forbidden(&at, "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        match *field {
            "hostPath" => host_path(&at, errors),
            "secret" => {
                require(&at, "secretName", errors);
                file_mode(&at.get("defaultMode"), errors);
            }
            "configMap" => {
                require(&at, "name", errors);
                file_mode(&at.get("defaultMode"), errors);
            }
            "projected" | "downwardAPI" => file_mode(&at.get("defaultMode"), errors),
            "persistentVolumeClaim" => require(&at, "claimName", errors),
            "nfs" => nfs(&at, errors),
            "csi" => require(&at, "driver", errors),
            _ => {}
        }
    }
    if !found {
        errors.required(volume, "must specify a volume type");
    }
}

fn require(at: &At<'_>, field: &str, errors: &mut Errors) {
    if at.get(field).text().is_empty() {
        errors.required(&at.get(field), "");
    }
}

const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

pub(super) fn host_path(at: &At<'_>, errors: &mut Errors) {
    let path = at.get("path");
    if path.text().is_empty() {
        errors.required(&path, "");
        return;
    }
    no_backsteps(&path, errors);
    errors.one_of_if_set(&at.get("type"), HOST_PATH_TYPES);
}

pub(super) fn nfs(at: &At<'_>, errors: &mut Errors) {
    require(at, "server", errors);
    let path = at.get("path");
    if path.text().is_empty() {
        errors.required(&path, "");
    }
    if !path.text().starts_with('/') {
        let shown = serde_json::Value::from(path.text());
        errors.invalid(&At { value: &shown, path: path.path.clone() }, "must be an absolute path");
    }
}

fn file_mode(mode: &At<'_>, errors: &mut Errors) {
    if mode.int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.invalid(mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

/// A path below the volume's root.
pub(super) fn descending_path(path: &At<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.invalid(path, "must be a relative path");
    }
    no_backsteps(path, errors);
}

fn no_backsteps(path: &At<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.invalid(path, "must not contain '..'");
    }
}
