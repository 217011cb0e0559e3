//! Create and update.

use std::sync::{Arc, MutexGuard};

use jiff::Timestamp;
use serde_json::Value;

use super::addresses::Addresses;
use super::identity::seconds;
use super::{Api, Part, text};
use crate::admission::{self, Surroundings, Writer, is_definition};
use crate::kinds::Resource;
use crate::object::{Stored, metadata_mut};
use crate::registry::bucket_of;
use crate::status::{ApiError, FieldError};
use crate::store::Refused;
use crate::strategy::deletion;
use crate::strategy::service::Allocator;
use crate::{convert, crd, strategy};

/// How often a write without a version starts again when others are faster.
const ATTEMPTS: usize = 64;

const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// How a write is to be done.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Say what would happen, and do nothing.
    pub(crate) dry_run: bool,
    /// Who owns the fields that this write sets.
    pub(crate) manager: String,
    /// A patch may say nothing about the object's identity; an update may ask for it.
    pub(crate) patch: bool,
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
            // Where the path has none, validation asks for one.
            Some(given) if ![given, namespace].contains(&"") && resource.namespaced && given != namespace => {
                return Err(ApiError::bad_request(OTHER_NAMESPACE));
            }
            _ => {}
        }
        if resource.namespaced {
            meta.insert("namespace".into(), namespace.into());
        } else {
            meta.remove("namespace");
        }
        for system in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            meta.remove(system);
        }
        let generated =
            text(&object, "/metadata/name").is_empty() && !text(&object, "/metadata/generateName").is_empty();
        if !text(&object, "/metadata/resourceVersion").is_empty() {
            return Err(ApiError::unforeseen("resourceVersion should not be set on objects to be created"));
        }
        let base = text(&object, "/metadata/generateName");
        let taken = |name: &str| ApiError::generated_name_exists(&resource.group, &resource.plural, name);
        // A generated name may be taken: another one is tried, as the real server does.
        for _ in 0..8 {
            let mut attempt = object.clone();
            if generated {
                let name = self.identity.name(text(&object, "/metadata/generateName"));
                metadata_mut(&mut attempt).insert("name".into(), name.into());
            }
            match self.create_named(resource, namespace, attempt, options) {
                Err(error) if error.reason == "AlreadyExists" && !base.is_empty() => {
                    if !generated {
                        return Err(taken(text(&object, "/metadata/name")));
                    }
                }
                result => return result,
            }
        }
        Err(taken(base))
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
        let now = Timestamp::now();
        let meta = metadata_mut(&mut object);
        meta.insert("uid".into(), self.identity.uid().into());
        meta.insert("creationTimestamp".into(), seconds(now).into());
        let writer = Writer { manager: &options.manager, part: Part::Whole, now, old: None };
        let services = self.admit(resource, &mut object, &writer)?;
        convert::to_storage(resource, &mut object);
        let key = crate::object::key(namespace, &name);
        let bucket = bucket_of(resource);
        let exists = || {
            let mut error = ApiError::already_exists(&resource.group, &resource.plural, &name);
            if self.store.get(&bucket, &key).is_some_and(|there| there.deleting) {
                error.message.insert_str(0, "object is being deleted: ");
            }
            error
        };
        if options.dry_run {
            return match self.store.get(&bucket, &key) {
                Some(_) => Err(exists()),
                None => Ok(Arc::new(self.make_dry(resource, &object))),
            };
        }
        let make = |revision| self.make(resource, &mut object, revision);
        let stored = self.store.insert(&bucket, &key, make).map_err(|_| exists())?;
        if let Some(services) = services {
            services.commit();
        }
        if is_definition(resource) {
            let others: Vec<Value> = self
                .list(resource, "")
                .objects
                .iter()
                .filter(|o| o.name != stored.name)
                .map(|o| o.value())
                .collect();
            self.amend(resource, &stored, |definition| admission::accept_names(definition, &others, now));
        }
        Ok(stored)
    }

    /// Runs an object through admission. Services are written one at a time: the lock is held until the
    /// caller has stored what was allocated.
    fn admit(
        &self,
        resource: &Resource,
        object: &mut Value,
        writer: &Writer<'_>,
    ) -> Result<Option<ServiceLock<'_>>, ApiError> {
        let objects = |group: &str, plural: &str| {
            let bucket = (group.to_owned(), plural.to_owned());
            self.store.list(&bucket, "").objects.iter().map(|o| o.value()).collect()
        };
        let name = text(object, "/metadata/name").to_owned();
        let definitions = || {
            let all = self.list(resource, "").objects;
            all.iter().filter(|o| o.name != name).map(|o| o.value()).collect()
        };
        if !resource.is("", "services") {
            let allocator = &mut NoAllocator;
            let mut around = Surroundings { objects: &objects, allocator, definitions: &definitions };
            admission::admit(resource, object, writer, &mut around)?;
            return Ok(None);
        }
        let mut addresses = self.addresses();
        let mut allocator = addresses.allocator(writer.old);
        let mut around =
            Surroundings { objects: &objects, allocator: &mut allocator, definitions: &definitions };
        admission::admit(resource, object, writer, &mut around)?;
        drop(allocator);
        Ok(Some(ServiceLock { addresses, old: writer.old.cloned(), new: object.clone() }))
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
                let mut object = change(None)?;
                identify(resource, namespace, name, &mut object)?;
                let uid = text(&object, "/metadata/uid");
                if !uid.is_empty() {
                    let why = precondition("UID", uid, "");
                    return Err(ApiError::storage_conflict(resource, namespace, name, &why));
                }
                metadata_mut(&mut object).remove("resourceVersion");
                match self.create(resource, namespace, object, options) {
                    Err(error) if error.reason == "AlreadyExists" => continue,
                    result => return result.map(|stored| (stored, true)),
                }
            };
            let old = seen.value_as(resource);
            let mut new = change(Some(&old))?;
            identify(resource, namespace, name, &mut new)?;
            check_version(resource, &seen, &new, options)?;
            match self.write_over(resource, &seen, &old, new, part, options) {
                Ok(stored) => return Ok((stored, false)),
                Err(Failed::Raced) => {}
                Err(Failed::Refused(error)) => return Err(error),
            }
        }
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
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
        if matches!(text(&new, "/metadata/resourceVersion"), "" | "0") {
            if !strategy::allows_unconditional_update(resource) {
                let error =
                    FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
                return Err(ApiError::invalid(&resource.group, &resource.plural, &seen.name, &[error]).into());
            }
            metadata_mut(&mut new).insert("resourceVersion".into(), seen.revision.to_string().into());
        }
        let writer = Writer { manager: &options.manager, part, now: Timestamp::now(), old: Some(old) };
        let services = self.admit(resource, &mut new, &writer)?;
        if new == *old {
            return Ok(Arc::clone(seen));
        }
        let last = deletion::ends_with_update(resource, old, &new);
        convert::to_storage(resource, &mut new);
        if options.dry_run {
            return Ok(Arc::new(self.make_dry(resource, &new)));
        }
        if last {
            // What is removed is the object as it was; the writer is answered with what it wrote.
            drop(services);
            let mut gone = old.clone();
            convert::to_storage(resource, &mut gone);
            let gone = self.store.remove(&bucket, seen, |revision| self.make(resource, &mut gone, revision));
            self.unserve(resource, &*gone.map_err(|_: Refused| Failed::Raced)?);
            return Ok(Arc::new(self.make(resource, &mut new, seen.revision)));
        }
        let written = self.store.replace(&bucket, seen, |revision| self.make(resource, &mut new, revision));
        let stored = written.map_err(|_: Refused| Failed::Raced)?;
        if let Some(services) = services {
            services.commit();
        }
        self.serve(resource, &stored);
        Ok(stored)
    }

    pub(super) fn make(&self, resource: &Resource, object: &mut Value, revision: u64) -> Stored {
        metadata_mut(object).insert("resourceVersion".into(), revision.to_string().into());
        Stored::new(resource, object, revision, self.store.serialised())
    }

    pub(super) fn make_dry(&self, resource: &Resource, object: &Value) -> Stored {
        let revision = text(object, "/metadata/resourceVersion").parse().unwrap_or_default();
        Stored::new(resource, object, revision, self.store.serialised())
    }

    /// Serves what a stored definition describes.
    pub(super) fn serve(&self, resource: &Resource, stored: &Stored) {
        if !is_definition(resource) {
            return;
        }
        let definition = stored.value();
        match crd::resources(&definition) {
            Ok(resources) if crd::is_served(&definition) => self.registry.set_custom(&stored.name, resources),
            Ok(_) => self.registry.remove_custom(&stored.name),
            Err(error) => {
                tracing::warn!(definition = %stored.name, %error, "stored definition cannot be served");
            }
        }
    }

    /// Takes back what a removed object stood for: what its definition served, a Service's addresses.
    pub(super) fn unserve(&self, resource: &Resource, last: &Stored) {
        if resource.is("", "services") {
            self.addresses().release(&last.value());
        }
        if is_definition(resource) {
            let definition = last.value();
            let (group, plural) = (text(&definition, "/spec/group"), text(&definition, "/spec/names/plural"));
            self.registry.remove_custom(&last.name);
            self.store.drop_bucket(&(group.to_owned(), plural.to_owned()));
        }
    }
}

/// Services are written one at a time; what was allocated counts once it is stored.
struct ServiceLock<'a> {
    addresses: MutexGuard<'a, Addresses>,
    old: Option<Value>,
    new: Value,
}

impl ServiceLock<'_> {
    fn commit(mut self) {
        if let Some(old) = &self.old {
            self.addresses.release(old);
        }
        self.addresses.claim(&self.new);
    }
}

/// For everything that is no Service.
struct NoAllocator;

impl Allocator for NoAllocator {
    fn cluster_ip(&mut self, _: Option<&str>) -> Result<String, String> {
        Err("only Services have addresses".to_owned())
    }

    fn node_port(&mut self, _: Option<i64>) -> Result<i64, String> {
        Err("only Services have ports".to_owned())
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

/// The body must be about the object that the path names; the namespace may be left out.
pub(crate) fn identify(
    resource: &Resource,
    namespace: &str,
    name: &str,
    object: &mut Value,
) -> Result<(), ApiError> {
    let given = text(object, "/metadata/namespace");
    if !resource.namespaced {
        metadata_mut(object).remove("namespace");
    } else if given.is_empty() {
        metadata_mut(object).insert("namespace".into(), namespace.into());
    } else if given != namespace {
        return Err(ApiError::bad_request(OTHER_NAMESPACE));
    }
    match text(object, "/metadata/name") {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        given if given != name => Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

/// How the real server says that an object is not the one that was meant.
pub(super) fn precondition(what: &str, wanted: &str, found: &str) -> String {
    format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}")
}

/// The version and UID that a client names must be those of the object.
fn check_version(
    resource: &Resource,
    seen: &Stored,
    new: &Value,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let conflict = |why: &str| ApiError::conflict(&resource.group, &resource.plural, &seen.name, why);
    let uid = text(new, "/metadata/uid");
    if !options.patch && !uid.is_empty() && uid != seen.uid {
        let why = precondition("UID", uid, &seen.uid);
        return Err(ApiError::storage_conflict(resource, &seen.namespace, &seen.name, &why));
    }
    let version = text(new, "/metadata/resourceVersion");
    if version.is_empty() {
        return Ok(());
    }
    match crate::request::unsigned(version)? {
        0 => Ok(()),
        number if number == seen.revision => Ok(()),
        _ => Err(conflict(
            "the object has been modified; please apply your changes to the latest version and try again",
        )),
    }
}
