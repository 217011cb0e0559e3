//! Protobuf views against the JSON that Go makes of the same objects: the test data of `k8s.io/api`, every
//! built-in kind with every field filled, of this release and of the older ones that are shipped beside it.
//!
//! The data is read from the Go module, in the version that the real servers are built from.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use kube_informer::encoding::{Codec, Encoding, ManagedFields, Pointer, Rules, ViewError, decode_protobuf};
use kube_informer_testbed::binaries::go_module;
use kube_informer_testbed::require;
use serde_json::Value;

/// Documents of one folder, by their names without the ending.
fn documents(folder: &Path) -> BTreeSet<String> {
    let files =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files
        .filter_map(|name| name.strip_suffix(".pb").map(ToOwned::to_owned))
        .filter(|name| !name.ends_with(".after_roundtrip"))
        .collect()
}

fn read(folder: &Path, name: &str, ending: &str) -> Option<Vec<u8>> {
    std::fs::read(folder.join(format!("{name}.{ending}"))).ok()
}

fn json(folder: &Path, name: &str) -> Option<Value> {
    read(folder, name, "json").map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// The dynamic view of a document in protobuf.
fn view(folder: &Path, name: &str) -> Result<Value, ViewError> {
    let mut protobuf = read(folder, name, "pb").unwrap();
    if name != "core.v1.WatchEvent" {
        return decode_protobuf(&protobuf);
    }
    // The only kind that has no type of its own, neither on the wire nor in JSON.
    let no_type = *b"\x0a\x04\x0a\x00\x12\x00";
    assert_eq!(protobuf[4..10], no_type);
    protobuf.splice(4..10, *b"\x0a\x10\x0a\x02v1\x12\x0aWatchEvent");
    let mut view: Value = decode_protobuf(&protobuf)?;
    view.as_object_mut().unwrap().retain(|key, _| key != "apiVersion" && key != "kind");
    Ok(view)
}

/// Where two documents differ first, for people.
fn difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            keys.into_iter().find_map(|key| {
                let path = format!("{path}/{key}");
                match (x.get(key), y.get(key)) {
                    (Some(a), Some(b)) => difference(&path, a, b),
                    (a, b) => Some(format!("{path}: {a:?} and {b:?}")),
                }
            })
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let mut items = x.iter().zip(y).enumerate();
            items.find_map(|(index, (a, b))| difference(&format!("{path}/{index}"), a, b))
        }
        (a, b) => (a != b).then(|| format!("{path}: {a} and {b}")),
    }
}

fn check_folder(folder: &Path) -> usize {
    let names = documents(folder);
    let mut wrong = Vec::new();
    for name in &names {
        let expected = json(folder, name).unwrap();
        match view(folder, name) {
            Ok(view) => wrong.extend(difference("", &view, &expected).map(|at| format!("{name}{at}"))),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), names.len(), wrong.join("\n"));
    names.len()
}

#[test]
fn every_built_in_kind_shows_the_json_that_go_makes_of_it() {
    let api = require!(go_module("k8s.io/api"));
    assert!(check_folder(&api.join("testdata/HEAD")) >= 193);
}

#[test]
fn custom_resource_definitions_show_the_json_that_go_makes_of_them() {
    let module = require!(go_module("k8s.io/apiextensions-apiserver"));
    assert!(check_folder(&module.join("pkg/apis/testdata/HEAD")) >= 1);
}

/// What an older server wrote is read as its JSON; or, where fields came since, as Go's types of this release
/// show it; or it is refused because of a field or a kind that is gone since. It is never read with something
/// missing.
#[test]
fn what_older_servers_wrote_is_read_whole_or_refused() {
    let api = require!(go_module("k8s.io/api"));
    let head = documents(&api.join("testdata/HEAD"));
    let folders = std::fs::read_dir(api.join("testdata")).unwrap().map(|entry| entry.unwrap().path());
    let (mut equal, mut refused) = (0, 0);
    for folder in folders.filter(|folder| folder.is_dir() && !folder.ends_with("HEAD")) {
        let version = folder.file_name().unwrap().to_string_lossy().into_owned();
        for name in documents(&folder) {
            let expected = json(&folder, &name).unwrap();
            let roundtrip = json(&folder, &format!("{name}.after_roundtrip"));
            match view(&folder, &name) {
                Ok(view) => {
                    let at = difference("", &view, &expected);
                    let through_go = roundtrip.is_some_and(|through_go| view == through_go);
                    assert!(at.is_none() || through_go, "{version} {name}{}", at.unwrap_or_default());
                    equal += 1;
                }
                Err(error) => {
                    let error = error.to_string();
                    let gone = if head.contains(&name) { "unknown field" } else { "unknown kind" };
                    assert!(error.contains(gone), "{version} {name}: {error}");
                    // Where Go loses nothing, nothing may be refused.
                    assert!(gone == "unknown kind" || roundtrip.is_some(), "{version} {name}: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{equal} equal, {refused} refused");
    assert!(equal > 650, "{equal}");
}

/// Objects of all kinds that have metadata, in both encodings.
fn objects(folder: &Path) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let has_metadata = |name: &String| json(folder, name).unwrap()["metadata"]["name"].is_string();
    let both = |name: String| {
        let (protobuf, json) = (read(folder, &name, "pb").unwrap(), read(folder, &name, "json").unwrap());
        (name, protobuf, json)
    };
    documents(folder).into_iter().filter(has_metadata).map(both).collect()
}

/// The codecs of both encodings for one document.
fn codecs(json: &[u8], rules: &Rules) -> [Codec; 2] {
    let document: Value = serde_json::from_slice(json).unwrap();
    let (api_version, kind) = (document["apiVersion"].as_str().unwrap(), document["kind"].as_str().unwrap());
    [Encoding::Protobuf, Encoding::Json]
        .map(|encoding| Codec::new(encoding, api_version, kind, rules.clone()).unwrap())
}

#[test]
fn both_encodings_give_the_same_metadata_and_the_same_json() {
    let api = require!(go_module("k8s.io/api"));
    let drops = |pointers: &[&str]| {
        pointers
            .iter()
            .fold(Rules::default(), |rules, text| rules.drop(Pointer::parse(text).unwrap()).unwrap())
    };
    let all_rules = [
        (ManagedFields::Keep, drops(&[])),
        (ManagedFields::Cut, drops(&[])),
        (ManagedFields::Writers, drops(&[])),
        (ManagedFields::Cut, drops(&["/status"])),
        (ManagedFields::Writers, drops(&["/spec", "/data", "/status/phase", "/no/such/field"])),
        (ManagedFields::Keep, drops(&["/spec/template", "/metadata/annotations", "/metadata/labels"])),
        (
            ManagedFields::Cut,
            drops(&["/spec/template/spec", "/metadata/ownerReferences", "/metadata/creationTimestamp"]),
        ),
        // Fields of messages that are nested on the wire and flat in JSON.
        (ManagedFields::Cut, drops(&["/spec/nfs", "/spec/awsElasticBlockStore", "/metadata/annotations/no"])),
    ];
    let objects = objects(&api.join("testdata/HEAD"));
    assert!(objects.len() > 150, "{}", objects.len());
    for (name, protobuf, json) in &objects {
        for (managed_fields, rules) in &all_rules {
            let rules = &rules.clone().managed_fields(*managed_fields);
            let [from_protobuf, from_json] = codecs(json, rules);
            let (mut stored_protobuf, mut stored_json) = (Vec::new(), Vec::new());
            let metadata = from_protobuf.ingest(protobuf, &mut stored_protobuf).unwrap();
            assert_eq!(metadata, from_json.ingest(json, &mut stored_json).unwrap(), "{name} {rules:?}");
            assert_eq!(metadata.writers.is_empty(), *managed_fields != ManagedFields::Writers);
            let shown = from_protobuf.json(&stored_protobuf).unwrap();
            assert_eq!(shown, from_json.json(&stored_json).unwrap(), "{name} {rules:?}");
            let managed = Pointer::parse("/metadata/managedFields").unwrap();
            let managed: Option<Value> = from_protobuf.pointer(&stored_protobuf, &managed).unwrap();
            assert_eq!(managed.is_some(), *managed_fields == ManagedFields::Keep, "{name}");

            // Once more, from what was stored: nothing is left to drop.
            let again = from_protobuf.metadata(&stored_protobuf).unwrap();
            assert_eq!(again, from_json.metadata(&stored_json).unwrap(), "{name} {rules:?}");
            assert_eq!((again.name, again.labels), (metadata.name, metadata.labels));
        }
    }
}

#[test]
fn a_pointer_finds_the_same_in_both_encodings() {
    fn pointers(prefix: &str, value: &Value, out: &mut Vec<String>) {
        out.push(prefix.to_owned());
        let mut below = |token: &str, value| {
            pointers(&format!("{prefix}/{}", token.replace('~', "~0").replace('/', "~1")), value, out);
        };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, value)| below(&at.to_string(), value));
            }
            _ => {}
        }
    }
    let api = require!(go_module("k8s.io/api"));
    for (name, protobuf, json) in objects(&api.join("testdata/HEAD")) {
        let [from_protobuf, from_json] = codecs(&json, &Rules::default());
        let (mut stored_protobuf, mut stored_json) = (Vec::new(), Vec::new());
        from_protobuf.ingest(&protobuf, &mut stored_protobuf).unwrap();
        from_json.ingest(&json, &mut stored_json).unwrap();
        let document: Value = serde_json::from_slice(&stored_json).unwrap();
        let mut all = Vec::new();
        pointers("", &document, &mut all);
        all.extend(
            ["/no", "/metadata/no", "/metadata/finalizers/1", "/metadata/finalizers/-"].map(String::from),
        );
        all.extend(["/metadata/finalizers/00", "/metadata/name/0", "/spec/no/such"].map(String::from));
        for text in all {
            let pointer = Pointer::parse(&text).unwrap();
            let expected = document.pointer(&text);
            let found: Option<Value> = from_protobuf.pointer(&stored_protobuf, &pointer).unwrap();
            assert_eq!(found.as_ref(), expected, "{name} {text}");
            let found: Option<Value> = from_json.pointer(&stored_json, &pointer).unwrap();
            assert_eq!(found.as_ref(), expected, "{name} {text}");
        }
    }
}
