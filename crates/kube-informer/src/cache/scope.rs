//! Which objects a cache is for, and up to which version it has seen each part of them.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::object::Version;

/// Which namespaces a cache is for: all of them, as one scope with one version, or several, each a scope with a version
/// of its own.
#[derive(Debug, Clone)]
pub struct Scopes(Vec<Scope>);

#[derive(Debug, Clone)]
struct Scope {
    /// `None` is all namespaces, and what is in none.
    namespace: Option<Arc<str>>,
    /// `None` before the first list.
    version: Option<Version>,
}

/// Why it cannot be told whether a version was seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// Objects of that namespace are not here, and never will be.
    #[error("namespace {namespace:?} is not watched; watched are {}", watched.join(", "))]
    OutOfScope {
        /// The namespace that was asked for.
        namespace: String,
        /// Those that there are.
        watched: Vec<String>,
    },
    /// Versions of this resource are no numbers: only their equality is known.
    #[error("version {wanted} cannot be compared to version {seen}: at least one of them is not a number")]
    NoOrder {
        /// The version that was asked for.
        wanted: String,
        /// The version that was seen last.
        seen: String,
    },
}

impl Scopes {
    /// All namespaces, and what is in none.
    #[must_use]
    pub fn all() -> Self {
        Self(vec![Scope { namespace: None, version: None }])
    }

    /// These namespaces.
    #[must_use]
    pub fn namespaces<N: Into<Arc<str>>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        let mut namespaces: Vec<Arc<str>> = namespaces.into_iter().map(Into::into).collect();
        namespaces.sort();
        namespaces.dedup();
        Self(namespaces.into_iter().map(|name| Scope { namespace: Some(name), version: None }).collect())
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (Option<&str>, Option<&Version>)> {
        self.0.iter().map(|scope| (scope.namespace.as_deref(), scope.version.as_ref()))
    }

    /// Whether there is this very scope.
    pub(super) fn has(&self, scope: Option<&str>) -> bool {
        self.0.iter().any(|each| each.namespace.as_deref() == scope)
    }

    /// The version of the scope that a namespace belongs to; the outer `None` if it belongs to none.
    pub(super) fn version(&self, namespace: &str) -> Option<Option<&Version>> {
        self.at(namespace).and_then(|at| self.0.get(at)).map(|scope| scope.version.as_ref())
    }

    /// A list was taken: its version is the scope's, even if it is older.
    pub(super) fn reset(&mut self, scope: Option<&str>, version: Version) {
        if let Some(scope) = self.0.iter_mut().find(|each| each.namespace.as_deref() == scope) {
            scope.version = Some(version);
        }
    }

    /// Something was seen of a scope: its version grows. What is older than the scope, and what comes before the first
    /// list, changes nothing.
    pub(super) fn raise(&mut self, namespace: &str, version: &Version) {
        let Some(held) = self.at(namespace).and_then(|at| self.0.get_mut(at)) else { return };
        let Some(held) = &mut held.version else { return };
        if !version.is_empty() && version.partial_cmp(held) != Some(Ordering::Less) {
            *held = version.clone();
        }
    }

    pub(super) fn reached(&self, namespace: &str, wanted: &Version) -> Result<bool, VersionError> {
        let Some(version) = self.version(namespace) else {
            let watched = self.0.iter().filter_map(|scope| scope.namespace.as_deref().map(str::to_owned));
            let namespace = namespace.to_owned();
            return Err(VersionError::OutOfScope { namespace, watched: watched.collect() });
        };
        let Some(seen) = version else { return Ok(false) };
        match seen.partial_cmp(wanted) {
            Some(order) => Ok(order.is_ge()),
            None => Err(VersionError::NoOrder { wanted: wanted.to_string(), seen: seen.to_string() }),
        }
    }

    /// Namespaces are sorted; all of them is the only scope.
    fn at(&self, namespace: &str) -> Option<usize> {
        self.0
            .binary_search_by(|scope| match &scope.namespace {
                None => Ordering::Equal,
                Some(each) => (**each).cmp(namespace),
            })
            .ok()
    }
}
