//! Giving back: what is not looked after any more answers by itself, before its redirect goes.
//!
//! Whatever sleeps because of an ElastiService is woken: what is noted on the private Services that it owns, whatever its spec
//! says by now. What the server says counts, not what was known a moment ago. Trouble that passes is not taken for an end.

use std::time::Duration;

use kube_informer::controller::{Context, Request};
use kube_informer::object::Object;
use kube_informer::resource::Resource;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::desired::{self, SERVICE_NAME};
use super::world::{self, WorldError};
use super::{Inner, Operator};
use crate::api::{ElastiService, ElastiServiceSpec, ScaleTargetRef};
use crate::names;
use crate::ops_informer::FollowError;
use crate::scale::ScaleError;

/// Nobody answers though enough time has passed, in one word.
pub(super) const NOT_ANSWERED: &str = "RestoreTimedOut";

/// The same in more.
pub(super) fn too_long(deadline: Duration) -> String {
    format!(
        "pods did not answer for its Service within {deadline:?}, at every port and address family that led to the resolver; \
         requests are not kept any more: see that the target's pods are ready, and match the Service's selector and ports"
    )
}

/// What is to be given back.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// What may sleep.
    pub(super) targets: Vec<(Resource, String)>,
    /// What must be answered before its redirect goes.
    pub(super) services: Vec<String>,
}

impl Given {
    pub(super) fn target(&mut self, resource: Resource, name: String) {
        let is_same = |(known, other): &(Resource, String)| {
            (&known.group, &known.plural, other) == (&resource.group, &resource.plural, &name)
        };
        if !self.targets.iter().any(is_same) {
            self.targets.push((resource, name));
        }
    }

    pub(super) fn service(&mut self, service: &str) {
        if !self.services.iter().any(|known| known == service) {
            self.services.push(service.to_owned());
        }
    }
}

impl Operator {
    /// What an ElastiService owns, but what there is for one Service.
    pub(super) fn given(&self, object: &Object<ElastiService>, but: Option<&str>) -> Given {
        let world = &self.inner.world;
        let (namespace, private) = (object.namespace(), but.map(names::private_service));
        let mut given = Given::default();
        for service in world.privates.list().namespace(namespace).controlled_by(object) {
            if private.as_deref() == Some(service.name()) {
                continue;
            }
            let note = service.annotation(desired::TARGET).ok().flatten().unwrap_or_default();
            for (resource, name) in desired::noted_targets(&note) {
                given.target(resource, name);
            }
        }
        for slice in world.slices.list().namespace(namespace).controlled_by(object) {
            if let Some(service) = slice.labels().get(SERVICE_NAME).filter(|service| Some(&**service) != but)
            {
                given.service(service);
            }
        }
        given
    }

    /// Whether a reference names a target that was noted. Where the server does not say what it names, its looks count.
    pub(super) async fn is_target(
        &self,
        resource: &Resource,
        name: &str,
        reference: &ScaleTargetRef,
    ) -> bool {
        if reference.name != name {
            return false;
        }
        match self.resolve(reference).await {
            Ok(named) => (&named.group, &named.plural) == (&resource.group, &resource.plural),
            Err(_) => desired::is_noted(resource, name, reference),
        }
    }

    /// Adds what the spec names, if there is such a kind.
    pub(super) async fn give_named(
        &self,
        given: &mut Given,
        request: &Request,
        spec: &ElastiServiceSpec,
    ) -> Result<(), ScaleError> {
        given.service(&spec.service);
        let reference = &spec.scale_target_ref;
        let resource = match self.inner.ops.resource_of(request, reference) {
            Some(resource) => resource,
            None => match self.resolve(reference).await {
                Ok(resource) => resource,
                Err(FollowError::UnknownKind { .. } | FollowError::Reference { .. }) => return Ok(()),
                Err(error) => {
                    let tried = format!("look up {reference}");
                    return Err(ScaleError::Failed { tried, why: error.to_string(), source: None });
                }
            },
        };
        given.target(resource, reference.name.clone());
        Ok(())
    }

    /// What leads to the resolver for as long as it is waited leads to where it is now.
    pub(super) async fn refresh(
        &self,
        context: &Context<ElastiService>,
        object: &Object<ElastiService>,
    ) -> Result<(), WorldError> {
        let slices = self.inner.world.slices.list();
        for slice in slices.namespace(object.namespace()).controlled_by(object) {
            self.refresh_slice(context, &slice).await?;
        }
        Ok(())
    }

    /// The same of one slice.
    pub(super) async fn refresh_slice(
        &self,
        context: &Context<ElastiService>,
        slice: &Object<EndpointSlice>,
    ) -> Result<(), WorldError> {
        let world = &self.inner.world;
        let Some(known) = world.slice(slice.namespace(), slice.name()) else { return Ok(()) };
        if let Ok(view) = known.view() {
            let wanted = desired::refreshed(&view, &world.resolver());
            world::wrote(context, world.put(Some(&known), &wanted).await?);
        }
        Ok(())
    }

    /// Wakes what sleeps. Whether nothing is left to wait for. All of it is tried, whatever fails.
    pub(super) async fn give_back(
        &self,
        object: &Object<ElastiService>,
        given: &Given,
        wake_to: i32,
    ) -> Result<bool, ScaleError> {
        let Inner { scaler, world, recorder, settings, half_restored, .. } = &*self.inner;
        let (request, namespace) = (Request::from(object), object.namespace());
        let (mut failed, mut woken, mut there) = (None, false, false);
        for (resource, name) in &given.targets {
            match scaler.wake_if_asleep(resource, namespace, name, wake_to).await {
                Ok(scaled) => {
                    there = true;
                    if scaled.before == 0 {
                        woken = true;
                        let words = format!(
                            "{name} was woken to {}: a Service before it is not looked after any more",
                            scaled.now
                        );
                        recorder.normal(object, "SuccessToScale", "RestoreTarget", words);
                    }
                }
                // Nothing is left to be woken, and nobody will answer.
                Err(ScaleError::NotFound { .. }) => {}
                Err(error) => {
                    // What passes is waited for; what does not is told when nothing else is left.
                    if error.is_transient() || failed.is_none() {
                        failed = Some(error);
                    }
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if woken {
            // Endpoints that are known now are those of before.
            half_restored.over(&request);
            return Ok(false);
        }
        if !there {
            return Ok(true);
        }
        for service in &given.services {
            if world.is_live() && world.is_answered(namespace, service, None) {
                continue;
            }
            let is_half = world.is_live() && !world.answered(namespace, service).is_empty();
            match world.read::<Service>(namespace, service).await {
                // Without a Service, nobody asks.
                Ok(None) => {}
                // By what it has no more, nobody asks either.
                Ok(Some(public)) if is_half && world.is_answered(namespace, service, Some(&public)) => {}
                // By ways that no pod ever answered, nobody is waited for long.
                _ if is_half && half_restored.left(&request, settings.endpoints_patience).is_none() => {}
                // Where it cannot be told, it is waited.
                _ => return Ok(false),
            }
        }
        half_restored.over(&request);
        Ok(true)
    }
}
