//! Containers of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, resources};
use crate::status::FieldError;

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// Fields of a pod that an environment variable can take its value from.
const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that exist, but not for this.
const OTHER_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "spec.host",
    "spec.hostNetwork",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.nominatedNodeName",
    "status.phase",
];
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The containers that a pod runs.
pub(super) fn containers(list: &At<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    if list.is_empty() {
        errors.required(list, "");
        return;
    }
    let mut names = BTreeSet::new();
    for container in list.items() {
        common(&container, volumes, errors);
        let name = container.get("name");
        if !names.insert(name.text()) {
            errors.duplicate(&name);
        }
        lifecycle(&container, errors);
        probes(&container, errors);
    }
    host_ports(list.items(), errors);
}

/// Those that run before it. `taken` are the names of the others.
pub(super) fn init_containers(
    list: &At<'_>,
    taken: &mut BTreeSet<String>,
    volumes: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    for container in list.items() {
        common(&container, volumes, errors);
        let restart = container.get("restartPolicy");
        errors.one_of_if_set(&restart, &["Always", "OnFailure", "Never"]);
        let name = container.get("name");
        if !name.text().is_empty() && !taken.insert(name.text().to_owned()) {
            errors.duplicate(&name);
        }
        host_ports([container.clone()].into_iter(), errors);
        if restart.text() == "Always" {
            lifecycle(&container, errors);
            probes(&container, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let field = container.get(field);
            if field.is_set() {
                errors.forbidden(&field, "may not be set for init containers without restartPolicy=Always");
            }
        }
    }
}

fn common(container: &At<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let name = container.get("name");
    if name.text().is_empty() {
        errors.required(&name, "");
    } else {
        errors.invalid_each(&name, formats::dns_label(name.text()));
    }
    let image = container.get("image");
    if image.text().is_empty() {
        errors.required(&image, "");
    }
    errors.one_of(&container.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    ports(&container.get("ports"), errors);
    for variable in container.get("env").items() {
        env(&variable, errors);
    }
    env_from(&container.get("envFrom"), errors);
    mounts(&container.get("volumeMounts"), volumes, errors);
    errors.one_of(&container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    resources::check(&container.get("resources"), errors);
}

fn ports(ports: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            let complaints = formats::port_name(name.text());
            if complaints.is_empty() {
                if !names.insert(name.text()) {
                    errors.duplicate(&name);
                }
            } else {
                errors.invalid_each(&name, complaints);
            }
        }
        let number = port.get("containerPort");
        match number.int().unwrap_or_default() {
            0 => errors.required(&number, ""),
            port => errors.invalid_each(&number, formats::port_number(port)),
        }
        let host = port.get("hostPort");
        if let Some(number) = host.int().filter(|number| *number != 0) {
            errors.invalid_each(&host, formats::port_number(number));
        }
        errors.one_of(&port.get("protocol"), PROTOCOLS);
    }
}

fn host_ports<'a>(containers: impl Iterator<Item = At<'a>>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for container in containers {
        for port in container.get("ports").items() {
            let Some(number) = port.get("hostPort").int().filter(|number| *number != 0) else { continue };
            let held = format!("{}/{}/{number}", port.get("protocol").text(), port.get("hostIP").text());
            if !taken.insert(held.clone()) {
                errors.push(FieldError::duplicate(port.get("hostPort").path, held));
            }
        }
    }
}

fn env(variable: &At<'_>, errors: &mut Errors) {
    let name = variable.get("name");
    if name.text().is_empty() {
        errors.required(&name, "");
    } else {
        errors.invalid_each(&name, formats::env_name(name.text()));
    }
    let from = variable.get("valueFrom");
    if !from.is_set() {
        return;
    }
    let mut sources = 0;
    let mut source = |field: &str| {
        let at = from.get(field);
        sources += i32::from(at.is_set());
        at.is_set().then_some(at)
    };
    if let Some(field) = source("fieldRef") {
        field_path(&field.get("fieldPath"), errors);
    }
    if let Some(resource) = source("resourceFieldRef") {
        resource_field(&resource.get("resource"), errors);
    }
    for reference in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source(reference) {
            key_reference(&reference, errors);
        }
    }
    source("fileKeyRef");
    let why = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.get("value").text().is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(&from.path, "", why));
}

fn field_path(path: &At<'_>, errors: &mut Errors) {
    let text = path.text();
    if text.is_empty() {
        errors.required(path, "");
    } else if let Some((map, _)) = text.split_once("['") {
        if !matches!(map, "metadata.labels" | "metadata.annotations") || !text.ends_with("']") {
            errors.invalid(path, "does not support subscript");
        }
    } else if OTHER_FIELDS.contains(&text) {
        errors.unsupported(path, ENV_FIELDS);
    } else if !ENV_FIELDS.contains(&text) {
        errors.invalid(path, format!("error converting fieldPath: field label not supported: {text}"));
    }
}

fn resource_field(resource: &At<'_>, errors: &mut Errors) {
    let text = resource.text();
    let huge = text.starts_with("limits.hugepages-") || text.starts_with("requests.hugepages-");
    if text.is_empty() {
        errors.required(resource, "");
    } else if !RESOURCE_FIELDS.contains(&text) && !huge {
        errors.unsupported(resource, RESOURCE_FIELDS);
    }
}

fn key_reference(reference: &At<'_>, errors: &mut Errors) {
    let name = reference.get("name");
    let shown = Value::from(name.text());
    errors.invalid_each(&At { value: &shown, path: name.path.clone() }, formats::dns_subdomain(name.text()));
    let key = reference.get("key");
    if key.text().is_empty() {
        errors.required(&key, "");
    } else {
        errors.invalid_each(&key, formats::config_key(key.text()));
    }
}

fn env_from(sources: &At<'_>, errors: &mut Errors) {
    for source in sources.items() {
        let prefix = source.get("prefix");
        if !prefix.text().is_empty() {
            errors.invalid_each(&prefix, formats::env_name(prefix.text()));
        }
        let references = ["configMapRef", "secretRef"].map(|field| source.get(field));
        let mut set = 0;
        for reference in references.iter().filter(|reference| reference.is_set()) {
            set += 1;
            if reference.get("name").text().is_empty() {
                errors.required(&reference.get("name"), "");
            }
        }
        let why = match set {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(&sources.path, "", why));
    }
}

fn mounts(mounts: &At<'_>, volumes: &BTreeSet<&str>, errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.text().is_empty() {
            errors.required(&name, "");
        }
        if !volumes.contains(name.text()) {
            errors.not_found(&name);
        }
        if path.text().is_empty() {
            errors.required(&path, "");
        }
        if !paths.insert(path.text()) {
            errors.invalid(&path, "must be unique");
        }
        for field in ["subPath", "subPathExpr"] {
            // The real server forgets the index here.
            let at = mount.get(field).named(mounts.get(field).path);
            super::volumes::descending_path(&at, errors);
        }
    }
}

fn lifecycle(container: &At<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = container.get("lifecycle").get(hook);
        if hook.is_set() {
            handler(&hook, errors);
        }
    }
}

fn probes(container: &At<'_>, errors: &mut Errors) {
    for (field, once) in [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)] {
        let probe = container.get(field);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, errors);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            errors.non_negative(&probe.get(number));
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if grace.int().is_some_and(|seconds| seconds <= 0) {
            errors.invalid(&grace, "must be greater than 0");
        }
        let threshold = probe.get("successThreshold");
        if once && threshold.int() != Some(1) {
            errors.invalid(&threshold, "must be 1");
        }
    }
}

fn handler(handler: &At<'_>, errors: &mut Errors) {
    let mut found = false;
    for field in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let at = handler.get(field);
        if !at.is_set() {
            continue;
        }
        if found {
            errors.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match field {
            "exec" if at.get("command").is_empty() => errors.required(&at.get("command"), ""),
            "httpGet" => {
                if at.get("path").text().is_empty() {
                    errors.required(&at.get("path"), "");
                }
                port_or_name(&at.get("port"), errors);
                let scheme = at.get("scheme");
                if !matches!(scheme.text(), "HTTP" | "HTTPS") {
                    errors.unsupported(&scheme, &["HTTP", "HTTPS"]);
                }
            }
            "tcpSocket" => port_or_name(&at.get("port"), errors),
            "grpc" => {
                let port = at.get("port");
                errors.invalid_each(&port, formats::port_number(port.int().unwrap_or_default()));
            }
            _ => {}
        }
    }
    if !found {
        errors.required(handler, "must specify a handler type");
    }
}

/// A port by number or by name.
pub(super) fn port_or_name(port: &At<'_>, errors: &mut Errors) {
    match port.value {
        Value::String(name) => errors.invalid_each(port, formats::port_name(name)),
        _ => {
            let number = port.int().unwrap_or_default();
            let shown = Value::from(number);
            errors.invalid_each(&At { value: &shown, path: port.path.clone() }, formats::port_number(number));
        }
    }
}
