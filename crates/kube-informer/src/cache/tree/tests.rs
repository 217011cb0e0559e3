//! The tree beside a sorted map of the standard library.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Entries that hold memory make small leaves, plain ones large leaves: both are tried.
type Small = Tree<u32, Arc<str>>;
type Large = Tree<u32>;

fn probe(wanted: u32) -> impl Fn(&u32) -> Ordering {
    move |key| key.cmp(&wanted)
}

/// Checks what every tree must be, and that it has these keys.
fn check<V: Clone>(tree: &Tree<u32, V>, expected: &[u32]) {
    fn below<V: Clone>(node: &Node<u32, V>, root: bool) -> (usize, usize) {
        let (size, most) = node.size();
        assert!(size <= most, "{size} of {most}");
        assert!(size >= if root { 2 } else { 1 });
        match node {
            Node::Leaf(entries) => {
                assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
                assert!(entries.capacity() <= Node::<u32, V>::LEAF.max(STEP), "{}", entries.capacity());
                (1, entries.len())
            }
            Node::Branch(children) => {
                let mut depths = Vec::new();
                let mut total = 0;
                for child in children {
                    let (depth, len) = below(&child.node, false);
                    assert_eq!(child.len as usize, len);
                    assert_eq!(Some(&child.first), child.node.first());
                    depths.push(depth);
                    total += len;
                }
                assert!(depths.windows(2).all(|pair| pair[0] == pair[1]), "{depths:?}");
                (depths[0] + 1, total)
            }
        }
    }
    if let Tree::Many { len, root } = tree {
        assert_eq!(below(root, true).1, *len as usize);
    }
    assert_eq!(tree.len(), expected.len());
    assert_eq!(tree.is_empty(), expected.is_empty());
    let all: Vec<u32> = tree.iter(0..usize::MAX).map(|(key, _)| key).collect();
    assert_eq!(all, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 48 } else { 400 }, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_a_sorted_map_and_its_copies_do_not_change(
        steps in proptest::collection::vec((0_u32..600, 0_u8..8), 1..1500),
    ) {
        let mut model: BTreeMap<u32, Arc<str>> = BTreeMap::new();
        let (mut small, mut large) = (Small::Empty, Large::Empty);
        let mut copies = Vec::new();
        // Growing first, shrinking later.
        let half = steps.len() / 2;
        for (at, (key, action)) in steps.into_iter().enumerate() {
            let value: Arc<str> = format!("{at}").into();
            let removes = if at < half { action == 0 } else { action < 5 };
            if removes {
                let expected = model.remove(&key);
                prop_assert_eq!(small.remove(probe(key)), expected.clone().map(|value| (key, value)));
                prop_assert_eq!(large.remove(probe(key)).is_some(), expected.is_some());
            } else if action == 7 {
                let held = model.get_mut(&key);
                let found = small.get_mut(probe(key));
                prop_assert_eq!(&found, &held);
                if let (Some(found), Some(held)) = (found, held) {
                    (*found, *held) = (value.clone(), value);
                }
            } else {
                let expected = model.insert(key, value.clone());
                prop_assert_eq!(small.insert(key, value, probe(key)), expected.clone());
                prop_assert_eq!(large.insert(key, (), probe(key)).is_some(), expected.is_some());
            }
            prop_assert_eq!(small.get(probe(key)).map(|(_, value)| value), model.get(&key));
            if at % 200 == 0 {
                copies.push((small.clone(), large.clone(), model.clone()));
            }
        }
        copies.push((small, large, model));
        for (small, large, model) in copies {
            let keys: Vec<u32> = model.keys().copied().collect();
            check(&small, &keys);
            check(&large, &keys);
            let entries: Vec<_> = small.iter(0..usize::MAX).collect();
            prop_assert_eq!(entries, model.into_iter().collect::<Vec<_>>());
            for wanted in 0..600 {
                let rank = keys.partition_point(|&key| key < wanted);
                prop_assert_eq!(large.rank(probe(wanted)), rank);
                prop_assert_eq!(small.rank(probe(wanted)), rank);
            }
            for from in (0..=keys.len()).step_by(7) {
                let to = (from + 100).min(keys.len());
                let part = large.iter(from..to);
                prop_assert_eq!(part.len(), to - from);
                prop_assert_eq!(part.map(|(key, ())| key).collect::<Vec<_>>(), &keys[from..to]);
                prop_assert_eq!(small.at(from).map(|(key, _)| key), keys.get(from));
            }
        }
    }
}

#[test]
fn what_comes_in_order_leaves_full_leaves() {
    let mut tree = Large::Empty;
    for key in 0..10_000 {
        tree.insert(key, (), probe(key));
    }
    check(&tree, &(0..10_000).collect::<Vec<_>>());
    fn leaves<K, V>(node: &Node<K, V>) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Branch(children) => children.iter().map(|child| leaves(&child.node)).sum(),
        }
    }
    let Tree::Many { root, .. } = &tree else { panic!("many") };
    assert_eq!(leaves(root), 10_000_usize.div_ceil(64));
}

#[test]
fn a_change_copies_only_its_way() {
    let mut tree = Large::Empty;
    for key in 0..100_000 {
        tree.insert(2 * key, (), probe(2 * key));
    }
    let copy = tree.clone();
    tree.remove(probe(70_000));
    fn nodes<K, V>(node: &Arc<Node<K, V>>, out: &mut Vec<*const Node<K, V>>) {
        out.push(Arc::as_ptr(node));
        if let Node::Branch(children) = &**node {
            children.iter().for_each(|child| nodes(&child.node, out));
        }
    }
    let all = |tree: &Large| {
        let mut out = Vec::new();
        if let Tree::Many { root, .. } = tree {
            nodes(root, &mut out);
        }
        out
    };
    let (before, after) = (all(&copy), all(&tree));
    let new = after.iter().filter(|node| !before.contains(node)).count();
    // One a level.
    assert!(new <= 4, "{new} of {}", after.len());
}

#[test]
fn a_small_tree_is_two_words() {
    assert!(size_of::<Large>() <= 16);
}

#[test]
fn what_comes_in_order_finds_its_place_with_few_questions() {
    let (mut tree, asked) = (Tree::<u32>::default(), std::cell::Cell::new(0_u32));
    for number in 0..10_000_u32 {
        tree.insert(number, (), |key| {
            asked.set(asked.get() + 1);
            key.cmp(&number)
        });
    }
    assert_eq!(tree.len(), 10_000);
    assert!(asked.get() < 40_000, "asked {} times for 10,000 entries", asked.get());
}
