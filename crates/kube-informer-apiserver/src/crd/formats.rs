//! String formats that the server checks, each as loosely as the real one.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

/// Names without dashes: `date-time` and `datetime` are the same format.
const STRING_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether a format means anything on a type; others are ignored, with a warning.
pub(super) fn is_checked(type_name: &str, format: &str) -> bool {
    match type_name {
        "" | "string" => is_known(format),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether this is a format of strings.
pub(super) fn is_known(format: &str) -> bool {
    STRING_FORMATS.contains(&format.replace('-', "").as_str())
}

/// Whether a text has a known format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
        }
        "hostname" => is_hostname(text),
        "ipv4" => ipv4(text),
        "ipv6" => text.contains(':') && ipv6(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8sshortname" => text.len() <= 63 && is_name_part(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_name_part),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb_color(text),
        "ssn" => text.len() == 11 && search(&SSN, text),
        "uri" => is_request_uri(text),
        "uuid" => is_uuid(text, None, false),
        "uuid3" => is_uuid(text, Some(b'3'), false),
        "uuid4" => is_uuid(text, Some(b'4'), true),
        "uuid5" => is_uuid(text, Some(b'5'), true),
        _ => true,
    }
}

/// A pattern of this file; one that does not compile matches nothing (tests compile each).
type Lazy = LazyLock<Option<Regex>>;

static SSN: Lazy = LazyLock::new(|| Regex::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static CARD: Lazy = LazyLock::new(|| {
    let networks = [
        "4[0-9]{12}(?:[0-9]{3})?",
        "5[1-5][0-9]{14}",
        "6(?:011|5[0-9]{2})[0-9]{12}",
        "3[47][0-9]{13}",
        "3(?:0[0-5]|[68][0-9])[0-9]{11}",
        "(?:2131|1800|35[0-9]{3})[0-9]{11}",
    ];
    Regex::new(&format!("^(?:{})$", networks.join("|"))).ok()
});
static TIME: Lazy = LazyLock::new(|| {
    Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$").ok()
});
static DURATION: Lazy = LazyLock::new(|| Regex::new(r"([0-9]+)\s*([A-Za-zµ]+)").ok());
static HOST_LABEL: Lazy =
    LazyLock::new(|| Regex::new(r"^[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?$").ok());
static HOST_NAME: Lazy = LazyLock::new(|| {
    let letter = r"[a-zA-Z0-9\p{S}\p{L}]";
    let label = format!(r"{letter}(?:[a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{letter})?\.");
    Regex::new(&format!(r"^(?:{label})+[a-zA-Z\p{{L}}]{{2,63}}$")).ok()
});

fn search(pattern: &Lazy, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, b)| if at == 4 || at == 7 { *b == b'-' } else { b.is_ascii_digit() });
    shaped && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(pattern) = TIME.as_ref() else { return false };
    let Some(found) = pattern.captures(time) else { return false };
    let at_most = |group: usize, limit: &str| found.get(group).is_some_and(|part| part.as_str() <= limit);
    is_date(date) && at_most(1, "23") && at_most(2, "59") && at_most(3, "59")
}

/// Go's `1h30m`, or Scala's `2 days`: any number with a unit somewhere in the text.
fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    const EXACT: [&str; 12] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "min"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let Some(pattern) = DURATION.as_ref() else { return false };
    let mut known = false;
    for part in pattern.captures_iter(text) {
        let (Some(number), Some(unit)) = (part.get(1), part.get(2)) else { continue };
        if number.as_str().parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.as_str().to_lowercase();
        known |= EXACT.contains(&unit.as_str()) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix));
    }
    known
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return false;
        }
        let units = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(units);
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return false;
        }
        rest = after;
    }
    true
}

/// Dotted decimal; leading zeros are tolerated.
fn ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let mapped = text.contains(':') && text.contains('.') && ipv6(text);
    mapped || (parts.len() == 4 && parts.iter().all(|part| decimal(part).is_some_and(|n| n <= 255)))
}

fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let length = decimal(length);
    if address.contains(':') {
        return ipv6(address) && length.is_some_and(|n| n <= 128);
    }
    let plain = address.parse::<Ipv4Addr>().is_ok() || ipv4(address);
    plain && length.is_some_and(|n| n <= 32)
}

fn is_mac(text: &str) -> bool {
    let hex = |part: &str, size: usize| part.len() == size && part.bytes().all(|b| b.is_ascii_hexdigit());
    for separator in [':', '-'] {
        let parts: Vec<&str> = text.split(separator).collect();
        if matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|part| hex(part, 2)) {
            return true;
        }
    }
    if matches!(text.len(), 12 | 16 | 40) && hex(text, text.len()) {
        return true;
    }
    let parts: Vec<&str> = text.split('.').collect();
    matches!(parts.len(), 3 | 4 | 10) && parts.iter().all(|part| hex(part, 4))
}

/// Dashes between the groups are optional, each for itself.
fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text.as_bytes();
    for (group, size) in [8_usize, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(size) else { return false };
        if !part.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        let first = part.first().map(u8::to_ascii_lowercase);
        if group == 2 && version.is_some() && first != version {
            return false;
        }
        if group == 3 && variant && !first.is_some_and(|b| b"89ab".contains(&b)) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_hostname(text: &str) -> bool {
    let shaped = search(&HOST_LABEL, text) || search(&HOST_NAME, text);
    shaped && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

/// An address, alone or in angle brackets after a name.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    let dotted = |part: &str| part.split('.').all(|atoms| !atoms.is_empty() && atoms.chars().all(atom));
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (dotted(local) || quoted) && (dotted(domain) || literal)
}

/// An absolute URI, or an absolute path.
fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control()) {
        return false;
    }
    let Some((scheme, rest)) = text.split_once(':').filter(|_| !text.starts_with('/')) else {
        return text.starts_with('/') && has_valid_percents(text);
    };
    let schemed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // Without a slash, what follows the scheme is nobody's business.
    schemed && (!rest.starts_with('/') || (!rest.contains(' ') && has_valid_percents(rest)))
}

fn has_valid_percents(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let Some(inner) = inner else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let number = |part: &&str| {
        let plain = *part == "0" || !part.starts_with('0');
        plain && decimal(part).is_some_and(|n| n <= 255)
    };
    parts.len() == 3 && parts.iter().all(number)
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| *c != '-' && *c != ' ').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = digits_of(text);
    let values: Option<Vec<u32>> = digits
        .chars()
        .enumerate()
        .map(|(at, c)| if at == 9 && c == 'X' { Some(10) } else { c.to_digit(10) })
        .collect();
    values.is_some_and(|values| {
        let sum: u32 = values.iter().zip(1..).map(|(digit, weight)| digit * weight).sum();
        values.len() == 10 && sum.is_multiple_of(11)
    })
}

fn is_isbn13(text: &str) -> bool {
    let values: Option<Vec<u32>> = digits_of(text).chars().map(|c| c.to_digit(10)).collect();
    values.is_some_and(|values| {
        let sum: u32 =
            values.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
        values.len() == 13 && sum.is_multiple_of(10)
    })
}

/// A number of a known network that passes Luhn's check; whatever is not a digit is ignored.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    search(&CARD, &digits) && sum.is_multiple_of(10)
}

fn is_name_part(part: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}
