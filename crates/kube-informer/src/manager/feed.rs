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
//! An informer that others use, too, is not taken away from them. While a new one begins, what was seen last stays; what it
//! knows is told once it knows as much as was seen before.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::Inner;
use super::plan::FeedKey;
use super::state::GroupKey;
use crate::factory::lease::Lease;
use crate::informer::{Cause, Informer, State};

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
    Restart(String),
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
                task.run(inner).await;
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

    /// Waits until it has given its informer back.
    pub(super) async fn ended(&self) {
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    async fn run(self: Arc<Self>, inner: Arc<Inner>) {
        let mut closed = self.closed.subscribe();
        let mut lease = inner.factory.lease(self.group.spec(&self.key));
        let mut attempts = 0;
        loop {
            self.show(Some(lease.informer().clone()));
            let begun = Instant::now();
            let why = match self.follow(&inner, &lease, &mut closed).await {
                End::Closed => break,
                End::Restart(why) => why,
            };
            let (first, longest) = inner.settings().restarts;
            // What ran for so long has nothing to do with what was before.
            attempts = if begun.elapsed() > longest { 0 } else { attempts };
            let wait = first.saturating_mul(1_u32.checked_shl(attempts).unwrap_or(u32::MAX)).min(longest);
            attempts = attempts.saturating_add(1);
            tracing::warn!(
                manager = %inner.name(), of = %self.group, scope = %lease.informer().scope(), why, ?wait,
                "an informer is begun anew"
            );
            // First: what the old one knows must not count as what the new one does.
            self.show(None);
            inner.restarts(&self);
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => break,
                () = tokio::time::sleep(wait) => {}
            }
            lease = lease.renew().await;
        }
        self.show(None);
        lease.release().await;
    }

    fn show(&self, informer: Option<Informer>) {
        *self.informer.lock().unwrap_or_else(PoisonError::into_inner) = informer;
    }

    /// Tells what an informer tells, until that has to end.
    async fn follow(
        self: &Arc<Self>,
        inner: &Inner,
        lease: &Lease,
        closed: &mut watch::Receiver<bool>,
    ) -> End {
        let informer = lease.informer().clone();
        let name = format!("manager {}", inner.name());
        let mut events = informer.subscribe().resync(Duration::ZERO).name(name).events();
        let mut changes = std::pin::pin!(informer.health_changes());
        let settings = inner.settings();
        let mut ticks = tokio::time::interval(settings.health_check);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut checks = Checks::default();
        loop {
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return End::Closed,
                change = changes.next() => {
                    let Some(health) = change else { return End::Restart("it was stopped".to_owned()) };
                    if health.state == State::Stopped {
                        return End::Restart("it was stopped".to_owned());
                    }
                    checks.note(&health.state);
                    inner.report(self, &informer, &health.state);
                }
                event = events.next() => match event {
                    Some(event) => inner.heard(self, &informer, &event),
                    None => return End::Restart("it was stopped".to_owned()),
                },
                _ = ticks.tick() => {
                    let health = informer.health().state;
                    checks.note(&health);
                    if let Some(why) = checks.verdict(&health, settings.grace)
                        && !lease.is_shared()
                    {
                        return End::Restart(why);
                    }
                    inner.report(self, &informer, &health);
                }
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
            | Cause::Misconfigured => None,
            _ => is_over.then(|| format!("not live for more than {grace:?}: {why}")),
        }
    }
}
