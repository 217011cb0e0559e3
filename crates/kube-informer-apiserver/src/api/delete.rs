//! Delete, one or many.
//!
//! An object with finalizers (its own, or those that foreground and orphan propagation add) only gets its
//! `deletionTimestamp`; so does a pod that runs on a node. It goes when the last finalizer does. What
//! happens to its dependents is [`crate::housekeeping`]'s.

use std::sync::Arc;

use serde_json::{Value, json};

use super::identity::{now, seconds};
use super::{Api, Part, text};
use crate::kinds::Resource;
use crate::object::{Stored, metadata_mut};
use crate::registry::bucket_of;
use crate::status::ApiError;
use crate::store::Refused;
use crate::strategy::{self, Grace};
use crate::watch::Selection;
use crate::{admission, convert, crd};

/// What becomes of the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `DeleteOptions`.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// `orphanDependents: false` was given: answered with 202 when the object stays for now.
    pub(crate) cascade_asked: bool,
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
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let propagation = match (text(body, "/propagationPolicy"), orphan) {
            ("", None) => None,
            ("", Some(true)) | ("Orphan", None) => Some(Propagation::Orphan),
            ("", Some(false)) | ("Background", None) => Some(Propagation::Background),
            ("Foreground", None) => Some(Propagation::Foreground),
            (_, Some(_)) => {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                return Err(invalid(&crate::status::FieldError::invalid("propagationPolicy", text(body, "/propagationPolicy"), detail)));
            }
            (other, None) => {
                let valid = ["Background", "Foreground", "Orphan"];
                return Err(invalid(&crate::status::FieldError::not_supported("propagationPolicy", other, &valid)));
            }
        };
        let dry_run = body.get("dryRun").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        Ok(Self {
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation,
            cascade_asked: orphan == Some(false),
            uid: own("/preconditions/uid"),
            version: own("/preconditions/resourceVersion"),
            dry_run,
        })
    }

    pub(crate) fn background() -> Self {
        Self { propagation: Some(Propagation::Background), ..Self::default() }
    }
}

fn invalid(error: &crate::status::FieldError) -> ApiError {
    ApiError::invalid("meta.k8s.io", "DeleteOptions", "", std::slice::from_ref(error))
}

impl Api {
    pub(crate) fn delete(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        loop {
            let seen = self.get(resource, namespace, name)?;
            self.check_preconditions(resource, &seen, options)?;
            match self.delete_seen(resource, &seen, options) {
                Ok(deleted) => return Ok(deleted),
                // Somebody wrote meanwhile: look again. A deletion is never refused for that, and every
                // round means that another writer made progress.
                Err(Refused::Changed | Refused::Exists) => {}
            }
        }
    }

    /// Deletes what the selection holds; returns their last states.
    pub(crate) fn delete_all(
        &self,
        resource: &Arc<Resource>,
        selection: &Selection,
        options: &DeleteOptions,
    ) -> Result<Vec<Arc<Stored>>, ApiError> {
        let listing = self.store.list(&bucket_of(resource), &selection.prefix);
        let mut deleted = Vec::new();
        for object in listing.objects.iter().filter(|o| selection.matches(o)) {
            match self.delete(resource, &object.namespace, &object.name, options) {
                Ok(Deleted::Gone(last) | Deleted::Going(last)) => deleted.push(last),
                Err(error) if error.reason == "NotFound" => {}
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    fn check_preconditions(
        &self,
        resource: &Resource,
        seen: &Stored,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let failed = |what: &str, wanted: &str, found: &str| {
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            ApiError::conflict(&resource.group, &resource.plural, &seen.name, &why)
        };
        match &options.uid {
            Some(uid) if *uid != seen.uid => return Err(failed("UID", uid, &seen.uid)),
            _ => {}
        }
        match &options.version {
            Some(version) if *version != seen.revision.to_string() => {
                Err(failed("ResourceVersion", version, &seen.revision.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn delete_seen(
        &self,
        resource: &Arc<Resource>,
        seen: &Arc<Stored>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refused> {
        let mut object = seen.value_as(resource);
        set_propagation(&mut object, options.propagation);
        let waits = strategy::has_finalizers(resource, &object);
        let grace = strategy::grace_period(resource, &object, options.grace);
        let last = match grace {
            Grace::Now => !waits,
            Grace::Seconds(_) => false,
        };
        if last {
            if options.dry_run {
                return Ok(Deleted::Gone(Arc::clone(seen)));
            }
            convert::to_storage(resource, &mut object);
            let bucket = bucket_of(resource);
            let gone = self.store.remove(&bucket, seen, |revision| self.make(resource, &mut object, revision))?;
            self.unserve(resource, &gone.name);
            return Ok(Deleted::Gone(gone));
        }
        mark(resource, &mut object, match grace {
            Grace::Now => 0,
            Grace::Seconds(seconds) => seconds,
        });
        convert::to_storage(resource, &mut object);
        if object == seen.value() || options.dry_run {
            return Ok(Deleted::Going(Arc::clone(seen)));
        }
        let bucket = bucket_of(resource);
        let going = self.store.replace(&bucket, seen, |revision| self.make(resource, &mut object, revision))?;
        Ok(Deleted::Going(going))
    }

    /// Takes a finalizer away, as its controller would; the object goes if it was the last.
    pub(crate) fn remove_finalizer(&self, resource: &Arc<Resource>, object: &Stored, finalizer: &str) {
        let part = if resource.is("", "namespaces") && finalizer == "kubernetes" { Part::Finalize } else { Part::Whole };
        let pointer = if part == Part::Finalize { "/spec/finalizers" } else { "/metadata/finalizers" };
        let options = super::WriteOptions { manager: admission::OWN_MANAGER.into(), ..Default::default() };
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

/// The finalizers that stand for a propagation policy.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let wanted = match propagation {
        None => return,
        Some(Propagation::Background) => None,
        Some(Propagation::Foreground) => Some("foregroundDeletion"),
        Some(Propagation::Orphan) => Some("orphan"),
    };
    let meta = metadata_mut(object);
    let mut finalizers: Vec<Value> = meta.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    finalizers.retain(|f| !matches!(f.as_str(), Some("foregroundDeletion" | "orphan")));
    finalizers.extend(wanted.map(Value::from));
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), finalizers.into());
    }
}

/// Says that the object is on its way out.
fn mark(resource: &Resource, object: &mut Value, grace: i64) {
    let already = text(object, "/metadata/deletionTimestamp") != "";
    let shorter = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|g| grace < g);
    if !already || shorter {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(grace.clamp(0, 1_000_000_000));
        let meta = metadata_mut(object);
        meta.insert("deletionTimestamp".into(), seconds(at).into());
        meta.insert("deletionGracePeriodSeconds".into(), grace.into());
        if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
            meta.insert("generation".into(), (generation + 1).into());
        }
    }
    if resource.is("", "namespaces") {
        object["status"] = json!({ "phase": "Terminating" });
    }
    if crd::is_definition(resource) {
        crd::set_terminating(object, &now());
    }
}
