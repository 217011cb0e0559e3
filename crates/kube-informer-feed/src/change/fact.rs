//! What a difference means: its class, and words for it.

use serde_json::Value;

use super::cut::{LAST_APPLIED, head};
use super::diff::Delta;
use super::{Class, image, path};

/// What a difference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) class: Class,
    /// In order of the objects' own order, as far as there is one.
    pub(super) place: Vec<String>,
    /// What it is counted with where there are many of it: `env web`.
    pub(super) group: String,
    /// In words.
    pub(super) text: String,
    pub(super) weight: Weight,
}

/// Whether it is worth to be said: only what weighs most of all that there is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Trivial,
    Minor,
    Plain,
}

/// Which kind of object it is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
}

/// Lists of containers, and what those in them are called.
const CONTAINERS: [(&str, &str); 3] = [
    ("containers", "container"),
    ("initContainers", "init container"),
    ("ephemeralContainers", "ephemeral container"),
];

/// How many are wanted, in the specification.
const SCALE: [&str; 5] = ["replicas", "parallelism", "completions", "minReplicas", "maxReplicas"];

/// How far it is, in the status, and how that is called.
const PROGRESS: [(&str, &str); 18] = [
    ("replicas", "pods"),
    ("readyReplicas", "ready"),
    ("availableReplicas", "available"),
    ("unavailableReplicas", "unavailable"),
    ("updatedReplicas", "updated"),
    ("currentReplicas", "current"),
    ("terminatingReplicas", "stopping"),
    ("desiredNumberScheduled", "desired"),
    ("currentNumberScheduled", "scheduled"),
    ("updatedNumberScheduled", "updated"),
    ("numberReady", "ready"),
    ("numberAvailable", "available"),
    ("numberUnavailable", "unavailable"),
    ("numberMisscheduled", "misscheduled"),
    ("active", "active"),
    ("ready", "ready"),
    ("succeeded", "succeeded"),
    ("failed", "failed"),
];

/// The revision of a rollout is kept as an annotation.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// So is that somebody asked for a restart, in the template.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

impl Kind<'_> {
    /// Whether it holds data for others.
    fn is_config(self) -> bool {
        self.api_version == "v1" && matches!(self.kind, "ConfigMap" | "Secret")
    }

    pub(super) fn is_secret(self) -> bool {
        self.api_version == "v1" && self.kind == "Secret"
    }

    /// What an absent `replicas` stands for.
    fn default_replicas(self) -> Option<Value> {
        let one = self.api_version.starts_with("apps/") || self.kind == "ReplicationController";
        one.then(|| 1.into())
    }

    /// What a difference means. Where much came or went at once, it is several things.
    pub(super) fn facts(self, delta: &Delta) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.expand(
            &mut delta.path.clone(),
            filled(delta.old.as_ref()),
            filled(delta.new.as_ref()),
            &mut facts,
        );
        facts
    }

    fn expand(
        self,
        place: &mut Vec<String>,
        old: Option<&Value>,
        new: Option<&Value>,
        facts: &mut Vec<Fact>,
    ) {
        let inner = match (old, new) {
            (Some(whole), None) | (None, Some(whole)) if is_frame(&tokens(place)) => parts(place, whole),
            _ => None,
        };
        let Some(inner) = inner else {
            facts.push(self.fact(place, old, new));
            return;
        };
        for (token, value) in inner {
            place.push(token);
            let value = filled(Some(value));
            let (old, new) = if old.is_some() { (value, None) } else { (None, value) };
            self.expand(place, old, new, facts);
            place.pop();
        }
    }

    /// What a difference means that is one thing.
    fn fact(self, place: &[String], old: Option<&Value>, new: Option<&Value>) -> Fact {
        let tokens = tokens(place);
        let told = Told { old, new };
        let (class, group, text, weight) = match tokens.as_slice() {
            ["metadata", rest @ ..] => metadata(rest, told),
            ["status", rest @ ..] => status(rest, told),
            ["spec", rest @ ..] => self.spec(rest, told),
            [field, rest @ ..] if self.is_config() => {
                let key = rest.first().copied().unwrap_or(field);
                (
                    Class::Config,
                    "data".to_owned(),
                    format!("data {} {}", name(key), told.how()),
                    Weight::Plain,
                )
            }
            all => said(Class::Spec, &dotted(all), told),
        };
        Fact { class, place: place.to_vec(), group, text, weight }
    }

    fn spec(self, rest: &[&str], told: Told<'_>) -> Words {
        let container = rest.iter().enumerate().find_map(|(at, token)| {
            let (_, what) = CONTAINERS.iter().find(|(section, _)| section == token)?;
            Some((*what, rest.get(at + 1..)?))
        });
        if let Some((what, [called, inner @ ..])) = container {
            return of_container(what, called, inner, told);
        }
        match rest {
            ["replicas"] => {
                let default = self.default_replicas();
                let told = Told { old: told.old.or(default.as_ref()), new: told.new.or(default.as_ref()) };
                if told.old == told.new {
                    return trivial(Class::Spec, "replicas written out");
                }
                (Class::Scale, String::new(), format!("replicas {}", told.values()), Weight::Plain)
            }
            [field] if SCALE.contains(field) => {
                (Class::Scale, String::new(), format!("{field} {}", told.values()), Weight::Plain)
            }
            [.., "image"] if told.is_text() => {
                (Class::Image, String::new(), format!("image {}", told.images()), Weight::Plain)
            }
            ["resources", inner @ ..] => resources("", inner, told),
            [.., "metadata", "annotations", RESTARTED] if told.new.is_some() => {
                (Class::Spec, String::new(), "restarted".to_owned(), Weight::Plain)
            }
            ["paused"] | ["suspend"] => {
                let text = match (rest, told.new) {
                    (["paused"], Some(Value::Bool(true))) => "paused",
                    (_, Some(Value::Bool(true))) => "suspended",
                    _ => "resumed",
                };
                (Class::Spec, String::new(), text.to_owned(), Weight::Plain)
            }
            rest => said(Class::Spec, &dotted(&[&["spec"], rest].concat()), told),
        }
    }

    /// How many there are to be and what they run, of an object that came or went: the places and values.
    pub(super) fn state(self, place: &mut Vec<String>, value: &Value, out: &mut Vec<(Vec<String>, Value)>) {
        let here = tokens(place);
        let is_scale = matches!(here.as_slice(), ["spec", field] if SCALE.contains(field));
        let is_image = value.is_string() && matches!(here.as_slice(), ["spec", .., "image"]);
        if is_scale || is_image {
            out.push((place.clone(), value.clone()));
            return;
        }
        let in_container = matches!(here.as_slice(), ["spec", .., section, _] if is_section(section));
        if !is_frame(&here) && !in_container {
            return;
        }
        for (token, value) in parts(place, value).unwrap_or_default() {
            place.push(token);
            self.state(place, value, out);
            place.pop();
        }
    }
}

/// Class, group, text, weight.
type Words = (Class, String, String, Weight);

/// A value before and after.
#[derive(Clone, Copy)]
struct Told<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

impl Told<'_> {
    fn how(self) -> &'static str {
        match (self.old, self.new) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    /// `3→5`; `changed` of what is not told in a word.
    fn values(self) -> String {
        let simple = |value: Option<&Value>| !matches!(value, Some(Value::Object(_) | Value::Array(_)));
        if !simple(self.old) || !simple(self.new) {
            return self.how().to_owned();
        }
        format!("{}→{}", shown(self.old), shown(self.new))
    }

    fn is_text(self) -> bool {
        let text = |value: Option<&Value>| value.is_none_or(Value::is_string);
        text(self.old) && text(self.new)
    }

    fn images(self) -> String {
        let text = |value: Option<&'_ Value>| value.and_then(Value::as_str).map(str::to_owned);
        match (text(self.old), text(self.new)) {
            (Some(old), Some(new)) => image::change(&old, &new),
            (Some(old), None) => format!("{}→none", image::whole(&old)),
            (None, Some(new)) => format!("none→{}", image::whole(&new)),
            (None, None) => self.how().to_owned(),
        }
    }

    /// What came, or went.
    fn whole(self) -> Option<&'static str> {
        match (self.old, self.new) {
            (None, Some(_)) => Some("added"),
            (Some(_), None) => Some("removed"),
            _ => None,
        }
    }

    /// A text in what came, or went.
    fn text(&self, field: &str) -> Option<&str> {
        self.new.or(self.old)?.get(field)?.as_str()
    }
}

fn metadata(rest: &[&str], told: Told<'_>) -> Words {
    let text = match rest {
        ["deletionTimestamp"] => {
            let text = if told.new.is_some() { "terminating" } else { "not terminating any more" };
            return (Class::Delete, String::new(), text.to_owned(), Weight::Plain);
        }
        ["deletionGracePeriodSeconds"] => {
            return minor(Class::Delete, &format!("grace period {}", told.values()));
        }
        ["labels", key] => {
            return (
                Class::Metadata,
                "label".to_owned(),
                format!("label {} {}", name(key), told.values()),
                Weight::Plain,
            );
        }
        ["annotations", REVISION] => {
            return (Class::Rollout, String::new(), format!("revision {}", told.values()), Weight::Plain);
        }
        ["annotations", LAST_APPLIED] => return trivial(Class::Metadata, "applied configuration changed"),
        ["annotations", key] => {
            let text = format!("annotation {} {}", name(key), told.how());
            return (Class::Metadata, "annotation".to_owned(), text, Weight::Plain);
        }
        ["ownerReferences", _] => {
            let part = |field| told.text(field).unwrap_or_default().to_owned();
            format!("owner {}/{} {}", part("kind"), name(&part("name")), told.how())
        }
        [field, ..] => format!("{field} changed"),
        [] => "metadata changed".to_owned(),
    };
    (Class::Metadata, String::new(), text, Weight::Plain)
}

fn status(rest: &[&str], told: Told<'_>) -> Words {
    match rest {
        [field] if told.numbers_only() && progress(field).is_some() => {
            let called = progress(field).unwrap_or(field);
            counted(Class::Rollout, called, told)
        }
        ["observedGeneration"] => minor(Class::Rollout, &format!("observed generation {}", told.values())),
        ["conditions", kind] => {
            let text = match told.whole() {
                Some("added") => {
                    format!("condition {} {}", name(kind), told.text("status").unwrap_or("added"))
                }
                _ => format!("condition {} {}", name(kind), told.how()),
            };
            (Class::Condition, "condition".to_owned(), text, Weight::Plain)
        }
        ["conditions", kind, "status"] => {
            let text = format!("condition {} {}", name(kind), told.values());
            (Class::Condition, "condition".to_owned(), text, Weight::Plain)
        }
        ["conditions", kind, "reason"] => {
            minor(Class::Condition, &format!("condition {} {}", name(kind), told.values()))
        }
        ["conditions", kind, ..] => trivial(Class::Condition, &format!("condition {} updated", name(kind))),
        ["containerStatuses" | "initContainerStatuses", container, "ready"] => (
            Class::Rollout,
            String::new(),
            format!("ready {} {}", name(container), told.values()),
            Weight::Plain,
        ),
        ["containerStatuses" | "initContainerStatuses", container, "restartCount"] => {
            counted(Class::Status, &format!("restarts {}", name(container)), told)
        }
        ["containerStatuses" | "initContainerStatuses", container, ..] => {
            minor(Class::Status, &format!("status of container {} {}", name(container), told.how()))
        }
        ["phase"] => (Class::Status, String::new(), format!("phase {}", told.values()), Weight::Plain),
        rest => said(Class::Status, &dotted(&[&["status"], rest].concat()), told),
    }
}

/// How a number in the status is called that says how far it is.
fn progress(field: &str) -> Option<&'static str> {
    PROGRESS.iter().find(|(known, _)| *known == field).map(|(_, called)| *called)
}

/// What is counted: nothing is none of it. So a zero that is written out, or left out, is no change of the number.
fn counted(class: Class, called: &str, told: Told<'_>) -> Words {
    let zero = Value::from(0);
    let told = Told { old: told.old.or(Some(&zero)), new: told.new.or(Some(&zero)) };
    if told.old == told.new {
        return trivial(Class::Status, &format!("{called} still {}", shown(told.new)));
    }
    (class, String::new(), format!("{called} {}", told.values()), Weight::Plain)
}

fn of_container(what: &str, called: &str, inner: &[&str], told: Told<'_>) -> Words {
    let called = name(called);
    let kind = what.strip_suffix(" container").map(|kind| format!(" ({kind})")).unwrap_or_default();
    match inner {
        [] => {
            let image =
                told.text("image").map(|text| format!(" ({})", image::whole(text))).unwrap_or_default();
            (Class::Image, String::new(), format!("{what} {called} {}{image}", told.how()), Weight::Plain)
        }
        ["image"] => {
            (Class::Image, String::new(), format!("image {called}{kind} {}", told.images()), Weight::Plain)
        }
        // Their values are told by their paths, and not in logs: many are passwords.
        ["env", variable, rest @ ..] => {
            let how = if rest.is_empty() { told.how() } else { "changed" };
            (
                Class::Env,
                format!("env {called}"),
                format!("env {called} {} {how}", name(variable)),
                Weight::Plain,
            )
        }
        ["env" | "envFrom", ..] => {
            (Class::Env, format!("env {called}"), format!("env {called} {}", told.how()), Weight::Plain)
        }
        ["resources", inner @ ..] => resources(&format!("{called} "), inner, told),
        rest => said(Class::Spec, &format!("{called} {}", dotted(rest)), told),
    }
}

fn resources(of: &str, inner: &[&str], told: Told<'_>) -> Words {
    let text = match inner {
        [which, resource] => format!("{which} {of}{} {}", name(resource), told.values()),
        _ => format!("resources {of}{}", told.how()),
    };
    (Class::Resources, String::new(), text, Weight::Plain)
}

fn minor(class: Class, text: &str) -> Words {
    (class, String::new(), text.to_owned(), Weight::Minor)
}

fn trivial(class: Class, text: &str) -> Words {
    (class, String::new(), text.to_owned(), Weight::Trivial)
}

fn said(class: Class, what: &str, told: Told<'_>) -> Words {
    (class, String::new(), format!("{what} {}", told.values()), Weight::Plain)
}

impl Told<'_> {
    fn numbers_only(self) -> bool {
        let number = |value: Option<&Value>| value.is_none_or(Value::is_number);
        number(self.old) && number(self.new)
    }
}

fn tokens(place: &[String]) -> Vec<&str> {
    place.iter().map(String::as_str).collect()
}

fn is_section(token: &str) -> bool {
    CONTAINERS.iter().any(|(section, _)| *section == token)
}

/// Whether a place only holds what is told one by one, also where all of it came or went at once.
fn is_frame(place: &[&str]) -> bool {
    match place {
        [] | ["metadata" | "spec" | "status" | "data" | "binaryData" | "stringData"] => true,
        ["metadata", "labels" | "annotations" | "ownerReferences"] | ["status", "conditions"] => true,
        ["spec", .., "metadata"] | ["spec", .., "metadata", "labels" | "annotations"] => true,
        ["spec", .., before, "env"] => !is_section(before),
        ["spec", .., "template" | "spec" | "jobTemplate" | "resources" | "requests" | "limits"] => true,
        ["spec", .., last] => is_section(last),
        _ => false,
    }
}

/// The parts of what can be taken apart: fields, or elements that are called something.
fn parts<'a>(place: &[String], value: &'a Value) -> Option<Vec<(String, &'a Value)>> {
    match value {
        Value::Object(map) => Some(map.iter().map(|(key, value)| (key.clone(), value)).collect()),
        Value::Array(list) => {
            let keys = path::keys(place.last().map_or("", String::as_str), list)?;
            Some(keys.into_iter().zip(list).collect())
        }
        _ => None,
    }
}

/// An empty map or list is as good as none.
fn filled(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Null => false,
        _ => true,
    })
}

fn dotted(tokens: &[&str]) -> String {
    tokens.iter().map(|token| name(token)).collect::<Vec<_>>().join(".")
}

/// A name as it is said: some are longer than a line.
fn name(token: &str) -> String {
    const LONGEST: usize = 63;
    if token.len() <= LONGEST { token.to_owned() } else { format!("{}…", head(token, LONGEST)) }
}

/// A value as it is said.
fn shown(value: Option<&Value>) -> String {
    const LONGEST: usize = 40;
    match value {
        None => "none".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "\"\"".to_owned(),
        Some(Value::String(text)) if text.len() > LONGEST => format!("{}…", head(text, LONGEST)),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
