//! What the default admission plugins of a plain kube-apiserver add.
//!
//! `DefaultTolerationSeconds`, `Priority`, `TaintNodesByCondition`, `StorageObjectInUseProtection`,
//! `DefaultStorageClass` and `DefaultIngressClass`. `ServiceAccount` is off, as in test control planes
//! without a controller that makes accounts. `LimitRanger`, `ResourceQuota`, `PodSecurity` are
//! not done, and of `RuntimeClass` only that the class exists. `NamespaceLifecycle` is the core's.

use serde_json::{Value, json};

use crate::fields;
use crate::kinds::Resource;
use crate::status::ApiError;

/// All objects of a group and resource: classes are looked up by name or by their default mark.
pub(crate) type Objects<'a> = &'a dyn Fn(&str, &str) -> Vec<Value>;

/// Runs the plugins on an object that is about to be created.
pub(crate) fn create(resource: &Resource, object: &mut Value, objects: Objects<'_>) -> Result<(), ApiError> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            tolerations(object);
            priority(object, objects)?;
            runtime_class(object, objects)?;
        }
        ("", "nodes") => taint(object),
        ("", "persistentvolumes") => protect(object, "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims") => {
            protect(object, "kubernetes.io/pvc-protection");
            let old_way = ["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"];
            if fields::at(object, &old_way).is_none() {
                let mark = "storageclass.kubernetes.io/is-default-class";
                default_class(object, "storageClassName", objects("storage.k8s.io", "storageclasses"), mark);
            }
        }
        ("storage.k8s.io", "volumeattributesclasses") => protect(object, "kubernetes.io/vac-protection"),
        ("networking.k8s.io", "ingresses") => {
            let old_way = ["metadata", "annotations", "kubernetes.io/ingress.class"];
            if fields::at(object, &old_way).is_none() {
                let mark = "ingressclass.kubernetes.io/is-default-class";
                let classes = objects("networking.k8s.io", "ingressclasses");
                default_class(object, "ingressClassName", classes, mark);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Runs the plugins on an update, not on one of a subresource.
pub(crate) fn update(resource: &Resource, old: &Value, new: &mut Value) {
    if resource.is("", "pods") {
        tolerations(new);
        for field in ["priority", "preemptionPolicy"] {
            if fields::at(new, &["spec", field]).is_none() {
                fields::copy(old, new, &["spec", field]);
            }
        }
    }
}

/// A runtime class that a pod names must exist.
fn runtime_class(object: &Value, objects: Objects<'_>) -> Result<(), ApiError> {
    let class = fields::text(object, &["spec", "runtimeClassName"]);
    let exists = |all: Vec<Value>| all.iter().any(|one| fields::text(one, &["metadata", "name"]) == class);
    if class.is_empty() || exists(objects("node.k8s.io", "runtimeclasses")) {
        return Ok(());
    }
    let why = format!("pod rejected: RuntimeClass {class:?} not found");
    Err(ApiError::forbidden("", "pods", fields::text(object, &["metadata", "name"]), &why))
}

/// A pod stays for five minutes on a node that is not ready or not reachable.
fn tolerations(object: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = fields::list(object, &["spec", "tolerations"]).iter().any(|toleration| {
            let other = fields::text(toleration, &["key"]);
            let effect = fields::text(toleration, &["effect"]);
            (other == key || other.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if tolerated {
            continue;
        }
        let toleration =
            json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
        fields::set_if_absent(object, &["spec", "tolerations"], json!([]));
        if let Some(tolerations) = fields::list_mut(object, &["spec", "tolerations"]) {
            tolerations.push(toleration);
        }
    }
}

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn priority(object: &mut Value, objects: Objects<'_>) -> Result<(), ApiError> {
    let pod = fields::text(object, &["metadata", "name"]).to_owned();
    let forbidden = |why: &str| Err(ApiError::forbidden("", "pods", &pod, why));
    let wanted = fields::text(object, &["spec", "priorityClassName"]).to_owned();
    let classes = objects("scheduling.k8s.io", "priorityclasses");
    let class = if wanted.is_empty() {
        // Of several defaults the real server takes the smallest.
        let defaults = classes.iter().filter(|class| fields::is_true(class, &["globalDefault"]));
        defaults.min_by_key(|class| fields::int(class, &["value"]))
    } else {
        classes.iter().find(|class| fields::text(class, &["metadata", "name"]) == wanted)
    };
    let system = SYSTEM_CLASSES.iter().find(|(name, _)| *name == wanted);
    let (priority, policy) = match (class, system) {
        (Some(class), _) => {
            let name = fields::text(class, &["metadata", "name"]);
            fields::set(object, &["spec", "priorityClassName"], name);
            let policy = fields::text(class, &["preemptionPolicy"]);
            (fields::int(class, &["value"]).unwrap_or_default(), policy)
        }
        (None, Some((_, priority))) => (*priority, "PreemptLowerPriority"),
        (None, None) if wanted.is_empty() => (0, "PreemptLowerPriority"),
        (None, None) => return forbidden(&format!("no PriorityClass with name {wanted} was found")),
    };
    if let Some(given) = fields::int(object, &["spec", "priority"]).filter(|given| *given != priority) {
        return forbidden(&format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {priority} from the given PriorityClass name"
        ));
    }
    let given = fields::text(object, &["spec", "preemptionPolicy"]);
    if !policy.is_empty() && !given.is_empty() && given != policy {
        return forbidden(&format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
             admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    fields::set(object, &["spec", "priority"], priority);
    if !policy.is_empty() {
        fields::set(object, &["spec", "preemptionPolicy"], policy);
    }
    Ok(())
}

/// A new node takes no pods until somebody says that it is ready.
fn taint(object: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    fields::set_if_absent(object, &["spec", "taints"], json!([]));
    let Some(taints) = fields::list_mut(object, &["spec", "taints"]) else { return };
    let tainted = taints
        .iter()
        .any(|t| fields::text(t, &["key"]) == KEY && fields::text(t, &["effect"]) == "NoSchedule");
    if !tainted {
        taints.push(json!({ "key": KEY, "effect": "NoSchedule" }));
    }
}

fn protect(object: &mut Value, finalizer: &str) {
    fields::set_if_absent(object, &["metadata", "finalizers"], json!([]));
    if let Some(finalizers) = fields::list_mut(object, &["metadata", "finalizers"])
        && !finalizers.iter().any(|name| name == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

/// The newest class that is marked as the default; of classes of the same age, the first by name.
fn default_class(object: &mut Value, field: &str, classes: Vec<Value>, mark: &str) {
    if fields::at(object, &["spec", field]).is_some() {
        return;
    }
    let marked = classes
        .iter()
        .filter(|class| fields::text(class, &["metadata", "annotations", mark]) == "true")
        .min_by(|a, b| {
            let age = |class: &Value| fields::text(class, &["metadata", "creationTimestamp"]).to_owned();
            let name = |class: &Value| fields::text(class, &["metadata", "name"]).to_owned();
            age(b).cmp(&age(a)).then_with(|| name(a).cmp(&name(b)))
        })
        .map(|class| fields::text(class, &["metadata", "name"]).to_owned());
    if let Some(name) = marked {
        fields::set(object, &["spec", field], name);
    }
}
