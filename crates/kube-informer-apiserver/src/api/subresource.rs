//! The parts of an object that have an endpoint of their own, and what is only ever posted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Api, WriteOptions, text};
use crate::crd;
use crate::kinds::Resource;
use crate::object::{Stored, metadata_mut};
use crate::status::{ApiError, FieldError};

/// What of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Status,
    Scale,
    /// The finalizers of a namespace.
    Finalize,
    /// The node of a pod.
    Binding,
}

impl Part {
    /// The part that a subresource name stands for, where it is one.
    pub(crate) fn of(subresource: &str) -> Option<Self> {
        match subresource {
            "" => Some(Self::Whole),
            "status" => Some(Self::Status),
            "scale" => Some(Self::Scale),
            "finalize" => Some(Self::Finalize),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalize => "finalize",
            Self::Binding => "binding",
        }
    }
}

impl Api {
    /// The `Scale` of an object.
    pub(crate) fn scale(&self, resource: &Resource, object: &Stored) -> Result<Value, ApiError> {
        crd::scale_get(resource, &object.value_as(resource))
    }

    /// Sets the `Scale` of an object; `change` is given the current one.
    pub(crate) fn set_scale(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        options: &WriteOptions,
        mut change: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Value, ApiError> {
        let (stored, _) = self.update(resource, namespace, name, Part::Scale, options, |object| {
            let mut object = object.cloned().unwrap_or_default();
            let scale = change(&crd::scale_to_patch(resource, &object)?)?;
            crd::scale_set(resource, &mut object, &scale)?;
            for pinned in ["resourceVersion", "uid"] {
                let given = text(&scale, &format!("/metadata/{pinned}"));
                if !given.is_empty() {
                    metadata_mut(&mut object).insert(pinned.into(), given.into());
                }
            }
            Ok(object)
        })?;
        self.scale(resource, &stored)
    }

    /// `pods/binding`: what a scheduler does.
    pub(crate) fn bind(
        &self,
        pods: &Arc<Resource>,
        namespace: &str,
        name: &str,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let (node, kind) = (text(binding, "/target/name"), text(binding, "/target/kind"));
        if !matches!(kind, "" | "Node") {
            let error = FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]);
            return Err(ApiError::unforeseen(error.to_string()));
        }
        if node.is_empty() {
            return Err(ApiError::unforeseen(FieldError::required("target.name", "").to_string()));
        }
        let uid = text(binding, "/metadata/uid");
        self.update(pods, namespace, name, Part::Binding, options, |pod| {
            let mut pod = pod.cloned().unwrap_or_default();
            let bound = text(&pod, "/spec/nodeName");
            if !bound.is_empty() {
                let why = format!("pod {name} is already assigned to node {bound:?}");
                return Err(ApiError::conflict("", "pods/binding", name, &why));
            }
            let own = text(&pod, "/metadata/uid");
            if !uid.is_empty() && uid != own {
                let why = super::write::precondition("UID", uid, own);
                return Err(ApiError::storage_conflict(pods, namespace, name, &why));
            }
            for (key, value) in
                binding.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten()
            {
                pod["metadata"]["annotations"][key] = value.clone();
            }
            pod["spec"]["nodeName"] = node.into();
            set_condition(&mut pod, "PodScheduled", "True");
            Ok(pod)
        })?;
        Ok(success(201))
    }
}

/// Sets a condition of a pod.
pub(super) fn set_condition(object: &mut Value, kind: &str, status: &str) {
    let condition = json!({ "type": kind, "status": status, "lastProbeTime": null,
        "lastTransitionTime": super::seconds(jiff::Timestamp::now()) });
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    match &mut object["status"]["conditions"] {
        Value::Array(all) => {
            all.retain(|c| text(c, "/type") != kind);
            all.push(condition);
        }
        other => *other = json!([condition]),
    }
}

/// A `Status` that says that it worked.
pub(crate) fn success(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code })
}
