//! What handlers and readers look at in a pod.

use k8s_openapi::api::core::v1::Pod;

/// Looks at every part of a pod that has parts.
#[must_use]
pub fn parts(pod: &Pod) -> usize {
    let mut found = 0;
    if let Some(spec) = &pod.spec {
        found += spec.volumes.as_ref().map_or(0, Vec::len) + spec.tolerations.as_ref().map_or(0, Vec::len);
        for container in &spec.containers {
            found += container.name.len() + container.image.as_ref().map_or(0, String::len);
            found += container.ports.as_ref().map_or(0, Vec::len);
            found += container.volume_mounts.as_ref().map_or(0, Vec::len);
            for variable in container.env.iter().flatten() {
                found += variable.name.len() + variable.value.as_ref().map_or(0, String::len);
            }
        }
    }
    if let Some(status) = &pod.status {
        found += status.pod_ips.as_ref().map_or(0, Vec::len);
        for condition in status.conditions.iter().flatten() {
            found += condition.type_.len() + condition.status.len();
            found += condition.message.as_ref().map_or(0, String::len);
        }
        for status in status.container_statuses.iter().flatten() {
            found += status.name.len() + status.image_id.len();
            found += usize::try_from(status.restart_count).unwrap_or(0);
        }
    }
    found
}

/// What readers look at.
#[must_use]
pub fn containers(pod: &Pod) -> usize {
    pod.spec.as_ref().map_or(0, |spec| spec.containers.len())
}

/// The node that a pod runs on.
#[must_use]
pub fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
