//! The writer, those who add and remove indexes, and those who read, in every order that a scheduler thinks of: at each state that
//! is taken or published, and at the lock of those who make one, it chooses who goes on.

use std::convert::Infallible;
use std::sync::LazyLock;

use shuttle::thread;

use super::stress::check;
use super::*;
use crate::sync::{in_many_schedules, unscheduled};

const ROUNDS: u64 = 3;

/// All objects of a round have its number as label and as version; some come and some go from one to the next.
static OBJECTS: LazyLock<Vec<Vec<Object>>> = LazyLock::new(|| {
    let mut maker = Maker::new();
    let mut object = |round: u64, at: usize| {
        let (name, label) = (format!("p{at}"), round.to_string());
        let labels = [("round", &*label)];
        let made = Made {
            namespace: "n",
            name: &name,
            uid: &name,
            version: round,
            labels: &labels,
            ..Made::default()
        };
        maker.make(&made)
    };
    (1..=ROUNDS).map(|round| (0..size(round)).map(|at| object(round, at)).collect()).collect()
});

fn size(round: u64) -> usize {
    if round.is_multiple_of(2) { 1 } else { 3 }
}

fn objects(round: u64) -> Vec<Object> {
    unscheduled(|| OBJECTS[usize::try_from(round).unwrap() - 1].clone())
}

/// One round after the other, as lists and as single events.
fn write(mut writer: Writer) {
    for round in 1..=ROUNDS {
        if !round.is_multiple_of(2) {
            writer.apply([list(objects(round), round)]);
        } else {
            let gone = objects(round - 1).into_iter().skip(size(round));
            let gone = gone.map(|object| Change::Remove { object });
            writer.apply(gone.chain(objects(round).into_iter().map(Change::Put)));
        }
    }
}

/// The round that a state is of; 0 before the first. All that it has is of that one.
fn round(snapshot: &Snapshot) -> u64 {
    let Some(at) = snapshot.version("n").and_then(Version::number) else {
        assert!(snapshot.is_empty() && !snapshot.is_synced());
        return 0;
    };
    check(snapshot, at, size(at));
    at
}

/// States go on, for whoever reads one after the other, in whatever way.
fn read(cache: &Cache) {
    let first = cache.snapshot();
    let (mut generation, mut last) = (first.generation(), round(&first));
    let begun = last;
    for _ in 0..2 {
        let number = |object: &Object| object.version().number().unwrap();
        for alone in [cache.get("n", "p0").map(|object| number(&object)), cache.with("n", "p0", number)] {
            assert!(alone.unwrap_or(0) >= last, "{alone:?} after {last}");
            last = alone.unwrap_or(0);
        }
        let snapshot = cache.snapshot();
        assert!(snapshot.generation() >= generation && round(&snapshot) >= last, "states go on");
        (generation, last) = (snapshot.generation(), round(&snapshot));
    }
    assert_eq!(round(&first), begun, "a snapshot stays as it is");
}

/// An index appears with all objects in it, while changes go on. One that two want is there once.
fn index(cache: &Cache, name: &str) {
    cache.add_index(Index::label("round").named(name)).unwrap();
    cache.add_index(Index::label("round").named("both")).unwrap();
    let snapshot = cache.snapshot();
    let at = round(&snapshot);
    for name in [name, "both"] {
        let values: Vec<_> = snapshot.index_values(name).unwrap().collect();
        let all = [(at.to_string().as_str().into(), size(at))];
        assert_eq!(values, if at == 0 { &[][..] } else { &all[..] });
    }
    cache.remove_index(name).unwrap();
}

#[test]
fn in_no_schedule_is_a_state_seen_that_is_not_whole_or_one_lost() {
    in_many_schedules(|| {
        let (writer, cache) = cache(Scopes::all());
        cache.add_index(Index::label("round")).unwrap();
        let labels = |object: &Object| {
            Ok::<_, Infallible>(object.labels().get("round").map(str::to_owned).into_iter().collect())
        };
        cache.add_index(Index::object("again", labels)).unwrap();
        let spawn = |run: fn(&Cache)| {
            let cache = cache.clone();
            thread::spawn(move || run(&cache))
        };
        let threads = [
            thread::spawn(move || write(writer)),
            spawn(read),
            spawn(|cache| index(cache, "one")),
            spawn(|cache| index(cache, "other")),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let snapshot = cache.snapshot();
        assert_eq!(round(&snapshot), ROUNDS);
        // Two indexes at first, each round, two that came and went, and one that two wanted.
        assert_eq!(snapshot.generation(), 2 + ROUNDS + 4 + 1);
        let mut names = snapshot.indexes();
        names.sort();
        assert_eq!(names, ["again", "both", "label:round"].map(Arc::from));
        let both = snapshot.list().index("both", &ROUNDS.to_string()).unwrap();
        assert_eq!(both.count(), size(ROUNDS));
    });
}
