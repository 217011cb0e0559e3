//! Changes of a resource that somebody else computes, as a controller does.

use std::fmt;

use kube_informer::informer::Informer;
use kube_informer::object::Object;

use super::news::TopicId;
use super::{Hub, Known, gvr};
use crate::change::Change;
use crate::journal::Cursor;

/// Tells what changes of one resource; made by [`Hub::publisher`]. A clone tells of the same resource.
///
/// Those who subscribe begin with what is known here, and with nothing else: objects that were given to
/// [`known`](Self::known) or [`publish`](Self::publish), as they were then. What the informer has is not looked at: it is
/// ahead of what was told. So a publisher gives what it begins with to `known`, and says with [`begun`](Self::begun) that
/// this was all. Until then, whoever subscribes waits.
///
/// Changes of one object are told in the order in which this is called.
#[derive(Clone)]
pub struct Publisher {
    hub: Hub,
    topic: TopicId,
}

impl Publisher {
    pub(super) fn new(hub: &Hub, informer: Informer) -> Self {
        let mut core = hub.inner.core();
        let mut links = Vec::new();
        if let Some(read) = core.find(&gvr(informer.resource())) {
            // Whoever was told of it is told by the publisher from now on.
            if let Some(topic) = core.topics.remove(&read) {
                topic.abandon();
                links = topic.links;
            }
        }
        let topic = hub.open(&mut core, informer, true, true);
        drop(core);
        for link in links {
            // Subscriptions name their topic: those who were there come again.
            link.with(|session| {
                let message = "another source tells of this resource from now on: come again";
                session.outbox.close(crate::message::close::GOING_AWAY, message, None);
            });
        }
        Self { hub: hub.clone(), topic }
    }

    /// What an object is like, without telling anybody: the state from which the publisher begins.
    pub fn known<K>(&self, object: &Object<K>) {
        if let Some(topic) = self.hub.inner.core().topics.get_mut(&self.topic) {
            topic.know(Known::Is(object.cast()));
        }
    }

    /// All that there is at the beginning was given to [`known`](Self::known): those who wait for it are told, and from now
    /// on, changes are. Said again, it is nothing.
    pub fn begun(&self) {
        self.hub.inner.begin(self.topic);
    }

    /// Tells a change: from what, where it is known, to what, where it is there still. Gives its place. One that does not
    /// [show](Change::is_visible) is not told, and what there is now is known all the same.
    pub fn publish<K>(&self, change: Change, old: Option<&Object<K>>, new: Option<&Object<K>>) -> Cursor {
        if let Some(new) = new.filter(|_| !change.is_visible()) {
            self.known(new);
            return self.hub.cursor();
        }
        let (old, new) = (old.map(Object::cast), new.map(Object::cast));
        let told = self.hub.inner.tell(self.topic, change, old, new);
        told.unwrap_or_else(|| self.hub.cursor())
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("topic", &self.topic).finish_non_exhaustive()
    }
}
