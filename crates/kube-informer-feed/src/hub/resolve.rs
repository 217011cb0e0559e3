//! From what a client calls a resource to what it is.

use kube_informer::connect::{NotFound, ResolveError};
use kube_informer::resource::Resource;

use super::names::Unknown;
use super::news::TopicId;
use super::topic::Topic;
use super::{Core, Hub, gvr};
use crate::message::ErrMessage;

/// What a client means.
pub(super) enum Meant {
    /// What is followed already.
    Topic(TopicId),
    /// What could be.
    Resource(Resource),
}

/// `apps/v1/deployments` as `kubectl` takes it: `deployments.v1.apps`. Other names stay; `None` where it is neither.
pub(super) fn kubectl_name(name: &str) -> Option<String> {
    let is_word = |word: &str| {
        let mut bytes = word.bytes();
        word.len() <= 253
            && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
    };
    let parts: Vec<&str> = name.split('/').collect();
    if !parts.iter().copied().all(is_word) {
        return None;
    }
    match parts.as_slice() {
        [name] => Some((*name).to_owned()),
        [version, plural] => Some(format!("{plural}.{version}.")),
        [group, version, plural] => Some(format!("{plural}.{version}.{group}")),
        _ => None,
    }
}

/// That there is no such resource, and what may be meant. Which groups the cluster has, and what could not be read of them, is for
/// its operators.
fn not_found(name: &str, error: &NotFound) -> String {
    let near = match error.near.as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(", ")),
    };
    format!("the server has no resource {name:?}{near}")
}

/// That the cluster did not say what a name is. What went wrong is for its operators: it may have addresses in it.
fn unasked(name: &str) -> (u16, String) {
    (503, format!("{name:?} cannot be looked up now; try again later"))
}

impl Hub {
    /// What a client means by a name.
    pub(super) async fn resolve(&self, sub: &str, name: &str) -> Result<Meant, ErrMessage> {
        let refuse = |(code, message): (u16, String)| ErrMessage::new(Some(sub), code, message);
        let Some(kubectl) = kubectl_name(name) else {
            let name = crate::message::short(name);
            let message =
                format!(r#"{name:?} names no resource: say "apps/v1/deployments", "v1/pods" or "deploy""#);
            return Err(refuse((400, message)));
        };
        if let Some(topic) = self.inner.core().named(name) {
            return Ok(Meant::Topic(topic));
        }
        let patience = self.inner.settings.patience;
        let meant = async {
            if self.inner.settings.any {
                self.any(name, &kubectl).await
            } else {
                self.wanted_one(name, &kubectl).await
            }
        };
        // Those who ask wait for each other here, and not in the cluster.
        let meant = tokio::time::timeout(patience, meant).await.unwrap_or_else(|_| {
            let message =
                format!("the cluster did not say within {patience:?} what {name:?} is; try again later");
            Err((503, message))
        });
        meant.map_err(refuse)
    }

    /// What somebody means who may have any resource.
    async fn any(&self, name: &str, kubectl: &str) -> Result<Meant, (u16, String)> {
        let resource = match self.inner.names.resolve(&self.inner.factory, kubectl).await {
            Ok(resource) => resource,
            Err(Unknown::Resolve(ResolveError::NotFound(error))) => {
                return Err((404, not_found(name, &error)));
            }
            Err(Unknown::Resolve(error @ ResolveError::NotWatchable { .. })) => {
                return Err((405, error.to_string()));
            }
            Err(Unknown::Resolve(error)) => {
                tracing::warn!(%error, "a client that names a resource is told to try again later");
                return Err(unasked(name));
            }
            Err(Unknown::Unasked) => return Err(unasked(name)),
        };
        let topic = self.inner.core().find(&gvr(&resource));
        Ok(topic.map_or(Meant::Resource(resource), Meant::Topic))
    }

    /// What somebody means who may have what the hub was started for. Which other resources there are, it is not told: what is
    /// there, what is not, and what cannot be watched is refused in the same words, as fast, and without asking anybody.
    async fn wanted_one(&self, name: &str, kubectl: &str) -> Result<Meant, (u16, String)> {
        let refuse = || Err(self.forbidden(name));
        // Whoever says all of a name means what it says.
        if name.contains('/') {
            return refuse();
        }
        let wanted = self.inner.core().wanted();
        let Ok(meant) = self.inner.called.find(&self.inner.factory, &wanted, kubectl).await else {
            return Err(unasked(name));
        };
        let topic = meant.and_then(|resource| self.inner.core().find(&gvr(resource)));
        topic.map_or_else(refuse, |topic| Ok(Meant::Topic(topic)))
    }

    fn forbidden(&self, name: &str) -> (u16, String) {
        let wanted = match self.wanted().join(", ") {
            none if none.is_empty() => "nothing yet".to_owned(),
            wanted => wanted,
        };
        (403, format!("{name} is not to be had here; this server was started for {wanted}"))
    }
}

impl Core {
    /// The topic of a resource.
    pub(super) fn find(&self, gvr: &str) -> Option<TopicId> {
        self.topics.values().find(|topic| topic.gvr == gvr).map(|topic| topic.id)
    }

    /// What the hub was started for: the core group first, as for the server, and then in the order in which it was.
    pub(super) fn wanted(&self) -> Vec<Resource> {
        let mut wanted: Vec<&Topic> = self.topics.values().filter(|topic| topic.wanted).collect();
        wanted.sort_by_key(|topic| (!topic.informer.resource().group.is_empty(), topic.id));
        wanted.into_iter().map(|topic| topic.informer.resource().clone()).collect()
    }

    /// The topic that a name means, without asking the cluster: only where nothing else could be meant.
    fn named(&self, name: &str) -> Option<TopicId> {
        if let Some(exact) = self.find(name) {
            return Some(exact);
        }
        let mut named =
            self.topics.values().filter(|topic| topic.wanted && topic.informer.resource().plural == name);
        let first = named.next()?;
        named.next().is_none().then_some(first.id)
    }
}
