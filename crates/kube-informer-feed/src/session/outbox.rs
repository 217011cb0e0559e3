//! What waits to be sent to one client, in order and bounded.
//!
//! While a snapshot is being sent, several times as much may wait ([`PATIENCE`]), as long as the client reads: of very much
//! that changes all the time, more changes than usual come before it is done, and who is closed then has to begin anew.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::fold::Fold;
use super::outgoing::Outgoing;
use super::snapshot::Snapshot;
use super::{Beginning, Subscription};
use crate::change::Change;
use crate::hub::news::{Filter, Form, News, Seen, Tale};
use crate::journal::Cursor;
use crate::message::{Bookmark, Bye, ErrMessage, Gap, Message, Mode, Slow, close};

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    items: VecDeque<Item>,
    /// What the items take, those that are being folded among them.
    bytes: usize,
    budget: usize,
    /// Above this, it is worth folding.
    fold_above: usize,
    /// Snapshots that are being sent, or wait; the items say where.
    snapshots: Vec<Snapshot>,
    /// Whether there was a snapshot since what waits was last as much as usual.
    is_patient: bool,
    /// What was put in since something was taken out.
    since_read: usize,
    /// What is being folded keeps its say in where to go on from.
    folding: Option<Waiting>,
    /// Up to where everything was sent.
    sent: Option<Cursor>,
    phase: Phase,
}

/// What is known of items without looking at them again.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    changes: usize,
    /// Whether something has to begin anew if they are dropped.
    begins: bool,
    /// The last place before all of them.
    before: Option<Cursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The last things to say are there; nothing is put in any more.
    Closing(Closing),
}

/// Why a connection is being closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) code: u16,
}

/// What is said before the goodbye.
#[derive(Debug)]
pub(crate) enum Last {
    Gap { reason: String, to: Cursor },
    Err(ErrMessage),
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) bytes: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text {
        text: Bytes,
        cursor: Option<Cursor>,
    },
    News(Pending),
    /// The snapshot of the subscription with this name.
    Snapshot(String),
    Replay(Box<Replay>),
}

/// A change that waits.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) news: Arc<News>,
    pub(crate) seen: Seen,
    pub(crate) mode: Mode,
    pub(crate) slow: Slow,
    /// Whom it is for: a list of names, as JSON.
    pub(crate) label: Arc<str>,
    pub(crate) form: Form,
    pub(crate) merged: Option<Box<Merged>>,
}

/// Several changes as one.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) change: Change,
    pub(crate) last: Arc<News>,
}

/// What was missed, sent one by one.
#[derive(Debug)]
pub(super) struct Replay {
    id: String,
    filter: Filter,
    mode: Mode,
    slow: Slow,
    label: Arc<str>,
    news: VecDeque<Arc<News>>,
    /// Where it ends.
    cursor: Cursor,
    /// The place before the next one.
    at: Cursor,
}

/// So many times what may wait as a rule may wait while a snapshot is sent.
const PATIENCE: usize = 4;

/// What an item takes beside its text.
const ITSELF: usize = 96;

/// What is looked at in one turn: whoever tells waits for that.
const AT_ONCE: usize = 256;

impl Pending {
    pub(super) fn gap(news: Arc<News>, label: Arc<str>) -> Self {
        let (seen, mode, slow) = (Seen::AsIs, Mode::Diff, Slow::Close);
        Self { news, seen, mode, slow, label, form: Form::default(), merged: None }
    }
}

impl Outbox {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            budget,
            fold_above: budget / 2,
            snapshots: Vec::new(),
            is_patient: false,
            since_read: 0,
            folding: None,
            sent: None,
            phase: Phase::Open,
        }
    }

    /// Why the connection is being closed, where it is.
    pub(crate) fn closing(&self) -> Option<Closing> {
        match self.phase {
            Phase::Open => None,
            Phase::Closing(closing) => Some(closing),
        }
    }

    /// Whether there is something to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// What waits, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes that wait.
    #[cfg(test)]
    pub(super) fn waiting_changes(&self) -> usize {
        self.waiting().changes
    }

    /// A message that stands for itself; with a cursor, where it says one. `head` is where the hub is.
    pub(crate) fn push_text(&mut self, text: String, cursor: Option<Cursor>, head: Cursor) {
        let bytes = text.len() + ITSELF;
        self.push(Item { bytes, kind: Kind::Text { text: text.into(), cursor } }, head);
    }

    pub(super) fn push_news(&mut self, pending: Pending, weight: usize, head: Cursor) {
        self.push(Item { bytes: weight + ITSELF, kind: Kind::News(pending) }, head);
    }

    fn push(&mut self, item: Item, head: Cursor) {
        if self.phase != Phase::Open {
            return;
        }
        // One that is larger than all there is room for is sent to those who read.
        if self.bytes > 0 && self.is_too_much(self.bytes + item.bytes) {
            let waiting = self.waiting();
            let reason = format!(
                "slow: {} bytes wait, {} are allowed; {} changes are not sent",
                self.bytes + item.bytes,
                self.budget,
                waiting.changes + 1,
            );
            let from = self.resume();
            let message = match from {
                Some(_) => "too slow: read faster, or ask for less; come again with `since`",
                None => "too slow: read faster, or ask for less; come again, with a snapshot",
            };
            self.close(close::SLOW, message, Some(Last::Gap { reason, to: head }));
            return;
        }
        self.bytes += item.bytes;
        self.since_read += item.bytes;
        self.items.push_back(item);
    }

    fn is_too_much(&self, bytes: usize) -> bool {
        if self.is_patient {
            let reads = self.since_read <= self.budget;
            bytes > self.budget && !(reads && bytes <= self.budget.saturating_mul(PATIENCE))
        } else {
            bytes > self.budget
        }
    }

    /// Whether something that is told is part of the snapshot of a subscription, which has not come to it yet.
    pub(super) fn absorb(&mut self, id: &str, news: &News) -> bool {
        let snapshot = self.snapshots.iter_mut().find(|snapshot| snapshot.id == id);
        snapshot.is_some_and(|snapshot| snapshot.absorb(news))
    }

    /// Drops what waits and says goodbye, after something else where that is given.
    pub(crate) fn close(&mut self, code: u16, message: &str, last: Option<Last>) {
        if self.phase != Phase::Open {
            return;
        }
        let resume = self.resume();
        self.phase = Phase::Closing(Closing { code });
        self.items.clear();
        self.snapshots.clear();
        self.bytes = 0;
        let last = last.map(|last| match last {
            Last::Gap { reason, to } => {
                Message::Gap(Gap { cursor: None, subs: Vec::new(), from: resume, to, reason })
            }
            Last::Err(err) => Message::Err(err),
        });
        let bye = Message::Bye(Bye { code, resume, message: message.to_owned() });
        for message in last.into_iter().chain([bye]) {
            let text = message.text();
            let kind = Kind::Text { text: text.into(), cursor: None };
            self.items.push_back(Item { bytes: 0, kind });
        }
    }

    /// Where all subscriptions can go on from, if what waits is never sent.
    fn resume(&self) -> Option<Cursor> {
        let sent = self.sent?;
        let waiting = self.waiting();
        if waiting.begins {
            return None;
        }
        // One news may be several messages, of which not all were sent.
        Some(waiting.before.filter(|before| before.seq < sent.seq).unwrap_or(sent))
    }

    fn waiting(&self) -> Waiting {
        Waiting::of(&self.items, self.folding.unwrap_or_default())
    }

    /// A subscription begins.
    pub(super) fn begin(&mut self, sub: &Subscription, gvr: &str, beginning: Beginning, cursor: Cursor) {
        let kind = match beginning {
            Beginning::Now => {
                let text = Message::Bookmark(Bookmark { cursor }).text();
                self.push_text(text, Some(cursor), cursor);
                return;
            }
            Beginning::Snapshot(objects) => {
                if self.phase == Phase::Open {
                    self.snapshots.push(Snapshot::new(sub, gvr, objects, cursor));
                    self.is_patient = true;
                }
                Kind::Snapshot(sub.id.clone())
            }
            Beginning::Replay(news) => {
                // Who is closed before the first goes on from where it came.
                let first = news.first().map_or(cursor, |news| before(news.cursor));
                Kind::Replay(Box::new(Replay {
                    id: sub.id.clone(),
                    filter: sub.filter.clone(),
                    mode: sub.mode,
                    slow: sub.slow,
                    label: Arc::clone(&sub.label),
                    news: news.into(),
                    cursor,
                    at: first,
                }))
            }
        };
        self.push(Item { bytes: ITSELF, kind }, cursor);
    }

    /// Drops what waits for a subscription alone.
    pub(super) fn forget(&mut self, sub: &Subscription) {
        let is_its = |item: &Item| match &item.kind {
            Kind::News(pending) => pending.label == sub.label,
            Kind::Snapshot(id) => *id == sub.id,
            Kind::Replay(replay) => replay.id == sub.id,
            Kind::Text { .. } => false,
        };
        let bytes = &mut self.bytes;
        self.items.retain(|item| {
            let stays = !is_its(item);
            if !stays {
                *bytes = bytes.saturating_sub(item.bytes);
            }
            stays
        });
        self.snapshots.retain(|snapshot| snapshot.id != sub.id);
        self.relax();
    }

    /// What could not be folded was sent: what waits now is something else.
    fn relax(&mut self) {
        if self.bytes <= self.budget / 2 {
            self.fold_above = self.budget / 2;
        }
        if self.snapshots.is_empty() && self.bytes <= self.budget {
            self.is_patient = false;
        }
    }

    /// Passes over what the first that waits does not select, so much and no more. Whether the next is found at once, then:
    /// else, others have their turn before this is called again.
    pub(super) fn advance(&mut self) -> bool {
        match self.items.front_mut().map(|item| &mut item.kind) {
            Some(Kind::Snapshot(id)) => snapshot(&mut self.snapshots, id).is_none_or(Snapshot::advance),
            Some(Kind::Replay(replay)) => replay.advance(),
            Some(Kind::Text { .. } | Kind::News(_)) | None => true,
        }
    }

    /// The next that is to be sent.
    pub(super) fn pop(&mut self) -> Option<Outgoing> {
        let part = match &mut self.items.front_mut()?.kind {
            Kind::Snapshot(id) => snapshot(&mut self.snapshots, id).and_then(Snapshot::next),
            Kind::Replay(replay) => replay.next(),
            Kind::Text { .. } | Kind::News(_) => None,
        };
        self.since_read = 0;
        if part.is_some() {
            return part;
        }
        let item = self.items.pop_front()?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        let outgoing = match item.kind {
            Kind::Text { text, cursor } => {
                self.sent = cursor.or(self.sent);
                Outgoing::Text(text)
            }
            Kind::News(pending) => {
                self.sent = Some(pending.news.cursor);
                Outgoing::News(pending)
            }
            Kind::Snapshot(id) => self.end(&id)?,
            Kind::Replay(replay) => {
                let cursor = replay.cursor;
                self.sent = Some(cursor);
                Outgoing::Text(Message::Bookmark(Bookmark { cursor }).text().into())
            }
        };
        self.relax();
        Some(outgoing)
    }

    /// The end of a snapshot. What was told meanwhile of those whose turn had come waits behind it: it stands before that.
    fn end(&mut self, id: &str) -> Option<Outgoing> {
        let at = self.snapshots.iter().position(|snapshot| snapshot.id == id)?;
        let snapshot = self.snapshots.swap_remove(at);
        let later = |one: Cursor, two: Cursor| if one.seq < two.seq { two } else { one };
        let mut cursor = self.sent.map_or(snapshot.cursor(), |sent| later(sent, snapshot.cursor()));
        let waits = self.items.iter().find_map(|item| match &item.kind {
            Kind::Text { cursor, .. } => *cursor,
            Kind::News(pending) => Some(before(pending.news.cursor)),
            Kind::Replay(replay) => Some(replay.at),
            Kind::Snapshot(_) => None,
        });
        if let Some(waits) = waits.filter(|waits| waits.seq < cursor.seq) {
            cursor = waits;
        }
        self.sent = Some(cursor);
        Some(snapshot.end(cursor))
    }

    pub(super) fn take_fold(&mut self) -> Option<Fold> {
        if self.phase != Phase::Open || self.folding.is_some() || self.bytes <= self.fold_above {
            return None;
        }
        self.folding = Some(self.waiting());
        Some(Fold::new(std::mem::take(&mut self.items)))
    }

    pub(super) fn put_fold(&mut self, fold: Fold) -> u64 {
        self.folding = None;
        if self.phase != Phase::Open {
            // Everything was dropped meanwhile, and that was said.
            return 0;
        }
        let Fold { mut items, before, after, folded } = fold;
        self.bytes = (self.bytes + after).saturating_sub(before);
        items.append(&mut self.items);
        self.items = items;
        // What could not be folded now cannot soon.
        self.fold_above = (self.budget / 2).max(self.bytes + self.budget / 8);
        folded
    }
}

fn snapshot<'s>(snapshots: &'s mut [Snapshot], id: &str) -> Option<&'s mut Snapshot> {
    snapshots.iter_mut().find(|snapshot| snapshot.id == id)
}

/// The place before one.
fn before(cursor: Cursor) -> Cursor {
    Cursor { seq: cursor.seq.saturating_sub(1), ..cursor }
}

impl Waiting {
    fn of(items: &VecDeque<Item>, others: Self) -> Self {
        let mut waiting = others;
        for item in items {
            let place = match &item.kind {
                Kind::News(pending) => {
                    waiting.changes += 1;
                    before(pending.news.cursor)
                }
                Kind::Replay(replay) => {
                    waiting.changes += replay.news.len();
                    replay.at
                }
                Kind::Snapshot(_) => {
                    waiting.begins = true;
                    continue;
                }
                Kind::Text { .. } => continue,
            };
            if waiting.before.is_none_or(|before| place.seq < before.seq) {
                waiting.before = Some(place);
            }
        }
        waiting
    }
}

impl Replay {
    fn advance(&mut self) -> bool {
        for _ in 0..AT_ONCE {
            let is_seen = match self.news.front().map(|news| &news.tale) {
                Some(Tale::Change(told)) => told.seen_by(&self.filter).is_some(),
                Some(Tale::Begun) => false,
                Some(Tale::Gap { .. }) | None => true,
            };
            if is_seen {
                return true;
            }
            if let Some(passed) = self.news.pop_front() {
                self.at = passed.cursor;
            }
        }
        false
    }

    fn next(&mut self) -> Option<Outgoing> {
        while let Some(news) = self.news.pop_front() {
            self.at = news.cursor;
            let seen = match &news.tale {
                Tale::Change(told) => {
                    told.seen_by(&self.filter).map(|seen| (seen, told.form(self.mode, seen)))
                }
                Tale::Gap { .. } => Some((Seen::AsIs, Form::default())),
                Tale::Begun => None,
            };
            if let Some((seen, form)) = seen {
                let (mode, slow, label) = (self.mode, self.slow, Arc::clone(&self.label));
                return Some(Outgoing::News(Pending { news, seen, mode, slow, label, form, merged: None }));
            }
        }
        None
    }
}
