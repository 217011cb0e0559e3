//! Everything that there is: a streaming list where the server can, page after page of a LIST else.
//!
//! Nothing is told before it is complete, and then it is told at once.

use std::sync::Arc;

use tokio::time::Instant;

use super::fault::Fault;
use super::recovery::ListKind;
use super::request::Freshness;
use super::staged::{Complete, Staged};
use super::stream::{Heard, List, Read, Watch};
use super::transport::{Request, Transport};
use super::{Delta, Gone, Reflector, Report, Sink, State, Unread, Why};
use crate::encoding::{Bookmark, DecodeError, Encoding, ObjectKey};
use crate::object::Version;
use crate::wire::{Change, ListEnd, WatchFrame, WireError};

impl<T: Transport, S: Sink> Reflector<T, S> {
    pub(super) async fn begin(&mut self, freshness: Freshness, why: Why) -> State {
        self.sink.report(Report::Listing(why));
        self.begin_list();
        self.wait_for_turn().await;
        if self.lists_plainly() {
            return State::Listing { freshness, paged: true };
        }
        let asked = Instant::now();
        let timeout = self.watch_timeout();
        let request = self.target.streaming_list(&freshness, timeout, self.encoding());
        match self.open(request).await {
            Ok((encoding, body)) => {
                self.liveness.opened();
                let watch = Box::new(Watch::new(encoding, body, self.settings.limit, asked, timeout));
                State::Streaming { watch, staged: Box::new(Staged::new()), freshness }
            }
            Err(fault) => self.list_failed(fault, freshness, ListKind::Stream).await,
        }
    }

    pub(super) async fn streaming(
        &mut self,
        mut watch: Box<Watch>,
        mut staged: Box<Staged>,
        freshness: Freshness,
    ) -> Result<State, Gone> {
        let deadline = watch.heard + self.settings.patience;
        // Whether something else came than an object that was there.
        let mut others = false;
        let object = match watch.next(deadline, &mut self.traffic).await {
            Heard::Frame(WatchFrame::Bookmark { object }) => {
                match self.intakes.of(watch.encoding).codec().bookmark(&object) {
                    Ok(Bookmark { version, ends_initial_events: true }) => {
                        self.commit(*staged, version, watch.encoding, true).await?;
                        return Ok(self.watch(watch));
                    }
                    Ok(_) => others = true,
                    Err(error) => self.unread(Unread::Bookmark, &error),
                }
                None
            }
            Heard::Frame(WatchFrame::Object { change, object }) => Some((change, object)),
            Heard::Frame(WatchFrame::Error(status)) => {
                let fault = Fault::Status(Box::new(status));
                return Ok(self.list_failed(fault, freshness, ListKind::StreamThatBegan).await);
            }
            Heard::Unreadable(error, change) => {
                self.in_part = true;
                let key = self.skipped(&error);
                match (change, key) {
                    (Some(Change::Deleted), Some(key)) => staged.remove_key(&key),
                    (_, key) => staged.unreadable(key),
                }
                None
            }
            Heard::End => {
                let fault = Fault::Connection("the watch ended before its list was complete".to_owned());
                return Ok(self.list_plainly(fault, freshness));
            }
            Heard::Silence => {
                return Ok(self.list_plainly(Fault::Stalled(self.settings.patience), freshness));
            }
            // Whether another stream would get further is not known; a list of pages may.
            Heard::Broke { fault, .. } => return Ok(self.list_plainly(fault, freshness)),
            Heard::Failed(fault) => {
                return Ok(self.list_failed(fault, freshness, ListKind::StreamThatBegan).await);
            }
            Heard::Pause => {
                self.received(true);
                None
            }
        };
        if let Some((change, bytes)) = object {
            self.in_part = true;
            others = change != Change::Added;
            match (self.make(watch.encoding, &bytes), change) {
                (Err(_), _) if watch.doubt(&mut self.traffic) => others = false,
                (Ok(object), Change::Added | Change::Modified) => staged.put(object),
                (Ok(object), Change::Deleted) => staged.remove(object),
                (Err(error), _) if error.wants_json() => return Ok(self.turn_to_json(&error)),
                (Err(error), Change::Added | Change::Modified) => self.staged_unreadable(&error, &mut staged),
                (Err(error), Change::Deleted) => {
                    let key = error.key.as_deref().cloned();
                    self.unreadable(key.clone(), &error);
                    if let Some(key) = key {
                        staged.remove_key(&key);
                    }
                }
            }
            if !others && !staged.changes {
                staged.progress = Instant::now();
            }
        }
        staged.changes |= others;
        // What happens elsewhere brings the list no closer to its end, however much that is.
        if staged.changes && staged.progress.elapsed() > self.settings.patience {
            return Ok(self.list_plainly(Fault::Stalled(self.settings.patience), freshness));
        }
        Ok(State::Streaming { watch, staged, freshness })
    }

    pub(super) async fn listing(&mut self, freshness: Freshness, paged: bool) -> Result<State, Gone> {
        self.wait_for_turn().await;
        let mut staged = Staged::new();
        self.begin_list();
        // A list of a version comes from the watch cache, which does not page. The first one may.
        let limit = match freshness {
            Freshness::NotOlderThan(_) if !self.pages => None,
            _ => paged.then_some(self.settings.page),
        };
        let mut request = self.target.list(&freshness, limit, self.encoding());
        let mut version = None;
        loop {
            let (encoding, end) = match self.page(request, &mut staged).await {
                Ok(read) => read,
                Err(Interrupted::Json(error)) => return Ok(self.turn_to_json(&error)),
                Err(Interrupted::Fault(fault)) => {
                    let is_later_page = version.is_some();
                    // Of a server that pages what was not asked for in pages, the same would come for ever.
                    if is_later_page && limit.is_some() && fault.is_expired() {
                        // The pages took longer than the server keeps them: the same list all at once, then, which a
                        // server with a watch cache need not read from its store.
                        return Ok(State::Listing { freshness, paged: false });
                    }
                    return Ok(self.list_failed(fault, freshness, ListKind::Plain).await);
                }
            };
            // All pages are of the version of the first.
            let version = version.get_or_insert_with(|| Version::from(end.resource_version.as_str()));
            if end.continue_token.is_empty() {
                self.commit(staged, version.clone(), encoding, false).await?;
                return Ok(State::Connect);
            }
            if freshness == Freshness::Any {
                self.pages = true;
            }
            request = self.target.next_page(&end.continue_token, self.settings.page, self.encoding());
        }
    }

    /// Waits until not too many others list.
    async fn wait_for_turn(&mut self) {
        if self.turn.is_none() {
            // It is never closed.
            self.turn = Arc::clone(&self.server.lists).acquire_owned().await.ok();
        }
    }

    /// A list is read from its beginning: what came of one before is of no use.
    fn begin_list(&mut self) {
        self.traffic.begun_anew += u64::from(std::mem::take(&mut self.in_part));
    }

    /// Reads one page.
    async fn page(
        &mut self,
        request: Request,
        staged: &mut Staged,
    ) -> Result<(Encoding, ListEnd), Interrupted> {
        let (encoding, body) = self.open(request).await?;
        let mut list = List::new(encoding, body, self.settings.limit);
        loop {
            match list.next(self.settings.patience, &mut self.traffic).await? {
                Read::Item(bytes) => match self.make(encoding, &bytes) {
                    Ok(object) => staged.put(object),
                    Err(error) if error.wants_json() => return Err(Interrupted::Json(error)),
                    Err(error) => self.staged_unreadable(&error, staged),
                },
                Read::Unreadable(error) => staged.unreadable(self.skipped(&error)),
                Read::End(end) => return Ok((encoding, end)),
            }
            self.in_part = true;
            self.received(false);
        }
    }

    /// Tells what there is.
    async fn commit(
        &mut self,
        staged: Staged,
        version: Version,
        encoding: Encoding,
        streaming: bool,
    ) -> Result<(), Gone> {
        let Complete { objects, unreadable, nameless } = staged.complete();
        self.intakes.settle();
        self.in_part = false;
        self.unreadable = unreadable.iter().cloned().collect();
        // The server may have caught up by now with what was seen of it before it went back.
        let went_back = std::mem::take(&mut self.rewound) || self.went_back(&version);
        self.version = Some(version.clone());
        (self.reloaded, self.absent) = (false, false);
        if streaming {
            self.odd_streams = 0;
        }
        self.upkeep.listed(&objects, self.intakes.dictionaries(), went_back);
        let listed = Report::Listed { objects: objects.len(), encoding, streaming, version: version.clone() };
        self.sink
            .deliver(Delta::Replace { objects, unreadable, complete: !nameless, version, went_back })
            .await?;
        self.sink.report(listed);
        Ok(())
    }

    /// An item of the list could not be read: what is known of it stays.
    fn staged_unreadable(&mut self, error: &DecodeError, staged: &mut Staged) {
        let key = error.key.as_deref().cloned();
        self.unreadable(key.clone(), error);
        staged.unreadable(key);
    }

    /// A part of the body could not even be told to be an object; the key that it has all the same, where there is one.
    pub(super) fn skipped(&self, error: &WireError) -> Option<ObjectKey> {
        let key = match error {
            WireError::Skipped(error) => error.key.as_deref().cloned(),
            _ => None,
        };
        self.unreadable(key.clone(), error);
        key
    }
}

/// Why a page was not read to its end.
enum Interrupted {
    Fault(Fault),
    /// It must be read in JSON.
    Json(DecodeError),
}

impl From<Fault> for Interrupted {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
