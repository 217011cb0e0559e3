//! Which resource: its group, version, plural name and kind, and whether its objects are in namespaces.

use std::borrow::Cow;
use std::fmt;

use kube_client::core::Resource as KubeResource;

/// A resource as the server serves it.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::resource::Resource;
///
/// let deployments = Resource::of::<Deployment>();
/// assert_eq!(deployments.to_string(), "deployments.v1.apps");
/// assert_eq!(deployments.api_version(), "apps/v1");
/// assert_eq!(deployments.path(Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version: `v1`.
    pub version: String,
    /// The name in paths: `deployments`.
    pub plural: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// Whether objects are in namespaces, as their type says it.
pub trait Placement {
    /// Whether they are.
    const NAMESPACED: bool;
}

impl Placement for k8s_openapi::NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl Placement for k8s_openapi::ClusterResourceScope {
    const NAMESPACED: bool = false;
}

impl Resource {
    /// The resource of a type.
    #[must_use]
    pub fn of<K: KubeResource<DynamicType = (), Scope: Placement>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespaced: K::Scope::NAMESPACED,
        }
    }

    /// Group and version: `v1`, `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            Cow::Borrowed(&self.version)
        } else {
            Cow::Owned(format!("{}/{}", self.group, self.version))
        }
    }

    /// Where its group and version are served: `/api/v1`, `/apis/apps/v1`.
    #[must_use]
    pub fn root(&self) -> String {
        let prefix = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{prefix}/{}", self.api_version())
    }

    /// The path of the whole collection, or of one namespace's part of it.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.root(), self.plural),
            None => format!("{}/{}", self.root(), self.plural),
        }
    }
}

/// `pods`, `deployments.v1.apps`: as `kubectl` takes it.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            // `pods.v1.` would be exact, and nobody writes it.
            return f.write_str(&self.plural);
        }
        write!(f, "{}.{}.{}", self.plural, self.version, self.group)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Namespace, Pod};

    use super::*;

    #[test]
    fn types_know_where_their_objects_are() {
        let (pods, namespaces) = (Resource::of::<Pod>(), Resource::of::<Namespace>());
        assert!(pods.namespaced && !namespaces.namespaced);
        assert_eq!(pods.path(None), "/api/v1/pods");
        assert_eq!(namespaces.path(None), "/api/v1/namespaces");
        assert_eq!((pods.to_string(), &*pods.api_version()), ("pods".to_owned(), "v1"));
    }
}
