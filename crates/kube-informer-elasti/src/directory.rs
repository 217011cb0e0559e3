//! Which ElastiService a Service belongs to: what is asked when the resolver says that somebody wants it.
//!
//! - A lookup takes no time to speak of, and always sees one whole entry.
//! - An ElastiService claims one Service. Where its spec names another one, the old claim is gone in the same step.
//! - Of several that claim one Service, the oldest owns it: by the time of creation, then by name. The others yield, and
//!   are told so. When the owner goes, the next one owns it in the same step.
//! - Whoever is affected by what another one did is told through [`changes`](Directory::changes).
//!
//! It holds what it was told by whoever reconciles, and does nothing by itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures_core::Stream;
use jiff::Timestamp;
use kube_informer::controller::Request;
use kube_informer::resource::Resource;

use crate::api::{ElastiService, ElastiServiceSpec};
use crate::news::News;

/// See the [module](self). A clone is the same directory.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    inner: Arc<Inner>,
}

/// What is known of a Service: of the ElastiService that owns it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The ElastiService.
    pub elasti: Request,
    /// Its UID.
    pub uid: String,
    /// Its spec.
    pub spec: ElastiServiceSpec,
    /// What its target is for the server; `None` while that is not known. The name is in the spec.
    pub target: Option<Resource>,
    /// Others that claim the same Service, the oldest first.
    pub claimed_by_others: Vec<Request>,
}

/// How an ElastiService stands to the Service that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It owns it.
    Owns {
        /// Others that claim it, too, the oldest first.
        others: Vec<Request>,
    },
    /// An older one owns it.
    Yields {
        /// That one.
        to: Request,
    },
}

#[derive(Debug, Default)]
struct Inner {
    state: RwLock<State>,
    news: News,
}

#[derive(Debug, Default)]
struct State {
    claims: HashMap<Request, Claim>,
    /// By namespace and name. None is here that nobody claims.
    services: HashMap<Box<str>, HashMap<Box<str>, Service>>,
}

/// What one ElastiService wants.
#[derive(Debug, Clone, PartialEq)]
struct Claim {
    rank: Rank,
    uid: String,
    spec: ElastiServiceSpec,
    target: Option<Resource>,
}

#[derive(Debug)]
struct Service {
    /// Never empty: the first owns it.
    ranks: BTreeSet<Rank>,
    entry: Arc<Entry>,
}

/// The least is the oldest. What was not created yet comes last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    uncreated: bool,
    created: Option<Timestamp>,
    elasti: Request,
}

impl Directory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known of a Service; `None` where no ElastiService names it.
    #[must_use]
    pub fn lookup(&self, namespace: &str, service: &str) -> Option<Arc<Entry>> {
        let state = self.read();
        Some(Arc::clone(&state.services.get(namespace)?.get(service)?.entry))
    }

    /// Takes an ElastiService in, as it is now, in place of what it was. Tells how it stands to its Service.
    pub fn set(&self, elasti: &Request, object: &ElastiService, target: Option<&Resource>) -> Standing {
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let rank = Rank { uncreated: created.is_none(), created, elasti: elasti.clone() };
        let claim = Claim {
            rank,
            uid: object.metadata.uid.clone().unwrap_or_default(),
            spec: object.spec.clone(),
            target: target.cloned(),
        };
        let mut state = self.write();
        let mut affected = BTreeSet::new();
        let moved = state
            .claims
            .get(elasti)
            .is_some_and(|old| old.spec.service != claim.spec.service || old.rank != claim.rank);
        if moved {
            state.leave(elasti, &mut affected);
        }
        state.join(elasti, claim, &mut affected);
        let standing = state.standing(elasti);
        drop(state);
        self.tell(elasti, &affected);
        // It was joined above, and the lock was held since.
        standing.unwrap_or(Standing::Owns { others: Vec::new() })
    }

    /// Takes an ElastiService out. Tells whether it was there.
    pub fn remove(&self, elasti: &Request) -> bool {
        let mut affected = BTreeSet::new();
        let was_there = self.write().leave(elasti, &mut affected);
        self.inner.news.forget(elasti);
        self.tell(elasti, &affected);
        was_there
    }

    /// How an ElastiService stands to the Service that it names; `None` where it is not here.
    #[must_use]
    pub fn standing(&self, elasti: &Request) -> Option<Standing> {
        self.read().standing(elasti)
    }

    /// The ElastiServices that are here, in order.
    #[must_use]
    pub fn all(&self) -> Vec<Request> {
        let mut all: Vec<Request> = self.read().claims.keys().cloned().collect();
        all.sort_unstable();
        all
    }

    /// How many Services are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().services.values().map(HashMap::len).sum()
    }

    /// Whether no Service is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read().services.is_empty()
    }

    /// ElastiServices whose standing changed by what another one did: it came, went, or names another Service now. Each
    /// waits once, however often that happened.
    pub fn changes(&self) -> impl Stream<Item = Request> + Send + use<> + 'static {
        self.inner.news.read(Vec::new())
    }

    fn tell(&self, but: &Request, affected: &BTreeSet<Request>) {
        affected.iter().filter(|each| *each != but).for_each(|each| self.inner.news.tell(each));
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.inner.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.inner.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a claim, or puts it in place of one of the same rank to the same Service.
    fn join(&mut self, elasti: &Request, claim: Claim, affected: &mut BTreeSet<Request>) {
        let (namespace, service) = (elasti.namespace(), claim.spec.service.clone());
        let rank = claim.rank.clone();
        self.claims.insert(elasti.clone(), claim);
        let services = self.services.entry(namespace.into()).or_default();
        match services.get_mut(service.as_str()) {
            Some(known) => {
                if known.ranks.insert(rank) {
                    affected.extend(known.ranks.iter().map(|rank| rank.elasti.clone()));
                }
                known.settle(&self.claims);
            }
            None => {
                let ranks = BTreeSet::from([rank]);
                if let Some(entry) = entry(&ranks, &self.claims) {
                    services.insert(service.into(), Service { ranks, entry: Arc::new(entry) });
                }
            }
        }
    }

    fn leave(&mut self, elasti: &Request, affected: &mut BTreeSet<Request>) -> bool {
        let Some(claim) = self.claims.remove(elasti) else { return false };
        let Some(services) = self.services.get_mut(elasti.namespace()) else { return true };
        if let Some(known) = services.get_mut(claim.spec.service.as_str()) {
            known.ranks.remove(&claim.rank);
            if known.ranks.is_empty() {
                services.remove(claim.spec.service.as_str());
            } else {
                affected.extend(known.ranks.iter().map(|rank| rank.elasti.clone()));
                known.settle(&self.claims);
            }
        }
        if services.is_empty() {
            self.services.remove(elasti.namespace());
        }
        true
    }

    fn standing(&self, elasti: &Request) -> Option<Standing> {
        let claim = self.claims.get(elasti)?;
        let entry = &self.services.get(elasti.namespace())?.get(claim.spec.service.as_str())?.entry;
        Some(if entry.elasti == *elasti {
            Standing::Owns { others: entry.claimed_by_others.clone() }
        } else {
            Standing::Yields { to: entry.elasti.clone() }
        })
    }
}

impl Service {
    fn settle(&mut self, claims: &HashMap<Request, Claim>) {
        if let Some(entry) = entry(&self.ranks, claims)
            && *self.entry != entry
        {
            self.entry = Arc::new(entry);
        }
    }
}

/// What is told of a Service that these claim.
fn entry(ranks: &BTreeSet<Rank>, claims: &HashMap<Request, Claim>) -> Option<Entry> {
    let mut ranks = ranks.iter().map(|rank| &rank.elasti);
    let elasti = ranks.next()?;
    let Claim { uid, spec, target, .. } = claims.get(elasti)?;
    Some(Entry {
        elasti: elasti.clone(),
        uid: uid.clone(),
        spec: spec.clone(),
        target: target.clone(),
        claimed_by_others: ranks.cloned().collect(),
    })
}

#[cfg(test)]
mod tests;
