//! What is held is packed, with the dictionary in use.
//!
//! What a watch tells of is kept as it came at first: whoever is told looks at it now, and much of it is replaced soon. The
//! last of it stays so, up to a number of bytes. Past that, the older half of it is set apart; what has lasted of that is packed,
//! some at a time, in an order in which those that are alike stand together.
//!
//! Dictionaries are trained out of the first objects, and again when objects have changed much: what was made before is
//! kept larger than it need be, and keeps an old dictionary alive. It is made anew.
//!
//! All of this is done a few at a time, when the watch has nothing to say, or has been talking for long: what comes does not wait
//! for all of it.

use std::collections::VecDeque;

use super::transport::Transport;
use super::{Delta, Gone, Reflector, Sink};
use crate::object::{Object, WeakObject};

/// So many objects, or of so many bytes, are packed in a turn, and so many made anew: that takes a millisecond each.
const AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 256 << 10;

/// After so many events it is looked whether there is another dictionary, and some objects are made anew even if the
/// watch has more to say.
const EVENTS: u32 = 64;

/// So many bytes of what came last are kept as they came, and half of them once more until they are packed. The more are set apart at a
/// time, the more of them have a base in common, which is unpacked once for all of them; but to keep more than this costs as much
/// as it saves: what comes then lies in memory that was not in use just before.
const FRESH: usize = 1 << 20;

/// What one object takes at least, whatever its bytes are.
const BESIDE: usize = 512;

/// What is to be looked at.
#[derive(Default)]
pub(super) struct Upkeep {
    /// What came last, as it came, and its bytes. What was followed by another version is not kept for this.
    fresh: VecDeque<(WeakObject, usize)>,
    fresh_bytes: usize,
    /// What was set apart, to be packed.
    lasting: std::vec::IntoIter<WeakObject>,
    /// What is to be made anew.
    left: std::vec::IntoIter<Object>,
    /// The numbers of the dictionaries that everything else was made with.
    dictionaries: Dictionaries,
    /// Events since something was done.
    events: u32,
    /// Events since it was looked whether there is another dictionary.
    unlooked: u32,
}

/// By encoding.
pub(super) type Dictionaries = [u32; 2];

impl Upkeep {
    /// Whether there is something to do when there is time.
    pub(super) fn is_waiting(&self) -> bool {
        !self.left.as_slice().is_empty() || !self.lasting.as_slice().is_empty()
    }

    /// Whether it has waited for long enough.
    pub(super) fn is_due(&self) -> bool {
        self.is_waiting() && self.events >= EVENTS || self.is_full()
    }

    /// Whether more came than stays as it came.
    fn is_full(&self) -> bool {
        self.fresh_bytes > FRESH
    }

    /// An object came, and is kept as it came.
    pub(super) fn came(&mut self, object: &Object) {
        let bytes = object.size().0 + BESIDE;
        self.fresh_bytes += bytes;
        self.fresh.push_back((object.downgrade(), bytes));
    }

    /// Sets the older half of what came apart, where all that was set apart before is packed.
    fn set_apart(&mut self) {
        let mut apart = Vec::new();
        while self.fresh_bytes > FRESH / 2
            && let Some((object, bytes)) = self.fresh.pop_front()
        {
            self.fresh_bytes = self.fresh_bytes.saturating_sub(bytes);
            apart.extend(object.upgrade().map(|object| (object.kinship(), object.downgrade())));
        }
        // Those without kin stay in their order: what came one after the other may become kin.
        apart.sort_by_key(|(kinship, _)| *kinship);
        self.lasting = apart.into_iter().map(|(_, object)| object).collect::<Vec<_>>().into_iter();
    }

    /// Everything was listed: these objects, some of them before the dictionary that there is now. `anew`: nothing of what came before
    /// is to take the place of any of them. Where a server went back, versions are given once more, and to something else.
    pub(super) fn listed(&mut self, objects: &[Object], dictionaries: Dictionaries, anew: bool) {
        if anew {
            (self.fresh, self.fresh_bytes) = (VecDeque::new(), 0);
            (self.lasting, self.left) = (Vec::new().into_iter(), Vec::new().into_iter());
        }
        // What is left of before is mostly still held as it was: a list of the same brings nothing new.
        if std::mem::replace(&mut self.dictionaries, dictionaries) != dictionaries {
            let all: Vec<Object> = objects.to_vec();
            self.left = all.into_iter();
        }
        self.events = 0;
    }
}

impl<T: Transport, S: Sink> Reflector<T, S> {
    /// An event came.
    pub(super) fn upkeep_event(&mut self) {
        self.upkeep.events += 1;
        self.upkeep.unlooked += 1;
        if self.upkeep.unlooked >= EVENTS {
            self.look_for_dictionary();
        }
    }

    /// Where there is another dictionary, and nothing is left that was made with those before, all is to be made anew.
    fn look_for_dictionary(&mut self) {
        if !self.upkeep.left.as_slice().is_empty() {
            return;
        }
        self.upkeep.unlooked = 0;
        let dictionaries = self.intakes.dictionaries();
        if dictionaries != self.upkeep.dictionaries {
            self.upkeep.dictionaries = dictionaries;
            self.upkeep.left = self.sink.held().into_iter();
        }
    }

    /// Packs some objects, or makes some anew.
    pub(super) async fn upkeep_step(&mut self) -> Result<(), Gone> {
        self.upkeep.events = 0;
        if self.upkeep.is_full() && self.upkeep.lasting.as_slice().is_empty() {
            self.upkeep.set_apart();
            return Ok(());
        }
        let (mut smaller, mut room, packs) =
            (Vec::new(), Room::default(), !self.upkeep.lasting.as_slice().is_empty());
        while room.is_left()
            && let Some(object) = self.upkeep.lasting.next()
        {
            if let Some(object) = object.upgrade().filter(|object| self.lasts(object)) {
                room.take(&object);
                smaller.extend(self.intakes.of(object.encoding()).pack(&object));
            }
        }
        // However much is to be packed, some are made anew: what keeps an old dictionary alive goes.
        let mut room = Room::default();
        while room.is_left()
            && let Some(object) = self.upkeep.left.next()
        {
            room.take(&object);
            smaller.extend(self.intakes.of(object.encoding()).repack(&object));
        }
        if packs {
            // To pack is to sample, too: no further event may come to see what came of that.
            self.look_for_dictionary();
        }
        if !self.upkeep.is_waiting() {
            // The old objects' memory, which the rest of the vectors is.
            (self.upkeep.left, self.upkeep.lasting) = (Vec::new().into_iter(), Vec::new().into_iter());
        }
        if !smaller.is_empty() {
            self.sink.deliver(Delta::Exchange(smaller)).await?;
        }
        // The reflector is not alone.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Whether an object is what is known under its key, or will be: what was told of it last may wait to be applied.
    fn lasts(&self, object: &Object) -> bool {
        let now = self.sink.current(object.key());
        now.is_none_or(|now| now.is_same(object) || now.version() < object.version())
    }
}

/// What may still be done in a turn.
struct Room {
    objects: usize,
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { objects: AT_ONCE, bytes: BYTES_AT_ONCE }
    }
}

impl Room {
    fn is_left(&self) -> bool {
        self.objects > 0 && self.bytes > 0
    }

    fn take(&mut self, object: &Object) {
        self.objects = self.objects.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(object.size().1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Codec, Encoding, Rules};
    use crate::object::Intake;

    #[test]
    fn what_came_is_not_kept_for_being_packed_later() {
        let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default()).unwrap();
        let object = Intake::new(codec).object(br#"{"metadata":{"name":"a"}}"#).unwrap();
        let mut upkeep = Upkeep::default();
        upkeep.came(&object);
        assert!(upkeep.fresh[0].0.upgrade().is_some_and(|fresh| fresh.is_same(&object)));
        drop(object);
        assert!(upkeep.fresh[0].0.upgrade().is_none());
    }

    fn config_map(name: &str, bytes: usize) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default()).unwrap();
        let (metadata, text) = (format!(r#"{{"name":"{name}"}}"#), "a".repeat(bytes));
        let document = format!(r#"{{"metadata":{metadata},"data":{{"text":"{text}"}}}}"#);
        Intake::new(codec).object(document.as_bytes()).unwrap()
    }

    #[test]
    fn a_turn_is_over_after_some_objects_or_bytes() {
        let turn = |object: &Object| {
            let mut room = Room::default();
            (0..).take_while(|_| room.is_left().then(|| room.take(object)).is_some()).count()
        };
        assert_eq!(turn(&config_map("small", 10)), AT_ONCE);
        assert_eq!(turn(&config_map("large", BYTES_AT_ONCE / 4)), 4);
        assert_eq!(turn(&config_map("huge", 2 * BYTES_AT_ONCE)), 1);
    }

    #[test]
    fn what_is_left_outlasts_a_list_unless_that_is_of_another_dictionary_or_anew() {
        let (old, new) = (config_map("old", 10), config_map("new", 10));
        let left_after = |dictionaries: Dictionaries, anew: bool| {
            let mut upkeep = Upkeep { left: vec![old.clone()].into_iter(), ..Upkeep::default() };
            upkeep.listed(std::slice::from_ref(&new), dictionaries, anew);
            upkeep.left.map(|object| object.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(left_after([0, 0], false), ["old"]);
        assert_eq!(left_after([0, 0], true), [""; 0]);
        assert_eq!(left_after([0, 1], false), ["new"]);
        assert_eq!(left_after([0, 1], true), ["new"]);
    }

    #[test]
    fn what_came_before_versions_went_back_is_not_packed() {
        let mut upkeep = Upkeep::default();
        let objects: Vec<Object> = (0..8).map(|at| config_map(&at.to_string(), FRESH / 4)).collect();
        objects.iter().for_each(|object| upkeep.came(object));
        assert!(upkeep.is_due());
        upkeep.set_apart();
        assert!(upkeep.is_waiting() && !upkeep.fresh.is_empty());
        upkeep.listed(&[], Dictionaries::default(), false);
        assert!(upkeep.is_waiting() && !upkeep.fresh.is_empty());
        upkeep.listed(&[], Dictionaries::default(), true);
        assert!(!upkeep.is_waiting() && upkeep.fresh.is_empty() && upkeep.fresh_bytes == 0);
    }
}
