//! One connection, without its socket: what it is subscribed to, and what waits to be sent.
//!
//! Whoever tells puts in ([`Session::news`]), and never waits; whoever sends takes out ([`Session::pop`]). What waits is
//! bounded in bytes:
//!
//! - Above half of the bound, changes of one object become one, from the oldest old to the newest new, never across a
//!   deletion, for those subscriptions that allow it. Whoever sends does that ([`Session::take_fold`],
//!   [`Session::put_fold`]), beside what is put in meanwhile.
//! - Above the bound, everything that waits is dropped, and the last that is said is a gap and a goodbye, with the cursor
//!   from which everything can be told again. Nothing is dropped without that.
//! - Snapshots and what is told to those who come back are not copied: they are written when they are sent, and do not count.
//!   What happens to an object before its turn in a snapshot comes is part of it, and does not wait at all. Until a client
//!   that reads has had its snapshot, more than usual may wait: four times the bound.
//!
//! The cursor of a message is where its subscriptions can go on from: everything before it was sent. A change that stands
//! for several stands where the first of them stood, with its cursor: who comes back from there is told the others again.

use std::sync::Arc;

use kube_informer::object::Object;

// What waits.
mod fold;
mod outbox;
mod snapshot;

// What it becomes when it is sent.
mod outgoing;

pub(crate) use outbox::{Last, Outbox};
pub(crate) use outgoing::Outgoing;

use crate::hub::news::{Filter, News, Seen, Tale, TopicId};
use crate::journal::Cursor;
use crate::message::{Message, Mode, Slow, Status, StatusState};
use outbox::Pending;

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    subs: Vec<Subscription>,
    pub(crate) outbox: Outbox,
}

/// What a connection is told of.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) topic: TopicId,
    pub(crate) filter: Filter,
    pub(crate) mode: Mode,
    pub(crate) slow: Slow,
    pub(crate) snapshot: bool,
    /// Whether it is told: its resource has been read.
    pub(crate) active: bool,
    /// The list of its name alone, as JSON.
    pub(crate) label: Arc<str>,
}

/// Subscriptions that get one message.
struct Group<'s> {
    form: (Mode, Seen, Slow),
    subs: Vec<&'s Subscription>,
}

/// How somebody is told what there is, before what changes.
#[derive(Debug, Clone)]
pub(crate) enum Beginning {
    /// Nothing of it.
    Now,
    /// What there is.
    Snapshot(Arc<[Object]>),
    /// What was missed.
    Replay(Vec<Arc<News>>),
}

impl Subscription {
    pub(crate) fn new(
        id: String,
        topic: TopicId,
        filter: Filter,
        mode: Mode,
        slow: Slow,
        snapshot: bool,
    ) -> Self {
        let label = label(&[id.as_str()]);
        Self { id, topic, filter, mode, slow, snapshot, active: false, label }
    }
}

fn label(ids: &[&str]) -> Arc<str> {
    // Texts can always be written.
    serde_json::to_string(ids).unwrap_or_else(|_| "[]".to_owned()).into()
}

impl Session {
    pub(crate) fn new(budget: usize) -> Self {
        Self { subs: Vec::new(), outbox: Outbox::new(budget) }
    }

    /// How many subscriptions there are.
    pub(crate) fn len(&self) -> usize {
        self.subs.len()
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.subs.iter().any(|sub| sub.id == id)
    }

    /// Whether something of a topic is subscribed to.
    pub(crate) fn follows(&self, topic: TopicId) -> bool {
        self.subs.iter().any(|sub| sub.topic == topic)
    }

    pub(crate) fn subscribe(&mut self, sub: Subscription) {
        self.subs.push(sub);
    }

    /// Ends a subscription; what waits for it alone is dropped.
    pub(crate) fn unsubscribe(&mut self, id: &str) -> Option<Subscription> {
        let at = self.subs.iter().position(|sub| sub.id == id)?;
        let sub = self.subs.swap_remove(at);
        self.outbox.forget(&sub);
        Some(sub)
    }

    /// The resource of some subscriptions has been read: those who wait for it begin.
    pub(crate) fn activate(&mut self, topic: TopicId, gvr: &str, objects: &Arc<[Object]>, cursor: Cursor) {
        let waiting = self.subs.iter_mut().filter(|sub| sub.topic == topic && !sub.active);
        for sub in waiting {
            sub.active = true;
            let beginning =
                if sub.snapshot { Beginning::Snapshot(Arc::clone(objects)) } else { Beginning::Now };
            self.outbox.begin(sub, gvr, beginning, cursor);
        }
    }

    /// One subscription begins, in some way.
    pub(crate) fn begin(&mut self, id: &str, gvr: &str, beginning: Beginning, cursor: Cursor) {
        if let Some(sub) = self.subs.iter_mut().find(|sub| sub.id == id && !sub.active) {
            sub.active = true;
            self.outbox.begin(sub, gvr, beginning, cursor);
        }
    }

    /// Something is told of a topic.
    pub(crate) fn news(&mut self, news: &Arc<News>) {
        let told = match &news.tale {
            Tale::Change(told) => told,
            Tale::Begun => return,
            Tale::Gap { .. } => {
                let ids = self.active(news.topic).map(|sub| sub.id.as_str()).collect::<Vec<_>>();
                if !ids.is_empty() {
                    let label = label(&ids);
                    self.outbox.push_news(Pending::gap(Arc::clone(news), label), 256, news.cursor);
                }
                return;
            }
        };
        let mut groups: Vec<Group<'_>> = Vec::new();
        for sub in self.subs.iter().filter(|sub| sub.topic == news.topic && sub.active) {
            if self.outbox.absorb(&sub.id, news) {
                continue;
            }
            let Some(seen) = told.seen_by(&sub.filter) else { continue };
            let form = (sub.mode, seen, sub.slow);
            match groups.iter_mut().find(|group| group.form == form) {
                Some(group) => group.subs.push(sub),
                None => groups.push(Group { form, subs: vec![sub] }),
            }
        }
        for Group { form: (mode, seen, slow), subs } in groups {
            let label = match subs.as_slice() {
                [one] => Arc::clone(&one.label),
                several => label(&several.iter().map(|sub| sub.id.as_str()).collect::<Vec<_>>()),
            };
            let form = told.form(mode, seen);
            let pending = Pending { news: Arc::clone(news), seen, mode, slow, label, form, merged: None };
            self.outbox.push_news(pending, told.weight(mode), news.cursor);
        }
    }

    /// How a resource is.
    pub(crate) fn status(
        &mut self,
        topic: TopicId,
        gvr: &str,
        state: StatusState,
        why: Option<&str>,
        head: Cursor,
    ) {
        let subs: Vec<String> =
            self.subs.iter().filter(|sub| sub.topic == topic).map(|sub| sub.id.clone()).collect();
        if !subs.is_empty() {
            let why = why.map(str::to_owned);
            let status = Status { gvr: gvr.to_owned(), subs, state, why };
            self.outbox.push_text(Message::Status(status).text(), None, head);
        }
    }

    /// Looks for the next that is to be sent, for a short while. Whether [`pop`](Self::pop) has it at once, then.
    pub(crate) fn advance(&mut self) -> bool {
        self.outbox.advance()
    }

    /// The next that is to be sent.
    pub(crate) fn pop(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    /// What waits, to be folded, where that is worth it.
    pub(crate) fn take_fold(&mut self) -> Option<fold::Fold> {
        self.outbox.take_fold()
    }

    /// What is left of it. Tells how many changes became part of others.
    pub(crate) fn put_fold(&mut self, fold: fold::Fold) -> u64 {
        self.outbox.put_fold(fold)
    }

    fn active(&self, topic: TopicId) -> impl Iterator<Item = &Subscription> {
        self.subs.iter().filter(move |sub| sub.topic == topic && sub.active)
    }
}

#[cfg(test)]
mod tests;
