//! What the cluster calls things, for those who may have any of them; asked seldom: however many names clients try, and however
//! wrong they are, the cluster is asked once in a while.

use std::time::Duration;

use kube_informer::connect::{Catalog, ResolveError};
use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// What is kept is one catalog, and when it was read.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Held by the one who asks.
    known: Mutex<Option<Known>>,
}

#[derive(Debug)]
struct Known {
    at: Instant,
    /// `None` where the cluster did not say.
    catalog: Option<Catalog>,
}

/// Why a name is no resource.
pub(super) enum Unknown {
    Resolve(ResolveError),
    /// The cluster did not say. Why is for its operators, in the log.
    Unasked,
}

/// A name that was there so lately is there.
const STAYS: Duration = Duration::from_secs(60);

/// A name that was not there so lately is not there, and who did not answer so lately does not answer.
pub(super) const MISSES: Duration = Duration::from_secs(2);

impl Names {
    /// The resource that is named as for `kubectl`.
    pub(super) async fn resolve(&self, factory: &Factory, name: &str) -> Result<Resource, Unknown> {
        let mut known = self.known.lock().await;
        if let Some(known) = &*known {
            let found = known.find(name);
            if known.at.elapsed() < if found.is_ok() { STAYS } else { MISSES } {
                return found;
            }
        }
        let catalog = factory.catalog().await;
        if let Err(error) = &catalog {
            tracing::warn!(%error, "clients that name a resource are told to try again later");
        }
        let catalog = catalog.ok();
        known.insert(Known { at: Instant::now(), catalog }).find(name)
    }
}

impl Known {
    fn find(&self, name: &str) -> Result<Resource, Unknown> {
        match &self.catalog {
            Some(catalog) => catalog.resolve(name).map_err(Unknown::Resolve),
            None => Err(Unknown::Unasked),
        }
    }
}
