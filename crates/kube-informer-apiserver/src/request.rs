//! What a request is about: its path and its query, taken apart.
//!
//! Pure; knows nothing of which resources exist.

pub(crate) mod timeout;

use std::collections::BTreeMap;

use http::Uri;

use crate::schema::quote;
use crate::status::ApiError;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/healthz`, `/version`, `/openapi/…`, …
    Other(String),
    /// `/api` (legacy) or `/apis`.
    Groups {
        legacy: bool,
    },
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`.
    Version {
        group: String,
        version: String,
    },
    Resource(Target),
}

/// A resource, an object of it, or a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty: cluster scoped, or all namespaces.
    pub(crate) namespace: String,
    /// The path has a namespace, and it is empty: `/namespaces//pods`.
    pub(crate) nameless_namespace: bool,
    pub(crate) plural: String,
    /// Empty: the collection, or, with a subresource, an object without a name.
    pub(crate) name: String,
    /// Empty: the object itself.
    pub(crate) subresource: String,
    /// The deprecated `/watch/` form of the path.
    pub(crate) watch: bool,
}

impl Target {
    /// The path has no namespace at all.
    pub(crate) fn is_outside_namespaces(&self) -> bool {
        self.namespace.is_empty() && !self.nameless_namespace
    }
}

/// Takes a path apart. Of slashes in a row all but the last stand before empty segments, which may be where
/// a name is and lead nowhere elsewhere; those at the end do not count.
pub(crate) fn route(uri: &Uri) -> Result<Route, ApiError> {
    let decoded = percent_encoding::percent_decode_str(uri.path()).decode_utf8();
    let path = decoded.map_err(|_| ApiError::bad_request("the path is not valid UTF-8"))?;
    check_verb(uri, &path)?;
    let mut segments: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    let other = || Ok(Route::Other(path.to_string()));
    let (group, version) = match segments.as_slice() {
        ["apis"] if path.starts_with("/apis//") => return other(),
        ["apis", "", ..] => return other(),
        ["api"] => return Ok(Route::Groups { legacy: true }),
        ["apis"] => return Ok(Route::Groups { legacy: false }),
        ["apis", group] => return Ok(Route::Group((*group).to_owned())),
        ["api", version, ..] => (String::new(), (*version).to_owned()),
        ["apis", group, version, ..] => ((*group).to_owned(), (*version).to_owned()),
        _ => return other(),
    };
    segments.drain(..if group.is_empty() { 2 } else { 3 });
    if segments.is_empty() {
        return Ok(Route::Version { group, version });
    }
    let watch = segments.first() == Some(&"watch") && segments.len() > 1;
    if watch {
        segments.remove(0);
    }
    let (namespace, rest) = match segments.as_slice() {
        // The namespace itself and its parts, as opposed to what is in it.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", segments.as_slice()),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        all => ("", all),
    };
    let nameless_namespace = namespace.is_empty() && rest.len() < segments.len();
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", String::new()),
        [plural, name] => (*plural, *name, String::new()),
        [plural, name, sub @ ..] => (*plural, *name, sub.join("/")),
        [] => return other(),
    };
    Ok(Route::Resource(Target {
        group,
        version,
        namespace: namespace.to_owned(),
        nameless_namespace,
        plural: plural.to_owned(),
        name: name.to_owned(),
        subresource,
        watch,
    }))
}

/// These words in the place of a resource say what to do with the one that follows, so there must be one.
fn check_verb(uri: &Uri, path: &str) -> Result<(), ApiError> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["api", _, "watch" | "proxy"] | ["apis", _, _, "watch" | "proxy"] => {}
        _ => return Ok(()),
    }
    // What a browser would take for markup is sent as text.
    let asked = uri.path_and_query().map_or(path, |asked| asked.as_str());
    let asked = asked.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let why = "failed to create RequestInfo: unable to determine kind and namespace from url";
    Err(ApiError::plain(500, format!("Internal Server Error: {}: {why}, {asked}\n", quote(&asked))))
}

/// The parameters of a query; of repeated ones the first counts, as in Go, where they are no lists.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn of(uri: &Uri) -> Self {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // What is badly escaped is left out, as Go does.
        let pairs =
            uri.query().unwrap_or_default().split('&').filter(|pair| !pair.contains(';') && is_escaped(pair));
        for (key, value) in pairs.flat_map(|pair| form_urlencoded::parse(pair.as_bytes())) {
            all.entry(key.into_owned()).or_default().push(value.into_owned());
        }
        Self(all)
    }

    /// The value, or empty.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.first(key).unwrap_or_default()
    }

    /// Every value that was given, for a parameter that is a list.
    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }

    /// Whatever is given and does not say no means yes.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.first(key).is_some_and(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    /// A whole number; nonsense is an error, absence is not.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.first(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

/// Every percent sign starts an escape.
fn is_escaped(text: &str) -> bool {
    let hex = |digits: &str| digits.len() >= 2 && digits.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    text.split('%').skip(1).all(hex)
}

/// A version as Go reads it: digits and nothing else.
pub(crate) fn unsigned(text: &str) -> Result<u64, ApiError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let why = if digits { "value out of range" } else { "invalid syntax" };
    let error = || ApiError::unforeseen(format!("strconv.ParseUint: parsing {text:?}: {why}"));
    text.parse().ok().filter(|_| digits).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match route(&path.parse().unwrap()).unwrap() {
            Route::Resource(target) => target,
            other => panic!("{path} leads to {other:?}"),
        }
    }

    #[test]
    fn a_namespace_is_told_from_what_is_in_it() {
        assert_eq!(target("/api/v1/namespaces/web").name, "web");
        assert_eq!(target("/api/v1/namespaces/web/status").subresource, "status");
        let pods = target("/api/v1/namespaces/web/pods");
        assert_eq!((pods.namespace.as_str(), pods.plural.as_str(), pods.name.as_str()), ("web", "pods", ""));
        let status = target("/apis/apps/v1/namespaces/web/deployments/a/status");
        assert_eq!(
            (status.group.as_str(), status.name.as_str(), status.subresource.as_str()),
            ("apps", "a", "status")
        );
    }

    #[test]
    fn documents_and_the_old_watch_paths_are_recognised() {
        let route = |path: &'static str| route(&Uri::from_static(path)).unwrap();
        assert_eq!(route("/api"), Route::Groups { legacy: true });
        assert_eq!(route("/apis/apps/"), Route::Group("apps".into()));
        assert_eq!(route("/healthz"), Route::Other("/healthz".into()));
        assert!(target("/api/v1/watch/namespaces/web/pods").watch);
        assert_eq!(target("/api/v1/pods/watch").name, "watch");
    }

    #[test]
    fn paths_that_are_no_text_are_refused() {
        assert_eq!(route(&Uri::from_static("/api/v1/pods/%ff")).unwrap_err().code, 400);
    }

    #[test]
    fn an_empty_segment_is_a_name_or_leads_nowhere() {
        let pods = target("/api/v1/namespaces//pods");
        assert!(pods.nameless_namespace && !target("/api/v1/pods").nameless_namespace);
        assert_eq!(pods.plural, "pods");
        let status = target("/api/v1/namespaces//status");
        assert_eq!((status.plural.as_str(), status.name.as_str()), ("namespaces", ""));
        assert!(!status.nameless_namespace);
        assert_eq!(target("/api/v1//pods").plural, "");
        assert_eq!(target("/api//pods").version, "");
        assert_eq!(route(&Uri::from_static("/apis//apps")).unwrap(), Route::Other("/apis//apps".into()));
        assert_eq!(target("/api/v1/namespaces/web//").name, "web");
    }

    #[test]
    fn a_watch_of_nothing_is_an_error_of_the_server() {
        for path in ["/api/v1/watch", "/apis/apps/v1/watch/", "//api/v1/watch?a=%26&b"] {
            let error = route(&path.parse().unwrap()).unwrap_err();
            assert!(error.plain && error.code == 500 && error.message.contains("RequestInfo"), "{path}");
        }
    }
}
