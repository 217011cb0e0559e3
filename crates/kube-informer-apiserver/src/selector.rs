//! Which objects a list, a watch or a deletecollection is about.
//!
//! [`LabelSelector`] and [`FieldSelector`] read the query parameters and say in the real server's words
//! what is wrong with them (the caller answers 400 with the text as it is). Matching is a pure function
//! of an object's labels, or of the field values that its resource offers. Which fields a resource
//! offers is in [`fields`]: [`FieldSelector::for_resource`] refuses the others.

mod fields;
mod labels;
mod syntax;

#[cfg(test)]
mod tests;

pub(crate) use fields::{FieldSelector, field_values};
pub(crate) use labels::LabelSelector;
