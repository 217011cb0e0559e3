//! Changes of one object that wait become one.
//!
//! The first of them keeps its place: nothing that waits is overtaken, and cursors go up. What begins in between, as a
//! snapshot, is not crossed: what comes after it is not part of it. Nor is another message about the same object to one of
//! the same subscriptions: each subscription is told of an object in order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::outbox::{Item, Kind, Merged, Pending};
use crate::change::Change;
use crate::hub::news::{self, Form, Tale};
use crate::message::{Mode, Slow};

/// What is being folded.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(super) items: VecDeque<Item>,
    /// What they took before, and take now.
    pub(super) before: usize,
    pub(super) after: usize,
    /// How many became part of others.
    pub(super) folded: u64,
}

impl Fold {
    pub(super) fn new(items: VecDeque<Item>) -> Self {
        let before = items.iter().map(|item| item.bytes).sum();
        Self { items, before, after: before, folded: 0 }
    }

    /// Does the work.
    pub(crate) fn run(mut self) -> Self {
        let mut kept: VecDeque<Item> = VecDeque::with_capacity(self.items.len());
        let mut places = Places::default();
        for item in self.items.drain(..) {
            let Kind::News(pending) = &item.kind else {
                if !matches!(item.kind, Kind::Text { .. }) {
                    places.clear();
                }
                kept.push_back(item);
                continue;
            };
            let Tale::Change(told) = &pending.news.tale else {
                places.clear();
                kept.push_back(item);
                continue;
            };
            let uid = told.change.obj.uid.as_str();
            let folds = pending.slow == Slow::Coalesce;
            let earlier = places.get(uid, pending).filter(|_| folds).and_then(|at| kept.get_mut(at));
            if earlier.is_some_and(|earlier| earlier.absorb(pending)) {
                self.folded += 1;
                continue;
            }
            // What comes later must not overtake this one.
            places.forget(uid, &pending.label);
            if folds {
                places.note(uid, pending, kept.len());
            }
            kept.push_back(item);
        }
        self.items = kept;
        self.after = self.items.iter().map(|item| item.bytes).sum();
        self
    }
}

/// Where changes are that others can become part of.
#[derive(Debug, Default)]
struct Places {
    by_uid: HashMap<String, Vec<Place>>,
    /// The names in labels, each read once.
    names: HashMap<Arc<str>, Arc<[String]>>,
}

#[derive(Debug)]
struct Place {
    label: Arc<str>,
    mode: Mode,
    at: usize,
}

impl Places {
    fn clear(&mut self) {
        self.by_uid.clear();
    }

    fn get(&self, uid: &str, pending: &Pending) -> Option<usize> {
        let is_it = |place: &&Place| place.label == pending.label && place.mode == pending.mode;
        self.by_uid.get(uid)?.iter().find(is_it).map(|place| place.at)
    }

    fn note(&mut self, uid: &str, pending: &Pending, at: usize) {
        let place = Place { label: Arc::clone(&pending.label), mode: pending.mode, at };
        match self.by_uid.get_mut(uid) {
            Some(places) => places.push(place),
            None => _ = self.by_uid.insert(uid.to_owned(), vec![place]),
        }
    }

    /// Nothing becomes part of earlier changes of an object that went to one of these subscriptions.
    fn forget(&mut self, uid: &str, label: &Arc<str>) {
        let Some(places) = self.by_uid.get_mut(uid) else { return };
        let names = &mut self.names;
        places.retain(|place| {
            place.label != *label && {
                let ours = read(names, label);
                !read(names, &place.label).iter().any(|name| ours.contains(name))
            }
        });
    }
}

/// The names in a label.
fn read(known: &mut HashMap<Arc<str>, Arc<[String]>>, label: &Arc<str>) -> Arc<[String]> {
    // It was written here: it can be read.
    let names = known.entry(Arc::clone(label));
    Arc::clone(names.or_insert_with(|| serde_json::from_str::<Vec<String>>(label).unwrap_or_default().into()))
}

impl Item {
    /// Makes a later change part of this one, where that can be.
    fn absorb(&mut self, later: &Pending) -> bool {
        let Kind::News(earlier) = &mut self.kind else { return false };
        let (Tale::Change(first), Tale::Change(last)) = (&earlier.news.tale, &later.news.tale) else {
            return false;
        };
        let before = match &earlier.merged {
            Some(merged) => merged.change.clone(),
            None => first.change(earlier.seen),
        };
        let change = match &later.merged {
            Some(merged) => merged.change.clone(),
            None => last.change(later.seen),
        };
        let Some(change) = Change::merge(&before, &change) else { return false };
        let last_news = later.merged.as_ref().map_or(&later.news, |merged| &merged.last);
        let object = match &last_news.tale {
            Tale::Change(told) => told.object().map_or(0, |object| object.size().1),
            Tale::Gap { .. } | Tale::Begun => 0,
        };
        let weight = news::write(&change, Mode::Diff, None).len();
        self.bytes = weight + if earlier.mode == Mode::Full { object } else { 0 } + 96;
        // What was written of it alone is not sent.
        earlier.form = Form::default();
        earlier.merged = Some(Box::new(Merged { change, last: Arc::clone(last_news) }));
        true
    }
}
