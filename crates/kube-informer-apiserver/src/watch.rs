//! One watch: from a version on, in order, nothing twice, nothing left out.
//!
//! A [`Watch`] reads the log of its bucket at its own pace and yields newline-delimited frames. A frame is
//! made once per change and shared by all watchers that want the same form of it. A watcher that falls
//! behind the window gets an ERROR frame with 410 and its end, as on the real server. Selector edges show
//! as ADDED and DELETED. The watch ends at its timeout, when the server stops, or with its resource.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch as channel;
use tokio::time::Instant;

use crate::kinds::Resource;
use crate::object::{Form, Serialised, Stored, metadata_mut, partial_metadata};
use crate::render::{self, TableForm};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::ApiError;
use crate::store::{BucketId, Change, ChangeKind, Store, TooOld};

/// Longer than any watch, and short enough to be added to any time.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// How many changes a watcher takes from the log at once.
const BATCH: usize = 256;

/// Which objects a list or watch is about.
#[derive(Clone, Default)]
pub(crate) struct Selection {
    /// Of the keys: `namespace/`, or empty for all.
    pub(crate) prefix: String,
    /// The one object, where the path names it.
    pub(crate) name: Option<String>,
    pub(crate) labels: Option<LabelSelector>,
    pub(crate) fields: Option<FieldSelector>,
}

impl Selection {
    pub(crate) fn matches(&self, object: &Stored) -> bool {
        object.key.starts_with(&self.prefix)
            && self.name.as_ref().is_none_or(|name| object.name == *name)
            && self.labels.as_ref().is_none_or(|labels| labels.matches(&object.labels))
            && self.fields.as_ref().is_none_or(|fields| fields.matches(&object.fields))
    }

    /// Nothing but a namespace narrows it.
    pub(crate) fn is_whole(&self) -> bool {
        self.name.is_none() && self.labels.is_none() && self.fields.is_none()
    }
}

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The current objects as ADDED, then changes (`resourceVersion` unset or `0`).
    CurrentState,
    /// The current objects as ADDED, a bookmark that says so, then changes (`sendInitialEvents`).
    InitialEvents,
    /// The changes after this version.
    After(u64),
}

/// What a watcher asked for.
pub(crate) struct WatchRequest {
    pub(crate) resource: Arc<Resource>,
    pub(crate) bucket: BucketId,
    pub(crate) selection: Selection,
    pub(crate) start: Start,
    pub(crate) form: WatchForm,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
    pub(crate) bookmark_interval: Duration,
}

/// The form of the objects inside the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchForm {
    Shared(Form),
    /// Tables say ages, so they are made anew for each watcher.
    Table(TableForm),
}

/// Type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Added,
    Modified,
    Deleted,
    /// The object left the selection: the previous object at the new version.
    Left,
}

impl EventType {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted | Self::Left => "DELETED",
        }
    }
}

/// The frames made of one change so far.
#[derive(Default)]
pub(crate) struct Frames(Mutex<Vec<(EventType, Form, String, Bytes)>>);

impl Frames {
    fn get(
        &self,
        change: &Change,
        event: EventType,
        resource: &Resource,
        form: Form,
        count: &Serialised,
    ) -> Bytes {
        let version = resource.api_version();
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., bytes)) = made.iter().find(|(e, f, v, _)| *e == event && *f == form && *v == version)
        {
            return bytes.clone();
        }
        let bytes = match event {
            EventType::Left => {
                let object = previous_at_new_version(change, resource);
                let object = match form {
                    Form::Metadata(version) => partial_metadata(&object, version),
                    Form::Object => object,
                };
                let text = object.to_string();
                count.count(text.len());
                frame(event.name(), text.as_bytes())
            }
            _ => frame(event.name(), &change.new.bytes(resource, form)),
        };
        made.push((event, form, version, bytes.clone()));
        bytes
    }
}

fn previous_at_new_version(change: &Change, resource: &Resource) -> Value {
    let mut object = change.old.as_ref().unwrap_or(&change.new).value_as(resource);
    metadata_mut(&mut object).insert("resourceVersion".into(), change.revision.to_string().into());
    object
}

/// The last line of a watch that failed.
pub(crate) fn error_frame(error: &ApiError) -> Bytes {
    frame("ERROR", error.to_json().to_string().as_bytes())
}

/// One line of a watch.
fn frame(event: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(event.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

/// A running watch.
pub(crate) struct Watch {
    store: Arc<Store>,
    request: WatchRequest,
    initial: std::vec::IntoIter<Arc<Stored>>,
    /// The columns of a table are still owed.
    owes_headers: bool,
    /// An initial-events-end bookmark is still owed.
    owes_end: bool,
    position: u64,
    pending: VecDeque<Bytes>,
    grown: channel::Receiver<Option<u64>>,
    stopping: channel::Receiver<bool>,
    deadline: Instant,
    next_bookmark: Instant,
    ended: bool,
}

impl Watch {
    pub(crate) fn start(
        store: &Arc<Store>,
        request: WatchRequest,
        stopping: channel::Receiver<bool>,
    ) -> Self {
        // Followed before the state is read, so that no change falls in between.
        let grown = store.follow(&request.bucket);
        let (initial, position) = match request.start {
            Start::After(revision) => (Vec::new(), revision),
            Start::CurrentState | Start::InitialEvents => {
                let listing = store.list(&request.bucket, &request.selection.prefix);
                let selection = &request.selection;
                let objects = listing.objects.into_iter().filter(|o| selection.matches(o)).collect();
                (objects, listing.revision)
            }
        };
        let too_old = match request.start {
            Start::After(revision) => store.check_start(&request.bucket, revision).err(),
            _ => None,
        };
        let now = Instant::now();
        let mut watch = Self {
            store: Arc::clone(store),
            initial: initial.into_iter(),
            owes_headers: true,
            owes_end: request.start == Start::InitialEvents && request.bookmarks,
            position,
            pending: VecDeque::new(),
            grown,
            stopping,
            deadline: now + request.timeout.min(FOR_EVER),
            next_bookmark: now + request.bookmark_interval.min(FOR_EVER),
            ended: false,
            request,
        };
        if let Some(too_old) = too_old {
            watch.expire(too_old);
        }
        watch
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.pending.pop_front() {
                return Some(frame);
            }
            if self.ended || *self.stopping.borrow() {
                return None;
            }
            if let Some(object) = self.initial.next() {
                return Some(self.initial_frame(&object));
            }
            if std::mem::take(&mut self.owes_end) {
                return Some(self.bookmark(true));
            }
            // Also while there is always more to say.
            if Instant::now() >= self.deadline {
                self.close();
            } else if !self.read_log() {
                self.wait().await;
            }
        }
    }

    /// The timeout has come: a last word on how far the watch got.
    fn close(&mut self) {
        if self.request.bookmarks {
            let bookmark = self.bookmark(false);
            self.pending.push_back(bookmark);
        }
        self.ended = true;
    }

    /// Takes what the log has; false when it has nothing new.
    fn read_log(&mut self) -> bool {
        // Marked as seen before the log is read: what is added later wakes us again.
        let gone = self.grown.borrow_and_update().is_none();
        match self.store.changes(&self.request.bucket, self.position, BATCH) {
            Ok((changes, reached)) => {
                let any = !changes.is_empty();
                for change in &changes {
                    if let Some(frame) = self.change_frame(change) {
                        self.pending.push_back(frame);
                    }
                }
                // A watch from a version in the future stays silent until the server gets there.
                self.position = self.position.max(reached);
                if gone && !any {
                    self.ended = true;
                }
                any || gone
            }
            Err(too_old) => {
                self.expire(too_old);
                true
            }
        }
    }

    /// The last event: the client has to start again.
    fn expire(&mut self, TooOld { oldest }: TooOld) {
        let position = self.position;
        let error = ApiError::expired(format!("too old resource version: {position} ({oldest})"));
        self.pending.push_back(error_frame(&error));
        self.ended = true;
    }

    /// Until something may have changed.
    async fn wait(&mut self) {
        let bookmark_at = if self.request.bookmarks { self.next_bookmark } else { self.deadline };
        tokio::select! {
            biased;
            _ = self.stopping.changed() => {}
            grown = self.grown.changed() => if grown.is_err() { self.ended = true },
            () = tokio::time::sleep_until(bookmark_at.min(self.deadline)) => {
                if self.request.bookmarks {
                    // The server may have got further without a change of this resource: a bookmark says so.
                    self.read_log();
                    if !self.ended {
                        let bookmark = self.bookmark(false);
                        self.pending.push_back(bookmark);
                    }
                    self.next_bookmark = Instant::now() + self.request.bookmark_interval.min(FOR_EVER);
                }
                self.ended |= Instant::now() >= self.deadline;
            }
        }
    }

    fn initial_frame(&mut self, object: &Arc<Stored>) -> Bytes {
        let resource = &Arc::clone(&self.request.resource);
        match self.request.form {
            WatchForm::Shared(form) => frame("ADDED", &object.bytes(resource, form)),
            WatchForm::Table(table) => self.table_frame("ADDED", &object.value_as(resource), table),
        }
    }

    fn change_frame(&mut self, change: &Change) -> Option<Bytes> {
        let before = change.old.as_ref().is_some_and(|old| self.request.selection.matches(old));
        let after = change.kind != ChangeKind::Deleted && self.request.selection.matches(&change.new);
        let event = match (before, after) {
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) if change.kind == ChangeKind::Deleted => EventType::Deleted,
            (true, false) => EventType::Left,
            (false, false) => return None,
        };
        let resource = &Arc::clone(&self.request.resource);
        Some(match self.request.form {
            WatchForm::Shared(form) => {
                change.frames.get(change, event, resource, form, self.store.serialised())
            }
            WatchForm::Table(table) => {
                let object = match event {
                    EventType::Left => previous_at_new_version(change, resource),
                    _ => change.new.value_as(resource),
                };
                self.table_frame(event.name(), &object, table)
            }
        })
    }

    fn table_frame(&mut self, event: &str, object: &Value, form: TableForm) -> Bytes {
        let form = TableForm { headers: std::mem::take(&mut self.owes_headers), ..form };
        let meta = json!({ "resourceVersion": object.pointer("/metadata/resourceVersion") });
        let table = render::table(&self.request.resource, std::slice::from_ref(object), Some(&meta), form);
        frame(event, table.to_string().as_bytes())
    }

    fn bookmark(&mut self, end_of_initial: bool) -> Bytes {
        let resource = Arc::clone(&self.request.resource);
        let mut metadata = json!({ "resourceVersion": self.position.to_string() });
        if end_of_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object =
            json!({ "kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata });
        match self.request.form {
            WatchForm::Shared(Form::Object) => frame("BOOKMARK", object.to_string().as_bytes()),
            WatchForm::Shared(Form::Metadata(version)) => {
                frame("BOOKMARK", partial_metadata(&object, version).to_string().as_bytes())
            }
            WatchForm::Table(form) => self.table_frame("BOOKMARK", &object, form),
        }
    }
}

#[cfg(test)]
mod tests;
