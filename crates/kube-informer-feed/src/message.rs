//! What is said over a connection, in both directions.
//!
//! Every message is one JSON object in one text frame, and says in `op` what it is. A client asks with [`Request`]s;
//! the server says [`Message`]s.
//!
//! Promised:
//!
//! - What is not understood is refused with an [`ErrMessage`] that says what was expected; a field that is not known is
//!   named. Nothing of such a request is done.
//! - What is said here is what [`Message`] can read: a client in Rust can use these types.
//! - Fields may be added; clients ignore those that they do not know. Nothing else changes under the name of the
//!   subprotocol, [`SUBPROTOCOL`].
//!
//! ```
//! use kube_informer_feed::message::{Message, Mode, Request};
//!
//! let asked = r#"{"op":"sub","id":"s1","gvr":"apps/v1/deployments","ns":["prod"],"labels":"app=web","mode":"full"}"#;
//! let Request::Sub(sub) = Request::read(asked)? else { unreachable!() };
//! assert_eq!((sub.id.as_str(), sub.mode, sub.snapshot), ("s1", Mode::Full, true));
//! assert_eq!(Request::read(r#"{"op":"unsub","id":"s1"}"#)?, Request::unsub("s1"));
//!
//! let refused = Request::read(r#"{"op":"sub","id":"s1","gvr":"pods","namespace":"prod"}"#).unwrap_err();
//! assert_eq!((refused.code, refused.sub.as_deref()), (400, Some("s1")));
//! assert!(refused.message.contains("unknown field `namespace`"), "{}", refused.message);
//!
//! let said = r#"{"op":"bookmark","cursor":"7f3:18834"}"#;
//! let message: Message = serde_json::from_str(said)?;
//! assert_eq!(serde_json::to_string(&message)?, said);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{Change, Subject};
use crate::journal::Cursor;

// What a client asks for.
mod request;

pub(crate) use request::short;
pub use request::{Mode, Request, Slow, Sub, Unsub};

/// The name under which this protocol is spoken.
pub const SUBPROTOCOL: &str = "kube-informer.v1.json";

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op")]
#[non_exhaustive]
pub enum Message {
    /// First of all.
    #[serde(rename = "hello")]
    Hello(Hello),
    /// The objects that there are follow.
    #[serde(rename = "snap.begin")]
    SnapBegin(SnapBegin),
    /// One of them.
    #[serde(rename = "snap.item")]
    SnapItem(SnapItem),
    /// These were all.
    #[serde(rename = "snap.end")]
    SnapEnd(SnapEnd),
    /// Something happened to an object.
    #[serde(rename = "change")]
    Change(Box<ChangeMessage>),
    /// Nothing else happened up to here.
    #[serde(rename = "bookmark")]
    Bookmark(Bookmark),
    /// How a resource is.
    #[serde(rename = "status")]
    Status(Status),
    /// Not everything was told.
    #[serde(rename = "gap")]
    Gap(Gap),
    /// A request was refused.
    #[serde(rename = "err")]
    Err(ErrMessage),
    /// Last of all.
    #[serde(rename = "bye")]
    Bye(Bye),
}

/// Who speaks, and what may be asked for.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"hello","epoch":"7f3","cursor":"7f3:18830","limits":{"subscriptions":64,"frame":65536,"outbox":2097152},"resources":["apps/v1/deployments"],"any":false}"#;
/// let Message::Hello(hello) = serde_json::from_str(text)? else { unreachable!() };
/// assert_eq!(serde_json::to_string(&Message::Hello(hello))?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Another one after each start of the server: cursors of older ones mean nothing any more.
    pub epoch: String,
    /// Where the server is.
    pub cursor: Cursor,
    /// What a client may do.
    pub limits: Limits,
    /// What the server was started for.
    pub resources: Vec<String>,
    /// Whether any other resource may be asked for, too.
    pub any: bool,
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Subscriptions of one connection.
    pub subscriptions: usize,
    /// Bytes of one frame that the client sends.
    pub frame: usize,
    /// Bytes that may wait for a client that does not read.
    pub outbox: usize,
}

/// The objects of a subscription follow.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"snap.begin","sub":"s1","gvr":"apps/v1/deployments"}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapBegin {
    /// Of which subscription.
    pub sub: String,
    /// The resource: a name such as `deploy` is told as what it means.
    pub gvr: String,
}

/// An object that was there when the subscription began.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"snap.item","sub":"s1","obj":{"apiVersion":"v1","kind":"ConfigMap","ns":"prod","name":"web","uid":"u1","rv":"7","generation":0,"root":"ConfigMap/web"},"object":{"data":{}}}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapItem {
    /// Of which subscription.
    pub sub: String,
    /// Which object.
    pub obj: Subject,
    /// The object itself, without `managedFields`; absent with [`Mode::Notify`]. Values of secrets are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

/// These were all objects; what changes from here on is told.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"snap.end","sub":"s1","cursor":"7f3:18830","count":1}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapEnd {
    /// Of which subscription.
    pub sub: String,
    /// Where the server was when the objects were like this.
    pub cursor: Cursor,
    /// How many there were.
    pub count: usize,
}

/// Something happened to an object.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"change","cursor":"7f3:18834","subs":["s1"],"type":"MODIFIED","time":"2026-11-16T08:00:00Z","obj":{"apiVersion":"apps/v1","kind":"Deployment","ns":"prod","name":"web","uid":"u1","rv":"9","generation":2,"root":"Deployment/web"},"class":["scale"],"summary":"replicas 3→5","changes":[{"path":"/spec/replicas","old":3,"new":5}],"coalesced":1}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeMessage {
    /// Where to go on from, of these subscriptions.
    pub cursor: Cursor,
    /// The subscriptions that it is for.
    pub subs: Vec<String>,
    /// What happened. With [`Mode::Notify`], its `changes` are empty.
    #[serde(flatten)]
    pub change: Change,
    /// The object as it is now, or was last; only with [`Mode::Full`]. Values of secrets are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

/// Everything up to here was told, to all subscriptions.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"bookmark","cursor":"7f3:18834"}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Where to go on from.
    pub cursor: Cursor,
}

/// How a resource is: that nothing changes, or that it is not known whether something does.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"status","gvr":"v1/secrets","subs":["s2"],"state":"forbidden","why":"LIST /api/v1/secrets: 403"}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The resource.
    pub gvr: String,
    /// The subscriptions to it.
    pub subs: Vec<String>,
    /// In one word.
    pub state: StatusState,
    /// Why, and what to do about it, where it is not live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How a resource is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StatusState {
    /// It is read for the first time.
    Syncing,
    /// What changes is told as it changes.
    Live,
    /// What is known may be old.
    Stale,
    /// The cluster does not allow to read it.
    Forbidden,
}

/// Not everything was told: of what happened between two cursors, the result is known at best.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"gap","from":"7f3:18834","to":"7f3:20001","reason":"slow: 1166 changes were not read in time"}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Where to go on from, where the gap itself is a place to do so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// The subscriptions that it is for; none named are all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subs: Vec<String>,
    /// The last cursor up to which everything was told; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Cursor>,
    /// From here on, everything is told again; where the connection goes on.
    pub to: Cursor,
    /// Why.
    pub reason: String,
}

/// A request was refused, or could be done in part only.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"err","sub":"s1","code":404,"message":"the server has no resource \"deploymets\"; did you mean deployments.apps?"}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrMessage {
    /// The subscription, where the request named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// As in HTTP: 400 not understood, 403 not to be had here, 404 no such resource or subscription, 405 cannot be watched,
    /// 409 that id is taken, 410 that cursor cannot be resumed from (a snapshot follows), 413 too large, 429 too many,
    /// 503 the cluster cannot be asked.
    pub code: u16,
    /// What was tried, what happened, what to do.
    pub message: String,
}

/// The server closes the connection.
///
/// ```
/// # use kube_informer_feed::message::Message;
/// let text = r#"{"op":"bye","code":4008,"resume":"7f3:18834","message":"too slow: come again with `since`"}"#;
/// # let message: Message = serde_json::from_str(text)?;
/// # assert_eq!(serde_json::to_string(&message)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bye {
    /// The code with which the WebSocket is closed: one of [`close`].
    pub code: u16,
    /// Where all subscriptions can go on from; absent where one of them has to begin anew, because its snapshot was not
    /// complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Cursor>,
    /// Why, and what to do.
    pub message: String,
}

/// Codes with which a WebSocket is closed.
pub mod close {
    /// The server ends, or is started anew.
    pub const GOING_AWAY: u16 = 1001;
    /// A frame that is none.
    pub const PROTOCOL: u16 = 1002;
    /// Text that is not UTF-8.
    pub const NOT_TEXT: u16 = 1007;
    /// A frame above the limit.
    pub const TOO_LARGE: u16 = 1009;
    /// The client does not read what it asked for.
    pub const SLOW: u16 = 4008;
    /// The client did not answer a ping.
    pub const SILENT: u16 = 4009;
}

impl ErrMessage {
    /// A refusal, of a subscription's request or of something else.
    #[must_use]
    pub fn new(sub: Option<&str>, code: u16, message: impl Into<String>) -> Self {
        Self { sub: sub.map(str::to_owned), code, message: message.into() }
    }
}

impl fmt::Display for ErrMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ErrMessage {}

impl StatusState {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syncing => "syncing",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Forbidden => "forbidden",
        }
    }
}

impl Message {
    /// One line of JSON.
    pub(crate) fn text(&self) -> String {
        // Only maps with keys that are no strings could fail, and there are none.
        serde_json::to_string(self).unwrap_or_else(|error| {
            tracing::error!(%error, "a message cannot be written");
            String::from(r#"{"op":"err","code":500,"message":"a message could not be written"}"#)
        })
    }
}

#[cfg(test)]
mod tests;
