//! From what a client calls a resource to what it is.

use kube_informer::connect::{NotFound, ResolveError};
use kube_informer::resource::Resource;

use super::names::Unknown;
use super::news::TopicId;
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
fn not_found(error: &NotFound) -> String {
    let near = match error.near.as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(", ")),
    };
    format!("the server has no resource {:?}{near}", error.name)
}

impl Hub {
    /// What a client means by a name.
    pub(super) async fn resolve(&self, sub: &str, name: &str) -> Result<Meant, ErrMessage> {
        let refuse = |code, message: String| ErrMessage::new(Some(sub), code, message);
        let Some(kubectl) = kubectl_name(name) else {
            let name = crate::message::short(name);
            let message =
                format!(r#"{name:?} names no resource: say "apps/v1/deployments", "v1/pods" or "deploy""#);
            return Err(refuse(400, message));
        };
        if let Some(topic) = self.inner.core().named(name) {
            return Ok(Meant::Topic(topic));
        }
        // Whoever says all of a name means what it says: where that is not to be had, nobody needs to be asked what it is.
        let any = self.inner.settings.any;
        if name.contains('/') && !any {
            return Err(self.forbidden(sub, name));
        }
        // Those who ask wait for each other here, and not in the cluster.
        let patience = self.inner.settings.patience;
        let resolved =
            tokio::time::timeout(patience, self.inner.names.resolve(&self.inner.factory, &kubectl));
        let resource = match resolved.await {
            Ok(Ok(resource)) => resource,
            // Who may have some resources only is not told which others there are: what is there, what is not, and what cannot
            // be watched is refused in the same words.
            Ok(Err(Unknown::Resolve(ResolveError::NotFound(_) | ResolveError::NotWatchable { .. })))
                if !any =>
            {
                return Err(self.forbidden(sub, name));
            }
            Ok(Err(Unknown::Resolve(ResolveError::NotFound(error)))) => {
                return Err(refuse(404, not_found(&error)));
            }
            Ok(Err(Unknown::Resolve(error @ ResolveError::NotWatchable { .. }))) => {
                return Err(refuse(405, error.to_string()));
            }
            Ok(Err(Unknown::Resolve(error))) => return Err(refuse(503, format!("{error}; try again later"))),
            Ok(Err(Unknown::Unasked(why))) => {
                return Err(refuse(503, format!("{name:?} cannot be looked up: {why}; try again later")));
            }
            Err(_) => {
                let message =
                    format!("the cluster did not say within {patience:?} what {name:?} is; try again later");
                return Err(refuse(503, message));
            }
        };
        if let Some(topic) = self.inner.core().find(&gvr(&resource)) {
            return Ok(Meant::Topic(topic));
        }
        if !any {
            return Err(self.forbidden(sub, name));
        }
        Ok(Meant::Resource(resource))
    }

    fn forbidden(&self, sub: &str, name: &str) -> ErrMessage {
        let wanted = self.wanted().join(", ");
        let message = format!("{name} is not to be had here; this server was started for {wanted}");
        ErrMessage::new(Some(sub), 403, message)
    }
}

impl Core {
    /// The topic of a resource.
    pub(super) fn find(&self, gvr: &str) -> Option<TopicId> {
        self.topics.values().find(|topic| topic.gvr == gvr).map(|topic| topic.id)
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
