//! Custom resources (being written).

/// What a CustomResourceDefinition adds to a [`crate::kinds::Resource`].
#[derive(Debug, Default)]
pub(crate) struct CustomResource {}

/// Value validations of one node.
#[derive(Debug, Clone)]
pub(crate) struct Rules {}
