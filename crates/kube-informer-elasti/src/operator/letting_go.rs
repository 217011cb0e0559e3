//! What an ElastiService was for, and is not any more: a Service or a target that its spec does not name now, or all of it,
//! where it cannot be acted on.
//!
//! Nothing is taken away before somebody else answers: what sleeps is woken, redirects stay until there are pods, and what
//! cannot be done now is tried again. What an older ElastiService takes over stays as it is.

use std::sync::PoisonError;

use kube_informer::controller::{Action, Request};

use super::desired;
use super::finalize::LOOK;
use super::reconcile::One;
use super::report::Report;
use super::restore;
use super::saying::status_of;
use super::world::{self, WorldError};
use super::{Inner, Operator};
use crate::api::Mode;
use crate::names;
use crate::scale::ScaleError;

impl One<'_> {
    /// Nothing can be switched. What leads to the resolver leads to where it is now, all the same; it goes where others
    /// answer; and what was made for a Service that is not named any more is given back.
    pub(super) async fn keep_up(
        &self,
        is_awake: bool,
        report: &mut Report,
    ) -> Result<Option<Action>, WorldError> {
        let world = &self.inner().world;
        let (namespace, service) = (self.object.namespace(), self.spec().service.as_str());
        let former = self.operator.given(self.object, Some(service));
        let mut is_over = false;
        if !former.targets.is_empty() {
            match self.operator.give_back(self.object, &former, self.spec().wake_to()).await {
                Ok(over) => is_over = over,
                Err(error) => tracing::warn!(elasti = %self.request(), %error, "a former target may sleep"),
            }
        }
        let is_answered = is_awake && world.is_live() && world.is_answered(namespace, service);
        let resolver = world.resolver();
        for slice in world.slices.list().namespace(namespace).controlled_by(self.object) {
            let is_current = desired::is_to_resolver(slice.name(), service);
            if is_current && is_answered || !is_current && is_over {
                world.remove_cached(&slice).await?;
                continue;
            }
            let Some(known) = world.slice(namespace, slice.name()) else { continue };
            if let Ok(view) = known.view() {
                let wanted = desired::refreshed(&view, &resolver);
                world::wrote(self.context, world.put(Some(&known), &wanted).await?);
            }
        }
        let was_proxy = status_of(self.object).mode.as_deref() == Some(Mode::Proxy.as_str());
        if is_answered && was_proxy {
            report.mode = Some(Mode::Serve);
        }
        let waits = !former.services.is_empty() && !is_over;
        Ok(waits.then(|| Action::requeue_after(LOOK)))
    }

    /// A target that the spec named before, and that sleeps because of us, is woken: nobody else will do it. What the server
    /// says counts: it may have been put to sleep a moment ago.
    pub(super) async fn wake_former_target(&self, note: &str) -> Result<(), WorldError> {
        let Inner { world, scaler, recorder, .. } = self.inner();
        let namespace = self.object.namespace();
        for private in world.privates.list().namespace(namespace).controlled_by(self.object) {
            let Some(former) = private.annotation(desired::TARGET).ok().flatten() else { continue };
            let Some((resource, name)) = desired::noted_target(&former).filter(|_| former != note) else {
                continue;
            };
            match scaler.wake_if_asleep(&resource, namespace, &name, self.spec().wake_to()).await {
                Ok(scaled) if scaled.before == 0 => {
                    let note =
                        format!("{name} was woken: it is not the target any more, and nobody else would");
                    recorder.normal(self.object, "SuccessToScale", "RestoreTarget", note);
                }
                Ok(_) | Err(ScaleError::NotFound { .. }) => {}
                // The note stays until it is done.
                Err(source) if source.is_transient() => return Err(WorldError::Asleep { name, source }),
                // It is not ours any more: what cannot be done is said, and nothing waits for it.
                Err(error) => {
                    let note = format!("{name} is not the target any more, and may still sleep: {error}");
                    recorder.warning(self.object, error.reason(), "RestoreTarget", note);
                }
            }
        }
        Ok(())
    }

    /// Nothing is done for it: what was done is taken back, as at its end. What an older one takes over stays.
    pub(super) async fn let_go(&self, older: Option<&Request>) -> Result<Action, WorldError> {
        let Inner {
            world, ops, manager, settings, watched, unanswered, leaving, lingering, recorder, ..
        } = self.inner();
        let (request, namespace) = (self.request(), self.object.namespace());
        let kept = older.map(|_| self.spec().service.as_str());
        let mut given = self.operator.given(self.object, kept);
        let heir = older.and_then(|older| world.elastis.get(older.namespace(), older.name()));
        let heir = heir.and_then(|heir| heir.view().ok());
        if let Some((resource, name)) = ops.followed(request)
            && heir.is_none_or(|heir| heir.spec.scale_target_ref.name != name)
        {
            given.target(resource, name);
        }
        let mut slices: Vec<_> =
            world.slices.list().namespace(namespace).controlled_by(self.object).into_iter().collect();
        slices.retain(|slice| kept.is_none_or(|service| !desired::is_to_resolver(slice.name(), service)));
        if !given.targets.is_empty() && !lingering.is_on(request) {
            let left = leaving.left(request, settings.restore_deadline);
            let is_restored = match self.operator.give_back(self.object, &given, self.spec().wake_to()).await
            {
                Ok(is_restored) => is_restored,
                Err(error) if left.is_some() && error.is_transient() => false,
                Err(error) => {
                    let words =
                        format!("its target may still sleep, and is not looked after any more: {error}");
                    recorder.warning(self.object, error.reason(), "RestoreTarget", words);
                    true
                }
            };
            if let Some(left) = left.filter(|_| !is_restored) {
                self.operator.refresh(self.context, self.object).await?;
                return Ok(Action::requeue_after(left.min(LOOK)));
            }
            if !is_restored {
                let words = restore::too_long(settings.restore_deadline);
                recorder.warning(self.object, restore::NOT_ANSWERED, "RestoreTarget", words);
            }
        }
        for slice in &slices {
            world.remove_cached(slice).await?;
        }
        if !slices.is_empty() || lingering.is_on(request) {
            // What the resolver keeps still goes through the private Service.
            if let Some(left) = lingering.left(request, settings.linger) {
                return Ok(Action::requeue_after(left));
            }
        }
        ops.unfollow(request).await;
        watched.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        manager.stop_for_owner(super::owner(request)).await;
        unanswered.over(request);
        let private = kept.map(names::private_service);
        let names = kept.map(desired::slice_names).map(Vec::from).unwrap_or_default();
        world.sweep(self.object, private.as_deref(), &names).await?;
        leaving.over(request);
        lingering.over(request);
        Ok(Action::done())
    }
}

impl Operator {
    /// It is gone: so is everything that is known of it.
    pub(super) async fn forget(&self, request: &Request) {
        let Inner { directory, ops, manager, watched, unanswered, leaving, lingering, interrupted, .. } =
            &*self.inner;
        directory.remove(request);
        ops.unfollow(request).await;
        watched.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        manager.stop_for_owner(super::owner(request)).await;
        unanswered.over(request);
        leaving.over(request);
        lingering.over(request);
        interrupted.over(request);
    }
}
