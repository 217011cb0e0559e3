//! Two differences, one after the other, as one: from the oldest old to the newest new.

use super::diff::{self, Delta};
use super::patch;

/// Differences as one.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) deltas: Vec<Delta>,
    /// How many could not be put together, because the value that they belong to was cut.
    pub(super) lost: usize,
}

/// What `earlier` and then `later` do, at once. In either, no path leads on from another.
pub(super) fn merge(earlier: Vec<Delta>, later: Vec<Delta>) -> Merged {
    let mut merged = Merged::default();
    let mut alone = vec![true; later.len()];
    // For each of the later ones, those earlier ones that it covers.
    let mut covered: Vec<Vec<&Delta>> = vec![Vec::new(); later.len()];
    for first in &earlier {
        if let Some(at) = later.iter().position(|then| first.path.starts_with(&then.path)) {
            if let Some(covered) = covered.get_mut(at) {
                covered.push(first);
            }
            continue;
        }
        let within = |then: &Delta| then.path.starts_with(&first.path);
        let finer: Vec<&Delta> = later.iter().filter(|then| within(then)).collect();
        alone.iter_mut().zip(&later).filter(|(_, then)| within(then)).for_each(|(alone, _)| *alone = false);
        let new = first.new.as_ref().filter(|_| !finer.is_empty());
        let whole = new.and_then(|new| patch::apply(new, first.path.len(), &finer));
        match whole {
            Some(new) => merged.push(&Delta { new: Some(new), ..first.clone() }),
            None => {
                merged.lost += finer.len();
                merged.deltas.push(first.clone());
            }
        }
    }
    for ((then, covered), _) in later.iter().zip(covered).zip(alone).filter(|(_, alone)| *alone) {
        match covered.as_slice() {
            [] => merged.deltas.push(then.clone()),
            [same] if same.path == then.path => {
                merged.push(&Delta { old: same.old.clone(), ..then.clone() });
            }
            finer => {
                let whole = then.old.as_ref().and_then(|old| patch::undo(old, then.path.len(), finer));
                merged.lost += if whole.is_none() { finer.len() } else { 0 };
                let old = whole.or_else(|| then.old.clone());
                merged.push(&Delta { old, ..then.clone() });
            }
        }
    }
    merged
}

impl Merged {
    /// What is different still, as finely as it would have been seen in the first place.
    fn push(&mut self, delta: &Delta) {
        let mut place = delta.path.clone();
        diff::at(&mut place, delta.old.as_ref(), delta.new.as_ref(), &mut self.deltas);
    }
}
