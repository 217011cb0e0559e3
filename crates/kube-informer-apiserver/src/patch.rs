//! The three kinds of patch that are not apply, as functions over JSON.
//!
//! Input is the object in the version that the client named, and the parsed patch; the object is changed
//! in place. What comes out may be no valid object: the caller decodes, defaults and validates it as it
//! does for an update. When an error is returned the object is in no useful state, so a caller patches a
//! copy. Strategic merge needs the schema of a built-in kind; custom resources refuse it before they get
//! here (415).
//!
//! The work and the memory are bounded: ten thousand operations, three mebibytes of copies, and a depth
//! that the rest of the server can walk.

mod go;
mod json;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::schema;
use crate::status::{ApiError, Details};

pub(crate) use go::go_value;
pub(crate) use json::{json_patch, unknown_op_fields};
pub(crate) use strategic::strategic_merge;

/// Why a patch was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The patch itself makes no sense (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch is well formed but does not fit the object (422). The real server keeps the reason to
    /// itself; it is here for logs.
    #[error("{0}")]
    DoesNotApply(String),
    /// Too many operations (413).
    #[error("{0}")]
    TooLarge(String),
    /// A strategic merge that the real server gives up on (500, no reason).
    #[error("{0}")]
    Failed(String),
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(why) => Self::bad_request(why),
            PatchError::DoesNotApply(_) => {
                let message = "the server rejected our request due to an error in our request";
                let mut error = Self::new(422, "Invalid", message);
                error.details = Some(Box::<Details>::default());
                error
            }
            PatchError::TooLarge(why) => {
                Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
            }
            PatchError::Failed(why) => Self::new(500, "", why),
        }
    }
}

/// Reads the body of a patch request.
pub(crate) fn parse(body: &[u8]) -> Result<Value, PatchError> {
    serde_json::from_slice(body).map_err(|_| PatchError::Malformed("invalid JSON patch".to_owned()))
}

/// RFC 7386: nulls remove, objects merge, everything else replaces.
///
/// Where a whole value is taken from the patch because there was nothing to merge it with, nulls inside
/// its objects are dropped, also inside lists, as the real server does.
pub(crate) fn merge_patch(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(match patch {
            Value::Null => "Invalid JSON Patch".to_owned(),
            other => format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                schema::type_name(other)
            ),
        }));
    };
    if let Value::Object(doc) = doc {
        merge_objects(doc, patch);
    } else {
        *doc = without_nulls(&Value::Object(patch.clone()));
    }
    Ok(())
}

fn merge_objects(doc: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        match (doc.get_mut(key), change) {
            (_, Value::Null) => {
                doc.remove(key);
            }
            (Some(Value::Object(current)), Value::Object(change)) => merge_objects(current, change),
            (Some(current @ Value::Object(_)), change) => *current = change.clone(),
            (_, change) => {
                doc.insert(key.clone(), without_nulls(change));
            }
        }
    }
}

/// A copy without the null members of objects. Null items of lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(k, v)| (k.clone(), without_nulls(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
