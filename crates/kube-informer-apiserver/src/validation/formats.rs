//! Names, labels, keys, ports, addresses: what a string may look like, and what the server says if not.
//!
//! A check returns its complaints; none means that the string is fine.

use std::net::IpAddr;

pub(super) type Complaints = Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn is_lower(c: u8) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|c| is_lower(*c) || *c == b'-')
        && bytes.first().is_some_and(|c| is_lower(*c))
        && bytes.last().is_some_and(|c| is_lower(*c))
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// "what it must be (e.g. 'this',  or 'that', regex used for validation is '…')"
fn expected(what: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    format!("{what} (e.g. {}, regex used for validation is '{regex}')", examples.join(",  or "))
}

pub(super) fn dns_label(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if text.len() > 63 {
        complaints.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(text) {
        complaints.push(if is_dns_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                        and must start and end with an alphanumeric character";
            expected(what, LABEL, &["my-name", "123-abc"])
        });
    }
    complaints
}

pub(super) fn dns_subdomain(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if text.len() > 253 {
        complaints.push("must be no more than 253 characters".to_owned());
    }
    if !is_dns_subdomain(text) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                    '.', and must start and end with an alphanumeric character";
        complaints.push(expected(what, SUBDOMAIN, &["example.com"]));
    }
    complaints
}

/// `*.example.com`
pub(super) fn wildcard_subdomain(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if text.len() > 253 {
        complaints.push("must be no more than 253 characters".to_owned());
    }
    if !text.strip_prefix("*.").is_some_and(is_dns_subdomain) {
        let what = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
                    must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric \
                    character";
        complaints.push(expected(what, &format!(r"\*\.{SUBDOMAIN}"), &["*.example.com"]));
    }
    complaints
}

/// A name that can stand between two slashes of a path.
pub(super) fn path_segment(text: &str) -> Complaints {
    if let "." | ".." = text {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

pub(super) fn path_segment_prefix(text: &str) -> Complaints {
    ["/", "%"].iter().filter(|c| text.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn is_key_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// A label key, a finalizer, a resource: `name`, or `example.com/name`.
pub(super) fn qualified_name(text: &str) -> Complaints {
    let what = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                alphanumeric character";
    let examples = ["MyName", "my.name", "123-abc"];
    let mut complaints = Vec::new();
    let mut parts = text.split('/');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    if third.is_some() {
        let what = expected(what, KEY, &examples);
        return vec![format!(
            "a valid label key {what} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )];
    }
    if second.is_some() {
        if first.is_empty() {
            complaints.push("prefix part must be non-empty".to_owned());
        } else {
            complaints.extend(dns_subdomain(first).iter().map(|why| format!("prefix part {why}")));
        }
    }
    let name = second.unwrap_or(first);
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        complaints.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_key_name(name) {
        complaints.push(format!("name part {}", expected(what, KEY, &examples)));
    }
    complaints
}

pub(super) fn label_value(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if text.len() > 63 {
        complaints.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_key_name(text) {
        let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                    and must start and end with an alphanumeric character";
        complaints.push(expected(what, &format!("({KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    complaints
}

/// A key of a ConfigMap or Secret.
pub(super) fn config_key(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if text.len() > 253 {
        complaints.push("must be no more than 253 characters".to_owned());
    }
    let valid = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(valid) {
        let what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        complaints.push(expected(what, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." | ".." => complaints.push(format!("must not be '{text}'")),
        text if text.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}

pub(super) fn env_name(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    if text.is_empty() {
        complaints.push("environment variable name must be non-empty".to_owned());
    }
    if text.chars().any(|c| !c.is_ascii() || c.is_ascii_control() || c == '=') {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        complaints.push(why.to_owned());
    }
    complaints
}

pub(super) fn port_number(port: i64) -> Complaints {
    if (1..=65535).contains(&port) { Vec::new() } else { in_range(1, 65535) }
}

pub(super) fn in_range(from: i64, to: i64) -> Complaints {
    vec![format!("must be between {from} and {to}, inclusive")]
}

pub(super) fn port_name(text: &str) -> Complaints {
    let mut complaints = Vec::new();
    let mut complain = |wrong: bool, why: &str| {
        if wrong {
            complaints.push(why.to_owned());
        }
    };
    complain(text.len() > 15, "must be no more than 15 characters");
    let plain = !text.is_empty() && text.bytes().all(|c| is_lower(c) || c == b'-');
    complain(!plain, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    complain(!text.bytes().any(|c| c.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    complain(text.contains("--"), "must not contain consecutive hyphens");
    complain(text.starts_with('-') || text.ends_with('-'), "must not begin or end with a hyphen");
    complaints
}

pub(super) fn percent(text: &str) -> Complaints {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) {
        return Vec::new();
    }
    let what = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![expected(what, "[0-9]+%", &["1%", "93%"])]
}

pub(super) fn ip(text: &str) -> Complaints {
    if text.parse::<IpAddr>().is_ok() {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

/// Network address and prefix length of a CIDR.
pub(super) fn parse_cidr(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?);
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

pub(super) fn cidr(text: &str) -> Complaints {
    if parse_cidr(text).is_some() {
        return Vec::new();
    }
    vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()]
}

/// An address that can be an endpoint: not one of those with a meaning of their own.
pub(super) fn endpoint_ip(text: &str) -> Complaints {
    let Ok(ip) = text.parse::<IpAddr>() else { return vec!["must be a valid IP address".to_owned()] };
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    };
    let link_local_multicast = match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    };
    let mut complaints = Vec::new();
    let mut complain = |wrong: bool, why: &str| {
        if wrong {
            complaints.push(why.to_owned());
        }
    };
    complain(ip.is_unspecified(), &format!("may not be unspecified ({text})"));
    complain(ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    complain(link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    complain(link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    complaints
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    proptest! {
        #[test]
        fn the_hand_written_checks_agree_with_the_patterns_they_name(text in "[-._a-zA-Z0-9/]{0,12}") {
            let full = |pattern: &str| Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(&text);
            prop_assert_eq!(is_dns_label(&text), full(LABEL));
            prop_assert_eq!(is_dns_subdomain(&text), full(SUBDOMAIN));
            prop_assert_eq!(is_key_name(&text), full(KEY));
            prop_assert_eq!(label_value(&text).is_empty(), full(&format!("({KEY})?")));
        }
    }
}
