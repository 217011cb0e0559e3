//! One version of one object, serialised once.
//!
//! A [`Stored`] never changes. It holds the JSON bytes that every reader and watcher is sent, and the
//! few facts that selecting needs, so that nothing is parsed to list or to watch. Other forms of the same
//! version (another API version, metadata only) are made at most once each and then shared too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::convert;
use crate::kinds::Resource;
use crate::negotiate::MetaVersion;
use crate::selector;

/// How often and how much was serialised: the proof that watchers share bytes.
#[derive(Debug, Default)]
pub(crate) struct Serialised {
    objects: AtomicU64,
    bytes: AtomicU64,
}

impl Serialised {
    pub(crate) fn count(&self, bytes: usize) {
        self.objects.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The form in which an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it.
    Object,
    /// `PartialObjectMetadata`.
    Metadata(MetaVersion),
}

/// One version of one object.
pub(crate) struct Stored {
    /// `namespace/name`, or `name` for cluster-scoped objects: the order of lists.
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) revision: u64,
    pub(crate) labels: BTreeMap<String, String>,
    /// What field selectors can ask for.
    pub(crate) fields: Vec<(String, String)>,
    /// UIDs of the owners.
    pub(crate) owners: Vec<String>,
    /// A deletion has been asked for.
    pub(crate) deleting: bool,
    /// The version that it was stored in.
    version: String,
    /// In the storage version, the type first, all other keys sorted.
    json: Bytes,
    /// Where in `json` what follows the type starts.
    after_type: usize,
    forms: Mutex<Vec<(Form, String, Bytes)>>,
    serialised: Arc<Serialised>,
}

impl Stored {
    /// Serialises `object`, which carries its final `resourceVersion`.
    pub(crate) fn new(
        resource: &Resource,
        object: &Value,
        revision: u64,
        serialised: &Arc<Serialised>,
    ) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("/metadata/name");
        let namespace = text("/metadata/namespace");
        let (json, after_type) = serialise(object);
        serialised.count(json.len());
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        Self {
            key: key(&namespace, &name),
            uid: text("/metadata/uid"),
            revision,
            labels: labels_of(object),
            fields: fields_of(resource, object),
            owners: owners
                .into_iter()
                .flatten()
                .filter_map(|o| o.get("uid")?.as_str().map(str::to_owned))
                .collect(),
            deleting: object.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()),
            name,
            namespace,
            version: resource.storage_version.clone(),
            json,
            after_type,
            forms: Mutex::default(),
            serialised: Arc::clone(serialised),
        }
    }

    /// The object as a tree, in the storage version.
    pub(crate) fn value(&self) -> Value {
        // The bytes were made by `to_string` above.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The object as a tree, in the version of `resource`.
    pub(crate) fn value_as(&self, resource: &Resource) -> Value {
        let mut value = self.value();
        convert::from_storage(resource, &mut value);
        value
    }

    /// Whether the stored bytes differ from what `resource` shows. A definition may have changed the version
    /// that objects are stored in since.
    fn converts(&self, resource: &Resource) -> bool {
        let older = || resource.custom.is_some() && self.version != resource.storage_version;
        convert::is_needed(resource) || older()
    }

    /// The bytes of this object as an item of a list of built-in objects, in pieces: no copy is kept of them.
    pub(crate) fn item(&self, resource: &Resource) -> [Bytes; 2] {
        let (json, after_type) = match self.converts(resource) {
            true => serialise(&self.value_as(resource)),
            false => (self.json.clone(), self.after_type),
        };
        match after_type {
            0 => [Bytes::new(), json],
            at => [Bytes::from_static(b"{"), json.slice(at..)],
        }
    }

    /// The bytes to send for `resource`'s version in `form`; made once, then shared.
    pub(crate) fn bytes(&self, resource: &Resource, form: Form) -> Bytes {
        if form == Form::Object && !self.converts(resource) {
            return self.json.clone();
        }
        let version = if form == Form::Object { resource.api_version() } else { String::new() };
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., bytes)) = forms.iter().find(|(f, v, _)| *f == form && *v == version) {
            return bytes.clone();
        }
        let value = match form {
            Form::Object => self.value_as(resource),
            Form::Metadata(version) => partial_metadata(&self.value(), version),
        };
        let (bytes, _) = serialise(&value);
        self.serialised.count(bytes.len());
        forms.push((form, version, bytes.clone()));
        bytes
    }
}

/// The bytes of an object, its type first as the real server writes it, and where the type ends.
fn serialise(object: &Value) -> (Bytes, usize) {
    let (Some(kind), Some(version)) = (object.get("kind"), object.get("apiVersion")) else {
        return (object.to_string().into(), 0);
    };
    let mut rest = object.clone();
    if let Some(map) = rest.as_object_mut() {
        map.remove("kind");
        map.remove("apiVersion");
    }
    let rest = rest.to_string();
    if rest == "{}" {
        return (object.to_string().into(), 0);
    }
    let head = format!(r#"{{"kind":{kind},"apiVersion":{version},"#);
    let at = head.len();
    (Bytes::from(head + rest.get(1..).unwrap_or_default()), at)
}

fn fields_of(resource: &Resource, object: &Value) -> Vec<(String, String)> {
    let mut fields = selector::field_values(resource, object);
    let custom = resource.custom.iter().flat_map(|custom| &custom.selectable_fields);
    fields.extend(custom.filter_map(|field| {
        let value = *field.json_path.find(object).first()?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((field.name.clone(), text))
    }));
    fields
}

/// `namespace/name`; sorted as etcd sorts its keys.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// The labels, or none.
pub(crate) fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten();
    pairs.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn partial_metadata(object: &Value, version: MetaVersion) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({ "kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": metadata })
}

/// How many levels an object may have. Below what the parser reads (128), so that what was stored can be
/// read again.
pub(crate) const DEEPEST: usize = 120;

/// How many levels of lists and maps a value has.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The metadata of an object as a map; made if it is missing or no map.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}
