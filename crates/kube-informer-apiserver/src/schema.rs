//! What an object may hold, as a small arena of nodes.
//!
//! Built-in kinds and CustomResourceDefinitions are read into the same shape, so that pruning, strict
//! field validation, strategic merge, field ownership and OpenAPI are written once. A schema never
//! changes after it is made; [`Schema`] is a cheap clone of (set, node).
//!
//! Nodes of built-in types also say how Go reads and writes the place ([`Go`]). With that,
//! [`Schema::decode`] gives the real server's decode errors and strict messages, and
//! [`Schema::normalise`] its stored form.

mod body;
mod decode;
mod duplicates;
mod encode;
mod quantity;
mod scalars;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use body::{Expected, package, read_body, strict_error, summary};
pub(crate) use decode::{Decoded, type_name};
pub(crate) use duplicates::duplicate_fields;
pub(crate) use quantity::Quantity;
pub(crate) use scalars::quote;
pub(crate) use syntax::{syntax_error, type_meta};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// Index of a node in its set.
pub(crate) type NodeId = u32;

/// Nodes that refer to each other by index: built-in types are recursive (JSONSchemaProps).
#[derive(Debug, Default)]
pub(crate) struct SchemaSet {
    pub(crate) nodes: Vec<Node>,
}

/// One node of one set.
#[derive(Clone)]
pub(crate) struct Schema {
    pub(crate) set: Arc<SchemaSet>,
    pub(crate) node: NodeId,
}

/// One place in an object.
#[derive(Debug, Default, Clone)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) properties: BTreeMap<String, NodeId>,
    /// Numbers in protobuf, through embedded structs, and the properties that they stand for.
    pub(crate) wire: Vec<(Vec<u32>, String)>,
    pub(crate) items: Option<NodeId>,
    /// `additionalProperties` with a schema: a map.
    pub(crate) additional: Option<NodeId>,
    pub(crate) list: ListType,
    /// OpenAPI format: `int32`, `date-time`, `byte`, …
    pub(crate) format: Option<String>,
    /// `x-kubernetes-patch-merge-key`.
    pub(crate) merge_key: Option<String>,
    /// `x-kubernetes-patch-strategy` holds `merge`.
    pub(crate) merge: bool,
    /// `x-kubernetes-patch-strategy` holds `retainKeys`.
    pub(crate) retain_keys: bool,
    /// Maps that change hands as a whole (`x-kubernetes-map-type: atomic`).
    pub(crate) atomic_map: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) nullable: bool,
    pub(crate) required: Vec<String>,
    pub(crate) default: Option<Value>,
    /// Value validations of a CustomResourceDefinition.
    pub(crate) rules: Option<Box<crate::crd::Rules>>,
    /// Name of the definition that this node is the root of, for OpenAPI (built-in types).
    pub(crate) definition: Option<String>,
    /// Shown by `kubectl explain`. Built-in types have none, for size.
    pub(crate) description: Option<String>,
    /// How Go reads and writes it (built-in types).
    pub(crate) go: Option<Arc<Go>>,
}

/// What a Go struct field, list element or map value does with JSON.
#[derive(Debug, Default, Clone)]
pub(crate) struct Go {
    /// As decode errors show it: `int32`, `v1.PodSpec`, `[]v1.Container`.
    pub(crate) name: String,
    pub(crate) codec: Codec,
    pub(crate) pointer: bool,
    pub(crate) omit_empty: bool,
    pub(crate) omit_zero: bool,
    /// A list that is a message of its own in protobuf.
    pub(crate) wrapped: bool,
    /// Embedded Go structs that the field sits in (`VolumeSource`): decode errors name them.
    pub(crate) via: String,
    /// The schema inside [`Codec::SchemaOrBool`] and its like.
    pub(crate) inner: Option<NodeId>,
}

/// Types that read and write their JSON themselves.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    #[default]
    Plain,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON, kept as it is.
    Raw,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
}

/// JSON type of a node.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Anything goes.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// A number or a string (ports, `maxSurge`).
    IntOrString,
    /// Written as a string, read as a string or a number (resource quantities).
    Quantity,
}

/// How a list is merged and owned.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    /// Items are identified by these keys.
    Map(Vec<String>),
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema({})", self.node)
    }
}

impl Schema {
    pub(crate) fn get(&self) -> &Node {
        &self.set.nodes[self.node as usize]
    }

    pub(crate) fn at(&self, node: NodeId) -> Self {
        Self { set: Arc::clone(&self.set), node }
    }

    /// The schema of a named field: a property, or the value of a map.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let node = self.get();
        node.properties.get(name).copied().or(node.additional).map(|id| self.at(id))
    }

    pub(crate) fn items(&self) -> Option<Self> {
        self.get().items.map(|id| self.at(id))
    }
}
