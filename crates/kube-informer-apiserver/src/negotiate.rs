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
    Metadata,
    Table,
    /// Aggregated discovery (`APIGroupDiscoveryList`).
    Discovery,
}

/// Whether OpenAPI v2 is to be a message, as client-go asks for it.
pub(crate) fn takes_openapi_protobuf(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|header| header.to_str().ok());
    accepted.flat_map(|header| header.split(',')).any(|media| {
        let media = media.trim();
        media.starts_with("application/com.github.proto-openapi.spec.v2") && media.contains("+protobuf")
    })
}

/// Picks the first form in the Accept header that can be served.
pub(crate) fn answer(headers: &HeaderMap) -> Result<Answer, ApiError> {
    let mut any = false;
    for header in headers.get_all(ACCEPT) {
        let Ok(header) = header.to_str() else { continue };
        for range in header.split(',').map(str::trim).filter(|r| !r.is_empty()) {
            any = true;
            if let Some(answer) = media_range(range) {
                return Ok(answer);
            }
        }
    }
    if any {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json";
        return Err(ApiError::not_acceptable(message));
    }
    Ok(Answer::Object)
}

fn media_range(range: &str) -> Option<Answer> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    if !matches!(media.as_str(), "application/json" | "*/*") {
        return None;
    }
    let mut form = Answer::Object;
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match (key.trim(), value.trim()) {
            ("as", "Table") => form = Answer::Table,
            ("as", "PartialObjectMetadata" | "PartialObjectMetadataList") => form = Answer::Metadata,
            ("as", "APIGroupDiscoveryList") => form = Answer::Discovery,
            ("as", _) => return None,
            // Other versions of these forms are not spoken.
            ("v", version) if !matches!(version, "v1" | "v2") => return None,
            ("q", "0" | "0.0") => return None,
            _ => {}
        }
    }
    Some(form)
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
        answer(&headers)
    }

    #[test]
    fn the_first_form_that_we_speak_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(kubectl), Ok(Answer::Table));
        assert_eq!(accept("application/vnd.kubernetes.protobuf, application/json"), Ok(Answer::Object));
        assert_eq!(
            accept("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            Ok(Answer::Metadata)
        );
        assert_eq!(accept("*/*"), Ok(Answer::Object));
        assert_eq!(answer(&HeaderMap::new()), Ok(Answer::Object));
    }

    #[test]
    fn a_client_that_takes_only_protobuf_is_told_what_there_is() {
        let error = accept("application/vnd.kubernetes.protobuf").unwrap_err();
        assert_eq!((error.code, error.reason), (406, "NotAcceptable"));
    }
}
