//! One resource: what is known of its objects, and those who are told.
//!
//! What is known here is what was told, object by object, and not the informer's cache, which may be ahead: so a snapshot
//! and the place in what is told fit together. The objects themselves are the cache's; a place here takes some dozens of
//! bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_informer::informer::{Cause, Informer, State};
use kube_informer::object::{Object, ObjectKey};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::news::TopicId;
use super::{Known, Link, TopicStatus, gvr};
use crate::journal::Cursor;
use crate::message::StatusState;

/// See the module.
pub(crate) struct Topic {
    pub(super) id: TopicId,
    pub(super) gvr: String,
    pub(super) informer: Informer,
    /// Whether it is never given up.
    pub(super) wanted: bool,
    known: BTreeMap<ObjectKey, Object>,
    /// What is known, as it was asked for last.
    snapshot: Option<Arc<[Object]>>,
    /// The place from which everything is told, once everything was read.
    pub(super) since: Option<Cursor>,
    pub(super) state: StatusState,
    pub(super) why: Option<String>,
    pub(super) links: Vec<Arc<Link>>,
    /// Since when nobody is told.
    pub(super) idle: Option<Instant>,
    /// Whether somebody waits to give it up.
    pub(super) is_retiring: bool,
    pub(super) task: Option<AbortHandle>,
}

impl Topic {
    pub(super) fn new(id: TopicId, informer: Informer, wanted: bool) -> Self {
        Self {
            id,
            gvr: gvr(informer.resource()),
            informer,
            wanted,
            known: BTreeMap::new(),
            snapshot: None,
            since: None,
            state: StatusState::Syncing,
            why: None,
            links: Vec::new(),
            idle: Some(Instant::now()),
            is_retiring: false,
            task: None,
        }
    }

    /// Notes what became of an object.
    pub(super) fn know(&mut self, known: Known) {
        match known {
            Known::Is(object) => {
                self.known.insert(object.key().to_key(), object);
            }
            Known::Was(object) => {
                let key = object.key().to_key();
                // Another one may have its name by now.
                if self.known.get(&key).is_some_and(|known| known.uid() == object.uid()) {
                    self.known.remove(&key);
                }
            }
            Known::Same => return,
        }
        self.snapshot = None;
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.known.get(key)
    }

    /// What is known, in the order of keys. Those who ask at the same time share it.
    pub(super) fn snapshot(&mut self) -> Arc<[Object]> {
        let known = &self.known;
        Arc::clone(self.snapshot.get_or_insert_with(|| known.values().cloned().collect()))
    }

    pub(super) fn status(&self) -> TopicStatus {
        TopicStatus {
            gvr: self.gvr.clone(),
            wanted: self.wanted,
            ready: self.since.is_some(),
            state: self.state,
            why: self.why.clone(),
            links: self.links.len(),
        }
    }

    /// Tells those who are told how it is, where that is new.
    pub(super) fn set_state(&mut self, state: &State, head: Cursor) {
        let (state, why) = describe(state);
        if (state, &why) == (self.state, &self.why) {
            return;
        }
        (self.state, self.why) = (state, why);
        for link in &self.links {
            link.with(|session| session.status(self.id, &self.gvr, self.state, self.why.as_deref(), head));
        }
    }

    /// Everything was read: those who wait for it begin.
    pub(super) fn ready(&mut self, head: Cursor) {
        if self.since.is_some() {
            return;
        }
        self.since = Some(head);
        let objects = self.snapshot();
        for link in &self.links {
            link.with(|session| session.activate(self.id, &self.gvr, &objects, head));
        }
    }

    /// Nobody reads it any more.
    pub(super) fn abandon(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// An informer's state, as it is said.
fn describe(state: &State) -> (StatusState, Option<String>) {
    match state {
        State::Live => (StatusState::Live, None),
        State::Starting | State::Syncing => (StatusState::Syncing, None),
        // When it is tried again is left out: it is another moment each time, and that is no news.
        State::Stale { why, .. } => {
            let text = format!("{}: {}", why.request, why.explained());
            let is_forbidden = why.cause == Cause::Forbidden;
            (if is_forbidden { StatusState::Forbidden } else { StatusState::Stale }, Some(text))
        }
        State::Stopped => (StatusState::Stale, Some("the informer was stopped".to_owned())),
        _ => (StatusState::Stale, Some(state.to_string())),
    }
}
