//! Changes of one object that wait become one.
//!
//! The first of them keeps its place: nothing that waits is overtaken, and cursors go up. What begins in between, as a
//! snapshot, is not crossed: what comes after it is not part of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::outbox::{Item, Kind, Merged, Pending};
use crate::change::Change;
use crate::hub::news::{self, Tale};
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
        let mut places: HashMap<(String, Arc<str>, Mode), usize> = HashMap::new();
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
            if pending.slow != Slow::Coalesce {
                kept.push_back(item);
                continue;
            }
            let place = (told.change.obj.uid.clone(), Arc::clone(&pending.label), pending.mode);
            let earlier = places.get(&place).and_then(|at| kept.get_mut(*at));
            match earlier.map(|earlier| earlier.absorb(pending)) {
                Some(true) => self.folded += 1,
                _ => {
                    places.insert(place, kept.len());
                    kept.push_back(item);
                }
            }
        }
        self.items = kept;
        self.after = self.items.iter().map(|item| item.bytes).sum();
        self
    }
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
        earlier.merged = Some(Box::new(Merged { change, last: Arc::clone(last_news) }));
        true
    }
}
