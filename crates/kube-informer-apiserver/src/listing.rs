//! Which objects a list or watch is about, as of which version, which page of them.
//!
//! A list is one consistent state. Its pages are too: a `continue` token carries the version of the first
//! page, and later pages show that version as long as the window holds it, else 410 with a token that goes
//! on inconsistently, as on the real server.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::api::{Api, prefix};
use crate::kinds::Resource;
use crate::object::Stored;
use crate::registry::bucket_of;
use crate::request::{self, Query};
use crate::schema;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::{ApiError, Cause, FieldError};
use crate::store::{Ask, Listing};
use crate::watch::{Selection, Start};

/// How long a read waits for a version that is still to come.
const PATIENCE: Duration = Duration::from_secs(3);
const EXPIRED_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list \
    result. You can start a new list without the continue parameter, or use the continue token in this \
    response to retrieve the remainder of the results. Continuing with the provided token results in an \
    inconsistent list - objects that were created, modified, or deleted between the time the first chunk \
    was returned and now may show up in the list.";

/// One page of a list.
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Stored>>,
    revision: u64,
    next: Option<String>,
    remaining: Option<usize>,
}

impl Page {
    /// The metadata of the list.
    pub(crate) fn meta(&self) -> Value {
        let mut meta = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(next) = &self.next {
            meta["continue"] = next.clone().into();
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = remaining.into();
        }
        meta
    }
}

/// The selectors of a request.
pub(crate) fn selection(
    resource: &Resource,
    namespace: &str,
    name: &str,
    query: &Query,
) -> Result<Selection, ApiError> {
    let bad = |message: String| ApiError::bad_request(message);
    let labels = match query.get("labelSelector") {
        "" => None,
        text => Some(LabelSelector::parse(text).map_err(bad)?),
    };
    let fields = match query.get("fieldSelector") {
        "" => None,
        text => Some(FieldSelector::parse(text).map_err(bad)?),
    };
    let custom = resource.custom.iter().flat_map(|custom| &custom.selectable_fields);
    let custom: Vec<String> = custom.map(|field| field.name.clone()).collect();
    let fields = fields.map(|fields| fields.for_resource(resource, &custom));
    let fields = fields.transpose().map_err(bad)?;
    if !name.is_empty()
        && fields.as_ref().and_then(FieldSelector::exact_name).is_some_and(|exact| exact != name)
    {
        return Err(bad("fieldSelector metadata.name doesn't match requested name".to_owned()));
    }
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Selection { prefix: prefix(namespace), name, labels, fields })
}

fn invalid(errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", errors)) }
}

/// A version as clients give it; empty is none.
pub(crate) fn version(text: &str) -> Result<Option<u64>, ApiError> {
    match text {
        "" => Ok(None),
        text => request::unsigned(text).map(Some).map_err(|error| {
            ApiError::unforeseen(format!("resourceVersion: Invalid value: {text:?}: {}", error.message))
        }),
    }
}

/// Where a watch with this query starts.
pub(crate) async fn start(api: &Api, query: &Query) -> Result<Start, ApiError> {
    let mut errors = Vec::new();
    let matching = query.get("resourceVersionMatch");
    let forbidden = |detail: &str| FieldError::forbidden("resourceVersionMatch", detail);
    let asked_initial = query.has("sendInitialEvents");
    if asked_initial && matching != "NotOlderThan" {
        errors.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    if !matching.is_empty() {
        if !asked_initial {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported("resourceVersionMatch", matching, &["NotOlderThan"]));
        }
    }
    if !query.get("continue").is_empty() {
        errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
    }
    query.number("limit")?;
    invalid(&errors)?;
    let version = version(query.get("resourceVersion"))?;
    if query.flag("sendInitialEvents") {
        if let Some(version) = version {
            reach(api, version).await?;
        }
        return Ok(Start::InitialEvents);
    }
    Ok(match version {
        // "No initial events" without a version means from now on.
        None if asked_initial => Start::After(api.store.revision()),
        None | Some(0) => Start::CurrentState,
        Some(version) => Start::After(version),
    })
}

/// Waits a little for a version that the server has not reached.
pub(crate) async fn reach(api: &Api, version: u64) -> Result<(), ApiError> {
    let mut newest = api.store.newest();
    let reached = tokio::time::timeout(PATIENCE, newest.wait_for(|now| *now >= version)).await;
    if matches!(reached, Ok(Ok(_))) {
        return Ok(());
    }
    let current = api.store.revision();
    let message = format!("Timeout: Too large resource version: {version}, current: {current}");
    let mut error = ApiError::new(504, "Timeout", message);
    error.retry_after = Some(1);
    error.details = Some(Box::new(crate::status::Details {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge",
            field: String::new(),
            message: "Too large resource version".into(),
        }],
        ..Default::default()
    }));
    Err(error)
}

/// For whom a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Client,
    /// Reads in pages, whether the client asks for them or not: a version alone is exactly that version.
    Deletion,
}

/// One page of a list.
pub(crate) async fn page(
    api: &Api,
    resource: &Resource,
    selection: &Selection,
    query: &Query,
    reader: Reader,
) -> Result<Page, ApiError> {
    let (matching, asked, token) =
        (query.get("resourceVersionMatch"), query.get("resourceVersion"), query.get("continue"));
    query.number("timeoutSeconds")?;
    check(matching, asked, token, query)?;
    let limit = query.number("limit")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let bucket = bucket_of(resource);
    let matches = |object: &Stored| selection.matches(object);
    let part = |revision: Option<u64>, from: &str, limit: usize| {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let selects: Option<&dyn Fn(&Stored) -> bool> =
            if selection.is_whole() { None } else { Some(&matches) };
        let ask = Ask { prefix: &selection.prefix, from, revision, limit, selects };
        api.store.page(&bucket, &ask).map(|(listing, left)| page_of(listing, left, selection))
    };
    let expired = |_| ApiError::expired("The resourceVersion for the provided list is too old.");
    if !token.is_empty() {
        let (version, from) = read_token(token)?;
        if !asked.is_empty() && asked != "0" {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let start = selection.prefix.clone() + &from;
        return part(version, &start, limit).map_err(|_| expired_continue(&from));
    }
    let version = version(asked)
        .map_err(|error| ApiError::bad_request(format!("invalid resource version: {}", error.message)))?;
    match version {
        // "Any version" is answered from the cache there, which does not page.
        Some(0) => part(None, "", 0).map_err(expired),
        None => part(None, "", limit).map_err(expired),
        Some(version) => {
            reach(api, version).await?;
            let exactly =
                matching == "Exact" || (matching.is_empty() && (limit > 0 || reader == Reader::Deletion));
            part(exactly.then_some(version), "", limit).map_err(expired)
        }
    }
}

fn check(matching: &str, asked: &str, token: &str, query: &Query) -> Result<(), ApiError> {
    let forbidden = |detail: &str| FieldError::forbidden("resourceVersionMatch", detail);
    let mut errors = Vec::new();
    if !matching.is_empty() {
        if asked.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !token.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if matching != "Exact" && matching != "NotOlderThan" {
            let valid = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported("resourceVersionMatch", matching, &valid));
        }
        if matching == "Exact" && asked == "0" {
            errors.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
    }
    if query.has("sendInitialEvents") {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    invalid(&errors)
}

fn page_of(listing: Listing, left: usize, selection: &Selection) -> Page {
    let Listing { objects, revision } = listing;
    let last = objects.last().filter(|_| left > 0);
    let next = last.map(|last| {
        // The smallest key after the last one.
        let from = format!("{}\0", last.key.strip_prefix(&selection.prefix).unwrap_or(&last.key));
        write_token(Some(revision), &from)
    });
    let remaining = (left > 0 && selection.is_whole()).then_some(left);
    Page { objects, revision, next, remaining }
}

fn write_token(version: Option<u64>, from: &str) -> String {
    let version = version.map_or(-1, |v| i64::try_from(v).unwrap_or(i64::MAX));
    URL_SAFE_NO_PAD.encode(json!({ "v": "meta.k8s.io/v1", "rv": version, "start": from }).to_string())
}

/// The version (`None`: whatever is newest) and the first key of the next page.
fn read_token(token: &str) -> Result<(Option<u64>, String), ApiError> {
    let bad = |why: &str| {
        ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| bad(&illegal(&error, token)))?;
    if let Some(why) = schema::syntax_error(&bytes) {
        return Err(bad(&why));
    }
    let token: Value = serde_json::from_slice(&bytes).map_err(|error| bad(&error.to_string()))?;
    if token["v"] != "meta.k8s.io/v1" {
        let version = token["v"].as_str().unwrap_or_default();
        return Err(bad(&format!("server does not recognize this encoded version {version}")));
    }
    let from = token["start"].as_str().filter(|s| !s.is_empty());
    let from = from.ok_or_else(|| bad("encoded start key empty (version meta.k8s.io/v1)"))?;
    match token["rv"].as_i64() {
        None | Some(0) => Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
        Some(version) => Ok((u64::try_from(version).ok(), from.to_owned())),
    }
}

/// Go's words for text that is no base64.
fn illegal(error: &base64::DecodeError, token: &str) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        // One sign too many: where its group of four begins.
        _ => token.len().saturating_sub(1),
    };
    format!("illegal base64 data at input byte {at}")
}

fn expired_continue(from: &str) -> ApiError {
    let mut error = ApiError::expired(EXPIRED_CONTINUE);
    error.next_page = Some(write_token(None, from));
    error
}
