//! What `kubectl describe` shows below: Events, of which only the newest are kept.
//!
//! The same thing said again about the same object counts up the Event that is there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::Simulator;
use super::cluster::{Kind, Who};
use super::condition::now;
use crate::api::Part;
use crate::object::Stored;

/// What an Event is about: UID, reason, message.
type About = (String, String, String);

/// The Events that are there, oldest first.
pub(super) struct Recorder {
    most: usize,
    order: VecDeque<(About, Arc<Stored>)>,
    known: HashMap<About, Arc<Stored>>,
    written: u64,
}

impl Recorder {
    pub(super) fn new(most: usize) -> Self {
        Self { most, order: VecDeque::new(), known: HashMap::new(), written: 0 }
    }
}

/// One thing to say.
pub(super) struct Said<'a> {
    pub(super) component: &'a str,
    pub(super) kind: Kind,
    pub(super) reason: &'a str,
    pub(super) message: String,
    pub(super) warning: bool,
}

impl Simulator {
    /// Says something about an object.
    pub(super) fn say(&mut self, about: &Stored, component: &str, kind: Kind, reason: &str, message: String) {
        self.record(about, &Said { component, kind, reason, message, warning: false });
    }

    pub(super) fn warn(
        &mut self,
        about: &Stored,
        component: &str,
        kind: Kind,
        reason: &str,
        message: String,
    ) {
        self.record(about, &Said { component, kind, reason, message, warning: true });
    }

    fn record(&mut self, about: &Stored, said: &Said<'_>) {
        if self.recorder.most == 0 {
            return;
        }
        let id = (about.uid.clone(), said.reason.to_owned(), said.message.clone());
        if let Some(event) = self.recorder.known.get(&id)
            && self.count_up(event)
        {
            return;
        }
        let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
        self.recorder.written += 1;
        let suffix = self.dice.roll("event", &about.key, self.recorder.written);
        let resource = self.kinds.get(said.kind);
        let time = now();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": format!("{}.{suffix:016x}", about.name), "namespace": namespace },
            "involvedObject": {
                "apiVersion": resource.api_version(),
                "kind": resource.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
                "resourceVersion": about.revision.to_string(),
            },
            "reason": said.reason,
            "message": said.message,
            "type": if said.warning { "Warning" } else { "Normal" },
            "source": { "component": said.component },
            "reportingComponent": said.component,
            "reportingInstance": "",
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        let who = match said.component {
            "kubelet" => Who::Kubelet,
            "default-scheduler" => Who::Scheduler,
            _ => Who::ControllerManager,
        };
        if let Ok(event) = self.create(who, Kind::Event, namespace, event) {
            self.recorder.known.insert(id.clone(), Arc::clone(&event));
            self.recorder.order.push_back((id, event));
        }
        while self.recorder.order.len() > self.recorder.most {
            if let Some((id, oldest)) = self.recorder.order.pop_front() {
                self.recorder.known.remove(&id);
                self.delete(Kind::Event, &oldest);
            }
        }
    }

    fn count_up(&self, event: &Stored) -> bool {
        let counted = self.edit(Who::ControllerManager, Kind::Event, event, Part::Whole, |event| {
            let count = event.get("count").and_then(Value::as_i64).unwrap_or(1);
            event["count"] = (count + 1).into();
            event["lastTimestamp"] = now().into();
        });
        counted.is_some()
    }
}
