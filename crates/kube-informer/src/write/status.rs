//! The status of an object: what its controller has seen.

use std::fmt;

use kube_client::Client;
use kube_client::core::Resource as KubeResource;
use serde::Serialize;
use serde_json::{Value, json};

use super::target::{Form, Target};
use super::{WriteError, Written};
use crate::object::Object;
use crate::resource::{Placement, Resource};

/// Patches the status of objects, where something changes.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::object::Object;
/// use kube_informer::write::{Status, WriteError};
/// use serde_json::json;
///
/// # async fn example(client: kube_client::Client, object: Object<Deployment>) -> Result<(), WriteError> {
/// let status = Status::of::<Deployment>(client).manager("my-controller");
/// // Only if the cached object says something else.
/// let written = status.patch(&object, &json!({ "availableReplicas": 3 })).await?;
/// # Ok(())
/// # }
/// ```
///
/// - As a merge patch, unless told otherwise: fields that are named are written, `null` removes one, a list is replaced as
///   a whole, all else stays. With [`apply`](Self::apply), what this manager wrote before and does not name now goes.
/// - Nothing is sent where the cached object has all that is named, with these values. (With `apply`: where its status
///   equals what is given.) A cache that is behind, or that [drops](crate::encoding::Rules) parts of the status, costs a
///   request, which the server takes for what it is: no change.
/// - Another object of the same name is not written to.
#[derive(Clone)]
#[must_use]
pub struct Status {
    target: Target,
    manager: String,
    form: Form,
    unchanged: bool,
}

impl Status {
    /// For objects of a type.
    pub fn of<K: KubeResource<DynamicType = (), Scope: Placement>>(client: Client) -> Self {
        Self::for_resource(client, Resource::of::<K>())
    }

    /// For objects of a resource.
    pub fn for_resource(client: Client, resource: Resource) -> Self {
        let manager = "kube-informer".to_owned();
        Self { target: Target::new(client, resource), manager, form: Form::Merge, unchanged: false }
    }

    /// Under which name the server remembers who wrote it; `kube-informer` unless told otherwise.
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.manager = manager.into();
        self
    }

    /// Writes with server-side apply, by force: the fields that are named are this manager's from then on.
    pub fn apply(mut self) -> Self {
        self.form = Form::Apply;
        self
    }

    /// Writes only if the object is the version that the cache has: else the server refuses (409). For lists that several
    /// write to, such as conditions in a merge patch.
    pub fn if_unchanged(mut self) -> Self {
        self.unchanged = true;
        self
    }

    /// Patches the status of an object, unless that would change nothing: then `None`.
    ///
    /// # Errors
    ///
    /// Where the status is no JSON object, the object is gone, or the server refuses or cannot be reached.
    pub async fn patch<K>(
        &self,
        object: &Object<K>,
        status: &impl Serialize,
    ) -> Result<Option<Written>, WriteError> {
        let key = object.key();
        let tried = self.target.tried("patch the status of", key);
        let unfit = |why: String| WriteError::Unfit { tried: tried.to_string(), why };
        let new = serde_json::to_value(status).map_err(|error| unfit(error.to_string()))?;
        if !new.is_object() {
            return Err(unfit("a status is a JSON object".to_owned()));
        }
        let old: Value = object.pointer("/status").map_err(WriteError::view(&tried))?.unwrap_or_default();
        let same = match self.form {
            Form::Merge => !would_change(&old, &new),
            Form::Apply => old == new,
        };
        if same {
            return Ok(None);
        }
        let mut patch = json!({ "metadata": { "uid": object.uid().to_string() }, "status": new });
        if self.unchanged {
            patch["metadata"]["resourceVersion"] = object.version().to_string().into();
        }
        if self.form == Form::Apply {
            patch["apiVersion"] = self.target.resource.api_version().into();
            patch["kind"] = self.target.resource.kind.as_str().into();
            patch["metadata"]["name"] = key.name.into();
        }
        let answer = self.target.patch(&tried, "status", self.form, Some(&self.manager), &patch).await;
        match answer {
            Ok(answer) => Ok(Some(self.target.written(key, &answer))),
            Err(WriteError::Gone { tried, .. }) => {
                Err(WriteError::Gone { tried, hint: ", or its resource has no status to write to" })
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether a merge patch would change something.
fn would_change(old: &Value, patch: &Value) -> bool {
    let Value::Object(patch) = patch else { return old != patch };
    let Value::Object(old) = old else { return true };
    patch.iter().any(|(name, new)| match (old.get(name), new) {
        (None, Value::Null) => false,
        (None, _) | (Some(_), Value::Null) => true,
        (Some(old), new) => would_change(old, new),
    })
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("resource", &self.target.resource)
            .field("manager", &self.manager)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_that_says_what_is_so_changes_nothing() {
        let old = json!({ "a": 1, "b": { "c": [1, 2], "d": null }, "e": "x" });
        for patch in [json!({}), json!({ "a": 1 }), json!({ "b": { "c": [1, 2] } }), json!({ "z": null })] {
            assert!(!would_change(&old, &patch), "{patch}");
        }
        for patch in [
            json!({ "a": 2 }),
            json!({ "a": null }),
            json!({ "z": 1 }),
            json!({ "z": {} }),
            json!({ "b": { "c": [2, 1] } }),
            json!({ "b": 1 }),
            json!({ "a": {} }),
        ] {
            assert!(would_change(&old, &patch), "{patch}");
        }
        assert!(would_change(&Value::Null, &json!({})), "there is no status yet");
    }
}
