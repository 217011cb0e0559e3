//! What makes pods: Deployments to CronJobs, their autoscalers and budgets.

use serde_json::{Value, json};

use super::view::View;
use super::{AGE, Layout, NAME, flag, integer, text, wide};

pub(super) fn layout(group: &str, plural: &str) -> Option<Layout> {
    Some(match (group, plural) {
        ("apps", "deployments") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Ready"),
                    text("Up-to-date"),
                    text("Available"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            },
            cells: deployment,
        },
        ("apps", "replicasets") | ("", "replicationcontrollers") => Layout {
            columns: const {
                &[
                    NAME,
                    integer("Desired"),
                    integer("Current"),
                    integer("Ready"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            },
            cells: if group == "apps" { replica_set } else { replication_controller },
        },
        // Of anything that can be scaled.
        ("autoscaling", "scale") => Layout {
            columns: const { &[text("Name"), integer("Desired"), integer("Available"), AGE] },
            cells: |o| {
                let (wanted, actual) = (o.int("/spec/replicas"), o.int("/status/replicas"));
                vec![json!(o.name()), json!(wanted), json!(actual), json!(o.age())]
            },
        },
        ("apps", "statefulsets") => Layout {
            columns: const { &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")] },
            cells: stateful_set,
        },
        ("apps", "daemonsets") => Layout {
            columns: const {
                &[
                    NAME,
                    integer("Desired"),
                    integer("Current"),
                    integer("Ready"),
                    integer("Up-to-date"),
                    integer("Available"),
                    text("Node Selector"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            },
            cells: daemon_set,
        },
        ("apps", "controllerrevisions") => Layout {
            columns: const { &[NAME, text("Controller"), text("Revision"), AGE] },
            cells: controller_revision,
        },
        ("batch", "jobs") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Status"),
                    text("Completions"),
                    text("Duration"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            },
            cells: job,
        },
        ("batch", "cronjobs") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Schedule"),
                    text("Timezone"),
                    flag("Suspend"),
                    integer("Active"),
                    text("Last Schedule"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            },
            cells: cron_job,
        },
        ("policy", "poddisruptionbudgets") => Layout {
            columns: const {
                &[NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE]
            },
            cells: |o| {
                let bound = |pointer| o.scalar(pointer).unwrap_or_else(|| "N/A".to_owned());
                vec![
                    json!(o.name()),
                    json!(bound("/spec/minAvailable")),
                    json!(bound("/spec/maxUnavailable")),
                    json!(o.int("/status/disruptionsAllowed")),
                    json!(o.age()),
                ]
            },
        },
        ("autoscaling", "horizontalpodautoscalers") => Layout {
            columns: const {
                &[
                    NAME,
                    text("Reference"),
                    text("Targets"),
                    text("MinPods"),
                    text("MaxPods"),
                    text("Replicas"),
                    AGE,
                ]
            },
            cells: autoscaler,
        },
        _ => return None,
    })
}

const CONTAINERS: &str = "/spec/template/spec/containers";

fn deployment(o: &View<'_>) -> Vec<Value> {
    let (names, images) = o.containers(CONTAINERS);
    vec![
        json!(o.name()),
        json!(format!("{}/{}", o.int("/status/readyReplicas"), o.int("/spec/replicas"))),
        json!(o.int("/status/updatedReplicas")),
        json!(o.int("/status/availableReplicas")),
        json!(o.age()),
        json!(names),
        json!(images),
        json!(o.selector("/spec/selector").unwrap_or_else(|| "<invalid>".to_owned())),
    ]
}

fn replica_set(o: &View<'_>) -> Vec<Value> {
    let mut cells = replicas(o);
    cells.push(json!(o.selector_or_none("/spec/selector")));
    cells
}

fn replication_controller(o: &View<'_>) -> Vec<Value> {
    let mut cells = replicas(o);
    cells.push(json!(o.labels("/spec/selector")));
    cells
}

fn replicas(o: &View<'_>) -> Vec<Value> {
    let (names, images) = o.containers(CONTAINERS);
    vec![
        json!(o.name()),
        json!(o.int("/spec/replicas")),
        json!(o.int("/status/replicas")),
        json!(o.int("/status/readyReplicas")),
        json!(o.age()),
        json!(names),
        json!(images),
    ]
}

fn stateful_set(o: &View<'_>) -> Vec<Value> {
    let (names, images) = o.containers(CONTAINERS);
    vec![
        json!(o.name()),
        json!(format!("{}/{}", o.int("/status/readyReplicas"), o.int("/spec/replicas"))),
        json!(o.age()),
        json!(names),
        json!(images),
    ]
}

fn daemon_set(o: &View<'_>) -> Vec<Value> {
    let (names, images) = o.containers(CONTAINERS);
    vec![
        json!(o.name()),
        json!(o.int("/status/desiredNumberScheduled")),
        json!(o.int("/status/currentNumberScheduled")),
        json!(o.int("/status/numberReady")),
        json!(o.int("/status/updatedNumberScheduled")),
        json!(o.int("/status/numberAvailable")),
        json!(o.labels("/spec/template/spec/nodeSelector")),
        json!(o.age()),
        json!(names),
        json!(images),
        json!(o.selector_or_none("/spec/selector")),
    ]
}

fn controller_revision(o: &View<'_>) -> Vec<Value> {
    let controller = o.each("/metadata/ownerReferences").find(|r| r.flag("/controller"));
    let controller = controller.map_or_else(
        || "<none>".to_owned(),
        |r| {
            let group = r.text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            let kind = crate::status::qualified(group, r.text("/kind")).to_lowercase();
            format!("{kind}/{}", r.text("/name"))
        },
    );
    vec![json!(o.name()), json!(controller), json!(o.int("/revision")), json!(o.age())]
}

fn job(o: &View<'_>) -> Vec<Value> {
    let succeeded = o.int("/status/succeeded");
    let parallelism = o.int("/spec/parallelism");
    let completions = match o.scalar("/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let took = match (o.time("/status/startTime"), o.time("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), None) => o.since_time(start),
        (Some(start), Some(end)) => super::human_duration(end.duration_since(start)),
    };
    let status = if o.condition_true("Complete") {
        "Complete"
    } else if o.condition_true("Failed") {
        "Failed"
    } else if o.deleting() {
        "Terminating"
    } else {
        let rest = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        rest.into_iter().find(|c| o.condition_true(c)).unwrap_or("Running")
    };
    let (names, images) = o.containers(CONTAINERS);
    vec![
        json!(o.name()),
        json!(status),
        json!(completions),
        json!(took),
        json!(o.age()),
        json!(names),
        json!(images),
        json!(o.selector_or_none("/spec/selector")),
    ]
}

fn cron_job(o: &View<'_>) -> Vec<Value> {
    let suspend = match o.at("/spec/suspend").and_then(Value::as_bool) {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    };
    let last = "/status/lastScheduleTime";
    let (names, images) = o.containers("/spec/jobTemplate/spec/template/spec/containers");
    vec![
        json!(o.name()),
        json!(o.text("/spec/schedule")),
        json!(o.text_or("/spec/timeZone", "<none>")),
        json!(suspend),
        json!(o.list("/status/active").len()),
        json!(if o.has(last) { o.since(last) } else { "<none>".to_owned() }),
        json!(o.age()),
        json!(names),
        json!(images),
        json!(o.selector_or_none("/spec/jobTemplate/spec/selector")),
    ]
}

fn autoscaler(o: &View<'_>) -> Vec<Value> {
    let reference =
        format!("{}/{}", o.text("/spec/scaleTargetRef/kind"), o.text("/spec/scaleTargetRef/name"));
    vec![
        json!(o.name()),
        json!(reference),
        json!(metrics(o)),
        json!(o.scalar("/spec/minReplicas").unwrap_or_else(|| "<unset>".to_owned())),
        json!(o.int("/spec/maxReplicas")),
        json!(o.int("/status/currentReplicas")),
        json!(o.age()),
    ]
}

/// The first two metrics, each as `current/target`.
fn metrics(o: &View<'_>) -> String {
    // autoscaling/v1 knows one metric, by another name.
    if let Some(target) = o.scalar("/spec/targetCPUUtilizationPercentage") {
        let current = o.scalar("/status/currentCPUUtilizationPercentage");
        let current = current.map_or_else(|| "<unknown>".to_owned(), |c| format!("{c}%"));
        return format!("cpu: {current}/{target}%");
    }
    let statuses: Vec<View<'_>> = o.each("/status/currentMetrics").collect();
    let all: Vec<String> =
        o.each("/spec/metrics").enumerate().map(|(i, spec)| metric(&spec, statuses.get(i))).collect();
    match all.as_slice() {
        [] => "<none>".to_owned(),
        [a, b, rest @ ..] if !rest.is_empty() => format!("{a}, {b} + {} more...", rest.len()),
        few => few.join(", "),
    }
}

fn metric(spec: &View<'_>, status: Option<&View<'_>>) -> String {
    let (source, named) = match spec.text("/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let unknown = || "<unknown>".to_owned();
    let target = |field: &str| spec.scalar(&format!("/{source}/target/{field}"));
    let current = |field: &str| {
        status.and_then(|s| s.scalar(&format!("/{source}/current/{field}"))).unwrap_or_else(unknown)
    };
    if named {
        let name = spec.text(&format!("/{source}/name"));
        if let Some(target) = target("averageValue") {
            return format!("{name}: {}/{target}", current("averageValue"));
        }
        let percent = |value: String| if value.starts_with('<') { value } else { format!("{value}%") };
        let target = target("averageUtilization").map_or_else(|| "<auto>".to_owned(), percent);
        return format!("{name}: {}/{target}", percent(current("averageUtilization")));
    }
    match target("averageValue") {
        Some(target) if source == "pods" => format!("{}/{target}", current("averageValue")),
        Some(target) => format!("{}/{target} (avg)", current("averageValue")),
        None => format!("{}/{}", current("value"), target("value").unwrap_or_else(|| "0".to_owned())),
    }
}
