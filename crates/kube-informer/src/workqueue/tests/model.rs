//! The state beside a naive one: a plain list of keys, looked through from end to end for every question.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::workqueue::state::{Changed, Done, State, When};
use crate::workqueue::table::Slot;

const KEYS: u32 = 6;
const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

#[derive(Debug, Clone)]
enum Step {
    Add(u32, Priority),
    AddAfter(u32, Priority, u64),
    /// A worker takes what comes.
    Take,
    /// One of those that have a key, by its place, is done.
    Done(usize),
    Wait(u64),
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (key, priority) = (|| 0..KEYS, || select(&PRIORITIES[..]));
    let step = prop_oneof![
        40 => (key(), priority()).prop_map(|(key, priority)| Step::Add(key, priority)),
        20 => (key(), priority(), 1..8_u64).prop_map(|(key, priority, delay)| Step::AddAfter(key, priority, delay)),
        40 => Just(Step::Take),
        30 => (0..4_usize).prop_map(Step::Done),
        20 => (1..4_u64).prop_map(Step::Wait),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 0..120)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pending {
    No,
    /// Since when, and its place in line.
    Ready(u64, u64),
    /// Until when, and which of those came first.
    Delayed(u64, u64),
}

#[derive(Debug, Clone)]
struct Known {
    key: u32,
    pending: Pending,
    running: bool,
    priority: Priority,
}

#[derive(Debug, Default)]
struct Model {
    known: Vec<Known>,
    now: u64,
    /// Counts everything that has a place in some order.
    order: u64,
    passed: [u32; 3],
    closed: bool,
}

impl Model {
    fn add(&mut self, key: u32, priority: Priority, delay: u64) {
        if self.closed {
            return;
        }
        self.order += 1;
        let at = self.now + delay;
        let asked =
            if delay == 0 { Pending::Ready(self.now, self.order) } else { Pending::Delayed(at, self.order) };
        let Some(known) = self.known.iter_mut().find(|known| known.key == key) else {
            self.known.push(Known { key, pending: asked, running: false, priority });
            return;
        };
        let raised = priority > known.priority || known.pending == Pending::No;
        known.pending = match (known.pending, asked) {
            (Pending::No, asked) => asked,
            // The end of another line; in the line of the same priority, its place.
            (Pending::Ready(since, _), _) if raised => Pending::Ready(since, self.order),
            (Pending::Delayed(before, _), Pending::Delayed(at, _)) if at < before => asked,
            (Pending::Delayed(..), Pending::Ready(..)) => asked,
            (pending, _) => pending,
        };
        if raised {
            known.priority = priority;
        }
        self.leave_empty_lines();
    }

    fn wait(&mut self, time: u64) {
        self.now += time;
        // One after another, in the order of their deadlines.
        loop {
            let due = |(at, known): (usize, &Known)| match known.pending {
                Pending::Delayed(until, order) if until <= self.now => Some((until, order, at)),
                _ => None,
            };
            let Some((until, _, at)) = self.known.iter().enumerate().filter_map(due).min() else { return };
            self.order += 1;
            self.known[at].pending = Pending::Ready(until, self.order);
        }
    }

    /// The line of a priority: the place, since when, and where it is known.
    fn line(&self, priority: Priority) -> Vec<(u64, u64, usize)> {
        let place = |(at, known): (usize, &Known)| match known.pending {
            Pending::Ready(since, order) if !known.running && known.priority == priority => {
                Some((order, since, at))
            }
            _ => None,
        };
        let mut line: Vec<_> = self.known.iter().enumerate().filter_map(place).collect();
        line.sort_unstable();
        line
    }

    fn take(&mut self, patience: u32) -> Option<(u32, Priority, u64)> {
        let waits = |class: &usize| !self.line(PRIORITIES[*class]).is_empty();
        let impatient = (0..3).filter(waits).find(|class| self.passed[*class] >= patience);
        let turn = impatient.or_else(|| (0..3).rev().find(waits))?;
        let (_, since, at) = self.line(PRIORITIES[turn])[0];
        self.known[at].pending = Pending::No;
        self.known[at].running = true;
        self.passed[turn] = 0;
        self.passed[..turn].iter_mut().for_each(|passed| *passed += 1);
        self.leave_empty_lines();
        Some((self.known[at].key, self.known[at].priority, since))
    }

    fn leave_empty_lines(&mut self) {
        for (class, priority) in PRIORITIES.into_iter().enumerate() {
            if self.line(priority).is_empty() {
                self.passed[class] = 0;
            }
        }
    }

    fn done(&mut self, key: u32) {
        self.order += 1;
        let known = self.known.iter_mut().find(|known| known.key == key).unwrap();
        known.running = false;
        if let Pending::Ready(_, place) = &mut known.pending {
            *place = self.order;
        }
        self.known.retain(|known| known.running || known.pending != Pending::No);
    }

    fn close(&mut self) {
        self.closed = true;
        for known in &mut self.known {
            if let Pending::Delayed(..) = known.pending {
                known.pending = Pending::No;
            }
        }
        self.known.retain(|known| known.running || known.pending != Pending::No);
    }

    fn count(&self, counts: impl Fn(&Known) -> bool) -> usize {
        self.known.iter().filter(|known| counts(known)).count()
    }
}

fn ready(known: &Known) -> bool {
    matches!(known.pending, Pending::Ready(..))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_queue_does_what_a_plain_list_of_keys_would_do(steps in steps(), patience in 1..4_u32) {
        let start = Instant::now();
        let at = |time: u64| start + Duration::from_secs(time);
        let (mut state, mut model) = (State::new(patience), Model::default());
        let mut running: Vec<(Slot, u32)> = Vec::new();
        let add = |state: &mut State<u32>, key, priority, when| {
            let hash = state.hasher().hash(&key);
            state.add(hash, key, priority, when)
        };
        for step in steps {
            let (before, in_line, earliest) = (model.count(ready), state.in_line(), state.earliest());
            match step {
                Step::Add(key, priority) => {
                    let changed = add(&mut state, key, priority, When::Now(Some(at(model.now))));
                    model.add(key, priority, 0);
                    let (added, in_line) = (model.count(ready) > before, state.in_line() > in_line);
                    prop_assert_eq!(changed, Changed { added, in_line, earliest: false });
                }
                Step::AddAfter(key, priority, delay) => {
                    let changed = add(&mut state, key, priority, When::At(at(model.now + delay)));
                    model.add(key, priority, delay);
                    let sooner = state.earliest().is_some_and(|now| earliest.is_none_or(|before| now < before));
                    prop_assert_eq!(changed, Changed { added: false, in_line: false, earliest: sooner });
                }
                Step::Take => {
                    let taken = state.take();
                    let seen = taken.as_ref().map(|taken| (taken.key, taken.priority, taken.since));
                    let expected = model.take(patience);
                    prop_assert_eq!(seen, expected.map(|(key, priority, since)| (key, priority, Some(at(since)))));
                    if let Some(taken) = taken {
                        prop_assert!(running.iter().all(|(_, key)| *key != taken.key), "in two hands");
                        running.push((taken.slot, taken.key));
                    }
                }
                Step::Done(place) => {
                    if !running.is_empty() {
                        let (slot, key) = running.remove(place % running.len());
                        let again = model.count(|known| known.key == key && known.pending != Pending::No) > 0;
                        let done = state.done(slot);
                        prop_assert_eq!(matches!(done, Done::Forgotten(gone) if gone == key), !again);
                        model.done(key);
                        prop_assert_eq!(matches!(done, Done::InLine), state.in_line() > in_line);
                    }
                }
                Step::Wait(time) => {
                    model.wait(time);
                    let due = state.make_due_ready(at(model.now));
                    prop_assert_eq!(due, model.count(ready) - before);
                }
                Step::Close => {
                    prop_assert_eq!(state.close(at(model.now)), 0);
                    model.close();
                }
            }
            prop_assert_eq!(state.depth(), model.count(ready));
            prop_assert_eq!(state.in_line(), model.count(|known| ready(known) && !known.running));
            prop_assert_eq!(state.has_in_line(), state.in_line() > 0);
            prop_assert_eq!(state.is_idle(), model.count(|known| ready(known) || known.running) == 0);
            prop_assert_eq!(state.is_over(), model.closed && state.depth() == 0);
            let deadlines = model.known.iter().filter_map(|known| match known.pending {
                Pending::Delayed(until, _) => Some(at(until)),
                _ => None,
            });
            prop_assert_eq!(state.earliest(), deadlines.min());
        }
    }
}
