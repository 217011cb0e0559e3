//! What was told of one informer's objects, and what there is to tell.
//!
//! Each state of an object is told once. After a gap, what is different is told from what was told last: so whoever has
//! heard everything knows what there is, however much was left out.

use std::collections::BTreeMap;

use kube_informer::informer::Event;
use kube_informer::object::{Object, ObjectKey};

use crate::reading::in_order;

/// Something to tell.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Added(Object),
    Modified {
        old: Object,
        new: Object,
    },
    Deleted {
        last: Object,
        /// Whether the server said so; else it was found missing.
        certain: bool,
    },
    /// Changes were left out.
    Gap {
        missed: u64,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What was told last of each object that is there.
    known: BTreeMap<ObjectKey, Object>,
}

impl Story {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What was told, in the order in which servers list it.
    pub(super) fn objects(&self) -> Vec<Object> {
        let mut objects: Vec<Object> = self.known.values().cloned().collect();
        objects.sort_by(in_order);
        objects
    }

    /// What an event has to say that was not told before.
    pub(super) fn hear(&mut self, event: Event) -> Vec<Told> {
        match event {
            Event::Added { new, .. } => self.now(new),
            // What is only said again is known.
            Event::Updated { new, .. } => self.now(new),
            Event::Deleted { last, certain } => {
                let known = self.known.remove(&last.key().to_key());
                // What nobody heard of need not be missed.
                if known.is_some() { vec![Told::Deleted { last, certain }] } else { Vec::new() }
            }
            Event::Gap { missed, now } => {
                let mut told = vec![Told::Gap { missed }];
                self.known.retain(|key, last| {
                    let is_there = now.get(&key.namespace, &key.name).is_some();
                    if !is_there {
                        told.push(Told::Deleted { last: last.clone(), certain: false });
                    }
                    is_there
                });
                for new in now.list().iter() {
                    told.extend(self.now(new));
                }
                told
            }
            _ => Vec::new(),
        }
    }

    /// An object is there, in some state.
    fn now(&mut self, new: Object) -> Vec<Told> {
        let old = self.known.insert(new.key().to_key(), new.clone());
        match old {
            None => vec![Told::Added(new)],
            Some(old) if old.uid() != new.uid() => {
                vec![Told::Deleted { last: old, certain: false }, Told::Added(new)]
            }
            Some(old) if old.version() == new.version() => Vec::new(),
            Some(old) => vec![Told::Modified { old, new }],
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_informer::cache::{Change, Scopes, Stays, cache};
    use kube_informer::encoding::{Codec, Encoding, Rules};
    use kube_informer::object::Intake;

    use super::*;

    fn object(name: &str, uid: u32, version: u32) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let text = format!(
            r#"{{"metadata":{{"namespace":"a","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
        );
        Intake::new(codec).object(text.as_bytes()).unwrap()
    }

    fn said(told: &[Told]) -> Vec<String> {
        let line = |told: &Told| match told {
            Told::Added(new) => format!("+{} {}", new.name(), new.version()),
            Told::Modified { old, new } => format!("~{} {}→{}", new.name(), old.version(), new.version()),
            Told::Deleted { last, certain } => format!("-{} {} {certain}", last.name(), last.version()),
            Told::Gap { missed } => format!("gap {missed}"),
        };
        told.iter().map(line).collect()
    }

    fn added(name: &str, uid: u32, version: u32) -> Event {
        Event::Added { new: object(name, uid, version), initial: true }
    }

    #[test]
    fn each_state_is_told_once() {
        let mut story = Story::default();
        assert_eq!(said(&story.hear(added("x", 1, 1))), ["+x 1"]);
        assert_eq!(said(&story.hear(added("x", 1, 1))), Vec::<String>::new());
        assert_eq!(said(&story.hear(added("x", 1, 3))), ["~x 1→3"]);
        let (old, new) = (object("x", 1, 3), object("x", 1, 4));
        assert_eq!(said(&story.hear(Event::Updated { old, new, resync: false })), ["~x 3→4"]);
        let last = object("x", 1, 5);
        assert_eq!(said(&story.hear(Event::Deleted { last: last.clone(), certain: true })), ["-x 5 true"]);
        assert_eq!(said(&story.hear(Event::Deleted { last, certain: true })), Vec::<String>::new());
    }

    #[test]
    fn who_took_a_name_is_another_object() {
        let mut story = Story::default();
        story.hear(added("x", 1, 1));
        assert_eq!(said(&story.hear(added("x", 2, 2))), ["-x 1 false", "+x 2"]);
    }

    #[test]
    fn after_a_gap_what_is_different_is_told() {
        let mut story = Story::default();
        for event in [added("same", 1, 1), added("changed", 2, 1), added("gone", 3, 1)] {
            story.hear(event);
        }
        let (mut writer, cache) = cache(Scopes::all());
        let now = [object("same", 1, 1), object("changed", 2, 7), object("new", 4, 8)];
        let stays = Stays::Nothing;
        writer.apply([Change::Replace {
            scope: None,
            objects: now.to_vec(),
            stays,
            version: "9".into(),
            went_back: false,
        }]);
        let gap = Event::Gap { missed: 12, now: cache.snapshot() };
        assert_eq!(said(&story.hear(gap)), ["gap 12", "-gone 1 false", "~changed 1→7", "+new 8"]);
        // What follows is known already.
        for event in [added("same", 1, 1), added("changed", 2, 7), added("new", 4, 8)] {
            assert!(story.hear(event).is_empty());
        }
    }
}
