//! From the reflectors to the cache: what they learned waits in a queue, and is applied in batches.

use std::sync::Arc;

use super::core::Core;
use crate::cache::{Change, Stays, Writer};
use crate::object::{KeyRef, Object};
use crate::queue::{Receiver, Sender};
use crate::reflector::{Delta, Gone, Report, Sink};

/// What waits: what was learned, and of which scope.
#[derive(Debug)]
pub(super) struct Item {
    scope: usize,
    namespace: Option<Arc<str>>,
    delta: Delta,
}

impl Item {
    pub(super) fn new(scope: usize, namespace: Option<Arc<str>>, delta: Delta) -> Self {
        Self { scope, namespace, delta }
    }
}

/// Applies what waits.
#[derive(Debug)]
pub(super) struct Pump {
    writer: Writer,
    receiver: Receiver<Item>,
    /// Scopes whose first list was applied.
    synced: Vec<usize>,
}

/// More changes at once would only make those wait who are told.
const MOST: usize = 512;

impl Pump {
    pub(super) fn new(writer: Writer, receiver: Receiver<Item>) -> Self {
        Self { writer, receiver, synced: Vec::new() }
    }

    /// Runs until nothing can come any more.
    pub(super) async fn run(mut self, core: &Core) {
        loop {
            let batch = self.receiver.batch(MOST).await;
            if batch.is_empty() {
                return;
            }
            self.apply(core, batch);
            // Those who were told may be on the same thread.
            tokio::task::yield_now().await;
        }
    }

    pub(super) fn apply(&mut self, core: &Core, batch: Vec<Item>) {
        let mut changes = Vec::with_capacity(batch.len());
        let mut bookmarks = 0;
        for Item { scope, namespace, delta } in batch {
            let change = match delta {
                Delta::Put(object) => Change::Put(object),
                Delta::Remove(object) => Change::Remove { object },
                Delta::RemoveKey(key) => Change::RemoveKey { key },
                Delta::Exchange(objects) => {
                    // What came before may have changed them, or not: in order, it does not matter.
                    self.flush(core, &mut changes, &mut bookmarks);
                    self.writer.exchange(objects);
                    continue;
                }
                Delta::Progress(version) => {
                    bookmarks += 1;
                    Change::Progress { scope: namespace, version }
                }
                Delta::Replace { objects, unreadable, complete, version } => {
                    let stays = if complete { Stays::Those(unreadable) } else { Stays::Everything };
                    let replace = Change::Replace { scope: namespace, objects, stays, version };
                    if !self.synced.contains(&scope) {
                        // What there is at the beginning is told apart from what changes.
                        self.flush(core, &mut changes, &mut bookmarks);
                        core.told(core.hub().apply(&mut self.writer, vec![replace], true), 0);
                        self.synced.push(scope);
                        core.board().synced(scope);
                        continue;
                    }
                    replace
                }
            };
            changes.push(change);
        }
        self.flush(core, &mut changes, &mut bookmarks);
    }

    fn flush(&mut self, core: &Core, changes: &mut Vec<Change>, bookmarks: &mut u64) {
        if !changes.is_empty() {
            let told = core.hub().apply(&mut self.writer, std::mem::take(changes), false);
            core.told(told, std::mem::take(bookmarks));
        }
    }
}

/// Takes what the reflector of one scope learns.
#[derive(Debug)]
pub(super) struct ScopeSink {
    core: Arc<Core>,
    scope: usize,
    namespace: Option<Arc<str>>,
    sender: Sender<Item>,
}

impl ScopeSink {
    pub(super) fn new(
        core: Arc<Core>,
        scope: usize,
        namespace: Option<Arc<str>>,
        sender: Sender<Item>,
    ) -> Self {
        Self { core, scope, namespace, sender }
    }
}

impl Sink for ScopeSink {
    async fn deliver(&mut self, delta: Delta) -> Result<(), Gone> {
        let bytes = weight(&delta);
        let item = Item::new(self.scope, self.namespace.clone(), delta);
        self.sender.send(item, bytes).await.map_err(|_| Gone)
    }

    fn current(&self, key: KeyRef<'_>) -> Option<Object> {
        self.core.cache().get(key.namespace, key.name)
    }

    fn held(&self) -> Vec<Object> {
        let all = self.core.cache().list();
        match &self.namespace {
            Some(namespace) => all.namespace(namespace).into_iter().collect(),
            None => all.into_iter().collect(),
        }
    }

    fn report(&self, report: Report) {
        match report {
            Report::Received(traffic) => self.core.received(traffic),
            report => self.core.board().report(self.scope, &report),
        }
    }
}

/// About what it takes in memory.
fn weight(delta: &Delta) -> usize {
    /// Metadata, and the place in the queue.
    const BESIDE: usize = 256;
    let object = |object: &Object| object.size().0 + BESIDE;
    match delta {
        Delta::Put(one) | Delta::Remove(one) => object(one),
        Delta::Replace { objects, .. } | Delta::Exchange(objects) => {
            objects.iter().map(object).sum::<usize>() + BESIDE
        }
        Delta::RemoveKey(_) | Delta::Progress(_) => BESIDE,
    }
}
