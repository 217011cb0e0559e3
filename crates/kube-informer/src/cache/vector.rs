//! A list with numbered places that costs nothing to copy, and may have holes: a radix tree whose nodes are shared
//! between its copies.
//!
//! - A clone is O(1), and stays as it is whatever becomes of the original.
//! - Places that hold nothing take no memory where all their neighbours are empty too.
//! - What two copies do not share is found without looking at what they do ([`Vector::changed`]).

use std::hint::black_box;
use std::sync::Arc;

/// A persistent list of numbered places.
#[derive(Clone)]
pub(super) struct Vector<T> {
    root: Option<Node<T>>,
    /// How many levels of branches are above the leaves.
    height: u32,
}

#[derive(Clone)]
enum Node<T> {
    Leaf(Arc<[Option<T>; WIDTH]>),
    Branch(Arc<[Option<Node<T>>; WIDTH]>),
}

const BITS: u32 = 4;
/// Copying a leaf touches all that its items hold: few are better here.
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

impl<T> Counted for Node<T> {
    fn count(&self) -> usize {
        match self {
            Self::Leaf(items) => items.count(),
            Self::Branch(children) => children.count(),
        }
    }
}

/// The node, to be changed: a copy, if others have it.
///
/// A copy counts each of the items once more, and to count is to wait for the memory of one after the other. To read all
/// counts first is to wait for all at once.
fn own<T: Clone + Counted>(node: &mut Arc<[Option<T>; WIDTH]>) -> &mut [Option<T>; WIDTH] {
    if Arc::strong_count(node) > 1 {
        black_box(node.iter().flatten().map(Counted::count).sum::<usize>());
    }
    Arc::make_mut(node)
}

/// Where a number leads at a level; 0 is the leaves.
fn digit(number: u32, level: u32) -> usize {
    (u64::from(number) >> (BITS * level)) as usize & (WIDTH - 1)
}

/// Remembers the leaf that it read last.
pub(super) struct Reader<'a, T> {
    vector: &'a Vector<T>,
    /// Which one, and its items.
    leaf: Option<(u32, &'a [Option<T>; WIDTH])>,
}

impl<'a, T: Clone + Counted> Reader<'a, T> {
    pub(super) fn get(&mut self, number: u32) -> Option<&'a T> {
        let which = number >> BITS;
        let items = match self.leaf {
            Some((last, items)) if last == which => items,
            _ => {
                let items = self.vector.leaf(number)?;
                self.leaf = Some((which, items));
                items
            }
        };
        items.get(digit(number, 0))?.as_ref()
    }
}

impl<T> Default for Vector<T> {
    fn default() -> Self {
        Self { root: None, height: 0 }
    }
}

impl<T: Clone + Counted> Vector<T> {
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.leaf(number)?.get(digit(number, 0))?.as_ref()
    }

    /// Reads many places, of which many are neighbours.
    pub(super) fn reader(&self) -> Reader<'_, T> {
        Reader { vector: self, leaf: None }
    }

    fn leaf(&self, number: u32) -> Option<&[Option<T>; WIDTH]> {
        if !self.reaches(number) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        let mut level = self.height;
        loop {
            match node {
                Node::Leaf(items) => return Some(items),
                Node::Branch(children) => node = children.get(digit(number, level))?.as_ref()?,
            }
            level = level.saturating_sub(1);
        }
    }

    /// Puts an item at a place, and returns what was there.
    pub(super) fn set(&mut self, number: u32, item: T) -> Option<T> {
        if self.root.is_none() {
            self.height = 0;
        }
        while !self.reaches(number) {
            if let Some(root) = self.root.take() {
                let mut children = [const { None }; WIDTH];
                if let Some(first) = children.first_mut() {
                    *first = Some(root);
                }
                self.root = Some(Node::Branch(Arc::new(children)));
            }
            self.height += 1;
        }
        put(&mut self.root, number, self.height, item)
    }

    /// Takes what is at a place.
    pub(super) fn take(&mut self, number: u32) -> Option<T> {
        // Nothing is copied for what is not there.
        self.get(number)?;
        take(&mut self.root, number, self.height)
    }

    /// The places that differ between two copies, by a comparison of items. What they share is not looked at.
    pub(super) fn changed(&self, other: &Self, same: impl Fn(&T, &T) -> bool) -> Vec<u32> {
        let mut changed = Vec::new();
        let height = self.height.max(other.height);
        compare(
            self.root_at(height).as_ref(),
            other.root_at(height).as_ref(),
            0,
            height,
            &mut |number, a, b| {
                let equal = match (a, b) {
                    (Some(a), Some(b)) => same(a, b),
                    (None, None) => true,
                    _ => false,
                };
                if !equal {
                    changed.push(number);
                }
            },
        );
        changed
    }

    /// The root, if the tree were so high.
    fn root_at(&self, height: u32) -> Option<Node<T>> {
        let mut root = self.root.clone()?;
        for _ in self.height..height {
            let mut children = [const { None }; WIDTH];
            if let Some(first) = children.first_mut() {
                *first = Some(root);
            }
            root = Node::Branch(Arc::new(children));
        }
        Some(root)
    }

    fn reaches(&self, number: u32) -> bool {
        u64::from(number) >> (BITS * (self.height + 1)) == 0
    }
}

fn put<T: Clone + Counted>(node: &mut Option<Node<T>>, number: u32, level: u32, item: T) -> Option<T> {
    let node = node.get_or_insert_with(|| match level {
        0 => Node::Leaf(Arc::new([const { None }; WIDTH])),
        _ => Node::Branch(Arc::new([const { None }; WIDTH])),
    });
    match node {
        Node::Leaf(items) => own(items).get_mut(digit(number, 0))?.replace(item),
        Node::Branch(children) => {
            let child = own(children).get_mut(digit(number, level))?;
            put(child, number, level.saturating_sub(1), item)
        }
    }
}

fn take<T: Clone + Counted>(node: &mut Option<Node<T>>, number: u32, level: u32) -> Option<T> {
    let (taken, empty) = match node.as_mut()? {
        Node::Leaf(items) => {
            let items = own(items);
            (items.get_mut(digit(number, 0))?.take(), items.iter().all(Option::is_none))
        }
        Node::Branch(children) => {
            let children = own(children);
            let child = children.get_mut(digit(number, level))?;
            (take(child, number, level.saturating_sub(1)), children.iter().all(Option::is_none))
        }
    };
    if empty {
        *node = None;
    }
    taken
}

fn compare<T>(
    a: Option<&Node<T>>,
    b: Option<&Node<T>>,
    base: u32,
    level: u32,
    each: &mut impl FnMut(u32, Option<&T>, Option<&T>),
) {
    match (a, b) {
        (None, None) => return,
        (Some(Node::Leaf(a)), Some(Node::Leaf(b))) if Arc::ptr_eq(a, b) => return,
        (Some(Node::Branch(a)), Some(Node::Branch(b))) if Arc::ptr_eq(a, b) => return,
        _ => {}
    }
    for (at, step) in (0..WIDTH).zip(0_u32..) {
        let number = base | step << (BITS * level);
        if level == 0 {
            each(number, item(a, at), item(b, at));
        } else {
            compare(child(a, at), child(b, at), number, level - 1, each);
        }
    }
}

fn item<T>(node: Option<&Node<T>>, at: usize) -> Option<&T> {
    let Some(Node::Leaf(items)) = node else { return None };
    items.get(at)?.as_ref()
}

fn child<T>(node: Option<&Node<T>>, at: usize) -> Option<&Node<T>> {
    let Some(Node::Branch(children)) = node else { return None };
    children.get(at)?.as_ref()
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
            prop_assert!(vector.root.is_none());
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
