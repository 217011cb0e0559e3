//! A request's body: one object of a known kind, read the way the real server reads it.

use serde_json::Value;

use super::{Decoded, Schema, type_meta};
use crate::kinds;
use crate::status::ApiError;

/// How much of a body that cannot be read is shown.
const SHOWN: usize = 30;

/// The kind that a path expects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

/// Reads the body of a create or an update of a built-in kind: syntax, `apiVersion` and `kind`, fields.
///
/// `kind` and `apiVersion` may be left out. What strict decoding has to say is in [`Decoded`]; whether
/// it is an error ([`strict_error`]) or a warning is the request's choice.
pub(crate) fn read_body(
    schema: &Schema,
    expected: Expected<'_>,
    bytes: &[u8],
) -> Result<(Value, Decoded), ApiError> {
    let unrecognized = |why: &str| {
        let summary = summary(bytes);
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({summary})",
            expected.kind
        ))
    };
    if let Some(why) = too_deep(bytes) {
        return Err(unrecognized(&format!("couldn't get version/kind; json parse error: {why}")));
    }
    let meta = type_meta(bytes).map_err(|why| unrecognized(&why))?;
    let (mut group, mut version) = match meta.api_version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Err(unrecognized(&format!("unexpected GroupVersion string: {}", meta.api_version)));
        }
        Some((group, version)) => (group, version),
        None => ("", meta.api_version.as_str()),
    };
    let kind = if meta.kind.is_empty() { expected.kind } else { meta.kind.as_str() };
    if version.is_empty() && (group.is_empty() || group == expected.group) {
        (group, version) = (expected.group, expected.version);
    }
    if (group, version, kind) != (expected.group, expected.version, expected.kind) {
        return Err(cannot_handle(kind, version, expected.kind, &mismatch(group, version, kind, expected)));
    }
    let (mut value, decoded) =
        schema.decode_slice(bytes).map_err(|why| cannot_handle(kind, version, expected.kind, &why))?;
    if !value.is_object() {
        value = Value::Object(serde_json::Map::new());
    }
    value["apiVersion"] = join(group, version).into();
    value["kind"] = kind.into();
    Ok((value, decoded))
}

/// The refusal of `fieldValidation=Strict`, where decoding found something.
pub(crate) fn strict_error(decoded: &Decoded, expected: Expected<'_>) -> Option<ApiError> {
    let why = decoded.strict_error()?;
    Some(cannot_handle(expected.kind, expected.version, expected.kind, &why))
}

fn cannot_handle(kind: &str, version: &str, expected: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {expected}: {why}"))
}

/// Why an object of another kind is refused.
fn mismatch(group: &str, version: &str, kind: &str, expected: Expected<'_>) -> String {
    if (group, version, kind) == ("", "v1", "List") {
        return format!(
            "converting (v1.List) to ({}.{}): unknown conversion",
            package(expected.group),
            expected.kind
        );
    }
    let known = kinds::kind(group, version, kind).filter(|_| scheme(group) == scheme(expected.group));
    let Some(schema) = known else {
        return format!(
            "no kind {kind:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            join(group, version)
        );
    };
    let from = schema.get().go.as_ref().map_or("", |go| go.name.as_str());
    format!("converting ({from}) to ({}.{}): unknown conversion", package(expected.group), expected.kind)
}

/// The server's internal packages are named after the group's first word.
pub(crate) fn package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or_default(),
    }
}

/// Go's decoder does not go deeper than this.
fn too_deep(bytes: &[u8]) -> Option<String> {
    const MOST: usize = 10_000;
    let (mut depth, mut text, mut escaped) = (0_usize, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'{' | b'[' if !text => {
                depth += 1;
                if depth > MOST {
                    return Some(format!("invalid character '{}' exceeded max depth", char::from(byte)));
                }
            }
            b'}' | b']' if !text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The real server is three servers in one, and each knows only its own kinds.
fn scheme(group: &str) -> u8 {
    match group {
        "apiextensions.k8s.io" => 1,
        "apiregistration.k8s.io" => 2,
        _ => 0,
    }
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

pub(crate) fn summary(bytes: &[u8]) -> String {
    let (shown, more) = match bytes.get(..SHOWN) {
        Some(start) if bytes.len() > SHOWN => (start, " ..."),
        _ => (bytes, ""),
    };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let hex: String = shown.iter().map(|b| format!("{b:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}
