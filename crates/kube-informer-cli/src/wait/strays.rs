//! Objects that are not chosen any more, and are there all the same: each is watched by its name, as its deletion counts.
//!
//! - An object is watched once, however often it leaves the selection and comes back.
//! - [`MOST`] are watched at a time. Those that are not waited for any more make room for others.
//! - Of one that was let go, nothing is believed any more that was on its way.

use std::collections::BTreeMap;

use kube_informer::informer::Informer;

use super::follow::Source;
use super::tracker::Id;
use crate::target::MOST_NAMES;

/// As many as can be asked for by name: each of them has a watch of its own, too.
pub(super) const MOST: usize = MOST_NAMES;

/// See the module.
#[derive(Debug)]
pub(super) struct Strays<W = Informer> {
    /// How many there were so far: none has the place of another.
    count: usize,
    /// Each with its source, and with who watches it.
    watched: BTreeMap<Id, (usize, W)>,
}

/// There are too many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl<W> Default for Strays<W> {
    fn default() -> Self {
        Self { count: 0, watched: BTreeMap::new() }
    }
}

impl<W> Strays<W> {
    /// Who watches an object.
    pub(super) fn of(&self, id: &Id) -> Option<&W> {
        self.watched.get(id).map(|(_, watcher)| watcher)
    }

    /// Who watches the object of a source; nobody, where it was let go.
    pub(super) fn watcher(&self, source: &Source) -> Option<&W> {
        let (index, watcher) = self.watched.get(source.only.as_ref()?)?;
        (*index == source.index).then_some(watcher)
    }

    /// Watches another object, as a source that comes after the first ones.
    ///
    /// # Errors
    ///
    /// Where there are too many already.
    pub(super) fn add(&mut self, first: usize, id: Id, watcher: W) -> Result<Source, TooMany> {
        if self.watched.len() >= MOST {
            return Err(TooMany);
        }
        let source = Source { index: first + self.count, target: id.target, only: Some(id.clone()) };
        self.count += 1;
        self.watched.insert(id, (source.index, watcher));
        Ok(source)
    }

    /// Takes away those that are not waited for: their sources, and who watches them.
    pub(super) fn let_go(&mut self, is_waited_for: impl Fn(&Id) -> bool) -> Vec<(usize, W)> {
        let over: Vec<Id> = self.watched.keys().filter(|id| !is_waited_for(id)).cloned().collect();
        over.iter().filter_map(|id| self.watched.remove(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Id {
        Id { target: 1, namespace: "shop".to_owned(), name: format!("web-{number}") }
    }

    #[test]
    fn there_are_only_so_many_and_who_is_not_waited_for_makes_room() {
        let mut strays = Strays::default();
        for number in 0..MOST {
            let source = strays.add(3, id(number), number).unwrap();
            assert_eq!((source.index, source.target, source.only), (3 + number, 1, Some(id(number))));
        }
        assert_eq!(strays.add(3, id(MOST), MOST), Err(TooMany));
        assert_eq!((strays.of(&id(7)), strays.of(&id(MOST))), (Some(&7), None));
        assert_eq!(strays.let_go(|stray| *stray != id(7)), [(10, 7)]);
        assert_eq!(strays.of(&id(7)), None);
        assert_eq!(strays.add(3, id(MOST), MOST).unwrap().index, 3 + MOST);
    }

    #[test]
    fn what_was_let_go_is_not_taken_for_what_has_its_name_later() {
        let mut strays = Strays::default();
        let before = strays.add(3, id(0), "before").unwrap();
        assert_eq!(strays.watcher(&before), Some(&"before"));
        strays.let_go(|_| false);
        assert_eq!(strays.watcher(&before), None);
        let after = strays.add(3, id(0), "after").unwrap();
        assert_eq!((strays.watcher(&before), strays.watcher(&after)), (None, Some(&"after")));
    }
}
