//! What keys and values of labels may look like.

/// A text that can be no key, or no value, of a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelSyntaxError {
    /// No label has such a key.
    #[error("{key:?} cannot be the key of a label: {why}")]
    Key {
        /// The text.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No label has such a value.
    #[error("{value:?} cannot be the value of a label: {why}")]
    Value {
        /// The text.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;

pub(super) fn check_key(key: &str) -> Result<(), LabelSyntaxError> {
    let wrong = |why| Err(LabelSyntaxError::Key { key: key.to_owned(), why });
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    match prefix {
        Some("") => return wrong("there must be a domain before the slash"),
        Some(prefix) if prefix.len() > LONGEST_PREFIX => {
            return wrong("what stands before the slash is longer than 253 bytes");
        }
        Some(prefix) if !prefix.split('.').all(is_domain_label) => {
            return wrong(
                "what stands before the slash must be a domain: parts of a-z, 0-9 and inner -, joined by dots",
            );
        }
        _ => {}
    }
    if name.contains('/') {
        return wrong("there may be one slash");
    }
    if name.is_empty() {
        return wrong("the name is empty");
    }
    if name.len() > LONGEST_NAME {
        return wrong("the name is longer than 63 bytes");
    }
    if !is_name(name) {
        return wrong("the name must be of letters, digits and inner -, _ and .");
    }
    Ok(())
}

pub(super) fn check_value(value: &str) -> Result<(), LabelSyntaxError> {
    let wrong = |why| Err(LabelSyntaxError::Value { value: value.to_owned(), why });
    if value.len() > LONGEST_NAME {
        return wrong("it is longer than 63 bytes");
    }
    if !value.is_empty() && !is_name(value) {
        return wrong("it must be empty, or of letters, digits and inner -, _ and .");
    }
    Ok(())
}

/// Letters and digits, with `-`, `_` and `.` between them.
fn is_name(text: &str) -> bool {
    let ends = |text: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        is_end(text.as_bytes().first()) && is_end(text.as_bytes().last())
    };
    ends(text) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Lower case letters and digits, with `-` between them.
fn is_domain_label(text: &str) -> bool {
    is_name(text) && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}
