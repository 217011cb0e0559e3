//! What the server says about a definition: its names, whether it is served, how its end goes.
//!
//! The real server says it in several small writes of controllers; here each function gives the
//! outcome of one of them at once. `now` is an RFC 3339 time in UTC.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{items, strings, text};

/// On a definition while its objects are being deleted.
const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The status of a definition among the `others` that exist: names accepted where nobody else in the
/// group has them, established once all are.
pub(crate) fn status(crd: &Value, others: &[Value], now: &str) -> Value {
    let mut out = crd.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let names = &crd["spec"]["names"];
    let accepted = out.get("acceptedNames").cloned().unwrap_or_default();
    if same_names(names, &accepted) {
        return Value::Object(out);
    }
    let taken = Taken::by(crd, others);
    let mut new_names = accepted.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    for (field, reason, in_use) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let problems = if field == "shortNames" {
            let own = strings(&accepted, field);
            let wanted = strings(names, field);
            wanted
                .iter()
                .filter(|name| !own.contains(name) && in_use.contains(*name))
                .map(in_use_text)
                .collect()
        } else {
            let wanted = text(names, field).to_owned();
            let free = wanted == text(&accepted, field) || !in_use.contains(&wanted);
            if free { Vec::new() } else { vec![in_use_text(&wanted)] }
        };
        match problems.as_slice() {
            [] => copy_field(names, field, &mut new_names),
            [one] => conflict = Some((reason, one.clone())),
            // Several errors are shown as a list, each once.
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    copy_field(names, "categories", &mut new_names);

    let names_accepted = conflict.is_none();
    let (reason, message) = conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    set_condition(&mut out, "NamesAccepted", names_accepted, reason, &message, now);
    if names_accepted {
        if !is_true(&out, "Established") {
            let message = "the initial names have been accepted";
            set_condition(&mut out, "Established", true, "InitialNamesAccepted", message, now);
        }
    } else if condition(&out, "Established").is_none() {
        set_condition(&mut out, "Established", false, "NotAccepted", "not all names are accepted", now);
    }
    out.insert("acceptedNames".to_owned(), Value::Object(new_names));
    Value::Object(out)
}

/// Whether requests for its objects are answered.
pub(crate) fn is_served(crd: &Value) -> bool {
    status_of(crd).is_some_and(|status| is_true(status, "NamesAccepted") || is_true(status, "Established"))
}

/// Whether it is in discovery.
pub(crate) fn is_established(crd: &Value) -> bool {
    status_of(crd).is_some_and(|status| is_true(status, "Established"))
}

/// Whether it is on its way out; its objects may then be read and deleted, not created.
pub(crate) fn is_terminating(crd: &Value) -> bool {
    crd["metadata"].get("deletionTimestamp").is_some_and(|time| !time.is_null())
        || status_of(crd).is_some_and(|status| is_true(status, "Terminating"))
}

/// The first request to delete a definition: it stays until its objects are gone.
pub(crate) fn mark_deleted(crd: &mut Value, now: &str) {
    if let Some(metadata) = crd.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("deletionTimestamp").or_insert_with(|| now.into());
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        let held = |finalizers: &Vec<Value>| finalizers.iter().any(|name| name == CLEANUP_FINALIZER);
        if let Some(finalizers) = finalizers.as_array_mut().filter(|finalizers| !held(finalizers)) {
            finalizers.push(CLEANUP_FINALIZER.into());
        }
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_terminating(crd, true, "InstanceDeletionPending", message, now);
}

/// The deletion of the objects begins.
pub(crate) fn mark_deleting_instances(crd: &mut Value, now: &str) {
    let message = "CustomResource deletion is in progress";
    set_terminating(crd, true, "InstanceDeletionInProgress", message, now);
}

/// The objects are gone: nothing holds the definition any more.
pub(crate) fn mark_instances_deleted(crd: &mut Value, now: &str) {
    let (reason, message) = if is_established(crd) {
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    set_terminating(crd, false, reason, message, now);
    if let Some(metadata) = crd.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut)
    {
        finalizers.retain(|name| name != CLEANUP_FINALIZER);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
}

/// The names that a group's definitions hold, the definition's own included.
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn by(crd: &Value, others: &[Value]) -> Self {
        let mut taken = Self { resources: BTreeSet::new(), kinds: BTreeSet::new() };
        let own = text(&crd["metadata"], "name");
        let group = text(&crd["spec"], "group");
        let others = others.iter().filter(|other| text(&other["metadata"], "name") != own);
        for item in others.chain([crd]).filter(|item| text(&item["spec"], "group") == group) {
            let names = &item["status"]["acceptedNames"];
            taken.resources.extend([text(names, "plural").to_owned(), text(names, "singular").to_owned()]);
            taken.resources.extend(strings(names, "shortNames"));
            taken.kinds.extend([text(names, "kind").to_owned(), text(names, "listKind").to_owned()]);
        }
        taken
    }
}

fn in_use_text(name: impl AsRef<str>) -> String {
    format!("{:?} is already in use", name.as_ref())
}

fn copy_field(names: &Value, field: &str, into: &mut Map<String, Value>) {
    match names.get(field) {
        Some(value) => into.insert(field.to_owned(), value.clone()),
        None => into.remove(field),
    };
}

fn same_names(wanted: &Value, accepted: &Value) -> bool {
    let texts = ["plural", "singular", "kind", "listKind"];
    let lists = ["shortNames", "categories"];
    texts.iter().all(|field| text(wanted, field) == text(accepted, field))
        && lists.iter().all(|field| items(wanted, field) == items(accepted, field))
}

fn status_of(crd: &Value) -> Option<&Map<String, Value>> {
    crd.get("status")?.as_object()
}

fn condition<'s>(status: &'s Map<String, Value>, kind: &str) -> Option<&'s Value> {
    status.get("conditions")?.as_array()?.iter().find(|condition| text(condition, "type") == kind)
}

fn is_true(status: &Map<String, Value>, kind: &str) -> bool {
    condition(status, kind).is_some_and(|condition| text(condition, "status") == "True")
}

fn set_terminating(crd: &mut Value, value: bool, reason: &str, message: &str, now: &str) {
    let Some(crd) = crd.as_object_mut() else { return };
    let status = crd.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        set_condition(status, "Terminating", value, reason, message, now);
    }
}

/// Adds or replaces a condition; the transition time moves only when the status does.
fn set_condition(
    status: &mut Map<String, Value>,
    kind: &str,
    value: bool,
    reason: &str,
    message: &str,
    now: &str,
) {
    let value = if value { "True" } else { "False" };
    let kept = condition(status, kind)
        .filter(|old| text(old, "status") == value)
        .map(|old| text(old, "lastTransitionTime").to_owned())
        .filter(|time| !time.is_empty());
    let new = json!({
        "type": kind,
        "status": value,
        "lastTransitionTime": kept.unwrap_or_else(|| now.to_owned()),
        "reason": reason,
        "message": message,
    });
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        match conditions.iter_mut().find(|condition| text(condition, "type") == kind) {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
}
