//! A change in words, on one line.

use serde_json::Value;

use super::feed::Change;

/// `12:00:01  ~ pod/shop/web-6d5f-x7k2p       Pending → Running`
pub(crate) fn line(change: &Change, colours: bool) -> String {
    let (sign, colour) = match (&change.old, &change.new) {
        (_, None) => ('-', "31"),
        (None, Some(_)) => ('+', "32"),
        (Some(_), Some(_)) => ('~', "33"),
    };
    let object = change.new.as_ref().or(change.old.as_ref());
    let text = |pointer: &str| object.and_then(|o| o.pointer(pointer)).and_then(Value::as_str).unwrap_or("?");
    let name = format!("{}/{}/{}", change.kind, text("/metadata/namespace"), text("/metadata/name"));
    let words = words(change);
    let line = format!("{sign} {name:<58} {words}");
    let line = line.trim_end();
    if colours { format!("\x1b[{colour}m{line}\x1b[0m") } else { line.to_owned() }
}

fn words(change: &Change) -> String {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            let said: Vec<String> = facts(old, new).collect();
            if said.is_empty() { paths(old, new) } else { said.join("; ") }
        }
        (None, Some(new)) => state(new).join("; "),
        (_, None) => "deleted".to_owned(),
    }
}

/// Where two versions of an object differ, two levels deep; what every write changes is left out.
fn paths(old: &Value, new: &Value) -> String {
    const SHOWN: usize = 4;
    let mut paths = Vec::new();
    for (top, before, after) in differing(old, new) {
        if !(before.is_object() && after.is_object()) {
            paths.push(top.to_owned());
        }
        for (field, ..) in differing(before, after) {
            if !(top == "metadata" && ["managedFields", "resourceVersion"].contains(&field)) {
                paths.push(format!("{top}.{field}"));
            }
        }
    }
    let more = paths.len().saturating_sub(SHOWN);
    paths.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("changed {}{more}", paths.join(", "))
}

/// The fields of two objects that differ, with both values.
fn differing<'v>(old: &'v Value, new: &'v Value) -> Vec<(&'v str, &'v Value, &'v Value)> {
    let names = |value: &'v Value| value.as_object().into_iter().flat_map(|map| map.keys());
    let all: std::collections::BTreeSet<&str> = names(old).chain(names(new)).map(String::as_str).collect();
    let pairs = all.into_iter().map(|name| (name, &old[name], &new[name]));
    pairs.filter(|(_, before, after)| before != after).collect()
}

/// The facts that people look at: (what, where).
const FACTS: [(&str, &str); 7] = [
    ("replicas", "/spec/replicas"),
    ("ready", "/status/readyReplicas"),
    ("phase", "/status/phase"),
    ("node", "/spec/nodeName"),
    ("succeeded", "/status/succeeded"),
    ("deleting", "/metadata/deletionTimestamp"),
    ("data", "/data"),
];

fn state(object: &Value) -> Vec<String> {
    let facts = FACTS.iter().filter(|(what, _)| *what != "data");
    let mut said: Vec<String> =
        facts.filter_map(|(what, at)| Some(format!("{what} {}", show(object.pointer(at)?)))).collect();
    said.extend(images(object).iter().map(|(name, image)| format!("image {name} {image}")));
    said
}

fn facts<'v>(old: &'v Value, new: &'v Value) -> impl Iterator<Item = String> + 'v {
    let told = FACTS.iter().filter_map(move |(what, at)| {
        let (before, after) = (old.pointer(at), new.pointer(at));
        if before == after {
            return None;
        }
        Some(match (*what, before, after) {
            ("data", ..) => "data changed".to_owned(),
            ("deleting", None, _) => "is being deleted".to_owned(),
            (_, Some(before), Some(after)) => format!("{what} {}→{}", show(before), show(after)),
            (_, None, Some(after)) => format!("{what} {}", show(after)),
            (_, Some(before), None) => format!("{what} {}→none", show(before)),
            (_, None, None) => String::new(),
        })
    });
    let (before, after) = (images(old), images(new));
    let rolled = after.into_iter().filter_map(move |(name, image)| {
        let old = before.iter().find(|(n, _)| *n == name).map(|(_, image)| image.clone())?;
        (old != image).then(|| format!("image {name} {old}→{image}"))
    });
    let endpoints = (ready_endpoints(old), ready_endpoints(new));
    let endpoints = match endpoints {
        (Some(before), Some(after)) if before != after => Some(format!("ready endpoints {before}→{after}")),
        _ => None,
    };
    let ready = (is_ready(old), is_ready(new));
    let readiness = match ready {
        (false, true) => Some("ready".to_owned()),
        (true, false) => Some("not ready".to_owned()),
        _ => None,
    };
    told.chain(rolled).chain(endpoints).chain(readiness)
}

fn show(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Containers and their images, of a pod or of a template.
fn images(object: &Value) -> Vec<(String, String)> {
    let at = ["/spec/template/spec/containers", "/spec/containers"];
    let containers = at.iter().find_map(|at| object.pointer(at)?.as_array());
    let pairs = containers.into_iter().flatten();
    pairs.filter_map(|c| Some((c["name"].as_str()?.to_owned(), c["image"].as_str()?.to_owned()))).collect()
}

/// How many endpoints of a slice take traffic.
fn ready_endpoints(object: &Value) -> Option<usize> {
    let endpoints = object.get("endpoints")?.as_array()?;
    Some(endpoints.iter().filter(|e| e["conditions"]["ready"] == true).count())
}

fn is_ready(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(replicas: u32, image: &str) -> Value {
        json!({
            "metadata": { "namespace": "shop", "name": "web" },
            "spec": {
                "replicas": replicas,
                "template": { "spec": { "containers": [{ "name": "web", "image": image }] } },
            },
        })
    }

    #[test]
    fn an_update_says_what_changed_from_what_to_what() {
        let change = Change {
            kind: "deployment",
            old: Some(deployment(3, "web:1.4")),
            new: Some(deployment(5, "web:1.5")),
        };
        let line = line(&change, false);
        assert!(line.starts_with("~ deployment/shop/web "), "{line}");
        assert!(line.ends_with("replicas 3→5; image web web:1.4→web:1.5"), "{line}");
    }

    #[test]
    fn a_change_of_nothing_that_people_look_at_names_the_fields() {
        let old = json!({ "metadata": { "resourceVersion": "1" }, "status": { "replicas": 1 } });
        let new =
            json!({ "metadata": { "resourceVersion": "2", "labels": {} }, "status": { "replicas": 2 } });
        let line = line(&Change { kind: "deployment", old: Some(old), new: Some(new) }, false);
        assert!(line.ends_with("changed metadata.labels, status.replicas"), "{line}");
    }

    #[test]
    fn a_delete_is_marked_and_objects_without_fields_do_not_disturb() {
        let change = Change { kind: "pod", old: Some(json!({})), new: None };
        assert_eq!(line(&change, false).split_whitespace().collect::<Vec<_>>(), ["-", "pod/?/?", "deleted"]);
    }
}
