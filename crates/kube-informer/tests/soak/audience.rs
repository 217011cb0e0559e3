//! Who is told: ten registrations at a time, which come and go.

use std::time::Duration;

use kube_informer::cache::Snapshot;
use kube_informer::informer::{Delivery, Event, Events, Handler, Informer, Registration};
use kube_informer::object::Object;
use kube_informer_testbed::load::Rng;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::progress::Progress;
use crate::run::SOON;
use crate::view::{Court, Heard, Rule, View};

/// See the module.
pub(crate) struct Audience {
    informers: Vec<Informer>,
    /// Where streams are read.
    runtime: Handle,
    rng: Rng,
    progress: Progress,
    court: Court,
    members: Vec<Member>,
    born: u64,
    /// What those heard that are gone.
    heard: Heard,
}

struct Member {
    view: View,
    place: Place,
}

/// How it is told.
enum Place {
    Registration(Registration),
    Stream {
        /// Dropped to end it.
        stop: oneshot::Sender<()>,
        task: JoinHandle<()>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Closure,
    Handler,
    Stream,
}

/// How one is to be.
struct Wish {
    informer: usize,
    way: Way,
    delivery: Delivery,
    /// So many operations go by while it handles one event.
    pace: u64,
    resync: Duration,
}

/// Replays what it is told, in its own time.
struct Listener {
    view: View,
    pace: u64,
    progress: Progress,
}

const MEMBERS: u64 = 10;
const WAYS: [Way; 3] = [Way::Closure, Way::Handler, Way::Stream];

/// They are called so, and a number.
const NAME: &str = "listener-";

impl Audience {
    /// Of these informers, which may not have been started.
    pub(crate) fn new(
        informers: Vec<Informer>,
        runtime: Handle,
        rng: Rng,
        progress: Progress,
        court: Court,
    ) -> Self {
        let (members, heard) = (Vec::new(), Heard::default());
        let mut audience = Self { informers, runtime, rng, progress, court, members, born: 0, heard };
        for number in 0..MEMBERS {
            let wish = audience.first(number);
            audience.admit(&wish);
        }
        audience
    }

    /// Replaces one after the other, until it is over.
    pub(crate) async fn run(mut self) -> Self {
        while self.progress.after(50 + self.rng.below(200)).await {
            let leaving = self.rng.below(MEMBERS);
            let member = self.members.swap_remove(usize::try_from(leaving).unwrap());
            self.heard.add(member.view.heard());
            member.leave(&self.court).await;
            let wish = self.any();
            self.admit(&wish);
        }
        self
    }

    /// Waits until every view is what its cache is, and everyone has had what there was at the beginning.
    pub(crate) async fn settle(&self) {
        for member in &self.members {
            let view = &member.view;
            if let Place::Registration(registration) = &member.place
                && let Err(error) = registration.synced(SOON).await
            {
                self.court.accuse(Rule::Works, error.to_string());
            }
            if timeout(SOON, view.settled()).await.is_err() {
                let difference = view.difference().unwrap_or_default();
                self.court.accuse(Rule::ViewIsCache, format!("{}: {difference}", view.name()));
            }
        }
    }

    /// What all have heard; nothing may be heard any more. To be called after the shutdown.
    pub(crate) async fn end(self) -> Heard {
        let mut heard = self.heard;
        for member in self.members {
            member.view.end();
            heard.add(member.view.heard());
            if let Place::Stream { stop, task } = member.place {
                // It ends with its informer, not because it is told to.
                if timeout(SOON, task).await.is_err() {
                    self.court.accuse(
                        Rule::NothingLeft,
                        format!("{}: the stream does not end", member.view.name()),
                    );
                }
                drop(stop);
            }
        }
        heard
    }

    /// Every way with every policy, some of each slow.
    fn first(&mut self, number: u64) -> Wish {
        let at = usize::try_from(number).unwrap();
        let delivery =
            if number.is_multiple_of(2) { Delivery::Latest } else { Delivery::Every(4 << (at / 2)) };
        Wish {
            informer: at % self.informers.len(),
            way: WAYS[at % WAYS.len()],
            delivery,
            pace: if [1, 4, 5, 9].contains(&number) { 1 + self.rng.below(15) } else { 0 },
            resync: if number % 4 == 2 { Duration::from_millis(500) } else { Duration::ZERO },
        }
    }

    fn any(&mut self) -> Wish {
        let rng = &mut self.rng;
        let informer = usize::try_from(rng.below(self.informers.len() as u64)).unwrap();
        let delivery = if rng.below(2) == 0 { Delivery::Latest } else { Delivery::Every(1 << rng.below(7)) };
        let pace = if rng.below(3) == 0 { 1 + rng.below(15) } else { 0 };
        let resync =
            if rng.below(4) == 0 { Duration::from_millis(200 + rng.below(1_000)) } else { Duration::ZERO };
        Wish { informer, way: *rng.pick(&WAYS), delivery, pace, resync }
    }

    fn admit(&mut self, wish: &Wish) {
        self.born += 1;
        let Wish { informer, way, delivery, pace, resync } = *wish;
        let name = format!("{NAME}{} {way:?} {delivery:?} pace {pace} informer {informer}", self.born);
        let informer = self.informers[informer].clone();
        let view = View::new(name.clone(), informer.clone(), self.court.clone());
        let mut listener = Listener { view: view.clone(), pace, progress: self.progress.clone() };
        let subscription = informer.subscribe().name(name).delivery(delivery).resync(resync);
        let place = match way {
            Way::Closure => Place::Registration(
                subscription.on(move |event| Handle::current().block_on(listener.hear(&event))),
            ),
            Way::Handler => Place::Registration(subscription.handler(listener)),
            Way::Stream => {
                let (stop, stopped) = oneshot::channel();
                let task = self.runtime.spawn(listener.read(subscription.events(), stopped));
                Place::Stream { stop, task }
            }
        };
        self.members.push(Member { view, place });
    }
}

impl Member {
    /// Ends before its informer does.
    async fn leave(self, court: &Court) {
        match self.place {
            Place::Registration(registration) => {
                if let Err(error) = registration.remove(SOON).await {
                    court.accuse(Rule::Works, error.to_string());
                }
            }
            Place::Stream { stop, task } => {
                drop(stop);
                if timeout(SOON, task).await.is_err() {
                    court.accuse(Rule::Works, format!("{} does not end", self.view.name()));
                }
            }
        }
        self.view.end();
    }
}

impl Listener {
    async fn hear(&mut self, event: &Event) {
        self.view.tell(event);
        if self.pace > 0 {
            self.progress.after(self.pace).await;
        }
    }

    async fn read(mut self, mut events: Events<Value>, mut stopped: oneshot::Receiver<()>) {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = &mut stopped => return,
            };
            let Some(event) = event else { return };
            self.hear(&event).await;
        }
    }
}

impl Handler<Value> for Listener {
    async fn added(&mut self, new: Object<Value>, initial: bool) {
        self.hear(&Event::Added { new, initial }).await;
    }

    async fn updated(&mut self, old: Object<Value>, new: Object<Value>, resync: bool) {
        self.hear(&Event::Updated { old, new, resync }).await;
    }

    async fn deleted(&mut self, last: Object<Value>, certain: bool) {
        self.hear(&Event::Deleted { last, certain }).await;
    }

    async fn gap(&mut self, missed: u64, now: Snapshot<Value>) {
        self.hear(&Event::Gap { missed, now }).await;
    }
}
