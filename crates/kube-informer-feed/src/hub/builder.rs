//! How a hub is set up.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube_informer::connect::ResolveError;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer::resource::Resource;

use super::called::Called;
use super::names::Names;
use super::{Core, Hub, Inner, resolve};
use crate::journal::{Bounds, Journal};
use crate::metrics::Metrics;

/// How a hub is to be; made by [`Hub::builder`].
#[derive(Debug)]
#[must_use = "nothing is followed until `start` is called"]
pub struct Builder {
    factory: Factory,
    wanted: Vec<Wanted>,
    settings: Settings,
    journal: Bounds,
}

#[derive(Debug)]
enum Wanted {
    Named(String),
    Known(Resource),
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) any: bool,
    pub(super) scope: Scope,
    /// How long changes may wait for others on their way.
    pub(super) gather: Duration,
    /// Changes that may wait for the hub.
    pub(super) queue: usize,
    pub(super) idle: Duration,
    /// Resources that nobody asked for at the start.
    pub(super) others: usize,
    pub(super) patience: Duration,
}

/// Why a hub did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// A resource is not what its name says, or the cluster could not be asked.
    #[error("cannot follow {name:?}: {source}")]
    Resource {
        /// What was asked for.
        name: String,
        /// Why not.
        #[source]
        source: ResolveError,
    },
    /// The cluster did not answer.
    #[error(
        "cannot follow {name:?}: the cluster did not say within {deadline:?} what that is; check its address"
    )]
    Slow {
        /// What was asked for.
        name: String,
        /// How long it was waited for.
        deadline: Duration,
    },
}

impl Builder {
    pub(super) fn new(factory: Factory) -> Self {
        let settings = Settings {
            any: false,
            scope: Scope::All,
            gather: Duration::ZERO,
            queue: 16_384,
            idle: Duration::from_secs(300),
            others: 64,
            patience: Duration::from_secs(10),
        };
        Self { factory, wanted: Vec::new(), settings, journal: Bounds::default() }
    }

    /// A resource that is followed from the beginning to the end, as `kubectl` names it, or as `apps/v1/deployments`.
    pub fn resource(mut self, name: impl Into<String>) -> Self {
        self.wanted.push(Wanted::Named(name.into()));
        self
    }

    /// A resource that is followed from the beginning to the end, and that is known already.
    pub fn known_resource(mut self, resource: Resource) -> Self {
        self.wanted.push(Wanted::Known(resource));
        self
    }

    /// Whether clients may ask for resources that the hub was not started for. They may not, unless this is said: what the
    /// hub is allowed to see need not be for everyone who is connected.
    pub fn any_resource(mut self, any: bool) -> Self {
        self.settings.any = any;
        self
    }

    /// Which objects are followed. The default is all.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.settings.scope = scope;
        self
    }

    /// How long changes may wait for others on their way from the server, which costs the processor less where they come
    /// often: see [`InformerBuilder::gather`](kube_informer::factory::InformerBuilder::gather). They do not, unless this is
    /// said.
    pub fn gather(mut self, longest: Duration) -> Self {
        self.settings.gather = longest;
        self
    }

    /// How much is kept for those who come back.
    pub fn journal(mut self, bounds: Bounds) -> Self {
        self.journal = bounds;
        self
    }

    /// How many changes of a resource may wait for the hub; what is more becomes a gap. The default is 16,384.
    pub fn queue(mut self, changes: usize) -> Self {
        self.settings.queue = changes.max(1);
        self
    }

    /// How long a resource that nobody asked for at the start is followed after the last one who was told of it. The default
    /// is five minutes.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.settings.idle = idle;
        self
    }

    /// How many resources that nobody asked for at the start may be followed at a time. The default is 64.
    pub fn other_resources(mut self, most: usize) -> Self {
        self.settings.others = most;
        self
    }

    /// How long the cluster may take to say what a resource is. The default is ten seconds.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Starts it. Informers begin when their factory is started.
    ///
    /// # Errors
    ///
    /// Where a resource is not there, or the cluster cannot be asked.
    pub async fn start(self) -> Result<Hub, HubError> {
        let Self { factory, wanted, settings, journal } = self;
        let deadline = settings.patience;
        let mut resources = Vec::new();
        let asks = wanted.iter().any(|wanted| matches!(wanted, Wanted::Named(_)));
        for wanted in wanted {
            resources.push(match wanted {
                Wanted::Known(resource) => resource,
                Wanted::Named(name) => {
                    let kubectl = resolve::kubectl_name(&name).unwrap_or_else(|| name.clone());
                    match tokio::time::timeout(deadline, factory.resolve(&kubectl)).await {
                        Ok(Ok(resource)) => resource,
                        Ok(Err(source)) => return Err(HubError::Resource { name, source }),
                        Err(_) => return Err(HubError::Slow { name, deadline }),
                    }
                }
            });
        }
        let core = Core { journal: Journal::new(journal), topics: HashMap::new(), made: 0 };
        let hub = Hub {
            inner: Arc::new(Inner {
                factory,
                settings,
                core: Mutex::new(core),
                turned: tokio::sync::Notify::new(),
                metrics: Arc::new(Metrics::default()),
                names: Names::default(),
                called: Called::default(),
                opening: tokio::sync::Mutex::default(),
                links: AtomicU64::new(0),
            }),
        };
        for resource in resources {
            hub.follow(resource, true);
        }
        // The cluster has just answered, and so no client need wait for this. Where nothing was asked, nothing is waited for here.
        if asks && !hub.is_any() {
            let wanted = hub.inner.core().wanted();
            let learnt = hub.inner.called.learn(&hub.inner.factory, &wanted);
            // Where that fails, it is tried again when a client needs it.
            _ = tokio::time::timeout(deadline, learnt).await;
        }
        Ok(hub)
    }
}
