//! Whatever happens, by chance: objects change, informers lag, are stopped, forbidden or restarted, watches come and go,
//! handlers fail. What was told is sound at every step, and at the end it is what there is.

use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::encoding::Encoding;
use crate::informer::core::Core;
use crate::reflector::Delta;
use crate::reflector::fault::Fault;
use crate::wire::Status;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// UID and version.
type Is = (u64, u64);

/// What a handler was told.
#[derive(Default)]
struct Log {
    now: Option<Is>,
    /// It failed when it was told of this one: half of it was done.
    half: Option<u64>,
    dead: HashSet<u64>,
    newest: u64,
    all: Vec<String>,
    wrong: Vec<String>,
}

impl Log {
    fn hear(&mut self, event: &WatchEvent) {
        let is = |object: &Object| -> Is {
            (object.uid().to_string().parse().unwrap(), object.version().to_string().parse().unwrap())
        };
        let (uid, version) = is(event.object());
        let before = self.now;
        let fits = match event {
            WatchEvent::Added { .. } => {
                before.is_none() && !self.dead.contains(&uid) && version >= self.newest
            }
            WatchEvent::Updated { old, .. } => {
                before == Some(is(old)) && uid == is(old).0 && version >= self.newest
            }
            WatchEvent::Deleted { .. } => before.map(|(known, _)| known).or(self.half) == Some(uid),
        };
        self.all.push(short(event));
        if !fits {
            self.wrong.push(format!("{} after {before:?}: {:?}", short(event), self.all));
        }
        self.newest = self.newest.max(version);
        self.half = None;
        self.now = match event {
            WatchEvent::Deleted { .. } => {
                self.dead.insert(uid);
                None
            }
            _ => Some((uid, version)),
        };
    }
}

/// An informer, and how far it has come.
struct Seat {
    core: Arc<Core>,
    hand: Hand,
    at: Option<u64>,
}

struct World {
    manager: Manager,
    rng: fastrand::Rng,
    version: u64,
    history: Vec<(u64, &'static str, Option<Is>)>,
    seats: Vec<Seat>,
    watched: BTreeMap<&'static str, Arc<Mutex<Log>>>,
    forbidden: bool,
}

impl World {
    fn as_of(&self, version: u64) -> BTreeMap<&'static str, Is> {
        let mut objects = BTreeMap::new();
        for (_, name, is) in self.history.iter().take_while(|(at, ..)| *at <= version) {
            match is {
                Some(is) => objects.insert(*name, *is),
                None => objects.remove(name),
            };
        }
        objects
    }

    fn write(&mut self) {
        self.version += 1;
        let name = NAMES[self.rng.usize(..NAMES.len())];
        let is = match self.as_of(self.version).get(name) {
            Some(_) if self.rng.u8(..4) == 0 => None,
            Some((uid, _)) => Some((*uid, self.version)),
            None => Some((self.version, self.version)),
        };
        self.history.push((self.version, name, is));
    }

    /// Takes the informers that came, and forgets those that went.
    fn take_seats(&mut self) {
        let cores = self.manager.inner.factory.cores();
        self.seats.retain(|seat| cores.iter().any(|core| Arc::ptr_eq(core, &seat.core)));
        for core in cores {
            if let Some(hand) = Hand::over(Arc::clone(&core)) {
                self.seats.push(Seat { core, hand, at: None });
            }
        }
    }

    /// An informer gets on: lists, maybe what was some time ago, or hears of some changes.
    fn advance(&mut self, at: usize, to: u64) {
        let lists = self.as_of(to);
        let Some(seat) = self.seats.get_mut(at) else { return };
        let scope = seat.core.spec().scope.clone();
        if self.forbidden && scope == Scope::namespace("d") {
            let body = br#"{"kind":"Status","status":"Failure","message":"no","code":403}"#;
            seat.hand.fail(Fault::Status(Box::new(Status::read(Encoding::Json, body))));
            return;
        }
        let is_in = |name: &str| match &scope {
            Scope::Object { name: only, .. } => only == name,
            _ => true,
        };
        let hand = &mut seat.hand;
        match seat.at {
            None => {
                let objects = lists.into_iter().filter(|(name, _)| is_in(name));
                let objects: Vec<_> = objects
                    .map(|(name, (uid, version))| hand.object(name, &uid.to_string(), version))
                    .collect();
                hand.replace(objects, to);
                hand.live();
            }
            Some(from) => {
                let mut known = BTreeMap::new();
                for (version, name, is) in self.history.iter().take_while(|(version, ..)| *version <= to) {
                    let before: Option<Is> = known.get(name).copied();
                    if *version > from && is_in(name) {
                        match (is, before) {
                            (Some((uid, _)), _) => {
                                let object = hand.object(name, &uid.to_string(), *version);
                                hand.apply(Delta::Put(object));
                            }
                            (None, Some((uid, _))) => {
                                let object = hand.object(name, &uid.to_string(), *version);
                                hand.apply(Delta::Remove(object));
                            }
                            (None, None) => {}
                        }
                    }
                    match is {
                        Some(is) => known.insert(*name, *is),
                        None => known.remove(name),
                    };
                }
                hand.progress(to);
            }
        }
        seat.at = Some(to.max(seat.at.unwrap_or_default()));
    }

    async fn step(&mut self) {
        self.take_seats();
        let at = self.rng.usize(..self.seats.len().max(1));
        match self.rng.u8(..20) {
            0..6 => self.write(),
            6..13 => {
                let from = self.seats.get(at).and_then(|seat| seat.at);
                let first = from.unwrap_or(self.version.saturating_sub(8));
                let to = self.rng.u64(first..=self.version);
                self.advance(at, to);
            }
            13 => {
                if let Some(seat) = self.seats.get(at) {
                    let informer = seat.hand.informer();
                    self.manager.inner.factory.stop(&informer, AGES).await;
                }
            }
            14 => self.forbidden = !self.forbidden,
            15..17 => self.add(),
            17 => {
                let name = NAMES[self.rng.usize(..NAMES.len())];
                self.manager.stop(&pod(name).key()).await;
                if let Some(log) = self.watched.remove(name) {
                    assert_sound(name, &log);
                }
            }
            // tidy: allow-sleep the clock is paused: no real time passes
            _ => tokio::time::sleep(Duration::from_millis(self.rng.u64(..3000))).await,
        }
        tokio::task::yield_now().await;
    }

    fn add(&mut self) {
        let name = NAMES[self.rng.usize(..NAMES.len())];
        if self.watched.contains_key(name) {
            return;
        }
        let log = Arc::<Mutex<Log>>::default();
        let (hears, rng) = (Arc::clone(&log), Mutex::new(self.rng.fork()));
        let watch = pod(name).wait_for_target().on(move |event| {
            let (fails, wait) = {
                let mut rng = rng.lock().unwrap();
                (rng.u8(..5) == 0, Duration::from_millis(rng.u64(..50)))
            };
            let hears = Arc::clone(&hears);
            async move {
                // tidy: allow-sleep this is the work, on a paused clock
                tokio::time::sleep(wait).await;
                if fails {
                    if let WatchEvent::Added { new, .. } = &event {
                        hears.lock().unwrap().half = Some(new.uid().to_string().parse().unwrap());
                    }
                    return Err("by chance");
                }
                hears.lock().unwrap().hear(&event);
                Ok(())
            }
        });
        drop(adding(&self.manager, watch));
        self.watched.insert(name, log);
    }
}

fn assert_sound(name: &str, log: &Mutex<Log>) {
    let log = log.lock().unwrap();
    assert!(log.wrong.is_empty(), "{name}: {:#?}", log.wrong);
}

async fn play(seed: u64) {
    let manager = manager()
        .share_from(3)
        .probe(Duration::from_secs(20))
        .retries(Duration::from_millis(5), Duration::from_millis(100))
        .restarts(Duration::from_millis(10), Duration::from_millis(100))
        // What comes to rest needs no patience, and what is behind must not be believed.
        .sync_deadline(AGES)
        .started();
    let mut world = World {
        manager,
        rng: fastrand::Rng::with_seed(seed),
        version: 1,
        history: Vec::new(),
        seats: Vec::new(),
        watched: BTreeMap::new(),
        forbidden: false,
    };
    for _ in 0..200 {
        world.step().await;
    }
    // All is well from now on, and everybody hears of everything.
    world.forbidden = false;
    for _ in 0..40 {
        // tidy: allow-sleep the clock is paused: no real time passes
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.take_seats();
        for at in 0..world.seats.len() {
            world.advance(at, world.version);
        }
    }
    let now = world.as_of(world.version);
    for (name, log) in &world.watched {
        assert_sound(name, log);
        let told = log.lock().unwrap().now;
        assert!(log.lock().unwrap().half.is_none(), "seed {seed}: {name}: what was half done is ended");
        assert_eq!(told, now.get(name).copied(), "seed {seed}: {name}: {:?}", log.lock().unwrap().all);
    }
    let count = world.watched.len();
    let feeds = world.manager.scopes();
    assert!(
        count < 3 && feeds.len() <= count.max(1) || feeds == ["d"],
        "seed {seed}: {count} through {feeds:?}"
    );
    assert_eq!(world.manager.stop_all().await, count);
    assert!(world.manager.is_bare() && world.manager.scopes().is_empty(), "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn promise_20_whatever_happens_by_chance_what_was_told_is_what_there_is() {
    for seed in 0..60 {
        play(seed).await;
    }
}
