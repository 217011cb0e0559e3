//! A shared informer: one watch, one cache, and any number of those who are told what changes.
//!
//! Promised (the numbers are those of the tests):
//!
//! 7. What went while nobody watched is found with the next list, and told as deleted, though not as `certain`. An object
//!    that was made again under its name, with another UID, is told as deleted and added.
//! 8. A handler finds the cache at its event's version or later. Lists and snapshots are one consistent state.
//! 9. Every registration sees, in order per object: what there is (`initial`), then what changes, each update with its old
//!    object. One that comes late gets the whole cache first, without stopping the others.
//! 10. Handlers hold up nobody: each has its own queue ([`Delivery`]), whose memory is bounded. One that is slow, stuck or
//!     panics harms no other, and not the cache.
//! 11. Everything is said again at each registration's own period, from the cache, and marked as such.
//! 12. Ends can be awaited; nothing is called afterwards, and nothing is left behind.
//! 13. An index function may fail or panic: its object is kept, and that is counted and reported. Namespaces, labels, owners
//!     and JSON pointers are found without decoding.
//! 14. Whoever has written can wait until the cache has it.
//! 15. [`Health`] says whether the cache is what the server has, and why not.
//!
//! Not promised: an order between objects; that a [`Latest`](Delivery::Latest) registration sees every change.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::timeout;

// What is asked for.
mod scope;
pub(crate) mod spec;

// How it goes on its way.
pub(crate) mod core;
mod health;
mod hub;
mod overlong;
mod pump;
mod running;
mod slack;

// Who is told, and what.
pub(crate) mod callers;
mod event;
mod handler;
mod inbox;
mod mailbox;
mod pending;
mod registration;
mod relay;
mod seat;
mod spanned;
mod turns;

// What is waited for, and counted.
mod stats;
mod wait;

pub use event::Event;
pub use handler::Handler;
pub use health::{Cause, Health, Relists, State, Why};
pub use mailbox::Delivery;
pub(crate) use registration::Follow;
pub use registration::{Events, Registration, RegistrationError, RegistrationStats, Subscription};
pub use scope::Scope;
pub use stats::{Durations, InformerStats};
pub(crate) use wait::synced;
pub use wait::{CaughtUpError, Missing, NotSynced, Written};

use self::core::Core;
use crate::cache::{Index, IndexError, IndexFault, Query, Snapshot};
use crate::object::{Borrowed, Object};
use crate::resource::Resource;

/// What is known of a resource's objects, seen as `K`s. See the [module](self).
///
/// A clone is the same informer. So is [another view](Self::cast) of it.
pub struct Informer<K = serde_json::Value> {
    core: Arc<Core>,
    /// Whoever runs it stops when nobody is interested any more.
    keeper: Arc<dyn Any + Send + Sync>,
    resync: Option<Duration>,
    view: PhantomData<fn() -> K>,
}

impl<K> Informer<K> {
    pub(crate) fn new(core: Arc<Core>, keeper: Arc<dyn Any + Send + Sync>, resync: Option<Duration>) -> Self {
        Self { core, keeper, resync, view: PhantomData }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The resource.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.core.spec().resource
    }

    /// Which of its objects.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.core.spec().scope
    }

    /// The same informer, its objects seen as another type.
    #[must_use]
    pub fn cast<T>(&self) -> Informer<T> {
        Informer::new(Arc::clone(&self.core), Arc::clone(&self.keeper), self.resync)
    }

    /// The object with this namespace (empty for cluster-scoped objects) and name, as it is now.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<Object<K>> {
        self.core.cache().get(namespace, name).map(Object::into_cast)
    }

    /// Reads the object with this namespace and name as it is now; `None` if there is none. It is lent, for those who read one
    /// after the other: no reference to it is counted. Whatever changes meanwhile changes beside it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_informer::informer::Informer;
    /// # fn node(pods: &Informer<Pod>) -> Option<String> {
    /// pods.with("shop", "web-0", |pod| pod.look().ok()?.spec.as_ref()?.node_name.clone())?
    /// # }
    /// ```
    pub fn with<R>(&self, namespace: &str, name: &str, read: impl FnOnce(Borrowed<'_, K>) -> R) -> Option<R> {
        self.core.cache().with(namespace, name, |object| read(Borrowed::new(object)))
    }

    /// All objects as they are now, to be narrowed down.
    pub fn list(&self) -> Query<K> {
        self.core.cache().list().cast()
    }

    /// The cache as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        self.core.cache().snapshot().into_cast()
    }

    /// Adds an index, now or later: it appears complete.
    ///
    /// # Errors
    ///
    /// Where there is one with this name.
    pub fn add_index(&self, index: Index) -> Result<(), IndexError> {
        self.core.cache().add_index(index)
    }

    /// Removes an index.
    ///
    /// # Errors
    ///
    /// Where there is none with this name.
    pub fn remove_index(&self, name: &str) -> Result<(), IndexError> {
        self.core.cache().remove_index(name)
    }

    /// The last failures of index functions, oldest first.
    #[must_use]
    pub fn index_faults(&self) -> Vec<IndexFault> {
        self.core.cache().index_faults()
    }

    /// What it has done, and what it holds.
    #[must_use]
    pub fn stats(&self) -> InformerStats {
        self.core.stats()
    }

    /// How it goes.
    #[must_use]
    pub fn health(&self) -> Health {
        self.core.board().health()
    }

    /// How it goes, now and whenever it changes. A reader that is slow sees the last of several changes. It ends when the
    /// informer has been stopped.
    pub fn health_changes(&self) -> impl Stream<Item = Health> + Send + 'static {
        let core = Arc::clone(&self.core);
        let mut changes = core.board().changes.subscribe();
        changes.mark_changed();
        futures_util::stream::unfold((core, changes, false), |(core, mut changes, stopped)| async move {
            if stopped || changes.changed().await.is_err() {
                return None;
            }
            let health = core.board().health();
            let stopped = health.state == State::Stopped;
            Some((health, (core, changes, stopped)))
        })
    }

    /// Whether everything was listed once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.core.hub().is_synced()
    }

    /// Waits until everything was listed once. Handlers may still have to be told of some of it: see
    /// [`Registration::synced`].
    ///
    /// # Errors
    ///
    /// Where that takes longer than the deadline, or can never be.
    pub async fn synced(&self, deadline: Duration) -> Result<(), NotSynced> {
        synced(&[&self.core], deadline).await
    }

    /// Waits until the cache has what was written.
    ///
    /// # Errors
    ///
    /// Where that takes longer than the deadline. At once where it can never be: it was another resource, or is out of
    /// scope, or the versions have no order.
    pub async fn caught_up(&self, written: &Written, deadline: Duration) -> Result<(), CaughtUpError> {
        let caught_up = wait::caught_up(&self.core, written);
        timeout(deadline, caught_up).await.unwrap_or_else(|_| {
            Err(CaughtUpError::Deadline {
                written: written.to_string(),
                deadline,
                state: Box::new(self.health().state),
            })
        })
    }
}

impl<K> Informer<K> {
    /// Whether the cache has what was written; `None` if that is none of its objects, or cannot be told.
    pub(crate) fn has(&self, written: &Written) -> Option<bool> {
        wait::has(&self.core, written)
    }
}

impl<K: Send + 'static> Informer<K> {
    /// To be told what changes, in some way.
    pub fn subscribe(&self) -> Subscription<K> {
        Subscription { informer: self.clone(), delivery: Delivery::default(), resync: None, name: None }
    }

    /// Calls a closure with each event. It may block: nobody waits for it, and threads are woken for it. One that never does is
    /// better a [`handler`](Self::handler), where many events come.
    pub fn on(&self, closure: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.subscribe().on(closure)
    }

    /// Calls the methods of a handler.
    pub fn handler(&self, handler: impl Handler<K>) -> Registration {
        self.subscribe().handler(handler)
    }

    /// The events as a stream.
    pub fn events(&self) -> Events<K> {
        self.subscribe().events()
    }
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("resource", &format_args!("{}", self.resource()))
            .field("scope", &format_args!("{}", self.scope()))
            .field("state", &format_args!("{}", self.health().state))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
