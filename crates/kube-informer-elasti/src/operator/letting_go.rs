//! What an ElastiService was for, and is not any more: a Service or a target that its spec does not name now, or all of it,
//! where it cannot be acted on.
//!
//! Nothing is taken away before somebody else answers: what sleeps is woken, redirects stay until there are pods, and what
//! cannot be done now is tried again. What an older ElastiService takes over stays as it is.

use std::sync::PoisonError;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube_informer::controller::Request;
use kube_informer::resource::Resource;

use super::desired;
use super::finalize::LOOK;
use super::next::Next;
use super::reconcile::One;
use super::report::{READY, Report};
use super::restore;
use super::saying::status_of;
use super::world::WorldError;
use super::{Inner, Operator};
use crate::api::Mode;
use crate::names;
use crate::scale::ScaleError;

/// What was made for Services that the spec does not name any more, and stays for now.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The private Services, by name.
    pub(super) services: Vec<String>,
    /// The slices to the resolver, by name.
    pub(super) slices: Vec<String>,
    /// When it is looked at again.
    pub(super) again: Option<Duration>,
}

/// What came of waking what was the target before.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// What is to be noted on the private Service: what may still sleep, and the target.
    pub(super) notes: Vec<String>,
    /// Other private Services whose notes are still needed, by name.
    pub(super) needed: Vec<String>,
    /// Why something may still sleep.
    pub(super) trouble: Option<WorldError>,
    /// When it is tried again.
    pub(super) again: Next,
}

impl One<'_> {
    /// Nothing can be switched. What leads to the resolver leads to where it is now, all the same; it goes where others
    /// answer; and what was made for a Service that is not named any more is given back.
    pub(super) async fn keep_up(
        &self,
        public: Option<&Service>,
        is_awake: bool,
        report: &mut Report,
    ) -> Result<Next, WorldError> {
        let world = &self.inner().world;
        let (namespace, service) = (self.object.namespace(), self.spec().service.as_str());
        let mut kept = self.part(report).await?;
        let is_answered = is_awake && world.is_live() && world.is_answered(namespace, service, public);
        for slice in world.slices.list().namespace(namespace).controlled_by(self.object) {
            if !desired::is_to_resolver(slice.name(), service) {
                continue;
            }
            if is_answered {
                world.remove_cached(&slice).await?;
            } else {
                self.operator.refresh_slice(self.context, &slice).await?;
            }
        }
        kept.services.push(names::private_service(service));
        kept.slices.extend(desired::slice_names(service));
        world.sweep(self.object, &kept.services, &kept.slices).await?;
        let was_proxy = status_of(self.object).mode.as_deref() == Some(Mode::Proxy.as_str());
        if is_answered && was_proxy {
            report.mode = Some(Mode::Serve);
        }
        Ok(kept.again.into())
    }

    /// Parts with what was made for Services that the spec does not name any more: what sleeps behind them is woken, the
    /// redirects stay until pods answer or that takes too long, and the private Services a moment longer. What cannot be woken
    /// for now is not given up. Tells what stays.
    pub(super) async fn part(&self, report: &mut Report) -> Result<Kept, WorldError> {
        let Inner { world, ops, settings, parting, parted, half_restored, recorder, .. } = self.inner();
        let (request, namespace) = (self.request(), self.object.namespace());
        let service = self.spec().service.as_str();
        let own = names::private_service(service);
        let mut slices: Vec<_> =
            world.slices.list().namespace(namespace).controlled_by(self.object).into_iter().collect();
        slices.retain(|slice| {
            !desired::is_to_resolver(slice.name(), service) && world.slice(namespace, slice.name()).is_some()
        });
        let privates = world.privates.list().namespace(namespace).controlled_by(self.object);
        let mut services: Vec<String> =
            privates.into_iter().map(|private| private.name().to_owned()).collect();
        services.retain(|name| *name != own);
        if slices.is_empty() && services.is_empty() {
            parting.over(request);
            parted.over(request);
            return Ok(Kept::default());
        }
        if !slices.is_empty() {
            parted.over(request);
        }
        if !parted.is_on(request) {
            let mut former = self.operator.given(self.object, Some(service));
            if former.targets.is_empty()
                && !slices.is_empty()
                && let Some((resource, name)) = ops.followed(request)
            {
                // Somebody took the note away: it is most likely the target that it is now.
                former.target(resource, name);
            }
            let left = parting.left(request, settings.restore_deadline);
            let again = match self.operator.give_back(self.object, &former, self.spec().wake_to()).await {
                Ok(true) => None,
                Ok(false) if left.is_none() => {
                    let words = restore::too_long(settings.restore_deadline);
                    recorder.warning(self.object, restore::NOT_ANSWERED, "RestoreTarget", words);
                    None
                }
                Ok(false) => left.map(|left| left.min(LOOK)),
                Err(error) if left.is_none() && !error.is_transient() => {
                    let words = format!("what was its target may still sleep, and is given up: {error}");
                    recorder.warning(self.object, error.reason(), "RestoreTarget", words);
                    None
                }
                Err(error) => {
                    let soon = left.filter(|_| error.is_transient()).map(|left| left.min(LOOK));
                    if soon.is_none() {
                        let words = format!(
                            "what was made for a Service that it named before stays, as its target may sleep: {error}"
                        );
                        report.wrong(READY, error.reason(), words);
                    }
                    Some(soon.unwrap_or(settings.retry))
                }
            };
            if again.is_some() {
                for slice in &slices {
                    self.operator.refresh_slice(self.context, slice).await?;
                }
                let slices = slices.iter().map(|slice| slice.name().to_owned()).collect();
                return Ok(Kept { services, slices, again });
            }
            for slice in &slices {
                world.remove_cached(slice).await?;
            }
            parting.over(request);
            half_restored.over(request);
        }
        // What the resolver keeps still goes through the private Services. That they are over is known when they are gone.
        Ok(match parted.left(request, settings.linger) {
            Some(left) => Kept { services, slices: Vec::new(), again: Some(left) },
            None => Kept::default(),
        })
    }

    /// Targets that were named before, and that sleep because of us, are woken: nobody else will do it. What the server
    /// says counts: they may have been put to sleep a moment ago. What fails now is noted still, and tried again; where somebody
    /// would have to allow it, not for ever.
    pub(super) async fn wake_former_targets(&self, target: &Resource) -> Former {
        let Inner { world, settings, recorder, still_asleep, .. } = self.inner();
        let namespace = self.object.namespace();
        let own = names::private_service(&self.spec().service);
        let current = &self.spec().scale_target_ref.name;
        let mut privates: Vec<_> =
            world.privates.list().namespace(namespace).controlled_by(self.object).into_iter().collect();
        if !privates.iter().any(|private| private.name() == own) {
            // Another ElastiService had the Service before. What is noted there is overwritten, and it may not know.
            let left = world.privates.get(namespace, &own);
            privates
                .extend(left.filter(|left| left.view().is_ok_and(|left| desired::is_free(&left.metadata))));
        }
        let (mut former, mut failed) = (Former::default(), Vec::new());
        for private in &privates {
            let noted = private.annotation(desired::TARGET).ok().flatten().unwrap_or_default();
            for (resource, name) in desired::noted_targets(&noted) {
                // In another version, it is the same.
                if (&resource.group, &resource.plural, &name) == (&target.group, &target.plural, current) {
                    continue;
                }
                let note = desired::target_note(&resource, &name);
                let Err(source) = self.wake_former_target(&resource, &name).await else { continue };
                let key = (self.request().clone(), note.clone());
                let left = still_asleep.left(&key, settings.restore_deadline);
                failed.push(key);
                if left.is_none() && !source.is_transient() {
                    let words = format!(
                        "{name} is not the target any more, may still sleep, and is given up: {source}"
                    );
                    recorder.warning(self.object, source.reason(), "RestoreTarget", words);
                    continue;
                }
                let soon = left.filter(|_| source.is_transient()).map(|left| left.min(LOOK));
                former.again = former.again.and(Next::after(soon.unwrap_or(settings.retry)));
                if private.name() == own {
                    former.notes.push(note);
                } else {
                    former.needed.push(private.name().to_owned());
                }
                former.trouble = Some(WorldError::Asleep { name, source });
            }
        }
        still_asleep.only(|key| key.0 != *self.request() || failed.contains(key));
        let too_many = (former.notes.len() + 1).saturating_sub(desired::MOST_NOTED);
        for note in former.notes.drain(..too_many) {
            let words = format!("{note} may still sleep, and is given up: too many targets came after it");
            recorder.warning(self.object, "TooManyTargets", "RestoreTarget", words);
        }
        former.notes.push(desired::target_note(target, current));
        former
    }

    async fn wake_former_target(&self, resource: &Resource, name: &str) -> Result<(), ScaleError> {
        let Inner { scaler, recorder, .. } = self.inner();
        let namespace = self.object.namespace();
        match scaler.wake_if_asleep(resource, namespace, name, self.spec().wake_to()).await {
            Ok(scaled) if scaled.before == 0 => {
                let note = format!("{name} was woken: it is not the target any more, and nobody else would");
                recorder.normal(self.object, "SuccessToScale", "RestoreTarget", note);
            }
            Ok(_) | Err(ScaleError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Nothing is done for it: what was done is taken back, as at its end. What an older one takes over stays.
    pub(super) async fn let_go(&self, older: Option<&Request>) -> Result<Next, WorldError> {
        let Inner { world, ops, manager, settings, watched, leaving, lingering, recorder, .. } = self.inner();
        let (request, namespace) = (self.request(), self.object.namespace());
        let kept = older.map(|_| self.spec().service.as_str());
        let mut given = self.operator.given(self.object, kept);
        let heir = older.and_then(|older| world.elastis.get(older.namespace(), older.name()));
        let heir = heir.and_then(|heir| heir.view().ok());
        if let Some((resource, name)) = ops.followed(request) {
            let is_inherited = match &heir {
                Some(heir) => self.operator.is_target(&resource, &name, &heir.spec.scale_target_ref).await,
                None => false,
            };
            if !is_inherited {
                given.target(resource, name);
            }
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
                return Ok(Next::after(left.min(LOOK)));
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
                return Ok(Next::after(left));
            }
        }
        ops.unfollow(request).await;
        watched.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        manager.stop_for_owner(super::owner(request)).await;
        let privates: Vec<_> = kept.map(names::private_service).into_iter().collect();
        let names = kept.map(desired::slice_names).map(Vec::from).unwrap_or_default();
        world.sweep(self.object, &privates, &names).await?;
        self.inner().wait_no_more(request);
        Ok(Next::CHANGE)
    }
}

impl Operator {
    /// It is gone: so is everything that is known of it.
    pub(super) async fn forget(&self, request: &Request) {
        let Inner { directory, ops, manager, watched, interrupted, .. } = &*self.inner;
        directory.remove(request);
        ops.unfollow(request).await;
        watched.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        manager.stop_for_owner(super::owner(request)).await;
        self.inner.wait_no_more(request);
        interrupted.over(request);
    }
}

impl Inner {
    /// Nothing is waited for any more, for one for whom nothing is done.
    fn wait_no_more(&self, request: &Request) {
        let Self { unanswered, half_answered, half_restored, leaving, lingering, parting, parted, .. } = self;
        for patience in [unanswered, half_answered, half_restored, leaving, lingering, parting, parted] {
            patience.over(request);
        }
        self.still_asleep.only(|(of, _)| of != request);
    }
}
