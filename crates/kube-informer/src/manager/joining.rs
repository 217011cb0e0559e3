//! How watches come and go: each in one step.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use tokio::time::Instant;

use super::Inner;
use super::entry::{Entry, Life, later};
use super::error::AddError;
use super::feed::Feed;
use super::key::{KeyParams, Owner};
use super::plan::Actions;
use super::request::RequestWatch;
use super::state::{Group, GroupKey, Phase, State};

/// Somebody waits for a watch to be there. Dropped, nobody does; and where nobody is left, a watch that is not there yet is
/// given up.
pub(super) struct Waiting {
    inner: Arc<Inner>,
    pub(super) entry: Arc<Entry>,
    left: bool,
}

impl Waiting {
    /// Waits no longer; what was closed by that.
    pub(super) fn leave(&mut self) -> Vec<Arc<Feed>> {
        if std::mem::replace(&mut self.left, true) {
            return Vec::new();
        }
        let mut state = self.inner.lock();
        let is_last = self.entry.adders.fetch_sub(1, Ordering::Relaxed) == 1;
        if !is_last || *self.entry.life.borrow() != Life::Adding {
            return Vec::new();
        }
        let closed = self.inner.remove(&mut state, &self.entry);
        self.entry.stop();
        closed
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// A watch that was stopped, until nothing of it goes on: whoever stops it again waits, too. It keeps neither the watch nor
/// its handler.
#[derive(Clone)]
pub(super) struct Ending {
    pub(super) entry: Weak<Entry>,
    key: Arc<KeyParams>,
    busy: watch::Receiver<usize>,
    feeds: Vec<watch::Receiver<()>>,
}

impl Ending {
    fn is_over(&self) -> bool {
        *self.busy.borrow() == 0 && self.feeds.iter().all(has_ended)
    }
}

impl Inner {
    /// The watch of a key: the one that there is, or a new one.
    pub(super) fn enter(self: &Arc<Self>, request: &RequestWatch) -> Result<Waiting, AddError> {
        let settings = self.settings();
        let key = request.key();
        let mut state = self.lock();
        if state.phase == Phase::Stopped {
            let group = GroupKey { resource: request.resource.clone(), namespace: request.namespace.clone() };
            return Err(AddError::Stopped { target: group.target(&request.name) });
        }
        let entry = match state.entries.get(&key) {
            Some(entry) => Arc::clone(entry),
            None => {
                let now = Instant::now();
                let group =
                    GroupKey { resource: request.resource.clone(), namespace: request.namespace.clone() };
                let known = state.groups.get_key_value(&group).map(|(group, _)| Arc::clone(group));
                let group = known.unwrap_or_else(|| Arc::new(group));
                let series = state.count(&group.resource);
                let resync = later(now, settings.resync);
                let entry = Entry::new(request, Arc::new(key), Arc::clone(&group), series, resync);
                let entry = Arc::new(entry);
                state.entries.insert(Arc::clone(&entry.key), Arc::clone(&entry));
                state.owners.entry(entry.owner.clone()).or_default().insert(Arc::clone(&entry.key));
                let is_refused = state.refused.get(&group).is_some_and(|until| *until > now);
                let found = state.groups.entry(Arc::clone(&group));
                let found = found.or_insert_with(|| Group::new(settings.share_from, is_refused));
                found.targets.entry(Arc::clone(&entry.name)).or_default().entries.push(Arc::clone(&entry));
                let actions = found.plan.join(&entry.name);
                drop(self.act(&mut state, &group, actions));
                self.look(&mut state, &entry);
                entry
            }
        };
        entry.adders.fetch_add(1, Ordering::Relaxed);
        drop(state);
        Ok(Waiting { inner: Arc::clone(self), entry, left: false })
    }

    /// The watch can be, unless it was stopped meanwhile; whether it is there.
    pub(super) fn succeed(&self, entry: &Arc<Entry>) -> bool {
        let state = self.lock();
        if !state.entries.get(&entry.key).is_some_and(|each| Arc::ptr_eq(each, entry)) {
            return false;
        }
        if entry.turn(&Life::Adding, Life::Ready) {
            self.adds.count(None);
            tracing::debug!(manager = %self.name(), watch = %entry.key, "watched");
            self.queue_up(entry);
        }
        true
    }

    /// Takes a watch out; what was closed by that.
    pub(super) fn remove(&self, state: &mut State, entry: &Arc<Entry>) -> Vec<Arc<Feed>> {
        let is_it = state.entries.get(&entry.key).is_some_and(|each| Arc::ptr_eq(each, entry));
        if !is_it {
            return Vec::new();
        }
        state.entries.remove(&entry.key);
        if let Some(keys) = state.owners.get_mut(&entry.owner) {
            keys.remove(&entry.key);
            if keys.is_empty() {
                state.owners.remove(&entry.owner);
                self.requests.forget(&entry.owner);
            }
        }
        state.discount(&entry.group.resource);
        let Some(group) = state.groups.get_mut(&entry.group) else { return Vec::new() };
        let mut actions = Actions::default();
        if let Some(target) = group.targets.get_mut(&entry.name) {
            target.entries.retain(|each| !Arc::ptr_eq(each, entry));
            if target.entries.is_empty() {
                group.targets.remove(&entry.name);
                group.catching_up.remove(&entry.name);
                actions = group.plan.leave(&entry.name);
            }
        }
        let is_empty = group.targets.is_empty();
        let closed = self.act(state, &entry.group, actions);
        if is_empty {
            state.groups.remove(&entry.group);
        }
        closed
    }

    /// Opens and closes what the plan says; what was closed.
    pub(super) fn act(&self, state: &mut State, key: &Arc<GroupKey>, actions: Actions) -> Vec<Arc<Feed>> {
        let State { groups, feeds, .. } = state;
        let Some(group) = groups.get_mut(key) else { return Vec::new() };
        for feed in actions.open {
            *feeds += 1;
            let feed = Feed::open(self, Arc::clone(key), feed);
            group.feeds.insert(feed.key.clone(), feed);
        }
        let close = |feed| group.feeds.remove(&feed).inspect(|feed| feed.close());
        let closed: Vec<Arc<Feed>> = actions.close.into_iter().filter_map(close).collect();
        state.closing.extend(closed.iter().map(|feed| feed.ending()));
        // So there are never more than twice as many as have not ended.
        if state.closing.len() >= 64 && state.closing.len() >= state.swept.saturating_mul(2) {
            state.sweep_feeds();
        }
        closed
    }

    /// Waits until nothing goes on of what was stopped.
    async fn end(&self, endings: Vec<Ending>) {
        let drain = self.settings().drain;
        let entries: Vec<Arc<Entry>> = endings.iter().filter_map(|ending| ending.entry.upgrade()).collect();
        let calls = entries.iter().map(|entry| super::worker::finish(entry, drain));
        futures_util::future::join_all(calls).await;
        for feed in endings.into_iter().flat_map(|ending| ending.feeds) {
            wait_for(feed).await;
        }
        self.lock().sweep();
    }

    pub(super) async fn stop(&self, key: &KeyParams) -> bool {
        let (count, endings) = {
            let mut state = self.lock();
            let entry = state.entries.get(key).cloned();
            let count = self.take(&mut state, entry);
            let mut endings = state.ending.get(&key.owner()).cloned().unwrap_or_default();
            endings.retain(|ending| *ending.key == *key);
            (count, endings)
        };
        self.end(endings).await;
        count > 0
    }

    pub(super) async fn stop_for_owner(&self, owner: &Owner) -> usize {
        let (count, endings) = {
            let mut state = self.lock();
            let keys = state.owners.get(owner).cloned().unwrap_or_default();
            let entries: Vec<_> = keys.iter().filter_map(|key| state.entries.get(key).cloned()).collect();
            let count = self.take(&mut state, entries);
            (count, state.ending.get(owner).cloned().unwrap_or_default())
        };
        self.end(endings).await;
        count
    }

    pub(super) async fn stop_all(&self) -> usize {
        let (count, endings) = self.take_all(&mut self.lock());
        self.end(endings).await;
        count
    }

    /// Takes all watches out; how many, and what goes on of those and of others that were stopped before.
    pub(super) fn take_all(&self, state: &mut State) -> (usize, Vec<Ending>) {
        let entries: Vec<_> = state.entries.values().cloned().collect();
        let count = self.take(state, entries);
        (count, state.ending.values().flatten().cloned().collect())
    }

    /// Takes watches out, whether they are there already or not: from now on none of their calls begins. How many; what goes on
    /// of them is in the state.
    fn take(&self, state: &mut State, entries: impl IntoIterator<Item = Arc<Entry>>) -> usize {
        let mut count = 0;
        for entry in entries {
            let closed = self.remove(state, &entry);
            entry.stop();
            tracing::debug!(manager = %self.name(), watch = %entry.key, "no longer watched");
            count += 1;
            let ending = Ending {
                entry: Arc::downgrade(&entry),
                key: Arc::clone(&entry.key),
                busy: entry.busy.subscribe(),
                feeds: closed.iter().map(|feed| feed.ending()).collect(),
            };
            // A call that begins now sees that it was stopped.
            if !ending.is_over() {
                state.ending.entry(entry.owner.clone()).or_default().push(ending);
            }
        }
        count
    }
}

impl State {
    /// Forgets what has ended.
    pub(super) fn sweep(&mut self) {
        self.ending.retain(|_, endings| {
            endings.retain(|ending| !ending.is_over());
            !endings.is_empty()
        });
        self.sweep_feeds();
    }

    fn sweep_feeds(&mut self) {
        self.closing.retain(|feed| !has_ended(feed));
        self.swept = self.closing.len();
    }
}

/// Whether whoever holds the other side has ended.
fn has_ended(running: &watch::Receiver<()>) -> bool {
    running.has_changed().is_err()
}

/// Waits until an informer is given back.
pub(super) async fn wait_for(mut running: watch::Receiver<()>) {
    while running.changed().await.is_ok() {}
}

/// Waits until these informers are given back.
pub(super) async fn ended(feeds: Vec<Arc<Feed>>) {
    for feed in feeds {
        wait_for(feed.ending()).await;
    }
}
