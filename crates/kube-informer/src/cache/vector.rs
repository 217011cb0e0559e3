//! A list with numbered places that costs nothing to copy, and may have holes: a radix tree whose nodes are shared
//! between its copies.
//!
//! - A clone is O(1), and stays as it is whatever becomes of the original.
//! - Places that hold nothing take no memory where all their neighbours are empty too.
//! - What two copies do not share is found without looking at what they do ([`Vector::changed`]).
//!
//! Every level is a type of its own: a node does not say what is below it, and to read a place is to follow one pointer for
//! each level, and nothing else.

use std::hint::black_box;
use std::sync::Arc;

/// A persistent list of numbered places: a tree of the height that its highest number needs, or needed.
#[derive(Clone, Default)]
pub(super) enum Vector<T> {
    #[default]
    Empty,
    H0(Arc<Leaf<T>>),
    H1(Arc<L1<T>>),
    H2(Arc<L2<T>>),
    H3(Arc<L3<T>>),
    H4(Arc<L4<T>>),
    H5(Arc<L5<T>>),
    H6(Arc<L6<T>>),
    H7(Arc<L7<T>>),
}

type L1<T> = Above<Leaf<T>>;
type L2<T> = Above<L1<T>>;
type L3<T> = Above<L2<T>>;
type L4<T> = Above<L3<T>>;
type L5<T> = Above<L4<T>>;
type L6<T> = Above<L5<T>>;
type L7<T> = Above<L6<T>>;

#[derive(Clone)]
pub(super) struct Leaf<T>([Option<T>; WIDTH]);

/// A node above others.
#[derive(Clone)]
pub(super) struct Above<N>([Option<Arc<N>>; WIDTH]);

const BITS: u32 = 4;
/// To copy a node is to count all that it holds: few are better here.
const WIDTH: usize = 1 << BITS;

/// What stands somewhere else, and is counted there.
pub(super) trait Counted {
    /// Reads the count.
    fn count(&self) -> usize;
}

impl<T: ?Sized> Counted for Arc<T> {
    fn count(&self) -> usize {
        Self::strong_count(self)
    }
}

/// A node, and what is below it.
pub(super) trait Node: Clone {
    type Item;
    /// How many levels are below it.
    const LEVEL: u32;

    fn empty() -> Self;
    fn is_empty(&self) -> bool;
    fn leaf(&self, number: u32) -> Option<&Leaf<Self::Item>>;
    fn get_mut(&mut self, number: u32) -> Option<&mut Self::Item>;
    fn put(&mut self, number: u32, item: Self::Item) -> Option<Self::Item>;
    /// Reads the counts of what it holds.
    fn touch(&self) -> usize;
    fn take(&mut self, number: u32) -> Option<Self::Item>;
    /// Calls with the places that two nodes do not share, in order. The first of them has the number `base`.
    fn compare(a: Option<&Self>, b: Option<&Self>, base: u32, each: &mut impl Each<Self::Item>);
}

/// Is told of a place in two copies.
pub(super) trait Each<T>: FnMut(u32, Option<&T>, Option<&T>) {}

impl<T, F: FnMut(u32, Option<&T>, Option<&T>)> Each<T> for F {}

/// Where a number leads at a level; 0 is the leaves.
fn digit(number: u32, level: u32) -> usize {
    (number >> (BITS * level)) as usize & (WIDTH - 1)
}

/// The node, to be changed: a copy, if others have it.
///
/// A copy counts each of the items once more, and to count is to wait for the memory of one after the other. To read all
/// counts first is to wait for all at once.
fn own<N: Node>(node: &mut Arc<N>) -> &mut N {
    if Arc::strong_count(node) > 1 {
        black_box(node.touch());
    }
    Arc::make_mut(node)
}

impl<T: Clone + Counted> Node for Leaf<T> {
    type Item = T;
    const LEVEL: u32 = 0;

    fn empty() -> Self {
        Self([const { None }; WIDTH])
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    fn leaf(&self, _: u32) -> Option<&Self> {
        Some(self)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.0.get_mut(digit(number, 0))?.as_mut()
    }

    fn put(&mut self, number: u32, item: T) -> Option<T> {
        self.0.get_mut(digit(number, 0))?.replace(item)
    }

    fn touch(&self) -> usize {
        self.0.iter().flatten().map(Counted::count).sum()
    }

    fn take(&mut self, number: u32) -> Option<T> {
        self.0.get_mut(digit(number, 0))?.take()
    }

    fn compare(a: Option<&Self>, b: Option<&Self>, base: u32, each: &mut impl Each<T>) {
        for (at, step) in (0..WIDTH).zip(0_u32..) {
            let (a, b) = (a.and_then(|a| a.0.get(at)), b.and_then(|b| b.0.get(at)));
            each(base | step, a.and_then(Option::as_ref), b.and_then(Option::as_ref));
        }
    }
}

impl<T> Leaf<T> {
    fn get(&self, number: u32) -> Option<&T> {
        self.0.get(digit(number, 0))?.as_ref()
    }
}

impl<N: Node> Above<N> {
    fn over(first: Arc<N>) -> Arc<Self> {
        let mut node = Self::empty();
        node.0[0] = Some(first).filter(|first| !first.is_empty());
        Arc::new(node)
    }
}

impl<N: Node> Node for Above<N> {
    type Item = N::Item;
    const LEVEL: u32 = N::LEVEL + 1;

    fn empty() -> Self {
        Self([const { None }; WIDTH])
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    fn leaf(&self, number: u32) -> Option<&Leaf<N::Item>> {
        self.0.get(digit(number, Self::LEVEL))?.as_ref()?.leaf(number)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut N::Item> {
        own(self.0.get_mut(digit(number, Self::LEVEL))?.as_mut()?).get_mut(number)
    }

    fn put(&mut self, number: u32, item: N::Item) -> Option<N::Item> {
        let below = self.0.get_mut(digit(number, Self::LEVEL))?;
        own(below.get_or_insert_with(|| Arc::new(N::empty()))).put(number, item)
    }

    fn touch(&self) -> usize {
        self.0.iter().flatten().map(Counted::count).sum()
    }

    fn take(&mut self, number: u32) -> Option<N::Item> {
        let below = self.0.get_mut(digit(number, Self::LEVEL))?;
        let node = own(below.as_mut()?);
        let taken = node.take(number);
        if node.is_empty() {
            *below = None;
        }
        taken
    }

    fn compare(a: Option<&Self>, b: Option<&Self>, base: u32, each: &mut impl Each<N::Item>) {
        for (at, step) in (0..WIDTH).zip(0_u32..) {
            let (a, b) = (a.and_then(|a| a.0.get(at)), b.and_then(|b| b.0.get(at)));
            let number = base | step << (BITS * Self::LEVEL);
            compare(a.and_then(Option::as_ref), b.and_then(Option::as_ref), number, each);
        }
    }
}

/// Does not look at what is shared.
fn compare<N: Node>(a: Option<&Arc<N>>, b: Option<&Arc<N>>, base: u32, each: &mut impl Each<N::Item>) {
    let is_same = match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    if !is_same {
        N::compare(a.map(|node| &**node), b.map(|node| &**node), base, each);
    }
}

/// The same for the root of every height; `None` if there is none.
macro_rules! with_root {
    ($vector:expr, $root:ident => $what:expr) => {
        match $vector {
            Vector::Empty => None,
            Vector::H0($root) => $what,
            Vector::H1($root) => $what,
            Vector::H2($root) => $what,
            Vector::H3($root) => $what,
            Vector::H4($root) => $what,
            Vector::H5($root) => $what,
            Vector::H6($root) => $what,
            Vector::H7($root) => $what,
        }
    };
}

/// Remembers the leaf that it read last.
pub(super) struct Reader<'a, T> {
    vector: &'a Vector<T>,
    /// Which one.
    leaf: Option<(u32, &'a Leaf<T>)>,
}

impl<'a, T: Clone + Counted> Reader<'a, T> {
    pub(super) fn get(&mut self, number: u32) -> Option<&'a T> {
        let which = number >> BITS;
        let leaf = match self.leaf {
            Some((last, leaf)) if last == which => leaf,
            _ => {
                let leaf = self.vector.leaf(number)?;
                self.leaf = Some((which, leaf));
                leaf
            }
        };
        leaf.get(number)
    }
}

impl<T: Clone + Counted> Vector<T> {
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.leaf(number)?.get(number)
    }

    /// Reads many places, of which many are neighbours.
    pub(super) fn reader(&self) -> Reader<'_, T> {
        Reader { vector: self, leaf: None }
    }

    fn leaf(&self, number: u32) -> Option<&Leaf<T>> {
        with_root!(self, root => if reaches(root, number) { root.leaf(number) } else { None })
    }

    /// Puts an item at a place, and returns what was there.
    pub(super) fn set(&mut self, number: u32, item: T) -> Option<T> {
        if matches!(self, Self::Empty) {
            *self = Self::H0(Arc::new(Leaf::empty()));
        }
        while with_root!(self, root => (!reaches(root, number)).then_some(())).is_some() {
            *self = std::mem::take(self).higher();
        }
        with_root!(self, root => own(root).put(number, item))
    }

    /// What is at a place, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        // Nothing is copied for what is not there.
        self.get(number)?;
        with_root!(self, root => own(root).get_mut(number))
    }

    /// Takes what is at a place.
    pub(super) fn take(&mut self, number: u32) -> Option<T> {
        self.get(number)?;
        let taken = with_root!(self, root => own(root).take(number));
        if with_root!(self, root => root.is_empty().then_some(())).is_some() {
            *self = Self::Empty;
        }
        taken
    }

    /// The places that differ between two copies, by a comparison of items. What they share is not looked at.
    pub(super) fn changed(&self, other: &Self, same: impl Fn(&T, &T) -> bool) -> Vec<u32> {
        let (mut a, mut b) = (self.clone(), other.clone());
        while a.height() < b.height() {
            a = a.higher();
        }
        while b.height() < a.height() {
            b = b.higher();
        }
        let mut changed = Vec::new();
        let mut each = |number: u32, a: Option<&T>, b: Option<&T>| {
            let equal = match (a, b) {
                (Some(a), Some(b)) => same(a, b),
                (None, None) => true,
                _ => false,
            };
            if !equal {
                changed.push(number);
            }
        };
        match (&a, &b) {
            (Self::H0(a), Self::H0(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H1(a), Self::H1(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H2(a), Self::H2(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H3(a), Self::H3(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H4(a), Self::H4(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H5(a), Self::H5(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H6(a), Self::H6(b)) => compare(Some(a), Some(b), 0, &mut each),
            (Self::H7(a), Self::H7(b)) => compare(Some(a), Some(b), 0, &mut each),
            // Only two that are empty are left.
            _ => {}
        }
        changed
    }

    fn height(&self) -> Option<u32> {
        with_root!(self, root => Some(level(root)))
    }

    /// The same with one level more. The highest has a place for every number.
    fn higher(self) -> Self {
        match self {
            Self::Empty => Self::H0(Arc::new(Leaf::empty())),
            Self::H0(root) => Self::H1(Above::over(root)),
            Self::H1(root) => Self::H2(Above::over(root)),
            Self::H2(root) => Self::H3(Above::over(root)),
            Self::H3(root) => Self::H4(Above::over(root)),
            Self::H4(root) => Self::H5(Above::over(root)),
            Self::H5(root) => Self::H6(Above::over(root)),
            Self::H6(root) => Self::H7(Above::over(root)),
            Self::H7(root) => Self::H7(root),
        }
    }
}

fn level<N: Node>(_: &Arc<N>) -> u32 {
    N::LEVEL
}

/// Whether a tree with this root has a place for a number.
fn reaches<N: Node>(_: &Arc<N>, number: u32) -> bool {
    u64::from(number) >> (BITS * (N::LEVEL + 1)) == 0
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    impl Counted for u8 {
        fn count(&self) -> usize {
            1
        }
    }

    impl Counted for u32 {
        fn count(&self) -> usize {
            1
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_vector_is_a_map_of_numbers_and_its_copies_do_not_change(
            steps in proptest::collection::vec((0_u32..3000, any::<u8>()), 1..600),
            far in any::<u32>(),
        ) {
            let mut model: BTreeMap<u32, u8> = BTreeMap::new();
            let mut vector = Vector::default();
            let mut copies = Vec::new();
            for (at, (number, value)) in steps.into_iter().enumerate() {
                let number = if value == 77 { far } else { number };
                if value % 3 == 0 {
                    prop_assert_eq!(vector.take(number), model.remove(&number));
                } else if value % 3 == 1 && let Some(there) = vector.get_mut(number) {
                    prop_assert_eq!(Some(std::mem::replace(there, value)), model.insert(number, value));
                } else {
                    prop_assert_eq!(vector.set(number, value), model.insert(number, value));
                }
                if at % 100 == 0 {
                    copies.push((vector.clone(), model.clone()));
                }
            }
            for (copy, old) in &copies {
                let mut reader = copy.reader();
                for number in (0..3000).chain([far, u32::MAX, 0]) {
                    prop_assert_eq!(copy.get(number), old.get(&number));
                    prop_assert_eq!(reader.get(number), old.get(&number));
                }
                let both: BTreeSet<u32> = old.keys().chain(model.keys()).copied().collect();
                let differ: Vec<u32> =
                    both.into_iter().filter(|number| old.get(number) != model.get(number)).collect();
                prop_assert_eq!(copy.changed(&vector, |a, b| a == b), differ);
            }
            for number in model.keys().copied().collect::<Vec<_>>() {
                vector.take(number);
            }
            prop_assert!(matches!(vector, Vector::Empty));
        }
    }

    #[test]
    fn what_is_shared_is_not_compared() {
        let mut vector = Vector::default();
        for number in 0..10_000 {
            vector.set(number, number);
        }
        let mut other = vector.clone();
        other.set(5000, 1);
        other.take(77);
        let compared = std::cell::Cell::new(0);
        let changed = vector.changed(&other, |a, b| {
            compared.set(compared.get() + 1);
            a == b
        });
        assert_eq!(changed, [77, 5000]);
        assert!(compared.get() <= 2 * WIDTH, "{}", compared.get());
    }

    #[test]
    fn every_number_has_a_place() {
        let mut vector = Vector::default();
        for number in [0, 15, 16, u32::MAX, u32::MAX - 1, 1 << 28] {
            assert_eq!(vector.set(number, number), None);
            assert_eq!(vector.get(number), Some(&number));
        }
        assert_eq!(vector.get(0), Some(&0));
    }
}
