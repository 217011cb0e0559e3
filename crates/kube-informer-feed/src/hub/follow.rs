//! How a resource is followed: what its informer says becomes what is told.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube_informer::cache::Snapshot;
use kube_informer::encoding::ManagedFields;
use kube_informer::informer::{Delivery, Event, Events, Health, Informer, Relists};
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::news::{News, Tale, Told, TopicId};
use super::topic::Topic;
use super::{Hub, Inner, Known, describe, gvr};
use crate::change::Change;
use crate::journal::Cursor;
use crate::metrics::GapReason;

/// How long a handler of an informer that is given up may take to end. There is none of the hub by then.
const END: Duration = Duration::from_secs(5);

impl Hub {
    /// Follows a resource; the topic that there is, or a new one.
    pub(super) fn follow(&self, resource: Resource, wanted: bool) -> TopicId {
        let mut core = self.inner.core();
        if let Some(topic) = core.find(&gvr(&resource)) {
            return topic;
        }
        let inner = &self.inner;
        let informer = inner
            .factory
            .configure_resource(resource, inner.settings.scope.clone())
            .managed_fields(ManagedFields::Writers)
            .gather(inner.settings.gather)
            .informer();
        self.open(&mut core, informer, wanted, false)
    }

    /// Follows a resource that nobody asked for at the start, where there is room for one.
    pub(super) async fn follow_other(&self, resource: Resource) -> Result<TopicId, String> {
        let _turn = self.inner.opening.lock().await;
        let most = self.inner.settings.others;
        let others = self.inner.core().topics.values().filter(|topic| !topic.wanted).count();
        if others >= most {
            return Err(format!(
                "{most} resources are followed already; try again later, or ask for one of them"
            ));
        }
        Ok(self.follow(resource, false))
    }

    pub(super) fn open(
        &self,
        core: &mut super::Core,
        informer: Informer,
        wanted: bool,
        is_published: bool,
    ) -> TopicId {
        core.made += 1;
        let id = TopicId(core.made);
        let mut topic = Topic::new(id, informer.clone(), wanted);
        let events = (!is_published).then(|| {
            let delivery = Delivery::Every(self.inner.settings.queue);
            informer.subscribe().delivery(delivery).resync(Duration::ZERO).name("feed").events()
        });
        let follower = Follower {
            hub: Arc::downgrade(&self.inner),
            topic: id,
            informer,
            relists: None,
            stale_since: None,
            is_ready: false,
        };
        topic.task = Some(tokio::spawn(follower.run(events)).abort_handle());
        core.topics.insert(id, topic);
        id
    }
}

struct Follower {
    hub: Weak<Inner>,
    topic: TopicId,
    informer: Informer,
    /// As they were seen last.
    relists: Option<u64>,
    /// The place up to which everything was told before something went wrong.
    stale_since: Option<Cursor>,
    is_ready: bool,
}

/// What happens next.
enum Step {
    Event(Event),
    /// All objects of the beginning were told.
    Synced,
    Health(Box<Health>),
    End,
}

impl Follower {
    async fn run(mut self, mut events: Option<Events<serde_json::Value>>) {
        let mut health = Box::pin(self.informer.health_changes());
        loop {
            let is_ready = self.is_ready;
            let step = match &mut events {
                Some(events) => {
                    tokio::select! {
                        step = next(events, is_ready) => step,
                        Some(health) = health.next() => Step::Health(Box::new(health)),
                    }
                }
                // When it has begun is for the publisher to say: what the informer has read, it need not have told.
                None => health.next().await.map_or(Step::End, |health| Step::Health(Box::new(health))),
            };
            let Some(hub) = self.hub.upgrade() else { return };
            match step {
                Step::Event(event) => self.event(&hub, event),
                Step::Synced => {
                    self.is_ready = true;
                    hub.begin(self.topic);
                }
                Step::Health(health) => self.health(&hub, &health),
                Step::End => {
                    self.health(&hub, &self.informer.health());
                    return;
                }
            }
            drop(hub);
            // Where there is always something to read, others have their turn all the same.
            consume_budget().await;
        }
    }

    fn event(&self, hub: &Inner, event: Event) {
        match event {
            Event::Added { new, initial } => {
                let known = hub
                    .core()
                    .topics
                    .get(&self.topic)
                    .and_then(|topic| topic.get(&new.key().to_key()).cloned());
                match known {
                    // Said again after a gap.
                    Some(known) if known.uid() == new.uid() && known.version() == new.version() => {}
                    Some(known) => self.replaced(hub, &known, &new),
                    None if initial && !self.is_ready => self.know(hub, Known::Is(new)),
                    None => self.tell(hub, describe::added(&new), None, Some(new)),
                }
            }
            Event::Updated { resync: true, .. } => {}
            Event::Updated { old, new, .. } => self.replaced(hub, &old, &new),
            Event::Deleted { last, certain } => {
                self.tell(hub, describe::deleted(&last, certain), Some(last), None);
            }
            Event::Gap { missed, now } => self.gap(hub, missed, &now),
            _ => {}
        }
    }

    /// One version of an object took the place of another.
    fn replaced(&self, hub: &Inner, old: &Object, new: &Object) {
        if old.uid() != new.uid() {
            self.tell(hub, describe::deleted(old, true), Some(old.clone()), None);
            self.tell(hub, describe::added(new), None, Some(new.clone()));
            return;
        }
        let change = describe::modified(old, new);
        if change.is_visible() {
            self.tell(hub, change, Some(old.clone()), Some(new.clone()));
        } else {
            // Only its version is another.
            self.know(hub, Known::Is(new.clone()));
        }
    }

    fn tell(&self, hub: &Inner, change: Change, old: Option<Object>, new: Option<Object>) {
        hub.tell(self.topic, change, old, new);
    }

    fn know(&self, hub: &Inner, known: Known) {
        if let Some(topic) = hub.core().topics.get_mut(&self.topic) {
            topic.know(known);
        }
    }

    /// More came than the hub could read: the difference is told.
    fn gap(&self, hub: &Inner, missed: u64, now: &Snapshot) {
        let (from, before) = {
            let mut core = hub.core();
            let from = core.journal.last();
            let Some(topic) = core.topics.get_mut(&self.topic) else { return };
            (from, topic.snapshot())
        };
        for known in &*before {
            match now.get(known.namespace(), known.name()) {
                None => self.tell(hub, describe::deleted(known, false), Some(known.clone()), None),
                Some(new) if new.uid() == known.uid() && new.version() == known.version() => {}
                Some(new) => self.replaced(hub, known, &new),
            }
        }
        // Those that are new are about to be told.
        let reason =
            format!("{missed} changes came faster than they could be told: what they led to is told");
        self.tell_gap(hub, from, reason, GapReason::Missed);
    }

    fn tell_gap(&self, hub: &Inner, from: Cursor, reason: String, why: GapReason) {
        // Before, nobody was told anything that could have a gap.
        let is_ready = hub.core().topics.get(&self.topic).is_some_and(|topic| topic.since.is_some());
        if is_ready {
            hub.metrics.gap(why);
            hub.publish(self.topic, |_| Tale::Gap { from, reason }, Known::Same);
        }
    }

    fn health(&mut self, hub: &Inner, health: &Health) {
        let mut core = hub.core();
        let head = core.journal.last();
        if let Some(topic) = core.topics.get_mut(&self.topic) {
            topic.set_state(&health.state, head);
        }
        drop(core);
        hub.turned.notify_waiters();
        let is_live = health.state == kube_informer::informer::State::Live;
        let relists = again(&health.relists);
        let before = *self.relists.get_or_insert(relists);
        if !is_live {
            self.stale_since.get_or_insert(head);
            return;
        }
        let from = self.stale_since.take().unwrap_or(head);
        if relists > before {
            self.relists = Some(relists);
            let reason =
                "the cluster was read anew: of what happened meanwhile, only the result is told".to_owned();
            self.tell_gap(hub, from, reason, GapReason::Relisted);
        }
    }
}

impl super::Core {
    /// See [`Inner::begin`].
    fn begin(&mut self, id: TopicId) {
        let Some(topic) = self.topics.get_mut(&id).filter(|topic| topic.since.is_none()) else { return };
        let begun = |cursor| Arc::new(News { cursor, topic: id, tale: Tale::Begun });
        let cursor = self.journal.push(begun);
        topic.ready(cursor);
    }
}

/// How often everything was listed, but for the first time.
fn again(relists: &Relists) -> u64 {
    relists.by_reason().iter().map(|(_, count)| count).sum::<u64>() - relists.first
}

impl Inner {
    /// Everything of a topic was read. Said again, it is nothing.
    pub(super) fn begin(&self, id: TopicId) {
        self.core().begin(id);
        self.turned.notify_waiters();
    }

    /// What was told last of an object.
    fn known(&self, topic: TopicId, object: &Object) -> Option<Object> {
        let core = self.core();
        let known = core.topics.get(&topic)?.get(&object.key().to_key())?;
        (known.uid() == object.uid()).then(|| known.clone())
    }

    /// Tells a change.
    pub(super) fn tell(
        &self,
        topic: TopicId,
        change: Change,
        old: Option<Object>,
        new: Option<Object>,
    ) -> Option<Cursor> {
        let known = match (&old, &new) {
            (_, Some(new)) => Known::Is(new.clone()),
            (Some(old), None) => Known::Was(old.clone()),
            (None, None) => Known::Same,
        };
        self.metrics.change(change.what);
        let told_last = match &known {
            // Nobody else tells of this object meanwhile.
            Known::Was(last) => self.known(topic, last).filter(|told| told.version() != last.version()),
            Known::Is(_) | Known::Same => None,
        };
        let told = Told::new(change, old, new).after(told_last);
        self.publish(topic, |_| Tale::Change(Box::new(told)), known)
    }
}

/// The next event, or that all objects of the beginning were told.
async fn next(events: &mut Events<serde_json::Value>, is_ready: bool) -> Step {
    std::future::poll_fn(|cx| match Pin::new(&mut *events).poll_next(cx) {
        // The one who asks for the next event is done with those before: that may be all there is to wait for.
        Poll::Pending if !is_ready && events.is_synced() => Poll::Ready(Step::Synced),
        Poll::Pending => Poll::Pending,
        Poll::Ready(Some(event)) => Poll::Ready(Step::Event(event)),
        Poll::Ready(None) => Poll::Ready(Step::End),
    })
    .await
}

/// Gives a topic up when nobody was told of it for a while.
pub(super) fn retire(hub: &Arc<Inner>, id: TopicId) {
    let mut core = hub.core();
    let Some(topic) = core.topics.get_mut(&id).filter(|topic| !topic.wanted && topic.links.is_empty()) else {
        return;
    };
    topic.idle = Some(Instant::now());
    if std::mem::replace(&mut topic.is_retiring, true) {
        return;
    }
    let (weak, idle) = (Arc::downgrade(hub), hub.settings.idle);
    tokio::spawn(async move {
        let mut wait = idle;
        loop {
            tokio::time::sleep(wait).await;
            let Some(hub) = weak.upgrade() else { return };
            // Whoever asks for it while its informer is being stopped would get that one.
            let _turn = hub.opening.lock().await;
            let given_up = {
                let mut core = hub.core();
                let Some(topic) = core.topics.get_mut(&id) else { return };
                match topic.idle.map(|since| since.elapsed()) {
                    None => {
                        topic.is_retiring = false;
                        return;
                    }
                    Some(passed) if passed < idle => {
                        wait = idle - passed;
                        continue;
                    }
                    Some(_) => core.topics.remove(&id),
                }
            };
            if let Some(topic) = given_up {
                topic.abandon();
                tracing::info!(
                    resource = topic.gvr,
                    "nobody is told of a resource any more: its informer is stopped"
                );
                hub.factory.stop(&topic.informer, END).await;
            }
            return;
        }
    });
}
