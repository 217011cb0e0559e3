//! One change of one object: what it was, what it is, and in a line what that means.
//!
//! - A change is made of two versions of an object, whatever its kind and however it came. Values are compared, not
//!   bytes: elements of lists by what Kubernetes tells them apart by, so that those that moved have not changed.
//! - What every write changes is no change: `resourceVersion`, `generation`, `managedFields`.
//! - The values of secrets are never in a change: a hash stands for each, made with a key of this process.
//! - A change is bounded, however large the object: how many values are listed ([`Change::truncated`] counts the others),
//!   how much is shown of each, how long the line is.
//! - Changes of one object that follow each other can be [merged](Change::merge). The result is what there would have
//!   been to say if only the first and the last version had been seen.
//! - The same two versions give the same change, but for its time and the hashes of secrets.
//!
//! Not promised: that the values are all there. Who needs the whole object has it.

use std::fmt;

use jiff::Timestamp;
use kube_informer::encoding::ViewError;
use kube_informer::object::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

// From two documents to what is different.
mod diff;
mod path;

// From there to what is shown.
mod actor;
mod cut;
mod fact;
mod image;
mod summary;

// Two changes as one.
mod merge;
mod patch;

use diff::Delta;
use fact::{Fact, Kind};

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
    /// Each value that is another, by its path, the most telling first. Of an object that came or went: how many there are
    /// to be, and what it runs.
    pub changes: Vec<FieldChange>,
    /// How many values more are others, which are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated: u32,
    /// Who wrote it, where the server tells and the informer [keeps](kube_informer::encoding::ManagedFields::Writers) it.
    /// Nobody knows who deleted something, who gave a pod its node, or who only took something away.
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

/// More values than these are counted, not listed.
const MOST_CHANGES: usize = 100;

/// More bytes than these, of paths and values, are not listed either.
const MOST_BYTES: usize = 32 * 1024;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Change {
    /// Whether it shows: an object came or went, or something of it is another. Where only its version is, there is nothing
    /// to tell.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        let is_same = self.changes.is_empty() && self.truncated == 0 && self.classes.is_empty();
        self.what != What::Modified || !is_same
    }

    /// An object is new.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn added<K>(new: &Object<K>) -> Result<Self, ViewError> {
        let document = document(new)?;
        let mut change = Self::of(What::Added, new, actor::of_new(new));
        let mut state = Vec::new();
        kind_of(&change.obj).state(&mut Vec::new(), &document, &mut state);
        change.say_state("created", state, 0);
        Ok(change)
    }

    /// An object is another now.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn modified<K, T>(old: &Object<K>, new: &Object<T>) -> Result<Self, ViewError> {
        let mut change = Self::of(What::Modified, new, None);
        let deltas = if spec_is_same(old, new) {
            diff::diff(&outside_of_spec(old)?, &outside_of_spec(new)?)
        } else {
            diff::diff(&document(old)?, &document(new)?)
        };
        change.say_modified(deltas, 0);
        change.actor = actor::of_change(old, new, &change);
        Ok(change)
    }

    /// An object is gone. Where that is not `certain`, it was found missing.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn deleted<K>(last: &Object<K>, certain: bool) -> Result<Self, ViewError> {
        let document = document(last)?;
        let mut change = Self::of(What::Deleted, last, None);
        change.reason = (!certain).then_some(Reason::FoundMissing);
        let mut state = Vec::new();
        kind_of(&change.obj).state(&mut Vec::new(), &document, &mut state);
        change.say_state(if certain { "deleted" } else { "deleted, found missing" }, state, 0);
        Ok(change)
    }

    /// Two changes of one object, of which the second followed the first, as one: from the oldest old to the newest new.
    ///
    /// `None` where they cannot be one: they are of different objects, also where one took the other's name, or the first
    /// is an end, or the second the end of what the first began. Then both are to be told.
    ///
    /// Where a value was cut, what changed within it is only counted, in [`truncated`](Self::truncated).
    #[must_use]
    pub fn merge(earlier: &Self, later: &Self) -> Option<Self> {
        let (a, b) = (&earlier.obj, &later.obj);
        let same = a.uid == b.uid && a.name == b.name && a.namespace == b.namespace && a.kind == b.kind;
        if !same || a.api_version != b.api_version {
            return None;
        }
        let mut change = later.clone();
        change.coalesced = earlier.coalesced.saturating_add(later.coalesced);
        match (earlier.what, later.what) {
            (What::Modified, What::Deleted) => return Some(change),
            (What::Added | What::Modified, What::Modified) => {}
            _ => return None,
        }
        change.actor = actor::of_both(earlier, later);
        let merged = merge::merge(deltas(&earlier.changes), deltas(&later.changes));
        let lost = u32::try_from(merged.lost).unwrap_or(u32::MAX);
        let more = earlier.truncated.saturating_add(later.truncated).saturating_add(lost);
        if earlier.what == What::Modified {
            change.say_modified(merged.deltas, more);
            change.actor = change.actor.take().filter(|_| !actor::is_unsigned(&change));
            return Some(change);
        }
        change.what = What::Added;
        change.reason = earlier.reason;
        let kind = kind_of(&change.obj);
        let mut state = Vec::new();
        for delta in merged.deltas {
            if let Some(new) = &delta.new {
                kind.state(&mut delta.path.clone(), new, &mut state);
            }
        }
        // What the later one does not list is no part of how an object comes.
        change.say_state("created", state, earlier.truncated);
        Some(change)
    }

    fn of<K>(what: What, object: &Object<K>, actor: Option<Actor>) -> Self {
        Self {
            what,
            time: Timestamp::now(),
            obj: Subject::of(object),
            classes: Vec::new(),
            summary: String::new(),
            changes: Vec::new(),
            truncated: 0,
            actor,
            reason: None,
            coalesced: 1,
        }
    }

    /// What it was that came or went.
    fn say_state(&mut self, what: &str, mut state: Vec<(Vec<String>, Value)>, more: u32) {
        state.sort_by(|(a, _), (b, _)| patch::by_place(a, b));
        let went = self.what == What::Deleted;
        self.classes = vec![if went { Class::Delete } else { Class::Create }];
        self.summary = summary::of_state(what, &state);
        let delta = |(path, value)| match went {
            true => Delta { path, old: Some(value), new: None },
            false => Delta { path, old: None, new: Some(value) },
        };
        self.list(state.into_iter().map(delta).collect(), more);
    }

    fn say_modified(&mut self, deltas: Vec<Delta>, more: u32) {
        let kind = kind_of(&self.obj);
        let facts: Vec<Vec<Fact>> = deltas.iter().map(|delta| kind.facts(delta)).collect();
        let class = |facts: &[Fact]| facts.iter().map(|fact| fact.class).min();
        let mut order: Vec<(Option<Class>, Delta)> =
            facts.iter().map(|facts| class(facts)).zip(deltas).collect();
        order.sort_by(|(a, one), (b, two)| a.cmp(b).then_with(|| patch::by_place(&one.path, &two.path)));
        let mut facts: Vec<Fact> = facts.into_iter().flatten().collect();
        facts.sort_by(|a, b| patch::by_place(&a.place, &b.place));
        self.classes = facts.iter().map(|fact| fact.class).collect();
        self.classes.sort_unstable();
        self.classes.dedup();
        self.summary = summary::of_changes(facts, usize::try_from(more).unwrap_or(usize::MAX));
        self.list(order.into_iter().map(|(_, delta)| delta).collect(), more);
    }

    /// Lists values, as many as there is room for, and as much of each.
    fn list(&mut self, deltas: Vec<Delta>, more: u32) {
        let total = deltas.len();
        let mut room = MOST_BYTES;
        let mut changes = Vec::new();
        for Delta { path, old, new } in deltas.into_iter().take(MOST_CHANGES) {
            let change =
                FieldChange { path: path::write(&path), old: old.map(cut::cut), new: new.map(cut::cut) };
            let size = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
            let size = change.path.len() + size(&change.old) + size(&change.new);
            // Small ones may still fit after a large one that did not.
            if let Some(rest) = room.checked_sub(size) {
                room = rest;
                changes.push(change);
            }
        }
        let left_out = u32::try_from(total - changes.len()).unwrap_or(u32::MAX);
        self.truncated = more.saturating_add(left_out);
        self.changes = changes;
    }
}

/// `+ Deployment shop/web created; replicas 3`: a line of a log.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.what {
            What::Added => '+',
            What::Modified => '~',
            What::Deleted => '-',
        };
        let Subject { kind, namespace, name, .. } = &self.obj;
        let slash = if namespace.is_empty() { "" } else { "/" };
        write!(f, "{sign} {kind} {namespace}{slash}{name} {}", self.summary)
    }
}

impl Subject {
    /// What an object is told apart by.
    #[must_use]
    pub fn of<K>(object: &Object<K>) -> Self {
        let root = match object.controller() {
            Some(owner) => format!("{}/{}", owner.kind, owner.name),
            None => format!("{}/{}", object.kind(), object.name()),
        };
        Self {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_string(),
            version: object.version().to_string(),
            generation: object.generation(),
            root,
        }
    }
}

fn kind_of(subject: &Subject) -> Kind<'_> {
    Kind { api_version: &subject.api_version, kind: &subject.kind }
}

fn deltas(changes: &[FieldChange]) -> Vec<Delta> {
    let delta = |change: &FieldChange| Delta {
        path: path::read(&change.path),
        old: change.old.clone(),
        new: change.new.clone(),
    };
    changes.iter().map(delta).collect()
}

/// What is compared of an object.
fn document<K>(object: &Object<K>) -> Result<Value, ViewError> {
    let document: Value = object.read(|stored| stored.view())??;
    let kind = Kind { api_version: object.api_version(), kind: object.kind() };
    Ok(comparable(kind, document))
}

fn comparable(kind: Kind<'_>, mut document: Value) -> Value {
    diff::without_nulls(&mut document);
    if let Value::Object(map) = &mut document {
        map.remove("apiVersion");
        map.remove("kind");
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            for field in ["resourceVersion", "generation", "managedFields", "selfLink"] {
                metadata.remove(field);
            }
        }
    }
    if kind.is_secret() {
        cut::hide_secrets(&mut document);
    }
    document
}

/// Whether nothing but metadata and status can be another, and need be decoded. The server counts generations of these
/// kinds by their specifications; other servers may count what they like.
fn spec_is_same<K, T>(old: &Object<K>, new: &Object<T>) -> bool {
    let counted = new.api_version() == "apps/v1"
        && matches!(new.kind(), "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet");
    counted && new.generation() > 0 && old.generation() == new.generation() && old.uid() == new.uid()
}

fn outside_of_spec<K>(object: &Object<K>) -> Result<Value, ViewError> {
    /// Everything else of the object is jumped over.
    #[derive(Serialize, Deserialize)]
    struct Narrow {
        #[serde(default)]
        metadata: Value,
        #[serde(default)]
        status: Value,
    }
    let Narrow { metadata, status } = object.read(|stored| stored.view())??;
    let kind = Kind { api_version: object.api_version(), kind: object.kind() };
    Ok(comparable(kind, serde_json::json!({ "metadata": metadata, "status": status })))
}

#[cfg(test)]
mod tests;
