//! A sorted map that costs nothing to copy: a B+ tree whose nodes are shared between its copies.
//!
//! - A clone is O(1), and stays as it is whatever becomes of the original.
//! - A change copies the nodes on its way that another copy still holds, and changes the others in place: a batch of
//!   changes between two copies copies each node at most once.
//! - Every subtree knows its size: the place of a key, and the key at a place, are found in O(log n).
//!
//! The order is not the keys' own: whoever looks for something says how a key compares to it (a probe, as for
//! `binary_search_by`). Keys may be numbers whose order is known to their owner alone. All probes of one tree must agree.

use std::cmp::Ordering;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// A persistent sorted map. No entry takes no memory, one entry no allocation.
#[derive(Clone, Default)]
pub(super) enum Tree<K, V = ()> {
    #[default]
    Empty,
    One((K, V)),
    Many {
        len: u32,
        root: Arc<Node<K, V>>,
    },
}

/// All leaves are equally deep. No node is empty.
pub(super) enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Branch(Vec<Child<K, V>>),
}

#[derive(Clone)]
pub(super) struct Child<K, V> {
    /// The first key below.
    first: K,
    /// How many entries there are below.
    len: u32,
    node: Arc<Node<K, V>>,
}

/// What became of an insertion.
enum Inserted<K, V> {
    Replaced(V),
    Added,
    /// Added, and the node has become two: this is the one behind it.
    Split(Child<K, V>),
}

/// Nodes grow by so many places: memory that is set aside and not used is bounded by it.
const STEP: usize = 8;
/// Copying a branch touches all its children; 32 keep the tree low and the copy short.
const BRANCH: usize = 32;

impl<K: Clone, V: Clone> Tree<K, V> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Many { len, .. } => *len as usize,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// The entry that the probe is equal to.
    pub(super) fn get(&self, probe: impl Fn(&K) -> Ordering) -> Option<&(K, V)> {
        let mut node = match self {
            Self::Empty => return None,
            Self::One(entry) => return probe(&entry.0).is_eq().then_some(entry),
            Self::Many { root, .. } => &**root,
        };
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(key, _)| probe(key)).ok()?;
                    return entries.get(at);
                }
                Node::Branch(children) => node = &children.get(child_of(children, &probe))?.node,
            }
        }
    }

    /// The value of the entry that the probe is equal to, to be changed.
    pub(super) fn get_mut(&mut self, probe: impl Fn(&K) -> Ordering) -> Option<&mut V> {
        // Nothing is copied for what is not there.
        self.get(&probe)?;
        let mut node = match self {
            Self::Empty => return None,
            Self::One((_, value)) => return Some(value),
            Self::Many { root, .. } => Arc::make_mut(root),
        };
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(key, _)| probe(key)).ok()?;
                    return entries.get_mut(at).map(|(_, value)| value);
                }
                Node::Branch(children) => {
                    let at = child_of(children, &probe);
                    node = Arc::make_mut(&mut children.get_mut(at)?.node);
                }
            }
        }
    }

    /// Adds an entry, or replaces the value of the one that is there.
    pub(super) fn insert(&mut self, key: K, value: V, probe: impl Fn(&K) -> Ordering) -> Option<V> {
        if let Self::One((held, old)) = self {
            if probe(held).is_eq() {
                return Some(mem::replace(old, value));
            }
            let entry = (held.clone(), old.clone());
            *self = Self::Many { len: 1, root: Arc::new(Node::Leaf(vec![entry])) };
        }
        match self {
            Self::Empty | Self::One(_) => *self = Self::One((key, value)),
            Self::Many { len, root } => {
                match Arc::make_mut(root).insert(key, value, &probe) {
                    Inserted::Replaced(old) => return Some(old),
                    Inserted::Added => {}
                    Inserted::Split(behind) => {
                        let before = Child::of(Arc::clone(root));
                        *root = Arc::new(Node::Branch(before.into_iter().chain([behind]).collect()));
                    }
                }
                *len += 1;
            }
        }
        None
    }

    /// Takes the entry that the probe is equal to.
    pub(super) fn remove(&mut self, probe: impl Fn(&K) -> Ordering) -> Option<(K, V)> {
        let removed = self.get(&probe)?.clone();
        if let Self::Many { len, root } = self {
            Arc::make_mut(root).remove(&probe);
            *len -= 1;
            // A branch with one child is a level for nothing.
            while let Node::Branch(children) = &**root
                && let [only] = children.as_slice()
            {
                *root = Arc::clone(&only.node);
            }
            if *len > 1 {
                return Some(removed);
            }
            if let Node::Leaf(entries) = &**root
                && let Some(last) = entries.first()
            {
                *self = Self::One(last.clone());
                return Some(removed);
            }
        }
        *self = Self::Empty;
        Some(removed)
    }

    /// How many entries come before what the probe looks for.
    pub(super) fn rank(&self, probe: impl Fn(&K) -> Ordering) -> usize {
        let mut node = match self {
            Self::Empty => return 0,
            Self::One((key, _)) => return usize::from(probe(key).is_lt()),
            Self::Many { root, .. } => &**root,
        };
        let mut before = 0;
        loop {
            match node {
                Node::Leaf(entries) => {
                    return before + entries.partition_point(|(key, _)| probe(key).is_lt());
                }
                Node::Branch(children) => {
                    // The last child that begins before it: later ones have nothing that does.
                    let at = children.partition_point(|child| probe(&child.first).is_lt()).saturating_sub(1);
                    before += children.iter().take(at).map(|child| child.len as usize).sum::<usize>();
                    let Some(child) = children.get(at) else { return before };
                    node = &child.node;
                }
            }
        }
    }

    /// The entry at a place.
    pub(super) fn at(&self, mut at: usize) -> Option<&(K, V)> {
        let mut node = match self {
            Self::Empty => return None,
            Self::One(entry) => return (at == 0).then_some(entry),
            Self::Many { root, .. } => &**root,
        };
        loop {
            match node {
                Node::Leaf(entries) => return entries.get(at),
                Node::Branch(children) => node = &children.get(step_to(children, &mut at))?.node,
            }
        }
    }

    /// The entries at these places, in order. The iterator holds what it reads, and needs nothing else to live.
    pub(super) fn iter(&self, places: Range<usize>) -> Iter<K, V> {
        let places = places.start..places.end.min(self.len());
        let mut iter = Iter { one: None, above: Vec::new(), leaf: None, at: 0, left: places.len() };
        match self {
            _ if places.is_empty() => {}
            Self::Empty => {}
            Self::One(entry) => iter.one = Some(entry.clone()),
            Self::Many { root, .. } => iter.descend(Arc::clone(root), places.start),
        }
        iter
    }
}

/// The child in which a key is, if it is anywhere: the last one that does not begin behind it.
fn child_of<K, V>(children: &[Child<K, V>], probe: &impl Fn(&K) -> Ordering) -> usize {
    children.partition_point(|child| probe(&child.first).is_le()).saturating_sub(1)
}

/// The place of a key in a leaf, or where it would be.
fn place_of<K, V>(entries: &[(K, V)], probe: &impl Fn(&K) -> Ordering) -> Result<usize, usize> {
    match entries.last() {
        Some((last, _)) if probe(last).is_lt() => Err(entries.len()),
        _ => entries.binary_search_by(|(key, _)| probe(key)),
    }
}

/// The child with a place in it; the place becomes one within the child.
fn step_to<K, V>(children: &[Child<K, V>], at: &mut usize) -> usize {
    for (child, Child { len, .. }) in children.iter().enumerate() {
        let len = *len as usize;
        if *at < len {
            return child;
        }
        *at -= len;
    }
    children.len()
}

impl<K: Clone, V: Clone> Child<K, V> {
    fn of(node: Arc<Node<K, V>>) -> Option<Self> {
        Some(Self { first: node.first()?.clone(), len: node.len(), node })
    }

    /// To be called after what is below has changed.
    fn refresh(&mut self) {
        self.len = self.node.len();
        if let Some(first) = self.node.first() {
            self.first = first.clone();
        }
    }
}

impl<K: Clone, V: Clone> Node<K, V> {
    /// How many entries a leaf has at most. Where entries hold other memory, copying a leaf touches all of that.
    const LEAF: usize = if size_of::<(K, V)>() <= 8 { 64 } else { 16 };

    fn first(&self) -> Option<&K> {
        match self {
            Self::Leaf(entries) => entries.first().map(|(key, _)| key),
            Self::Branch(children) => children.first().map(|child| &child.first),
        }
    }

    /// How many entries there are below.
    fn len(&self) -> u32 {
        match self {
            Self::Leaf(entries) => entries.len() as u32,
            Self::Branch(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    fn insert(&mut self, key: K, value: V, probe: &impl Fn(&K) -> Ordering) -> Inserted<K, V> {
        match self {
            Self::Leaf(entries) => match place_of(entries, probe) {
                Ok(at) => match entries.get_mut(at) {
                    Some((_, held)) => Inserted::Replaced(mem::replace(held, value)),
                    None => Inserted::Added,
                },
                Err(at) => match put(entries, at, (key, value), Self::LEAF) {
                    None => Inserted::Added,
                    Some(behind) => split(Self::Leaf(behind)),
                },
            },
            Self::Branch(children) => {
                // Lists come in order: what is new is mostly the last.
                let is_in_last = children.last().is_some_and(|child| probe(&child.first).is_le());
                let at = if is_in_last { children.len() - 1 } else { child_of(children, probe) };
                let Some(child) = children.get_mut(at) else { return Inserted::Added };
                let inserted = Arc::make_mut(&mut child.node).insert(key, value, probe);
                child.refresh();
                let Inserted::Split(behind) = inserted else { return inserted };
                match put(children, at + 1, behind, BRANCH) {
                    None => Inserted::Added,
                    Some(behind) => split(Self::Branch(behind)),
                }
            }
        }
    }

    /// Removes the entry, which is there. The node may be empty afterwards.
    fn remove(&mut self, probe: &impl Fn(&K) -> Ordering) {
        match self {
            Self::Leaf(entries) => {
                if let Ok(at) = entries.binary_search_by(|(key, _)| probe(key)) {
                    entries.remove(at);
                }
            }
            Self::Branch(children) => {
                let at = child_of(children, probe);
                let Some(child) = children.get_mut(at) else { return };
                let node = Arc::make_mut(&mut child.node);
                node.remove(probe);
                let (size, most) = node.size();
                child.refresh();
                if size == 0 {
                    children.remove(at);
                } else if size < most / 4 {
                    // A node that finds no neighbour to join has a well filled one beside it.
                    if !join(children, at) && at > 0 {
                        join(children, at - 1);
                    }
                }
            }
        }
    }

    /// How many entries or children it has, and how many it may have.
    fn size(&self) -> (usize, usize) {
        match self {
            Self::Leaf(entries) => (entries.len(), Self::LEAF),
            Self::Branch(children) => (children.len(), BRANCH),
        }
    }
}

fn split<K: Clone, V: Clone>(node: Node<K, V>) -> Inserted<K, V> {
    match Child::of(Arc::new(node)) {
        Some(child) => Inserted::Split(child),
        None => Inserted::Added,
    }
}

/// Puts an item at its place. Where there is no room for it, the items become two lists, and the second one is returned.
fn put<T>(items: &mut Vec<T>, at: usize, item: T, most: usize) -> Option<Vec<T>> {
    if items.len() < most {
        if items.len() == items.capacity() {
            items.reserve_exact(STEP.min(most - items.len()));
        }
        items.insert(at.min(items.len()), item);
        return None;
    }
    // What comes in order leaves full nodes behind.
    let middle = if at >= items.len() { items.len() } else { items.len() / 2 };
    let mut behind = Vec::with_capacity(room(items.len() - middle));
    behind.extend(items.drain(middle..));
    if at > middle || behind.is_empty() {
        behind.insert(at - middle, item);
    } else {
        items.insert(at, item);
    }
    Some(behind)
}

/// Joins a child with the one behind it, if both fit into one node.
fn join<K: Clone, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) -> bool {
    let (Some(one), Some(two)) = (children.get(at), children.get(at + 1)) else { return false };
    let ((one, most), (two, _)) = (one.node.size(), two.node.size());
    // Some room is left, or the next insertion would split it again.
    if one + two > most - most / 8 {
        return false;
    }
    let behind = children.remove(at + 1);
    let Some(child) = children.get_mut(at) else { return false };
    match (Arc::make_mut(&mut child.node), &*behind.node) {
        (Node::Leaf(entries), Node::Leaf(more)) => append(entries, more),
        (Node::Branch(children), Node::Branch(more)) => append(children, more),
        // Siblings are equally deep.
        _ => {}
    }
    child.refresh();
    true
}

/// Sets no more places aside than are needed.
fn append<T: Clone>(items: &mut Vec<T>, more: &[T]) {
    items.reserve_exact(more.len());
    items.extend_from_slice(more);
}

/// How many places are set aside for so many items and one more.
fn room(len: usize) -> usize {
    (len + 1).next_multiple_of(STEP)
}

/// A node is copied in order to be changed: there is room for one more.
impl<K: Clone, V: Clone> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        fn copy<T: Clone>(items: &[T], most: usize) -> Vec<T> {
            let mut copy = Vec::with_capacity(room(items.len()).min(most));
            copy.extend_from_slice(items);
            copy
        }
        match self {
            Self::Leaf(entries) => Self::Leaf(copy(entries, Self::LEAF)),
            Self::Branch(children) => Self::Branch(copy(children, BRANCH)),
        }
    }
}

/// The entries of a tree at the time when it was asked for them.
#[derive(Clone)]
pub(super) struct Iter<K, V = ()> {
    one: Option<(K, V)>,
    /// The branches above the leaf, each with the child that comes next.
    above: Vec<(Arc<Node<K, V>>, usize)>,
    leaf: Option<Arc<Node<K, V>>>,
    /// The next entry in the leaf.
    at: usize,
    /// How many entries are still to come.
    left: usize,
}

impl<K: Clone, V: Clone> Iter<K, V> {
    /// Goes down to the leaf with a place of this node.
    fn descend(&mut self, mut node: Arc<Node<K, V>>, mut at: usize) {
        while let Node::Branch(children) = &*node {
            let child = step_to(children, &mut at);
            let Some(below) = children.get(child).map(|child| Arc::clone(&child.node)) else { return };
            self.above.push((node, child + 1));
            node = below;
        }
        self.leaf = Some(node);
        self.at = at;
    }

    /// Goes to the next leaf.
    fn advance(&mut self) -> Option<()> {
        loop {
            let (branch, next) = self.above.last_mut()?;
            let Node::Branch(children) = &**branch else { return None };
            if let Some(child) = children.get(*next) {
                *next += 1;
                let node = Arc::clone(&child.node);
                self.descend(node, 0);
                return Some(());
            }
            self.above.pop();
        }
    }
}

impl<K: Clone, V: Clone> Iterator for Iter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.left = self.left.checked_sub(1)?;
        if let Some(one) = self.one.take() {
            return Some(one);
        }
        loop {
            if let Node::Leaf(entries) = &**self.leaf.as_ref()?
                && let Some(entry) = entries.get(self.at)
            {
                self.at += 1;
                return Some(entry.clone());
            }
            self.advance()?;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K: Clone, V: Clone> ExactSizeIterator for Iter<K, V> {}

#[cfg(test)]
mod tests;
