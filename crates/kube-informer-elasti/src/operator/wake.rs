//! Waking: somebody asks for a service that sleeps.
//!
//! It works wherever the ElastiServices have been read, whether this process leads or not: what a service's target is comes
//! from the directory, or, where this process reconciles nothing, from the ElastiServices themselves. Waking changes nothing
//! but a number of replicas, upwards; done twice, it is done once.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_informer::connect::ResolveError;
use kube_informer::controller::Request;
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use kube_informer::write::Status;
use serde_json::json;

use super::{NAME, Operator};
use crate::api::{ElastiService, ElastiServiceSpec, ScaleTargetRef};
use crate::scale::{ScaleError, Scaled};

/// The time of a wake is written at most so often, where nothing was scaled.
const NOTED_EVERY: Duration = Duration::from_secs(5);

/// What came of waking a service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Woken {
    /// The ElastiService that it belongs to.
    pub elasti: Request,
    /// What was scaled.
    pub scaled: Scaled,
}

/// A service could not be woken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WakeError {
    /// No ElastiService names it.
    #[error("no ElastiService names the Service {namespace}/{service}")]
    Unknown {
        /// The namespace.
        namespace: String,
        /// The Service.
        service: String,
    },
    /// Its target is of no kind that the server knows.
    #[error("the target of {elasti} cannot be found: {why}")]
    NoTarget {
        /// The ElastiService.
        elasti: Request,
        /// Why not.
        why: String,
    },
    /// Its target could not be scaled.
    #[error("the target of {elasti} was not woken")]
    ScalingFailed {
        /// The ElastiService.
        elasti: Request,
        /// Why not.
        #[source]
        source: ScaleError,
    },
}

/// What belongs to a Service.
pub(super) struct Known {
    pub(super) elasti: Request,
    pub(super) spec: ElastiServiceSpec,
    pub(super) target: Resource,
}

impl Operator {
    /// Wakes the target of a service: it is to have as many replicas as the ElastiService says, or more.
    ///
    /// # Errors
    ///
    /// Where the service is unknown, or its target could not be scaled.
    pub async fn wake(&self, namespace: &str, service: &str) -> Result<Woken, WakeError> {
        let Known { elasti, spec, target } = self.known(namespace, service).await?;
        // Whoever is about to put it to sleep shall know, before and after it does.
        self.inner.holds.woken(&elasti);
        let name = &spec.scale_target_ref.name;
        let object = self.inner.world.elastis.get(elasti.namespace(), elasti.name());
        let scaled = self.inner.scaler.up(&target, namespace, name, spec.wake_to()).await;
        match scaled {
            Ok(scaled) => {
                if let Some(object) = &object {
                    self.note_wake(object, &spec, &scaled).await;
                }
                Ok(Woken { elasti, scaled })
            }
            Err(source) => {
                if let Some(object) = &object {
                    self.inner.recorder.warning(object, "FailedToScale", "ScaleUp", source.to_string());
                }
                Err(WakeError::ScalingFailed { elasti, source })
            }
        }
    }

    /// What belongs to a Service.
    pub(super) async fn known(&self, namespace: &str, service: &str) -> Result<Known, WakeError> {
        // After a start, the directory may know the younger one of two only. One that is alone there is on its way out.
        let first = self.inner.world.naming(namespace, service).into_iter().next();
        let entry = self.inner.directory.lookup(namespace, service);
        let entry =
            entry.filter(|entry| first.as_ref().is_none_or(|first| first.uid().to_string() == entry.uid));
        let (elasti, spec, target) = match entry {
            Some(entry) => (entry.elasti.clone(), entry.spec.clone(), entry.target.clone()),
            None => {
                let unknown =
                    || WakeError::Unknown { namespace: namespace.to_owned(), service: service.to_owned() };
                let object = first.ok_or_else(unknown)?;
                let view: Arc<ElastiService> = object.view().map_err(|_| unknown())?;
                (Request::from(&object), view.spec.clone(), None)
            }
        };
        let target = match target {
            Some(target) => target,
            None => match self.resolve(&spec.scale_target_ref).await {
                Ok(target) => target,
                Err(error) => return Err(WakeError::NoTarget { elasti, why: error.to_string() }),
            },
        };
        Ok(Known { elasti, spec, target })
    }

    /// What the server calls a target that is not followed.
    pub(super) async fn resolve(&self, reference: &ScaleTargetRef) -> Result<Resource, ResolveError> {
        let (group, version) = reference.api_version.split_once('/').unwrap_or(("", &reference.api_version));
        self.inner.factory.resolve(&format!("{}.{version}.{group}", reference.kind)).await
    }

    /// When it was woken last, and that people know.
    async fn note_wake(&self, object: &Object<ElastiService>, spec: &ElastiServiceSpec, scaled: &Scaled) {
        let now = Timestamp::now();
        let is_scaled = scaled.now != scaled.before;
        if is_scaled {
            let note = format!(
                "{} was scaled from {} to {}: somebody asked for {}",
                spec.scale_target_ref.name, scaled.before, scaled.now, spec.service
            );
            self.inner.recorder.normal(object, "SuccessToScale", "ScaleUp", note);
        }
        let last = object.pointer::<Timestamp>("/status/lastScaledUpTime").ok().flatten();
        let is_recent = last.is_some_and(|last| now.duration_since(last).unsigned_abs() < NOTED_EVERY);
        if is_recent && !is_scaled {
            return;
        }
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let status = Status::of::<ElastiService>(self.inner.factory.client()).manager(NAME);
        if let Err(error) = status.patch(object, &json!({ "lastScaledUpTime": now })).await {
            // The target is awake, which is what was asked for.
            tracing::warn!(elasti = %object.key(), %error, "when it was woken could not be noted");
        }
    }
}
