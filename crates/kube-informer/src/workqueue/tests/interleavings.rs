//! Getters that are polled by hand in any order, given up at any time, and only polled when they were woken: a wake-up that
//! is lost is a getter that sleeps although there is something for it.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Add(u32, Priority),
    AddAfter(u32, u64),
    /// One more getter, which is polled once.
    Get,
    /// One of the getters, by its place, is polled if it was woken.
    Poll(usize),
    GiveUp(usize),
    Done(usize),
    Retry(usize),
    Wait(u64),
    /// Someone looks at the length, and at what is due with it.
    Look,
    ShutDown,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (key, place) = (|| 0..8_u32, || 0..8_usize);
    let step = prop_oneof![
        20 => (key(), select(vec![Priority::Low, Priority::Normal])).prop_map(|(key, priority)| Step::Add(key, priority)),
        20 => (key(), 1..20_u64).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        30 => Just(Step::Get),
        30 => place().prop_map(Step::Poll),
        15 => place().prop_map(Step::GiveUp),
        15 => place().prop_map(Step::Done),
        10 => place().prop_map(Step::Retry),
        15 => (1..8_u64).prop_map(Step::Wait),
        5 => Just(Step::Look),
        1 => Just(Step::ShutDown),
    ];
    prop::collection::vec(step, 0..80)
}

struct Getter<'a> {
    get: ByHand<'a, Option<Item<u32>>>,
    /// How often it was woken when it was last polled.
    seen: usize,
}

#[derive(Default)]
struct World<'a> {
    getters: Vec<Getter<'a>>,
    items: Vec<Item<u32>>,
    polls: usize,
}

impl World<'_> {
    fn is_woken(&self, place: usize) -> bool {
        self.getters[place].get.woken.times() > self.getters[place].seen
    }

    /// It may leave with an item.
    fn poll(&mut self, place: usize) {
        self.polls += 1;
        let getter = &mut self.getters[place];
        getter.seen = getter.get.woken.times();
        if let Poll::Ready(item) = getter.get.poll() {
            self.getters.remove(place);
            if let Some(item) = item {
                assert!(self.items.iter().all(|other| other.key() != item.key()), "in two hands");
                self.items.push(item);
            }
        }
    }

    /// Until nobody is woken any more.
    fn settle(&mut self) {
        while let Some(place) = (0..self.getters.len()).find(|place| self.is_woken(*place)) {
            self.poll(place);
        }
    }
}

async fn play(steps: Vec<Step>) {
    let queue = WorkQueue::new(Settings::default());
    let mut world = World::default();
    let changes = steps.len();
    for step in steps {
        let (getters, items) = (world.getters.len(), world.items.len());
        match step {
            Step::Add(key, priority) => queue.at(priority).add(key),
            Step::AddAfter(key, delay) => queue.add_after(key, Duration::from_millis(delay)),
            Step::Get => {
                world.getters.push(Getter { get: ByHand::new(queue.get()), seen: 0 });
                world.poll(getters);
            }
            Step::Poll(place) if getters > 0 && world.is_woken(place % getters) => {
                world.poll(place % getters);
            }
            Step::GiveUp(place) if getters > 0 => drop(world.getters.remove(place % getters)),
            Step::Done(place) if items > 0 => drop(world.items.remove(place % items)),
            Step::Retry(place) if items > 0 => drop(world.items.remove(place % items).retry()),
            Step::Wait(time) => advance(Duration::from_millis(time)).await,
            Step::Look => assert!(queue.len() <= 8),
            Step::ShutDown => queue.shut_down(),
            _ => {}
        }
    }
    world.settle();
    check(&queue, &world);

    // From now on nothing is added: what is pending comes at its time, to those who wait.
    let earliest = || queue.shared.lock().state.earliest();
    while !world.getters.is_empty()
        && let Some(deadline) = earliest()
    {
        advance(deadline.saturating_duration_since(Instant::now())).await;
        world.settle();
        check(&queue, &world);
        assert!(world.getters.is_empty() || earliest() != Some(deadline), "it is due, and someone waits");
        while let Some(item) = world.items.pop() {
            drop(item);
            world.settle();
            check(&queue, &world);
        }
    }
    // Nobody is woken without end: each change wakes a few at most.
    assert!(world.polls <= 3 * changes + 30, "{} polls for {changes} changes", world.polls);

    queue.shut_down();
    world.settle();
    while !world.items.is_empty() {
        world.items.clear();
        world.settle();
    }
    assert!(world.getters.is_empty(), "all are told of the end");
    check(&queue, &world);
}

/// What holds when nobody is on the way.
fn check(queue: &WorkQueue<u32>, world: &World<'_>) {
    let inner = queue.shared.lock();
    assert_eq!(inner.waiting, world.getters.len());
    let waits = inner.waiting > 0;
    assert!(!(waits && inner.state.has_in_line()), "a key is in line, and someone waits");
    assert!(inner.watched || !(waits && inner.state.has_delayed()), "nobody watches the clock");
    assert!(waits || !inner.watched, "someone who left watches the clock");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_wake_up_is_lost_in_whatever_order_things_happen(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
