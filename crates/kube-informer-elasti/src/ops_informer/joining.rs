//! How a target comes to be followed, and how that ends: its watch, what it names, and the pods of its namespace.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube_informer::controller::Request;
use kube_informer::informer::{Cause, Informer, State as Health};
use kube_informer::resource::Resource;

use super::error::FollowError;
use super::followed::{Followed, Named, Watched};
use super::hearing::follow_pods;
use super::kinds::Kind;
use super::pods::Pods;
use super::selectors::Selectors;
use super::{Inner, Namespace, State};
use crate::api::ScaleTargetRef;

/// How long the end of an informer is waited for.
const GRACE: Duration = Duration::from_secs(10);

impl Inner {
    /// Follows a target for an owner, and no other one any more.
    pub(super) async fn follow(
        self: &Arc<Self>,
        owner: &Request,
        reference: &ScaleTargetRef,
    ) -> Result<Resource, FollowError> {
        let _turn = self.owner_turns.take(&owner.to_string()).await;
        let is_gone = self.lock().owners.get(owner).is_some_and(|known| known.watch.is_not_served());
        if is_gone {
            // When its definition is made anew, it may say something else.
            self.kinds.forget(reference);
        }
        let kind = match self.kinds.resolve(&self.factory, reference).await {
            Ok(kind) => kind,
            Err(error) => {
                // What was followed before is not what is wanted now.
                let is_other =
                    self.lock().owners.get(owner).is_some_and(|known| known.reference != *reference);
                if is_other {
                    self.leave(owner).await;
                }
                return Err(error);
            }
        };
        if !self.is_followed(owner, &kind, reference) {
            self.leave(owner).await;
            self.join(owner, &kind, reference).await?;
        }
        self.settle_reference(owner).await;
        let pods = self.pods_known(owner).await;
        self.look(owner);
        self.target_known(owner)?;
        pods?;
        Ok(kind.resource.clone())
    }

    pub(super) async fn unfollow(&self, owner: &Request) -> bool {
        let _turn = self.owner_turns.take(&owner.to_string()).await;
        self.leave(owner).await
    }

    /// Whether that is what is followed already. What it was called may be new.
    fn is_followed(&self, owner: &Request, kind: &Arc<Kind>, reference: &ScaleTargetRef) -> bool {
        let mut state = self.lock();
        let Some(followed) = state.owners.get_mut(owner) else { return false };
        let is_same = followed.kind.resource == kind.resource && followed.reference.name == reference.name;
        if is_same {
            followed.reference = reference.clone();
            // The definition may have other paths by now.
            followed.kind = Arc::clone(kind);
        }
        is_same
    }

    async fn join(
        self: &Arc<Self>,
        owner: &Request,
        kind: &Arc<Kind>,
        reference: &ScaleTargetRef,
    ) -> Result<(), FollowError> {
        let watch = self.watch(owner, &kind.resource, &reference.name).await?;
        let followed = Followed::new(reference.clone(), Arc::clone(kind), watch);
        let _namespace = self.namespace_turns.take(owner.namespace()).await;
        let refused = {
            let mut state = self.lock();
            match self.enter(&mut state, owner) {
                Ok(()) => {
                    state.owners.insert(owner.clone(), followed);
                    None
                }
                Err(error) => Some((error, followed)),
            }
        };
        if let Some((error, followed)) = refused {
            self.manager.stop(followed.watch.key()).await;
            return Err(error);
        }
        self.look(owner);
        Ok(())
    }

    /// One more who wants to know of the pods of its namespace.
    fn enter(self: &Arc<Self>, state: &mut State, owner: &Request) -> Result<(), FollowError> {
        if state.stopped {
            return Err(FollowError::Stopped);
        }
        let namespace = owner.namespace();
        if !state.namespaces.contains_key(namespace) {
            let pods = Pods::open(&self.factory, namespace, self.settings().settling).map_err(|error| {
                FollowError::Pods {
                    namespace: namespace.to_owned(),
                    deadline: Duration::ZERO,
                    why: error.to_string(),
                }
            })?;
            let follow = follow_pods(Arc::downgrade(self), namespace.into(), pods.informer().clone());
            let task = self.runtime.spawn(follow).abort_handle();
            let opened = Namespace { pods, selectors: Selectors::default(), owners: BTreeSet::new(), task };
            state.namespaces.insert(namespace.into(), opened);
        }
        if let Some(namespace) = state.namespaces.get_mut(namespace) {
            namespace.owners.insert(owner.clone());
        }
        Ok(())
    }

    /// Takes down what was set up for an owner, in its turn.
    async fn leave(&self, owner: &Request) -> bool {
        let _namespace = self.namespace_turns.take(owner.namespace()).await;
        let (followed, closed) = {
            let mut state = self.lock();
            let Some(followed) = state.owners.remove(owner) else { return false };
            self.news.forget(owner);
            (followed, state.exit(owner))
        };
        self.unsettled().remove(owner);
        self.manager.stop(followed.watch.key()).await;
        if let Some(named) = followed.named.and_then(|named| named.watch) {
            self.manager.stop(named.key()).await;
        }
        if let Some(Namespace { pods, task, .. }) = closed {
            task.abort();
            let left = self.factory.stop(pods.informer(), GRACE).await;
            if !left.busy.is_empty() {
                tracing::warn!(namespace = owner.namespace(), busy = ?left.busy, "the informer of pods does not end");
            }
        }
        true
    }

    /// Watches an object for an owner.
    async fn watch(
        self: &Arc<Self>,
        owner: &Request,
        resource: &Resource,
        name: &str,
    ) -> Result<Watched, FollowError> {
        let (inner, key) = (Arc::downgrade(self), owner.clone());
        Watched::open(&self.manager, owner, resource, name, self.settings().sync_deadline, move || {
            if let Some(inner) = inner.upgrade() {
                inner.look(&key);
            }
        })
        .await
    }

    /// Says what stands in the way of knowing whether the target is there.
    fn target_known(&self, owner: &Request) -> Result<(), FollowError> {
        let state = self.lock();
        let Some(followed) = state.owners.get(owner) else { return Ok(()) };
        match followed.watch.stale() {
            Some(stale) if !followed.watch.is_known() => {
                let target =
                    format!("{} {}/{}", followed.kind.resource, owner.namespace(), followed.reference.name);
                let state = Box::new(stale);
                Err(FollowError::Target { target, state })
            }
            _ => Ok(()),
        }
    }

    /// Waits until the pods of an owner's namespace are known, and heard of as they change.
    async fn pods_known(&self, owner: &Request) -> Result<(), FollowError> {
        let informer = {
            let state = self.lock();
            let namespace = state.namespaces.get(owner.namespace());
            let waits =
                namespace.filter(|namespace| namespace.pods.informer().health().state != Health::Live);
            waits.map(|namespace| namespace.pods.informer().clone())
        };
        let Some(informer) = informer else { return Ok(()) };
        let deadline = self.settings().sync_deadline;
        // Where it takes longer, it is seen below what is missing.
        drop(tokio::time::timeout(deadline, settled(&informer)).await);
        informer.synced(Duration::ZERO).await.map_err(|error| FollowError::Pods {
            namespace: owner.namespace().to_owned(),
            deadline,
            why: error.to_string(),
        })
    }

    /// Watches the object that a target names for its selector, where that is another one than before. In the owner's turn.
    pub(super) async fn settle_reference(self: &Arc<Self>, owner: &Request) {
        let wanted = {
            let mut state = self.lock();
            let Some(followed) = state.owners.get_mut(owner) else { return };
            followed.wanted_reference()
        };
        let Some((wanted, before)) = wanted else { return };
        let named = match &wanted {
            None => None,
            Some(reference) => {
                let watch = self.watch_reference(owner, reference).await;
                let (watch, problem) = match watch {
                    Ok(watch) => (Some(watch), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                Some(Named { reference: reference.clone(), watch, problem })
            }
        };
        if let Some(before) = before {
            let is_kept = named
                .as_ref()
                .and_then(|named| named.watch.as_ref())
                .is_some_and(|now| now.key() == before.key());
            if !is_kept {
                self.manager.stop(before.key()).await;
            }
        }
        {
            let mut state = self.lock();
            if let Some(followed) = state.owners.get_mut(owner) {
                followed.named = named;
                followed.referring = false;
            }
        }
        self.look(owner);
    }

    async fn watch_reference(
        self: &Arc<Self>,
        owner: &Request,
        reference: &ScaleTargetRef,
    ) -> Result<Watched, FollowError> {
        let kind = self.kinds.resolve(&self.factory, reference).await?;
        self.watch(owner, &kind.resource, &reference.name).await
    }
}

/// Waits until an informer is live, or nothing comes of waiting.
async fn settled(informer: &Informer) {
    let mut health = std::pin::pin!(informer.health_changes());
    while let Some(health) = health.next().await {
        match &health.state {
            Health::Live | Health::Stopped => return,
            Health::Stale { why, .. } if why.cause == Cause::Forbidden || informer.is_synced() => return,
            _ => {}
        }
    }
}

impl State {
    /// One less who wants to know of the pods of its namespace. Without anybody, they are not watched any more.
    fn exit(&mut self, owner: &Request) -> Option<Namespace> {
        let namespace = self.namespaces.get_mut(owner.namespace())?;
        namespace.owners.remove(owner);
        namespace.selectors.remove(owner);
        if namespace.owners.is_empty() { self.namespaces.remove(owner.namespace()) } else { None }
    }
}
