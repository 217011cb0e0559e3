//! Which resources are served right now: the built-in ones, and those that CustomResourceDefinitions add.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::convert;
use crate::kinds::{self, Resource};
use crate::store::BucketId;

type Path = (String, String, String);

static BUILT_IN: LazyLock<HashMap<Path, Arc<Resource>>> =
    LazyLock::new(|| kinds::builtin().iter().map(|r| (path(r), Arc::clone(r))).collect());

/// The served resources.
#[derive(Default)]
pub(crate) struct Registry {
    /// By the name of their definition.
    custom: RwLock<BTreeMap<String, Vec<Arc<Resource>>>>,
}

impl Registry {
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        if let Some(found) = BUILT_IN.get(&key) {
            return Some(Arc::clone(found));
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom
            .values()
            .flatten()
            .find(|r| r.group == group && r.version == version && r.plural == plural)
            .cloned()
    }

    /// The resource as its objects are stored.
    pub(crate) fn stored_in(&self, bucket: &BucketId) -> Option<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let all = kinds::builtin().iter().chain(custom.values().flatten());
        let mut of_bucket = all.filter(|r| bucket_of(r) == *bucket);
        let first = of_bucket.next()?;
        let exact = of_bucket.find(|r| !convert::is_needed(r));
        Some(Arc::clone(if convert::is_needed(first) { exact.unwrap_or(first) } else { first }))
    }

    /// All, as discovery shows them: the built-in ones first.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        kinds::builtin().iter().chain(custom.values().flatten()).cloned().collect()
    }

    /// What a definition adds; replaces what it added before.
    pub(crate) fn set_custom(&self, definition: &str, resources: Vec<Resource>) {
        let resources = resources.into_iter().map(Arc::new).collect();
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        custom.insert(definition.to_owned(), resources);
    }

    pub(crate) fn remove_custom(&self, definition: &str) {
        self.custom.write().unwrap_or_else(PoisonError::into_inner).remove(definition);
    }
}

/// Where the objects of a resource are kept.
pub(crate) fn bucket_of(resource: &Resource) -> BucketId {
    (convert::storage_group(resource).to_owned(), resource.plural.clone())
}

fn path(resource: &Resource) -> Path {
    (resource.group.clone(), resource.version.clone(), resource.plural.clone())
}
