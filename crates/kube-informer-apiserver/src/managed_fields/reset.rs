//! Fields that an endpoint never writes, whatever the client sends.
//!
//! An update of the object itself leaves `status` alone, an update of `status` leaves `spec` alone. Such
//! fields are dropped from the comparison, so that nobody comes to own what was thrown away.

use crate::kinds::Resource;

const STATUS: &[&[&str]] = &[&["status"]];
const SPEC: &[&[&str]] = &[&["spec"]];
const SPEC_AND_STATUS: &[&[&str]] = &[&["spec"], &["status"]];
const SPEC_AND_METADATA: &[&[&str]] = &[&["spec"], &["metadata"]];

/// For a write to the object (`subresource` empty) or to one of its subresources.
pub(crate) fn reset_fields(resource: &Resource, subresource: &str) -> &'static [&'static [&'static str]] {
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    match (subresource, group, plural) {
        ("", "certificates.k8s.io", "certificatesigningrequests") => SPEC_AND_STATUS,
        ("", _, _) if resource.has_subresource("status") => STATUS,
        ("finalize", "", "namespaces") => STATUS,
        ("approval", "certificates.k8s.io", _) => &[&["spec"], &["status", "certificate"]],
        ("status", "certificates.k8s.io", "certificatesigningrequests") => {
            &[&["spec"], &["status", "conditions"]]
        }
        ("status", "apps", "deployments") => &[&["spec"], &["metadata", "labels"]],
        ("status", "", "pods") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        ("status", _, _) if resource.custom.is_some() => SPEC_AND_METADATA,
        (
            "status",
            "admissionregistration.k8s.io"
            | "internal.apiserver.k8s.io"
            | "certificates.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io"
            | "scheduling.k8s.io"
            | "storage.k8s.io"
            | "storagemigration.k8s.io"
            | "lifecycle.k8s.io"
            | "apiregistration.k8s.io",
            _,
        )
        | ("status", "networking.k8s.io", "servicecidrs") => SPEC_AND_METADATA,
        ("status", _, _) => SPEC,
        _ => &[],
    }
}
