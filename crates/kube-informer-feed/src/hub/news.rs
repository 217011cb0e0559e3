//! One thing that is told: made once, shared by all who are told.
//!
//! What a client reads differs in two ways: in how much it wants to know, and in whether the object came into, or went out
//! of, what it selects. Each such form is written once, by whoever needs it first, for all for whom it waits then; what is a
//! client's own, the names of its subscriptions, is put before it when it is sent. Only the usual form is kept for as long as
//! the news is: others end with the last one who waits for them, so that a journal holds what it counts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use kube_informer::cache::Selector;
use kube_informer::object::Object;

use super::describe;
use crate::change::{Change, What};
use crate::journal::{Cursor, Entry};
use crate::message::{Gap, Message, Mode};

/// Tells topics apart: a resource that was given up and is followed again is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TopicId(pub(crate) u64);

/// See the module.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) cursor: Cursor,
    pub(crate) topic: TopicId,
    pub(crate) tale: Tale,
}

#[derive(Debug)]
pub(crate) enum Tale {
    /// Something happened to an object.
    Change(Box<Told>),
    /// From here on, everything is told. It has a place of its own, so that no cursor of before is as good; nobody is told.
    Begun,
    /// Not everything that happened is known.
    Gap {
        /// Up to where everything was told.
        from: Cursor,
        reason: String,
    },
}

/// A change, and its forms.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) change: Change,
    old: Option<Object>,
    new: Option<Object>,
    /// Of one that is gone, what was told last of it, where that is another version: it is selected by that.
    told_last: Option<Object>,
    /// All of it, as it is: written at once.
    usual: Bytes,
    /// Others, while somebody waits for them.
    forms: [Mutex<Weak<OnceLock<Bytes>>>; 9],
}

/// A form that somebody waits for: whoever sends it first writes it. None for the usual one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Option<Arc<OnceLock<Bytes>>>);

/// What a change is to somebody who selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Seen {
    AsIs,
    /// It was there, and is selected now.
    Entered,
    /// It is there, and is not selected any more.
    Left,
}

/// Which objects somebody wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// None are all.
    pub(crate) namespaces: BTreeSet<String>,
    pub(crate) selector: Selector,
}

impl Filter {
    fn is_everything(&self) -> bool {
        self.namespaces.is_empty() && self.selector.is_everything()
    }

    pub(crate) fn meets(&self, object: &Object) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(object.namespace()))
            && self.selector.matches(object.labels())
    }
}

impl Told {
    /// The usual form is written at once: whoever tells does it before anybody waits for it.
    pub(crate) fn new(change: Change, old: Option<Object>, new: Option<Object>) -> Self {
        let usual = write(&change, Mode::Diff, None);
        Self { change, old, new, told_last: None, usual, forms: Default::default() }
    }

    /// The same, where something else than the last state was told last of the object.
    pub(crate) fn after(self, told_last: Option<Object>) -> Self {
        Self { told_last, ..self }
    }

    /// What this is to somebody; `None` where it is nothing.
    pub(crate) fn seen_by(&self, filter: &Filter) -> Option<Seen> {
        let meets = |object: &Option<Object>| object.as_ref().is_some_and(|object| filter.meets(object));
        if self.object().is_none() {
            // Nothing is known that could be selected by.
            return filter.is_everything().then_some(Seen::AsIs);
        }
        match self.change.what {
            What::Added => meets(&self.new).then_some(Seen::AsIs),
            // Who was told of it is told of its end, also where it would not have been selected in the end.
            What::Deleted => {
                let last = self.told_last.as_ref().or(self.object());
                last.is_some_and(|last| filter.meets(last)).then_some(Seen::AsIs)
            }
            What::Modified => match (meets(&self.old), meets(&self.new)) {
                (true, true) => Some(Seen::AsIs),
                // Where it is not known what was before, it was as now.
                (false, true) if self.old.is_none() => Some(Seen::AsIs),
                (false, true) => Some(Seen::Entered),
                (true, false) => Some(Seen::Left),
                (false, false) => None,
            },
        }
    }

    /// The change as it is seen.
    pub(crate) fn change(&self, seen: Seen) -> Change {
        match (seen, &self.old, &self.new) {
            (Seen::Entered, _, Some(new)) => describe::entered(new, &self.change),
            (Seen::Left, Some(old), _) => describe::left(old, &self.change),
            _ => self.change.clone(),
        }
    }

    /// The object as it is now; `None` of one that is gone.
    pub(crate) fn now(&self) -> Option<&Object> {
        self.new.as_ref()
    }

    /// The object as it is now, or was last.
    pub(crate) fn object(&self) -> Option<&Object> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// The form for somebody who is going to be sent it.
    pub(crate) fn form(&self, mode: Mode, seen: Seen) -> Form {
        if (mode, seen) == (Mode::Diff, Seen::AsIs) {
            return Form(None);
        }
        let mode_at = match mode {
            Mode::Diff => 0,
            Mode::Full => 1,
            Mode::Notify => 2,
        };
        let seen_at = match seen {
            Seen::AsIs => 0,
            Seen::Entered => 1,
            Seen::Left => 2,
        };
        let Some(place) = self.forms.get(3 * mode_at + seen_at) else { return Form(Some(Arc::default())) };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let form = place.upgrade().unwrap_or_default();
        *place = Arc::downgrade(&form);
        Form(Some(form))
    }

    /// What is in a form: an object of JSON without its first brace.
    pub(crate) fn body(&self, form: &Form, mode: Mode, seen: Seen) -> Bytes {
        let write = || match seen {
            Seen::AsIs => write(&self.change, mode, self.object()),
            Seen::Entered | Seen::Left => write(&self.change(seen), mode, self.object()),
        };
        match &form.0 {
            Some(form) => form.get_or_init(write).clone(),
            None => self.usual.clone(),
        }
    }

    /// What a form takes, without writing it: about, where it is not the usual one.
    pub(crate) fn weight(&self, mode: Mode) -> usize {
        let usual = self.usual.len();
        match mode {
            Mode::Full => usual + self.object().map_or(0, |object| object.size().1),
            Mode::Diff | Mode::Notify => usual,
        }
    }
}

/// A change as JSON, without the first brace.
pub(crate) fn write(change: &Change, mode: Mode, object: Option<&Object>) -> Bytes {
    let text = match mode {
        Mode::Notify => serde_json::to_string(&Change { changes: Vec::new(), ..change.clone() }),
        Mode::Diff | Mode::Full => serde_json::to_string(change),
    };
    // Only maps with keys that are no strings could fail, and there are none.
    let mut text = text.unwrap_or_else(|error| {
        tracing::error!(%error, "a change cannot be written");
        "{}".to_owned()
    });
    if let Some(object) = object.filter(|_| mode == Mode::Full) {
        text.pop();
        text.push_str(r#","object":"#);
        text.push_str(&describe::whole(object));
        text.push('}');
    }
    Bytes::from(text).slice(1..)
}

/// A message about a change, out of what is written of it and whom it is for: a list of names, as JSON.
pub(crate) fn message(cursor: Cursor, subs: &str, body: &[u8]) -> String {
    // What is written here was text before.
    let body = String::from_utf8_lossy(body);
    format!(r#"{{"op":"change","cursor":"{cursor}","subs":{subs},{body}"#)
}

/// A message about a gap.
pub(crate) fn gap(cursor: Cursor, subs: Vec<String>, from: Cursor, reason: &str) -> String {
    let gap = Gap { cursor: Some(cursor), subs, from: Some(from), to: cursor, reason: reason.to_owned() };
    Message::Gap(gap).text()
}

impl Entry for Arc<News> {
    fn bytes(&self) -> usize {
        const ITSELF: usize = 512;
        match &self.tale {
            Tale::Change(told) => {
                let object = |object: &Option<Object>| object.as_ref().map_or(0, |object| object.size().0);
                let objects = object(&told.old) + object(&told.new) + object(&told.told_last);
                // The change, and what is written of it.
                ITSELF + 2 * told.weight(Mode::Diff) + objects
            }
            Tale::Gap { reason, .. } => ITSELF + reason.len(),
            Tale::Begun => ITSELF,
        }
    }
}
