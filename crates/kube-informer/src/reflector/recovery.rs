//! What to do when something failed.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::fault::{Fault, Remedy};
use super::request::Freshness;
use super::transport::{Absence, Transport};
use super::{Delta, Gone, Reflector, Report, Sink, State, Why};

impl<T: Transport, S: Sink> Reflector<T, S> {
    /// A list failed that was to be so fresh.
    pub(super) async fn list_failed(&mut self, fault: Fault, freshness: Freshness, list: ListKind) -> State {
        let streaming = list != ListKind::Plain;
        let remedy = fault.remedy(streaming);
        let again = |freshness, why| State::Begin { freshness, why };
        // Something is wrong, and nobody says that it is the stream. Where nothing answers, it is not.
        let is_odd = match remedy {
            Remedy::Everything => true,
            Remedy::Newest => freshness == Freshness::Newest,
            _ => matches!(fault, Fault::Connection(_)) && list == ListKind::StreamThatBegan,
        };
        self.odd_streams = match (is_odd, streaming) {
            (true, true) => self.odd_streams.saturating_add(1),
            // It is not the stream.
            (true, false) => 0,
            (false, _) => self.odd_streams,
        };
        let next = match remedy {
            Remedy::PlainList => return self.list_plainly(fault, freshness),
            // Where even the newest is too old or too new, only time helps.
            Remedy::Newest if freshness != Freshness::Newest => {
                self.failing(fault, remedy, Duration::ZERO);
                return again(Freshness::Newest, Why::Expired);
            }
            Remedy::Credentials if self.reload().await => return again(freshness, Why::Failure),
            Remedy::NotServed => {
                return State::NotServed { fault, next: Box::new(again(freshness, Why::Failure)) };
            }
            // A version that the server itself does not take would never do. The newest is not older, either.
            Remedy::Everything if is_no_number(&freshness) && matches!(fault, Fault::Status(_)) => {
                again(Freshness::Newest, Why::Failure)
            }
            // It may be the stream all the same: a list tells. The next time, a stream is tried again.
            _ if streaming && is_odd && self.odd_streams >= ODD_STREAMS => {
                State::Listing { freshness, paged: true }
            }
            _ => again(freshness, Why::Failure),
        };
        self.pause(fault, remedy, next)
    }

    /// A streaming list is not to be had: a plain one now, and for a while. Of all that the server has, if it says so;
    /// else of this resource alone.
    pub(super) fn list_plainly(&mut self, fault: Fault, freshness: Freshness) -> State {
        let believed = self.settings.plain;
        if fault.refuses_streaming_lists() {
            self.server.no_streaming_lists(&self.target.resource.api_version(), believed);
        } else {
            self.plain = Some(Instant::now() + believed);
        }
        self.failing(fault, Remedy::PlainList, Duration::ZERO);
        State::Listing { freshness, paged: true }
    }

    /// Whether no streaming list is to be asked for.
    pub(super) fn lists_plainly(&self) -> bool {
        self.plain.is_some_and(|until| Instant::now() < until)
            || self.server.lists_plainly(&self.target.resource.api_version())
    }

    /// A watch failed, to open or later.
    pub(super) async fn watch_failed(&mut self, fault: Fault) -> State {
        let remedy = fault.remedy(false);
        let next = match remedy {
            // Nobody was there: who will be may have another state than who was.
            Remedy::Again if matches!(fault, Fault::Refused(_)) => State::Probe,
            Remedy::Again => State::Connect,
            Remedy::Newest => {
                let next = State::Begin { freshness: self.not_older(), why: Why::Expired };
                // No watch has lasted since the list before this one: another at once would be too old as well.
                if std::mem::replace(&mut self.expired, true) {
                    return self.pause(fault, remedy, next);
                }
                self.failing(fault, remedy, Duration::ZERO);
                return next;
            }
            Remedy::Credentials if self.reload().await => return State::Connect,
            Remedy::Credentials => State::Connect,
            Remedy::Forbidden | Remedy::NotServed | Remedy::Everything | Remedy::PlainList => {
                State::Begin { freshness: self.not_older(), why: Why::Failure }
            }
        };
        if remedy == Remedy::NotServed {
            return State::NotServed { fault, next: Box::new(next) };
        };
        self.pause(fault, remedy, next)
    }

    /// Waits before what is next.
    pub(super) fn pause(&mut self, fault: Fault, remedy: Remedy, next: State) -> State {
        let mut wait = self.backoff.failed(fault.retry_after());
        if matches!(remedy, Remedy::Forbidden | Remedy::NotServed) {
            wait = wait.max(self.settings.slow);
        }
        // What is not accepted now may have been replaced by then.
        let reload = fault.is_of_credentials();
        self.failing(fault, remedy, wait);
        State::Pause { until: Instant::now() + wait, reload, next: Box::new(next) }
    }

    /// The resource is not served. Its objects are gone only if that is proven, and then it is told once.
    pub(super) async fn not_served(&mut self, fault: Fault, next: State) -> Result<State, Gone> {
        if let Some(version) = self.version.clone().filter(|_| !self.absent) {
            let patience = self.settings.patience;
            let proof = timeout(patience, self.transport.absence(&self.target.resource)).await;
            match proof {
                Ok(Absence::Proven) => {
                    self.absent = true;
                    self.unreadable.clear();
                    let (objects, unreadable) = (Vec::new(), Vec::new());
                    self.upkeep.listed(&objects, self.intakes.dictionaries(), true);
                    // Of the last version that was seen: what comes back is not older.
                    let replace =
                        Delta::Replace { objects, unreadable, complete: true, version, went_back: false };
                    self.sink.deliver(replace).await?;
                    self.sink.report(Report::Absent);
                }
                Ok(Absence::NotProven(why)) => self.sink.report(Report::NotProvenAbsent { why }),
                Err(_) => {
                    let why = format!("no answer within {patience:?}");
                    self.sink.report(Report::NotProvenAbsent { why });
                }
            }
        }
        Ok(self.pause(fault, Remedy::NotServed, next))
    }

    /// Reads the credentials anew, to try again at once: one time until they are accepted again.
    async fn reload(&mut self) -> bool {
        if self.reloaded {
            return false;
        }
        self.reloaded = true;
        self.transport.reload_credentials().await;
        true
    }
}

/// How everything was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    Plain,
    /// A streaming list, which was not answered with one.
    Stream,
    /// One that was.
    StreamThatBegan,
}

/// After so many streaming lists in a row that failed for no reason that is the stream's, each is followed by a plain one.
const ODD_STREAMS: u32 = 2;

/// Whether it is a version without an order. Some servers take only numbers.
fn is_no_number(freshness: &Freshness) -> bool {
    matches!(freshness, Freshness::NotOlderThan(version) if version.number().is_none())
}
