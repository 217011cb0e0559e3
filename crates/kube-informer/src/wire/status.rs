//! What the server says where it cannot give what was asked for.
//!
//! A status is read as far as it can be: whatever is missing, malformed or cut off is left empty. That something
//! went wrong is known by then, and half a reason is better than none.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::json::Members;
use super::protobuf::{MAGIC, TypeMeta, readable, text};
use super::text::beginning;
use crate::encoding::Encoding;
use crate::encoding::protobuf::reader::Value as Wire;

/// A `Status` of the API server. Absent strings are empty, absent numbers 0.
///
/// ```
/// use kube_informer::encoding::Encoding;
/// use kube_informer::wire::Status;
///
/// let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
///     "message":"too old resource version: 1 (5)","reason":"Expired","code":410}"#;
/// let status = Status::read(Encoding::Json, body.as_bytes());
/// assert!(status.is_expired());
/// assert_eq!(status.to_string(), "410 Expired: too old resource version: 1 (5)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// `Failure` or `Success`.
    pub status: String,
    /// One word for machines: `Expired`, `NotFound`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The HTTP status code.
    pub code: u16,
    /// More, depending on the reason.
    pub details: StatusDetails,
}

/// What a [`Status`] says beyond its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusDetails {
    /// The name of the resource that it is about.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its UID.
    pub uid: String,
    /// Single causes.
    pub causes: Vec<StatusCause>,
    /// After how many seconds to try again.
    pub retry_after_seconds: u32,
}

/// One cause of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusCause {
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The field that caused it.
    pub field: String,
}

impl Status {
    /// Reads a status, such as the body of a response that is no success: protobuf in its envelope, or JSON.
    ///
    /// Where nothing can be read, the message is how the bytes begin, if they are text.
    #[must_use]
    pub fn read(encoding: Encoding, bytes: &[u8]) -> Self {
        let status = match encoding {
            Encoding::Json => Self::from_json(bytes),
            Encoding::Protobuf => bytes.strip_prefix(MAGIC).map(Self::from_envelope).unwrap_or_default(),
        };
        if status != Self::default() || std::str::from_utf8(bytes).is_err() {
            return status;
        }
        Self { message: beginning(bytes), ..status }
    }

    /// Whether the version that was asked for is too old: list anew.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }

    /// Whether the version that was asked for is newer than what this server has.
    #[must_use]
    pub fn is_too_large_resource_version(&self) -> bool {
        const WORDS: &str = "Too large resource version";
        let causes = &self.details.causes;
        if causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge") {
            return true;
        }
        // Servers of 1.17.0 to 1.18.5 say it in the message of a cause, older ones in that of the whole.
        let is_timeout = self.reason == "Timeout" || (self.reason.is_empty() && self.code == 504);
        is_timeout && (causes.iter().any(|cause| cause.message == WORDS) || self.message.contains(WORDS))
    }

    /// When to try again, if the server says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    fn from_json(bytes: &[u8]) -> Self {
        let mut status = Self::default();
        for member in Members::new(bytes).map_while(Result::ok) {
            let value = bytes.get(member.value).unwrap_or_default();
            let Ok(value) = serde_json::from_slice::<Value>(value) else { continue };
            match &*member.key {
                "status" => status.status = json_text(&value),
                "reason" => status.reason = json_text(&value),
                "message" => status.message = json_text(&value),
                "code" => status.code = json_number(&value),
                "details" => status.details = StatusDetails::from_json(&value),
                _ => {}
            }
        }
        status
    }

    /// From an envelope without its magic, whatever kind it names.
    fn from_envelope(bytes: &[u8]) -> Self {
        let raw = readable(bytes).find_map(|field| match field {
            (2, Wire::Bytes(raw)) => Some(raw),
            _ => None,
        });
        raw.map(Self::from_protobuf).unwrap_or_default()
    }

    /// From an envelope without its magic, if it names this kind.
    pub(super) fn in_envelope(bytes: &[u8]) -> Option<Self> {
        let kind = readable(bytes).find_map(|field| match field {
            (1, Wire::Bytes(type_meta)) => Some(TypeMeta::read(type_meta).kind),
            _ => None,
        });
        (kind? == "Status").then(|| Self::from_envelope(bytes))
    }

    /// From the bare message.
    pub(super) fn from_protobuf(bytes: &[u8]) -> Self {
        let mut status = Self::default();
        for field in readable(bytes) {
            match field {
                (2, Wire::Bytes(value)) => status.status = text(value),
                (3, Wire::Bytes(value)) => status.message = text(value),
                (4, Wire::Bytes(value)) => status.reason = text(value),
                (5, Wire::Bytes(value)) => status.details = StatusDetails::from_protobuf(value),
                (6, Wire::Varint(value)) => status.code = value.try_into().unwrap_or_default(),
                _ => {}
            }
        }
        status
    }
}

impl StatusDetails {
    fn from_json(value: &Value) -> Self {
        let causes = value["causes"].as_array().into_iter().flatten();
        Self {
            name: json_text(&value["name"]),
            group: json_text(&value["group"]),
            kind: json_text(&value["kind"]),
            uid: json_text(&value["uid"]),
            causes: causes
                .map(|cause| StatusCause {
                    reason: json_text(&cause["reason"]),
                    message: json_text(&cause["message"]),
                    field: json_text(&cause["field"]),
                })
                .collect(),
            retry_after_seconds: json_number(&value["retryAfterSeconds"]),
        }
    }

    fn from_protobuf(bytes: &[u8]) -> Self {
        let mut details = Self::default();
        for field in readable(bytes) {
            match field {
                (1, Wire::Bytes(value)) => details.name = text(value),
                (2, Wire::Bytes(value)) => details.group = text(value),
                (3, Wire::Bytes(value)) => details.kind = text(value),
                (4, Wire::Bytes(value)) => details.causes.push(StatusCause::from_protobuf(value)),
                (5, Wire::Varint(value)) => {
                    details.retry_after_seconds = value.try_into().unwrap_or_default();
                }
                (6, Wire::Bytes(value)) => details.uid = text(value),
                _ => {}
            }
        }
        details
    }
}

impl StatusCause {
    fn from_protobuf(bytes: &[u8]) -> Self {
        let mut cause = Self::default();
        for field in readable(bytes) {
            match field {
                (1, Wire::Bytes(value)) => cause.reason = text(value),
                (2, Wire::Bytes(value)) => cause.message = text(value),
                (3, Wire::Bytes(value)) => cause.field = text(value),
                _ => {}
            }
        }
        cause
    }
}

fn json_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn json_number<T: TryFrom<u64> + Default>(value: &Value) -> T {
    value.as_u64().and_then(|value| value.try_into().ok()).unwrap_or_default()
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = false;
        let mut say = |before: &str, what: &dyn fmt::Display, f: &mut fmt::Formatter<'_>| {
            let before = if std::mem::replace(&mut said, true) { before } else { "" };
            write!(f, "{before}{what}")
        };
        if self.code != 0 {
            say("", &self.code, f)?;
        }
        // "Failure" tells nothing that a code does not.
        let reason = if self.reason.is_empty() && self.code == 0 { &self.status } else { &self.reason };
        if !reason.is_empty() {
            say(" ", reason, f)?;
        }
        if !self.message.is_empty() {
            say(": ", &self.message, f)?;
        }
        if !said {
            f.write_str("an empty status")?;
        }
        if let Some(after) = self.retry_after() {
            write!(f, " (try again in {} s)", after.as_secs())?;
        }
        Ok(())
    }
}

impl std::error::Error for Status {}
