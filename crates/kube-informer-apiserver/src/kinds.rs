//! What the server serves: one [`Resource`] per group, version and plural name.
//!
//! The built-in ones come from committed data; custom ones come and go with their
//! CustomResourceDefinitions.

mod data;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::schema::Schema;

static BUILTIN: LazyLock<data::Builtin> = LazyLock::new(data::load);

/// The built-in resources, in discovery's order: the core group first.
pub(crate) fn builtin() -> &'static [Arc<Resource>] {
    &BUILTIN.resources
}

/// The schema of a built-in kind, also of those that are no resources: lists, `Scale`, `Eviction`,
/// `DeleteOptions`, `Status`.
pub(crate) fn kind(group: &str, version: &str, kind: &str) -> Option<Schema> {
    BUILTIN.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned())).cloned()
}

/// The schema of a built-in type by its OpenAPI name.
pub(crate) fn definition(name: &str) -> Option<Schema> {
    BUILTIN.definitions.get(name).cloned()
}

/// Each built-in kind by group, version and kind.
pub(crate) fn kinds() -> &'static BTreeMap<(String, String, String), Schema> {
    &BUILTIN.kinds
}

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

    /// What discovery shows so that clients see a change of the stored version. Empty for resources that
    /// are not stored.
    pub(crate) fn storage_version_hash(&self) -> String {
        if self.custom.is_none() {
            let key = (self.group.clone(), self.plural.clone());
            return BUILTIN.hashes.get(&key).cloned().unwrap_or_default();
        }
        let hash = Sha256::digest(format!("{}/{}/{}", self.group, self.storage_version, self.kind));
        STANDARD.encode(&hash[..8])
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|s| s.name == name)
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}

/// A bare resource, for tests of all modules.
#[cfg(test)]
pub(crate) fn test_resource(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        list_kind: format!("{kind}List"),
        verbs: verbs.map(str::to_owned).to_vec(),
        subresources: Vec::new(),
        schema: None,
        storage_version: version.to_owned(),
        custom: None,
    }
}
