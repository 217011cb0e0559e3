//! ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::at::{At, Errors};
use super::formats;
use crate::fields;
use crate::status::FieldError;

/// All values together, in bytes.
const LIMIT: usize = 1024 * 1024;

pub(super) fn config_map(object: &Value, errors: &mut Errors) {
    let (data, binary) = (At::root(object).get("data"), At::root(object).get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        if binary.value.get(key).is_some() {
            errors.push(FieldError::invalid(&value.path, key, "duplicate of key present in binaryData"));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        check_key(key, &value, errors);
        size += decoded(value.text());
    }
    if size > LIMIT {
        // The object as a whole has no path.
        errors.push(FieldError::too_long("[]", format!("may not be more than {LIMIT} bytes")));
    }
}

pub(super) fn secret(object: &Value, errors: &mut Errors) {
    let data = At::root(object).get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        size += decoded(value.text());
    }
    if size > LIMIT {
        errors.push(FieldError::too_long(&data.path, format!("may not be more than {LIMIT} bytes")));
    }
    let has = |key: &str| data.value.get(key).is_some_and(|value| !value.is_null());
    let mut require = |key: &str| {
        if !has(key) {
            errors.push(FieldError::required(data.key(key), ""));
        }
    };
    match At::root(object).get("type").text() {
        "kubernetes.io/service-account-token" => {
            let account = "kubernetes.io/service-account.name";
            if fields::text(object, &["metadata", "annotations", account]).is_empty() {
                errors.push(FieldError::required(format!("metadata.annotations[{account}]"), ""));
            }
        }
        "kubernetes.io/dockercfg" => docker(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => docker(&data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" => require("ssh-privatekey"),
        "kubernetes.io/tls" => {
            require("tls.crt");
            require("tls.key");
        }
        _ => {}
    }
}

/// Bytes behind a base64 text.
fn decoded(text: &str) -> usize {
    STANDARD.decode(text).map_or(0, |bytes| bytes.len())
}

fn check_key(key: &str, value: &At<'_>, errors: &mut Errors) {
    for why in formats::config_key(key) {
        errors.push(FieldError::invalid(&value.path, key, why));
    }
}

fn docker(data: &At<'_>, key: &str, errors: &mut Errors) {
    let Some(text) = data.value.get(key).and_then(Value::as_str) else {
        errors.push(FieldError::required(data.key(key), ""));
        return;
    };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    if serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes).is_err() {
        let why = match bytes.first() {
            None => "unexpected end of JSON input".to_owned(),
            Some(first) => {
                format!("invalid character {:?} looking for beginning of value", char::from(*first))
            }
        };
        errors.push(FieldError::invalid(data.key(key), "<secret contents redacted>", why));
    }
}

pub(super) fn update_secret(old: &Value, new: &Value, errors: &mut Errors) {
    errors.declared_immutable(&At::root(new).get("type"), &At::root(old).get("type"));
    frozen(old, new, &["data"], errors);
}

pub(super) fn update_config_map(old: &Value, new: &Value, errors: &mut Errors) {
    frozen(old, new, &["data", "binaryData"], errors);
}

/// `immutable: true` is for good.
fn frozen(old: &Value, new: &Value, content: &[&str], errors: &mut Errors) {
    const FROZEN: &str = "field is immutable when `immutable` is set";
    if !fields::is_true(old, &["immutable"]) {
        return;
    }
    let (old, new) = (At::root(old), At::root(new));
    if !fields::is_true(new.value, &["immutable"]) {
        errors.forbidden(&new.get("immutable"), FROZEN);
    }
    for field in content {
        if !fields::same(Some(old.get(field).value), Some(new.get(field).value)) {
            errors.forbidden(&new.get(field), FROZEN);
        }
    }
}
