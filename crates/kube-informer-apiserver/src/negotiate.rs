//! In which form the client wants its answer.
//!
//! JSON only: full objects, metadata only, or a table. A client that lists protobuf first and JSON after
//! it gets JSON; one that takes nothing that we speak gets 406.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use crate::status::ApiError;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Object,
    /// `PartialObjectMetadata`, or a list of them.
    Metadata {
        version: MetaVersion,
        list: bool,
    },
    Table(MetaVersion),
    /// Aggregated discovery (`APIGroupDiscoveryList`).
    Discovery,
}

/// The version of a form that belongs to `meta.k8s.io`. They differ in nothing but their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What an endpoint can make of its answers, besides sending them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offers {
    /// Metadata and tables.
    Objects,
    /// Metadata.
    Metadata,
    /// Aggregated discovery.
    Discovery,
    Nothing,
}

/// Whether OpenAPI v2 is to be a message, as client-go asks for it.
pub(crate) fn takes_openapi_protobuf(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|header| header.to_str().ok());
    accepted.flat_map(|header| header.split(',')).any(|media| {
        let media = media.trim();
        media.starts_with("application/com.github.proto-openapi.spec.v2") && media.contains("+protobuf")
    })
}

/// Whether the Accept header has room for JSON, in whatever form. A header that cannot be read is none.
pub(crate) fn takes_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let ranges = ranges(headers);
    if ranges.is_empty() || ranges.iter().any(Range::is_json) {
        return Ok(());
    }
    Err(ApiError::not_routable("406: Not Acceptable\n\nAvailable representations: application/json"))
}

/// The form that the client likes best of those that the endpoint offers.
pub(crate) fn answer(headers: &HeaderMap, offers: Offers) -> Result<Answer, ApiError> {
    let mut ranges = ranges(headers);
    if ranges.is_empty() {
        return Ok(Answer::Object);
    }
    // By quality, then the exact ones first, then as they were written.
    ranges.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(a.any.cmp(&b.any)));
    let best = ranges.iter().filter(|range| range.is_json()).find_map(|range| range.form(offers));
    best.ok_or_else(unknown_form)
}

/// 406: the format is spoken, the form is not.
pub(crate) fn unknown_form() -> ApiError {
    ApiError::not_acceptable("only the following media types are accepted: application/json")
}

/// One part of an Accept header.
struct Range<'a> {
    media: String,
    any: bool,
    quality: f32,
    /// The form: its kind, group and version.
    kind: &'a str,
    group: &'a str,
    version: &'a str,
}

fn ranges(headers: &HeaderMap) -> Vec<Range<'_>> {
    let readable = headers.get_all(ACCEPT).iter().filter_map(|header| header.to_str().ok());
    let parts = readable.flat_map(|header| header.split(',')).map(str::trim);
    parts.filter(|part| !part.is_empty()).map(Range::read).collect()
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let any = media == "*/*";
        let mut range = Self { media, any, quality: 1.0, kind: "", group: "", version: "" };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match (key.trim(), value.trim()) {
                ("as", kind) => range.kind = kind,
                ("g", group) => range.group = group,
                ("v", version) => range.version = version,
                ("q", quality) => range.quality = quality.parse().unwrap_or(1.0),
                _ => {}
            }
        }
        range
    }

    fn is_json(&self) -> bool {
        self.any || self.media == "application/json"
    }

    fn form(&self, offers: Offers) -> Option<Answer> {
        let version = match self.version {
            "v1" => MetaVersion::V1,
            _ => MetaVersion::V1Beta1,
        };
        match (self.kind, self.group, self.version) {
            ("", "", "") => Some(Answer::Object),
            ("Table", "meta.k8s.io", "v1" | "v1beta1") if offers == Offers::Objects => {
                Some(Answer::Table(version))
            }
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1")
                if matches!(offers, Offers::Objects | Offers::Metadata) =>
            {
                Some(Answer::Metadata { version, list: self.kind.ends_with("List") })
            }
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") if offers == Offers::Discovery => {
                Some(Answer::Discovery)
            }
            _ => None,
        }
    }
}

/// The client takes gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let headers = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|h| h.to_str().ok());
    headers.flat_map(|h| h.split(',')).any(|encoding| {
        let (name, quality) = encoding.split_once(';').unwrap_or((encoding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> Result<Answer, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().unwrap());
        takes_json(&headers)?;
        answer(&headers, Offers::Objects)
    }

    const TABLE: Answer = Answer::Table(MetaVersion::V1);

    #[test]
    fn the_first_form_that_we_speak_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(kubectl), Ok(TABLE));
        assert_eq!(accept("application/vnd.kubernetes.protobuf, application/json"), Ok(Answer::Object));
        assert_eq!(
            accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1"),
            Ok(Answer::Metadata { version: MetaVersion::V1Beta1, list: false })
        );
        assert_eq!(accept("*/*"), Ok(Answer::Object));
        assert_eq!(answer(&HeaderMap::new(), Offers::Objects), Ok(Answer::Object));
        assert_eq!(accept("application/json;as=Table,application/json"), Ok(Answer::Object));
    }

    #[test]
    fn what_is_liked_better_comes_first() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(accept(&format!("{table};q=0.1, application/json;q=0.5")), Ok(Answer::Object));
        assert_eq!(accept(&format!("*/*, {table}")), Ok(TABLE));
    }

    #[test]
    fn a_client_that_takes_only_protobuf_is_told_what_there_is() {
        let error = accept("application/vnd.kubernetes.protobuf").unwrap_err();
        assert_eq!((error.code, error.reason), (406, "NotAcceptable"));
    }

    #[test]
    fn an_endpoint_gives_only_the_forms_that_it_offers() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io".parse().unwrap());
        assert_eq!(answer(&headers, Offers::Objects), Ok(TABLE));
        for offers in [Offers::Metadata, Offers::Discovery, Offers::Nothing] {
            assert_eq!(answer(&headers, offers).unwrap_err().code, 406, "{offers:?}");
        }
    }
}
