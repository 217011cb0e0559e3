//! Sleeps that were interrupted: no target stays asleep that nobody looks after.
//!
//! Before a target is scaled to zero, that is noted on the ElastiServices for whose sake it is done; the note goes when it
//! was looked what happened meanwhile. Where whoever does it ends in between, or is not told what came of its request, the
//! note stays, and is found by whoever reconciles next:
//!
//! - What was to sleep and belongs to the ElastiService as before is left alone: it is redirected, and woken when it is asked
//!   for, as always. Where somebody asked for it since the note was written, it is woken: it may have been awake then.
//! - What does not belong to it any more, because it was edited or is deleted, is woken. A request may still be on its way, so
//!   it is looked at again for a while, and only then the note goes. Until then, the ElastiService does not go either. Trouble
//!   that passes is waited for: at a deletion, not for ever.

use std::time::Duration;

use jiff::Timestamp;
use kube_informer::controller::{BoxError, Request};
use kube_informer::object::Object;

use super::desired::{self, SLEEPING};
use super::finalize::LOOK;
use super::sleep::{Captured, Wakes};
use super::{Inner, Operator};
use crate::api::{ElastiService, ElastiServiceSpec};
use crate::scale::ScaleError;

impl Operator {
    /// Notes what is about to sleep, and when each of them was woken last.
    pub(super) async fn note_sleep(
        &self,
        captured: &[Captured],
        wakes: &Wakes,
        target: &str,
    ) -> Result<(), String> {
        let notes = captured.iter().zip(wakes).map(|(each, woken)| async move {
            let note = desired::sleep_note(target, woken.map_or(0, Timestamp::as_microsecond));
            self.inner.world.annotate(&each.elasti, &each.uid, SLEEPING, Some(&note)).await
        });
        futures_util::future::try_join_all(notes).await.map(drop).map_err(|error| error.to_string())
    }

    /// It sleeps, or does not, and all is looked after. Where the notes cannot be taken away, they are [settled](Self::settle).
    pub(super) async fn forget_sleep(&self, captured: &[Captured]) {
        let notes = captured.iter().map(|each| async move {
            let forgotten = self.inner.world.annotate(&each.elasti, &each.uid, SLEEPING, None).await;
            if let Err(error) = forgotten.or_else(|error| if error.is_gone() { Ok(()) } else { Err(error) }) {
                tracing::warn!(elasti = %each.elasti, %error, "a note is left, and looked at later");
            }
        });
        futures_util::future::join_all(notes).await;
    }

    /// Sees to a sleep that is noted, and that nobody here is about. When it is to be looked at again, if it is.
    pub(super) async fn settle(
        &self,
        object: &Object<ElastiService>,
        spec: Option<&ElastiServiceSpec>,
    ) -> Result<Option<Duration>, BoxError> {
        let Inner { world, settings, holds, leaving, interrupted, scaler, recorder, .. } = &*self.inner;
        let request = Request::from(object);
        let Some(note) = object.annotation(SLEEPING)? else {
            interrupted.over(&request);
            return Ok(None);
        };
        if holds.is_held(&request) {
            interrupted.over(&request);
            return Ok(Some(LOOK));
        }
        let left = interrupted.left(&request, settings.in_flight);
        if let Some((resource, name, woken)) = desired::noted_sleep(&note) {
            let is_deleted = object.deletion().is_some();
            let belongs = match spec.filter(|_| !is_deleted) {
                Some(spec) => self.is_target(&resource, &name, &spec.scale_target_ref).await,
                None => false,
            };
            // Whoever asked meanwhile may have found it awake.
            let was_woken = woken.is_some_and(|woken| woken != last_wake(object));
            if !belongs || was_woken {
                let to = spec.map_or(1, ElastiServiceSpec::wake_to);
                let why = match belongs {
                    true => "somebody asked for it while it was put to sleep",
                    false => "it was put to sleep when it was not the target any more",
                };
                let may_wait = || !is_deleted || leaving.left(&request, settings.restore_deadline).is_some();
                match scaler.wake_if_asleep(&resource, object.namespace(), &name, to).await {
                    Ok(scaled) if scaled.before == 0 => {
                        let words = format!("{name} was woken: {why}");
                        recorder.normal(object, "SuccessToScale", "RestoreTarget", words);
                    }
                    Ok(_) | Err(ScaleError::NotFound { .. }) => {}
                    Err(error) if error.is_transient() && may_wait() => return Err(error.into()),
                    Err(error) if left.is_some() => {
                        tracing::debug!(elasti = %request, %error, "not woken yet");
                    }
                    Err(error) => {
                        let words = format!("{name} may still sleep, though {why}: {error}");
                        recorder.warning(object, error.reason(), "RestoreTarget", words);
                    }
                }
            }
        }
        if let Some(left) = left {
            return Ok(Some(left.min(LOOK)));
        }
        match world.annotate(&request, &object.uid().to_string(), SLEEPING, None).await {
            Err(error) if !error.is_gone() => Err(error.into()),
            _ => {
                interrupted.over(&request);
                Ok(None)
            }
        }
    }
}

/// When it was woken last, as notes have it.
fn last_wake(object: &Object<ElastiService>) -> i64 {
    let last = object.pointer::<Timestamp>("/status/lastScaledUpTime").ok().flatten();
    last.map_or(0, Timestamp::as_microsecond)
}
