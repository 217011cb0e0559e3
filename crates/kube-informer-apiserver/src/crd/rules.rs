//! What a definition's schema demands of one value, beyond its type.

use serde_json::Value;

use super::pattern::Pattern;
use crate::schema::NodeId;

/// Value validations of one node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// A format that is checked; formats that the server does not know are dropped on the way in.
    pub(crate) format: Option<String>,
    pub(crate) one_of_values: Vec<Value>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    /// `additionalProperties: false`.
    pub(crate) closed: bool,
    pub(crate) all_of: Vec<NodeId>,
    pub(crate) any_of: Vec<NodeId>,
    pub(crate) one_of: Vec<NodeId>,
    pub(crate) not: Option<NodeId>,
    /// `x-kubernetes-validations`, kept and not evaluated.
    pub(crate) expressions: Vec<Value>,
}
