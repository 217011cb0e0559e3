//! What others see of an election.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::metrics::Counted;

/// A candidacy, and leadership whenever it is won. From [`LeaderElection::start`](super::LeaderElection::start).
///
/// A clone is the same. With the last one, the candidacy ends; the lease then lapses, it is not given back.
#[derive(Clone)]
pub struct Leadership {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Arc<str>,
    view: watch::Receiver<View>,
    leads: watch::Receiver<bool>,
    /// When it is to have ended, once it is to end.
    end: watch::Sender<Option<Instant>>,
    ended: watch::Receiver<Option<Ended>>,
}

/// How it stands, as far as the task knows.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    until: Option<Instant>,
    /// How often leadership was won.
    term: u64,
    holder: Option<(Arc<str>, Instant)>,
}

/// Where the task tells what it knows.
pub(super) struct Board {
    view: watch::Sender<View>,
    leads: watch::Sender<bool>,
    end: watch::Receiver<Option<Instant>>,
    ended: watch::Sender<Option<Ended>>,
}

/// How a candidacy ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The lease was given back: it is free.
    Released,
    /// The lease was another's, or nobody's.
    NotHeld,
    /// The lease was not given back, as it was asked for: others may lead when it lapses.
    Kept,
    /// The lease could not be given back, for that reason: others may lead when it lapses.
    Failed(String),
}

/// Leadership was lost, or there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("leadership lost: what was to be done under it was given up")]
pub struct Lost;

pub(super) fn pair(identity: Arc<str>, counted: &Counted) -> (Leadership, Board) {
    let (view, seen) = watch::channel(View::default());
    let (leads, told) = watch::channel(false);
    let (end, ends) = watch::channel(None);
    let (ended, outcome) = watch::channel(None);
    counted.observe(seen.clone());
    let inner = Inner { identity, view: seen, leads: told, end, ended: outcome };
    (Leadership { inner: Arc::new(inner) }, Board { view, leads, end: ends, ended })
}

impl View {
    /// Whether it leads now. It looks at the clock: nobody has to have said that it is over.
    pub(super) fn leads(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

impl Leadership {
    /// Whether this process leads, at this moment, by the clock. Ask before everything that only a leader may do.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.inner.view.borrow().leads()
    }

    /// Which time it is that this process leads, counted from 1; `None` where it does not, at this moment, by the clock. Who
    /// asks now and then can tell by it that leadership was lost and won again meanwhile.
    #[must_use]
    pub fn term(&self) -> Option<u64> {
        let view = self.inner.view.borrow();
        view.leads().then_some(view.term)
    }

    /// Until when it leads, if nothing is renewed; `None` where it does not.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.inner.view.borrow().until.filter(|until| Instant::now() < *until)
    }

    /// Who leads now, as far as it is known here; `None` where nobody does, or it is not known.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        let view = self.inner.view.borrow();
        let (holder, lapses) = view.holder.as_ref()?;
        (Instant::now() < *lapses).then(|| holder.to_string())
    }

    /// What this candidate is called in the lease.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// Leadership as it comes and goes, for those who wait for a turn of either. It is told by a task, which may have its
    /// turn late: [`is_leader`](Self::is_leader) knows at once. It closes when the candidacy has ended.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<bool> {
        self.inner.leads.clone()
    }

    /// Waits until this process leads. It waits for ever if the candidacy has ended.
    pub async fn acquired(&self) {
        if self.begun().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process leads; the number of that term. `None` if the candidacy has ended.
    pub(crate) async fn begun(&self) -> Option<u64> {
        let mut view = self.inner.view.clone();
        loop {
            {
                let view = view.borrow_and_update();
                if view.leads() {
                    return Some(view.term);
                }
            }
            view.changed().await.ok()?;
        }
    }

    /// Waits until leadership is lost; not at all, if there is none. Lost and won again counts as lost.
    pub async fn lost(&self) {
        let term = self.inner.view.borrow().term;
        self.ended(term).await;
    }

    /// Waits for the end of a term.
    pub(crate) async fn ended(&self, term: u64) {
        let mut view = self.inner.view.clone();
        loop {
            let until = match &*view.borrow_and_update() {
                state if state.leads() && state.term == term => state.until,
                _ => return,
            };
            let Some(until) = until else { return };
            tokio::select! {
                changed = view.changed() => if changed.is_err() { sleep_until(until).await },
                () = sleep_until(until) => {}
            }
        }
    }

    /// Runs a future while this process leads. Before each of its steps the clock is looked at; once leadership is lost,
    /// none is made any more, and the future is dropped. Lost and won again counts as lost: another one may have led.
    ///
    /// ```no_run
    /// # async fn example(leadership: kube_informer::leader::Leadership) {
    /// loop {
    ///     leadership.acquired().await;
    ///     let _ = leadership.guard(async { /* what only a leader does */ }).await;
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Where leadership was lost, or there was none.
    pub async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        let term = self.inner.view.borrow().term;
        self.guard_term(term, work).await
    }

    /// The same, while a term lasts.
    pub(crate) async fn guard_term<T>(&self, term: u64, work: impl Future<Output = T>) -> Result<T, Lost> {
        let mut work = pin!(work);
        let mut lost = pin!(self.ended(term));
        poll_fn(|context| {
            // Before, and not only when the timer says so: after a freeze both are ready.
            if self.term() != Some(term) || lost.as_mut().poll(context).is_ready() {
                return std::task::Poll::Ready(Err(Lost));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Ends the candidacy, and gives the lease back if it is held and [that was not turned
    /// off](super::LeaderElection::release). All work that only a leader does must have ended. The deadline is for giving it
    /// back; of several calls, the first one's counts.
    pub async fn shutdown(&self, deadline: Duration) -> Ended {
        self.end(deadline);
        let mut ended = self.inner.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ended::NotHeld),
            Err(_) => Ended::Failed("the runtime was shut down".to_owned()),
        }
    }

    /// The same, but nobody waits for it.
    pub(crate) fn end(&self, deadline: Duration) {
        self.inner.end.send_if_modified(|end| {
            let now = Instant::now();
            let first = end.is_none();
            end.get_or_insert_with(|| now.checked_add(deadline).unwrap_or(now + LONGEST));
            first
        });
    }
}

/// What a deadline without an end is taken for.
const LONGEST: Duration = Duration::from_secs(86_400);

impl Board {
    /// What is known now. Leadership begins with the view and ends with it; who waits is told afterwards.
    pub(super) fn show(&self, until: Option<Instant>, term: u64, holder: Option<(&str, Instant)>) {
        self.view.send_modify(|view| {
            (view.until, view.term) = (until, term);
            view.holder = match (holder, view.holder.take()) {
                (Some((holder, lapses)), Some((known, _))) if *known == *holder => Some((known, lapses)),
                (Some((holder, lapses)), _) => Some((holder.into(), lapses)),
                (None, _) => None,
            };
        });
        let leads = until.is_some();
        self.leads.send_if_modified(|told| std::mem::replace(told, leads) != leads);
    }

    /// Waits until it is to end: by then, or, where all handles are gone, without giving anything back.
    pub(super) async fn end(&mut self) -> Option<Instant> {
        match self.end.wait_for(Option::is_some).await {
            Ok(end) => *end,
            Err(_) => None,
        }
    }

    pub(super) fn ended(self, ended: Ended) {
        self.ended.send_replace(Some(ended));
    }
}

/// Leadership until then, of which nothing more is told than what the other one is made to tell.
#[cfg(test)]
pub(crate) fn leads_until(until: Instant) -> (Leadership, Teller) {
    let (leadership, board) = pair("test".into(), &Counted::default());
    board.show(Some(until), 1, None);
    (leadership, Teller(board))
}

#[cfg(test)]
pub(crate) struct Teller(Board);

#[cfg(test)]
impl Teller {
    /// It leads until then, for that time.
    pub(crate) fn leads(&self, until: Instant, term: u64) {
        self.0.show(Some(until), term, None);
    }

    /// Waits until the candidacy is to end.
    pub(crate) async fn end(&mut self) -> Option<Instant> {
        self.0.end().await
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("identity", &self.identity())
            .field("is_leader", &self.is_leader())
            .field("leader", &self.leader())
            .finish_non_exhaustive()
    }
}
