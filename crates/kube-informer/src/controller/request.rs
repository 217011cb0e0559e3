//! What a reconciler is asked to look at.

use std::fmt;
use std::sync::Arc;

use crate::encoding::ObjectKey;
use crate::object::{KeyRef, Object};

/// Namespace and name of an object that is to be reconciled. It says nothing about what happened, or whether there is such
/// an object.
///
/// A clone is cheap.
///
/// ```
/// use kube_informer::controller::Request;
///
/// let request = Request::new("shop", "web");
/// assert_eq!((request.namespace(), request.name()), ("shop", "web"));
/// assert_eq!(request.to_string(), "shop/web");
/// assert_eq!(Request::cluster("node-1").to_string(), "node-1");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The namespace, then the name.
    text: Arc<str>,
    /// Where the name begins.
    split: usize,
}

impl Request {
    /// An object in a namespace.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { text: [namespace, name].concat().into(), split: namespace.len() }
    }

    /// An object that is in no namespace.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }

    /// The namespace; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text.get(..self.split).unwrap_or_default()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(self.split..).unwrap_or_default()
    }

    /// Both, lent.
    #[must_use]
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef { namespace: self.namespace(), name: self.name() }
    }
}

impl<K> From<&Object<K>> for Request {
    fn from(object: &Object<K>) -> Self {
        object.key().into()
    }
}

impl From<KeyRef<'_>> for Request {
    fn from(key: KeyRef<'_>) -> Self {
        Self::new(key.namespace, key.name)
    }
}

impl From<&ObjectKey> for Request {
    fn from(key: &ObjectKey) -> Self {
        Self::new(&key.namespace, &key.name)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_letters_cut_elsewhere_are_another_object() {
        assert_ne!(Request::new("ab", "c"), Request::new("a", "bc"));
        assert_eq!(Request::new("a", "bc"), Request::from(KeyRef { namespace: "a", name: "bc" }));
    }
}
