//! Which requests a reflector sends: lists, streaming lists, watches, and a look at the server's version.

use std::borrow::Cow;
use std::time::Duration;

use super::transport::Request;
use crate::encoding::Encoding;
use crate::object::Version;

/// What is listed and watched: a collection, and what is selected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `/api/v1/pods`, `/apis/apps/v1/namespaces/shop/deployments`
    pub(crate) path: String,
    pub(crate) label_selector: Option<String>,
    pub(crate) field_selector: Option<String>,
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

impl Target {
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
        self.request(query, encoding)
    }

    /// The next page. It is of the same version as the first.
    pub(crate) fn next_page(&self, token: &str, limit: u32, encoding: Encoding) -> Request {
        let mut query = self.selectors();
        query.push(("limit", limit.to_string()));
        query.push(("continue", token.to_owned()));
        self.request(query, encoding)
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
        self.request(query, encoding)
    }

    /// What happens after a version.
    pub(crate) fn watch(&self, version: &Version, timeout: Duration, encoding: Encoding) -> Request {
        let mut query = self.watching(timeout);
        query.push(("resourceVersion", version.to_string()));
        self.request(query, encoding)
    }

    /// The smallest list that tells the server's own version.
    pub(crate) fn probe(&self) -> Request {
        let mut query = self.selectors();
        query.push(("limit", "1".to_owned()));
        self.request(query, Encoding::Json)
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

    fn request(&self, query: Vec<(&'static str, String)>, encoding: Encoding) -> Request {
        Request { path: Cow::Owned(self.path.clone()), query, encoding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Target {
        Target { path: "/api/v1/pods".to_owned(), label_selector: None, field_selector: None }
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
