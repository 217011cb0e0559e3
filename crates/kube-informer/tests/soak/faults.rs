//! What goes wrong between the server and the informers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use kube_informer_testbed::load::Rng;
use kube_informer_testbed::proxy::{Answer, Events, Fault, Match, Request};

use crate::progress::Progress;
use crate::run::SOON;
use crate::world::World;

/// What one informer asks for in one scope.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The path.
    pub(crate) collection: String,
    /// Whether it selects by color; at most one of a path does.
    pub(crate) is_colored: bool,
}

/// Troubles one target, one fault after the other.
pub(crate) struct Director {
    pub(crate) world: Arc<World>,
    pub(crate) target: Target,
    pub(crate) rng: Rng,
    pub(crate) progress: Progress,
    pub(crate) tally: Tally,
}

/// Troubles everyone.
pub(crate) struct Disaster {
    pub(crate) world: Arc<World>,
    pub(crate) rng: Rng,
    pub(crate) progress: Progress,
    pub(crate) tally: Tally,
}

/// How often which fault has had an effect. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<BTreeMap<&'static str, u64>>>);

/// What a target's director does.
#[derive(Debug, Clone, Copy)]
enum Act {
    CutNow,
    CutLater,
    CutInside,
    CutList,
    Answer,
    ExpireOpen,
    ExpireResumed,
    Duplicate,
    Lose,
    LoseDeletions,
    StallOpen,
    StallRequest,
    /// Streaming lists are not tried again after these: they come late.
    RefuseStreaming,
    StallList,
}

const ACTS: [Act; 12] = [
    Act::CutNow,
    Act::CutLater,
    Act::CutInside,
    Act::CutList,
    Act::Answer,
    Act::ExpireOpen,
    Act::ExpireResumed,
    Act::Duplicate,
    Act::Lose,
    Act::LoseDeletions,
    Act::StallOpen,
    Act::StallRequest,
];

/// What no soak on the embedded server goes without: each comes ten times and more in the shortest that must hold.
pub(crate) const INDISPENSABLE: [&str; 8] = [
    "cut at once",
    "cut inside an event",
    "410 inside a watch",
    "410 for a watch",
    "doubled events",
    "lost events",
    "lost deletions",
    "a dead watch",
];

const LATE_ACTS: [Act; 2] = [Act::RefuseStreaming, Act::StallList];

impl Target {
    fn is_meant(&self, request: &Request) -> bool {
        let selects_color = request.param("labelSelector").is_some_and(|selector| selector.contains("color"));
        request.path == self.collection && selects_color == self.is_colored
    }

    fn all(&self) -> Match {
        let target = self.clone();
        Match::any().when(move |request| target.is_meant(request))
    }

    /// Watches, streaming lists among them.
    fn watches(&self) -> Match {
        self.all().when(Request::is_watch)
    }

    /// Watches that go on where another one was.
    fn resumed(&self) -> Match {
        self.watches().send_initial_events(false)
    }

    fn streaming(&self) -> Match {
        self.watches().send_initial_events(true)
    }

    /// Whatever asks for everything.
    fn lists(&self) -> Match {
        self.all().when(|request| match request.is_watch() {
            true => request.param("sendInitialEvents").is_some(),
            // A list of one object only asks for the version.
            false => request.is_list() && request.param("limit").as_deref() != Some("1"),
        })
    }

    /// Lets everything be listed anew, whatever is going on, and waits until it is asked for.
    pub(crate) async fn relist(&self, world: &World) -> Result<()> {
        let (requests, lists) = (world.proxy.requests(), self.lists());
        let last = requests.last_id();
        let open = world.proxy.on_open(self.watches()).error_event(Answer::gone());
        let coming = world.proxy.on(self.resumed()).answer(Answer::gone());
        let seen =
            requests.within(SOON).wait_for(|request| request.id > last && lists.matches(request)).await;
        open.remove();
        coming.remove();
        seen.map(drop).with_context(|| format!("{self:?} was not listed anew"))
    }
}

impl Director {
    pub(crate) async fn run(mut self) -> Result<()> {
        while self.progress.after(50 + self.rng.below(200)).await {
            let is_late = self.progress.is_late() && self.rng.below(8) == 0;
            let act = if is_late { *self.rng.pick(&LATE_ACTS) } else { *self.rng.pick(&ACTS) };
            self.act(act).await.with_context(|| format!("{act:?} of {:?}", self.target))?;
        }
        Ok(())
    }

    async fn act(&mut self, act: Act) -> Result<()> {
        let Self { target, rng, .. } = self;
        let proxy = &self.world.proxy;
        let count = rng.below(6);
        match act {
            Act::CutNow => {
                if proxy.cut_open(target.watches()).await > 0 {
                    self.tally.add("cut at once");
                }
            }
            Act::CutLater => {
                let fault = proxy.on(target.watches()).once().cut_after_events(count * 4);
                proxy.cut_open(target.watches()).await;
                self.hold("cut after events", &fault).await;
            }
            Act::CutInside => {
                let fault = proxy.on_all(target.watches()).once().cut_inside_object(count);
                self.hold("cut inside an event", &fault).await;
            }
            Act::CutList => {
                let fault = proxy.on(target.lists()).once().cut_inside_object(count);
                proxy.cut_open(target.watches()).await;
                self.hold("cut inside a list", &fault).await;
            }
            Act::Answer => {
                let (name, answer) = answer(rng);
                let fault = proxy.on(target.all()).times(1 + count / 2).answer(answer);
                proxy.cut_open(target.watches()).await;
                self.hold(name, &fault).await;
            }
            Act::ExpireOpen => {
                let fault = proxy.on_open(target.watches()).error_event(Answer::gone());
                self.hold("410 inside a watch", &fault).await;
            }
            Act::ExpireResumed => {
                let fault = proxy.on(target.resumed()).once().answer(Answer::gone());
                proxy.cut_open(target.watches()).await;
                self.hold("410 for a watch", &fault).await;
            }
            Act::Duplicate => {
                let fault = proxy.on_all(target.watches()).duplicate_events(Events::next(1 + count));
                self.hold("doubled events", &fault).await;
            }
            Act::Lose => {
                let lost = Events::all().when(|event| event.kind() != "BOOKMARK").at_most(1 + count);
                self.lose("lost events", lost).await?;
            }
            Act::LoseDeletions => self.lose("lost deletions", Events::deleted().at_most(1 + count)).await?,
            Act::StallOpen => {
                let (requests, last) = (proxy.requests(), proxy.requests().last_id());
                let fault = proxy.on_open(target.watches()).stall();
                let another = requests
                    .within(SOON)
                    .wait_for(|request| request.id > last && target.is_meant(request))
                    .await;
                fault.remove();
                another.context("a watch that is dead was not found")?;
                self.count("a dead watch", &fault);
            }
            Act::StallRequest => {
                let fault = proxy.on(target.resumed()).once().stall();
                self.hold("no answer", &fault).await;
            }
            Act::RefuseStreaming => {
                let fault = proxy.on(target.streaming()).once().answer(Answer::no_streaming_lists());
                proxy.cut_open(target.watches()).await;
                self.hold("no streaming lists", &fault).await;
            }
            Act::StallList => {
                let fault = proxy.on(target.lists()).once().stall_inside_object(count);
                proxy.cut_open(target.watches()).await;
                self.hold("a stalled list", &fault).await;
            }
        }
        Ok(())
    }

    /// Lets a fault act for a while.
    async fn hold(&mut self, name: &'static str, fault: &Fault) {
        self.progress.after(20 + self.rng.below(150)).await;
        fault.remove();
        self.count(name, fault);
    }

    /// Loses events. Nobody can find that out before the next list, so there is one.
    async fn lose(&mut self, name: &'static str, events: Events) -> Result<()> {
        let fault = self.world.proxy.on_all(self.target.watches()).drop_events(events);
        self.hold(name, &fault).await;
        if fault.events() > 0 { self.target.relist(&self.world).await } else { Ok(()) }
    }

    fn count(&self, name: &'static str, fault: &Fault) {
        if fault.applied() > 0 || fault.events() > 0 {
            self.tally.add(name);
        }
    }
}

/// Something that is not what was asked for.
fn answer(rng: &mut Rng) -> (&'static str, Answer) {
    match rng.below(10) {
        0 => ("401", Answer::unauthorized()),
        1 => ("403", Answer::forbidden()),
        2 => ("404", Answer::not_served()),
        3 => ("410", Answer::gone()),
        4 => ("429", Answer::too_many_requests(0)),
        5 => ("429 with a wish", Answer::overloaded(1)),
        6 => ("500", Answer::internal_error()),
        7 => ("503", Answer::unavailable()),
        8 => ("504", Answer::too_large_version()),
        _ => ("a page", Answer::html(502)),
    }
}

impl Disaster {
    pub(crate) async fn run(mut self) {
        while self.progress.after(200 + self.rng.below(800)).await {
            let (proxy, server) = (&self.world.proxy, self.world.server.as_ref());
            match (self.rng.below(4), server) {
                (0, _) => {
                    proxy.go_down().await;
                    self.progress.after(20 + self.rng.below(150)).await;
                    proxy.accept_connections().await;
                    self.tally.add("server gone");
                }
                (1, Some(server)) => {
                    server.compact();
                    proxy.cut_open(Match::watch()).await;
                    self.tally.add("compaction");
                }
                (2, _) => {
                    proxy.cut_open(Match::any()).await;
                    self.tally.add("all cut");
                }
                _ => {
                    proxy.refuse_connections().await;
                    self.progress.after(20 + self.rng.below(150)).await;
                    proxy.accept_connections().await;
                    self.tally.add("connections refused");
                }
            }
        }
    }
}

impl Tally {
    fn add(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
