//! An operator behind a proxy of its own: what it writes is seen, and can be held.

use std::time::{Duration, Instant};

use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Config, Fault, Match, Proxy, Request, Requests, Verb};

use super::{Operator, World};

/// Where a write is held when its process is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    /// The server has not seen it.
    Before,
    /// The server has done it, and its answer is on the way.
    After,
}

/// See the module.
pub(crate) struct Watched {
    pub(crate) proxy: Proxy,
    pub(crate) operator: Operator,
    /// When its transcript began, at the earliest and at the latest.
    began: [Instant; 2],
}

/// What an operator has done, by a clock that all of them share.
pub(crate) struct Deeds {
    requests: Requests,
    began: [Instant; 2],
}

impl Watched {
    pub(crate) async fn start(world: &World, more: &[&str]) -> Self {
        let before = Instant::now();
        let proxy = Config::new(&world.access()).add_credentials().start().await.unwrap();
        let began = [before, Instant::now()];
        let operator = Operator::as_somebody(world, &Access::anonymous(proxy.url()), more).await;
        Self { proxy, operator, began }
    }

    /// Holds the n-th write from now on, counted from 0.
    pub(crate) fn hold(&self, n: u64, held: Held) -> Fault {
        let on = self.proxy.on(Match::write().when(|request| !is_aside(request))).skip(n).once();
        match held {
            Held::Before => on.stall(),
            Held::After => on.stall_after_bytes(0),
        }
    }

    /// Waits until the write is held, and kills it; or until everything is done without. Tells whether it was killed.
    pub(crate) async fn killed(self, fault: &Fault, done: impl Future<Output = ()>) -> bool {
        let is_held = tokio::select! {
            () = fault.wait_applied(1) => true,
            () = done => false,
        };
        self.kill().await;
        is_held
    }

    /// SIGKILL. What it has sent and nobody has passed on is lost.
    pub(crate) async fn kill(self) {
        self.operator.kill();
        self.proxy.shut_down().await;
    }

    /// What it has done, and does from now on.
    pub(crate) fn deeds(&self) -> Deeds {
        Deeds { requests: self.proxy.requests(), began: self.began }
    }
}

impl Deeds {
    /// How many writes there were, but for leases and events.
    pub(crate) fn writes(&self) -> usize {
        self.requests.count(is_deed)
    }

    /// When the first of them came, at the earliest.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.times().min().map(|at| self.began[0] + at)
    }

    /// When the last of them came, at the latest.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.times().max().map(|at| self.began[1] + at)
    }

    fn times(&self) -> impl Iterator<Item = Duration> + use<> {
        self.requests.matching(is_deed).into_iter().map(|request| request.at)
    }
}

fn is_deed(request: &Request) -> bool {
    matches!(request.verb(), Verb::Create | Verb::Update | Verb::Patch | Verb::Delete) && !is_aside(request)
}

/// Events are for people: nothing depends on them. Leases are for candidates.
fn is_aside(request: &Request) -> bool {
    request.path.contains("/events") || request.path.contains("/leases")
}
