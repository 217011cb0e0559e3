//! Conditions in a status.

use serde_json::{Map, Value, json};

use crate::api::{seconds, text};

/// What a condition says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// Now, as a time in a status.
pub(super) fn now() -> String {
    seconds(jiff::Timestamp::now())
}

/// Finds a condition by its type.
pub(super) fn find<'v>(status: &'v Value, kind: &str) -> Option<&'v Value> {
    status.get("conditions")?.as_array()?.iter().find(|c| text(c, "/type") == kind)
}

pub(super) fn is_true(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|c| text(c, "/status") == "True")
}

/// Sets a condition; its transition time stays while its status does, and nothing changes if it says the
/// same as before. `stamps` are further times that a change sets.
pub(super) fn set(status: &mut Value, condition: Condition<'_>, stamps: &[&str]) {
    let Condition { kind, status: truth, reason, message } = condition;
    let old = find(status, kind);
    if old.is_some_and(|c| {
        text(c, "/status") == truth && text(c, "/reason") == reason && text(c, "/message") == message
    }) {
        return;
    }
    let since = old.filter(|c| text(c, "/status") == truth).map(|c| text(c, "/lastTransitionTime"));
    let mut new = Map::new();
    new.insert("type".into(), kind.into());
    new.insert("status".into(), truth.into());
    new.insert("lastTransitionTime".into(), since.map_or_else(now, str::to_owned).into());
    for stamp in stamps {
        new.insert((*stamp).into(), now().into());
    }
    for (field, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            new.insert(field.into(), text.into());
        }
    }
    let new = Value::Object(new);
    if !status.is_object() {
        *status = json!({});
    }
    match &mut status["conditions"] {
        Value::Array(all) => match all.iter_mut().find(|c| text(c, "/type") == kind) {
            Some(old) => *old = new,
            None => all.push(new),
        },
        other => *other = json!([new]),
    }
}

pub(super) fn remove(status: &mut Value, kind: &str) {
    if let Some(Value::Array(all)) = status.get_mut("conditions") {
        all.retain(|c| text(c, "/type") != kind);
    }
}
