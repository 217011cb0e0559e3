//! Putting to sleep: the redirect first, the scale-down after it.
//!
//! 1. The service is held, and with it every other one of the same target: the decision is to redirect them, whatever their
//!    pods say.
//! 2. It is waited until the slices to the resolver are written, in the cache, and on the server with somebody ready in
//!    them; and that the ElastiServices are on the server as they were. Where that cannot be, nothing else is done.
//! 3. The target is scaled to zero, and seen at zero. From then on the decision is the same without the hold, which ends.
//!
//! A [wake](Operator::wake) meanwhile goes before it, and so does an edit or a deletion of the ElastiService: the target stays
//! awake, or is woken again.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_informer::controller::Request;
use kube_informer::informer::CaughtUpError;
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use tokio::time::{Instant, timeout_at};

use super::desired;
use super::holds::Hold;
use super::wake::{Known, WakeError};
use super::{Inner, Operator};
use crate::api::{ElastiService, ScaleTargetRef};
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

/// Who acts for a target, as it was when that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Captured {
    elasti: Request,
    uid: String,
    service: String,
    reference: ScaleTargetRef,
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
        let captured = self.sharing(namespace, &target, &spec.scale_target_ref);
        if !captured.iter().any(|each| each.elasti == elasti) {
            let why = "it names another target by now, or is being deleted".to_owned();
            return Err(SleepError::NotRedirected { elasti, why });
        }
        // All of them, before any of them: the target answers for every one of these Services.
        let mut held: Vec<_> = captured.iter().map(|each| holds.hold(&each.elasti, pokes)).collect();
        let redirects = held.iter_mut().zip(&captured).map(|(hold, each)| async move {
            self.redirect(hold, namespace, &each.service)
                .await
                .map_err(|why| if each.service == service { why } else { format!("{}: {why}", each.elasti) })
        });
        let redirected = futures_util::future::try_join_all(redirects);
        let deadline = Instant::now() + settings.sleep_deadline;
        let why = match timeout_at(deadline, async {
            redirected.await?;
            // What was known may be old by now: it is the target of these, or it stays as it is.
            self.is_unchanged(namespace, &target, &spec.scale_target_ref, &captured).await
        })
        .await
        {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some(format!("that was not done within {:?}", settings.sleep_deadline)),
        };
        if let Some(why) = why {
            return Err(SleepError::NotRedirected { elasti, why });
        }
        if held.iter().any(Hold::was_woken) {
            return Err(SleepError::Woken { elasti });
        }
        let name = &spec.scale_target_ref.name;
        let scaled = match scaler.down_to_zero(&target, namespace, name).await {
            Ok(scaled) => scaled,
            Err(source) => return Err(SleepError::ScalingFailed { elasti, source }),
        };
        // Whoever edited or deleted it since the look above has found it awake, and woke nothing.
        let unchanged = self.is_unchanged(namespace, &target, &spec.scale_target_ref, &captured).await;
        // The same with whoever woke it.
        let was_woken = held.iter().any(Hold::was_woken);
        if was_woken || unchanged.is_err() {
            return match scaler.up(&target, namespace, name, scaled.before.max(spec.wake_to())).await {
                Err(source) if !matches!(source, ScaleError::NotFound { .. }) => {
                    Err(SleepError::ScalingFailed { elasti, source })
                }
                _ => Err(match unchanged {
                    Err(why) if !was_woken => SleepError::NotRedirected { elasti, why },
                    _ => SleepError::Woken { elasti },
                }),
            };
        }
        // Where it is not seen in time, the hold ends all the same: the pods decide, and they are going.
        let seen =
            futures_util::future::join_all(captured.iter().map(|each| self.seen_at_zero(&each.elasti)));
        if timeout_at(Instant::now() + settings.sleep_deadline, seen).await.is_err() {
            tracing::warn!(%elasti, "its target was scaled to zero, which is not seen yet");
        }
        if let Some(object) = self.inner.world.elastis.get(elasti.namespace(), elasti.name()) {
            let note = format!("{name} was scaled from {} to 0: nobody needs {service}", scaled.before);
            self.inner.recorder.normal(&object, "SuccessToScale", "ScaleDown", note);
        }
        Ok(Asleep { elasti, scaled })
    }

    /// The ElastiServices that act for a target, each for another Service, in order.
    fn sharing(&self, namespace: &str, target: &Resource, reference: &ScaleTargetRef) -> Vec<Captured> {
        let Inner { world, ops, .. } = &*self.inner;
        let same = |object: Object<ElastiService>| {
            let elasti = Request::from(&object);
            let spec = object.view().ok()?.spec.clone();
            let named = &spec.scale_target_ref;
            let is_same = named == reference
                || named.name == reference.name
                    && ops.resource_of(&elasti, named).is_some_and(|resource| resource == *target);
            let acts =
                || world.naming(namespace, &spec.service).first().is_some_and(|first| *first == object);
            (is_same && acts()).then(|| Captured {
                uid: object.uid().to_string(),
                service: spec.service.clone(),
                reference: named.clone(),
                elasti,
            })
        };
        let mut all: Vec<_> =
            world.elastis.list().namespace(namespace).into_iter().filter_map(same).collect();
        all.sort_by(|a, b| a.elasti.cmp(&b.elasti));
        all
    }

    /// Whether those that were captured are on the server as they were, and are all.
    async fn is_unchanged(
        &self,
        namespace: &str,
        target: &Resource,
        reference: &ScaleTargetRef,
        captured: &[Captured],
    ) -> Result<(), String> {
        for each in captured {
            let elasti = &each.elasti;
            let now = self.inner.world.read::<ElastiService>(namespace, elasti.name()).await;
            let now = now.map_err(|error| format!("whether {elasti} has changed is not known: {error}"))?;
            let is_same = now.is_some_and(|now| {
                now.metadata.uid.as_deref() == Some(each.uid.as_str())
                    && now.metadata.deletion_timestamp.is_none()
                    && now.spec.service == each.service
                    && now.spec.scale_target_ref == each.reference
            });
            if !is_same {
                return Err(format!("{elasti} was edited or deleted meanwhile"));
            }
        }
        let more =
            self.sharing(namespace, target, reference).into_iter().find(|each| !captured.contains(each));
        more.map_or(Ok(()), |more| Err(format!("{} names the same target since then", more.elasti)))
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
