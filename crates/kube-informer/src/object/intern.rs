//! What many objects have in common, stored once: namespaces, label sets, lists of owners.
//!
//! Asking with borrowed parts gives a shared value. Equal parts give the same value for as long as someone holds it,
//! and asking again for a value that is there allocates nothing.
//!
//! Values that nobody holds any more go at the next sweep. A sweep takes place when the number of values has doubled
//! since the last one, so there are never more than twice as many as were alive then (or a small constant), and the
//! cost per new value is constant on average.
//!
//! There is one writer (`&mut self`); the values themselves may be held and dropped anywhere.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::encoding::metadata::Owner;

mod labels;
mod owners;
mod pool;

use pool::Pool;

pub use labels::Labels;
pub use owners::OwnerRef;

/// The shared values of one cache.
#[derive(Default)]
pub(crate) struct Interners {
    namespaces: Pool<str>,
    labels: Pool<Labels>,
    owners: Pool<[OwnerRef]>,
    /// API versions and kinds of owners.
    kinds: Pool<str>,
    /// Kept from call to call: the candidate's pairs, in order.
    order: Vec<u32>,
}

/// How many different values there are; those that nobody holds any more count until they are swept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InternStats {
    /// Namespaces.
    pub(crate) namespaces: usize,
    /// Label sets.
    pub(crate) labels: usize,
    /// Lists of owners.
    pub(crate) owners: usize,
}

impl Interners {
    /// The namespace; empty for cluster-scoped objects.
    pub(crate) fn namespace(&mut self, name: &str) -> Arc<str> {
        self.namespaces.get(name, |known| known == name, || Arc::from(name))
    }

    /// The label set with these pairs, in whatever order. Where a key stands twice, the last one counts.
    pub(crate) fn labels(&mut self, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Arc<Labels> {
        let sorted = labels::Sorted::new(pairs, &mut self.order);
        self.labels.get(&sorted, |known| sorted.is(known), || Arc::new(sorted.to_labels()))
    }

    /// The list with these owners, in this order.
    pub(crate) fn owners(&mut self, owners: &[Owner<'_>]) -> Arc<[OwnerRef]> {
        let Self { owners: known, kinds, .. } = self;
        known.get(
            owners,
            |known| {
                known.len() == owners.len() && known.iter().zip(owners).all(|(known, owner)| known == owner)
            },
            || owners.iter().map(|owner| OwnerRef::of(owner, kinds)).collect(),
        )
    }

    pub(crate) fn stats(&self) -> InternStats {
        InternStats {
            namespaces: self.namespaces.len(),
            labels: self.labels.len(),
            owners: self.owners.len(),
        }
    }
}

impl fmt::Debug for Interners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interners").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
