//! What a client asks for, and what is wrong with it where it is not understood.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ErrMessage;
use crate::journal::Cursor;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Request {
    /// To be told of a resource.
    Sub(Sub),
    /// Not to be told any more.
    Unsub(Unsub),
}

/// To be told of a resource.
///
/// ```
/// # use kube_informer_feed::message::{Request, Sub};
/// let text = r#"{"op":"sub","id":"s1","gvr":"apps/v1/deployments","ns":["prod"],"labels":"app=web","mode":"diff","snapshot":true,"since":"7f3:18834","slow":"coalesce"}"#;
/// assert_eq!(serde_json::to_string(&Request::read(text)?)?, text);
/// // Only the first two must be there.
/// assert_eq!(Request::read(r#"{"op":"sub","id":"s1","gvr":"deploy"}"#)?, Request::Sub(Sub::new("s1", "deploy")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sub {
    /// What the client calls it: 1 to 64 characters, once per connection.
    pub id: String,
    /// `apps/v1/deployments`, `v1/pods`, or a name as `kubectl` takes it: `deploy`, `deployments.apps`.
    pub gvr: String,
    /// Only objects of these namespaces, at most 1,000; none named are all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ns: Vec<String>,
    /// Only objects whose labels meet a selector.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub labels: String,
    /// How much is told of a change.
    #[serde(default)]
    pub mode: Mode,
    /// Whether the objects that there are come first.
    #[serde(default = "yes")]
    pub snapshot: bool,
    /// Where to go on from, instead of a snapshot. Where that cannot be, an [`ErrMessage`] with 410 says why, and a snapshot
    /// follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Cursor>,
    /// What becomes of changes that the client does not read.
    #[serde(default)]
    pub slow: Slow,
}

/// Not to be told any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unsub {
    /// What the client called it.
    pub id: String,
}

/// How much is told of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// Each value that is another, old and new.
    #[default]
    Diff,
    /// That, and the whole object.
    Full,
    /// Only which object it was, and in a line what happened.
    Notify,
}

/// What becomes of changes that a client does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Slow {
    /// Changes of one object become one. Where that is not enough, the connection is closed.
    #[default]
    Coalesce,
    /// The connection is closed.
    Close,
}

fn yes() -> bool {
    true
}

/// The longest name of a subscription.
const LONGEST_ID: usize = 64;

/// Namespaces that one subscription may name.
const NAMESPACES: usize = 1_000;

impl Sub {
    /// A subscription to everything of a resource, with a snapshot.
    #[must_use]
    pub fn new(id: impl Into<String>, gvr: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            gvr: gvr.into(),
            ns: Vec::new(),
            labels: String::new(),
            mode: Mode::default(),
            snapshot: true,
            since: None,
            slow: Slow::default(),
        }
    }
}

impl Request {
    /// The end of a subscription.
    #[must_use]
    pub fn unsub(id: impl Into<String>) -> Self {
        Self::Unsub(Unsub { id: id.into() })
    }

    /// Reads a request.
    ///
    /// # Errors
    ///
    /// Where it is none: what is wrong with it, for the client to read.
    pub fn read(text: &str) -> Result<Self, ErrMessage> {
        let value: Value = serde_json::from_str(text).map_err(|error| {
            refused(None, format!("this is not JSON: {error}; send one object per frame"))
        })?;
        let Value::Object(mut fields) = value else {
            return Err(refused(None, r#"a request is an object: {"op":"sub","id":"s1","gvr":"v1/pods"}"#));
        };
        let id = fields.get("id").and_then(Value::as_str).map(short);
        let id = id.as_deref();
        let op = match fields.remove("op") {
            Some(Value::String(op)) => op,
            Some(other) => return Err(refused(id, format!("op is to be a string, and is {}", kind(&other)))),
            None => return Err(refused(id, r#"there is no op: say "sub" or "unsub""#)),
        };
        let request = match op.as_str() {
            "sub" => serde_json::from_value(fields.into()).map(Self::Sub),
            "unsub" => serde_json::from_value(fields.into()).map(Self::Unsub),
            other => {
                let message = format!("unknown op {:?}: say \"sub\" or \"unsub\"", short(other));
                return Err(refused(id, message));
            }
        };
        let request = request.map_err(|error| refused(id, format!("{op}: {}", short(&error.to_string()))))?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), ErrMessage> {
        let id = match self {
            Self::Sub(Sub { id, .. }) | Self::Unsub(Unsub { id }) => id,
        };
        match id.chars().count() {
            1..=LONGEST_ID => {}
            0 => return Err(refused(None, "id is empty: give the subscription a name")),
            count => {
                return Err(refused(None, format!("id has {count} characters; {LONGEST_ID} are allowed")));
            }
        }
        match self {
            Self::Sub(sub) if sub.ns.len() > NAMESPACES => {
                let count = sub.ns.len();
                let message =
                    format!("ns names {count} namespaces; {NAMESPACES} are allowed; name none for all");
                Err(refused(Some(id), message))
            }
            Self::Sub(_) | Self::Unsub(_) => Ok(()),
        }
    }
}

fn refused(sub: Option<&str>, message: impl Into<String>) -> ErrMessage {
    ErrMessage::new(sub, 400, message)
}

/// What a client sent is said back, but not at any length.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
