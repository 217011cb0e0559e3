//! What there is, sent one by one, in the order of keys, each as it is when its turn comes.
//!
//! What happens to an object whose turn has not come yet is nothing that has to be told: it is sent as it is by then, or not
//! at all. So whoever reads slowly, of very much that changes all the time, is not told of changes before it has seen what
//! there is. Beside the objects of the beginning, which all who began together share, at most one state is kept of each.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use kube_informer::object::{Object, ObjectKey};

use super::Subscription;
use super::outgoing::Outgoing;
use crate::hub::news::{Filter, News, Tale};
use crate::journal::Cursor;
use crate::message::{Message, Mode, SnapBegin, SnapEnd};

/// See the module.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) id: String,
    gvr: String,
    filter: Filter,
    mode: Mode,
    /// As they were at the beginning, in the order of their keys.
    objects: Arc<[Object]>,
    /// The first of them whose turn has not come.
    next: usize,
    /// Those whose turn has not come and that are others by now; `None` of one that is gone.
    newer: BTreeMap<ObjectKey, Option<Object>>,
    /// The last whose turn has come.
    passed: Option<Object>,
    /// Where it stands: what was told up to here of those whose turn has not come is in it.
    cursor: Cursor,
    has_begun: bool,
    count: usize,
}

/// Where the next one comes from.
enum Next {
    Objects,
    Newer,
    /// It was there at the beginning, and is another now.
    Both,
}

/// What is looked at in one turn: whoever tells waits for that.
const AT_ONCE: usize = 256;

impl Snapshot {
    pub(super) fn new(sub: &Subscription, gvr: &str, objects: Arc<[Object]>, cursor: Cursor) -> Self {
        Self {
            id: sub.id.clone(),
            gvr: gvr.to_owned(),
            filter: sub.filter.clone(),
            mode: sub.mode,
            objects,
            next: 0,
            newer: BTreeMap::new(),
            passed: None,
            cursor,
            has_begun: false,
            count: 0,
        }
    }

    /// Where it stands.
    pub(super) fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Something is told of the topic. Whether it is part of this by now: it is about an object whose turn has not come.
    pub(super) fn absorb(&mut self, news: &News) -> bool {
        let Tale::Change(told) = &news.tale else { return false };
        let Some(object) = told.object() else { return false };
        if self.passed.as_ref().is_some_and(|passed| object.key() <= passed.key()) {
            return false;
        }
        match told.now() {
            Some(new) => _ = self.newer.insert(new.key().to_key(), Some(new.clone())),
            None => self.gone(object),
        }
        self.cursor = news.cursor;
        true
    }

    fn gone(&mut self, last: &Object) {
        let key = last.key().to_key();
        let rest = self.objects.get(self.next..).unwrap_or_default();
        let first = rest.binary_search_by(|object| object.key().cmp(&last.key())).ok();
        let first = first.and_then(|at| rest.get(at));
        let now = match self.newer.get(&key) {
            Some(newer) => newer.as_ref(),
            None => first,
        };
        // Another one may have its name by now.
        if now.is_none_or(|now| now.uid() != last.uid()) {
            return;
        }
        match first {
            Some(_) => _ = self.newer.insert(key, None),
            // Nothing is kept of what came and went.
            None => _ = self.newer.remove(&key),
        }
    }

    /// Passes over what is not selected, so much and no more. Whether the next is found at once, then.
    pub(super) fn advance(&mut self) -> bool {
        if !self.has_begun {
            return true;
        }
        for _ in 0..AT_ONCE {
            match self.peek() {
                Some((next, object)) if object.is_none_or(|object| !self.filter.meets(object)) => {
                    self.pass(&next);
                }
                _ => return true,
            }
        }
        false
    }

    /// The next that is to be sent; `None` where only the end is left.
    pub(super) fn next(&mut self) -> Option<Outgoing> {
        if !self.has_begun {
            self.has_begun = true;
            let begin = SnapBegin { sub: self.id.clone(), gvr: self.gvr.clone() };
            return Some(Outgoing::Text(Message::SnapBegin(begin).text().into()));
        }
        while let Some((next, object)) = self.peek() {
            let object = object.filter(|object| self.filter.meets(object)).cloned();
            self.pass(&next);
            if let Some(object) = object {
                self.count += 1;
                return Some(Outgoing::Item { sub: self.id.clone(), object, mode: self.mode });
            }
        }
        None
    }

    /// The end, with the cursor that it stands for.
    pub(super) fn end(self, cursor: Cursor) -> Outgoing {
        let end = SnapEnd { sub: self.id, cursor, count: self.count };
        Outgoing::Text(Message::SnapEnd(end).text().into())
    }

    /// The one whose turn is next, as it is now.
    fn peek(&self) -> Option<(Next, Option<&Object>)> {
        let first = self.objects.get(self.next);
        match (first, self.newer.first_key_value()) {
            (None, None) => None,
            (Some(object), None) => Some((Next::Objects, Some(object))),
            (None, Some((_, newer))) => Some((Next::Newer, newer.as_ref())),
            (Some(object), Some((key, newer))) => {
                let place = (object.namespace(), object.name());
                Some(match place.cmp(&(key.namespace.as_str(), key.name.as_str())) {
                    Ordering::Less => (Next::Objects, Some(object)),
                    Ordering::Equal => (Next::Both, newer.as_ref()),
                    Ordering::Greater => (Next::Newer, newer.as_ref()),
                })
            }
        }
    }

    fn pass(&mut self, next: &Next) {
        if matches!(next, Next::Objects | Next::Both) {
            self.passed = self.objects.get(self.next).cloned();
            self.next += 1;
        }
        if matches!(next, Next::Newer | Next::Both)
            && let Some((_, Some(object))) = self.newer.pop_first()
        {
            self.passed = Some(object);
        }
    }
}
