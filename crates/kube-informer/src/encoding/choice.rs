//! Which encoding may be asked for, and which one came.
//!
//! Protobuf carries no names: what a newer server adds could not be told from nothing. So it is asked for only where the
//! kind is in the schema table and the server is not newer than the table, and what comes decides: the response's
//! content type. A field that the table does not know all the same is reported
//! ([`DecodeError::wants_json`](super::DecodeError::wants_json)), and that resource is to be asked for in JSON from then
//! on.

use super::{Encoding, schema};

/// The version of a server, as `/version` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion {
    /// `1`
    pub major: u32,
    /// `37`
    pub minor: u32,
}

impl ServerVersion {
    /// The release whose built-in kinds can be read in protobuf.
    pub const SCHEMA: Self = Self { major: 1, minor: schema::MINOR };

    /// Reads the fields `major` and `minor` of `/version`. Some distributions write `37+`.
    ///
    /// ```
    /// use kube_informer::encoding::ServerVersion;
    ///
    /// assert_eq!(ServerVersion::parse("1", "37+"), Some(ServerVersion { major: 1, minor: 37 }));
    /// assert_eq!(ServerVersion::parse("1", ""), None);
    /// ```
    #[must_use]
    pub fn parse(major: &str, minor: &str) -> Option<Self> {
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.get(..end)?.parse().ok()
        };
        Some(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl Encoding {
    /// The encoding to ask for: protobuf where nothing can be lost by it. A server whose version is not known may be
    /// newer than the table.
    ///
    /// ```
    /// use kube_informer::encoding::{Encoding, ServerVersion};
    ///
    /// let server = ServerVersion::parse("1", "35");
    /// assert_eq!(Encoding::for_kind("apps/v1", "Deployment", server), Encoding::Protobuf);
    /// assert_eq!(Encoding::for_kind("example.com/v1", "Widget", server), Encoding::Json);
    /// assert_eq!(Encoding::for_kind("apps/v1", "Deployment", None), Encoding::Json);
    /// ```
    #[must_use]
    pub fn for_kind(api_version: &str, kind: &str, server: Option<ServerVersion>) -> Self {
        let known = schema::root(api_version, kind).is_some_and(schema::is_object);
        let not_newer = server.is_some_and(|server| server.major == 1 && server.minor <= schema::MINOR);
        if known && not_newer { Self::Protobuf } else { Self::Json }
    }

    /// Its name: `json`, `protobuf`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Protobuf => "protobuf",
        }
    }

    /// What to send as `Accept`. The server may always answer in JSON.
    #[must_use]
    pub fn accept(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf,application/json",
        }
    }

    /// The encoding that a response's `Content-Type` names; `None` where it is neither, as of a web page.
    ///
    /// ```
    /// use kube_informer::encoding::Encoding;
    ///
    /// let protobuf = Encoding::of_content_type("application/vnd.kubernetes.protobuf;stream=watch");
    /// assert_eq!(protobuf, Some(Encoding::Protobuf));
    /// assert_eq!(Encoding::of_content_type("text/html; charset=utf-8"), None);
    /// ```
    #[must_use]
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else if media_type.eq_ignore_ascii_case("application/vnd.kubernetes.protobuf") {
            Some(Self::Protobuf)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_is_asked_for_only_where_nothing_can_be_lost() {
        let at = |minor| Some(ServerVersion { major: 1, minor });
        let pod = |server| Encoding::for_kind("v1", "Pod", server);
        assert_eq!(pod(at(schema::MINOR)), Encoding::Protobuf);
        assert_eq!(pod(at(schema::MINOR - 5)), Encoding::Protobuf);
        assert_eq!(pod(at(schema::MINOR + 1)), Encoding::Json);
        assert_eq!(pod(Some(ServerVersion { major: 2, minor: 0 })), Encoding::Json);
        assert_eq!(pod(None), Encoding::Json);
        // Not an object that could be watched, though it is in the table.
        assert_eq!(Encoding::for_kind("v1", "Status", at(schema::MINOR)), Encoding::Json);
        assert_eq!(Encoding::for_kind("v1", "PodList", at(schema::MINOR)), Encoding::Json);
        assert_eq!(Encoding::for_kind("meta.k8s.io/v1", "Table", at(schema::MINOR)), Encoding::Json);
    }

    #[test]
    fn versions_are_read_as_distributions_write_them() {
        let version = |minor| ServerVersion::parse("1", minor).map(|version| version.minor);
        assert_eq!(version("37"), Some(37));
        assert_eq!(version("37+"), Some(37));
        assert_eq!(version("37-gke.1"), Some(37));
        assert_eq!(version("x"), None);
        assert_eq!(ServerVersion::parse("", "37"), None);
    }
}
