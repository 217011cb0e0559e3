//! From what informers know to what is told: what becomes of an event, of a change of health, of an informer that knows
//! enough.

use std::sync::Arc;

use tokio::time::Instant;

use super::Inner;
use super::entry::{Entry, Life, Progress, later};
use super::feed::Feed;
use super::plan::FeedKey;
use super::state::{GroupKey, State, Target};
use crate::cache::Snapshot;
use crate::informer::{Cause, Event, Informer, State as Health};
use crate::object::Object;
use crate::workqueue::Priority;

impl Inner {
    /// An informer told of something: for watched objects, its cache is looked at.
    pub(super) fn heard(&self, feed: &Arc<Feed>, informer: &Informer, event: &Event) {
        let Some(object) = event.object() else { return self.missed(feed, informer) };
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&feed.group).filter(|group| group.has(feed)) else { return };
        let Some(target) = group.targets.get_mut(object.name()) else { return };
        let is_seen =
            group.plan.place(object.name()).is_some_and(|place| place.from.as_ref() == Some(&feed.key));
        if is_seen && !group.catching_up.contains(object.name()) {
            let deleted = match event {
                Event::Deleted { last, certain } => Some((last, *certain)),
                _ => None,
            };
            let seen = Seen::of(&informer.snapshot(), &feed.group, object.name());
            // It is gone by now, or another has come: that is told, too, and how.
            if deleted.is_none() && seen.object.as_ref().is_none_or(|seen| seen.uid() != object.uid()) {
                return;
            }
            self.observe(target, seen, deleted);
        } else {
            let name = Arc::from(object.name());
            self.offer_some(&mut state, feed, informer, vec![name]);
        }
    }

    /// An informer told more than could be taken: everything that is seen through it is looked at. What changes afterwards is
    /// told again.
    fn missed(&self, feed: &Arc<Feed>, informer: &Informer) {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&feed.group).filter(|group| group.has(feed)) else { return };
        let snapshot = informer.snapshot();
        for name in group.plan.seen_through(&feed.key) {
            if let Some(target) = group.targets.get_mut(&name).filter(|_| !group.catching_up.contains(&name))
            {
                self.observe(target, Seen::of(&snapshot, &feed.group, &name), None);
            }
        }
        self.offer(&mut state, feed, informer);
    }

    /// How an informer is has changed, or it is time to look: others may be seen through it.
    pub(super) fn report(&self, feed: &Arc<Feed>, informer: &Informer, health: &Health) {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&feed.group).filter(|group| group.has(feed)) else { return };
        if let Health::Stale { why, .. } = health {
            if feed.key == FeedKey::Whole && why.cause == Cause::Forbidden && !group.plan.is_refused() {
                tracing::info!(
                    manager = %self.name(), of = %feed.group, error = %why,
                    "not allowed as a whole: objects are watched one by one"
                );
                let actions = group.plan.refused();
                let now = Instant::now();
                let State { refused, groups, .. } = &mut *state;
                // What is in use is tried again when its time is over, and forgotten then: not before.
                refused.retain(|key, until| *until > now || groups.contains_key(key));
                refused.insert(Arc::clone(&feed.group), later(now, self.settings().probe));
                drop(self.act(&mut state, &feed.group, actions));
                return;
            }
            let is_here = |name: &Arc<str>| {
                group.plan.place(name).is_some_and(|place| place.to.as_ref() == Some(&feed.key))
            };
            for name in group.plan.moving().iter().filter(|name| is_here(name)) {
                let Some(target) = group.targets.get(name) else { continue };
                for entry in target.entries.iter().filter(|_| target.known.is_none()) {
                    entry.progress.send_replace(Progress::Failing(health.clone()));
                }
            }
        }
        self.offer(&mut state, feed, informer);
    }

    /// Shows objects through an informer, if that knows as much as was seen of them before.
    fn offer(&self, state: &mut State, feed: &Arc<Feed>, informer: &Informer) {
        let Some(group) = state.groups.get_mut(&feed.group) else { return };
        let waits = |name: &Arc<str>| group.plan.moving().contains(name) || group.catching_up.contains(name);
        let names: Vec<Arc<str>> = match &feed.key {
            FeedKey::One(name) => Some(name).filter(|name| waits(name)).cloned().into_iter().collect(),
            FeedKey::Whole => group.plan.moving().iter().chain(&group.catching_up).cloned().collect(),
        };
        self.offer_some(state, feed, informer, names);
    }

    /// The same, of some that may wait for it.
    fn offer_some(&self, state: &mut State, feed: &Arc<Feed>, informer: &Informer, names: Vec<Arc<str>>) {
        if names.is_empty() || !informer.is_synced() {
            return;
        }
        let snapshot = informer.snapshot();
        let patience = self.settings().sync_deadline;
        let mut closed = Vec::new();
        for name in names {
            let Some(group) = state.groups.get_mut(&feed.group) else { return };
            let (Some(place), Some(target)) = (group.plan.place(&name), group.targets.get_mut(&name)) else {
                continue;
            };
            let moves = place.to.as_ref() == Some(&feed.key);
            let stays = place.from.as_ref() == Some(&feed.key) && group.catching_up.contains(&name);
            if !moves && !stays {
                continue;
            }
            let seen = Seen::of(&snapshot, &feed.group, &name);
            let floor = target.floor.as_ref();
            // Where versions have no order, nothing better than what there is can be known.
            let knows = |floor| seen.snapshot.reached(&feed.group.namespace, floor).unwrap_or(true);
            if !floor.is_none_or(knows) {
                let since = *target.behind.get_or_insert_with(Instant::now);
                if since.elapsed() < patience {
                    continue;
                }
                tracing::warn!(
                    manager = %self.name(), target = %feed.group.target(&name),
                    "the server has gone back to an older state, it seems: what there is now is told"
                );
            }
            self.observe(target, seen, None);
            group.catching_up.remove(&name);
            if moves {
                let actions = group.plan.ready(&name, &feed.key);
                closed.extend(self.act(state, &feed.group, actions));
            }
        }
        // They end by themselves.
        drop(closed);
    }

    /// An informer begins anew: what it knows is to be held against what was known.
    pub(super) fn restarts(&self, feed: &Arc<Feed>) {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&feed.group).filter(|group| group.has(feed)) else { return };
        let names = group.plan.seen_through(&feed.key);
        for name in &names {
            let entries = group.targets.get(name).into_iter().flat_map(|target| &target.entries);
            entries.for_each(|entry| entry.restarted());
        }
        group.catching_up.extend(names);
        if let Some((series, _)) = state.series.get(&feed.group.resource.to_string()) {
            series.restarts.inc();
        }
        self.total.restarts.inc();
    }

    /// What is known of its object already is told to a watch that is new.
    pub(super) fn look(&self, state: &mut State, entry: &Arc<Entry>) {
        let Some(group) = state.groups.get(&entry.group) else { return };
        let target = group.targets.get(&entry.name);
        if let Some(now) = target.and_then(|target| target.known.clone()) {
            self.tell(entry, now, None);
            return;
        }
        let Some(feed) = group.feed_of(&entry.name).cloned() else { return };
        if let Some(informer) = feed.informer() {
            let health = informer.health().state;
            if let Health::Stale { why, .. } = &health {
                // Where the whole is not allowed, the object alone may be: that is tried as soon as it is reported.
                let is_refused = feed.key == FeedKey::Whole && why.cause == Cause::Forbidden;
                if !is_refused {
                    entry.progress.send_replace(Progress::Failing(health));
                }
            }
            self.offer(state, &feed, &informer);
        }
    }

    fn observe(&self, target: &mut Target, seen: Seen, deleted: Option<(&Object, bool)>) {
        let Seen { object, snapshot, namespace } = seen;
        target.floor = match &object {
            Some(object) => Some(object.version().clone()),
            None => snapshot.version(&namespace).cloned(),
        };
        for entry in &target.entries {
            self.tell(entry, object.clone(), deleted);
        }
        target.known = Some(object);
        target.behind = None;
    }

    fn tell(&self, entry: &Arc<Entry>, now: Option<Object>, deleted: Option<(&Object, bool)>) {
        let is_there = now.is_some();
        let is_news = entry.story().observe(now, deleted);
        entry.progress.send_if_modified(|progress| {
            let known = Progress::Known(is_there);
            let changed = *progress != known;
            *progress = known;
            changed
        });
        if is_news {
            self.queue_up(entry);
            self.requests.push(&entry.owner);
        }
    }

    /// The handler of a watch is to be called, if it has one.
    pub(super) fn queue_up(&self, entry: &Entry) {
        if let Some(queue) = self.queue.get().filter(|_| entry.handler.is_some()) {
            queue.add(Arc::clone(&entry.key));
        }
    }

    /// What is done from time to time: everything is said again to those whose time has come, and namespaces that were
    /// refused are tried again.
    pub(super) fn keep_house(&self) {
        let settings = self.settings();
        let now = Instant::now();
        let mut state = self.lock();
        state.sweep();
        if !settings.resync.is_zero() {
            for entry in state.entries.values().filter(|entry| entry.is_due(now, settings.resync)) {
                if *entry.life.borrow() == Life::Ready && entry.story().again() {
                    if let Some(queue) = self.queue.get().filter(|_| entry.handler.is_some()) {
                        queue.at(Priority::Low).add(Arc::clone(&entry.key));
                    }
                    self.requests.push(&entry.owner);
                }
            }
        }
        let over: Vec<Arc<GroupKey>> = state
            .refused
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for key in over {
            state.refused.remove(&key);
            if let Some(group) = state.groups.get_mut(&key) {
                let actions = group.plan.probe();
                drop(self.act(&mut state, &key, actions));
            }
        }
    }
}

/// What an informer knows of an object.
struct Seen {
    object: Option<Object>,
    snapshot: Snapshot,
    namespace: String,
}

impl Seen {
    fn of(snapshot: &Snapshot, group: &GroupKey, name: &str) -> Self {
        let object = snapshot.get(&group.namespace, name);
        Self { object, snapshot: snapshot.clone(), namespace: group.namespace.clone() }
    }
}
