//! Waking: somebody asks for a service that sleeps.
//!
//! It works wherever the ElastiServices have been read, whether this process leads or not: what a service's target is comes
//! from the directory, or, where this process reconciles nothing, from the ElastiServices themselves; what the server calls
//! it is remembered. Waking changes nothing but a number of replicas, upwards; done twice, it is done once.
//!
//! Whoever puts a target to sleep shall know of a wake meanwhile, also of one in another process: that is why such a process
//! writes the time of the wake first and scales after that, while the other one scales first and reads the time after that.
//! A wake that such a process answers without writing comes [shortly](UNWRITTEN_WITHIN) after one that it wrote: no sleep
//! begins before that is over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube_informer::controller::Request;
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use kube_informer::write::Status;
use serde_json::json;
use tokio::time::Instant;

use super::{NAME, Operator};
use crate::api::{ElastiService, ElastiServiceSpec, ScaleTargetRef};
use crate::ops_informer::FollowError;
use crate::scale::{ScaleError, Scaled};

/// How long it may take to write the time of a wake before the target is woken.
const NOTED_WITHIN: Duration = Duration::from_secs(3);

/// The time of a wake is written at most so often, where nothing was scaled and nobody else needs to know.
const NOTED_EVERY: Duration = Duration::from_secs(5);

/// Within this time, a process that does not reconcile says once more what it said: each call that it looks after itself is
/// a write, whoever calls.
const SAME_WITHIN: Duration = Duration::from_millis(250);

/// So much the clocks of two processes may differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

/// So long after the time of a wake, others may have been answered that nobody wrote.
pub(super) const UNWRITTEN_WITHIN: Duration = SAME_WITHIN.saturating_add(CLOCKS_DIFFER);

/// So many answers are kept at most.
const MOST_KEPT: usize = 4096;

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

/// What was answered a moment ago, by namespace and service.
#[derive(Debug, Default)]
pub(super) struct Recent {
    answers: Mutex<HashMap<(String, String), (Instant, Woken)>>,
}

impl Recent {
    /// The answer of a moment ago: by now, it is as awake as it was to be.
    fn get(&self, namespace: &str, service: &str) -> Option<Woken> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, woken) = answers.get(&(namespace.to_owned(), service.to_owned()))?;
        (at.elapsed() < SAME_WITHIN).then(|| {
            let scaled = Scaled { before: woken.scaled.now, now: woken.scaled.now, written: None };
            Woken { elasti: woken.elasti.clone(), scaled }
        })
    }

    /// What is answered now to a wake whose time was written, after it had begun.
    fn keep(&self, namespace: &str, service: &str, begun: Instant, woken: &Woken) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (at, _)| at.elapsed() < SAME_WITHIN);
        if answers.len() < MOST_KEPT {
            answers.insert((namespace.to_owned(), service.to_owned()), (begun, woken.clone()));
        }
    }
}

/// What belongs to a Service.
pub(super) struct Known {
    pub(super) elasti: Request,
    pub(super) spec: ElastiServiceSpec,
    pub(super) target: Resource,
    /// Whether this process reconciles it.
    pub(super) is_ours: bool,
}

impl Operator {
    /// Wakes the target of a service: it is to have as many replicas as the ElastiService says, or more.
    ///
    /// # Errors
    ///
    /// Where the service is unknown, or its target could not be scaled.
    pub async fn wake(&self, namespace: &str, service: &str) -> Result<Woken, WakeError> {
        let Known { elasti, spec, target, is_ours } = self.known(namespace, service).await?;
        if let Some(woken) = self.inner.recent.get(namespace, service).filter(|_| !is_ours) {
            return Ok(woken);
        }
        // Whoever is about to put it to sleep shall know, before and after it does.
        let is_held = self.inner.holds.woken(&elasti);
        let name = &spec.scale_target_ref.name;
        let object = self.inner.world.elastis.get(elasti.namespace(), elasti.name());
        let (begun, mut noted) = (Instant::now(), false);
        if let Some(object) = object.as_ref().filter(|_| !is_ours) {
            match tokio::time::timeout(NOTED_WITHIN, self.note_time(object)).await {
                Ok(is_noted) => noted = is_noted,
                Err(_) => tracing::warn!(%elasti, "when it was woken was not noted in time"),
            }
        }
        let scaled = self.inner.scaler.up(&target, namespace, name, spec.wake_to()).await;
        match scaled {
            Ok(scaled) => {
                if let Some(object) = &object {
                    self.say_wake(object, &spec, &scaled);
                    // Whoever comes after a process that ends while it holds it knows by the time.
                    if is_ours && (scaled.now != scaled.before || is_held || !is_noted(object)) {
                        self.note_time(object).await;
                    }
                }
                let woken = Woken { elasti, scaled };
                // Whoever puts it to sleep goes by the time: without it, nothing is left out.
                if noted {
                    self.inner.recent.keep(namespace, service, begun, &woken);
                }
                Ok(woken)
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
        let is_ours = entry.is_some();
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
        Ok(Known { elasti, spec, target, is_ours })
    }

    /// What the server calls a target that is not followed.
    pub(super) async fn resolve(&self, reference: &ScaleTargetRef) -> Result<Resource, FollowError> {
        self.inner.ops.resolve(reference).await
    }

    /// That people know.
    fn say_wake(&self, object: &Object<ElastiService>, spec: &ElastiServiceSpec, scaled: &Scaled) {
        if scaled.now != scaled.before {
            let note = format!(
                "{} was scaled from {} to {}: somebody asked for {}",
                spec.scale_target_ref.name, scaled.before, scaled.now, spec.service
            );
            self.inner.recorder.normal(object, "SuccessToScale", "ScaleUp", note);
        }
    }

    /// When it was woken last. No two wakes have the same time: whoever compares finds each of them.
    /// Tells whether it is written.
    async fn note_time(&self, object: &Object<ElastiService>) -> bool {
        let now = Timestamp::now();
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        let status = Status::of::<ElastiService>(self.inner.factory.client()).manager(NAME);
        let noted = status.patch(object, &json!({ "lastScaledUpTime": now })).await;
        if let Err(error) = &noted {
            // The target is awake, which is what was asked for.
            tracing::warn!(elasti = %object.key(), %error, "when it was woken could not be noted");
        }
        noted.is_ok()
    }
}

/// Whether a wake was noted a moment ago.
fn is_noted(object: &Object<ElastiService>) -> bool {
    let last = object.pointer::<Timestamp>("/status/lastScaledUpTime").ok().flatten();
    last.is_some_and(|last| Timestamp::now().duration_since(last).unsigned_abs() < NOTED_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_said_a_moment_ago_is_said_once_more() {
        let recent = Recent::default();
        let scaled = Scaled { before: 0, now: 2, written: None };
        let woken = Woken { elasti: Request::new("shop", "web"), scaled };
        assert_eq!(recent.get("shop", "web"), None);
        recent.keep("shop", "web", Instant::now(), &woken);
        let again = recent.get("shop", "web").unwrap();
        assert_eq!((again.scaled.before, again.scaled.now), (2, 2), "nothing is done");
        assert_eq!(recent.get("shop", "other"), None);
        tokio::time::advance(SAME_WITHIN).await;
        assert_eq!(recent.get("shop", "web"), None, "it may sleep by now");
        recent.keep("shop", "other", Instant::now(), &woken);
        assert_eq!(recent.answers.lock().unwrap().len(), 1, "what is old is forgotten");
        recent.keep("shop", "web", Instant::now() - SAME_WITHIN, &woken);
        assert_eq!(recent.get("shop", "web"), None, "it took too long since its time was written");
    }
}
