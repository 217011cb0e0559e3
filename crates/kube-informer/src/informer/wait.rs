//! What can be waited for: that everything was listed, that something written has arrived.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_client::core::Resource as KubeResource;
use tokio::time::{Instant, timeout};

use super::core::Core;
use super::health::{Cause, State};
use super::scope::Scope;
use crate::cache::VersionError;
use crate::object::Version;
use crate::resource::{Placement, Resource};

/// The moment after so long; beyond the clock's end, one that does not come.
pub(super) fn moment(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(86_400 * 365 * 30))
}

/// Something was not listed in time, or never can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSynced {
    /// How long it was waited for, at most.
    pub deadline: Duration,
    /// What is missing, and why.
    pub missing: Vec<Missing>,
}

/// An informer that has not listed everything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The resource.
    pub resource: Resource,
    /// Which of its objects.
    pub scope: Scope,
    /// The namespace, where several are watched.
    pub namespace: Option<Arc<str>>,
    /// Where it stands.
    pub state: State,
}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cache is not synced (waited {:?})", self.deadline)?;
        for Missing { resource, scope, namespace, state } in &self.missing {
            match namespace {
                Some(namespace) => write!(f, "; {resource} in {namespace}: {state}")?,
                None => write!(f, "; {resource} ({scope}): {state}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for NotSynced {}

/// Waits until all of them are synced.
pub(crate) async fn synced(cores: &[&Arc<Core>], deadline: Duration) -> Result<(), NotSynced> {
    let wait = async {
        for core in cores {
            let (mut turns, mut changes) = (core.hub().turns(), core.board().changes.subscribe());
            while !core.hub().is_synced() && !is_hopeless(core) {
                tokio::select! {
                    turned = turns.changed() => if turned.is_err() { return },
                    changed = changes.changed() => if changed.is_err() { return },
                }
            }
        }
    };
    // It tells below what is missing, whether in time or not.
    drop(timeout(deadline, wait).await);
    let missing: Vec<Missing> = cores.iter().flat_map(|core| missing(core)).collect();
    if missing.is_empty() { Ok(()) } else { Err(NotSynced { deadline, missing }) }
}

/// Whether nothing can come of waiting.
fn is_hopeless(core: &Core) -> bool {
    match core.board().health().state {
        State::Stopped => true,
        State::Stale { why, .. } => matches!(why.cause, Cause::Misconfigured | Cause::Broken),
        State::Starting | State::Syncing | State::Live => false,
    }
}

fn missing(core: &Core) -> Vec<Missing> {
    if core.hub().is_synced() {
        return Vec::new();
    }
    let snapshot = core.cache().snapshot();
    let versions: Vec<_> = snapshot.versions().collect();
    let spec = core.spec();
    let scopes = core.board().health().scopes.into_iter();
    let listed = |namespace: Option<&str>| {
        versions.iter().any(|(scope, version)| *scope == namespace && version.is_some())
    };
    let unlisted = scopes.filter(|(namespace, _)| !listed(namespace.as_deref()));
    let missing = unlisted.map(|(namespace, state)| Missing {
        resource: spec.resource.clone(),
        scope: spec.scope.clone(),
        namespace,
        state,
    });
    missing.collect()
}

/// Something that was written: of which resource, where, and the version that it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    resource: Resource,
    namespace: String,
    /// Where it is known.
    name: Option<String>,
    version: Version,
}

impl Written {
    /// An object as the server gave it back when it was written.
    #[must_use]
    pub fn of<K: KubeResource<DynamicType = (), Scope: Placement>>(object: &K) -> Self {
        let meta = object.meta();
        let version = meta.resource_version.as_deref().unwrap_or_default();
        let written = Self::new(Resource::of::<K>(), meta.namespace.clone().unwrap_or_default(), version);
        Self { name: meta.name.clone(), ..written }
    }

    /// A version of an object in a namespace (empty for cluster-scoped objects).
    #[must_use]
    pub fn new(resource: Resource, namespace: impl Into<String>, version: impl Into<Version>) -> Self {
        Self { resource, namespace: namespace.into(), name: None, version: version.into() }
    }

    /// Whether both have versions of one order: who has seen the one has seen all that is older. Where objects are watched
    /// one by one, that is so only of the same object.
    pub(crate) fn is_beside(&self, other: &Self, one_by_one: bool) -> bool {
        let is_same = !one_by_one || self.name == other.name;
        self.is_of(&other.resource) && self.namespace == other.namespace && is_same
    }

    /// The same of the object of that name.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Whether the other one is newer.
    pub(crate) fn is_older(&self, other: &Self) -> bool {
        self.version < other.version
    }

    /// Versions of one group share the store, and so the versions of objects.
    pub(crate) fn is_of(&self, resource: &Resource) -> bool {
        (&resource.group, &resource.plural) == (&self.resource.group, &self.resource.plural)
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} of {}", self.version, self.resource)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        Ok(())
    }
}

/// Why it cannot be said that the cache has what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaughtUpError {
    /// It is of another resource.
    #[error("{written} never arrives here: this informer is for {resource}")]
    OtherResource {
        /// What was written.
        written: String,
        /// What the informer is for.
        resource: String,
    },
    /// It is of another object than the only one that is watched.
    #[error("{written} never arrives here: this informer is for {object} alone")]
    OtherObject {
        /// What was written.
        written: String,
        /// What the informer is for.
        object: String,
    },
    /// It has no version: it is not what the server gave back.
    #[error("{written} has no version: use the object that the server answered the write with")]
    NoVersion {
        /// What was written.
        written: String,
    },
    /// It is out of scope, or its version cannot be compared.
    #[error("it can never be told whether {written} has arrived: {source}")]
    Version {
        /// What was written.
        written: String,
        /// Why not.
        source: VersionError,
    },
    /// The informer was stopped.
    #[error("{written} never arrives: the informer was stopped")]
    Stopped {
        /// What was written.
        written: String,
    },
    /// It has not arrived in time.
    #[error("{written} has not arrived within {deadline:?}; the informer is {state}")]
    Deadline {
        /// What was written.
        written: String,
        /// How long it was waited for.
        deadline: Duration,
        /// How the informer is.
        state: Box<State>,
    },
}

/// Whether the cache has what was written; `None` if that is none of its objects, or cannot be told.
pub(super) fn has(core: &Core, written: &Written) -> Option<bool> {
    if !written.is_of(&core.spec().resource) || written.version.is_empty() {
        return None;
    }
    if is_of_another_object(core, written) {
        return None;
    }
    core.cache().snapshot().reached(&written.namespace, &written.version).ok()
}

/// Whether one object is watched, and another one was written.
fn is_of_another_object(core: &Core, written: &Written) -> bool {
    let Scope::Object { name, .. } = &core.spec().scope else { return false };
    written.name.as_ref().is_some_and(|written| written != name)
}

/// Waits until the cache has what was written.
pub(super) async fn caught_up(core: &Core, written: &Written) -> Result<(), CaughtUpError> {
    let resource = &core.spec().resource;
    if !written.is_of(resource) {
        let resource = resource.to_string();
        return Err(CaughtUpError::OtherResource { written: written.to_string(), resource });
    }
    if is_of_another_object(core, written) {
        let object = core.spec().scope.to_string();
        return Err(CaughtUpError::OtherObject { written: written.to_string(), object });
    }
    if written.version.is_empty() {
        return Err(CaughtUpError::NoVersion { written: written.to_string() });
    }
    let (mut turns, mut changes) = (core.hub().turns(), core.board().changes.subscribe());
    loop {
        // Before the cache is looked at: what came before the end is there then.
        let is_stopped = core.board().health().state == State::Stopped;
        let reached = core.cache().snapshot().reached(&written.namespace, &written.version);
        match reached {
            Ok(true) => return Ok(()),
            Ok(false) if is_stopped => {
                return Err(CaughtUpError::Stopped { written: written.to_string() });
            }
            Ok(false) => {}
            Err(source) => return Err(CaughtUpError::Version { written: written.to_string(), source }),
        }
        tokio::select! {
            _ = turns.changed() => {}
            _ = changes.changed() => {}
        }
    }
}

#[cfg(test)]
mod schedules;
