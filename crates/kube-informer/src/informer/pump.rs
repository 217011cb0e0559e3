//! From the reflectors to the cache, in batches.
//!
//! Single changes are applied by the reflector that learned them, where nothing else waits: to wake somebody else for it
//! would cost more than to do it. Lists go through a queue, and whatever comes while something waits there: a reflector
//! never stands still for long.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::core::Core;
use crate::cache::{Change, Stays, Writer};
use crate::object::{KeyRef, Object};
use crate::queue::{Receiver, Sender};
use crate::reflector::{Delta, Gone, Report, Sink};
use crate::sync::{AtomicUsize, Mutex, MutexGuard};

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
    applier: Arc<Applier>,
    receiver: Receiver<Item>,
}

/// Applies what was learned: one batch after the other, whoever brings it.
#[derive(Debug)]
pub(super) struct Applier {
    turn: Mutex<Turn>,
    /// How many items were put into the queue, and are not applied.
    queued: AtomicUsize,
}

#[derive(Debug)]
struct Turn {
    writer: Writer,
    /// Scopes whose first list was applied.
    synced: Vec<usize>,
}

/// More changes at once would only make those wait who are told.
const MOST: usize = 512;

/// So many single changes are applied together, and no more bytes of them than this.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: usize = 1 << 20;

impl Pump {
    pub(super) fn new(writer: Writer, receiver: Receiver<Item>) -> Self {
        let turn = Mutex::new(Turn { writer, synced: Vec::new() });
        Self { applier: Arc::new(Applier { turn, queued: AtomicUsize::new(0) }), receiver }
    }

    pub(super) fn applier(&self) -> Arc<Applier> {
        Arc::clone(&self.applier)
    }

    /// Runs until nothing can come any more.
    pub(super) async fn run(mut self, core: &Core) {
        loop {
            let batch = self.receiver.batch(MOST).await;
            let count = batch.len();
            if count == 0 {
                return;
            }
            self.applier.apply(core, batch);
            self.applier.queued.fetch_sub(count, Ordering::Release);
            // Those who were told may be on the same thread.
            tokio::task::yield_now().await;
        }
    }
}

impl Applier {
    pub(super) fn apply(&self, core: &Core, batch: Vec<Item>) {
        self.turn().apply(core, batch);
    }

    /// Whether whatever was put into the queue is applied.
    fn is_idle(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        // After a panic, health says that nothing works any more.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is applied, and told, in one step.
#[derive(Default)]
struct Together {
    changes: Vec<Change>,
    bookmarks: u64,
    /// The scopes of which everything is in it.
    replaced: Vec<usize>,
}

impl Turn {
    fn apply(&mut self, core: &Core, batch: Vec<Item>) {
        let mut together = Together { changes: Vec::with_capacity(batch.len()), ..Together::default() };
        for Item { scope, namespace, delta } in batch {
            let change = match delta {
                Delta::Put(object) => Change::Put(object),
                Delta::Remove(object) => Change::Remove { object },
                Delta::RemoveKey(key) => Change::RemoveKey { key },
                Delta::Exchange(objects) => {
                    // What came before may have changed them, or not: in order, it does not matter.
                    self.flush(core, &mut together);
                    self.writer.exchange(objects);
                    continue;
                }
                Delta::Progress(version) => {
                    together.bookmarks += 1;
                    Change::Progress { scope: namespace, version }
                }
                Delta::Replace { objects, unreadable, complete, version, went_back } => {
                    core.listed(objects.len());
                    let stays = if complete { Stays::Those(unreadable) } else { Stays::Everything };
                    let replace = Change::Replace { scope: namespace, objects, stays, version, went_back };
                    if !self.synced.contains(&scope) {
                        // What there is at the beginning is told apart from what changes.
                        self.flush(core, &mut together);
                        core.told(core.hub().apply(&mut self.writer, vec![replace], true), 0);
                        self.synced.push(scope);
                        core.board().replaced(scope);
                        continue;
                    }
                    together.replaced.push(scope);
                    replace
                }
            };
            together.changes.push(change);
        }
        self.flush(core, &mut together);
    }

    fn flush(&mut self, core: &Core, together: &mut Together) {
        let Together { changes, bookmarks, replaced } = together;
        if !changes.is_empty() {
            let told = core.hub().apply(&mut self.writer, std::mem::take(changes), false);
            core.told(told, std::mem::take(bookmarks));
        }
        replaced.drain(..).for_each(|scope| core.board().replaced(scope));
    }
}

/// Takes what the reflector of one scope learns.
#[derive(Debug)]
pub(super) struct ScopeSink {
    core: Arc<Core>,
    scope: usize,
    namespace: Option<Arc<str>>,
    applier: Arc<Applier>,
    sender: Sender<Item>,
    /// Single changes that came together.
    waiting: Vec<Item>,
    /// Their bytes.
    weight: usize,
}

impl ScopeSink {
    pub(super) fn new(
        core: Arc<Core>,
        scope: usize,
        namespace: Option<Arc<str>>,
        applier: Arc<Applier>,
        sender: Sender<Item>,
    ) -> Self {
        Self { core, scope, namespace, applier, sender, waiting: Vec::new(), weight: 0 }
    }

    async fn queue(&self, item: Item) -> Result<(), Gone> {
        let bytes = weight(&item.delta);
        // Before it can be taken out.
        self.applier.queued.fetch_add(1, Ordering::Relaxed);
        self.sender.send(item, bytes).await.map_err(|_| Gone)
    }
}

impl Sink for ScopeSink {
    async fn deliver(&mut self, delta: Delta) -> Result<(), Gone> {
        let is_single = !matches!(delta, Delta::Replace { .. } | Delta::Exchange(_));
        let bytes = weight(&delta);
        let item = Item::new(self.scope, self.namespace.clone(), delta);
        if !is_single {
            self.flush().await?;
            return self.queue(item).await;
        }
        self.waiting.push(item);
        self.weight += bytes;
        let is_much = self.waiting.len() >= TOGETHER || self.weight >= TOGETHER_BYTES;
        if is_much { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), Gone> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.weight = 0;
        let waiting = std::mem::take(&mut self.waiting);
        // What this one put into the queue before is applied, too, then: in order.
        if self.applier.is_idle() {
            self.applier.apply(&self.core, waiting);
            return Ok(());
        }
        for item in waiting {
            self.queue(item).await?;
        }
        Ok(())
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

#[cfg(test)]
mod tests;
