//! Shapes of names, with the words in which they are refused.

const DNS_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Complaints about a DNS-1035 label; none if it is one.
pub(super) fn dns_label(name: &str) -> Vec<String> {
    let mut out = too_long(name, 63, "characters");
    let shaped = name.starts_with(|c: char| c.is_ascii_lowercase()) && is_dns_part(name);
    if !shaped {
        out.push(DNS_LABEL.to_owned());
    }
    out
}

/// Complaints about a DNS-1123 subdomain; none if it is one.
pub(super) fn dns_subdomain(name: &str) -> Vec<String> {
    subdomain(name, "characters")
}

/// Older and newer checks of the real server count the same thing and call it differently.
fn subdomain(name: &str, unit: &str) -> Vec<String> {
    let mut out = too_long(name, 253, unit);
    if !name.split('.').all(is_dns_part) {
        out.push(DNS_SUBDOMAIN.to_owned());
    }
    out
}

/// Complaints about the key of a label or an annotation.
pub(super) fn qualified_name(key: &str) -> Vec<String> {
    let mut out = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                out.extend(subdomain(prefix, "bytes").into_iter().map(|e| format!("prefix part {e}")));
            }
            name
        }
        Some(_) => {
            return vec![format!(
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        out.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        out.push(QUALIFIED.to_owned());
    }
    out
}

/// Complaints about the value of a label.
pub(super) fn label_value(value: &str) -> Vec<String> {
    let mut out = too_long(value, 63, "bytes");
    if !value.is_empty() && !is_word(value) {
        out.push(LABEL_VALUE.to_owned());
    }
    out
}

/// Complaints about a name that has to fit into a path.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn too_long(name: &str, limit: usize, unit: &str) -> Vec<String> {
    if name.len() > limit { vec![format!("must be no more than {limit} {unit}")] } else { Vec::new() }
}

/// Lower case letters and digits, dashes only inside.
fn is_dns_part(part: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

fn is_word(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|b| inner(*b))
}
