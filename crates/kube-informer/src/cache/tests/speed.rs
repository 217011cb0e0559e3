//! What it costs, beside a map of the standard library in a lock. Printed, not judged:
//! `cargo test --release -p kube-informer --lib cache::tests::speed -- --nocapture`.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::time::Instant;

use super::*;
use crate::encoding::ObjectKey;

const OBJECTS: usize = if cfg!(debug_assertions) { 4_000 } else { 200_000 };
const BATCH: usize = 1_000;
const PER_NAMESPACE: usize = 1_000;

#[test]
fn the_cost_beside_a_map_in_a_lock_is_printed() {
    let mut maker = Maker::new();
    let (first, second) = (objects(&mut maker, 1), objects(&mut maker, 2));
    let mixed = mixed(OBJECTS);
    println!("{OBJECTS} objects, {PER_NAMESPACE} in each namespace, batches of {BATCH}");

    let before = resident();
    let map: RwLock<HashMap<ObjectKey, Object>> = RwLock::default();
    timed("map: insert", OBJECTS, || {
        for object in &first {
            map.write().unwrap().insert(object.key().to_key(), object.clone());
        }
    });
    kept("map", before);

    // All are filled before any is changed, and none is dropped: memory that is free again would hide what they take.
    let mut caches = Vec::new();
    for (title, indexes) in [
        ("bare", vec![]),
        ("two indexes", vec![Index::label("app"), Index::owner()]),
        ("pointer index", vec![Index::pointer("/spec/nodeName").unwrap()]),
    ] {
        let before = resident();
        let (mut writer, cache) = cache(Scopes::all());
        indexes.into_iter().for_each(|index| cache.add_index(index).unwrap());
        timed(&format!("{title}: insert in order"), OBJECTS, || {
            for batch in first.chunks(BATCH) {
                writer.apply(batch.iter().cloned().map(Change::Put));
            }
        });
        kept(title, before);
        caches.push((title, writer, cache));
    }
    timed("map: update", OBJECTS, || {
        for &at in &mixed {
            map.write().unwrap().insert(second[at].key().to_key(), second[at].clone());
        }
    });
    timed("map: get", OBJECTS, || {
        for &at in &mixed {
            black_box(map.read().unwrap().get(&first[at].key().to_key()).cloned());
        }
    });
    timed("map: everything", OBJECTS, || {
        map.read().unwrap().values().for_each(|object| drop(black_box(object.clone())));
    });
    timed("map: one namespace, by looking at all", PER_NAMESPACE, || {
        let map = map.read().unwrap();
        map.values()
            .filter(|object| object.namespace() == "n1")
            .for_each(|object| drop(black_box(object.clone())));
    });

    let (mut other, _cache) = cache(Scopes::all());
    timed("bare: insert, mixed", OBJECTS, || {
        for batch in mixed.chunks(BATCH) {
            other.apply(batch.iter().map(|&at| Change::Put(first[at].clone())));
        }
    });
    let few = OBJECTS / 10;
    timed("bare: update, one by one", few, || {
        for &at in mixed.iter().take(few) {
            other.apply([Change::Put(second[at].clone())]);
        }
    });

    for (title, writer, cache) in &mut caches {
        timed(&format!("{title}: update, mixed"), OBJECTS, || {
            for batch in mixed.chunks(BATCH) {
                writer.apply(batch.iter().map(|&at| Change::Put(second[at].clone())));
            }
        });
        timed(&format!("{title}: the same list again"), OBJECTS, || {
            writer.apply([list(second.clone(), 3)]);
        });
        timed(&format!("{title}: snapshot"), OBJECTS, || {
            (0..OBJECTS).for_each(|_| drop(black_box(cache.snapshot())));
        });
        timed(&format!("{title}: get"), OBJECTS, || {
            for &at in &mixed {
                assert!(black_box(cache.get(first[at].namespace(), first[at].name())).is_some());
            }
        });
        timed(&format!("{title}: get, the same hundred"), OBJECTS, || {
            for at in 0..OBJECTS {
                assert!(black_box(cache.get("n1", first[PER_NAMESPACE + at % 100].name())).is_some());
            }
        });
        timed(&format!("{title}: one namespace"), PER_NAMESPACE, || {
            assert_eq!(cache.list().namespace("n1").into_iter().map(black_box).count(), PER_NAMESPACE);
        });
        timed(&format!("{title}: labels in one namespace"), PER_NAMESPACE / 20, || {
            let query = cache.list().namespace("n1").labels("app=app-1").unwrap();
            assert_eq!(query.into_iter().map(black_box).count(), PER_NAMESPACE / 20);
        });
        timed(&format!("{title}: everything"), OBJECTS, || {
            assert_eq!(cache.list().into_iter().map(black_box).count(), OBJECTS);
        });
    }
}

/// Objects in the order of a list, three of each owner.
fn objects(maker: &mut Maker, version: u64) -> Vec<Object> {
    let object = |at: usize| {
        let (namespace, place) = (format!("n{}", at / PER_NAMESPACE), at % PER_NAMESPACE);
        let name = format!("web-6d4b75cb6d-{place:05}");
        let uid = |number: usize| format!("7b1f0c3e-5a1d-4f0e-9d0a-{number:012x}");
        let (app, node) = (format!("app-{}", place % 20), format!("node-{}", at % 1000));
        maker.make(&Made {
            namespace: &namespace,
            name: &name,
            uid: &uid(at),
            version,
            labels: &[("app", &app), ("tier", "front")],
            owners: &[&uid(OBJECTS + at / 3)],
            node: Some(&node),
        })
    };
    (0..OBJECTS).map(object).collect()
}

/// All places in a mixed order.
fn mixed(count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    let mut state = 1_u64;
    for at in (1..count).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        places.swap(at, (state >> 33) as usize % (at + 1));
    }
    places
}

fn timed(title: &str, items: usize, call: impl FnOnce()) {
    let start = Instant::now();
    call();
    println!("{title:>42}: {:>9.3?} each", start.elapsed() / items as u32);
}

fn kept(title: &str, before: Option<usize>) {
    if let (Some(before), Some(after)) = (before, resident()) {
        let each = after.saturating_sub(before) / OBJECTS;
        println!("{title:>42}: about {each} bytes for each object beside the object");
    }
}

/// What of this process is in memory, where that can be told.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}
