//! What is heard, and told on: of targets, of pods, and of what was not known or may have been old.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::FutureExt;
use kube_informer::controller::Request;
use kube_informer::informer::{Event, Informer, State as Health};
use kube_informer::object::Object;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::followed::Looked;
use super::{Inner, State, TargetState, pods};

/// How often those are looked at of whom something is not known, or may be old.
const SWEEP: Duration = Duration::from_millis(500);

/// How often all of them are.
const ALL: Duration = Duration::from_secs(5);

/// So many events of pods are taken together.
const TOGETHER: usize = 256;

impl Inner {
    /// Looks at what is known of an owner's target, and tells what is new.
    pub(super) fn look(self: &Arc<Self>, owner: &Request) {
        let lasting = self.settings().lasting;
        let mut state = self.lock();
        let Looked { news, settled, reference } = state.look(owner, lasting);
        if news {
            // Under the lock: who sees what is new, or begins to read, is not told of it later once more.
            self.news.tell(owner);
        }
        drop(state);
        if settled {
            self.unsettled().remove(owner);
        } else if self.unsettled().insert(owner.clone()) {
            self.wake.notify_one();
        }
        if reference {
            let (inner, owner) = (Arc::clone(self), owner.clone());
            self.runtime.spawn(async move {
                let _turn = inner.owner_turns.take(&owner.to_string()).await;
                inner.settle_reference(&owner).await;
            });
        }
    }

    fn look_at_all_of(self: &Arc<Self>, namespace: &str) {
        let owners = self.lock().namespaces.get(namespace).map(|namespace| namespace.owners.clone());
        owners.iter().flatten().for_each(|owner| self.look(owner));
    }
}

impl State {
    fn look(&mut self, owner: &Request, lasting: Duration) -> Looked {
        let Some(followed) = self.owners.get_mut(owner) else { return Looked::nothing() };
        let Some(namespace) = self.namespaces.get_mut(owner.namespace()) else { return Looked::nothing() };
        let mut looked = followed.look(owner, &mut namespace.pods, &mut namespace.selectors);
        let is_stale = followed.watch.stale().is_some() || namespace.pods.stale().is_some();
        looked.news |= followed.note_stale(is_stale, lasting) && followed.state.is_some();
        looked
    }

    pub(super) fn told(&self, owner: &Request) -> Option<TargetState> {
        let followed = self.owners.get(owner)?;
        let mut told = followed.state.clone()?;
        let target = followed.watch.stale();
        let pods = self.namespaces.get(owner.namespace()).and_then(|namespace| namespace.pods.stale());
        told.stale = match (target, pods) {
            (None, None) => None,
            (Some(target), None) => Some(format!("the target: {target}")),
            (None, Some(pods)) => Some(format!("its pods: {pods}")),
            (Some(target), Some(pods)) => Some(format!("the target: {target}; its pods: {pods}")),
        };
        told.stale_lasts = followed.stale_lasts && told.stale.is_some();
        Some(told)
    }
}

/// Looks at owners whose pods change.
pub(super) async fn follow_pods(inner: Weak<Inner>, namespace: Box<str>, informer: Informer) {
    let mut events = informer.subscribe().name("elasti").resync(Duration::ZERO).events();
    let mut health = std::pin::pin!(informer.health_changes());
    // It is not this that keeps the informer.
    drop(informer);
    loop {
        tokio::select! {
            event = events.next() => {
                let Some(event) = event else { return };
                let mut changed = Changed::default();
                changed.add(event);
                for _ in 1..TOGETHER {
                    let Some(Some(event)) = events.next().now_or_never() else { break };
                    changed.add(event);
                }
                let Some(inner) = inner.upgrade() else { return };
                inner.pods_changed(&namespace, &changed);
            }
            health = health.next() => {
                let Some(health) = health else { return };
                let Some(inner) = inner.upgrade() else { return };
                if health.state == Health::Live {
                    inner.look_at_all_of(&namespace);
                }
            }
        }
        // Others on the same thread have their turn.
        tokio::task::yield_now().await;
    }
}

/// Pods that changed in what matters.
#[derive(Default)]
struct Changed {
    pods: Vec<Object>,
    everything: bool,
}

impl Changed {
    fn add(&mut self, event: Event) {
        match event {
            Event::Added { new, .. } => self.pods.push(new),
            Event::Deleted { last, .. } => self.pods.push(last),
            Event::Updated { old, new, .. } => {
                let ready = |pod| pods::is_ready(pod).unwrap_or(false);
                let is_relabelled = old.labels() != new.labels();
                if is_relabelled || ready(&old) != ready(&new) {
                    self.pods.push(new);
                }
                if is_relabelled {
                    self.pods.push(old);
                }
            }
            Event::Gap { .. } => self.everything = true,
            _ => self.everything = true,
        }
    }
}

impl Inner {
    fn pods_changed(self: &Arc<Self>, namespace: &str, changed: &Changed) {
        if changed.everything {
            return self.look_at_all_of(namespace);
        }
        let mut owners = BTreeSet::new();
        if let Some(namespace) = self.lock().namespaces.get(namespace) {
            changed.pods.iter().for_each(|pod| namespace.selectors.matching(pod.labels(), &mut owners));
        }
        owners.iter().for_each(|owner| self.look(owner));
    }
}

/// Looks at those of whom something is not known, or may be old, until it is; and at all of them from time to time, because
/// a watch that is interrupted says nothing. It is aborted with the last handle.
pub(super) async fn sweep(inner: Weak<Inner>, wake: Arc<Notify>) {
    let mut all_at = Instant::now() + ALL;
    loop {
        let Some(owners) = inner.upgrade().map(|inner| inner.unsettled().clone()) else { return };
        if owners.is_empty() {
            tokio::select! {
                () = wake.notified() => continue,
                () = tokio::time::sleep_until(all_at) => {}
            }
        } else {
            tokio::time::sleep(SWEEP).await;
        }
        let Some(inner) = inner.upgrade() else { return };
        if Instant::now() < all_at {
            owners.iter().for_each(|owner| inner.look(owner));
            continue;
        }
        all_at = Instant::now() + ALL;
        let all: Vec<Request> = inner.lock().owners.keys().cloned().collect();
        for owner in &all {
            inner.look(owner);
            // Others on the same thread have their turn.
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_informer::encoding::{Codec, Encoding, Rules};
    use kube_informer::object::Intake;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, app: &str, ready: bool, note: &str) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let status = if ready { "True" } else { "False" };
        let pod = json!({
            "metadata": { "name": name, "namespace": "shop", "labels": { "app": app }, "annotations": { "note": note } },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        });
        Intake::new(codec).object(pod.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_changes_about_a_pod_matters_to_those_whose_it_was_and_is() {
        let update = |old: Object, new: Object| {
            let mut changed = Changed::default();
            changed.add(Event::Updated { old, new, resync: false });
            let apps = changed.pods.iter().filter_map(|pod| pod.labels().get("app")).map(str::to_owned);
            apps.collect::<BTreeSet<String>>()
        };
        assert!(update(pod("p", "a", true, "x"), pod("p", "a", true, "y")).is_empty());
        assert_eq!(
            update(pod("p", "a", true, ""), pod("p", "a", false, "")),
            BTreeSet::from(["a".to_owned()])
        );
        let both = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        assert_eq!(update(pod("p", "a", true, ""), pod("p", "b", true, "")), both);
        let mut changed = Changed::default();
        changed.add(Event::Added { new: pod("p", "a", false, ""), initial: true });
        changed.add(Event::Deleted { last: pod("q", "b", false, ""), certain: false });
        assert_eq!((changed.pods.len(), changed.everything), (2, false));
    }
}
