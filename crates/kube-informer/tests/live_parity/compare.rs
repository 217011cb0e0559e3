//! Whether the two encodings of an object are read as the same.

use std::borrow::Cow;

use kube_informer::encoding::{Codec, Encoding, ManagedFields, Rules};
use serde_json::Value;

/// What is different between an object in protobuf and the same version of it in JSON, under every rule.
///
/// Equal must be: the metadata; the canonical JSON; and the dynamic view of either with the server's JSON,
/// to which an item of a list adds its type.
pub(crate) fn differences(
    (api_version, kind): (&str, &str),
    what: &str,
    protobuf: &[u8],
    json: &[u8],
) -> Vec<String> {
    let mut expected: Value = serde_json::from_slice(json).unwrap();
    expected["apiVersion"] = Value::from(api_version);
    expected["kind"] = Value::from(kind);
    let mut json = Cow::Borrowed(json);
    if without_types_of_templates(&mut expected) {
        json = Cow::Owned(serde_json::to_vec(&expected).unwrap());
    }
    let mut found = Vec::new();
    for managed_fields in [ManagedFields::Keep, ManagedFields::Writers, ManagedFields::Cut] {
        if managed_fields != ManagedFields::Keep
            && let Some(metadata) = expected["metadata"].as_object_mut()
        {
            metadata.remove("managedFields");
        }
        let compared = under(api_version, kind, managed_fields, protobuf, &json, &expected);
        found.extend(compared.err().map(|error| format!("{what} ({managed_fields:?}): {error}")));
    }
    found
}

/// Takes the types off the volume claim templates of a stateful set, and says whether there were any.
///
/// The server writes them in JSON whatever was stored, and in protobuf there is no place for them. Nothing else
/// that it shows in JSON is missing in protobuf.
pub(crate) fn without_types_of_templates(object: &mut Value) -> bool {
    let Some(templates) = object.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut)
    else {
        return false;
    };
    for template in templates.iter_mut().filter_map(Value::as_object_mut) {
        assert_eq!(template.remove("apiVersion"), Some(Value::from("v1")));
        assert_eq!(template.remove("kind"), Some(Value::from("PersistentVolumeClaim")));
    }
    true
}

fn under(
    api_version: &str,
    kind: &str,
    managed_fields: ManagedFields,
    protobuf: &[u8],
    json: &[u8],
    expected: &Value,
) -> Result<(), String> {
    let rules = Rules::default().managed_fields(managed_fields);
    let codec = |encoding| Codec::new(encoding, api_version, kind, rules.clone());
    let from_protobuf = codec(Encoding::Protobuf).map_err(|error| error.to_string())?;
    let from_json = codec(Encoding::Json).map_err(|error| error.to_string())?;
    let (mut stored_protobuf, mut stored_json) = (Vec::new(), Vec::new());
    let metadata =
        from_protobuf.ingest(protobuf, &mut stored_protobuf).map_err(|error| format!("protobuf: {error}"))?;
    let mut other = from_json.ingest(json, &mut stored_json).map_err(|error| format!("JSON: {error}"))?;
    if other.kind.is_empty() {
        // The only place where an encoding shows: an item of a list does not say its type in JSON.
        (other.api_version, other.kind) = (api_version.into(), kind.into());
    }
    same("metadata", &metadata, &other)?;
    let again = from_protobuf.metadata(&stored_protobuf).map_err(|error| error.to_string())?;
    same("stored metadata", &again, &from_json.metadata(&stored_json).map_err(|error| error.to_string())?)?;

    for (name, codec, stored) in
        [("protobuf", &from_protobuf, &stored_protobuf), ("JSON", &from_json, &stored_json)]
    {
        let view: Value = codec.view(stored).map_err(|error| format!("{name}: {error}"))?;
        if let Some(at) = difference("", &view, expected) {
            return Err(format!("the view of {name} is not the server's JSON: {at}"));
        }
    }
    let shown = from_protobuf.json(&stored_protobuf).map_err(|error| error.to_string())?;
    same("JSON", &shown, &from_json.json(&stored_json).map_err(|error| error.to_string())?)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, protobuf: &T, json: &T) -> Result<(), String> {
    if protobuf == json {
        return Ok(());
    }
    Err(format!("{what}: {protobuf:?}\nand: {json:?}"))
}

/// Where two documents differ first, for people.
pub(crate) fn difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            let mut fields = x.iter().zip(y);
            fields.find_map(|((key, a), (_, b))| difference(&format!("{path}/{key}"), a, b))
        }
        (Value::Object(x), Value::Object(y)) => {
            let only = |a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>| {
                a.iter()
                    .filter(|(key, _)| !b.contains_key(*key))
                    .map(|(key, value)| format!("{key}: {value}"))
                    .collect::<Vec<_>>()
            };
            Some(format!("{path}: only {:?}, and only {:?}", only(x, y), only(y, x)))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let mut items = x.iter().zip(y).enumerate();
            items.find_map(|(index, (a, b))| difference(&format!("{path}/{index}"), a, b))
        }
        (a, b) => (a != b).then(|| format!("{path}: {a} and {b}")),
    }
}
