//! What a kubelet reports of a pod. Each function turns one status into the next.

use serde_json::{Value, json};

use crate::api::text;
use crate::simulator::cluster::count;
use crate::simulator::condition::{self, Condition, now};
use crate::simulator::dice::Dice;

/// Pod conditions carry this time, which nobody sets.
const NO_STAMPS: &[&str] = &[];

/// Who reports on which pod.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) dice: Dice,
    pub(super) pod: &'a str,
    pub(super) uid: &'a str,
    /// How often its containers have been started again.
    pub(super) starts: u64,
}

impl Report<'_> {
    pub(super) fn admitted(&self, pod: &mut Value, host: &str, ip: &str) {
        let spec = pod.get("spec").cloned().unwrap_or_default();
        let has_init = names(&spec, "initContainers").next().is_some();
        let waiting = |(name, image): (&str, &str), reason: &str| {
            json!({
                "name": name, "image": image, "imageID": "", "ready": false, "started": false,
                "restartCount": 0, "lastState": {}, "state": { "waiting": { "reason": reason } },
            })
        };
        let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
        let containers: Vec<Value> = names(&spec, "containers").map(|c| waiting(c, reason)).collect();
        let init: Vec<Value> = names(&spec, "initContainers").map(|c| waiting(c, reason)).collect();
        let status = status_mut(pod);
        status["phase"] = "Pending".into();
        status["startTime"] = now().into();
        status["hostIP"] = host.into();
        status["hostIPs"] = json!([{ "ip": host }]);
        status["podIP"] = ip.into();
        status["podIPs"] = json!([{ "ip": ip }]);
        status["containerStatuses"] = containers.into();
        if has_init {
            status["initContainerStatuses"] = init.into();
        }
        set(pod, "PodReadyToStartContainers", true, "", "");
        if has_init {
            let message = format!("containers with incomplete status: {}", list(&spec, "initContainers"));
            set(pod, "Initialized", false, "ContainersNotInitialized", &message);
        } else {
            set(pod, "Initialized", true, "", "");
        }
        unready(pod, &spec, "ContainersNotReady");
        set(pod, "PodScheduled", true, "", "");
    }

    pub(super) fn initialised(&self, pod: &mut Value) {
        for container in statuses(pod, "initContainerStatuses") {
            self.fill(container);
            let done = json!({ "exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now(),
                "containerID": container["containerID"] });
            container["state"] = json!({ "terminated": done });
            container["ready"] = true.into();
        }
        set(pod, "Initialized", true, "", "");
    }

    /// Its containers run, for the first time or again.
    pub(super) fn running(&self, pod: &mut Value) {
        let again = text(pod, "/status/phase") == "Running";
        let report = Report { starts: self.starts + u64::from(again), ..*self };
        status_mut(pod)["phase"] = "Running".into();
        for container in statuses(pod, "containerStatuses") {
            if again {
                container["restartCount"] = (count(container, "/restartCount") + 1).into();
            }
            report.fill(container);
            container["started"] = true.into();
            container["state"] = json!({ "running": { "startedAt": now() } });
        }
    }

    pub(super) fn ready(&self, pod: &mut Value) {
        for container in statuses(pod, "containerStatuses") {
            container["ready"] = true.into();
        }
        set(pod, "ContainersReady", true, "", "");
        set(pod, "Ready", true, "", "");
    }

    pub(super) fn crashed(&self, pod: &mut Value, pause: &str) {
        let spec = pod.get("spec").cloned().unwrap_or_default();
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("", self.pod));
        for container in statuses(pod, "containerStatuses") {
            let ended = ended(container, 1, "Error");
            container["lastState"] = json!({ "terminated": ended });
            let message = format!(
                "back-off {pause} restarting failed container={} pod={name}_{namespace}({})",
                text(container, "/name"),
                self.uid,
            );
            container["state"] = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } });
            container["ready"] = false.into();
            container["started"] = false.into();
        }
        unready(pod, &spec, "ContainersNotReady");
    }

    /// Its containers have ended, and will not run again.
    pub(super) fn over(&self, pod: &mut Value, well: bool) {
        let spec = pod.get("spec").cloned().unwrap_or_default();
        let (code, reason, phase, why) = match well {
            true => (0, "Completed", "Succeeded", "PodCompleted"),
            false => (1, "Error", "Failed", "PodFailed"),
        };
        for container in statuses(pod, "containerStatuses") {
            let ended = ended(container, code, reason);
            container["state"] = json!({ "terminated": ended });
            container["ready"] = false.into();
            container["started"] = false.into();
        }
        status_mut(pod)["phase"] = phase.into();
        let message = if well { String::new() } else { unready_message(&spec) };
        set(pod, "PodReadyToStartContainers", false, "", "");
        if well {
            set(pod, "Initialized", true, why, "");
        }
        set(pod, "Ready", false, why, &message);
        set(pod, "ContainersReady", false, why, &message);
    }

    /// What only a container that has been made has.
    fn fill(&self, container: &mut Value) {
        let Report { dice, pod, starts, .. } = self;
        let image = text(container, "/image").to_owned();
        let about = format!("{pod}/{}", text(container, "/name"));
        let repository =
            image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(&*image, |(r, _)| r);
        container["imageID"] = format!("{repository}@sha256:{}", dice.hex("image", &image, 0)).into();
        container["containerID"] = format!("containerd://{}", dice.hex("container", &about, *starts)).into();
    }
}

fn ended(container: &Value, code: i64, reason: &str) -> Value {
    let started = match text(container, "/state/running/startedAt") {
        "" => now(),
        time => time.to_owned(),
    };
    let mut ended = json!({ "exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now() });
    if let Some(id) = container.get("containerID") {
        ended["containerID"] = id.clone();
    }
    ended
}

fn unready(pod: &mut Value, spec: &Value, reason: &str) {
    let message = unready_message(spec);
    set(pod, "Ready", false, reason, &message);
    set(pod, "ContainersReady", false, reason, &message);
}

fn unready_message(spec: &Value) -> String {
    format!("containers with unready status: {}", list(spec, "containers"))
}

/// `[a b]`, as Go prints lists.
fn list(spec: &Value, field: &str) -> String {
    let names: Vec<&str> = names(spec, field).map(|(name, _)| name).collect();
    format!("[{}]", names.join(" "))
}

fn set(pod: &mut Value, kind: &str, truth: bool, reason: &str, message: &str) {
    let generation = pod.pointer("/metadata/generation").cloned();
    let status = status_mut(pod);
    let truth = if truth { "True" } else { "False" };
    condition::set(status, Condition { kind, status: truth, reason, message }, NO_STAMPS);
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter(|c| text(c, "/type") == kind) {
        condition["lastProbeTime"] = Value::Null;
        if let Some(generation) = &generation {
            condition["observedGeneration"] = generation.clone();
        }
    }
    if let Some(generation) = generation {
        status["observedGeneration"] = generation;
    }
}

fn status_mut(pod: &mut Value) -> &mut Value {
    if !pod.get("status").is_some_and(Value::is_object) {
        pod["status"] = json!({});
    }
    &mut pod["status"]
}

fn statuses<'v>(pod: &'v mut Value, field: &str) -> impl Iterator<Item = &'v mut Value> {
    status_mut(pod).get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// (name, image) of each container.
fn names<'v>(spec: &'v Value, field: &str) -> impl Iterator<Item = (&'v str, &'v str)> {
    let all = spec.get(field).and_then(Value::as_array).into_iter().flatten();
    all.map(|c| (text(c, "/name"), text(c, "/image")))
}

pub(super) fn containers(pod: &Value) -> Vec<(String, String)> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    names(spec, "containers").map(|(name, image)| (name.to_owned(), image.to_owned())).collect()
}

pub(super) fn container_names(pod: &Value) -> Vec<String> {
    containers(pod).into_iter().map(|(name, _)| name).collect()
}

/// How often the containers have been started again.
pub(super) fn restarts(status: &Value) -> u64 {
    let all = status.get("containerStatuses").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|c| c.get("restartCount")?.as_u64()).max().unwrap_or_default()
}

/// A container waits to be started again.
pub(super) fn is_waiting(status: &Value) -> bool {
    let mut all = status.get("containerStatuses").and_then(Value::as_array).into_iter().flatten();
    all.any(|c| c.pointer("/state/waiting").is_some())
}
