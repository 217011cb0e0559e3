//! Which requests a reflector sends: lists, streaming lists, watches, and a look at the server's version.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::transport::Request;
use crate::encoding::Encoding;
use crate::object::Version;
use crate::resource::Resource;

/// What is listed and watched: a collection, and what is selected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) resource: Resource,
    /// Only what is in this namespace.
    pub(crate) namespace: Option<String>,
    pub(crate) label_selector: Option<String>,
    pub(crate) field_selector: Option<String>,
    pub(crate) form: Form,
}

/// How much of each object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Form {
    /// All of it.
    #[default]
    Full,
    /// Its metadata alone. The server sends objects of another kind then: see [`Form::kind`].
    Metadata,
}

impl Form {
    /// The API version and kind of what comes, for the codecs. Objects that are metadata alone name no other kind than
    /// this, in either encoding; of which resource they are is known from the resource that was asked for.
    pub(crate) fn kind(self, resource: &Resource) -> (Cow<'_, str>, &str) {
        match self {
            Self::Full => (resource.api_version(), &resource.kind),
            Self::Metadata => (Cow::Borrowed("meta.k8s.io/v1"), "PartialObjectMetadata"),
        }
    }

    /// What to send as `Accept` for a list.
    fn accept_list(self, encoding: Encoding) -> &'static str {
        match (self, encoding) {
            (Self::Full, encoding) => encoding.accept(),
            (Self::Metadata, Encoding::Json) => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            (Self::Metadata, Encoding::Protobuf) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }

    /// What to send as `Accept` for a watch. A server that cannot reduce objects sends all of them, in JSON, which is
    /// better than none.
    fn accept_watch(self, encoding: Encoding) -> &'static str {
        match (self, encoding) {
            (Self::Full, encoding) => encoding.accept(),
            (Self::Metadata, Encoding::Json) => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            }
            (Self::Metadata, Encoding::Protobuf) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }
}

/// How fresh a list must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Whatever the server has at hand. Only for the first list of all: later ones must not be older than what was seen.
    Any,
    /// Not older than this.
    NotOlderThan(Version),
    /// The newest that there is: read from the store itself.
    Newest,
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::NotOlderThan(version) => write!(f, "{version}"),
            Self::Newest => f.write_str("newest"),
        }
    }
}

impl Target {
    /// Everything of a resource.
    #[cfg(test)]
    pub(crate) fn all(resource: Resource) -> Self {
        Self { resource, namespace: None, label_selector: None, field_selector: None, form: Form::Full }
    }

    /// One page of a list; all of it in one where `limit` is `None`.
    pub(crate) fn list(&self, freshness: &Freshness, limit: Option<u32>, encoding: Encoding) -> Request {
        let mut query = self.selectors();
        if let Some(limit) = limit {
            query.push(("limit", limit.to_string()));
        }
        match freshness {
            Freshness::Any => query.push(("resourceVersion", "0".to_owned())),
            Freshness::NotOlderThan(version) => {
                query.push(("resourceVersion", version.to_string()));
                query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
            }
            Freshness::Newest => {}
        }
        self.request(query, self.form.accept_list(encoding))
    }

    /// The next page. It is of the same version as the first.
    pub(crate) fn next_page(&self, token: &str, limit: u32, encoding: Encoding) -> Request {
        let mut query = self.selectors();
        query.push(("limit", limit.to_string()));
        query.push(("continue", token.to_owned()));
        self.request(query, self.form.accept_list(encoding))
    }

    /// A watch that begins with everything there is.
    pub(crate) fn streaming_list(
        &self,
        freshness: &Freshness,
        timeout: Duration,
        encoding: Encoding,
    ) -> Request {
        let mut query = self.watching(timeout);
        query.push(("sendInitialEvents", "true".to_owned()));
        query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
        if let Freshness::NotOlderThan(version) = freshness {
            query.push(("resourceVersion", version.to_string()));
        }
        self.request(query, self.form.accept_watch(encoding))
    }

    /// What happens after a version.
    pub(crate) fn watch(&self, version: &Version, timeout: Duration, encoding: Encoding) -> Request {
        let mut query = self.watching(timeout);
        query.push(("resourceVersion", version.to_string()));
        self.request(query, self.form.accept_watch(encoding))
    }

    /// The smallest list that tells the server's own version.
    pub(crate) fn probe(&self) -> Request {
        let mut query = self.selectors();
        query.push(("limit", "1".to_owned()));
        // In the full form: what cannot be reduced answers, too.
        self.request(query, Encoding::Json.accept())
    }

    fn watching(&self, timeout: Duration) -> Vec<(&'static str, String)> {
        let mut query = self.selectors();
        query.push(("watch", "1".to_owned()));
        query.push(("allowWatchBookmarks", "true".to_owned()));
        query.push(("timeoutSeconds", timeout.as_secs().to_string()));
        query
    }

    fn selectors(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        for (key, value) in [("labelSelector", &self.label_selector), ("fieldSelector", &self.field_selector)]
        {
            if let Some(value) = value {
                query.push((key, value.clone()));
            }
        }
        query
    }

    fn request(&self, query: Vec<(&'static str, String)>, accept: &'static str) -> Request {
        let path = self.resource.path(self.namespace.as_deref());
        Request { path: Cow::Owned(path), query, accept }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pods() -> Target {
        Target::all(Resource::of::<Pod>())
    }

    #[test]
    fn metadata_is_asked_for_by_the_name_of_what_comes() {
        let pods = Target { form: Form::Metadata, namespace: Some("shop".into()), ..pods() };
        let timeout = Duration::from_secs(300);
        let (list, watch) = (
            pods.list(&Freshness::Any, None, Encoding::Protobuf),
            pods.watch(&"9".into(), timeout, Encoding::Protobuf),
        );
        assert!(list.uri().starts_with("/api/v1/namespaces/shop/pods?"));
        for (accept, kind) in
            [(list.accept, "PartialObjectMetadataList"), (watch.accept, "PartialObjectMetadata")]
        {
            let parameters = format!(";as={kind};g=meta.k8s.io;v=v1");
            let forms: Vec<&str> = accept.split(',').collect();
            assert_eq!(forms.len(), 3, "{accept}");
            assert_eq!(forms[0], format!("application/vnd.kubernetes.protobuf{parameters}"));
            assert_eq!(forms[1..], [format!("application/json{parameters}"), "application/json".to_owned()]);
        }
        assert_eq!(Form::Full.kind(&pods.resource), ("v1".into(), "Pod"));
    }

    #[test]
    fn lists_say_how_fresh_they_must_be() {
        let uri = |freshness, limit| pods().list(&freshness, limit, Encoding::Json).uri();
        assert_eq!(uri(Freshness::Any, None), "/api/v1/pods?resourceVersion=0");
        assert_eq!(
            uri(Freshness::NotOlderThan("7".into()), None),
            "/api/v1/pods?resourceVersion=7&resourceVersionMatch=NotOlderThan"
        );
        assert_eq!(uri(Freshness::Newest, Some(500)), "/api/v1/pods?limit=500");
        assert_eq!(pods().next_page("t=", 500, Encoding::Json).uri(), "/api/v1/pods?limit=500&continue=t%3D");
        assert_eq!(pods().probe().uri(), "/api/v1/pods?limit=1");
    }

    #[test]
    fn watches_select_what_lists_select() {
        let target = Target {
            label_selector: Some("a=b".into()),
            field_selector: Some("metadata.name=c".into()),
            ..pods()
        };
        let selectors = "/api/v1/pods?labelSelector=a%3Db&fieldSelector=metadata.name%3Dc";
        let watch = format!("{selectors}&watch=1&allowWatchBookmarks=true&timeoutSeconds=300");
        let timeout = Duration::from_secs(300);
        assert_eq!(
            target.watch(&"9".into(), timeout, Encoding::Json).uri(),
            format!("{watch}&resourceVersion=9")
        );
        let streaming = format!("{watch}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
        assert_eq!(target.streaming_list(&Freshness::Newest, timeout, Encoding::Json).uri(), streaming);
        assert_eq!(
            target.streaming_list(&Freshness::NotOlderThan("9".into()), timeout, Encoding::Json).uri(),
            format!("{streaming}&resourceVersion=9")
        );
        assert!(target.list(&Freshness::Any, None, Encoding::Json).uri().starts_with(selectors));
    }
}
