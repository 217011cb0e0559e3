//! The `timeout` of a request, which must be a duration as Go writes it.
//!
//! Nothing here takes so long that it would have to be cut short; a wrong value is refused all the same, before
//! anything is done. What runs long has no timeout, so nobody looks at the parameter there.

use http::Method;

use super::{Query, Route};
use crate::status::ApiError;

/// The units of a duration, in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// The smallest duration has one more than the greatest.
const MOST: u64 = 1 << 63;

/// Refuses a timeout that is none.
pub(crate) fn check(method: &Method, route: &Route, query: &Query) -> Result<(), ApiError> {
    match query.get("timeout") {
        "" => Ok(()),
        _ if runs_long(method, route, query) => Ok(()),
        text => duration(text).map_err(|why| {
            ApiError::bad_request(format!("invalid timeout specified in the request URL - time: {why}"))
        }),
    }
}

fn runs_long(method: &Method, route: &Route, query: &Query) -> bool {
    let Route::Resource(target) = route else { return false };
    let reads = matches!(*method, Method::GET | Method::HEAD);
    target.watch
        || (reads && target.name.is_empty() && query.flag("watch"))
        || matches!(target.subresource.as_str(), "attach" | "exec" | "log" | "portforward" | "proxy")
}

/// `1h30m`, `1.5s`, `-2ms`, `0`: or why it is none, in Go's words.
fn duration(text: &str) -> Result<(), String> {
    let invalid = || format!("invalid duration {}", quote(text));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(());
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let (mut rest, mut sum) = (unsigned, 0u64);
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("missing unit in duration {}", quote(text)));
        }
        let nanoseconds = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanoseconds)| *nanoseconds);
        let nanoseconds =
            nanoseconds.ok_or_else(|| format!("unknown unit {} in duration {}", quote(unit), quote(text)))?;
        let whole = if whole.is_empty() { Some(0) } else { whole.parse::<u64>().ok() };
        let part = whole.and_then(|whole| whole.checked_mul(nanoseconds));
        sum = part.and_then(|part| sum.checked_add(part)).filter(|sum| *sum <= MOST).ok_or_else(invalid)?;
        rest = after;
    }
    if sum == MOST && !text.starts_with('-') { Err(invalid()) } else { Ok(()) }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// As Go's `time` quotes: what is not plain is shown byte by byte.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        for good in [
            "0",
            "-0",
            "1s",
            "+1s",
            "-1s",
            "1h1m",
            "1.s",
            ".5s",
            "1.5h",
            "1\u{b5}s",
            "-9223372036854775808ns",
        ] {
            assert_eq!(duration(good), Ok(()), "{good}");
        }
        for (wrong, why) in [
            ("x", r#"invalid duration "x""#),
            ("-", r#"invalid duration "-""#),
            (".s", r#"invalid duration ".s""#),
            ("1", r#"missing unit in duration "1""#),
            ("1.5h2x", r#"unknown unit "x" in duration "1.5h2x""#),
            ("1 \u{e4}", r#"unknown unit " \xc3\xa4" in duration "1 \xc3\xa4""#),
            ("9223372036854775808ns", r#"invalid duration "9223372036854775808ns""#),
            ("3000000h", r#"invalid duration "3000000h""#),
            ("99999999999999999999s", r#"invalid duration "99999999999999999999s""#),
        ] {
            assert_eq!(duration(wrong), Err(why.to_owned()));
        }
    }

    #[test]
    fn what_runs_long_has_no_timeout() {
        let checked = |method: Method, uri: &str| {
            let uri = uri.parse().unwrap();
            check(&method, &super::super::route(&uri).unwrap(), &Query::of(&uri)).is_err()
        };
        assert!(checked(Method::GET, "/api/v1/pods?timeout=x"));
        assert!(checked(Method::GET, "/healthz?timeout=x"));
        assert!(checked(Method::DELETE, "/api/v1/pods?watch=1&timeout=x"));
        assert!(checked(Method::GET, "/api/v1/namespaces/a/pods/b?watch=1&timeout=x"));
        assert!(!checked(Method::GET, "/api/v1/pods?timeout="));
        assert!(!checked(Method::GET, "/api/v1/pods?watch=1&timeout=x"));
        assert!(!checked(Method::GET, "/api/v1/watch/pods?timeout=x"));
        assert!(!checked(Method::GET, "/api/v1/namespaces/a/pods/b/log?timeout=x"));
    }
}
