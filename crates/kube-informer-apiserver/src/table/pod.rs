//! Pods: the one status word that stands for phase, conditions and all containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::view::View;
use super::{AGE, Col, Layout, NAME, text, wide};
use crate::kinds::Resource;

const COLUMNS: &[Col] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

pub(super) fn layout(group: &str, plural: &str) -> Option<Layout> {
    match (group, plural) {
        ("", "pods") => Some(Layout { columns: COLUMNS, cells }),
        ("", "podtemplates") => Some(Layout {
            columns: const { &[NAME, text("Containers"), text("Images"), text("Pod Labels")] },
            cells: |o| {
                let (names, images) = o.containers("/template/spec/containers");
                vec![
                    json!(o.name()),
                    json!(names),
                    json!(images),
                    json!(o.labels("/template/metadata/labels")),
                ]
            },
        }),
        _ => None,
    }
}

/// A finished pod's row says so, so that clients can leave it out.
pub(super) fn row_condition(resource: &Resource, object: &Value) -> Option<Value> {
    if !resource.is("", "pods") {
        return None;
    }
    let phase = object.pointer("/status/phase").and_then(Value::as_str)?;
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!({ "type": "Completed", "status": "True", "reason": phase, "message": message }))
}

fn cells(pod: &View<'_>) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match summary.last_restart {
        Some(time) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, pod.since_time(time))
        }
        _ => summary.restarts.to_string(),
    };
    let gates = pod.list("/spec/readinessGates").len();
    let gates = if gates == 0 {
        "<none>".to_owned()
    } else {
        let open = pod.each("/spec/readinessGates").filter(|g| pod.condition_true(g.text("/conditionType")));
        format!("{}/{gates}", open.count())
    };
    vec![
        json!(pod.name()),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.status),
        json!(restarts),
        json!(pod.age()),
        json!(pod.text_or("/status/podIPs/0/ip", pod.text_or("/status/podIP", "<none>"))),
        json!(pod.text_or("/spec/nodeName", "<none>")),
        json!(pod.text_or("/status/nominatedNodeName", "<none>")),
        json!(gates),
    ]
}

struct Summary {
    ready: usize,
    total: usize,
    status: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Summary {
    fn of(pod: &View<'_>) -> Self {
        let phase = pod.text("/status/phase");
        let mut status = pod.text_or("/status/reason", phase).to_owned();
        if pod
            .each("/status/conditions")
            .any(|c| c.text("/type") == "PodScheduled" && c.text("/reason") == "SchedulingGated")
        {
            "SchedulingGated".clone_into(&mut status);
        }
        let sidecars = pod.each("/spec/initContainers").filter(is_sidecar).count();
        let mut summary = Self {
            ready: 0,
            total: pod.list("/spec/containers").len() + sidecars,
            status,
            restarts: 0,
            last_restart: None,
        };
        let (initializing, of_sidecars) = summary.init_containers(pod);
        if !initializing || pod.condition_true("Initialized") {
            // Once the pod runs, restarts of finished init containers are history.
            (summary.restarts, summary.last_restart) = of_sidecars;
            summary.containers(pod);
        }
        if pod.deleting() {
            if pod.text("/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.status);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut summary.status);
            }
        }
        summary
    }

    /// Whether the pod is still initializing, and the restarts of its sidecars alone.
    fn init_containers(&mut self, pod: &View<'_>) -> (bool, (i64, Option<Timestamp>)) {
        let mut of_sidecars = (0, None);
        let all = pod.list("/spec/initContainers").len();
        for (at, container) in pod.each("/status/initContainerStatuses").enumerate() {
            let sidecar = pod
                .each("/spec/initContainers")
                .any(|c| c.text("/name") == container.text("/name") && is_sidecar(&c));
            let restarts = container.int("/restartCount");
            let ended = container.time("/lastState/terminated/finishedAt");
            self.restarts = self.restarts.saturating_add(restarts);
            self.last_restart = self.last_restart.max(ended);
            if sidecar {
                of_sidecars = (restarts.saturating_add(of_sidecars.0), ended.max(of_sidecars.1));
            }
            if container.has("/state/terminated") && container.int("/state/terminated/exitCode") == 0 {
                continue;
            }
            if sidecar && container.flag("/started") {
                self.ready += usize::from(container.flag("/ready"));
                continue;
            }
            let waiting = container.text("/state/waiting/reason");
            self.status = if container.has("/state/terminated") {
                format!("Init:{}", end_of(&container))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{at}/{all}")
            };
            return (true, of_sidecars);
        }
        (false, of_sidecars)
    }

    fn containers(&mut self, pod: &View<'_>) {
        let mut running = false;
        let mut failed = None;
        // From the last to the first, so that the first container has the last word.
        for container in pod.each("/status/containerStatuses").rev() {
            self.restarts = self.restarts.saturating_add(container.int("/restartCount"));
            self.last_restart = self.last_restart.max(container.time("/lastState/terminated/finishedAt"));
            let waiting = container.text("/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.status);
            } else if container.has("/state/terminated") {
                self.status = end_of(&container);
                if container.int("/state/terminated/exitCode") != 0 {
                    failed = Some(self.status.clone());
                }
            } else if container.flag("/ready") && container.has("/state/running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            let ready = pod
                .each("/status/conditions")
                .any(|c| c.text("/type") == "Ready" && c.text("/status") == "True");
            if running && ready {
                "Running".clone_into(&mut self.status);
            } else if let Some(failed) = failed {
                self.status = failed;
            } else if running {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }
}

/// An init container that keeps running beside the others.
fn is_sidecar(container: &View<'_>) -> bool {
    container.text("/restartPolicy") == "Always"
}

fn end_of(container: &View<'_>) -> String {
    let reason = container.text("/state/terminated/reason");
    let signal = container.int("/state/terminated/signal");
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", container.int("/state/terminated/exitCode"))
    }
}
