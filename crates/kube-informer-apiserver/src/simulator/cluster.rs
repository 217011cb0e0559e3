//! The cluster as the controllers see it: kinds, and writes under the names of the real components.
//!
//! A write that loses a race or finds its object gone is no error: the change that was faster notes the
//! object again.

use std::sync::Arc;

use serde_json::Value;

use super::Simulator;
use crate::api::{Api, DeleteOptions, Part, WriteOptions, text};
use crate::kinds::Resource;
use crate::object::Stored;
use crate::status::ApiError;
use crate::store::BucketId;

macro_rules! kinds {
    ($($kind:ident $group:literal $plural:literal,)*) => {
        /// The kinds that the simulator reads or writes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum Kind { $($kind,)* }

        impl Kind {
            const ALL: &[Self] = &[$(Self::$kind,)*];

            fn names(self) -> (&'static str, &'static str) {
                match self { $(Self::$kind => ($group, $plural),)* }
            }

            pub(super) fn of(bucket: &BucketId) -> Option<Self> {
                match (bucket.0.as_str(), bucket.1.as_str()) {
                    $(($group, $plural) => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    ConfigMap "" "configmaps",
    ControllerRevision "apps" "controllerrevisions",
    DaemonSet "apps" "daemonsets",
    Deployment "apps" "deployments",
    EndpointSlice "discovery.k8s.io" "endpointslices",
    Event "" "events",
    Job "batch" "jobs",
    Lease "coordination.k8s.io" "leases",
    Namespace "" "namespaces",
    Node "" "nodes",
    Pod "" "pods",
    ReplicaSet "apps" "replicasets",
    Service "" "services",
    ServiceAccount "" "serviceaccounts",
    StatefulSet "apps" "statefulsets",
}

impl Kind {
    pub(super) fn bucket(self) -> BucketId {
        let (group, plural) = self.names();
        (group.to_owned(), plural.to_owned())
    }

    /// Whether a change of such an object is itself something to look at. Services are looked at through
    /// their timer ([`Simulator::observe_service`]).
    pub(super) fn has_controller(self) -> bool {
        matches!(
            self,
            Self::Pod
                | Self::ReplicaSet
                | Self::Deployment
                | Self::StatefulSet
                | Self::DaemonSet
                | Self::Job
                | Self::Namespace
                | Self::Node
        )
    }
}

/// The served resource of each kind.
pub(super) struct Kinds(Vec<Arc<Resource>>);

impl Kinds {
    pub(super) fn new(api: &Api) -> Result<Self, ApiError> {
        let all = Kind::ALL.iter().map(|kind| {
            let (group, plural) = kind.names();
            api.resource(group, plural)
        });
        all.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn get(&self, kind: Kind) -> Arc<Resource> {
        Arc::clone(&self.0[kind as usize])
    }

    #[cfg(test)]
    pub(super) fn named(&self) -> Vec<(Kind, Arc<Resource>)> {
        Kind::ALL.iter().map(|kind| (*kind, self.get(*kind))).collect()
    }
}

/// Who writes: the owner of the fields that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    ControllerManager,
    Scheduler,
    Kubelet,
    /// Somebody at a terminal.
    Human,
}

impl Who {
    pub(super) fn options(self) -> WriteOptions {
        let manager = match self {
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::Human => "kubectl",
        };
        WriteOptions { manager: manager.to_owned(), ..WriteOptions::default() }
    }
}

impl Simulator {
    pub(super) fn create(
        &self,
        who: Who,
        kind: Kind,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Stored>, ApiError> {
        let created = self.api.create(&self.kinds.get(kind), namespace, object, &who.options());
        if let Err(error) = &created {
            tracing::debug!(?kind, namespace, message = %error.message, "not created");
        }
        created
    }

    /// Changes an object as it is now, if it is still the same one.
    pub(super) fn edit(
        &self,
        who: Who,
        kind: Kind,
        object: &Stored,
        part: Part,
        mut change: impl FnMut(&mut Value),
    ) -> Option<Arc<Stored>> {
        let resource = self.kinds.get(kind);
        let options = who.options();
        let edited = self.api.update(&resource, &object.namespace, &object.name, part, &options, |current| {
            let mut new = current.cloned().unwrap_or_default();
            if text(&new, "/metadata/uid") != object.uid {
                return Err(ApiError::not_found(&resource.group, &resource.plural, &object.name));
            }
            change(&mut new);
            Ok(new)
        });
        match edited {
            Ok((stored, _)) => Some(stored),
            Err(error) => {
                tracing::debug!(?kind, object = %object.key, message = %error.message, "not changed");
                None
            }
        }
    }

    /// Sets the status of an object where it differs.
    pub(super) fn set_status(&self, who: Who, kind: Kind, object: &Stored, status: &Value) {
        self.edit(who, kind, object, Part::Status, |value| value["status"] = status.clone());
    }

    /// Deletes this very object; true if it is gone or going.
    pub(super) fn delete(&self, kind: Kind, object: &Stored) -> bool {
        self.delete_with(kind, object, DeleteOptions::propagating("Background"))
    }

    /// The same, without waiting for a kubelet: as the kubelet itself does.
    pub(super) fn delete_now(&self, kind: Kind, object: &Stored) -> bool {
        self.delete_with(kind, object, DeleteOptions::propagating("Background").at_once())
    }

    fn delete_with(&self, kind: Kind, object: &Stored, options: DeleteOptions) -> bool {
        let options = DeleteOptions { uid: Some(object.uid.clone()), ..options };
        let deleted = self.api.delete(&self.kinds.get(kind), &object.namespace, &object.name, &options);
        if let Err(error) = &deleted {
            tracing::debug!(?kind, object = %object.key, message = %error.message, "not deleted");
        }
        deleted.is_ok()
    }

    /// The dependents of one kind whose controller is the object with this UID.
    pub(super) fn controlled(&self, kind: Kind, uid: &str) -> Vec<(Arc<Stored>, Value)> {
        let bucket = kind.bucket();
        let dependents = self.api.store.dependents(uid).into_iter();
        let of_kind = dependents.filter(|(of, _)| *of == bucket).map(|(_, object)| object);
        of_kind
            .map(|object| (Arc::clone(&object), object.value()))
            .filter(|(_, value)| controller_of(value) == Some(uid))
            .collect()
    }
}

/// The UID of the owner that controls an object.
pub(super) fn controller_of(object: &Value) -> Option<&str> {
    let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let controls = |r: &&Value| r.get("controller").and_then(Value::as_bool).unwrap_or_default();
    references.iter().find(controls)?.get("uid")?.as_str()
}

/// The reference that makes `owner` the controller of an object.
pub(super) fn controller_reference(resource: &Resource, owner: &Stored) -> Value {
    serde_json::json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The whole number at a pointer.
pub(super) fn int(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The whole number at a pointer, or 0.
pub(super) fn count(object: &Value, pointer: &str) -> i64 {
    int(object, pointer).unwrap_or_default()
}

/// Sets a number that the real API leaves out when it is 0.
pub(super) fn set_count(status: &mut Value, field: &str, count: i64) {
    if !status.is_object() {
        *status = serde_json::json!({});
    }
    if let Some(map) = status.as_object_mut() {
        if count == 0 {
            map.remove(field);
        } else {
            map.insert(field.to_owned(), count.into());
        }
    }
}
