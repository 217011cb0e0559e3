//! Putting to sleep: the redirect first, the scale-down after it.
//!
//! 1. The service is held: the decision is to redirect it, whatever its pods say.
//! 2. It is waited until the slices to the resolver are written, in the cache, and on the server with somebody ready in
//!    them. Where that cannot be, nothing else is done.
//! 3. The target is scaled to zero, and seen at zero. From then on the decision is the same without the hold, which ends.
//!
//! A [wake](Operator::wake) meanwhile goes before it: the target stays awake, or is woken again.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_informer::controller::Request;
use kube_informer::informer::CaughtUpError;
use tokio::time::{Instant, timeout_at};

use super::desired;
use super::holds::Hold;
use super::wake::{Known, WakeError};
use super::{Inner, Operator};
use crate::scale::{ScaleError, Scaled};

/// A service was put to sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asleep {
    /// The ElastiService that it belongs to.
    pub elasti: Request,
    /// What was scaled.
    pub scaled: Scaled,
}

/// A service was not put to sleep. Unless it says otherwise, its target is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SleepError {
    /// No ElastiService names it, or its target cannot be found.
    #[error(transparent)]
    Unknown(WakeError),
    /// It could not be redirected: requests would be lost.
    #[error("{elasti} stays awake: its requests cannot be redirected to the resolver: {why}")]
    NotRedirected {
        /// The ElastiService.
        elasti: Request,
        /// Why not.
        why: String,
    },
    /// Somebody asked for it meanwhile.
    #[error("{elasti} stays awake: somebody asked for it meanwhile")]
    Woken {
        /// The ElastiService.
        elasti: Request,
    },
    /// Its target could not be scaled.
    #[error("the target of {elasti} was not put to sleep")]
    ScalingFailed {
        /// The ElastiService.
        elasti: Request,
        /// Why not.
        #[source]
        source: ScaleError,
    },
}

impl Operator {
    /// Puts the target of a service to sleep, without losing a request. Only where this process reconciles.
    ///
    /// # Errors
    ///
    /// Where the service is unknown, cannot be redirected, was asked for meanwhile, or could not be scaled.
    pub async fn put_to_sleep(&self, namespace: &str, service: &str) -> Result<Asleep, SleepError> {
        let Known { elasti, spec, target } =
            self.known(namespace, service).await.map_err(SleepError::Unknown)?;
        let Inner { settings, holds, pokes, scaler, .. } = &*self.inner;
        let mut hold = holds.hold(&elasti, pokes);
        let deadline = Instant::now() + settings.sleep_deadline;
        let redirect = self.redirect(&mut hold, namespace, service);
        let redirected = timeout_at(deadline, redirect).await;
        let why = match redirected {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some(format!("that was not done within {:?}", settings.sleep_deadline)),
        };
        if let Some(why) = why {
            return Err(SleepError::NotRedirected { elasti, why });
        }
        if hold.was_woken() {
            return Err(SleepError::Woken { elasti });
        }
        let name = &spec.scale_target_ref.name;
        let scaled = match scaler.down_to_zero(&target, namespace, name).await {
            Ok(scaled) => scaled,
            Err(source) => return Err(SleepError::ScalingFailed { elasti, source }),
        };
        // Whoever woke it between the look above and now has found it awake, and scaled nothing.
        if hold.was_woken() {
            return match scaler.up(&target, namespace, name, scaled.before.max(spec.wake_to())).await {
                Ok(_) => Err(SleepError::Woken { elasti }),
                Err(source) => Err(SleepError::ScalingFailed { elasti, source }),
            };
        }
        // Where it is not seen in time, the hold ends all the same: the pods decide, and they are going.
        let seen = self.seen_at_zero(&elasti);
        if timeout_at(Instant::now() + settings.sleep_deadline, seen).await.is_err() {
            tracing::warn!(%elasti, "its target was scaled to zero, which is not seen yet");
        }
        if let Some(object) = self.inner.world.elastis.get(elasti.namespace(), elasti.name()) {
            let note = format!("{name} was scaled from {} to 0: nobody needs {service}", scaled.before);
            self.inner.recorder.normal(&object, "SuccessToScale", "ScaleDown", note);
        }
        Ok(Asleep { elasti, scaled })
    }

    async fn redirect(&self, hold: &mut Hold, namespace: &str, service: &str) -> Result<(), String> {
        let world = &self.inner.world;
        let written = hold.redirected().await?;
        for written in written {
            match world.slices.caught_up(&written, self.inner.settings.sleep_deadline).await {
                // Versions without an order cannot be waited for.
                Ok(()) | Err(CaughtUpError::Version { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        // A cache may still have what was deleted a moment ago. The server knows.
        for name in desired::slice_names(service) {
            match world.api::<EndpointSlice>(namespace).get_opt(&name).await {
                Ok(Some(slice)) => {
                    let leads = slice.endpoints.iter().flatten().any(desired::is_ready);
                    if leads && slice.metadata.deletion_timestamp.is_none() {
                        return Ok(());
                    }
                }
                Ok(None) => {}
                Err(error) => return Err(format!("the slice {name} could not be read: {error}")),
            }
        }
        Err("there is no slice that leads to it".to_owned())
    }

    async fn seen_at_zero(&self, elasti: &Request) {
        use futures_util::StreamExt;
        let mut changes = std::pin::pin!(self.inner.ops.changes());
        loop {
            let state = self.inner.ops.state(elasti);
            if state.and_then(|state| state.target).is_none_or(|target| target.spec_replicas == 0) {
                return;
            }
            if changes.next().await.is_none() {
                return;
            }
        }
    }
}
