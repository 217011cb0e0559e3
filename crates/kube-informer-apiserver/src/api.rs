//! The verbs, without HTTP.
//!
//! What a request means once it is parsed: reads take a consistent view of the store; writes go through
//! [`crate::admission`] and are committed only if the object has not changed meanwhile, else they start
//! again (or conflict, where the client named a version). Nothing here waits; a refused request has
//! changed nothing.

mod addresses;
mod delete;
mod eviction;
mod identity;
mod subresource;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch as channel;

use self::addresses::Addresses;
pub(crate) use self::delete::{DeleteOptions, Deleted};
use self::identity::Identity;
pub(crate) use self::identity::seconds;
pub(crate) use self::subresource::Part;
pub(crate) use self::write::{WriteOptions, identify};
use crate::kinds::Resource;
use crate::object::{self, Stored};
use crate::registry::{Registry, bucket_of};
use crate::status::ApiError;
use crate::store::{Listing, Store};
use crate::watch::{Watch, WatchRequest};

/// The server's state and what can be done with it.
pub(crate) struct Api {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    identity: Identity,
    /// Held while a Service is written.
    addresses: Mutex<Addresses>,
    /// Turns true when the server stops; ends all watches.
    stopping: channel::Sender<bool>,
}

impl Api {
    /// An empty server whose random names and UIDs follow from `seed`.
    pub(crate) fn new(window: usize, seed: u64) -> Self {
        let (stopping, _) = channel::channel(false);
        Self {
            store: Arc::new(Store::new(window)),
            registry: Registry::default(),
            identity: Identity::new(seed),
            addresses: Mutex::default(),
            stopping,
        }
    }

    /// Ends all watches, now and later.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> channel::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// A built-in resource, by group and plural name.
    pub(crate) fn resource(&self, group: &str, plural: &str) -> Result<Arc<Resource>, ApiError> {
        let bucket = (group.to_owned(), plural.to_owned());
        self.registry.stored_in(&bucket).ok_or_else(ApiError::unknown_path)
    }

    pub(crate) fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Stored>, ApiError> {
        let found = self.store.get(&bucket_of(resource), &object::key(namespace, name));
        found.ok_or_else(|| ApiError::not_found(&resource.group, &resource.plural, name))
    }

    /// All objects of a resource, in one namespace or (empty) everywhere.
    pub(crate) fn list(&self, resource: &Resource, namespace: &str) -> Listing {
        self.store.list(&bucket_of(resource), &prefix(namespace))
    }

    pub(crate) fn watch(&self, request: WatchRequest) -> Watch {
        Watch::start(&self.store, request, self.stopping())
    }

    fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A namespace must exist, and to create in it it must not be on its way out.
    fn check_namespace(&self, resource: &Resource, namespace: &str, name: &str) -> Result<(), ApiError> {
        // Validation asks for a namespace where there is none.
        if !resource.namespaced || namespace.is_empty() {
            return Ok(());
        }
        let namespaces = (String::new(), "namespaces".to_owned());
        let Some(found) = self.store.get(&namespaces, namespace) else {
            return Err(ApiError::not_found("", "namespaces", namespace));
        };
        if found.deleting {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut error = ApiError::forbidden(&resource.group, &resource.plural, name, &why);
            if let Some(details) = &mut error.details {
                details.causes.push(crate::status::Cause {
                    reason: "NamespaceTerminating",
                    field: "metadata.namespace".into(),
                    message: format!("namespace {namespace} is being terminated"),
                });
            }
            return Err(error);
        }
        Ok(())
    }
}

/// The keys of a namespace start with this.
pub(crate) fn prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("{namespace}/") }
}

/// The string at a pointer, or empty.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
