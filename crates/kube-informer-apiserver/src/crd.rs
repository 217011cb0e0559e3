//! Custom resources: CustomResourceDefinitions as pure functions over JSON.
//!
//! In: CustomResourceDefinitions (apiextensions.k8s.io/v1) and custom objects, as parsed JSON of any
//! shape. Out: [`Resource`](crate::kinds::Resource)s to serve, a definition's defaults, errors and
//! status, and what a write does to a custom object: [`decode`] (metadata read as ObjectMeta, unknown
//! fields dropped), [`apply_defaults`], [`validate()`], [`scale_get`] and [`scale_set`], [`convert`].
//! Messages and causes are those of kube-apiserver; where the real server reports in the random order
//! of a Go map, this one reports in the order of names.
//!
//! The way of a write, in the order of the real server:
//! - definition: [`default_definition`], [`prepare_definition`], [`validate_definition`] and
//!   [`warnings_of_definition`]; once stored, [`status()`] of it and of the others in its group. While
//!   [`is_served`], its [`resources`] exist, and while [`is_established`], they are in discovery.
//! - custom object: [`decode`], [`apply_defaults`], [`validate()`] (or [`validate_status`]),
//!   [`normalize_numbers`].
//!
//! Every function is total: it never panics, whatever the JSON. Recursion is as deep as the JSON is,
//! which the parser bounds. Nothing here knows of storage, time or HTTP.
//!
//! Differences from kube-apiserver, on purpose:
//! - CEL rules (`x-kubernetes-validations`) are kept and served back, but neither compiled nor
//!   evaluated.
//! - Conversion between versions only sets `apiVersion`; `strategy: Webhook` is refused.
//! - Patterns run on the `regex` crate: the language is RE2's, the words of a syntax error may differ.

mod check;
mod definition;
mod formats;
pub(crate) mod json_path;
mod lists;
mod meta;
mod names;
mod pattern;
mod prune;
mod read;
mod rules;
mod scale;
mod status;
mod structural;
mod validate;

#[cfg(test)]
mod tests;

use serde_json::Value;

use json_path::JsonPath;

pub(crate) use check::{validate_definition, warnings_of_definition};
pub(crate) use definition::{default_definition, prepare_definition};
pub(crate) use prune::{apply_defaults, decode, normalize_numbers, prune};
pub(crate) use read::{convert, printer_columns, resources};
pub(crate) use rules::Rules;
pub(crate) use scale::{scale_get, scale_set, scale_to_patch};
pub(crate) use status::{
    is_established, is_served, is_terminating, mark_deleted, mark_deleting_instances, mark_instances_deleted,
    status,
};
pub(crate) use validate::{validate, validate_status};

/// What one version of a CustomResourceDefinition adds to a [`crate::kinds::Resource`].
#[derive(Debug, Default)]
pub(crate) struct CustomResource {
    /// Whether `status` is written through its own subresource.
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// The columns after the name, in order; the age where the definition names none.
    pub(crate) columns: Vec<PrinterColumn>,
    pub(crate) selectable_fields: Vec<SelectableField>,
    /// Sent as `Warning` headers with every answer about this version.
    pub(crate) warnings: Vec<String>,
    /// The version's `openAPIV3Schema` as it was written, for publishing.
    pub(crate) open_api: Value,
}

/// Where the scale subresource finds its numbers, as dotted paths with a leading dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

/// One of `additionalPrinterColumns`.
#[derive(Debug, Clone)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) json_path: JsonPath,
}

/// What the path of each column finds in an object.
pub(crate) fn found(columns: &[PrinterColumn], object: &Value) -> Vec<Option<Value>> {
    columns.iter().map(|column| column.json_path.find(object).first().map(|v| (*v).clone())).collect()
}

/// One of `selectableFields`.
#[derive(Debug, Clone)]
pub(crate) struct SelectableField {
    /// How field selectors name it: the path without its leading dot.
    pub(crate) name: String,
    pub(crate) json_path: JsonPath,
}

/// The text at a string field, or nothing.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list field, or none.
fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether a boolean field is set and true.
fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// The strings of a list field; anything else in the list is left out.
fn strings(value: &Value, key: &str) -> Vec<String> {
    items(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A field that is there and not null: Go reads null as absent.
fn present<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|v| !v.is_null())
}
