//! Where resources and connections meet: one informer per resource, however many are told.
//!
//! ```no_run
//! # use kube_informer::factory::Factory;
//! use kube_informer_feed::hub::Hub;
//! use kube_informer_feed::server::Server;
//!
//! # async fn example(factory: Factory) -> Result<(), Box<dyn std::error::Error>> {
//! let hub = Hub::builder(factory.clone()).resource("deployments").start().await?;
//! factory.start();
//! let server = Server::builder(hub).start().await?;
//! println!("{}", server.url());
//! # Ok(())
//! # }
//! ```
//!
//! Promised:
//!
//! 1. A resource is read by one informer, and a change is computed and written once, however many subscribe.
//! 2. What there is and the place from which changes are told are taken together: what a subscriber knows is what the hub
//!    knows, nothing is missed, nothing told twice. Objects that are there at the beginning are no changes.
//! 3. Whoever selects by namespace or labels is told that an object came into, or went out of, what it selects.
//! 4. Everything that is told has a place, in one order for all resources. Who comes back with a cursor is told what came
//!    after it, or why that cannot be, and then what there is.
//! 5. Nobody who is told holds up the hub, or another one.
//! 6. Where the informer missed something, the difference is told, and a gap says so. Where it does not know what is
//!    going on, the status does.
//!
//! A resource that nobody asked for at the start is followed while somebody is subscribed to it, and for a while after
//! that. Its informer is stopped then, for everyone who has it from the same factory: give the hub a factory of its own
//! where that matters.
//!
//! When the last handle of a hub is dropped, nothing is read any more.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_informer::factory::Factory;
use kube_informer::informer::Informer;
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use prometheus_client::registry::Registry;
use tokio::sync::Notify;

// What is said.
pub(crate) mod describe;
pub(crate) mod news;

// Whose it is: one resource, and those who are told of it.
mod topic;

// How it is known.
mod follow;
mod publisher;

// How it is asked for.
mod builder;
mod called;
mod names;
mod resolve;
mod subscribe;

pub use builder::{Builder, HubError};
pub use publisher::Publisher;

use crate::journal::{Cursor, Epoch, Journal};
use crate::message::{Message, StatusState};
use crate::metrics::Metrics;
use crate::session::Session;
use builder::Settings;
use called::Called;
use names::Names;
use news::{News, Tale, TopicId};
use topic::Topic;

/// See the [module](self). A clone is the same hub.
#[derive(Clone)]
pub struct Hub {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    factory: Factory,
    settings: Settings,
    core: Mutex<Core>,
    /// A resource may be another than it was.
    turned: Notify,
    pub(crate) metrics: Arc<Metrics>,
    names: Names,
    called: Called,
    /// Held by whoever begins to follow a resource that nobody asked for at the start, or gives one up.
    opening: tokio::sync::Mutex<()>,
    links: AtomicU64,
}

/// What is changed together.
pub(crate) struct Core {
    journal: Journal<Arc<News>>,
    topics: HashMap<TopicId, Topic>,
    /// How many there were.
    made: u64,
}

/// One connection, as the hub sees it.
pub(crate) struct Link {
    id: u64,
    session: Mutex<Session>,
    /// There is something to send, or to fold.
    pub(crate) wake: Notify,
}

/// How a resource is, for those who ask whether all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicStatus {
    /// `apps/v1/deployments`.
    pub gvr: String,
    /// Whether the hub was started for it.
    pub wanted: bool,
    /// Whether everything was read once.
    pub ready: bool,
    /// In one word.
    pub state: StatusState,
    /// Why, where it is not live.
    pub why: Option<String>,
    /// How many connections are told of it.
    pub links: usize,
}

/// `apps/v1/deployments`, `v1/pods`.
pub(crate) fn gvr(resource: &Resource) -> String {
    format!("{}/{}", resource.api_version(), resource.plural)
}

impl Hub {
    /// A hub that reads through the informers of a factory. They begin when the factory is started.
    pub fn builder(factory: Factory) -> Builder {
        Builder::new(factory)
    }

    /// This start: cursors of others mean nothing here.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.inner.core().journal.epoch()
    }

    /// The place of the last thing that was told.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.inner.core().journal.last()
    }

    /// How the resources are that it follows, by name.
    #[must_use]
    pub fn topics(&self) -> Vec<TopicStatus> {
        let mut topics: Vec<TopicStatus> = self.inner.core().topics.values().map(Topic::status).collect();
        topics.sort_by(|a, b| a.gvr.cmp(&b.gvr));
        topics
    }

    /// Waits until every resource that it was started for was read and is live. One that is stale again is waited for again.
    pub async fn ready(&self) {
        let is_ready = |topic: &Topic| topic.since.is_some() && topic.state == StatusState::Live;
        loop {
            let mut turned = std::pin::pin!(self.inner.turned.notified());
            // What happens from here on is heard.
            turned.as_mut().enable();
            if self.inner.core().topics.values().filter(|topic| topic.wanted).all(is_ready) {
                return;
            }
            turned.await;
        }
    }

    /// The informers of the resources that it was started for, by name: to see how they are, to wait for them, or to be told
    /// of the same.
    #[must_use]
    pub fn informers(&self) -> Vec<Informer> {
        let core = self.inner.core();
        let mut wanted: Vec<&Topic> = core.topics.values().filter(|topic| topic.wanted).collect();
        wanted.sort_by(|a, b| a.gvr.cmp(&b.gvr));
        wanted.into_iter().map(|topic| topic.informer.clone()).collect()
    }

    /// The changes of a resource come from the caller from now on, and not from what the hub reads by itself. The resource
    /// is one that the hub was started for, whether it was or not. Whoever subscribes waits until the caller says that it
    /// has [begun](Publisher::begun).
    #[must_use]
    pub fn publisher<K: Send + 'static>(&self, informer: &Informer<K>) -> Publisher {
        Publisher::new(self, informer.cast())
    }

    /// Registers metrics: connections, what was sent, what was folded or lost, and the journal.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.inner.metrics.register(registry);
    }

    /// The factory whose informers it reads through.
    #[must_use]
    pub fn factory(&self) -> &Factory {
        &self.inner.factory
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.inner.metrics
    }

    /// The resources that it was started for.
    pub(crate) fn wanted(&self) -> Vec<String> {
        self.topics().into_iter().filter(|topic| topic.wanted).map(|topic| topic.gvr).collect()
    }

    /// Whether any other resource may be asked for.
    pub(crate) fn is_any(&self) -> bool {
        self.inner.settings.any
    }

    /// A connection; so many bytes may wait for it.
    pub(crate) fn connect(&self, outbox: usize) -> Arc<Link> {
        let id = self.inner.links.fetch_add(1, Ordering::Relaxed);
        Arc::new(Link { id, session: Mutex::new(Session::new(outbox)), wake: Notify::new() })
    }

    /// A connection is told nothing any more.
    pub(crate) fn disconnect(&self, link: &Arc<Link>) {
        let mut core = self.inner.core();
        let idle = core.leave(link);
        drop(core);
        idle.into_iter().for_each(|topic| follow::retire(&self.inner, topic));
    }

    /// Tells a connection where the hub is: everything before was put into its outbox.
    pub(crate) fn bookmark(&self, link: &Link) {
        let core = self.inner.core();
        let cursor = core.journal.last();
        let text = Message::Bookmark(crate::message::Bookmark { cursor }).text();
        link.with(|session| session.outbox.push_text(text, Some(cursor), cursor));
    }

    /// Tells a connection something.
    pub(crate) fn say(&self, link: &Link, message: &Message) {
        let head = self.cursor();
        link.with(|session| session.outbox.push_text(message.text(), None, head));
    }
}

impl Inner {
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everyone who is told of a topic. `known` is what becomes of the object in what is known.
    fn publish(&self, topic: TopicId, tale: impl FnOnce(Cursor) -> Tale, known: Known) -> Option<Cursor> {
        let mut core = self.core();
        let Core { journal, topics, .. } = &mut *core;
        let topic = topics.get_mut(&topic)?;
        topic.know(known);
        let mut news = None;
        let cursor = journal.push(|cursor| {
            let made = Arc::new(News { cursor, topic: topic.id, tale: tale(cursor) });
            news = Some(Arc::clone(&made));
            made
        });
        let news = news?;
        self.metrics.journal(journal.len(), journal.bytes());
        for link in &topic.links {
            link.with(|session| session.news(&news));
        }
        Some(cursor)
    }
}

/// What becomes of an object in what is known.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    Is(Object),
    Was(Object),
    Same,
}

impl Core {
    /// Takes a connection out of all topics; gives those that nobody is told of any more.
    fn leave(&mut self, link: &Arc<Link>) -> Vec<TopicId> {
        let followed =
            self.topics.values_mut().filter(|topic| topic.links.iter().any(|each| each.id == link.id));
        let mut idle = Vec::new();
        for topic in followed {
            topic.links.retain(|each| each.id != link.id);
            idle.extend(topic.links.is_empty().then_some(topic.id));
        }
        idle
    }
}

impl Link {
    /// Does something with the session; wakes whoever sends.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Session) -> R) -> R {
        let done = act(&mut self.session());
        self.wake.notify_one();
        done
    }

    /// The session, for whoever sends.
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
        core.topics.values().for_each(Topic::abandon);
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("cursor", &self.cursor())
            .field("topics", &self.topics())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
