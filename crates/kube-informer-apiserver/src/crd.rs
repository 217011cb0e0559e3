//! Custom resources (being written).

/// What a CustomResourceDefinition adds to a [`crate::kinds::Resource`].
#[derive(Debug, Default)]
pub(crate) struct CustomResource {
    /// The version's `openAPIV3Schema` as it was written, for publishing.
    pub(crate) open_api: serde_json::Value,
}

/// Value validations of one node.
#[derive(Debug, Clone)]
pub(crate) struct Rules {}
