//! What the server serves: one [`Resource`] per group, version and plural name.
//!
//! The built-in ones come from committed data; custom ones come and go with their
//! CustomResourceDefinitions.

use std::sync::Arc;

use crate::schema::Schema;

/// One served group/version/resource.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) list_kind: String,
    /// As in discovery: create, delete, deletecollection, get, list, patch, update, watch.
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    /// What its objects may hold. `None`: anything.
    pub(crate) schema: Option<Schema>,
    /// The version that objects are stored in, where it is not this one (custom resources with several
    /// versions; conversion only changes `apiVersion`).
    pub(crate) storage_version: String,
    /// Set for custom resources.
    pub(crate) custom: Option<Arc<crate::crd::CustomResource>>,
}

/// `status`, `scale`, `eviction`, …
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

impl Resource {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|s| s.name == name)
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}
