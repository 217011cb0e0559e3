//! What the server does to a definition before it looks at it.

use serde_json::{Map, Value, json};

use super::{flag, items, text};

/// Fills in what a definition may leave out.
pub(crate) fn default_definition(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let empty = |names: &Map<String, Value>, key: &str| {
            names.get(key).and_then(Value::as_str).is_none_or(str::is_empty)
        };
        if !kind.is_empty() && empty(names, "singular") {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if !kind.is_empty() && empty(names, "listKind") {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    let conversion = spec.get("conversion").unwrap_or(&Value::Null);
    if conversion.is_null() {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
}

/// Gives a definition the status that a write through the main resource leaves it: an empty one when
/// it is new, the old one otherwise, and the storage version among those that were ever stored.
pub(crate) fn prepare_definition(crd: &mut Value, old: Option<&Value>) {
    let storage = items(&crd["spec"], "versions").iter().find(|version| flag(version, "storage"));
    let storage = storage.map(|version| text(version, "name").to_owned());
    let kept = old.and_then(|old| old.get("status")).filter(|status| status.is_object());
    let mut status = kept.cloned().unwrap_or_else(
        || json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": null }),
    );
    if let (Some(storage), Some(status)) = (storage, status.as_object_mut()) {
        let mut stored = status.get("storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
        if !stored.iter().any(|version| version.as_str() == Some(&storage)) {
            stored.push(storage.into());
        }
        status.insert("storedVersions".to_owned(), Value::Array(stored));
    }
    if let Some(crd) = crd.as_object_mut() {
        crd.insert("status".to_owned(), status);
    }
}
