//! Which old value a new one continues, so that errors of unchanged parts can be forgiven.

use serde_json::Value;

use crate::schema::{ListType, Node, NodeId, SchemaSet};

/// A value of the new object and the value of the old object in the same place.
pub(super) struct Correlation<'v> {
    pub(super) set: &'v SchemaSet,
    pub(super) node: NodeId,
    pub(super) new: &'v Value,
    pub(super) old: &'v Value,
}

impl<'v> Correlation<'v> {
    fn node(&self) -> &'v Node {
        &self.set.nodes[self.node as usize]
    }

    fn at(&self, node: NodeId, new: &'v Value, old: &'v Value) -> Self {
        Self { set: self.set, node, new, old }
    }

    /// The same field in both; fields that the schema does not know have no past.
    pub(super) fn key(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        let node = self.node().properties.get(name).copied().or(self.node().additional)?;
        Some(self.at(node, new, old))
    }

    /// The old item with the same keys; only lists that are maps know which one that is.
    pub(super) fn index(&self, index: usize) -> Option<Self> {
        let ListType::Map(keys) = &self.node().list else { return None };
        let new = self.new.as_array()?.get(index)?;
        let old =
            self.old.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == new.get(key)))?;
        Some(self.at(self.node().items?, new, old))
    }

    pub(super) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.key(name).is_some_and(|child| child.is_unchanged()))
            }
            (Value::Array(new), Value::Array(old)) if matches!(self.node().list, ListType::Map(_)) => {
                new.len() == old.len()
                    && (0..new.len()).all(|at| self.index(at).is_some_and(|child| child.is_unchanged()))
            }
            (new, old) => new == old,
        }
    }
}
