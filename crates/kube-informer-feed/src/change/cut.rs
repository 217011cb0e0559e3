//! What is shown of values: not more than people read, and nothing of secrets.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use serde_json::Value;

/// Texts up to this length, in bytes, are shown as they are.
const LONGEST_TEXT: usize = 256;

/// What is shown of longer ones.
const SHOWN: usize = 200;

/// Values whose JSON is longer are not shown.
const LARGEST_VALUE: usize = 4096;

/// The annotation in which kubectl keeps the whole object, with all that is secret in it.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A value as it is shown: long texts end in how long they were and in a hash, so that two that begin alike can be told
/// apart; values that are large altogether are only named. What was cut is not cut again.
pub(super) fn cut(value: Value) -> Value {
    let value = cut_texts(value);
    match &value {
        Value::Object(_) | Value::Array(_) => {}
        _ => return value,
    }
    let text = value.to_string();
    if text.len() <= LARGEST_VALUE {
        return value;
    }
    let shape = if value.is_object() { "{…}" } else { "[…]" };
    Value::String(format!("{shape} ({} bytes, #{:08x})", text.len(), fingerprint(&text)))
}

fn cut_texts(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => {
            let hash = fingerprint(&text);
            Value::String(format!("{}… ({} bytes, #{hash:08x})", head(&text, SHOWN), text.len()))
        }
        Value::Array(list) => Value::Array(list.into_iter().map(cut_texts).collect()),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, cut_texts(value))).collect(),
        other => other,
    }
}

/// The first bytes of a text, whole characters only.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Tells texts apart; the same in every process. It protects nothing.
fn fingerprint(text: &str) -> u32 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    (hash >> 32) as u32 ^ hash as u32
}

/// Puts hashes in the place of everything that a secret hides. They are made with a key that this process alone knows: that
/// a value is another can be seen, and what it is cannot be found out by trying.
pub(super) fn hide_secrets(secret: &mut Value) {
    for field in ["data", "stringData"] {
        match secret.get_mut(field) {
            Some(Value::Object(map)) => map.values_mut().for_each(hide),
            Some(other) => hide(other),
            None => {}
        }
    }
    let annotations = secret.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(applied) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
        hide(applied);
    }
}

fn hide(value: &mut Value) {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    if value.is_null() {
        return;
    }
    let hash = KEY.get_or_init(RandomState::new).hash_one(value.to_string());
    let mut hidden = String::from("hidden:");
    // Writing to a string does not fail.
    let _ = write!(hidden, "{:012x}", hash >> 16);
    *value = Value::String(hidden);
}
