//! Who owns an object, owned.

use std::sync::Arc;

use super::pool::Pool;
use crate::encoding::metadata::Owner;

/// One owner reference.
///
/// Equal to, and hashed like, the [`Owner`] with the same content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OwnerRef {
    /// The owner's API version.
    pub api_version: Arc<str>,
    /// The owner's kind.
    pub kind: Arc<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's UID.
    pub uid: Box<str>,
    /// Whether it is the managing controller.
    pub controller: bool,
    /// Whether the owner cannot go before this object does.
    pub block_owner_deletion: bool,
}

impl OwnerRef {
    /// Owners are of a few kinds: their names are stored once.
    pub(super) fn of(owner: &Owner<'_>, kinds: &mut Pool<str>) -> Self {
        let mut shared = |text: &str| kinds.get(text, |known| known == text, || Arc::from(text));
        Self {
            api_version: shared(&owner.api_version),
            kind: shared(&owner.kind),
            name: (&*owner.name).into(),
            uid: (&*owner.uid).into(),
            controller: owner.controller,
            block_owner_deletion: owner.block_owner_deletion,
        }
    }
}

impl PartialEq<Owner<'_>> for OwnerRef {
    fn eq(&self, other: &Owner<'_>) -> bool {
        *self.uid == *other.uid
            && *self.name == *other.name
            && *self.kind == *other.kind
            && *self.api_version == *other.api_version
            && self.controller == other.controller
            && self.block_owner_deletion == other.block_owner_deletion
    }
}
