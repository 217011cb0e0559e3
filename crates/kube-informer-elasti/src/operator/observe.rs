//! What an ElastiService names, as it is: the public Service and the target, watched from the beginning.
//!
//! Each is found, or it is said what is wrong with it and what to do.

use std::sync::{Arc, PoisonError};

use k8s_openapi::api::core::v1::Service;
use kube_informer::informer::Cause;
use kube_informer::manager::{AddError, RequestWatch, Watch, WatchState};
use kube_informer::resource::Resource;

use super::Inner;
use super::desired;
use super::reconcile::One;
use super::report::{Replicas, Report, SERVICE_FOUND, TARGET_FOUND};
use crate::ops_informer::{FollowError, TargetState};

impl One<'_> {
    /// Watches the public Service, and no other one any more.
    async fn watch_service(&self) -> Result<Watch, AddError> {
        let Inner { manager, watched, .. } = self.inner();
        let (namespace, name) = (self.object.namespace(), self.spec().service.as_str());
        let owner = super::owner(self.request());
        let watch = RequestWatch::new(owner, Resource::of::<Service>(), namespace, name).wait_for_target();
        let key = watch.key();
        let before = watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(self.request().clone(), key.clone());
        if let Some(before) = before.filter(|before| *before != key) {
            manager.stop(&before).await;
        }
        manager.add(watch).await
    }

    /// The public Service, if something can be done for it.
    pub(super) async fn public_service(&self, report: &mut Report) -> Option<Arc<Service>> {
        let (namespace, name) = (self.object.namespace(), &self.spec().service);
        let watch = match self.watch_service().await {
            Ok(watch) => watch,
            Err(error) => {
                let reason =
                    if matches!(error, AddError::Forbidden { .. }) { "Forbidden" } else { "NotWatched" };
                report.wrong(
                    SERVICE_FOUND,
                    reason,
                    format!("{error}; allow the operator to get, list and watch services"),
                );
                return None;
            }
        };
        let Some(object) = watch.get() else {
            let missing =
                format!("there is no Service {namespace}/{name}: create it, or correct spec.service");
            let (reason, words) = match watch.state() {
                WatchState::Stale { why, .. } if why.cause == Cause::Forbidden => {
                    ("Forbidden", format!("{why}: allow the operator to get, list and watch services"))
                }
                state @ (WatchState::Stale { .. }
                | WatchState::Starting
                | WatchState::Restarting
                | WatchState::Stopped) => (
                    "NotWatched",
                    format!("whether there is a Service {namespace}/{name} is not known: {state}"),
                ),
                _ => ("NotFound", missing),
            };
            report.wrong(SERVICE_FOUND, reason, words);
            return None;
        };
        let service = match object.cast::<Service>().view() {
            Ok(service) => service,
            Err(error) => {
                report.wrong(
                    SERVICE_FOUND,
                    "Unreadable",
                    format!("the Service {name} cannot be read: {error}"),
                );
                return None;
            }
        };
        if let Err(unfit) = desired::check(&service) {
            report.wrong(
                SERVICE_FOUND,
                unfit.reason(),
                format!("nothing can be done for the Service {name}: {unfit}"),
            );
            return None;
        }
        report.good(SERVICE_FOUND, "Found", format!("the Service {name} is there"));
        Some(service)
    }

    /// What the target is, and that it is watched.
    pub(super) async fn target(&self, report: &mut Report) -> Option<Resource> {
        match self.inner().ops.follow(self.request(), &self.elasti).await {
            Ok(resource) => Some(resource),
            Err(error) => {
                if matches!(error, FollowError::UnknownKind { .. }) {
                    report.replicas = Replicas::NoTarget;
                }
                report.wrong(TARGET_FOUND, error.reason(), error.to_string());
                None
            }
        }
    }

    pub(super) fn say_target(&self, state: &TargetState, report: &mut Report) {
        let named = &self.spec().scale_target_ref;
        match &state.target {
            Some(target) => {
                report.replicas = Replicas::Are(target.spec_replicas);
                match state.stale.as_ref().filter(|_| state.stale_lasts) {
                    Some(stale) => {
                        let words = format!(
                            "what is known of {named} and its pods may be old, so nothing is switched to them: {stale}"
                        );
                        report.unsure(TARGET_FOUND, "Stale", words);
                    }
                    None => report.good(TARGET_FOUND, "Found", format!("{named} is there")),
                }
            }
            None => {
                report.replicas = Replicas::NoTarget;
                let words = format!(
                    "{named} is not there ({}): create it, or correct spec.scaleTargetRef",
                    state.why
                );
                report.wrong(TARGET_FOUND, "NotFound", words);
            }
        }
    }
}
