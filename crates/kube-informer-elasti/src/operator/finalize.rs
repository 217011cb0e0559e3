//! The end of an ElastiService: its target answers again, and nothing is left of what was made for it.
//!
//! In this order: a target that sleeps is woken; the redirect stays until the Service leads to a ready pod, or that takes too
//! long; then the slices go, and a moment later private Service, watches and directory entry, and last the finalizer. All of
//! it under the key of the ElastiService: no reconcile makes anew what is being deleted. What another one has taken over
//! stays.

use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_informer::controller::{Action, BoxError, Context, Request};
use kube_informer::object::Object;

use super::holds::Redirect;
use super::report::{READY, Report};
use super::restore;
use super::saying::status_of;
use super::world::{self, WorldError};
use super::{Inner, Operator};
use crate::api::{ElastiService, ElastiServiceSpec, Mode};
use crate::directory::Standing;
use crate::scale::ScaleError;

/// How often it is looked whether the pods answer.
pub(super) const LOOK: Duration = Duration::from_secs(1);

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
        if self.inner.holds.is_held(request) {
            // Whoever is about to scale its target says when that is over.
            return Ok(Action::requeue_after(LOOK));
        }
        let left = leaving.left(request, settings.restore_deadline);
        // Of one that cannot be read, only what it owns is known.
        let spec = object.view().map(|elasti| elasti.spec.clone()).ok();
        let wake_to = spec.as_ref().map_or(1, ElastiServiceSpec::wake_to);
        let unsettled = self.settle(object, spec.as_ref()).await;
        let spec = spec.filter(|spec| world::problem(spec).is_none());
        let inherited = spec.as_ref().filter(|spec| self.has_heir(object, spec));
        let acted = spec
            .as_ref()
            .filter(|spec| inherited.is_none() && self.was_redirected(request, object, &spec.service));
        if inherited.is_some() {
            // Whoever comes after it takes over what there is, as it is.
            directory.remove(request);
        }
        if !lingering.is_on(request) {
            let inherits = inherited.map(|spec| spec.service.as_str());
            let is_restored = match self.restore(request, object, acted, inherits, wake_to).await {
                Ok(is_restored) => is_restored,
                // Nobody waits for ever: the objects go, and people are told what is left to do.
                Err(error) if left.is_some() && error.is_transient() => return Err(error.into()),
                Err(error) => {
                    let words =
                        format!("its target may still sleep, and nobody will wake it any more: {error}");
                    self.give_up(context, object, error.reason(), words).await;
                    true
                }
            };
            let waits = !is_restored || inherited.is_some() && world.owns(object);
            if let Some(left) = left.filter(|_| waits) {
                self.refresh(context, object).await?;
                return Ok(Action::requeue_after(left.min(LOOK)));
            }
            if !is_restored {
                let words = restore::too_long(settings.restore_deadline);
                self.give_up(context, object, restore::NOT_ANSWERED, words).await;
            }
        }
        // What was on its way when a process ended may still send the target to sleep.
        match unsettled {
            Ok(None) => {}
            unsettled => {
                self.refresh(context, object).await?;
                return unsettled.map(|again| again.map_or_else(Action::done, Action::requeue_after));
            }
        }
        let removed = self.remove_redirects(object, acted).await?;
        if removed || acted.is_some() || lingering.is_on(request) {
            // What the resolver keeps still goes through the private Service.
            if let Some(left) = lingering.left(request, settings.linger) {
                return Ok(Action::requeue_after(left));
            }
        }
        world.sweep(object, &[], &[]).await?;
        self.forget(request).await;
        if let Some(written) = self.finalizer().remove(object).await? {
            context.wrote(&written);
        }
        Ok(Action::done())
    }

    /// Says that it goes all the same, and what is left to do, in its status and by an event. Where that cannot be written,
    /// it goes, too.
    async fn give_up(
        &self,
        context: &Context<ElastiService>,
        object: &Object<ElastiService>,
        reason: &'static str,
        words: String,
    ) {
        let mut report = Report::default();
        report.wrong(READY, reason, words.clone());
        if let Err(error) = self.say(context, object, report).await {
            tracing::debug!(elasti = %object.key(), %error, "its status could not be written at its end");
            self.inner.recorder.warning(object, reason, "RestoreTarget", words);
        }
    }

    async fn restore(
        &self,
        request: &Request,
        object: &Object<ElastiService>,
        acted: Option<&ElastiServiceSpec>,
        inherited: Option<&str>,
        wake_to: i32,
    ) -> Result<bool, ScaleError> {
        let mut given = self.given(object, inherited);
        let named = match acted {
            Some(spec) => self.give_named(&mut given, request, spec).await,
            None => Ok(()),
        };
        let is_restored = self.give_back(object, &given, wake_to).await?;
        named.map(|()| is_restored)
    }

    /// Ends the redirects that are its own, and those that nobody owns. Tells whether there were any.
    async fn remove_redirects(
        &self,
        object: &Object<ElastiService>,
        acted: Option<&ElastiServiceSpec>,
    ) -> Result<bool, WorldError> {
        let world = &self.inner.world;
        let namespace = object.namespace();
        let mut all: Vec<Object<EndpointSlice>> =
            world.slices.list().namespace(namespace).controlled_by(object).into_iter().collect();
        if let Some(spec) = acted {
            let of_nobody = |slice: &Object<EndpointSlice>| slice.controller().is_none();
            all.extend(world.redirects(namespace, &spec.service).into_iter().filter(of_nobody));
        }
        for slice in &all {
            world.remove_cached(slice).await?;
        }
        Ok(!all.is_empty())
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
}
