//! What is said of objects: changes in words, who they are, and the whole of them.
//!
//! An object that cannot be looked into is told of all the same, without what is in it.

use jiff::Timestamp;
use kube_informer::object::Object;
use serde_json::Value;

use crate::change::{Change, Class, FieldChange, Reason, Subject, What};

/// It came.
pub(crate) fn added(new: &Object) -> Change {
    Change { classes: vec![Class::Create], ..blank(What::Added, new, "created") }
}

/// It came into what was asked for.
pub(crate) fn entered(new: &Object) -> Change {
    Change { reason: Some(Reason::EnteredSelector), ..added(new) }
}

/// It changed.
pub(crate) fn modified(old: &Object, new: &Object) -> Change {
    let mut changes = Vec::new();
    if let (Some(a), Some(b)) = (value(old), value(new)) {
        compare("", Some(&a), Some(&b), &mut changes);
    }
    let summary = changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join("; ");
    Change { classes: vec![Class::Spec], changes, ..blank(What::Modified, new, &summary) }
}

/// It went.
pub(crate) fn deleted(last: &Object, certain: bool) -> Change {
    let reason = (!certain).then_some(Reason::FoundMissing);
    Change { classes: vec![Class::Delete], reason, ..blank(What::Deleted, last, "deleted") }
}

/// It went out of what was asked for.
pub(crate) fn left(last: &Object) -> Change {
    Change { reason: Some(Reason::LeftSelector), ..deleted(last, true) }
}

/// Two changes of one object, as one; `None` where they cannot be.
pub(crate) fn merge(earlier: &Change, later: &Change) -> Option<Change> {
    if earlier.what == What::Deleted || later.what != What::Modified || earlier.obj.uid != later.obj.uid {
        return None;
    }
    let mut merged = later.clone();
    merged.what = earlier.what;
    merged.coalesced = earlier.coalesced.saturating_add(later.coalesced);
    merged.reason = earlier.reason;
    let mut changes = earlier.changes.clone();
    for change in &later.changes {
        match changes.iter_mut().find(|known| known.path == change.path) {
            Some(known) => known.new = change.new.clone(),
            None => changes.push(change.clone()),
        }
    }
    merged.changes = changes;
    Some(merged)
}

/// Who an object is.
pub(crate) fn subject(object: &Object) -> Subject {
    let root = match object.controller() {
        Some(owner) => format!("{}/{}", owner.kind, owner.name),
        None => format!("{}/{}", object.kind(), object.name()),
    };
    Subject {
        api_version: object.api_version().to_owned(),
        kind: object.kind().to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: object.uid().to_string(),
        version: object.version().to_string(),
        generation: object.generation(),
        root,
    }
}

/// The whole of an object as JSON. Values of secrets are hidden: whoever may see the feed need not be allowed to see them.
pub(crate) fn whole(object: &Object) -> String {
    let json = object.json().unwrap_or_else(|error| {
        tracing::warn!(object = %object.key(), %error, "an object cannot be read");
        "null".to_owned()
    });
    if object.kind() != "Secret" {
        return json;
    }
    let mut value: Value = serde_json::from_str(&json).unwrap_or_default();
    for field in ["data", "stringData"] {
        if let Some(Value::Object(data)) = value.get_mut(field) {
            data.values_mut().for_each(|value| *value = "<hidden>".into());
        }
    }
    if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        // `kubectl apply` writes everything into one.
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    value.to_string()
}

fn blank(what: What, object: &Object, summary: &str) -> Change {
    Change {
        what,
        time: Timestamp::now(),
        obj: subject(object),
        classes: Vec::new(),
        summary: summary.to_owned(),
        changes: Vec::new(),
        actor: None,
        reason: None,
        coalesced: 1,
    }
}

fn value(object: &Object) -> Option<Value> {
    let mut value: Value = serde_json::from_str(&object.json().ok()?).ok()?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        ["resourceVersion", "generation", "managedFields"].iter().for_each(|field| _ = metadata.remove(*field));
    }
    Some(value)
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<FieldChange>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                compare(&format!("{path}/{escaped}"), a.get(key), b.get(key), changes);
            }
        }
        (old, new) => {
            changes.push(FieldChange { path: path.to_owned(), old: old.cloned(), new: new.cloned() });
        }
    }
}
