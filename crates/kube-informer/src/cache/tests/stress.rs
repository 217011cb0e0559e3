//! Readers on other threads while changes are made.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use super::*;

/// While a batch is being applied, which an index here makes take its time, another thread reads what there was before it.
#[test]
fn promise_08_reads_do_not_wait_for_a_batch() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    writer.apply([list(vec![maker.pod("a", 1)], 1)]);
    let (found, finds) = mpsc::channel();
    let reader = cache.clone();
    let index = Index::object("slow", move |object: &Object| {
        if object.version().number() == Some(2) {
            let (reader, (read, reads)) = (reader.clone(), mpsc::channel());
            thread::spawn(move || {
                let one = reader.get("n", "a").map(|found| found.version().to_string());
                let _ = read.send((one, keys(reader.list()), reader.snapshot().len()));
            });
            // Whoever waits for the batch never gets here in time: it ends after this.
            found.send(reads.recv_timeout(Duration::from_secs(30)).ok()).unwrap();
        }
        Ok::<_, Infallible>(vec![])
    });
    cache.add_index(index).unwrap();
    writer.apply([Change::Put(maker.pod("a", 2)), Change::Put(maker.pod("b", 3))]);
    assert_eq!(finds.try_recv().unwrap(), Some((Some("1".to_owned()), vec!["n/a".to_owned()], 1)));
    assert_eq!(keys(cache.list()), ["n/a", "n/b"]);
}

/// Every state of the writer is one round: all objects of a round have its number as label and as version. A state in
/// which objects, indexes and versions disagree would show two rounds at once.
#[test]
fn readers_see_whole_states_while_changes_are_made() {
    const ROUNDS: u64 = 60;
    const READERS: usize = 3;
    let (mut writer, cache) = cache(Scopes::all());
    cache.add_index(Index::label("round")).unwrap();
    cache
        .add_index(Index::object("again", |object: &Object| {
            Ok::<_, Infallible>(object.labels().get("round").map(str::to_owned).into_iter().collect())
        }))
        .unwrap();
    let mut maker = Maker::new();
    // How many objects there are changes from round to round: some come, some go.
    let size = |round: u64| 40 + (round * 13 % 30) as usize;
    let mut round = |round: u64| -> Vec<Object> {
        let label = round.to_string();
        let object = |at: usize| {
            let (namespace, name) = (format!("n{}", at % 3), format!("p{at}"));
            maker.make(&Made {
                namespace: &namespace,
                name: &name,
                uid: &name,
                version: round,
                labels: &[("round", &label)],
                ..Made::default()
            })
        };
        (0..size(round)).map(object).collect()
    };
    let rounds: Vec<_> = (1..=ROUNDS).map(&mut round).collect();

    let (done, start) = (AtomicBool::new(false), Barrier::new(READERS + 1));
    thread::scope(|scope| {
        for reader in 0..READERS {
            let (cache, done, start) = (cache.clone(), &done, &start);
            scope.spawn(move || {
                start.wait();
                let (mut generation, mut last) = (0, 0);
                // One more look after the last change.
                let mut is_last = false;
                while !is_last {
                    is_last = done.load(Relaxed);
                    let snapshot = cache.snapshot();
                    assert!(snapshot.generation() >= generation, "states go on");
                    generation = snapshot.generation();
                    let Some(at) = snapshot.version("").and_then(Version::number) else { continue };
                    assert!(at >= last, "versions go on");
                    last = at;
                    check(&snapshot, at, size(at));
                    // Indexes come and go meanwhile.
                    let name = format!("late{reader}");
                    cache.add_index(Index::label("round").named(&name)).unwrap();
                    let snapshot = cache.snapshot();
                    let at = snapshot.version("").and_then(Version::number).unwrap();
                    let found = snapshot.list().index(&name, &at.to_string()).unwrap();
                    assert_eq!(found.count(), size(at));
                    cache.remove_index(&name).unwrap();
                }
                assert_eq!(last, ROUNDS);
            });
        }
        start.wait();
        for (number, objects) in (1..).zip(rounds) {
            if number % 2 == 0 {
                writer.apply([list(objects, number)]);
            } else {
                // The same as single events.
                let gone = cache.list().into_iter();
                let gone: Vec<_> = gone
                    .filter(|held| objects.iter().all(|object| object.key() != held.key()))
                    .map(|object| Change::Remove { object })
                    .collect();
                let puts = objects.into_iter().map(Change::Put);
                if number == 1 {
                    writer.apply([list(Vec::new(), 1)].into_iter().chain(puts));
                } else {
                    writer.apply(gone.into_iter().chain(puts));
                }
            }
        }
        done.store(true, Relaxed);
    });
}

/// Whether all that a state has is of one round.
pub(super) fn check(snapshot: &Snapshot, round: u64, size: usize) {
    let label = round.to_string();
    let all: Vec<Object> = snapshot.list().into_iter().collect();
    assert_eq!(all.len(), size);
    for object in &all {
        assert_eq!(object.labels().get("round"), Some(&*label));
        assert!(snapshot.get(object.namespace(), object.name()).unwrap().is_same(object));
    }
    for index in ["label:round", "again"] {
        let values: Vec<_> = snapshot.index_values(index).unwrap().collect();
        assert_eq!(values, [(label.as_str().into(), size)]);
        let found: Vec<Object> = snapshot.list().index(index, &label).unwrap().into_iter().collect();
        assert!(found.iter().zip(&all).all(|(a, b)| a.is_same(b)));
    }
}

#[test]
fn a_panic_on_the_way_leaves_the_last_state() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    writer.apply([list(vec![maker.pod("a", 1)], 1)]);
    let put = Change::Put(maker.pod("b", 2));
    let changes = std::iter::once(put).chain(std::iter::from_fn(|| panic!("the source of changes broke")));
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.apply(changes)));
    assert!(broken.is_err());
    assert_eq!(keys(cache.list()), ["n/a"]);
    writer.apply([Change::Put(maker.pod("c", 3))]);
    assert_eq!(keys(cache.list()), ["n/a", "n/c"]);
    cache.add_index(Index::owner()).unwrap();
}
