//! Delete, one or many.
//!
//! What a delete does to an object is [`crate::strategy::deletion`]'s to say: it is removed, or marked and
//! kept until its finalizers are gone or its kubelet is done. What happens to its dependents is
//! [`crate::housekeeping`]'s.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::{Api, Part, WriteOptions, seconds, text};
use crate::admission::{OWN_MANAGER, is_definition};
use crate::kinds::Resource;
use crate::object::Stored;
use crate::registry::bucket_of;
use crate::status::{ApiError, FieldError};
use crate::store::Refused;
use crate::strategy::deletion::{self, Deletion};
use crate::{convert, crd};

/// `DeleteOptions`.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    /// How: grace and propagation.
    pub(crate) how: deletion::DeleteOptions,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) dry_run: bool,
}

/// What a delete led to.
pub(crate) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Stored>),
    /// It waits for its finalizers or its kubelet.
    Going(Arc<Stored>),
}

impl DeleteOptions {
    /// Reads the body of a delete, which may be absent.
    pub(crate) fn read(body: Option<&Value>) -> Result<Self, ApiError> {
        let Some(body) = body.filter(|b| !b.is_null()) else { return Ok(Self::default()) };
        let own = |pointer: &str| match text(body, pointer) {
            "" => None,
            some => Some(some.to_owned()),
        };
        let invalid = |error| ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &[error]);
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let policy = body.get("propagationPolicy").and_then(Value::as_str).map(str::to_owned);
        if let Some(policy) = &policy {
            if orphan.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                return Err(invalid(FieldError::invalid("propagationPolicy", policy.clone(), detail)));
            }
            let valid = ["Foreground", "Background", "Orphan", "nil"];
            if !valid.get(..3).unwrap_or_default().contains(&policy.as_str()) {
                return Err(invalid(FieldError::not_supported("propagationPolicy", policy.clone(), &valid)));
            }
        }
        let dry_run = body.get("dryRun").and_then(Value::as_array).cloned().unwrap_or_default();
        if dry_run.iter().any(|value| value != "All") {
            return Err(invalid(FieldError::not_supported("dryRun", dry_run, &["All"])));
        }
        Ok(Self {
            how: deletion::DeleteOptions {
                grace_period_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
                propagation_policy: policy,
                orphan_dependents: orphan,
            },
            uid: own("/preconditions/uid"),
            version: own("/preconditions/resourceVersion"),
            dry_run: !dry_run.is_empty(),
        })
    }

    /// With a propagation policy.
    pub(crate) fn propagating(policy: &str) -> Self {
        let how =
            deletion::DeleteOptions { propagation_policy: Some(policy.to_owned()), ..Default::default() };
        Self { how, ..Self::default() }
    }

    /// Without waiting for a kubelet.
    pub(crate) fn at_once(mut self) -> Self {
        self.how.grace_period_seconds = Some(0);
        self
    }
}

impl Api {
    pub(crate) fn delete(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let kept = ["default", "kube-system", "kube-public"];
        if resource.is("", "namespaces") && kept.contains(&name) {
            return Err(ApiError::forbidden("", "namespaces", name, "this namespace may not be deleted"));
        }
        loop {
            let seen = self.get(resource, namespace, name)?;
            check_preconditions(resource, &seen, options)?;
            match self.delete_seen(resource, &seen, options) {
                Ok(deleted) => return Ok(deleted),
                // Somebody wrote meanwhile: look again. A deletion is never refused for that, and every
                // round means that another writer made progress.
                Err(Refused::Changed | Refused::Exists) => {}
            }
        }
    }

    /// Deletes all of these that are still there.
    pub(crate) fn delete_all(
        &self,
        resource: &Arc<Resource>,
        objects: &[Arc<Stored>],
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        for object in objects {
            match self.delete(resource, &object.namespace, &object.name, options) {
                Ok(_) => {}
                Err(error) if error.reason == "NotFound" => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn delete_seen(
        &self,
        resource: &Arc<Resource>,
        seen: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refused> {
        let mut object = seen.value_as(resource);
        let now = Timestamp::now();
        let deletion = if is_definition(resource) && !crd::is_terminating(&object) {
            // Its objects go first.
            crd::mark_deleted(&mut object, &seconds(now));
            Deletion::Update { remove: false }
        } else {
            deletion::begin(resource, &mut object, &options.how, now)
        };
        convert::to_storage(resource, &mut object);
        let bucket = bucket_of(resource);
        if options.dry_run {
            let dry = Arc::new(self.make_dry(resource, &object));
            return Ok(match deletion {
                Deletion::Remove | Deletion::Update { remove: true } => Deleted::Gone(dry),
                Deletion::Update { remove: false } | Deletion::Unchanged => Deleted::Going(dry),
            });
        }
        let mut seen = Arc::clone(seen);
        let remove = match deletion {
            Deletion::Unchanged => return Ok(Deleted::Going(seen)),
            Deletion::Remove => true,
            Deletion::Update { remove } => {
                seen = self
                    .store
                    .replace(&bucket, &seen, |revision| self.make(resource, &mut object, revision))?;
                remove
            }
        };
        if !remove {
            self.serve(resource, &seen);
            return Ok(Deleted::Going(seen));
        }
        let gone =
            self.store.remove(&bucket, &seen, |revision| self.make(resource, &mut object, revision))?;
        self.unserve(resource, &gone);
        Ok(Deleted::Gone(gone))
    }

    /// Changes an object as one of the server's own controllers does, past admission. It goes if that ends
    /// its deletion. Somebody else's write in between wins; the controller looks again.
    pub(crate) fn amend(
        &self,
        resource: &Arc<Resource>,
        seen: &Arc<Stored>,
        change: impl FnOnce(&mut Value),
    ) {
        let old = seen.value();
        let mut object = old.clone();
        change(&mut object);
        if object == old {
            return;
        }
        let bucket = bucket_of(resource);
        let last = deletion::ends_with_update(resource, &old, &object);
        if last {
            let mut gone = old;
            let gone = self.store.remove(&bucket, seen, |revision| self.make(resource, &mut gone, revision));
            if let Ok(gone) = gone {
                self.unserve(resource, &gone);
            }
            return;
        }
        let make = |revision| self.make(resource, &mut object, revision);
        if let Ok(stored) = self.store.replace(&bucket, seen, make) {
            self.serve(resource, &stored);
        }
    }

    /// Takes a finalizer away, as its controller would; the object goes if it was the last.
    pub(crate) fn remove_finalizer(
        &self,
        resource: &Arc<Resource>,
        object: &Stored,
        part: Part,
        finalizer: &str,
    ) {
        let pointer = if part == Part::Finalize { "/spec/finalizers" } else { "/metadata/finalizers" };
        let options = WriteOptions { manager: OWN_MANAGER.into(), ..Default::default() };
        let result = self.update(resource, &object.namespace, &object.name, part, &options, |current| {
            let mut new = current.cloned().unwrap_or_default();
            if let Some(all) = new.pointer_mut(pointer).and_then(Value::as_array_mut) {
                all.retain(|f| f.as_str() != Some(finalizer));
            }
            Ok(new)
        });
        if let Err(error) = result {
            tracing::debug!(object = %object.key, finalizer, message = %error.message, "finalizer stays");
        }
    }
}

pub(super) fn check_preconditions(
    resource: &Resource,
    seen: &Stored,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let failed = |what: &str, wanted: &str, found: &str| {
        Err(ApiError::precondition(resource, &seen.name, what, wanted, found))
    };
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != seen.uid) {
        return failed("UID", uid, &seen.uid);
    }
    let current = seen.revision.to_string();
    match options.version.as_ref().filter(|version| **version != current) {
        Some(version) => failed("ResourceVersion", version, &current),
        None => Ok(()),
    }
}
