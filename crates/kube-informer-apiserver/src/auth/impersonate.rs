//! Asking as somebody else: `Impersonate-User` and what goes with it.
//!
//! There is no authorization here but for this: who is in `system:masters` may be anybody, as in a new cluster, and nobody
//! else may. The words of a refusal are those of the real server, which names what was to be done as somebody else.

use std::collections::BTreeMap;

use http::{HeaderMap, Method};

use super::{AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};
use crate::request::{Query, Route};
use crate::schema::quote;
use crate::status::ApiError;

const ANONYMOUS: &str = "system:anonymous";
const EXTRA: &str = "impersonate-extra-";

/// What is to be done, for the words of a refusal.
pub(crate) struct Deed<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) route: &'a Route,
    pub(crate) query: &'a Query,
}

/// Who is meant: the one who asks, or the one that they name.
pub(crate) fn impersonated(user: User, headers: &HeaderMap, deed: &Deed<'_>) -> Result<User, ApiError> {
    let wanted = wanted(headers);
    let names_nothing = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    if wanted.name.is_empty() {
        return match names_nothing {
            true => Ok(user),
            false => Err(ApiError::bad_request(format!(
                "requested {} without impersonating a user name",
                go_syntax(&wanted)
            ))),
        };
    }
    let (account, node) =
        (account(&wanted.name), wanted.name.strip_prefix("system:node:").is_some_and(|n| !n.is_empty()));
    if !user.groups.iter().any(|group| group == MASTERS) {
        let mode = match (account.is_some(), node) {
            (true, _) if names_nothing => "serviceaccount",
            (_, true) if names_nothing => "arbitrary-node",
            (false, false) => "user-info",
            _ => return Err(may_not_be(&user.name, &wanted.name, account)),
        };
        return Err(may_not_do(&user.name, mode, deed));
    }
    let mut actual = wanted.clone();
    if let Some((namespace, _)) = account.filter(|_| wanted.groups.is_empty()) {
        actual.groups =
            vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    } else if node && names_nothing {
        actual.groups = vec!["system:nodes".to_owned()];
    }
    let is_in = |group: &str| actual.groups.iter().any(|each| each == group);
    if actual.name == ANONYMOUS {
        if !is_in(UNAUTHENTICATED) {
            actual.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !is_in(UNAUTHENTICATED) && !is_in(AUTHENTICATED) {
        actual.groups.push(AUTHENTICATED.to_owned());
    }
    Ok(actual)
}

/// What the headers say, and nothing else.
fn wanted(headers: &HeaderMap) -> User {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let decoded = percent_encoding::percent_decode_str(key).decode_utf8_lossy();
            extra.entry(decoded.into_owned()).or_default().push(text(value));
        }
    }
    User {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra,
    }
}

/// The namespace and the name of a service account.
fn account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_namespace = !namespace.is_empty() && namespace.bytes().all(fits);
    let is_name = !name.is_empty() && name.bytes().all(|byte| fits(byte) || byte == b'.');
    (is_namespace && is_name).then_some((namespace, name))
}

/// Refuses what is to be done as somebody else.
fn may_not_do(user: &str, mode: &str, deed: &Deed<'_>) -> ApiError {
    let verb = |verb: &str| format!("impersonate-on:{mode}:{verb}");
    let Route::Resource(target) = deed.route else {
        let verb = verb(&deed.method.as_str().to_ascii_lowercase());
        let why = format!("User {} cannot {verb} path {}", quote(user), quote(deed.path));
        return ApiError::forbidden("", "", "", &sanitized(&why));
    };
    // A list of what is called so is about the one that is.
    let selected = deed.query.get("fieldSelector").strip_prefix("metadata.name=").unwrap_or_default();
    let is_watch = target.watch || deed.query.flag("watch");
    let (does, name) = match (deed.method, target.name.as_str()) {
        (&Method::GET | &Method::HEAD, "") if is_watch => ("watch", selected),
        (&Method::GET | &Method::HEAD, "") => ("list", selected),
        (&Method::GET | &Method::HEAD, name) => (if target.watch { "watch" } else { "get" }, name),
        (&Method::DELETE, "") => ("deletecollection", selected),
        (&Method::DELETE, name) => ("delete", name),
        (&Method::POST, name) => ("create", name),
        (&Method::PUT, name) => ("update", name),
        (&Method::PATCH, name) => ("patch", name),
        (_, name) => ("", name),
    };
    let is_namespace = target.group.is_empty() && target.plural == "namespaces";
    let namespace = if is_namespace { name } else { &target.namespace };
    let mut resource = target.plural.clone();
    if !target.subresource.is_empty() {
        resource = format!("{resource}/{}", target.subresource.split('/').next().unwrap_or_default());
    }
    refused(user, &verb(does), &resource, namespace, (&target.group, &target.plural, name))
}

/// Refuses to be somebody.
fn may_not_be(user: &str, wanted: &str, account: Option<(&str, &str)>) -> ApiError {
    match account {
        Some((namespace, name)) => {
            refused(user, "impersonate", "serviceaccounts", namespace, ("", "serviceaccounts", name))
        }
        None => refused(user, "impersonate", "users", "", ("", "users", wanted)),
    }
}

fn refused(user: &str, verb: &str, resource: &str, namespace: &str, about: (&str, &str, &str)) -> ApiError {
    let (group, plural, name) = about;
    let place = match namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", quote(namespace)),
    };
    let (user, resource, in_group) = (quote(user), quote(resource), quote(group));
    let why = format!("User {user} cannot {verb} resource {resource} in API group {in_group} {place}");
    ApiError::forbidden(group, plural, name, &sanitized(&why))
}

/// What a browser would take for markup is sent as text.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As Go prints a user.
fn go_syntax(user: &User) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let pairs: Vec<String> =
                user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
            format!("map[string][]string{{{}}}", pairs.join(", "))
        }
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_authenticated_is_in_the_other_group() {
        let (route, query) = (Route::Groups { legacy: false }, Query::default());
        let deed = Deed { method: &Method::GET, path: "/apis", route: &route, query: &query };
        for (name, groups, expected) in [
            ("jane", &["devs"][..], &["devs", AUTHENTICATED][..]),
            ("jane", &[UNAUTHENTICATED], &[UNAUTHENTICATED]),
            ("system:node:a", &[], &["system:nodes", AUTHENTICATED]),
            (ANONYMOUS, &[], &[UNAUTHENTICATED]),
            (ANONYMOUS, &["devs"], &["devs", UNAUTHENTICATED]),
            (ANONYMOUS, &[UNAUTHENTICATED], &[UNAUTHENTICATED]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("impersonate-user", name.parse().unwrap());
            for group in groups {
                headers.append("impersonate-group", group.parse().unwrap());
            }
            let user = impersonated(User::admin(), &headers, &deed).unwrap();
            assert_eq!(
                (user.name.as_str(), user.groups),
                (name, expected.iter().map(|g| (*g).to_owned()).collect())
            );
            let error = impersonated(User::anonymous(), &headers, &deed).unwrap_err();
            assert_eq!(error.code, 403);
        }
    }
}
