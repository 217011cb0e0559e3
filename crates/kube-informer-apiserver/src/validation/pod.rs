//! Pods and pod templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::{At, Errors};
use super::{container, formats, metadata, selector, volumes};
use crate::fields;
use crate::status::FieldError;

/// Addresses that a kubelet reports.
pub(super) fn status(object: &Value, errors: &mut Errors) {
    for address in At::root(object).walk(&["status", "podIPs"]).items() {
        let ip = address.get("ip");
        if ip.text().parse::<std::net::IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid(&address.path, ip.text(), why));
        }
    }
}

pub(super) fn create(object: &Value, errors: &mut Errors) {
    let pod = At::root(object);
    let spec = pod.get("spec");
    whole(&spec, errors);
    if !spec.get("ephemeralContainers").is_empty() {
        errors.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.get("nodeName").text().is_empty() && !spec.get("schedulingGates").is_empty() {
        errors.forbidden(&spec.get("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
}

/// The spec of a pod itself.
fn whole(spec: &At<'_>, errors: &mut Errors) {
    check_spec(spec, &BTreeSet::new(), errors);
    errors.non_negative(&spec.get("terminationGracePeriodSeconds"));
    for list in ["containers", "initContainers"] {
        for container in spec.get(list).items() {
            let image = container.get("image");
            if image.text().trim() != image.text() {
                errors.invalid(&image, "must not have leading or trailing whitespace");
            }
        }
    }
}

/// The template of anything that makes pods. `claims` are volumes that come from elsewhere.
pub(super) fn template(template: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    // The real server names these as if they were not in `metadata`.
    let own = template.get("metadata");
    metadata::labels(&own.get("labels").named(template.get("labels").path), errors);
    metadata::annotations(&own.get("annotations").named(template.get("annotations").path), errors);
    let spec = template.get("spec");
    check_spec(&spec, claims, errors);
    if !spec.get("ephemeralContainers").is_empty() {
        errors
            .forbidden(&spec.get("ephemeralContainers"), "ephemeral containers not allowed in pod template");
    }
}

fn check_spec(spec: &At<'_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let mut mountable = volumes::check(&spec.get("volumes"), errors);
    mountable.extend(claims);
    container::containers(&spec.get("containers"), &mountable, errors);
    let mut taken: BTreeSet<String> =
        spec.get("containers").items().map(|c| c.get("name").text().to_owned()).collect();
    container::init_containers(&spec.get("initContainers"), &mut taken, &mountable, errors);
    for ephemeral in spec.get("ephemeralContainers").items() {
        let name = ephemeral.get("name");
        if name.text().is_empty() {
            errors.required(&name, "");
        } else if !taken.insert(name.text().to_owned()) {
            errors.duplicate(&name);
        }
    }
    errors.one_of(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"]);
    errors.one_of(&spec.get("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    metadata::labels(&spec.get("nodeSelector"), errors);
    security(&spec.get("securityContext"), errors);
    affinity(&spec.get("affinity"), errors);
    gates(&spec.get("schedulingGates"), errors);
    for constraint in spec.get("topologySpreadConstraints").items() {
        spread(&constraint, errors);
    }
    named(spec, errors);
    tolerations(&spec.get("tolerations"), errors);
    for alias in spec.get("hostAliases").items() {
        let ip = alias.get("ip");
        errors.invalid_each(&ip, formats::ip(ip.text()));
        for name in alias.get("hostnames").items() {
            errors.invalid_each(&name, formats::dns_subdomain(name.text()));
        }
    }
    for class in ["priorityClassName", "runtimeClassName"] {
        let class = spec.get(class);
        if !class.text().is_empty() {
            errors.invalid_each(&class, formats::dns_subdomain(class.text()));
        }
    }
    errors.one_of_if_set(&spec.get("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
}

fn named(spec: &At<'_>, errors: &mut Errors) {
    for field in ["serviceAccountName", "nodeName"] {
        let field = spec.get(field);
        if !field.text().is_empty() {
            errors.invalid_each(&field, formats::dns_subdomain(field.text()));
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.int().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        errors.invalid_each(&deadline, formats::in_range(1, i64::from(i32::MAX)));
    }
    for field in ["hostname", "subdomain"] {
        let field = spec.get(field);
        if !field.text().is_empty() {
            errors.invalid_each(&field, formats::dns_label(field.text()));
        }
    }
}

fn security(context: &At<'_>, errors: &mut Errors) {
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        let id = context.get(field);
        if id.int().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
            errors.invalid_each(&id, formats::in_range(0, i64::from(i32::MAX)));
        }
    }
}

fn affinity(affinity: &At<'_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let node = affinity.walk(&["nodeAffinity", REQUIRED]);
    if node.is_set() && node.get("nodeSelectorTerms").is_empty() {
        errors.required(&node.get("nodeSelectorTerms"), "must have at least one node selector term");
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for term in affinity.walk(&[kind, REQUIRED]).items() {
            selector::check(&term.get("labelSelector"), errors);
            let key = term.get("topologyKey");
            if key.text().is_empty() {
                errors.required(&key, "can not be empty");
            }
            let shown = Value::from(key.text());
            let at = At { value: &shown, path: key.path.clone() };
            errors.invalid_each(&at, formats::qualified_name(key.text()));
        }
    }
}

fn gates(gates: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for gate in gates.items() {
        let name = gate.get("name").text();
        let shown = Value::from(name);
        let at = At { value: &shown, path: gate.path.clone() };
        errors.invalid_each(&at, formats::qualified_name(name));
        if !names.insert(name) {
            errors.duplicate(&at);
        }
    }
}

fn spread(constraint: &At<'_>, errors: &mut Errors) {
    let skew = constraint.get("maxSkew");
    if skew.int().is_some_and(|skew| skew <= 0) {
        errors.invalid(&skew, "must be greater than zero");
    }
    let key = constraint.get("topologyKey");
    if key.text().is_empty() {
        errors.required(&key, "can not be empty");
    }
    let action = constraint.get("whenUnsatisfiable");
    let actions = ["DoNotSchedule", "ScheduleAnyway"];
    if !actions.contains(&action.text()) {
        errors.unsupported(&action, &actions);
    }
    selector::check(&constraint.get("labelSelector"), errors);
}

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn tolerations(tolerations: &At<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        let (key, operator, value) =
            (toleration.get("key"), toleration.get("operator"), toleration.get("value"));
        let effect = toleration.get("effect");
        if !key.text().is_empty() {
            for why in formats::qualified_name(key.text()) {
                errors.declare(FieldError::invalid(&key.path, key.text(), why));
            }
        }
        if key.text().is_empty() && operator.text() != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&operator.path, operator.text(), why));
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&effect.path, effect.text(), why));
        }
        match operator.text() {
            "Equal" | "" => {
                let complaints = formats::label_value(value.text());
                if !complaints.is_empty() {
                    errors.push(FieldError::invalid(&operator.path, value.text(), complaints.join(";")));
                }
            }
            "Exists" if !value.text().is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator.path, value.text(), why));
            }
            "Exists" => {}
            _ => errors.unsupported(&operator, &["Equal", "Exists"]),
        }
        errors.one_of_if_set(&effect, EFFECTS);
    }
}

/// Taints of a node. Errors point to `metadata`, as they do on the real server.
pub(super) fn taints(taints: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        for why in formats::qualified_name(key.text()) {
            errors.push(FieldError::invalid(&key.path, key.text(), why));
        }
        let complaints = formats::label_value(value.text());
        if !complaints.is_empty() {
            errors.invalid(&value, complaints.join(";"));
        }
        errors.one_of(&effect, EFFECTS);
        if !seen.insert((effect.text(), key.text())) {
            let shown = format!(
                "{{\"Key\":{:?},\"Value\":{:?},\"Effect\":{:?},\"TimeAdded\":null}}",
                key.text(),
                value.text(),
                effect.text()
            );
            let mut error = FieldError::duplicate(&taint.path, Value::Null);
            error.value = None;
            error.detail = format!("{shown}: taints must be unique by key and effect pair");
            errors.push(error);
        }
    }
}

/// What an update of a pod may change: hardly anything.
pub(super) fn update(old: &Value, new: &Value, errors: &mut Errors) {
    let (old_spec, spec) = (At::root(old).get("spec"), At::root(new).get("spec"));
    whole(&spec, errors);
    for list in ["containers", "initContainers"] {
        let count = |spec: &At<'_>| spec.get(list).items().count();
        if count(&spec) != count(&old_spec) {
            errors.forbidden(&spec.get(list), "pod updates may not add or remove containers");
            return;
        }
    }
    let (deadline, before) = (spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"));
    match (deadline.int(), before.int()) {
        (Some(new), Some(old)) if new > old => {
            errors.invalid(&deadline, "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => errors.invalid(&deadline, "must not update from a positive integer to nil value"),
        _ => {}
    }
    if !keeps_tolerations(&old_spec, &spec) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&spec.get("tolerations"), why);
    }
    for gate in spec.get("schedulingGates").items() {
        let name = gate.get("name").text();
        if !old_spec.get("schedulingGates").items().any(|old| old.get("name").text() == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&gate.get("name"), why);
        }
    }
    if !fields::same(Some(&comparable(&old_spec, &spec)), Some(old_spec.value)) {
        errors.forbidden(&spec, format!("pod updates may not change fields other than {UPDATABLE}"));
    }
}

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                         `spec.tolerations` (only additions to existing tolerations),\
                         `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Tolerations may be added, and the seconds of the old ones changed.
fn keeps_tolerations(old: &At<'_>, new: &At<'_>) -> bool {
    let plain = |toleration: &At<'_>| {
        let mut plain = toleration.value.clone();
        fields::remove(&mut plain, &["tolerationSeconds"]);
        plain
    };
    let kept: Vec<Value> = new.get("tolerations").items().map(|t| plain(&t)).collect();
    old.get("tolerations").items().all(|old| kept.contains(&plain(&old)))
}

/// The new spec with what may change put back.
fn comparable(old: &At<'_>, new: &At<'_>) -> Value {
    let mut spec = new.value.clone();
    for list in ["containers", "initContainers"] {
        let images: Vec<Value> = old.get(list).items().map(|c| c.get("image").value.clone()).collect();
        let containers = fields::list_mut(&mut spec, &[list]).into_iter().flatten();
        for (container, image) in containers.zip(images) {
            fields::set(container, &["image"], image);
        }
    }
    let mut back = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    if !old.get("schedulingGates").is_empty() {
        // A pod that waits at a gate may still be steered.
        back.extend(["nodeSelector", "affinity"]);
    }
    for field in back {
        fields::copy(old.value, &mut spec, &[field]);
    }
    spec
}
