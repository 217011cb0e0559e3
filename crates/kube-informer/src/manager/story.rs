//! What is told of one object: the difference between what was told and what there is.
//!
//! Whatever informer the object is seen through, and however often that changes, the story goes on where it was: nothing is
//! added twice, no deletion is left out, and another UID is another object. Of several changes the last is told. No clock,
//! no I/O.

use super::request::WatchEvent;
use crate::object::Object;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What was told last, and handled.
    told: Option<Object>,
    /// What was said to be there, and not handled: something may have been done for it.
    tried: Option<Object>,
    /// What there is.
    seen: Option<Object>,
    /// Whether it is known what there is.
    began: bool,
    /// Whether what there is was there when it all began.
    initial: bool,
    /// What is gone, as it was last, and whether the server said so.
    gone: Option<(Object, bool)>,
    /// Whether it is to be said again.
    again: bool,
}

impl Story {
    /// This is what there is now. With it, what was said of a deletion, if that is how it is known. Whether that is news.
    pub(super) fn observe(&mut self, now: Option<Object>, deleted: Option<(&Object, bool)>) -> bool {
        let is_first = !std::mem::replace(&mut self.began, true);
        let is_other =
            |one: &Object, two: &Option<Object>| two.as_ref().is_none_or(|two| one.uid() != two.uid());
        match &self.seen {
            Some(seen) if is_other(seen, &now) => {
                // What was told must be told to be gone; what came after it, and went unseen, need not.
                let heard = self.told.as_ref().or(self.tried.as_ref());
                let is_told = self
                    .gone
                    .as_ref()
                    .is_some_and(|(gone, _)| heard.is_some_and(|heard| heard.uid() == gone.uid()));
                if !is_told {
                    let said = deleted.filter(|(last, _)| last.uid() == seen.uid());
                    let (last, certain) = said.unwrap_or((seen, false));
                    self.gone = Some((last.clone(), certain));
                }
                self.initial = false;
            }
            Some(seen) => {
                if now.as_ref().is_some_and(|now| !is_change(seen, now)) {
                    return false;
                }
            }
            None if now.is_none() => return false,
            None => self.initial = is_first,
        }
        self.seen = now;
        true
    }

    /// It is to be said again; whether there is something to say.
    pub(super) fn again(&mut self) -> bool {
        self.again = self.seen.is_some();
        self.again
    }

    /// What is to be told next.
    pub(super) fn next(&self) -> Option<WatchEvent> {
        let is_same = |tried: &Object| self.seen.as_ref().is_some_and(|seen| seen.uid() == tried.uid());
        if self.told.is_none()
            && let Some(tried) = self.tried.as_ref().filter(|tried| !is_same(tried))
        {
            return Some(self.deletion(tried));
        }
        match (&self.told, &self.seen) {
            (None, None) => None,
            (None, Some(new)) => Some(WatchEvent::Added { new: new.clone(), initial: self.initial }),
            (Some(old), Some(new)) if old.uid() == new.uid() => {
                let (is_change, old, new) = (is_change(old, new), old.clone(), new.clone());
                (is_change || self.again).then_some(WatchEvent::Updated { old, new, resync: !is_change })
            }
            (Some(told), _) => Some(self.deletion(told)),
        }
    }

    fn deletion(&self, told: &Object) -> WatchEvent {
        let said = self.gone.as_ref().filter(|(gone, _)| gone.uid() == told.uid());
        let (last, certain) = said.map_or((told, false), |(last, certain)| (last, *certain));
        WatchEvent::Deleted { last: last.clone(), certain }
    }

    /// That was told, and not handled: half of it may have been done.
    pub(super) fn failed(&mut self, event: WatchEvent) {
        if let WatchEvent::Added { new, .. } = event {
            self.tried = Some(new);
        }
    }

    /// That was told, and handled.
    pub(super) fn told(&mut self, event: WatchEvent) {
        self.again = false;
        self.tried = None;
        match event {
            WatchEvent::Added { new, .. } | WatchEvent::Updated { new, .. } => self.told = Some(new),
            WatchEvent::Deleted { last, .. } => {
                self.told = None;
                self.gone.take_if(|(gone, _)| gone.uid() == last.uid());
            }
        }
    }

    /// What there is.
    pub(super) fn seen(&self) -> Option<&Object> {
        self.seen.as_ref()
    }
}

/// Whether two states of one object differ.
fn is_change(old: &Object, new: &Object) -> bool {
    !old.is_same(new) && (old.version() != new.version() || old.version().is_empty())
}

#[cfg(test)]
mod tests;
