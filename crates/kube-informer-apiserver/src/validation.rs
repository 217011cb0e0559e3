//! stub
mod at; mod formats; mod metadata; mod selector;
use serde_json::Value;
use crate::kinds::Resource; use crate::status::FieldError;
pub(crate) fn create(_: &Resource, _: &Value) -> Vec<FieldError> { vec![] }
pub(crate) fn update(_: &Resource, _: &Value, _: &Value) -> Vec<FieldError> { vec![] }
pub(crate) fn status_update(_: &Resource, _: &Value, _: &Value) -> Vec<FieldError> { vec![] }
pub(crate) fn cluster_ips(_: &Value, _: &mut Vec<FieldError>) {}
