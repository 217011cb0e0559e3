//! Informers that are used for a while: the last who uses one ends it, unless somebody asked the factory for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::{Factory, Informers, Wishes};
use crate::informer::Informer;
use crate::informer::core::Core;
use crate::informer::spec::Spec;

/// Who uses an informer. It is changed under the factory's lock alone.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Somebody asked the factory for it, and may have it for as long as there is a factory.
    kept: AtomicBool,
    leases: AtomicUsize,
}

impl Claims {
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    fn take(&self) {
        self.leases.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether nobody is left.
    fn give_back(&self) -> bool {
        self.leases.fetch_sub(1, Ordering::Relaxed) == 1 && !self.kept.load(Ordering::Relaxed)
    }

    fn is_shared(&self) -> bool {
        self.kept.load(Ordering::Relaxed) || self.leases.load(Ordering::Relaxed) > 1
    }
}

/// The use of an informer. Dropped, it is given back; the last one to do so ends the informer.
pub(crate) struct Lease {
    factory: Factory,
    informer: Informer,
    given_back: bool,
}

/// An informer that ends has no handlers to wait for: they were ended by those who had a lease.
const GRACE: Duration = Duration::from_secs(5);

impl Factory {
    /// The informer for this, for as long as it is needed; started, if the others are.
    pub(crate) fn lease(&self, spec: Spec) -> Lease {
        let mut informers = self.lock();
        let core = self.core(&mut informers, spec, Wishes::default());
        core.claims().take();
        drop(informers);
        let informer = Informer::new(core, self.keeper(), None);
        Lease { factory: self.clone(), informer, given_back: false }
    }
}

impl Lease {
    pub(crate) fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Whether somebody else uses the informer, too.
    pub(crate) fn is_shared(&self) -> bool {
        let core = self.informer.core();
        let informers = self.factory.lock();
        core.claims().is_shared() && informers.all.values().any(|each| Arc::ptr_eq(each, core))
    }

    /// The same from a new informer. The old one is ended, unless somebody else uses it: then it is the same again, if it
    /// was not stopped.
    pub(crate) async fn renew(mut self) -> Self {
        let spec = self.informer.core().spec().clone();
        if let Some(ending) = self.give_back() {
            // It fails only where the runtime ends.
            let _ = ending.await;
        }
        self.factory.lease(spec)
    }

    /// Gives it back, and waits for the end of the informer, if it ends.
    pub(crate) async fn release(mut self) {
        if let Some(ending) = self.give_back() {
            // It fails only where the runtime ends.
            let _ = ending.await;
        }
    }

    fn give_back(&mut self) -> Option<JoinHandle<()>> {
        if std::mem::replace(&mut self.given_back, true) {
            return None;
        }
        let core = Arc::clone(self.informer.core());
        {
            let mut informers = self.factory.lock();
            if !core.claims().give_back() {
                return None;
            }
            let Informers { all, ending, .. } = &mut *informers;
            ending.extend(all.extract_if(|_, each| Arc::ptr_eq(each, &core)).map(|(_, each)| each));
        }
        core.abandon();
        let factory = self.factory.clone();
        // A task of its own: whoever waits for it may stop waiting.
        Some(self.factory.runtime().spawn(async move {
            if core.stop(GRACE).await.is_empty() {
                factory.ended(&core);
            }
        }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.give_back());
    }
}

impl Factory {
    /// It has ended: nobody has to wait for it any more.
    pub(super) fn ended(&self, core: &Arc<Core>) {
        self.lock().ending.retain(|each| !Arc::ptr_eq(each, core));
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("informer", &self.informer).finish_non_exhaustive()
    }
}
