//! The end of an ElastiService: its target answers again, and nothing is left of what was made for it.
//!
//! In this order: a target that sleeps is woken; the redirect stays until the Service leads to a ready pod, or that takes too
//! long; then the slices go, and a moment later private Service, watches and directory entry, and last the finalizer. All of it under the key of the
//! ElastiService: no reconcile makes anew what is being deleted.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube_informer::controller::{Action, BoxError, Context, Request};
use kube_informer::object::Object;
use kube_informer::resource::Resource;

use super::holds::Redirect;
use super::reconcile::status_of;
use super::{Inner, Operator, desired, world};
use crate::api::{ElastiService, ElastiServiceSpec, Mode};
use crate::directory::Standing;
use crate::scale::ScaleError;

/// How often it is looked whether the pods answer.
const LOOK: Duration = Duration::from_secs(1);

impl Operator {
    pub(super) async fn finalize(
        &self,
        context: &Context<ElastiService>,
        object: &Object<ElastiService>,
    ) -> Result<Action, BoxError> {
        let Inner { world, settings, leaving, lingering, directory, .. } = &*self.inner;
        let request = context.request();
        if !self.finalizer().has(object)? {
            self.forget(request).await;
            return Ok(Action::done());
        }
        self.inner.holds.tell(request, Redirect::Refused("it is being deleted".to_owned()));
        // Of one that cannot be read, only what it owns is known.
        let spec = object.view().map(|elasti| elasti.spec.clone()).ok();
        let spec = spec.filter(|spec| world::problem(spec).is_none());
        if let Some(spec) = &spec {
            let left = leaving.left(request, settings.restore_deadline);
            if self.has_heir(object, spec) {
                // Whoever comes after it takes over what there is, as it is.
                directory.remove(request);
                let owns = world.owns(object);
                if let Some(left) = left.filter(|_| owns) {
                    return Ok(Action::requeue_after(left.min(LOOK)));
                }
            } else if self.was_redirected(request, object, &spec.service) {
                let is_restored = match self.restore(request, object, spec).await {
                    Ok(is_restored) => is_restored,
                    // Nobody waits for ever: the objects go, and people are told what is left to do.
                    Err(error) if left.is_some() && error.is_transient() => return Err(error.into()),
                    Err(error) => {
                        let words =
                            format!("its target may still sleep, and nobody will wake it any more: {error}");
                        self.inner.recorder.warning(object, error.reason(), "RestoreTarget", words);
                        true
                    }
                };
                if let Some(left) = left.filter(|_| !is_restored) {
                    return Ok(Action::requeue_after(left.min(LOOK)));
                }
                for slice in world.redirects(object.namespace(), &spec.service) {
                    world.remove_cached(&slice).await?;
                }
                // What the resolver keeps still goes through the private Service.
                if let Some(left) = lingering.left(request, settings.linger) {
                    return Ok(Action::requeue_after(left));
                }
            }
        }
        world.sweep(object, None, &[]).await?;
        self.forget(request).await;
        if let Some(written) = self.finalizer().remove(object).await? {
            context.wrote(&written);
        }
        Ok(Action::done())
    }

    /// Whether another one does the same from now on.
    fn has_heir(&self, object: &Object<ElastiService>, spec: &ElastiServiceSpec) -> bool {
        let others = self.inner.world.naming(object.namespace(), &spec.service);
        let is_same = |other: &Object<ElastiService>| {
            other.view().is_ok_and(|other| other.spec.scale_target_ref == spec.scale_target_ref)
        };
        others.first().is_some_and(is_same)
    }

    /// Whether its requests go to the resolver because of it.
    fn was_redirected(&self, request: &Request, object: &Object<ElastiService>, service: &str) -> bool {
        let Inner { world, directory, .. } = &*self.inner;
        if let Some(Standing::Yields { .. }) = directory.standing(request) {
            return false;
        }
        // After a start, nothing may be known yet but what there is: an older one that stays owns the Service.
        let rank = |one: &Object<ElastiService>| (one.created(), one.name().to_owned());
        let older = world.naming(object.namespace(), service).iter().any(|other| rank(other) < rank(object));
        let redirects = world.redirects(object.namespace(), service);
        !older && (!redirects.is_empty() || status_of(object).mode.as_deref() == Some(Mode::Proxy.as_str()))
    }

    /// Wakes the target, if it sleeps. Whether nothing is left to wait for.
    async fn restore(
        &self,
        request: &Request,
        object: &Object<ElastiService>,
        spec: &ElastiServiceSpec,
    ) -> Result<bool, ScaleError> {
        let Inner { ops, scaler, world, .. } = &*self.inner;
        let namespace = object.namespace();
        if world.is_answered(namespace, &spec.service)
            && ops.state(request).is_some_and(|state| state.decision == Mode::Serve)
        {
            return Ok(true);
        }
        let Some((target, name)) = self.target_of(request, object, spec).await else { return Ok(true) };
        let scaled = match scaler.up(&target, namespace, &name, 1).await {
            Ok(scaled) if scaled.before == 0 => {
                let scaled = scaler.up(&target, namespace, &name, spec.wake_to()).await?;
                let words = format!("{name} was woken to {}: it is not looked after any more", scaled.now);
                self.inner.recorder.normal(object, "SuccessToScale", "RestoreTarget", words);
                scaled
            }
            Ok(scaled) => scaled,
            // Nothing is left to be woken, and nobody will answer.
            Err(ScaleError::NotFound { .. }) => return Ok(true),
            Err(error) => return Err(error),
        };
        tracing::debug!(elasti = %request, replicas = scaled.now, "waiting for the pods of one that is deleted");
        if world.is_answered(namespace, &spec.service) {
            return Ok(true);
        }
        // Without a Service, nobody asks. Where that cannot be told, it is waited.
        let there = world.api::<Service>(namespace).get_opt(&spec.service).await;
        Ok(matches!(there, Ok(None)))
    }

    /// What may sleep because of it: what was noted last, or else what the spec names.
    async fn target_of(
        &self,
        request: &Request,
        object: &Object<ElastiService>,
        spec: &ElastiServiceSpec,
    ) -> Option<(Resource, String)> {
        let Inner { ops, world, .. } = &*self.inner;
        let private = world.privates.list().namespace(object.namespace()).controlled_by(object).first();
        let note = private.and_then(|private| private.annotation(desired::TARGET).ok().flatten());
        if let Some(noted) = note.and_then(|note| desired::noted_target(&note)) {
            return Some(noted);
        }
        let named = match ops.resource(request) {
            Some(resource) => resource,
            None => self.resolve(&spec.scale_target_ref).await.ok()?,
        };
        Some((named, spec.scale_target_ref.name.clone()))
    }
}
