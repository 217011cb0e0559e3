//! Several machines over one lease. Requests take any time, get lost on either way, arrive after nobody waits for them any
//! more; processes are stopped and go on, end and begin anew, give the lease back; some have the same identity, all have
//! other wall clocks. At no moment do two lead, and when all is well again, one does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use tokio::time::Instant;

use super::super::machine::{Action, Event, Machine, Trouble};
use super::super::metrics::Counted;
use super::super::record::Record;
use super::{Settings, Shelf, blank};

/// What becomes of one step.
#[derive(Debug, Clone, Copy)]
struct Fate {
    /// Milliseconds to the server, back, and until the process has its turn.
    there: u64,
    back: u64,
    frozen: u64,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Well,
    /// It never arrives.
    LostThere,
    /// The server did it; its answer never arrives.
    LostBack,
    /// The server refuses.
    Refused,
    /// The process ends, and another one begins.
    Restart,
    /// The process gives back what it has, and another one begins.
    Release,
}

const WELL: Fate = Fate { there: 1, back: 1, frozen: 0, what: What::Well };

fn fate() -> impl Strategy<Value = Fate> {
    let delay = || prop_oneof![6 => 0_u64..50, 2 => 0_u64..6_000, 1 => 0_u64..60_000];
    let frozen = prop_oneof![9 => Just(0_u64), 1 => 0_u64..40_000];
    let what = prop_oneof![
        12 => Just(What::Well),
        3 => Just(What::LostThere),
        3 => Just(What::LostBack),
        2 => Just(What::Refused),
        1 => Just(What::Restart),
        1 => Just(What::Release),
    ];
    (delay(), delay(), frozen, what).prop_map(|(there, back, frozen, what)| Fate {
        there,
        back,
        frozen,
        what,
    })
}

/// What happens at some moment.
enum Moment {
    /// The server has a request of that number.
    Arrives(u64),
    /// A process, in its so-many-th life, has its turn.
    Turn { member: usize, life: u64, event: Box<dyn FnOnce(&World) -> Event> },
}

enum Request {
    Read,
    Create(Record),
    Update(Record),
}

enum Answer {
    Read(Result<Option<Record>, Trouble>),
    Wrote(Result<Record, Trouble>),
}

struct Member {
    machine: Machine,
    settings: Settings,
    life: u64,
}

struct World {
    begun: Instant,
    now: u64,
    shelf: Shelf,
    members: Vec<Member>,
    agenda: BinaryHeap<Reverse<(u64, u64)>>,
    moments: BTreeMap<u64, Moment>,
    requests: BTreeMap<u64, Request>,
    answers: BTreeMap<u64, Answer>,
    number: u64,
    fates: std::vec::IntoIter<Fate>,
    terms: u64,
}

impl World {
    fn new(count: usize, same: bool, fates: Vec<Fate>) -> Self {
        let member = |at: usize| {
            let identity = if same { "same".to_owned() } else { format!("member-{at}") };
            let base = Settings { identity, ..Settings::default() };
            // A rollout of new settings: both kinds at once.
            let settings = match at % 2 {
                0 => base,
                _ => Settings { lease: Duration::from_secs(8), renew: Duration::from_secs(6), ..base },
            };
            let machine = Machine::new(settings.clone(), blank(), Counted::default());
            Member { machine, settings, life: 0 }
        };
        let mut world = Self {
            begun: Instant::now(),
            now: 0,
            shelf: Shelf::new(),
            members: (0..count).map(member).collect(),
            agenda: BinaryHeap::new(),
            moments: BTreeMap::new(),
            requests: BTreeMap::new(),
            answers: BTreeMap::new(),
            number: 0,
            fates: fates.into_iter(),
            terms: 0,
        };
        for member in 0..count {
            world.turn(0, member, Box::new(|_| Event::Woken));
        }
        world
    }

    fn at(&self, now: u64) -> Instant {
        self.begun + Duration::from_millis(now)
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from((at - self.begun).as_millis()).unwrap()
    }

    /// A wall clock that is its own in each life, and never the same twice.
    fn wall(&self, member: usize) -> Timestamp {
        let life = self.members[member].life as i64;
        let offset = (member as i64 - 1) * 1_000_000_000 + (member as i64 + 10 * life) % 1_000;
        Timestamp::from_microsecond(1_700_000_000_000_000 + self.now as i64 * 1_000 + offset).unwrap()
    }

    fn plan(&mut self, at: u64, moment: Moment) {
        self.number += 1;
        self.agenda.push(Reverse((at, self.number)));
        self.moments.insert(self.number, moment);
    }

    fn turn(&mut self, at: u64, member: usize, event: Box<dyn FnOnce(&World) -> Event>) {
        let life = self.members[member].life;
        self.plan(at, Moment::Turn { member, life, event });
    }

    fn leaders(&self) -> Vec<usize> {
        let now = self.at(self.now);
        let leads = |at: &usize| self.members[*at].machine.until().is_some_and(|until| now < until);
        (0..self.members.len()).filter(leads).collect()
    }

    /// Lets one thing happen.
    fn go_on(&mut self) {
        let Reverse((at, number)) = self.agenda.pop().unwrap();
        self.now = at;
        match self.moments.remove(&number).unwrap() {
            Moment::Arrives(request) => {
                let answer = match self.requests.remove(&request).unwrap() {
                    Request::Read => Answer::Read(self.shelf.read()),
                    Request::Create(record) => Answer::Wrote(self.shelf.create(record)),
                    Request::Update(record) => Answer::Wrote(self.shelf.update(record)),
                };
                self.answers.insert(request, answer);
            }
            Moment::Turn { member, life, event } => {
                if self.members[member].life == life {
                    let event = event(self);
                    self.act(member, event);
                }
            }
        }
    }

    fn act(&mut self, member: usize, event: Event) {
        let (now, wall) = (self.at(self.now), self.wall(member));
        let led = self.members[member].machine.until().is_some();
        let action = self.members[member].machine.step(now, wall, event);
        self.terms += u64::from(!led && self.members[member].machine.until().is_some());
        let fate = self.fates.next().unwrap_or(WELL);
        match fate.what {
            What::Restart => return self.restart(member, fate.frozen),
            What::Release => {
                let found = self.shelf.record.clone();
                if let Some(record) = self.members[member].machine.release(found, now, wall) {
                    self.shelf.update(*record).unwrap();
                }
                return self.restart(member, fate.frozen);
            }
            _ => {}
        }
        let (request, before) = match action {
            Action::Wait(at) => {
                let at = self.millis(at).max(self.now) + 1 + fate.frozen;
                return self.turn(at, member, Box::new(|_| Event::Woken));
            }
            Action::Read { before } => (Request::Read, before),
            Action::Create { record, before } => (Request::Create(*record), before),
            Action::Update { record, before } => (Request::Update(*record), before),
        };
        let (reads, sent, before) = (matches!(request, Request::Read), now, self.millis(before));
        self.number += 1;
        let number = self.number;
        let arrives = self.now + fate.there;
        if fate.what == What::Well || fate.what == What::LostBack {
            self.requests.insert(number, request);
            self.plan(arrives, Moment::Arrives(number));
        }
        let answered = arrives + fate.back;
        let heard = match fate.what {
            What::Well => answered <= before,
            What::Refused => answered <= before,
            _ => false,
        };
        let at = if heard { answered } else { before };
        let refused = fate.what == What::Refused;
        let event =
            move |world: &World| match (heard && !refused).then(|| world.answers.get(&number)).flatten() {
                Some(Answer::Read(found)) => Event::Read(found.clone()),
                Some(Answer::Wrote(result)) => Event::Wrote { sent, result: result.clone() },
                None if reads => Event::Read(Err(Trouble::Failed("no".to_owned()))),
                None => Event::Wrote { sent, result: Err(Trouble::Failed("no".to_owned())) },
            };
        self.turn(at + fate.frozen, member, Box::new(event));
    }

    fn restart(&mut self, member: usize, after: u64) {
        let it = &mut self.members[member];
        it.life += 1;
        it.machine = Machine::new(it.settings.clone(), blank(), Counted::default());
        self.turn(self.now + after, member, Box::new(|_| Event::Woken));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn promise_19_at_no_moment_do_two_lead(
        count in 2_usize..5,
        same in any::<bool>(),
        fates in proptest::collection::vec(fate(), 0..400),
    ) {
        let mut world = World::new(count, same, fates);
        while world.fates.len() > 0 {
            world.go_on();
            let leaders = world.leaders();
            prop_assert!(leaders.len() < 2, "{leaders:?} lead at {} ms", world.now);
        }
        // All is well from here on: within two leases, and what was still on its way, one leads, and stays.
        let (mut led, end) = (None, world.now + 200_000);
        while world.now < end {
            world.go_on();
            let leaders = world.leaders();
            prop_assert!(leaders.len() < 2, "{leaders:?} lead at {} ms", world.now);
            led = led.or(leaders.first().map(|_| world.now));
        }
        prop_assert_eq!(world.leaders().len(), 1);
        prop_assert!(led.is_some_and(|led| led + 60_000 < end));
        prop_assert!(world.terms > 0);
    }
}
