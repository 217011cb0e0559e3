//! How places in an object are named.
//!
//! A place is a list of tokens: names of fields, and for elements of lists either what they are called or their number.
//! An element is called by what Kubernetes tells it apart by; what consists of digits alone is a number, and nothing is
//! ever called so. Thus a path can be followed without knowing how the lists on it were compared.

use std::collections::HashSet;

use serde_json::Value;

/// Longer ones are no names: nothing in Kubernetes is called so.
const LONGEST_KEY: usize = 253;

/// As a JSON pointer.
pub(super) fn write(tokens: &[String]) -> String {
    let mut out = String::new();
    for token in tokens {
        out.push('/');
        for character in token.chars() {
            match character {
                '~' => out.push_str("~0"),
                '/' => out.push_str("~1"),
                other => out.push(other),
            }
        }
    }
    out
}

/// The tokens of a JSON pointer. What is not one is taken as far as it goes: nothing is refused here.
pub(super) fn read(pointer: &str) -> Vec<String> {
    let tokens = pointer.split('/').skip(1);
    tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

/// Whether a token is a number of an element.
pub(super) fn index(token: &str) -> Option<usize> {
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    token.parse().ok().filter(|_| digits)
}

/// What the elements of a list are called, if each is called something, and no two the same.
pub(super) fn keys(field: &str, list: &[Value]) -> Option<Vec<String>> {
    let keys: Vec<String> = list.iter().map(|element| key(field, element)).collect::<Option<_>>()?;
    let different = keys.iter().collect::<HashSet<_>>().len() == keys.len();
    different.then_some(keys)
}

/// What an element of the list in a field is called. It depends on the element alone, so that it is called the same
/// whatever it is compared with.
pub(super) fn key(field: &str, element: &Value) -> Option<String> {
    let text = |name: &str| element.get(name).and_then(Value::as_str).map(str::to_owned);
    let key = match field {
        "conditions" => text("type"),
        "ownerReferences" => text("uid"),
        "volumeMounts" => text("mountPath"),
        "volumeDevices" => text("devicePath"),
        "ports" => text("name").filter(|name| !name.is_empty()).or_else(|| port(element)),
        _ => text("name"),
    };
    key.filter(|key| !key.is_empty() && key.len() <= LONGEST_KEY)
        .filter(|key| !key.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `8080/TCP`, of a port without a name.
fn port(element: &Value) -> Option<String> {
    let number = ["containerPort", "port"].iter().find_map(|name| element.get(name)?.as_u64())?;
    let protocol = element.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
    Some(format!("{number}/{protocol}"))
}
