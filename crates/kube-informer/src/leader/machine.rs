//! What a candidate does next. It knows no server and no clock: the time and what happened go in, what to do comes out.
//!
//! ```text
//!             read: another's, and not lapsed ──▶ wait ──▶ read …
//!   read ──▶  read: nobody's, or lapsed ──▶ write ──▶ leader
//!             read: none there ──▶ create ──▶ leader
//!   leader ──▶ wait (retry period) ──▶ write to the last version ──▶ leader …
//!                                      └─ refused or unknown ──▶ read ──▶ …
//!   leader, renew deadline after its last successful write was sent ──▶ no leader, read …
//! ```
//!
//! The invariant: `until` is never later than the renew deadline after a write that succeeded was sent, and nobody else's
//! machine takes the lease before the lease duration after it saw that write.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::metrics::Counted;
use super::record::{Record, to_microsecond};
use super::settings::{JITTER, Settings};

pub(super) struct Machine {
    settings: Settings,
    /// The lease as it is created.
    blank: Record,
    /// The lease when it was last read or written, and since when it says what it says.
    seen: Option<Seen>,
    /// What the last try to take the lease wrote as its `acquireTime`. A lease with that, and this identity, is ours.
    bid: Option<Timestamp>,
    /// Leader until then.
    until: Option<Instant>,
    /// How often it became leader.
    terms: u64,
    /// The last write was answered, and nothing failed since.
    smooth: bool,
    /// In a row.
    conflicts: u32,
    failures: u32,
    /// What was said last about failures.
    trouble: Option<String>,
    jitter: fastrand::Rng,
    counted: Counted,
}

struct Seen {
    record: Record,
    /// When it was first seen like this.
    since: Instant,
    /// It is not there any more.
    gone: bool,
}

/// What happened.
#[derive(Debug)]
pub(super) enum Event {
    /// It begins, or the time of a wait is over.
    Woken,
    /// The lease was read, or is not there.
    Read(Result<Option<Record>, Trouble>),
    /// The lease was written, by a request that was sent then.
    Wrote { sent: Instant, result: Result<Record, Trouble> },
}

/// Why a request had no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another one was faster.
    Conflict,
    /// It is not there any more.
    Missing,
    /// Anything else. Whether a write was made is unknown.
    Failed(String),
}

/// What to do. A request that takes longer than until `before` has failed.
#[derive(Debug)]
pub(super) enum Action {
    Wait(Instant),
    Read { before: Instant },
    Create { record: Box<Record>, before: Instant },
    Update { record: Box<Record>, before: Instant },
}

/// Twice a request was refused because another one was faster: then it is waited.
const CONFLICTS: u32 = 2;

impl Machine {
    pub(super) fn new(settings: Settings, blank: Record, counted: Counted) -> Self {
        Self {
            settings,
            blank,
            seen: None,
            bid: None,
            until: None,
            terms: 0,
            smooth: false,
            conflicts: 0,
            failures: 0,
            trouble: None,
            jitter: fastrand::Rng::new(),
            counted,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Leader until then, if it leads.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// How often it became leader.
    pub(super) fn terms(&self) -> u64 {
        self.terms
    }

    /// Who has the lease, and until when nobody else can.
    pub(super) fn holder(&self) -> Option<(&str, Instant)> {
        let seen = self.seen.as_ref()?;
        Some((seen.record.holder()?, self.lapses(seen)))
    }

    /// The next step.
    pub(super) fn step(&mut self, now: Instant, wall: Timestamp, event: Event) -> Action {
        self.expire(now);
        match event {
            Event::Woken => match &self.seen {
                Some(seen) if self.until.is_some() && self.smooth => {
                    let record = self.renewal(&seen.record, wall);
                    Action::Update { record, before: self.before(now) }
                }
                _ => Action::Read { before: self.before(now) },
            },
            Event::Read(Ok(found)) => {
                self.observe(found, now);
                self.worked();
                self.decide(now, wall)
            }
            Event::Wrote { sent, result: Ok(record) } => self.written(sent, record, now),
            Event::Wrote { result: Err(Trouble::Conflict | Trouble::Missing), .. } => {
                self.slow_path();
                self.conflicts += 1;
                if self.conflicts < CONFLICTS {
                    return Action::Read { before: self.before(now) };
                }
                self.conflicts = 0;
                self.pause(now)
            }
            Event::Wrote { result: Err(Trouble::Failed(why)), .. } => {
                self.slow_path();
                self.failed(format!("cannot be written: {why}"), now)
            }
            Event::Read(Err(trouble)) => {
                self.smooth = false;
                let why = match trouble {
                    Trouble::Failed(why) => why,
                    trouble => format!("{trouble:?}"),
                };
                self.failed(format!("cannot be read: {why}"), now)
            }
        }
    }

    /// Leads no more. What was seen stays.
    pub(super) fn abdicate(&mut self) {
        self.until = None;
    }

    /// The lease was read in order to give it back: what to write, if it is ours.
    pub(super) fn release(
        &mut self,
        found: Option<Record>,
        now: Instant,
        wall: Timestamp,
    ) -> Option<Box<Record>> {
        self.abdicate();
        self.observe(found, now);
        let seen = self.seen.as_ref().filter(|seen| !seen.gone && self.is_ours(&seen.record))?;
        Some(Box::new(seen.record.clone().released(to_microsecond(wall))))
    }

    /// What follows from what was read.
    fn decide(&mut self, now: Instant, wall: Timestamp) -> Action {
        let Some(seen) = &self.seen else {
            let record = self.blank.clone();
            return self.create(record, now, wall);
        };
        if self.is_ours(&seen.record) {
            let record = self.renewal(&seen.record, wall);
            let before = self.before(now);
            return match seen.gone {
                false => Action::Update { record, before },
                true => Action::Create { record: Box::new(record.anew()), before },
            };
        }
        let (lapses, gone) = (self.lapses(seen), seen.gone);
        let (free, record) = (seen.record.holder().is_none() || now >= lapses, seen.record.clone());
        if self.until.take().is_some() {
            let by = record.holder().unwrap_or("nobody");
            tracing::error!(by, "leadership lost: the lease was taken");
        }
        if free && gone {
            let record = record.anew();
            return self.create(record, now, wall);
        }
        if free {
            return Action::Update { record: self.bid(record, wall), before: self.before(now) };
        }
        // Not later than it lapses: who waits need not wait longer.
        match self.pause(now) {
            Action::Wait(at) => Action::Wait(at.min(lapses)),
            other => other,
        }
    }

    fn create(&mut self, record: Record, now: Instant, wall: Timestamp) -> Action {
        Action::Create { record: self.bid(record, wall), before: self.before(now) }
    }

    /// The lease as it is to become ours.
    fn bid(&mut self, record: Record, wall: Timestamp) -> Box<Record> {
        let wall = to_microsecond(wall);
        self.bid = Some(wall);
        Box::new(record.taken(&self.settings.identity, self.settings.lease_seconds(), wall))
    }

    fn renewal(&self, record: &Record, wall: Timestamp) -> Box<Record> {
        Box::new(record.clone().renewed(self.settings.lease_seconds(), to_microsecond(wall)))
    }

    /// A write succeeded: leader, for as long as that write is good for.
    fn written(&mut self, sent: Instant, record: Record, now: Instant) -> Action {
        let ours = self.is_ours(&record);
        self.observe(Some(record), now);
        self.conflicts = 0;
        if !ours {
            self.smooth = false;
            return self.failed("cannot be written: the answer is of another one".to_owned(), now);
        }
        self.worked();
        let until = sent + self.settings.renew;
        if now >= until {
            // The answer took too long: good for others, not for us.
            return Action::Read { before: self.before(now) };
        }
        if self.until.is_none() {
            self.terms += 1;
            tracing::info!(identity = self.settings.identity, "became leader");
        }
        // Writes are sent one after the other: this is later than what was there.
        self.until = Some(until);
        self.smooth = true;
        Action::Wait((now + self.settings.retry).min(until))
    }

    fn observe(&mut self, found: Option<Record>, now: Instant) {
        match (found, &mut self.seen) {
            (None, None) => {}
            (None, Some(seen)) => seen.gone = true,
            (Some(record), Some(seen)) if seen.record.says_the_same(&record) && !seen.gone => {
                seen.record = record;
            }
            (Some(record), seen) => {
                let who = |record: &Record| record.holder().map(str::to_owned);
                let before = seen.as_ref().and_then(|seen| who(&seen.record));
                if let Some(holder) = record.holder().filter(|holder| before.as_deref() != Some(*holder)) {
                    let lasts = record.duration().unwrap_or(self.settings.lease);
                    tracing::info!(leader = holder, ?lasts, "the lease has a new holder");
                }
                *seen = Some(Seen { record, since: now, gone: false });
            }
        }
    }

    /// Whether the lease is this candidate's: in its name, and as it took it itself.
    fn is_ours(&self, record: &Record) -> bool {
        record.holder() == Some(&self.settings.identity)
            && self.bid.is_some_and(|bid| record.acquired() == Some(bid))
    }

    /// When others may take it. A lease that does not say how long it is somebody's is theirs as long as ours is ours.
    fn lapses(&self, seen: &Seen) -> Instant {
        let duration = seen.record.duration().unwrap_or(self.settings.lease);
        seen.since.checked_add(duration).unwrap_or(seen.since + self.settings.lease)
    }

    fn expire(&mut self, now: Instant) {
        if self.until.is_some_and(|until| now >= until) {
            self.until = None;
            let why = self.trouble.as_deref().unwrap_or("this process had no turn for so long");
            tracing::error!(deadline = ?self.settings.renew, why, "leadership lost: not renewed in time");
        }
    }

    /// Until when a request that is sent now must be answered.
    fn before(&self, now: Instant) -> Instant {
        let before = now + self.settings.request();
        self.until.map_or(before, |until| before.min(until))
    }

    fn slow_path(&mut self) {
        if std::mem::take(&mut self.smooth) {
            self.counted.slow_path();
        }
    }

    fn worked(&mut self) {
        self.failures = 0;
        if self.trouble.take().is_some() {
            tracing::info!("the lease can be reached again");
        }
    }

    /// A request failed. A leader tries again as long as it is one, others more and more seldom.
    fn failed(&mut self, trouble: String, now: Instant) -> Action {
        if self.trouble.as_deref() == Some(&*trouble) {
            tracing::debug!(trouble, "the lease still cannot be reached");
        } else {
            let leader = self.until.is_some();
            tracing::warn!(
                leader,
                "the lease {trouble}; check the network, and that get, create and update are allowed"
            );
            self.trouble = Some(trouble);
        }
        let times = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        if self.until.is_some() {
            return self.pause(now);
        }
        let longest = self.settings.lease.max(self.settings.retry);
        let wait = self.settings.retry.saturating_mul(times).min(longest);
        Action::Wait(now + self.jittered(wait, 0.2))
    }

    /// The time between two tries.
    fn pause(&mut self, now: Instant) -> Action {
        let retry = self.settings.retry;
        Action::Wait(match self.until {
            Some(until) => (now + retry).min(until),
            None => now + self.jittered(retry, JITTER),
        })
    }

    /// So long, and up to that part of it longer: who waits for the same does not come back at once.
    fn jittered(&mut self, time: Duration, part: f64) -> Duration {
        time + time.mul_f64(part * self.jitter.f64())
    }
}
