//! The object that a create is compared with.
//!
//! For built-in kinds it is not `{}`: a struct that is not behind a pointer is always there, and so are
//! fields that encoding never leaves out. A create does not own what was there before it.

use serde_json::{Value, json};

use crate::schema::Schema;

/// The zero value of the kind, as Go writes it. A custom resource has only its type.
pub(crate) fn empty_object(schema: Option<&Schema>, like: &Value) -> Value {
    let mut out = json!({});
    for name in ["apiVersion", "kind"] {
        if let Some(value) = like.get(name) {
            out[name] = value.clone();
        }
    }
    if let Some(schema) = schema {
        schema.normalise(&mut out);
    }
    out
}
