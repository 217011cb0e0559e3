//! What is told to people: the status, where it differs, and events of what is new in it.

use jiff::Timestamp;
use kube_informer::controller::{Action, BoxError, Context};
use kube_informer::object::Object;
use kube_informer::write::{Status, WriteError};
use serde_json::Value;

use super::report::{READY, Report};
use super::world::{self, WorldError};
use super::{NAME, Operator};
use crate::api::{ElastiService, ElastiServiceStatus};

impl Operator {
    /// Says what only people can help with, and tries it again later. Everything else is tried again at once.
    pub(super) async fn complain(
        &self,
        context: &Context<ElastiService>,
        object: &Object<ElastiService>,
        error: BoxError,
    ) -> Result<Action, BoxError> {
        let (reason, words) = if let Some(error) = error.downcast_ref::<WorldError>()
            && error.is_for_people()
        {
            (error.reason(), error.words())
        } else if let Some(WriteError::Failed { source, .. }) = error.downcast_ref()
            && let kube_client::Error::Api(status) = &**source
        {
            match status.code {
                401 | 403 => (
                    "Forbidden",
                    format!(
                        "{error}; allow the operator's ServiceAccount to patch elastiservices and their status"
                    ),
                ),
                400 | 422 => (
                    "Rejected",
                    format!(
                        "{error}; write it as the definition of ElastiServices says, or look at what checks writes"
                    ),
                ),
                _ => return Err(error),
            }
        } else {
            return Err(error);
        };
        let mut report = Report::default();
        report.wrong(READY, reason, words.clone());
        // What cannot be written there either is told all the same.
        if self.say(context, object, report).await.is_err() {
            self.inner.recorder.warning(object, reason, READY, words);
        }
        Ok(Action::requeue_after(self.inner.settings.retry))
    }

    /// Writes the status, where it differs, and tells people what is new.
    pub(super) async fn say(
        &self,
        context: &Context<ElastiService>,
        object: &Object<ElastiService>,
        report: Report,
    ) -> Result<(), BoxError> {
        let (status, news) = report.follow(&status_of(object), object.generation(), Timestamp::now());
        let mut patch = serde_json::to_value(&status)?;
        if let Value::Object(patch) = &mut patch {
            // Others write it.
            patch.remove("lastScaledUpTime");
            if status.replicas.is_none() {
                patch.insert("replicas".to_owned(), Value::Null);
            }
        }
        let writer = Status::of::<ElastiService>(self.inner.factory.client()).manager(NAME);
        match writer.patch(object, &patch).await {
            Ok(written) => _ = world::wrote(context, written),
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for each in news {
            let (reason, words) = (each.reason.as_str(), each.words);
            if each.warning {
                self.inner.recorder.warning(object, reason, each.action, words);
            } else {
                self.inner.recorder.normal(object, reason, each.action, words);
            }
        }
        Ok(())
    }
}

/// The status as the cache has it. What somebody else has written there, and cannot be read, is written anew.
pub(super) fn status_of(object: &Object<ElastiService>) -> ElastiServiceStatus {
    object.pointer::<ElastiServiceStatus>("/status").ok().flatten().unwrap_or_default()
}
