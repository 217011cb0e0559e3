//! What there is to say of a change, for somebody who has never seen one.
//!
//! What people decide (how many, which image, which settings, who comes and goes) is said in the words of the change model, at
//! once. The way there is said in the end, by its result: pods in one word each, as `Starting` and `Ready`, workloads by how many
//! are ready. Everything else of a status is noise here, and nothing is said of it; nor of what every namespace has, and of slices
//! that lead to the pods of a Service, as all do that nobody put to sleep.

use kube_informer::object::Object;
use kube_informer_feed::change::{Change, Class};
use serde_json::Value;

/// Something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) when: When,
    pub(super) text: String,
}

/// When it is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Now: it is news by itself.
    Now,
    /// A little later, together with what follows: it is the way to something.
    Soon,
}

/// How far something is: (where that is written, how it is called).
const PROGRESS: [(&str, &str); 3] =
    [("/status/readyReplicas", "ready"), ("/status/succeeded", "succeeded"), ("/status/failed", "failed")];

/// The label of a slice that says who looks after it, and who it is of those that lead to the resolver.
const TO_RESOLVER: (&str, &str) = ("endpointslice.kubernetes.io/managed-by", "kube-informer-elasti");

/// What every namespace has.
const EVERYWHERE: &str = "kube-root-ca.crt";

/// What there is to say of an object that came, changed or went.
pub(super) fn words(old: Option<&Object>, new: Option<&Object>) -> Option<Said> {
    let object = new.or(old)?;
    match object.kind() {
        "Pod" => soon(told(old, new, |pod| Some(state(pod)), |word| word)?),
        "EndpointSlice" => {
            let (label, operator) = TO_RESOLVER;
            if object.labels().get(label) != Some(operator) {
                return None;
            }
            let count = |slice: &Object| Some(ready_endpoints(slice).to_string());
            soon(told(old, new, count, |count| format!("leads to the resolver, ready {count}"))?)
        }
        "ConfigMap" if object.name() == EVERYWHERE => None,
        _ => match (old, new) {
            (Some(old), Some(new)) => modified(old, new),
            (None, Some(new)) => now(&Change::added(new).ok()?),
            (old, None) => now(&Change::deleted(old?, true).ok()?),
        },
    }
}

/// What an object is that is there already.
pub(super) fn state_of(object: &Object) -> Option<String> {
    let said = Change::added(object).ok()?.summary;
    let rest = said.strip_prefix("created").unwrap_or(&said);
    Some(rest.trim_start_matches("; ").to_owned())
}

fn now(change: &Change) -> Option<Said> {
    // Who does not say who it is, is called unknown.
    let actor = change.actor.as_ref().filter(|actor| actor.manager != "unknown");
    let by = actor.map(|actor| format!(" ({})", actor.manager)).unwrap_or_default();
    Some(Said { when: When::Now, text: format!("{}{by}", change.summary) })
}

fn soon(text: String) -> Option<Said> {
    Some(Said { when: When::Soon, text })
}

/// What is said of something that can be told in a word.
fn told(
    old: Option<&Object>,
    new: Option<&Object>,
    word: impl Fn(&Object) -> Option<String>,
    sentence: impl Fn(String) -> String,
) -> Option<String> {
    match (old, new) {
        (Some(old), Some(new)) => {
            let (before, after) = (word(old)?, word(new)?);
            (before != after).then(|| sentence(format!("{before}→{after}")))
        }
        (None, Some(new)) => Some(format!("created; {}", sentence(word(new)?))),
        (_, None) => Some("deleted".to_owned()),
    }
}

fn modified(old: &Object, new: &Object) -> Option<Said> {
    let change = Change::modified(old, new).ok()?;
    let is_way = |class: &Class| matches!(class, Class::Rollout | Class::Condition | Class::Status);
    // That somebody wants to be asked before it goes, is part of the way, too.
    let is_finalizer = |place: &str| place.starts_with("/metadata/finalizers");
    if !change.classes.iter().all(is_way) && !change.changes.iter().all(|each| is_finalizer(&each.path)) {
        return now(&change);
    }
    let at = |object: &Object, place: &str| object.pointer::<Value>(place).ok().flatten();
    let text = |value: Option<Value>| value.and_then(|value| Some(value.as_str()?.to_owned()));
    // Who answers for a service that may sleep is what it is all about.
    let modes = (text(at(old, "/status/mode")), text(at(new, "/status/mode")));
    if let (before, Some(after)) = &modes
        && before.as_ref() != Some(after)
    {
        let before = before.as_deref().unwrap_or("none");
        return Some(Said { when: When::Now, text: format!("mode {before}→{after}{}", meaning(after)) });
    }
    let number = |value: Option<Value>| value.and_then(|value| value.as_i64()).unwrap_or(0);
    let said: Vec<String> = PROGRESS
        .iter()
        .filter_map(|(place, called)| {
            let (before, after) = (number(at(old, place)), number(at(new, place)));
            let of = match at(new, "/spec/replicas").filter(|_| *called == "ready") {
                Some(wanted) => format!(" of {wanted}"),
                None => String::new(),
            };
            (before != after).then(|| format!("{called} {before}→{after}{of}"))
        })
        .collect();
    if said.is_empty() { None } else { soon(said.join("; ")) }
}

/// What the mode of an ElastiService means.
fn meaning(mode: &str) -> &'static str {
    match mode {
        "proxy" => ": it sleeps, requests go to the resolver",
        "serve" => ": it is awake, its pods answer",
        _ => "",
    }
}

/// A pod in one word.
fn state(pod: &Object) -> String {
    let status = pod.pointer::<Value>("/status").ok().flatten().unwrap_or_default();
    let phase = status["phase"].as_str().unwrap_or("Pending");
    let is_under_way = matches!(phase, "Pending" | "Running");
    let each = |list: &str| status[list].as_array().cloned().unwrap_or_default();
    let trouble = each("containerStatuses").into_iter().find_map(|container| {
        let why = container["state"]["waiting"]["reason"].as_str()?.to_owned();
        (!matches!(&*why, "ContainerCreating" | "PodInitializing")).then_some(why)
    });
    let is_ready =
        || each("conditions").iter().any(|each| each["type"] == "Ready" && each["status"] == "True");
    match (phase, trouble) {
        // That it is about to go is said when it is gone.
        _ if pod.deletion().is_some() => "Terminating".to_owned(),
        (_, Some(why)) if is_under_way => why,
        ("Running", None) if is_ready() => "Ready".to_owned(),
        _ if is_under_way => "Starting".to_owned(),
        (phase, _) => phase.to_owned(),
    }
}

fn ready_endpoints(slice: &Object) -> usize {
    let endpoints = slice.pointer::<Value>("/endpoints").ok().flatten().unwrap_or_default();
    // Where nothing is said, it is.
    endpoints.as_array().into_iter().flatten().filter(|each| each["conditions"]["ready"] != false).count()
}

#[cfg(test)]
mod tests {
    use kube_informer::encoding::{Codec, Encoding, Rules};
    use kube_informer::object::Intake;
    use serde_json::json;

    use super::*;

    fn objects(kind: (&str, &str), versions: &[Value]) -> Vec<Object> {
        let codec = Codec::new(Encoding::Json, kind.0, kind.1, Rules::default()).unwrap();
        let mut intake = Intake::new(codec);
        let object = |version: &Value| intake.object(version.to_string().as_bytes()).unwrap();
        versions.iter().map(object).collect()
    }

    fn said(kind: (&str, &str), old: Value, new: Value) -> Option<(When, String)> {
        let mut whole = [old, new];
        for version in &mut whole {
            version["metadata"] = json!({ "name": "web", "namespace": "shop", "uid": "1" });
        }
        let objects = objects(kind, &whole);
        words(objects.first(), objects.last()).map(|said| (said.when, said.text))
    }

    const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");

    #[test]
    fn what_people_decide_is_said_at_once() {
        let said = said(
            DEPLOYMENT,
            json!({ "spec": { "replicas": 3 }, "status": { "readyReplicas": 3 } }),
            json!({ "spec": { "replicas": 5 }, "status": { "readyReplicas": 3 } }),
        );
        assert_eq!(said, Some((When::Now, "replicas 3→5".to_owned())));
    }

    #[test]
    fn the_way_there_is_said_later_by_how_many_are_ready() {
        let spec = json!({ "replicas": 3 });
        let ready = |ready: Value| json!({ "spec": spec, "status": { "observedGeneration": 1, "readyReplicas": ready } });
        assert_eq!(
            said(DEPLOYMENT, ready(Value::Null), ready(2.into())),
            Some((When::Soon, "ready 0→2 of 3".to_owned()))
        );
        let noise = json!({ "spec": spec, "status": { "observedGeneration": 2, "readyReplicas": 2 } });
        assert_eq!(said(DEPLOYMENT, ready(2.into()), noise), None);
    }

    #[test]
    fn a_pod_is_one_word() {
        let pod = |status: Value| json!({ "status": status });
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let waits = |why: &str| {
            let waiting = json!({ "waiting": { "reason": why } });
            json!({ "phase": "Pending", "containerStatuses": [{ "name": "web", "state": waiting }] })
        };
        let word = |old: &Value, new: &Value| said(("v1", "Pod"), pod(old.clone()), pod(new.clone()));
        let change = |text: &str| Some((When::Soon, text.to_owned()));
        assert_eq!(word(&waits("ContainerCreating"), &ready), change("Starting→Ready"));
        assert_eq!(word(&ready, &waits("CrashLoopBackOff")), change("Ready→CrashLoopBackOff"));
        assert_eq!(word(&json!({}), &waits("ContainerCreating")), None);
    }

    #[test]
    fn a_service_that_falls_asleep_is_said_in_plain_words() {
        let elasti = |mode: &str| json!({ "status": { "mode": mode } });
        let said =
            said(("elasti.truefoundry.com/v1alpha1", "ElastiService"), elasti("serve"), elasti("proxy"));
        assert_eq!(
            said,
            Some((When::Now, "mode serve→proxy: it sleeps, requests go to the resolver".to_owned()))
        );
    }
}
