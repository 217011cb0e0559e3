//! A finalizer: an object that has one does not go before somebody has cleaned up.

use std::error::Error;
use std::fmt;

use kube_client::Client;
use kube_client::core::Resource as KubeResource;
use serde_json::json;

use super::target::{Form, Target, Tried, is_conflict, is_invalid};
use super::{WriteError, Written};
use crate::object::Object;
use crate::resource::{Placement, Resource};

/// Keeps objects from going before they are cleaned up after.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::object::Object;
/// use kube_informer::write::{Finalizer, FinalizerError};
///
/// # async fn make_bucket(object: &Object<ConfigMap>) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn delete_bucket(object: &Object<ConfigMap>) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn example(client: kube_client::Client, object: Object<ConfigMap>) -> Result<(), FinalizerError> {
/// let finalizer = Finalizer::of::<ConfigMap>(client, "example.com/bucket");
/// let done = finalizer.reconcile(&object, async || make_bucket(&object).await, async || delete_bucket(&object).await).await?;
/// if let Some(written) = done.written() {
///     println!("wait for {written} before this object is looked at again");
/// }
/// # Ok(())
/// # }
/// ```
///
/// - The finalizer is on the server before what is to be cleaned up is made.
/// - It is taken off only after the cleanup has succeeded. A cleanup that fails is run again when the object is reconciled
///   again, and so is one whose finalizer could not be taken off: it must be idempotent, and fine with nothing left to do.
/// - It is never put on an object that goes. Finalizers of others are left alone: a patch names the version of the object
///   that it was made for, and where that has changed (409), the object is read again.
#[derive(Clone)]
pub struct Finalizer {
    target: Target,
    name: String,
    manager: Option<String>,
}

/// What became of a reconcile with a finalizer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finalized<T> {
    /// The object stays; this is what came of it.
    Applied {
        /// What `apply` returned.
        value: T,
        /// The finalizer was put on it now.
        written: Option<Written>,
    },
    /// The object goes. It was cleaned up after, and has the finalizer no more.
    CleanedUp {
        /// The finalizer was taken off it now; not where somebody else has done so meanwhile.
        written: Option<Written>,
    },
    /// The object goes, and has not the finalizer: nothing was done.
    Going,
}

/// A reconcile with a finalizer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizerError {
    /// The finalizer could not be put on, or taken off.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was to be done for an object that stays failed.
    #[error("{key} was not reconciled")]
    Apply {
        /// The object.
        key: String,
        /// Why not.
        #[source]
        source: Box<dyn Error + Send + Sync>,
        /// The finalizer was put on it before that.
        written: Option<Written>,
    },
    /// The cleanup failed. The finalizer stays.
    #[error("{key} was not cleaned up after; it keeps its finalizer until it is")]
    Cleanup {
        /// The object.
        key: String,
        /// Why not.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// How often a patch is made anew, where the object changes all the time.
const TIMES: u32 = 5;

/// The object, as far as finalizers are concerned.
struct State {
    uid: String,
    version: String,
    finalizers: Vec<String>,
    goes: bool,
}

enum Change {
    /// It is as it should be.
    Nothing,
    Made(Written),
    /// It goes, and cannot be given a finalizer any more.
    Goes,
}

impl Finalizer {
    /// For objects of a type. The name must have a domain of one's own in it: `example.com/bucket`.
    #[must_use]
    pub fn of<K: KubeResource<DynamicType = (), Scope: Placement>>(
        client: Client,
        name: impl Into<String>,
    ) -> Self {
        Self::for_resource(client, Resource::of::<K>(), name)
    }

    /// For objects of a resource.
    #[must_use]
    pub fn for_resource(client: Client, resource: Resource, name: impl Into<String>) -> Self {
        Self { target: Target::new(client, resource), name: name.into(), manager: None }
    }

    /// Under which name the server remembers who wrote it.
    #[must_use]
    pub fn manager(mut self, manager: impl Into<String>) -> Self {
        self.manager = Some(manager.into());
        self
    }

    /// Does what is to be done for an object that stays, with the finalizer on it; or the cleanup for one that goes, and
    /// takes the finalizer off.
    ///
    /// # Errors
    ///
    /// Where one of these fails. Then the object is to be reconciled again.
    pub async fn reconcile<K, T, E>(
        &self,
        object: &Object<K>,
        apply: impl AsyncFnOnce() -> Result<T, E>,
        cleanup: impl AsyncFnOnce() -> Result<(), E>,
    ) -> Result<Finalized<T>, FinalizerError>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let key = object.key();
        let has = self.has(object)?;
        if object.deletion().is_some() {
            if !has {
                return Ok(Finalized::Going);
            }
            let failed = |error: E| FinalizerError::Cleanup { key: key.to_string(), source: error.into() };
            cleanup().await.map_err(failed)?;
            return Ok(Finalized::CleanedUp { written: self.remove(object).await? });
        }
        let written = match has {
            true => None,
            false => match self.add_to(object).await? {
                Change::Goes => return Ok(Finalized::Going),
                Change::Nothing => None,
                Change::Made(written) => Some(written),
            },
        };
        match apply().await {
            Ok(value) => Ok(Finalized::Applied { value, written }),
            Err(error) => Err(FinalizerError::Apply { key: key.to_string(), source: error.into(), written }),
        }
    }

    /// Whether the object has it, as the cache knows it.
    ///
    /// # Errors
    ///
    /// Only where memory was damaged.
    pub fn has<K>(&self, object: &Object<K>) -> Result<bool, WriteError> {
        let tried = self.target.tried("read the finalizers of", object.key());
        let finalizers = object.finalizers().map_err(WriteError::view(tried))?;
        Ok(finalizers.contains(&self.name))
    }

    /// Puts it on an object, unless that has it, or goes.
    ///
    /// # Errors
    ///
    /// Where the server refuses, cannot be reached, or the object is gone.
    pub async fn add<K>(&self, object: &Object<K>) -> Result<Option<Written>, WriteError> {
        Ok(match self.add_to(object).await? {
            Change::Made(written) => Some(written),
            Change::Nothing | Change::Goes => None,
        })
    }

    /// Takes it off an object, unless that has it not. Gone is fine.
    ///
    /// # Errors
    ///
    /// Where the server refuses, or cannot be reached.
    pub async fn remove<K>(&self, object: &Object<K>) -> Result<Option<Written>, WriteError> {
        let what = format!("take the finalizer {} off", self.name);
        let without = |state: &State| {
            let others: Vec<String> =
                state.finalizers.iter().filter(|name| **name != self.name).cloned().collect();
            (others.len() < state.finalizers.len()).then_some(others)
        };
        match self.change(object, &what, without).await {
            Ok(Change::Made(written)) => Ok(Some(written)),
            Ok(Change::Nothing | Change::Goes) => Ok(None),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn add_to<K>(&self, object: &Object<K>) -> Result<Change, WriteError> {
        let what = format!("put the finalizer {} on", self.name);
        let with = |state: &State| {
            let missing = !state.goes && !state.finalizers.contains(&self.name);
            missing.then(|| state.finalizers.iter().chain([&self.name]).cloned().collect())
        };
        self.change(object, &what, with).await
    }

    /// Changes the list of finalizers, of the object as it is known, and then as the server has it.
    async fn change<K>(
        &self,
        object: &Object<K>,
        what: &str,
        new: impl Fn(&State) -> Option<Vec<String>>,
    ) -> Result<Change, WriteError> {
        let key = object.key();
        let tried = self.target.tried(what, key);
        let mut state = State {
            uid: object.uid().to_string(),
            version: object.version().to_string(),
            finalizers: object.finalizers().map_err(WriteError::view(&tried))?,
            goes: object.deletion().is_some(),
        };
        for _ in 0..TIMES {
            let Some(finalizers) = new(&state) else {
                return Ok(if state.goes { Change::Goes } else { Change::Nothing });
            };
            // An empty list is the same as none.
            let patch = json!({ "metadata": {
                "uid": state.uid, "resourceVersion": state.version, "finalizers": finalizers } });
            let manager = self.manager.as_deref();
            match self.target.patch(&tried, "", Form::Merge, manager, &patch).await {
                Ok(answer) => return Ok(Change::Made(self.target.written(key, &answer))),
                // That it goes by now is said as something that is not allowed.
                Err(error) if is_conflict(&error) || is_invalid(&error) => {
                    let now = self.now(&tried, &state.uid).await?;
                    if is_invalid(&error) && now.version == state.version {
                        return Err(error);
                    }
                    state = now;
                }
                Err(error) => return Err(error),
            }
        }
        Err(WriteError::Contended { tried: tried.to_string(), times: TIMES })
    }

    /// The object as the server has it; gone, if it is another one.
    async fn now(&self, tried: &Tried<'_>, uid: &str) -> Result<State, WriteError> {
        let meta = self.target.get(tried).await?.metadata;
        if meta.uid.as_deref() != Some(uid) {
            let hint = "; there is another one of its name";
            return Err(WriteError::Gone { tried: tried.to_string(), hint });
        }
        Ok(State {
            uid: uid.to_owned(),
            version: meta.resource_version.unwrap_or_default(),
            finalizers: meta.finalizers.unwrap_or_default(),
            goes: meta.deletion_timestamp.is_some(),
        })
    }
}

impl<T> Finalized<T> {
    /// What was written to the object, if anything was.
    #[must_use]
    pub fn written(&self) -> Option<&Written> {
        match self {
            Self::Applied { written, .. } | Self::CleanedUp { written } => written.as_ref(),
            Self::Going => None,
        }
    }
}

impl FinalizerError {
    /// What was written to the object before it failed, if anything was.
    #[must_use]
    pub fn written(&self) -> Option<&Written> {
        match self {
            Self::Apply { written, .. } => written.as_ref(),
            Self::Write(_) | Self::Cleanup { .. } => None,
        }
    }
}

impl fmt::Debug for Finalizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finalizer")
            .field("name", &self.name)
            .field("resource", &self.target.resource)
            .finish_non_exhaustive()
    }
}
