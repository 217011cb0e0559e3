//! What happens after a version: one change after the other.

use tokio::time::Instant;

use super::fault::Fault;
use super::request::Freshness;
use super::stream::{Heard, List, Read, Watch};
use super::transport::Transport;
use super::{Delta, Gone, Reflector, Report, Sink, State, Why};
use crate::encoding::{Bookmark, DecodeError, Encoding};
use crate::object::Version;
use crate::wire::{Change, WatchFrame, WireError};

impl<T: Transport, S: Sink> Reflector<T, S> {
    pub(super) async fn connect(&mut self) -> State {
        let Some(version) = self.version.clone() else {
            return State::Begin { freshness: Freshness::Any, why: Why::First };
        };
        let timeout = self.watch_timeout();
        let request = self.target.watch(&version, timeout, self.encoding());
        match self.open(request).await {
            Ok((encoding, body)) => {
                self.reloaded = false;
                self.liveness.opened();
                self.sink.report(Report::Watching { encoding });
                State::Watching { watch: Watch::new(encoding, body, self.settings.limit, timeout) }
            }
            Err(fault) => self.watch_failed(fault).await,
        }
    }

    pub(super) async fn watching(&mut self, mut watch: Watch) -> Result<State, Gone> {
        let suspicious = self.liveness.suspicious_at(watch.opened, watch.heard, watch.timeout);
        if self.upkeep.is_due() {
            self.upkeep_step().await?;
        }
        let heard = tokio::select! {
            biased;
            heard = watch.next(suspicious, &mut self.traffic) => heard,
            () = std::future::ready(()), if self.upkeep.is_waiting() => {
                self.upkeep_step().await?;
                return Ok(State::Watching { watch });
            }
        };
        match heard {
            Heard::Frame(WatchFrame::Object { change, object }) => {
                if let Some(state) = self.changed(watch.encoding, change, &object).await? {
                    return Ok(state);
                }
            }
            Heard::Frame(WatchFrame::Bookmark { object }) => {
                match self.intakes.of(watch.encoding).codec().bookmark(&object) {
                    Ok(Bookmark { version, .. }) => {
                        self.liveness.bookmark();
                        if self.went_back(&version) {
                            return Ok(State::Begin { freshness: Freshness::Newest, why: Why::WentBack });
                        }
                        tracing::trace!(%version, "nothing more has happened");
                        self.version = Some(version.clone());
                        self.sink.deliver(Delta::Progress(version)).await?;
                    }
                    Err(error) => self.unreadable(None, &error),
                }
            }
            Heard::Frame(WatchFrame::Error(status)) => {
                return Ok(self.watch_failed(Fault::Status(Box::new(status))).await);
            }
            Heard::Unreadable(error) => {
                if let Some(state) = self.event_lost(&error) {
                    return Ok(state);
                }
            }
            Heard::Failed(fault) => return Ok(self.watch_failed(fault).await),
            // A watch that had nothing to say may be one of a version that the server has not reached.
            Heard::End if watch.events == 0 => return Ok(self.ended_empty(&watch)),
            Heard::End => return Ok(State::Connect),
            Heard::Silence => return Ok(State::Probe),
            Heard::Pause => self.received(true),
        }
        Ok(State::Watching { watch })
    }

    /// One object changed.
    async fn changed(
        &mut self,
        encoding: Encoding,
        change: Change,
        bytes: &[u8],
    ) -> Result<Option<State>, Gone> {
        let object = match self.make(encoding, bytes) {
            Ok(object) => object,
            Err(error) if error.wants_json() => return Ok(Some(self.turn_to_json(&error))),
            Err(error) => return self.unreadable_change(change, &error).await,
        };
        self.unreadable.remove(&object.key().to_key());
        if !object.version().is_empty() {
            self.version = Some(object.version().clone());
        }
        let delta = match change {
            Change::Added | Change::Modified => Delta::Put(object),
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
        match (change, key) {
            (Change::Deleted, Some(key)) => {
                self.unreadable.remove(&key);
                self.sink.deliver(Delta::RemoveKey(key)).await?;
                Ok(None)
            }
            (_, Some(key)) if self.unreadable.contains(&key) => Ok(None),
            _ => Ok(Some(self.list_after_unreadable())),
        }
    }

    /// Something in the stream was not an event.
    fn event_lost(&mut self, error: &WireError) -> Option<State> {
        self.unreadable(None, error);
        Some(self.list_after_unreadable())
    }

    /// Everything, but not at once: what is broken may be broken for long.
    fn list_after_unreadable(&mut self) -> State {
        let wait = self.backoff.failed(None);
        let next = State::Begin { freshness: self.not_older(), why: Why::Unreadable };
        State::Pause { until: Instant::now() + wait, reload: false, next: Box::new(next) }
    }

    /// A watch ended without an event.
    fn ended_empty(&mut self, watch: &Watch) -> State {
        if watch.opened.elapsed() < SHORT {
            // Something ends watches at once: not in a tight loop with it.
            let wait = self.backoff.failed(None);
            return State::Pause {
                until: Instant::now() + wait,
                reload: false,
                next: Box::new(State::Probe),
            };
        }
        State::Probe
    }

    /// Asks for the server's own version: whether it went back, and whether the server is there at all.
    pub(super) async fn probe(&mut self) -> State {
        match self.server_version().await {
            Ok(version) if self.went_back(&version) => {
                State::Begin { freshness: Freshness::Newest, why: Why::WentBack }
            }
            Ok(_) => State::Connect,
            Err(fault) => self.watch_failed(fault).await,
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

    /// Whether a version of the server is older than what was seen of it.
    fn went_back(&self, server: &Version) -> bool {
        self.version.as_ref().is_some_and(|seen| server < seen)
    }
}

/// A watch that ends within this time without an event was refused, in a way.
const SHORT: std::time::Duration = std::time::Duration::from_secs(1);
