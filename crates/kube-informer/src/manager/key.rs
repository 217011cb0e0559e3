//! What a watch is told apart by: for whom, and of what.

use std::fmt;

use crate::controller::Request;
use crate::resource::Resource;

/// Whom a watch is for: the object that is reconciled when the watched one changes.
///
/// ```
/// use kube_informer::controller::Request;
/// use kube_informer::manager::Owner;
///
/// let web = Request::new("shop", "web");
/// assert_eq!(Owner::from(&web).to_string(), "shop/web");
/// assert_eq!(Owner::from(&web).kind("ElastiService").to_string(), "ElastiService shop/web");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    kind: String,
    request: Request,
}

impl Owner {
    /// The same with a kind: owners of several kinds may have one name.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Its key in a controller's queue.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Its kind; empty where none was named.
    #[must_use]
    pub fn kind_name(&self) -> &str {
        &self.kind
    }
}

impl From<Request> for Owner {
    fn from(request: Request) -> Self {
        Self { kind: String::new(), request }
    }
}

impl From<&Request> for Owner {
    fn from(request: &Request) -> Self {
        request.clone().into()
    }
}

impl From<&Owner> for Owner {
    fn from(owner: &Owner) -> Self {
        owner.clone()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kind.is_empty() {
            write!(f, "{} ", self.kind)?;
        }
        self.request.fmt(f)
    }
}

/// What tells a watch from all others: whom it is for, and what is watched.
///
/// Written as text, it is stable, and no two keys are written alike: the parts stand between slashes, in an order that does
/// not change, and a slash or a percent sign within a part is written as in a URL.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::controller::Request;
/// use kube_informer::manager::{Owner, RequestWatch};
/// use kube_informer::resource::Resource;
///
/// let owner = Owner::from(Request::new("shop", "web")).kind("ElastiService");
/// let watch = RequestWatch::new(owner, Resource::of::<Deployment>(), "shop", "web-v2");
/// assert_eq!(watch.key().to_string(), "ElastiService/shop/web/apps/v1/deployments/shop/web-v2");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyParams {
    /// The kind of the owner; empty where none was named.
    pub owner_kind: String,
    /// The namespace of the owner; empty for cluster-scoped ones.
    pub owner_namespace: String,
    /// The name of the owner.
    pub crd_name: String,
    /// The API group of what is watched; empty for the core group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its plural name: `deployments`.
    pub resource_type: String,
    /// The namespace of the watched object; empty for cluster-scoped ones.
    pub namespace: String,
    /// Its name.
    pub resource_name: String,
}

impl KeyParams {
    pub(super) fn new(owner: &Owner, resource: &Resource, namespace: &str, name: &str) -> Self {
        Self {
            owner_kind: owner.kind.clone(),
            owner_namespace: owner.request.namespace().to_owned(),
            crd_name: owner.request.name().to_owned(),
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource_type: resource.plural.clone(),
            namespace: namespace.to_owned(),
            resource_name: name.to_owned(),
        }
    }

    /// Whom it is for.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::from(Request::new(&self.owner_namespace, &self.crd_name)).kind(&*self.owner_kind)
    }

    fn parts(&self) -> [&str; 8] {
        [
            &self.owner_kind,
            &self.owner_namespace,
            &self.crd_name,
            &self.group,
            &self.version,
            &self.resource_type,
            &self.namespace,
            &self.resource_name,
        ]
    }
}

impl fmt::Display for KeyParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts().into_iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            for piece in part.split_inclusive(['/', '%']) {
                match (piece.strip_suffix('/'), piece.strip_suffix('%')) {
                    (Some(before), _) => write!(f, "{before}%2F")?,
                    (_, Some(before)) => write!(f, "{before}%25")?,
                    (None, None) => f.write_str(piece)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(parts: &[String; 8]) -> KeyParams {
        let [owner_kind, owner_namespace, crd_name, group, version, resource_type, namespace, resource_name] =
            parts.clone();
        KeyParams {
            owner_kind,
            owner_namespace,
            crd_name,
            group,
            version,
            resource_type,
            namespace,
            resource_name,
        }
    }

    /// What a text was written from.
    fn read(text: &str) -> Vec<String> {
        text.split('/').map(|part| part.replace("%2F", "/").replace("%25", "%")).collect()
    }

    proptest! {
        // Few letters, so that parts run into each other often.
        #[test]
        fn no_two_keys_are_written_alike(parts in proptest::array::uniform8("[ab/%2F5é]{0,4}")) {
            let text = key(&parts).to_string();
            prop_assert_eq!(read(&text), parts.to_vec(), "{}", text);
        }

        #[test]
        fn a_key_is_always_written_in_the_same_way(parts in proptest::array::uniform8("[a-z.]{0,5}")) {
            prop_assert_eq!(key(&parts).to_string(), parts.join("/"));
        }
    }

    #[test]
    fn the_same_letters_elsewhere_are_another_key() {
        let of = |namespace: &str, name: &str| {
            let owner = Owner::from(Request::new(namespace, name));
            let resource = Resource::of::<k8s_openapi::api::core::v1::Pod>();
            KeyParams::new(&owner, &resource, "n", "x")
        };
        assert_ne!(of("ab", "c").to_string(), of("a", "bc").to_string());
        assert_eq!(of("a", "b").owner(), Owner::from(Request::new("a", "b")));
    }
}
