//! Objects in sets and maps, told apart by namespace and name only.

use std::hash::{Hash, Hasher};

use super::Object;

/// An object, told apart by namespace and name only. It takes no copy of them.
#[derive(Debug)]
pub(crate) struct ByKey(pub(crate) Object);

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for ByKey {}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}
