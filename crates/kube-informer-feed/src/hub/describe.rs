//! What is said of objects: changes in words, who they are, and the whole of them.
//!
//! An object that cannot be looked into is told of all the same, without what is in it.

use jiff::Timestamp;
use kube_informer::encoding::ViewError;
use kube_informer::object::Object;
use serde_json::Value;

use crate::change::{Change, Class, Reason, Subject, What};

/// It came.
pub(crate) fn added(new: &Object) -> Change {
    Change::added(new).unwrap_or_else(|error| blind(What::Added, new, &error))
}

/// It came into what was asked for, by a change: when and whose it was counts, and not who made the object once.
pub(crate) fn entered(new: &Object, by: &Change) -> Change {
    let reason = Some(Reason::EnteredSelector);
    Change { reason, time: by.time, actor: by.actor.clone(), ..added(new) }
}

/// It changed.
pub(crate) fn modified(old: &Object, new: &Object) -> Change {
    Change::modified(old, new).unwrap_or_else(|error| blind(What::Modified, new, &error))
}

/// It went.
pub(crate) fn deleted(last: &Object, certain: bool) -> Change {
    Change::deleted(last, certain).unwrap_or_else(|error| {
        let reason = (!certain).then_some(Reason::FoundMissing);
        Change { reason, ..blind(What::Deleted, last, &error) }
    })
}

/// It went out of what was asked for, by a change.
pub(crate) fn left(last: &Object, by: &Change) -> Change {
    let (reason, summary) = (Some(Reason::LeftSelector), "not selected any more".to_owned());
    Change { reason, summary, time: by.time, actor: by.actor.clone(), ..deleted(last, true) }
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

/// What is said of an object that cannot be read.
fn blind(what: What, object: &Object, error: &ViewError) -> Change {
    tracing::warn!(object = %object.key(), %error, "an object cannot be read; that it changed is told");
    let class = match what {
        What::Added => Class::Create,
        What::Modified => Class::Spec,
        What::Deleted => Class::Delete,
    };
    Change {
        what,
        time: Timestamp::now(),
        obj: Subject::of(object),
        classes: vec![class],
        summary: format!("the object cannot be read: {error}"),
        changes: Vec::new(),
        truncated: 0,
        actor: None,
        reason: None,
        coalesced: 1,
    }
}
