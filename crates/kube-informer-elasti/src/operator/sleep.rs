//! Putting to sleep: the redirect first, the scale-down after it.
//!
//! 0. Where it was [woken](Operator::wake) a moment ago, it is waited until nobody can have been answered by that wake any more
//!    without a word to others: a quarter of a second, and one more for clocks that differ.
//! 1. The service is held, and with it every other one of the same target: the decision is to redirect them, whatever their
//!    pods say.
//! 2. It is waited until the slices to the resolver are written, in the cache, and on the server with somebody ready in
//!    each of them; then what is about to sleep is [noted](super::interrupted), and the ElastiServices are on the server as
//!    they were. Where that cannot be, nothing else is done.
//! 3. The target is scaled to zero, and seen at zero. From then on the decision is the same without the hold, which ends.
//!    Where the redirect was lost meanwhile, or something else came in between, it is woken again.
//!
//! A [wake](Operator::wake) meanwhile goes before it, in whichever process, and so does an edit or a deletion of the
//! ElastiService: the target stays awake, or is woken again. Where this process ends in the middle, an edit, a deletion, and a
//! wake that was written into the status are found by whoever comes next. A wake that was not written yet is forgotten with
//! it: the target sleeps, redirected, and is woken when it is asked for again.
//!
//! One target is put to sleep by one at a time. Who does not lead any more, or took too long, scales nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_informer::controller::Request;
use kube_informer::informer::{CaughtUpError, Written};
use kube_informer::resource::Resource;
use tokio::time::{Instant, timeout_at};

use super::desired;
use super::holds::{Done, Hold};
use super::wake::{Known, UNWRITTEN_WITHIN, WakeError};
use super::{Inner, Operator};
use crate::api::{ElastiService, ScaleTargetRef};
use crate::ops_informer::FollowError;
use crate::scale::{ScaleError, Scaled};

/// How often it is looked whether a hold is still needed, where nothing is told.
const SEEN_EVERY: Duration = Duration::from_millis(200);

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
pub(super) struct Captured {
    pub(super) elasti: Request,
    pub(super) uid: String,
    service: String,
    reference: ScaleTargetRef,
}

/// When each of them was woken last, by whichever process.
pub(super) type Wakes = Vec<Option<Timestamp>>;

/// Why a target is not put to sleep.
enum Against {
    /// It cannot be redirected, or is not what it was.
    Redirect(String),
    /// Somebody asked for it.
    Woken,
}

impl Against {
    fn error(self, elasti: Request) -> SleepError {
        match self {
            Self::Redirect(why) => SleepError::NotRedirected { elasti, why },
            Self::Woken => SleepError::Woken { elasti },
        }
    }
}

impl Operator {
    /// Puts the target of a service to sleep, without losing a request. Only where this process reconciles.
    ///
    /// # Errors
    ///
    /// Where the service is unknown, cannot be redirected, was asked for meanwhile, or could not be scaled.
    pub async fn put_to_sleep(&self, namespace: &str, service: &str) -> Result<Asleep, SleepError> {
        let Known { elasti, spec, target, .. } =
            self.known(namespace, service).await.map_err(SleepError::Unknown)?;
        let Inner { settings, holds, pokes, scaler, .. } = &*self.inner;
        let deadline = Instant::now() + settings.sleep_deadline;
        let too_late = || format!("that was not done within {:?}", settings.sleep_deadline);
        let sharing = self.sharing(namespace, &target, &spec.scale_target_ref);
        let captured = match timeout_at(deadline, sharing).await.unwrap_or_else(|_| Err(too_late())) {
            Ok(captured) => captured,
            Err(why) => return Err(SleepError::NotRedirected { elasti, why }),
        };
        if !captured.iter().any(|each| each.elasti == elasti) {
            let why = "it names another target by now, or is being deleted".to_owned();
            return Err(SleepError::NotRedirected { elasti, why });
        }
        // Where that takes too long, nothing else is done either.
        drop(timeout_at(deadline, self.rested(&captured)).await);
        // All of them, before any of them: the target answers for every one of these Services.
        let mut held = Vec::with_capacity(captured.len());
        for each in &captured {
            let Some(hold) = holds.hold(&each.elasti, pokes) else {
                let why = format!("{} is being put to sleep already", each.elasti);
                return Err(SleepError::NotRedirected { elasti, why });
            };
            held.push(hold);
        }
        let (name, note) =
            (&spec.scale_target_ref.name, desired::target_note(&target, &spec.scale_target_ref.name));
        let (mut wakes, mut noted) = (Wakes::new(), false);
        let prepared = timeout_at(deadline, async {
            wakes = self.wakes(&captured).await.map_err(Against::Redirect)?;
            if rest(&wakes, Timestamp::now()).is_some() {
                return Err(Against::Woken);
            }
            let redirects = held.iter_mut().zip(&captured).map(|(hold, each)| async move {
                self.redirect(hold, namespace).await.map_err(|why| match each.service == service {
                    true => why,
                    false => format!("{}: {why}", each.elasti),
                })
            });
            futures_util::future::try_join_all(redirects).await.map_err(Against::Redirect)?;
            // Whoever comes after this process, if it ends here, knows what was about to be done.
            noted = true;
            self.note_sleep(&captured, &wakes, &note).await.map_err(Against::Redirect)?;
            // What was known may be old by now: it is the target of these, or it stays as it is.
            self.is_unchanged(namespace, &target, &spec.scale_target_ref, &captured, &wakes).await
        })
        .await;
        let late = || Against::Redirect(too_late());
        let against = match prepared {
            // A process that was stopped meanwhile knows nothing of what others did.
            Ok(Ok(())) if Instant::now() >= deadline => Some(late()),
            Ok(Ok(())) if !self.leads() => {
                Some(Against::Redirect("this process does not lead any more".to_owned()))
            }
            Ok(Ok(())) => still_against(&held),
            Ok(Err(against)) => Some(against),
            Err(_) => Some(late()),
        };
        if let Some(against) = against {
            // Whoever leads now sees to the notes.
            if noted && self.leads() {
                self.forget_sleep(&captured).await;
            }
            return Err(against.error(elasti));
        }
        let scaled = match scaler.down_to_zero(&target, namespace, name).await {
            Ok(scaled) => scaled,
            Err(source) => {
                // Where it may have been done all the same, the note stays: it is looked after when nothing is held any more.
                if !source.is_transient() {
                    self.forget_sleep(&captured).await;
                }
                return Err(SleepError::ScalingFailed { elasti, source });
            }
        };
        // Whoever edited, deleted or woke it since the look above has found it awake, and woke nothing.
        let look = self.is_unchanged(namespace, &target, &spec.scale_target_ref, &captured, &wakes);
        let against = match timeout_at(Instant::now() + settings.sleep_deadline, look).await {
            Ok(Ok(())) => still_against(&held),
            _ if held.iter().any(Hold::was_woken) => Some(Against::Woken),
            Ok(Err(against)) => Some(against),
            Err(_) => Some(Against::Redirect("whether something has changed is not known".to_owned())),
        };
        if let Some(against) = against {
            return match scaler.up(&target, namespace, name, scaled.before.max(spec.wake_to())).await {
                Err(source) if !matches!(source, ScaleError::NotFound { .. }) => {
                    Err(SleepError::ScalingFailed { elasti, source })
                }
                _ => {
                    self.forget_sleep(&captured).await;
                    Err(against.error(elasti))
                }
            };
        }
        self.forget_sleep(&captured).await;
        // Where it is not seen in time, the hold ends all the same: the pods decide, and they are going.
        let seen =
            held.iter().zip(&captured).map(|(hold, each)| self.seen(hold, each, scaled.written.as_ref()));
        let seen = futures_util::future::join_all(seen);
        if timeout_at(Instant::now() + settings.sleep_deadline, seen).await.is_err() {
            tracing::warn!(%elasti, "its target was scaled to zero, which is not seen yet");
        }
        if let Some(object) = self.inner.world.elastis.get(elasti.namespace(), elasti.name()) {
            let note = format!("{name} was scaled from {} to 0: nobody needs {service}", scaled.before);
            self.inner.recorder.normal(&object, "SuccessToScale", "ScaleDown", note);
        }
        Ok(Asleep { elasti, scaled })
    }

    /// The ElastiServices that act for a target, each for another Service, in order. One that nobody has looked at yet may name
    /// the target in other words: then the server says what it means, and nothing sleeps that may be meant.
    async fn sharing(
        &self,
        namespace: &str,
        target: &Resource,
        reference: &ScaleTargetRef,
    ) -> Result<Vec<Captured>, String> {
        let mut said = vec![(reference.clone(), true)];
        loop {
            // All at once: what is known may be another thing after the server was asked.
            let (elasti, named) = match self.sharing_now(namespace, target, &said) {
                Ok(all) => return Ok(all),
                Err(unclear) => unclear,
            };
            let means_it = match self.resolve(&named).await {
                Ok(resource) => is_same(&resource, target),
                // Whatever it means, the target is not such a thing.
                Err(
                    FollowError::Reference { .. }
                    | FollowError::UnknownKind { .. }
                    | FollowError::NotScalable { .. },
                ) => false,
                Err(error) => {
                    return Err(format!("whether {elasti} names the same target is not known: {error}"));
                }
            };
            said.push((named, means_it));
        }
    }

    /// The same by what is known, and by what was said of references; or one of whose reference that is not.
    fn sharing_now(
        &self,
        namespace: &str,
        target: &Resource,
        said: &[(ScaleTargetRef, bool)],
    ) -> Result<Vec<Captured>, (Request, ScaleTargetRef)> {
        let Inner { world, ops, .. } = &*self.inner;
        let mut all = Vec::new();
        for object in world.elastis.list().namespace(namespace) {
            let Ok(view) = object.view() else { continue };
            let (elasti, named, service) =
                (Request::from(&object), &view.spec.scale_target_ref, &view.spec.service);
            let may_be_it = said.iter().any(|(it, _)| it.name == named.name)
                && named.group_and_version().0 == target.group;
            let acts =
                || world.naming(namespace, service).first().is_some_and(|first| first.uid() == object.uid());
            if !may_be_it || !acts() {
                continue;
            }
            let known = said.iter().find(|(it, _)| it == named).map(|(_, means_it)| *means_it);
            let followed = || Some(is_same(&ops.resource_of(&elasti, named)?, target));
            match known.or_else(followed) {
                Some(true) => {
                    let (uid, service) = (object.uid().to_string(), service.clone());
                    all.push(Captured { uid, service, reference: named.clone(), elasti });
                }
                Some(false) => {}
                None => return Err((elasti, named.clone())),
            }
        }
        all.sort_by(|a, b| a.elasti.cmp(&b.elasti));
        Ok(all)
    }

    /// When those that were captured were woken last, as the server has it.
    async fn wakes(&self, captured: &[Captured]) -> Result<Wakes, String> {
        let all = futures_util::future::try_join_all(captured.iter().map(|each| self.now(&each.elasti)));
        Ok(all.await?.iter().map(|now| now.as_ref().and_then(woken)).collect())
    }

    /// Waits until a wake of a moment ago is one of before. Where that cannot be read, it is found out later.
    async fn rested(&self, captured: &[Captured]) {
        let wakes = self.wakes(captured).await.unwrap_or_default();
        while let Some(left) = rest(&wakes, Timestamp::now()) {
            tokio::time::sleep(left).await;
        }
    }

    async fn now(&self, elasti: &Request) -> Result<Option<ElastiService>, String> {
        let now = self.inner.world.read::<ElastiService>(elasti.namespace(), elasti.name()).await;
        now.map_err(|error| format!("whether {elasti} has changed is not known: {error}"))
    }

    /// Whether those that were captured are on the server as they were, and are all, and nobody woke them.
    async fn is_unchanged(
        &self,
        namespace: &str,
        target: &Resource,
        reference: &ScaleTargetRef,
        captured: &[Captured],
        wakes: &Wakes,
    ) -> Result<(), Against> {
        let all = futures_util::future::try_join_all(captured.iter().map(|each| self.now(&each.elasti)));
        let all = all.await.map_err(Against::Redirect)?;
        for ((each, before), now) in captured.iter().zip(wakes).zip(all) {
            let elasti = &each.elasti;
            // Another process may have found it awake a moment ago, and said that it is.
            let is_woken = now.as_ref().and_then(woken) != *before;
            let is_same = now.is_some_and(|now| {
                now.metadata.uid.as_deref() == Some(each.uid.as_str())
                    && now.metadata.deletion_timestamp.is_none()
                    && now.spec.service == each.service
                    && now.spec.scale_target_ref == each.reference
            });
            if !is_same {
                return Err(Against::Redirect(format!("{elasti} was edited or deleted meanwhile")));
            }
            if is_woken {
                return Err(Against::Woken);
            }
        }
        let all = self.sharing(namespace, target, reference).await.map_err(Against::Redirect)?;
        let more = all.into_iter().find(|each| !captured.contains(each));
        more.map_or(Ok(()), |more| {
            Err(Against::Redirect(format!("{} names the same target since then", more.elasti)))
        })
    }

    async fn redirect(&self, hold: &mut Hold, namespace: &str) -> Result<(), String> {
        let world = &self.inner.world;
        let Done { slices, written } = hold.redirected().await?;
        for written in written {
            match world.slices.caught_up(&written, self.inner.settings.sleep_deadline).await {
                // Versions without an order cannot be waited for.
                Ok(()) | Err(CaughtUpError::Version { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        // A cache may still have what was deleted a moment ago. The server knows.
        for name in &slices {
            let slice =
                world.read::<EndpointSlice>(namespace, name).await.map_err(|error| error.to_string())?;
            let leads = slice.is_some_and(|slice| {
                slice.endpoints.iter().flatten().any(desired::is_ready)
                    && slice.metadata.deletion_timestamp.is_none()
            });
            if !leads {
                return Err(format!("the slice {name} leads to nobody"));
            }
        }
        match slices.is_empty() {
            true => Err("there is no slice that leads to it".to_owned()),
            false => Ok(()),
        }
    }

    /// Waits until a hold is not needed any more: the target is seen at zero; it was woken since then, and the scale-down has
    /// been seen; or it is not the target any more.
    async fn seen(&self, hold: &Hold, each: &Captured, written: Option<&Written>) {
        use futures_util::StreamExt;
        let ops = &self.inner.ops;
        let mut changes = std::pin::pin!(ops.changes());
        loop {
            let state = ops.state(&each.elasti);
            let is_other = ops.resource_of(&each.elasti, &each.reference).is_none();
            if is_other || state.and_then(|state| state.target).is_none_or(|target| target.spec_replicas == 0)
            {
                return;
            }
            // Down and up may be seen as one.
            let is_seen = match written {
                Some(written) => hold.was_woken() && ops.has_seen(&each.elasti, written).await,
                None => hold.was_woken(),
            };
            if is_seen {
                return;
            }
            // Nobody tells of a wake that changes nothing here.
            if let Ok(None) = tokio::time::timeout(SEEN_EVERY, changes.next()).await {
                return;
            }
        }
    }
}

/// What is against it, as far as it was told here: somebody asked for one of them, or one is not redirected any more.
fn still_against(held: &[Hold]) -> Option<Against> {
    let woken = held.iter().any(Hold::was_woken).then_some(Against::Woken);
    woken.or_else(|| held.iter().find_map(Hold::refused).map(Against::Redirect))
}

/// In another version, it is the same.
fn is_same(one: &Resource, other: &Resource) -> bool {
    (&one.group, &one.plural) == (&other.group, &other.plural)
}

/// How long it is until nobody can have been answered any more that did not write the time. One that is not of this time
/// says nothing: the clock that it was taken from is wrong.
fn rest(wakes: &[Option<Timestamp>], now: Timestamp) -> Option<Duration> {
    let limit = SignedDuration::try_from(UNWRITTEN_WITHIN).ok()?;
    let left = |woken: &Timestamp| {
        let age = now.duration_since(*woken);
        (age.abs() < limit).then(|| (limit - age).unsigned_abs())
    };
    wakes.iter().flatten().filter_map(left).max()
}

/// When it was woken last.
fn woken(elasti: &ElastiService) -> Option<Timestamp> {
    elasti.status.as_ref()?.last_scaled_up_time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_of_a_moment_ago_is_waited_for() {
        let at = |millis: i64| Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap();
        let left = |wakes: &[Option<Timestamp>]| rest(wakes, at(0)).map(|left| left.as_millis());
        assert_eq!(left(&[None, Some(at(-1250)), Some(at(-60_000))]), None);
        assert_eq!(left(&[Some(at(-1200)), None, Some(at(-250))]), Some(1000));
        assert_eq!(left(&[Some(at(500))]), Some(1750), "by another clock");
        assert_eq!(left(&[Some(at(60_000))]), None, "nobody waits for a clock that is wrong");
    }
}
