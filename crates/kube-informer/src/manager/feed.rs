//! One informer of a manager, and the task that follows it: what it tells, how it is, and whether it must begin anew.
//!
//! A reflector tries again by itself, and resumes where it was; where that will do, nothing is restarted: refused connections,
//! expired credentials, servers that ask for patience, what is forbidden or not served. Restarted is what
//!
//! - was stopped, though it is still in use;
//! - failed itself, which is a bug;
//! - has not been live for longer than the grace, while the server answers or the connection breaks again and again: a new
//!   informer lists anew, without whatever the old one was stuck with.
//!
//! Until then it is followed, and where it recovers, it stays. An informer that others use, too, is not taken away from them.
//! While a new one begins, what was seen last stays; what it knows is told once it knows as much as was seen before.
//!
//! What is seen is read from the cache, which is ahead of what is told of it. So every change is told, also that of an object
//! which comes and goes: it may have been seen meanwhile. Where that is too much, everything is looked at.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::Inner;
use super::entry::later;
use super::plan::FeedKey;
use super::state::GroupKey;
use crate::factory::lease::Lease;
use crate::informer::{Cause, Delivery, Event, Events, Informer, State};

/// So many changes may wait until they are taken.
const ROOM: usize = 1024;

/// See the module.
pub(super) struct Feed {
    pub(super) key: FeedKey,
    pub(super) group: Arc<GroupKey>,
    closed: watch::Sender<bool>,
    ended: watch::Receiver<()>,
    informer: Mutex<Option<Informer>>,
}

/// Why nothing more is to be had of an informer.
#[derive(Debug)]
enum End {
    Closed,
    /// It was stopped by somebody else.
    Stopped,
    /// It is stuck, and its time is over. It ran well for so long.
    Stuck(String, Duration),
}

/// What an informer tells. Whoever knows the informer from this may read its cache: what changes afterwards is told.
struct Told {
    first: Option<Event>,
    events: Events<serde_json::Value>,
}

impl Told {
    fn new(inner: &Inner, informer: &Informer) -> Self {
        let name = format!("manager {}", inner.name());
        let told = informer.subscribe().delivery(Delivery::Every(ROOM)).resync(Duration::ZERO).name(name);
        let mut events = told.events();
        // Only who has asked once is told of everything that follows.
        let first = events.next().now_or_never().flatten();
        Self { first, events }
    }

    async fn next(&mut self) -> Option<Event> {
        match self.first.take() {
            Some(first) => Some(first),
            None => self.events.next().await,
        }
    }
}

impl Feed {
    /// Begins to follow an informer.
    pub(super) fn open(inner: &Inner, group: Arc<GroupKey>, key: FeedKey) -> Arc<Self> {
        let (running, ended) = watch::channel(());
        let feed = Arc::new(Self {
            key,
            group,
            closed: watch::Sender::new(false),
            ended,
            informer: Mutex::default(),
        });
        let task = Arc::clone(&feed);
        // The manager's tasks do not keep it.
        if let Some(inner) = inner.this.upgrade() {
            let runtime = inner.factory.runtime().clone();
            runtime.spawn(async move {
                // Nobody else would follow its informer.
                while AssertUnwindSafe(task.run(&inner)).catch_unwind().await.is_err() {
                    let wait = inner.settings().restarts.0;
                    tracing::error!(manager = %inner.name(), of = %task.group, "a manager's task panicked: it begins anew");
                    if task.pause(&inner, wait).await {
                        break;
                    }
                }
                drop(running);
            });
        }
        feed
    }

    /// The informer that it follows now; none while it begins anew.
    pub(super) fn informer(&self) -> Option<Informer> {
        self.informer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it: see [`ended`](Self::ended).
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Ends when it has given its informer back.
    pub(super) fn ending(&self) -> watch::Receiver<()> {
        self.ended.clone()
    }

    async fn run(self: &Arc<Self>, inner: &Arc<Inner>) {
        let mut lease = inner.factory.lease(self.group.spec(&self.key));
        let mut attempts = 0;
        loop {
            // First: of what is seen in its cache from now on, each change is told.
            let told = Told::new(inner, lease.informer());
            self.show(Some(lease.informer().clone()));
            let begun = Instant::now();
            let (first, longest) = inner.settings().restarts;
            let wait = first.saturating_mul(1_u32.checked_shl(attempts).unwrap_or(u32::MAX)).min(longest);
            let (why, ran, wait) = match self.follow(inner, &lease, told, wait).await {
                End::Closed => break,
                // Nothing more can come of it.
                End::Stopped if inner.factory.is_stopped() => {
                    let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
                    break;
                }
                End::Stopped => ("it was stopped".to_owned(), begun.elapsed(), wait),
                End::Stuck(why, ran) => (why, ran, Duration::ZERO),
            };
            // What ran well for so long has nothing to do with what was before.
            attempts = if ran > longest { 1 } else { attempts.saturating_add(1) };
            tracing::warn!(
                manager = %inner.name(), of = %self.group, scope = %lease.informer().scope(), why, ?wait,
                "an informer is begun anew"
            );
            if self.pause(inner, wait).await {
                break;
            }
            lease = lease.renew().await;
        }
        self.show(None);
        lease.release().await;
    }

    /// It has no informer for so long; whether it was closed meanwhile.
    async fn pause(self: &Arc<Self>, inner: &Inner, wait: Duration) -> bool {
        // First: what the old one knows must not count as what the new one does.
        self.show(None);
        inner.restarts(self);
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => true,
            () = tokio::time::sleep(wait) => false,
        }
    }

    fn show(&self, informer: Option<Informer>) {
        *self.informer.lock().unwrap_or_else(PoisonError::into_inner) = informer;
    }

    /// Tells what an informer tells, until that has to end: so long after it is known that it is stuck, if it still is.
    async fn follow(self: &Arc<Self>, inner: &Inner, lease: &Lease, mut told: Told, wait: Duration) -> End {
        let informer = lease.informer().clone();
        let mut closed = self.closed.subscribe();
        let mut changes = std::pin::pin!(informer.health_changes());
        let settings = inner.settings();
        let mut ticks = tokio::time::interval(settings.health_check);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let begun = Instant::now();
        let mut checks = Checks::default();
        // When it begins anew, unless it recovers.
        let mut at: Option<Instant> = None;
        loop {
            // Events last: however many come, it is looked at the rest.
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return End::Closed,
                change = changes.next() => {
                    let Some(health) = change else { return End::Stopped };
                    if health.state == State::Stopped {
                        return End::Stopped;
                    }
                    checks.note(&health.state);
                    inner.report(self, &informer, &health.state);
                }
                _ = ticks.tick() => {
                    let health = informer.health().state;
                    checks.note(&health);
                    let verdict = checks.verdict(&health, settings.grace).filter(|_| !lease.is_shared());
                    at = verdict.is_some().then(|| at.unwrap_or_else(|| later(Instant::now(), wait)));
                    inner.report(self, &informer, &health);
                }
                () = tokio::time::sleep_until(at.unwrap_or(begun)), if at.is_some() => {
                    let health = informer.health().state;
                    checks.note(&health);
                    at = None;
                    if let Some(why) = checks.verdict(&health, settings.grace)
                        && !lease.is_shared()
                    {
                        let ran = checks.stale.map_or(Duration::ZERO, |since| since.duration_since(begun));
                        return End::Stuck(why, ran);
                    }
                }
                event = told.next() => match event {
                    Some(event) => inner.heard(self, &informer, &event),
                    None => return End::Stopped,
                },
            }
            tokio::task::coop::consume_budget().await;
        }
    }
}

/// What health checks remember.
#[derive(Debug, Default)]
struct Checks {
    /// Since when it is not live.
    stale: Option<Instant>,
}

impl Checks {
    fn note(&mut self, state: &State) {
        match state {
            State::Stale { .. } => self.stale = self.stale.or_else(|| Some(Instant::now())),
            _ => self.stale = None,
        }
    }

    /// Why it must begin anew, if it must.
    fn verdict(&self, state: &State, grace: Duration) -> Option<String> {
        let State::Stale { why, .. } = state else { return None };
        let is_over = self.stale.is_some_and(|since| since.elapsed() >= grace);
        match why.cause {
            Cause::Broken => Some(why.to_string()),
            Cause::Refused
            | Cause::Unauthorized
            | Cause::Forbidden
            | Cause::NotServed
            | Cause::Throttled
            // However long a list takes: one that stands still ends as stalled.
            | Cause::Relisting
            | Cause::Misconfigured => None,
            _ => is_over.then(|| format!("not live for more than {grace:?}: {why}")),
        }
    }
}
