//! What a reconciler has at hand.

use std::fmt;
use std::sync::Arc;

use kube_client::Client;
use kube_client::core::Resource as KubeResource;

use super::engine::Engine;
use super::request::Request;
use super::writes::Writes;
use crate::informer::{Informer, Written};
use crate::object::Object;
use crate::resource::{Placement, Resource};
use crate::workqueue::Priority;

/// What a reconciler has at hand: the request, the caches of its sources, a client. A clone is the same.
pub struct Context<K> {
    inner: Arc<Inner>,
    informer: Informer<K>,
}

struct Inner {
    engine: Arc<Engine>,
    request: Request,
    priority: Priority,
    failures: u32,
    span: tracing::Span,
    writes: Arc<Writes>,
}

/// The controller has no such source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("controller {controller:?} has no source of {resource}; add it with owns or watches. It has {}", sources.join(", "))]
pub struct NoSource {
    /// The controller.
    pub controller: String,
    /// The resource that was asked for.
    pub resource: String,
    /// Those that there are.
    pub sources: Vec<String>,
}

impl<K> Context<K> {
    pub(super) fn new(
        engine: Arc<Engine>,
        informer: Informer<K>,
        (request, priority): (Request, Priority),
        span: tracing::Span,
        writes: Arc<Writes>,
    ) -> Self {
        let failures = engine.failures().count(&request);
        Self { inner: Arc::new(Inner { engine, request, priority, failures, span, writes }), informer }
    }

    /// Namespace and name of what is to be reconciled.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.inner.request
    }

    /// The object as the cache has it now; `None` if it is gone.
    #[must_use]
    pub fn object(&self) -> Option<Object<K>> {
        self.informer.get(self.request().namespace(), self.request().name())
    }

    /// The informer of what is reconciled.
    #[must_use]
    pub fn informer(&self) -> &Informer<K> {
        &self.informer
    }

    /// The informer of another source, to read its cache.
    ///
    /// # Errors
    ///
    /// Where the controller has no source of that kind.
    pub fn source<T>(&self) -> Result<Informer<T>, NoSource>
    where
        T: KubeResource<DynamicType = (), Scope: Placement>,
    {
        self.source_of(&Resource::of::<T>()).map(|informer| informer.cast())
    }

    /// The informer of another source, to read its cache.
    ///
    /// # Errors
    ///
    /// Where the controller has no source of that resource.
    pub fn source_of(&self, resource: &Resource) -> Result<Informer, NoSource> {
        let mut sources = self.inner.engine.sources.iter();
        let is_it = |known: &Resource| {
            (&known.group, &known.version, &known.plural)
                == (&resource.group, &resource.version, &resource.plural)
        };
        let found = sources.find(|source| is_it(source.informer.resource()));
        found.map(|source| source.informer.clone()).ok_or_else(|| NoSource {
            controller: self.controller().to_owned(),
            resource: resource.to_string(),
            sources: self.inner.engine.sources.iter().map(ToString::to_string).collect(),
        })
    }

    /// A client, to write with.
    #[must_use]
    pub fn client(&self) -> Client {
        self.inner.engine.factory.client()
    }

    /// Something was written: before this key is reconciled again, the cache shall have it, within
    /// [`Controller::write_deadline`](super::Controller::write_deadline). What the controller has no source of, or not
    /// in that namespace, is not waited for.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_client::Api;
    /// # use kube_informer::controller::{Action, BoxError, Context};
    /// # use kube_informer::informer::Written;
    /// # async fn reconcile(context: Context<ConfigMap>, wanted: ConfigMap) -> Result<Action, BoxError> {
    /// let api: Api<ConfigMap> = Api::namespaced(context.client(), context.request().namespace());
    /// let written = api.create(&Default::default(), &wanted).await?;
    /// context.wrote(&Written::of(&written));
    /// # Ok(Action::done())
    /// # }
    /// ```
    pub fn wrote(&self, written: &Written) {
        self.inner.writes.add(&self.inner.engine, written);
    }

    /// How often it failed in a row before this: errors, panics and timeouts. A reconcile that only asked to be called again
    /// did not fail. Of a hundred thousand keys, those that failed last are remembered.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.inner.failures
    }

    /// The priority that it runs with.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.inner.priority
    }

    /// The controller's name.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.inner.engine.name
    }

    /// The span of this reconcile, which names controller and key. The reconciler runs in it; what it spawns does not.
    #[must_use]
    pub fn span(&self) -> &tracing::Span {
        &self.inner.span
    }
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), informer: self.informer.clone() }
    }
}

impl<K> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.controller())
            .field("request", self.request())
            .finish_non_exhaustive()
    }
}
