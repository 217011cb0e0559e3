//! Kubelets: what happens to a pod on its node.
//!
//! What comes next follows from the pod's status alone ([`Stage::of`]); when it comes is drawn once per
//! stage and kept in a [`Life`]. So there is one pending step per pod.

mod status;

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use self::status::Report;
use super::Simulator;
use super::cluster::{Kind, Who, count};
use super::condition;
use crate::api::{Part, text};
use crate::object::Stored;

const COMPONENT: &str = "kubelet";
/// The first and the longest pause before a crashed container starts again, in seconds.
const BACK_OFF: (f64, f64) = (10.0, 300.0);

/// What comes next for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Accepted by its node → waits for its containers.
    Admit,
    /// Its init containers complete.
    Initialise,
    /// Images are there → its containers run.
    Start,
    /// → it is ready.
    Ready,
    /// Its containers crash → back-off.
    Crash,
    /// Back-off is over → its containers run again.
    Restart,
    /// Its containers complete → succeeded.
    Succeed,
    /// Its containers fail for good → failed.
    Fail,
    /// Deleted: its containers stop → it goes.
    Terminate,
    /// Nothing.
    Rest,
}

/// One pod's pending step.
#[derive(Debug, Clone)]
pub(super) struct Life {
    uid: String,
    stage: Stage,
    due: Instant,
    /// The story wants it to crash.
    doomed: bool,
}

impl Simulator {
    /// Looks at a pod that has a node.
    pub(super) fn tend_pod(&mut self, pod: &Arc<Stored>) {
        let value = pod.value();
        let node = text(&value, "/spec/nodeName").to_owned();
        if !self.index.nodes.contains_key(&node) {
            // As the pod garbage collector does with pods of a node that is no more.
            self.delete_now(Kind::Pod, pod);
            return;
        }
        let (stage, due) = self.stage_of(pod, &value);
        if stage == Stage::Rest {
            return;
        }
        if due > Instant::now() {
            self.later(Kind::Pod, &pod.key, due);
            return;
        }
        self.step(pod, &value, &node, stage);
    }

    /// Makes a running pod crash now.
    pub(super) fn doom(&mut self, pod: &Stored) {
        let (stage, due) = (Stage::Crash, Instant::now());
        self.lives.insert(pod.key.clone(), Life { uid: pod.uid.clone(), stage, due, doomed: true });
        self.note(Kind::Pod, &pod.key);
    }

    /// The pending stage and its time; draws the time when the stage is new.
    fn stage_of(&mut self, pod: &Stored, value: &Value) -> (Stage, Instant) {
        let life = self.lives.get(&pod.key).filter(|life| life.uid == pod.uid);
        let doomed = life.is_some_and(|life| life.doomed);
        let stage = self.next_stage(pod, value, doomed);
        if let Some(life) = life.filter(|life| life.stage == stage) {
            return (stage, life.due);
        }
        if stage == Stage::Terminate {
            for name in status::container_names(value) {
                self.say(pod, COMPONENT, Kind::Pod, "Killing", format!("Stopping container {name}"));
            }
        }
        let due = Instant::now() + self.duration(stage, pod, value);
        if stage == Stage::Rest {
            self.lives.remove(&pod.key);
        } else {
            self.lives.insert(pod.key.clone(), Life { uid: pod.uid.clone(), stage, due, doomed: false });
        }
        (stage, due)
    }

    fn next_stage(&self, pod: &Stored, value: &Value, doomed: bool) -> Stage {
        let status = value.get("status").unwrap_or(&Value::Null);
        let phase = text(status, "/phase");
        if pod.deleting {
            let grace = count(value, "/metadata/deletionGracePeriodSeconds");
            // Only a finalizer keeps it now, and that is not the kubelet's.
            let stopped = grace == 0 && matches!(phase, "Succeeded" | "Failed");
            return if stopped { Stage::Rest } else { Stage::Terminate };
        }
        match phase {
            "Succeeded" | "Failed" => Stage::Rest,
            "Running" if status::is_waiting(status) => Stage::Restart,
            "Running" => self.running_stage(pod, value, status, doomed),
            _ if text(status, "/startTime").is_empty() => Stage::Admit,
            _ if !condition::is_true(status, "Initialized") => Stage::Initialise,
            _ => Stage::Start,
        }
    }

    fn running_stage(&self, pod: &Stored, value: &Value, status: &Value, doomed: bool) -> Stage {
        if !condition::is_true(status, "Ready") {
            return Stage::Ready;
        }
        let starts = status::restarts(status);
        let crashes = doomed || self.dice.chance("crash", &pod.key, starts) < self.settings.crash_rate;
        // Who is not to be started again has an end.
        match (text(value, "/spec/restartPolicy"), crashes) {
            ("Never", true) => Stage::Fail,
            (_, true) => Stage::Crash,
            ("Never" | "OnFailure", false) => Stage::Succeed,
            _ => Stage::Rest,
        }
    }

    fn duration(&self, stage: Stage, pod: &Stored, value: &Value) -> std::time::Duration {
        let starts = status::restarts(value.get("status").unwrap_or(&Value::Null));
        let draw = |seconds, purpose| self.dice.between(seconds, purpose, &pod.key, starts);
        match stage {
            Stage::Admit => draw((0.01, 0.1), "admit"),
            Stage::Initialise => draw((0.5, 3.0), "initialise"),
            Stage::Start => draw((0.5, 4.0), "pull"),
            Stage::Ready => draw((0.5, 3.0), "ready"),
            Stage::Crash | Stage::Fail => draw((2.0, 20.0), "crash"),
            Stage::Succeed => draw((2.0, 10.0), "run"),
            Stage::Restart => {
                let doubled = BACK_OFF.0 * 2_f64.powi(i32::try_from(starts.min(16)).unwrap_or(16));
                self.dice.real(doubled.min(BACK_OFF.1))
            }
            Stage::Terminate => {
                let grace = count(value, "/metadata/deletionGracePeriodSeconds").max(0) as f64;
                draw((0.2, 2.0), "terminate").min(self.dice.real(grace))
            }
            Stage::Rest => std::time::Duration::ZERO,
        }
    }

    fn step(&mut self, pod: &Arc<Stored>, value: &Value, node: &str, stage: Stage) {
        let starts = status::restarts(value.get("status").unwrap_or(&Value::Null));
        let report = Report { dice: self.dice, pod: &pod.key, uid: &pod.uid, starts };
        let written = match stage {
            Stage::Admit => {
                let address = self.index.nodes.get(node).map(|n| n.address.clone()).unwrap_or_default();
                let host_network =
                    value.pointer("/spec/hostNetwork").and_then(Value::as_bool).unwrap_or_default();
                let ip = if host_network { address.clone() } else { self.give_address() };
                self.report(pod, |pod| report.admitted(pod, &address, &ip))
            }
            Stage::Initialise => self.report(pod, |pod| report.initialised(pod)),
            Stage::Start | Stage::Restart => self.report(pod, |pod| report.running(pod)),
            Stage::Ready => self.report(pod, |pod| report.ready(pod)),
            Stage::Crash => {
                let pause = self.back_off_text(starts);
                self.report(pod, |pod| report.crashed(pod, &pause))
            }
            Stage::Succeed => self.report(pod, |pod| report.over(pod, true)),
            Stage::Fail => self.report(pod, |pod| report.over(pod, false)),
            Stage::Terminate => {
                self.report(pod, |pod| report.over(pod, true));
                self.delete_now(Kind::Pod, pod);
                false
            }
            Stage::Rest => false,
        };
        if written {
            self.tell(pod, value, stage);
        }
    }

    fn report(&self, pod: &Stored, change: impl FnMut(&mut Value)) -> bool {
        self.edit(Who::Kubelet, Kind::Pod, pod, Part::Status, change).is_some()
    }

    fn tell(&mut self, pod: &Arc<Stored>, value: &Value, stage: Stage) {
        for (name, image) in status::containers(value) {
            match stage {
                Stage::Start => {
                    let message = format!("Successfully pulled image \"{image}\"");
                    self.say(pod, COMPONENT, Kind::Pod, "Pulled", message);
                }
                Stage::Restart => {
                    let message = format!("Container image \"{image}\" already present on machine");
                    self.say(pod, COMPONENT, Kind::Pod, "Pulled", message);
                }
                Stage::Crash => {
                    let message = format!(
                        "Back-off restarting failed container {name} in pod {}_{}({})",
                        pod.name, pod.namespace, pod.uid
                    );
                    self.warn(pod, COMPONENT, Kind::Pod, "BackOff", message);
                    continue;
                }
                _ => return,
            }
            self.say(pod, COMPONENT, Kind::Pod, "Created", format!("Created container: {name}"));
            self.say(pod, COMPONENT, Kind::Pod, "Started", format!("Started container {name}"));
        }
    }

    fn back_off_text(&self, starts: u64) -> String {
        let seconds =
            (BACK_OFF.0 * 2_f64.powi(i32::try_from(starts.min(16)).unwrap_or(16))).min(BACK_OFF.1) as u64;
        match (seconds / 60, seconds % 60) {
            (0, seconds) => format!("{seconds}s"),
            (minutes, seconds) => format!("{minutes}m{seconds}s"),
        }
    }

    /// The next address of 10.128.0.0/9, none of which ends in 0 or 255.
    fn give_address(&mut self) -> String {
        self.addresses = self.addresses.wrapping_add(1);
        let (net, host) = (self.addresses / 254 % (1 << 15), self.addresses % 254 + 1);
        format!("10.{}.{}.{host}", 128 + (net >> 8), net & 0xff)
    }
}
