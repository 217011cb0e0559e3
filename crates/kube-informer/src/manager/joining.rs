//! How watches come and go: each in one step.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::Inner;
use super::entry::{Entry, Life};
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
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if self.entry.adders.fetch_sub(1, Ordering::Relaxed) == 1 && *self.entry.life.borrow() == Life::Adding
        {
            drop(self.inner.remove(&mut state, &self.entry));
        }
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
                let resync = now.checked_add(settings.resync).unwrap_or(now);
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
        Ok(Waiting { inner: Arc::clone(self), entry })
    }

    /// The watch can be; unless that was decided otherwise.
    pub(super) fn succeed(&self, entry: &Entry) {
        if entry.turn(&Life::Adding, Life::Ready) {
            tracing::debug!(manager = %self.name(), watch = %entry.key, "watched");
            self.queue_up(entry);
        }
    }

    /// The watch cannot be, unless that was decided otherwise: nothing is left of it when this returns.
    pub(super) async fn fail(&self, entry: &Arc<Entry>, error: AddError) {
        let closed = {
            let mut state = self.lock();
            if *entry.life.borrow() != Life::Adding {
                return;
            }
            let closed = self.remove(&mut state, entry);
            entry.turn(&Life::Adding, Life::Failed(error));
            closed
        };
        ended(closed).await;
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
        actions.close.into_iter().filter_map(close).collect()
    }

    /// Stops these watches, of which the caller has taken out of the state what is gone; and waits for their ends.
    async fn end(&self, stopped: Vec<Arc<Entry>>, closed: Vec<Arc<Feed>>) -> usize {
        let drain = self.settings().drain;
        let count = stopped.len();
        let calls = stopped.iter().map(|entry| super::worker::finish(entry, drain));
        futures_util::future::join_all(calls).await;
        ended(closed).await;
        count
    }

    pub(super) async fn stop(&self, key: &KeyParams) -> bool {
        let (stopped, closed) = {
            let mut state = self.lock();
            let entry = state.entries.get(key).cloned();
            self.take(&mut state, entry)
        };
        self.end(stopped, closed).await > 0
    }

    pub(super) async fn stop_for_owner(&self, owner: &Owner) -> usize {
        let (stopped, closed) = {
            let mut state = self.lock();
            let keys = state.owners.get(owner).cloned().unwrap_or_default();
            let entries: Vec<_> = keys.iter().filter_map(|key| state.entries.get(key).cloned()).collect();
            self.take(&mut state, entries)
        };
        self.end(stopped, closed).await
    }

    pub(super) async fn stop_all(&self) -> usize {
        let (stopped, closed) = self.take_all(&mut self.lock());
        self.end(stopped, closed).await
    }

    pub(super) fn take_all(&self, state: &mut State) -> (Vec<Arc<Entry>>, Vec<Arc<Feed>>) {
        let entries: Vec<_> = state.entries.values().cloned().collect();
        self.take(state, entries)
    }

    /// Takes watches out, whether they are there already or not: from now on none of their calls begins.
    fn take(
        &self,
        state: &mut State,
        entries: impl IntoIterator<Item = Arc<Entry>>,
    ) -> (Vec<Arc<Entry>>, Vec<Arc<Feed>>) {
        let (mut stopped, mut closed) = (Vec::new(), Vec::new());
        for entry in entries {
            closed.extend(self.remove(state, &entry));
            let error = AddError::Stopped { target: entry.target() };
            let was_there = entry.turn(&Life::Ready, Life::Stopped);
            if was_there || entry.turn(&Life::Adding, Life::Failed(error)) {
                tracing::debug!(manager = %self.name(), watch = %entry.key, "no longer watched");
            }
            stopped.push(entry);
        }
        (stopped, closed)
    }
}

/// Waits until these informers are given back.
pub(super) async fn ended(feeds: Vec<Arc<Feed>>) {
    for feed in feeds {
        feed.ended().await;
    }
}
