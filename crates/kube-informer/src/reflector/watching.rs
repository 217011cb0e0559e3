//! What happens after a version: one change after the other.
//!
//! A watch that ends is followed by another one of the last version. One that ended as none should, because it ended at
//! once, broke off or fell silent, is followed by it after a pause, of which the sink is told, and, where the server may
//! be another one by then, after a look at its version. Where nothing came of some of them in a row, everything is listed,
//! and that again as long as it stays so: something on the way lets no watch pass.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

use super::fault::{Fault, Remedy};
use super::request::Freshness;
use super::stream::{Heard, List, Read, Watch};
use super::transport::Transport;
use super::{Delta, Gone, Reflector, Report, Sink, State, Unread, Why};
use crate::encoding::{Bookmark, DecodeError, ObjectKey};
use crate::object::Version;
use crate::wire::{Change, WatchFrame, WireError};

impl<T: Transport, S: Sink> Reflector<T, S> {
    pub(super) async fn connect(&mut self) -> State {
        let Some(version) = self.version.clone() else {
            return State::Begin { freshness: Freshness::Any, why: Why::First };
        };
        let (asked, timeout) = (Instant::now(), self.watch_timeout());
        let request = self.target.watch(&version, timeout, self.encoding());
        match self.open(request).await {
            Ok((encoding, body)) => {
                self.liveness.opened();
                let watch = Box::new(Watch::new(encoding, body, self.settings.limit, asked, timeout));
                self.watch(watch)
            }
            // The request or its answer is lost, and nothing was missed.
            Err(fault @ (Fault::Connection(_) | Fault::Untrusted(_) | Fault::Stalled(_))) => {
                self.fruitless = self.fruitless.saturating_add(1);
                self.again(fault, State::Probe)
            }
            Err(fault) => self.watch_failed(fault).await,
        }
    }

    /// Begins to watch.
    pub(super) fn watch(&mut self, mut watch: Box<Watch>) -> State {
        watch.begin();
        // After some of which nothing came, that it is open does not mean that it works.
        if self.fruitless == 0 {
            self.tell(&mut watch);
        }
        State::Watching { watch }
    }

    fn tell(&self, watch: &mut Watch) {
        watch.told = true;
        self.sink.report(Report::Watching { encoding: watch.encoding });
    }

    pub(super) async fn watching(&mut self, mut watch: Box<Watch>) -> Result<State, Gone> {
        let suspicious = self.liveness.suspicious_at(watch.opened, watch.heard, watch.timeout);
        let settled = watch.began + SHORT.min(watch.timeout);
        let until = if watch.told { suspicious } else { suspicious.min(settled) };
        if self.upkeep.is_due() {
            // What came does not wait for it.
            self.sink.flush().await?;
            self.upkeep_step().await?;
        }
        let heard = tokio::select! {
            biased;
            heard = watch.next(until, &mut self.traffic) => heard,
            () = std::future::ready(()), if self.upkeep.is_waiting() => {
                self.upkeep_step().await?;
                return Ok(State::Watching { watch });
            }
        };
        if !matches!(heard, Heard::Frame(WatchFrame::Object { .. })) {
            self.sink.flush().await?;
        }
        let works = match &heard {
            Heard::Frame(frame) => matches!(frame, WatchFrame::Bookmark { .. }),
            Heard::Silence => until < suspicious,
            _ => false,
        };
        if works && !watch.told {
            self.tell(&mut watch);
        }
        match heard {
            Heard::Frame(WatchFrame::Object { change, object }) => {
                if let Some(state) = self.changed(&mut watch, change, &object).await? {
                    return Ok(state);
                }
            }
            Heard::Frame(WatchFrame::Bookmark { object }) => {
                match self.intakes.of(watch.encoding).codec().bookmark(&object) {
                    Ok(Bookmark { version, .. }) => {
                        self.liveness.bookmark();
                        if self.went_back(&version) {
                            return Ok(self.rewound());
                        }
                        tracing::trace!(%version, "nothing more has happened");
                        self.version = Some(version.clone());
                        self.sink.deliver(Delta::Progress(version)).await?;
                    }
                    Err(error) => self.unread(Unread::Bookmark, &error),
                }
            }
            Heard::Frame(WatchFrame::Error(status)) => {
                self.lasted(&watch);
                return Ok(self.watch_failed(Fault::Status(Box::new(status))).await);
            }
            Heard::Unreadable(error, change) => {
                if let Some(state) = self.event_lost(change, &error).await? {
                    return Ok(state);
                }
            }
            Heard::Failed(fault) => {
                self.lasted(&watch);
                return Ok(self.watch_failed(fault).await);
            }
            Heard::End => return Ok(self.ended(&watch)),
            Heard::Broke { fault, inside } => return Ok(self.broke(&watch, fault, inside)),
            Heard::Silence if until < suspicious => {}
            Heard::Silence => return Ok(self.fell_silent(&watch)),
            Heard::Pause => self.received(true),
        }
        Ok(State::Watching { watch })
    }

    /// One object changed.
    async fn changed(
        &mut self,
        watch: &mut Watch,
        change: Change,
        bytes: &[u8],
    ) -> Result<Option<State>, Gone> {
        let object = match self.make_fresh(watch.encoding, bytes) {
            Ok(object) => object,
            Err(_) if watch.doubt(&mut self.traffic) => return Ok(None),
            Err(error) if error.wants_json() => return Ok(Some(self.turn_to_json(&error))),
            Err(error) => return self.unreadable_change(change, &error).await,
        };
        if !watch.told {
            self.tell(watch);
        }
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&object.key().to_key());
        }
        if !object.version().is_empty() {
            self.version = Some(object.version().clone());
        }
        let delta = match change {
            Change::Added | Change::Modified => {
                self.upkeep.came(&object);
                Delta::Put(object)
            }
            Change::Deleted => Delta::Remove(object),
        };
        self.sink.deliver(delta).await?;
        self.upkeep_event();
        Ok(None)
    }

    /// A change could not be read. That an object is gone can be told all the same; of any other change, what is known
    /// stays, and everything is listed, unless that was tried and did not help.
    async fn unreadable_change(
        &mut self,
        change: Change,
        error: &DecodeError,
    ) -> Result<Option<State>, Gone> {
        let key = error.key.as_deref().cloned();
        self.unreadable(key.clone(), error);
        self.without_content(Some(change), key, error).await
    }

    /// Something in the stream was not an event, or is too large for one. Whose it is and what became of that may be known
    /// all the same.
    async fn event_lost(&mut self, change: Option<Change>, error: &WireError) -> Result<Option<State>, Gone> {
        let key = self.skipped(error);
        self.without_content(change, key, error).await
    }

    async fn without_content(
        &mut self,
        change: Option<Change>,
        key: Option<ObjectKey>,
        error: &(dyn Display + Sync),
    ) -> Result<Option<State>, Gone> {
        match (change, key) {
            (Some(Change::Deleted), Some(key)) => {
                self.unreadable.remove(&key);
                self.sink.deliver(Delta::RemoveKey(key)).await?;
                Ok(None)
            }
            (Some(_), Some(key)) if self.unreadable.contains(&key) => Ok(None),
            _ => Ok(Some(self.list_after_unreadable(error.to_string()))),
        }
    }

    /// Everything, but not at once: what is broken may be broken for long.
    fn list_after_unreadable(&mut self, error: String) -> State {
        let next = State::Begin { freshness: self.not_older(), why: Why::Unreadable };
        self.pause(Fault::Unreadable(error), Remedy::Everything, next)
    }

    /// How long a watch lasted that is over. Where that is not short, the server took what it was asked with, and for. What came
    /// meanwhile proves less: of a resource that does not change nothing does, and a bookmark may come before each refusal.
    fn lasted(&mut self, watch: &Watch) -> Duration {
        let lasted = watch.began.elapsed();
        self.backoff.worked(lasted);
        if lasted >= SHORT.min(watch.timeout) {
            (self.reloaded, self.expired) = (false, false);
        }
        lasted
    }

    /// The server ended a watch.
    fn ended(&mut self, watch: &Watch) -> State {
        let lasted = self.lasted(watch);
        // A watch that had nothing to say may be one of a version that the server has not reached.
        let next = if watch.events == 0 { State::Probe } else { State::Connect };
        let is_short = lasted < SHORT.min(watch.timeout);
        self.count(is_short && watch.events == 0);
        // Something ends watches at once: not in a tight loop with it.
        if is_short { self.again(Fault::Short(lasted), next) } else { next }
    }

    /// The connection of a watch broke. The server may be another one, or of another state, when it can be reached again.
    fn broke(&mut self, watch: &Watch, fault: Fault, inside: bool) -> State {
        let lasted = self.lasted(watch);
        // An idle watch may be cut now and then; one that is cut within the first event each time gets nowhere.
        self.count(watch.events == 0 && (inside || lasted < SHORT));
        self.again(fault, State::Probe)
    }

    /// Nothing was heard of a watch for longer than can be.
    fn fell_silent(&mut self, watch: &Watch) -> State {
        self.lasted(watch);
        self.count(watch.events == 0);
        // To be read by people.
        let silence = Duration::from_secs(watch.heard.elapsed().as_secs().max(1));
        let fault = Fault::Stalled(silence);
        if self.fruitless >= FRUITLESS {
            return self.again(fault, State::Probe);
        }
        self.failing(fault, Remedy::Again, Duration::ZERO);
        State::Probe
    }

    fn count(&mut self, fruitless: bool) {
        self.fruitless = if fruitless { self.fruitless.saturating_add(1) } else { 0 };
    }

    /// After a pause, what is next; or everything, where that did not help before.
    fn again(&mut self, fault: Fault, next: State) -> State {
        if self.fruitless < FRUITLESS {
            return self.pause(fault, Remedy::Again, next);
        }
        let next = State::Begin { freshness: self.not_older(), why: Why::Failure };
        self.pause(fault, Remedy::Everything, next)
    }

    /// Asks for the server's own version: whether it went back. Where that fails, it proves nothing: who may watch need
    /// not be allowed to list. Whether the server is there, the watch finds out.
    pub(super) async fn probe(&mut self) -> State {
        match self.server_version().await {
            Ok(version) if self.went_back(&version) => self.rewound(),
            Ok(_) => State::Connect,
            // It is there, and asks for something.
            Err(fault @ Fault::Status(_))
                if matches!(fault.remedy(false), Remedy::Again | Remedy::Credentials) =>
            {
                self.watch_failed(fault).await
            }
            Err(fault) => {
                if !matches!(fault, Fault::Status(_) | Fault::Body(_)) {
                    // Nothing passes now: that no watch did says nothing about watches.
                    self.fruitless = 0;
                }
                State::Connect
            }
        }
    }

    async fn server_version(&mut self) -> Result<Version, Fault> {
        let patience = self.settings.patience;
        let (encoding, body) = self.open(self.target.probe()).await?;
        let mut list = List::new(encoding, body, self.settings.limit);
        loop {
            if let Read::End(end) = list.next(patience, &mut self.traffic).await? {
                return Ok(Version::from(end.resource_version.as_str()));
            }
        }
    }

    /// Everything, from a server that went back; which is remembered until that is listed.
    fn rewound(&mut self) -> State {
        self.rewound = true;
        State::Begin { freshness: Freshness::Newest, why: Why::WentBack }
    }

    /// Whether a version of the server is older than what was seen of it.
    pub(super) fn went_back(&self, server: &Version) -> bool {
        self.version.as_ref().is_some_and(|seen| server < seen)
    }
}

/// A watch that ends within this time was refused, in a way.
const SHORT: Duration = Duration::from_secs(1);

/// After so many watches in a row of which nothing came, everything is listed.
const FRUITLESS: u32 = 3;
