//! Create and update.

use std::sync::Arc;

use serde_json::Value;

use super::identity::now;
use super::{Api, Part, text};
use crate::admission::{self, Before, Writer};
use crate::kinds::Resource;
use crate::object::{Stored, metadata_mut};
use crate::registry::bucket_of;
use crate::status::{ApiError, FieldError};
use crate::store::Refused;
use crate::{convert, crd, strategy, validation};

/// How often a write without a version starts again when others are faster.
const ATTEMPTS: usize = 64;

/// How a write is to be done.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Say what would happen, and do nothing.
    pub(crate) dry_run: bool,
    /// Who owns the fields that this write sets.
    pub(crate) manager: String,
}

impl Api {
    /// Creates an object that has been decoded by [`admission::read`].
    pub(crate) fn create(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Stored>, ApiError> {
        let meta = metadata_mut(&mut object);
        match meta.get("namespace").and_then(Value::as_str) {
            Some(given) if !given.is_empty() && resource.namespaced && given != namespace => {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            _ => {}
        }
        if resource.namespaced {
            meta.insert("namespace".into(), namespace.into());
        } else {
            meta.remove("namespace");
        }
        let generated = text(&object, "/metadata/name").is_empty()
            && !text(&object, "/metadata/generateName").is_empty();
        if text(&object, "/metadata/resourceVersion") != "" {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        // A generated name may be taken: another one is tried, as the real server does.
        for _ in 0..8 {
            let mut attempt = object.clone();
            if generated {
                let name = self.identity.name(text(&object, "/metadata/generateName"));
                metadata_mut(&mut attempt).insert("name".into(), name.into());
            }
            match self.create_named(resource, namespace, attempt, options) {
                Err(error) if generated && error.reason == "AlreadyExists" => {}
                result => return result,
            }
        }
        let base = text(&object, "/metadata/generateName");
        Err(ApiError::already_exists(&resource.group, &resource.plural, base))
    }

    fn create_named(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Stored>, ApiError> {
        let name = text(&object, "/metadata/name").to_owned();
        self.check_namespace(resource, namespace, &name)?;
        let meta = metadata_mut(&mut object);
        for system in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
            // A client that sends managedFields on create has them taken over as they are; ours is the
            // only manager of a new object.
            meta.remove(system);
        }
        meta.insert("uid".into(), self.identity.uid().into());
        meta.insert("creationTimestamp".into(), now().into());
        self.allocate(resource, None, &mut object);
        let writer = Writer { manager: &options.manager, part: Part::Whole, now: &now() };
        admission::admit(resource, Before::Nothing, &mut object, &writer)?;
        self.register(resource, None, &mut object)?;
        convert::to_storage(resource, &mut object);
        let key = crate::object::key(namespace, &name);
        let make = |revision| self.make(resource, &mut object, revision);
        let bucket = bucket_of(resource);
        if options.dry_run {
            return match self.store.get(&bucket, &key) {
                Some(_) => Err(ApiError::already_exists(&resource.group, &resource.plural, &name)),
                None => Ok(Arc::new(Self::make_dry(&self.store, resource, &mut object))),
            };
        }
        let stored = self.store.insert(&bucket, &key, make);
        let stored = stored.map_err(|_| ApiError::already_exists(&resource.group, &resource.plural, &name))?;
        self.serve(resource, &stored);
        Ok(stored)
    }

    /// Changes an object: `change` is given it as it is and returns it as it should be. The result also
    /// tells whether the object was created (kinds that may be created by an update).
    pub(crate) fn update(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        part: Part,
        options: &WriteOptions,
        mut change: impl FnMut(Option<&Value>) -> Result<Value, ApiError>,
    ) -> Result<(Arc<Stored>, bool), ApiError> {
        for _ in 0..ATTEMPTS {
            let Ok(seen) = self.get(resource, namespace, name) else {
                let missing = || ApiError::not_found(&resource.group, &resource.plural, name);
                if part != Part::Whole || !strategy::allows_create_on_update(resource) {
                    return Err(missing());
                }
                let object = change(None)?;
                check_identity(resource, namespace, name, &object)?;
                if text(&object, "/metadata/uid") != "" || text(&object, "/metadata/resourceVersion") != "" {
                    return Err(missing());
                }
                match self.create(resource, namespace, object, options) {
                    Err(error) if error.reason == "AlreadyExists" => continue,
                    result => return result.map(|stored| (stored, true)),
                }
            };
            let old = seen.value_as(resource);
            let new = change(Some(&old))?;
            check_identity(resource, namespace, name, &new)?;
            check_version(resource, &seen, &new)?;
            match self.write_over(resource, &seen, &old, new, part, options) {
                Ok(stored) => return Ok((stored, false)),
                Err(Failed::Raced) => {}
                Err(Failed::Refused(error)) => return Err(error),
            }
        }
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Err(ApiError::conflict(&resource.group, &resource.plural, name, why))
    }

    fn write_over(
        &self,
        resource: &Arc<Resource>,
        seen: &Arc<Stored>,
        old: &Value,
        mut new: Value,
        part: Part,
        options: &WriteOptions,
    ) -> Result<Arc<Stored>, Failed> {
        let bucket = bucket_of(resource);
        // Unconditional writes carry no version; the rest of the pipeline sees the one they are based on.
        if text(&new, "/metadata/resourceVersion").is_empty() {
            if !strategy::allows_unconditional_update(resource) {
                let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
                return Err(ApiError::invalid(&resource.group, &resource.kind, &seen.name, &[error]).into());
            }
            metadata_mut(&mut new).insert("resourceVersion".into(), seen.revision.to_string().into());
        }
        self.allocate(resource, Some(old), &mut new);
        let writer = Writer { manager: &options.manager, part, now: &now() };
        admission::admit(resource, Before::Was(old), &mut new, &writer)?;
        self.register(resource, Some(old), &mut new)?;
        if new == *old {
            return Ok(Arc::clone(seen));
        }
        convert::to_storage(resource, &mut new);
        if options.dry_run {
            return Ok(Arc::new(Self::make_dry(&self.store, resource, &mut new)));
        }
        let last = strategy::is_finished(resource, &new);
        let make = |revision| self.make(resource, &mut new, revision);
        let written = if last {
            self.store.remove(&bucket, seen, make)
        } else {
            self.store.replace(&bucket, seen, make)
        };
        let stored = written.map_err(|refused| match refused {
            Refused::Changed | Refused::Exists => Failed::Raced,
        })?;
        if last {
            self.unserve(resource, &stored.name);
        } else {
            self.serve(resource, &stored);
        }
        Ok(stored)
    }

    pub(super) fn make(&self, resource: &Resource, object: &mut Value, revision: u64) -> Stored {
        metadata_mut(object).insert("resourceVersion".into(), revision.to_string().into());
        Stored::new(resource, object, revision, self.store.serialised())
    }

    fn make_dry(store: &crate::store::Store, resource: &Resource, object: &mut Value) -> Stored {
        let revision = text(object, "/metadata/resourceVersion").parse().unwrap_or_default();
        Stored::new(resource, object, revision, store.serialised())
    }

    /// Addresses and ports of Services.
    fn allocate(&self, resource: &Resource, old: Option<&Value>, object: &mut Value) {
        if !resource.is("", "services") {
            return;
        }
        let kind = text(object, "/spec/type").to_owned();
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
        if kind == "ExternalName" {
            return;
        }
        let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default();
        let kept = old.map(|old| text(old, "/spec/clusterIP")).unwrap_or_default();
        let address = match (given, kept) {
            ("", "") => self.identity.cluster_ip(),
            ("", kept) => kept.to_owned(),
            (given, _) => given.to_owned(),
        };
        spec.insert("clusterIPs".into(), vec![address.clone()].into());
        spec.insert("clusterIP".into(), address.into());
        if kind == "NodePort" || kind == "LoadBalancer" {
            let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
            for port in ports.filter_map(Value::as_object_mut) {
                if port.get("nodePort").and_then(Value::as_u64).unwrap_or_default() == 0 {
                    port.insert("nodePort".into(), self.identity.node_port().into());
                }
            }
        }
    }

    /// A definition gets its status and must be readable before it is stored.
    fn register(&self, resource: &Resource, old: Option<&Value>, object: &mut Value) -> Result<(), ApiError> {
        if !crd::is_definition(resource) {
            return Ok(());
        }
        let name = text(object, "/metadata/name").to_owned();
        let others: Vec<Value> =
            self.list(resource, "").objects.iter().filter(|o| o.name != name).map(|o| o.value()).collect();
        let spec_changed = old.is_none_or(|old| old.get("spec") != object.get("spec"));
        if spec_changed {
            object["status"] = crd::status(object, &others);
        }
        Ok(())
    }

    /// Serves what a stored definition describes.
    fn serve(&self, resource: &Resource, stored: &Stored) {
        if !crd::is_definition(resource) {
            return;
        }
        let definition = stored.value();
        match crd::resources(&definition) {
            Ok(resources) if crd::is_served(&definition) => self.registry.set_custom(&stored.name, resources),
            Ok(_) => self.registry.remove_custom(&stored.name),
            Err(error) => tracing::warn!(definition = %stored.name, %error, "stored definition cannot be served"),
        }
    }

    pub(super) fn unserve(&self, resource: &Resource, name: &str) {
        if crd::is_definition(resource) {
            for gone in self.registry.all().iter().filter(|r| format!("{}.{}", r.plural, r.group) == name) {
                self.store.drop_bucket(&bucket_of(gone));
            }
            self.registry.remove_custom(name);
        }
    }
}

/// Why a write over an object did not happen.
enum Failed {
    /// Somebody was faster.
    Raced,
    Refused(ApiError),
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// The body must be about the object that the path names.
fn check_identity(resource: &Resource, namespace: &str, name: &str, object: &Value) -> Result<(), ApiError> {
    let given = text(object, "/metadata/name");
    if given.is_empty() {
        let error = FieldError::required("metadata.name", "name must be provided");
        return match resource.custom {
            _ if !object.pointer("/metadata").is_some_and(Value::is_object) => {
                Err(ApiError::invalid(&resource.group, &resource.kind, name, &[error]))
            }
            _ => Err(ApiError::bad_request(
                "the name of the object ( based on URL) was undeterminable: name must be provided",
            )),
        };
    }
    if given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let given = text(object, "/metadata/namespace");
    if resource.namespaced && !given.is_empty() && given != namespace {
        return Err(ApiError::bad_request(format!(
            "the namespace of the object ({given}) does not match the namespace on the URL ({namespace})"
        )));
    }
    Ok(())
}

/// The version and UID that a client names must be those of the object.
fn check_version(resource: &Resource, seen: &Stored, new: &Value) -> Result<(), ApiError> {
    let conflict = |why: &str| ApiError::conflict(&resource.group, &resource.plural, &seen.name, why);
    let uid = text(new, "/metadata/uid");
    if !uid.is_empty() && uid != seen.uid {
        let theirs = &seen.uid;
        return Err(conflict(&format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {theirs}"
        )));
    }
    let version = text(new, "/metadata/resourceVersion");
    if version.is_empty() {
        return Ok(());
    }
    match version.parse::<u64>() {
        Ok(0) => Ok(()),
        Ok(number) if number == seen.revision => Ok(()),
        Ok(_) => Err(conflict(
            "the object has been modified; please apply your changes to the latest version and try again",
        )),
        Err(_) => {
            let error = FieldError::invalid("metadata.resourceVersion", version, validation::NOT_A_VERSION);
            Err(ApiError::invalid(&resource.group, &resource.kind, &seen.name, &[error]))
        }
    }
}
