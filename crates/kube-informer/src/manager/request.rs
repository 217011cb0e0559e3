//! What somebody asks for: an object to be watched, and who is told of it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::key::{KeyParams, Owner};
use crate::controller::BoxError;
use crate::object::Object;
use crate::resource::Resource;

/// What happened to a watched object.
///
/// What is told of one object is a story without holes: it is added once, then updated, then deleted; an object that was
/// deleted and made anew (another UID) is deleted and added. Of several changes the last is told: `old` is what was told
/// before.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WatchEvent {
    /// It is there.
    Added {
        /// The object.
        new: Object,
        /// Whether it was there when the watch began.
        initial: bool,
    },
    /// It has changed.
    Updated {
        /// What was told last.
        old: Object,
        /// What there is now.
        new: Object,
        /// Whether nothing has changed, and it is only said again.
        resync: bool,
    },
    /// It is gone.
    Deleted {
        /// Its last state, as far as it is known.
        last: Object,
        /// Whether the server said so. If not, it was found missing.
        certain: bool,
    },
}

impl WatchEvent {
    /// The object as it is now, or was last.
    #[must_use]
    pub fn object(&self) -> &Object {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }
}

/// Handles what happens to one watched object, one event after the other.
///
/// - An error is retried with a growing delay, with what is known then. Where the object is gone by then, that is told, also if
///   it was never handled that it was there: half of it may have been done. A panic is an error, and so is a call that takes too
///   long ([`Manager::timeout`](super::Manager::timeout)): it is dropped where it waits.
/// - A call that takes its time holds up no other watch. It must not block its thread.
pub trait WatchHandler: Send + Sync + 'static {
    /// Handles one event.
    fn handle(&self, event: WatchEvent) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// Any handler.
pub(super) type Handles = dyn Fn(WatchEvent) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync;

/// An object to be watched for an owner: what [`Manager::add`](super::Manager::add) takes.
#[derive(Clone)]
#[must_use = "nothing is watched until it is given to `Manager::add`"]
pub struct RequestWatch {
    pub(super) owner: Owner,
    pub(super) resource: Resource,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) handler: Option<Arc<Handles>>,
    pub(super) waits: bool,
    pub(super) deadline: Option<Duration>,
}

impl RequestWatch {
    /// An object of a resource, by its namespace (empty for cluster-scoped objects) and name; and the owner whom it is watched
    /// for.
    pub fn new(
        owner: impl Into<Owner>,
        resource: Resource,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            owner: owner.into(),
            resource,
            namespace: namespace.into(),
            name: name.into(),
            handler: None,
            waits: false,
            deadline: None,
        }
    }

    /// Who is told what happens. Without one, only the owner is: see [`Manager::requests`](super::Manager::requests).
    pub fn handler(mut self, handler: impl WatchHandler) -> Self {
        let handler = Arc::new(handler);
        self.handler = Some(Arc::new(move |event| {
            let handler = Arc::clone(&handler);
            Box::pin(async move { handler.handle(event).await })
        }));
        self
    }

    /// As [`handler`](Self::handler), with a closure.
    ///
    /// ```
    /// # use kube_informer::manager::{RequestWatch, WatchEvent};
    /// # fn example(watch: RequestWatch) -> RequestWatch {
    /// watch.on(async |event| {
    ///     if let WatchEvent::Deleted { last, .. } = event {
    ///         println!("{} is gone", last.key());
    ///     }
    ///     Ok::<_, std::io::Error>(())
    /// })
    /// # }
    /// ```
    pub fn on<F, Fut, E>(mut self, closure: F) -> Self
    where
        F: Fn(WatchEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let closure = Arc::new(closure);
        self.handler = Some(Arc::new(move |event| {
            // What the closure itself does, before it waits, may panic, too: it is called where that is caught.
            let closure = Arc::clone(&closure);
            Box::pin(async move { closure(event).await.map_err(Into::into) })
        }));
        self
    }

    /// The object may come later: the watch is there, and waits for it. That its resource is not served, that watching it is
    /// forbidden, and that the server cannot be reached are no errors either, then: it is tried again and again, and
    /// [`Watch::state`](super::Watch::state) says how it goes.
    pub fn wait_for_target(mut self) -> Self {
        self.waits = true;
        self
    }

    /// How long it is waited until it is known whether the object is there; [`Manager::sync_deadline`](super::Manager::sync_deadline)
    /// unless said otherwise.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What tells it from others.
    #[must_use]
    pub fn key(&self) -> KeyParams {
        KeyParams::new(&self.owner, &self.resource, &self.namespace, &self.name)
    }
}

impl fmt::Debug for RequestWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestWatch")
            .field("key", &format_args!("{}", self.key()))
            .field("handler", &self.handler.is_some())
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
