//! One change of one object: what it was, what it is, and in a line what that means.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened to an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Whether it came, changed or went.
    #[serde(rename = "type")]
    pub what: What,
    /// When it was seen here.
    pub time: Timestamp,
    /// Which object.
    pub obj: Subject,
    /// What kinds of changes these are, each once.
    #[serde(rename = "class")]
    pub classes: Vec<Class>,
    /// One line for people: "replicas 3→5; image web 1.4→1.5".
    pub summary: String,
    /// Each value that is another, by its path.
    pub changes: Vec<FieldChange>,
    /// Who wrote it last, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// Why it came or went, where that is not that it was made or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// How many changes this one stands for.
    pub coalesced: u32,
}

/// Whether an object came, changed or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum What {
    /// It is there now.
    Added,
    /// It is another now.
    Modified,
    /// It is gone.
    Deleted,
}

/// The object that a change is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Empty for objects without one.
    #[serde(default, rename = "ns", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The version that the change led to; of a deleted object the last one that was seen.
    #[serde(rename = "rv")]
    pub version: String,
    /// The generation, where there is one.
    #[serde(default)]
    pub generation: i64,
    /// Who controls it: `ReplicaSet/web-5c9`; itself if nobody does.
    pub root: String,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// How many are wanted.
    Scale,
    /// What a container runs.
    Image,
    /// Environment variables.
    Env,
    /// Requests and limits.
    Resources,
    /// Data of a config map or secret.
    Config,
    /// Anything else of the specification.
    Spec,
    /// Progress towards what is wanted.
    Rollout,
    /// A condition.
    Condition,
    /// Anything else of the status.
    Status,
    /// Labels, annotations, owners, finalizers.
    Metadata,
    /// It was made.
    Create,
    /// It was deleted, or is going to be.
    Delete,
}

/// One value that is another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// A JSON pointer; elements of lists that have names or keys are called by them:
    /// `/spec/template/spec/containers/web/image`.
    pub path: String,
    /// Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// Absent if there is none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// Who wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub op: String,
}

/// Why an object came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// It is there still, but what was asked for does not select it any more.
    LeftSelector,
    /// It was there before, and is selected now.
    EnteredSelector,
    /// It was found missing; when it went is not known.
    FoundMissing,
}
