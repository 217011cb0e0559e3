//! How it is found out whether a watch can be. Everybody who asks for it looks for themselves, for as long as they want to: the
//! first who is content makes it so, and who is not goes without. It is given up when the last one has gone.

use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use kube_client::Error;
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout, timeout_at};

use super::Inner;
use super::entry::{Entry, Life, Progress, later};
use super::error::AddError;
use super::joining::ended;
use super::request::RequestWatch;
use crate::connect::cause;
use crate::informer::spec::Spec;
use crate::informer::{Cause, Scope, State};

/// How long the server may take to say whether an object is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// When it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Only what is needed to know that it is there.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";

/// What the server says of an object.
enum Asked {
    There,
    NotThere,
    /// It does not say.
    Forbidden,
    Failed(String),
}

impl Inner {
    pub(super) async fn add(self: &Arc<Self>, request: &RequestWatch) -> Result<Arc<Entry>, AddError> {
        let scope = Scope::object(request.namespace.as_str(), request.name.as_str());
        if let Some(problem) = Spec::new(request.resource.clone(), scope).problem() {
            let target = format!("{} {}/{}", request.resource, request.namespace, request.name);
            return Err(AddError::Invalid { target, problem });
        }
        let deadline = request.deadline.unwrap_or_else(|| self.settings().sync_deadline);
        let until = later(Instant::now(), deadline);
        let mut waiting = self.enter(request)?;
        let entry = Arc::clone(&waiting.entry);
        let mut life = entry.life.subscribe();
        let waits = request.waits;
        let decided = tokio::select! {
            biased;
            // It is over, or somebody else was content; who does not insist on the object is so, too.
            _ = life.wait_for(|life| life.is_over() || (waits && *life == Life::Ready)) => Ok(()),
            decided = self.decide(&entry, waits, until, deadline) => decided,
        };
        if let Err(error) = decided {
            // Nothing is left when this returns.
            ended(waiting.leave()).await;
            return Err(error);
        }
        if !self.succeed(&entry) {
            return Err(AddError::Stopped { target: entry.target() });
        }
        Ok(entry)
    }

    async fn decide(
        &self,
        entry: &Entry,
        waits: bool,
        until: Instant,
        deadline: Duration,
    ) -> Result<(), AddError> {
        let mut unsure = None;
        let error = match timeout_at(until, self.verify(entry, waits, &mut unsure)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => {
                let why = unsure.unwrap_or_else(|| self.obstacle(entry));
                AddError::NotSynced { target: entry.target(), deadline, why }
            }
        };
        if waits {
            tracing::debug!(manager = %self.name(), watch = %entry.key, %error, "watched from afar");
            return Ok(());
        }
        Err(error)
    }

    /// Waits until it is known whether the object is there. Where cache and server do not agree, it says so meanwhile.
    async fn verify(&self, entry: &Entry, waits: bool, unsure: &mut Option<String>) -> Result<(), AddError> {
        let mut progress = entry.progress.subscribe();
        loop {
            let known = progress.borrow_and_update().clone();
            let target = || entry.target();
            match known {
                Progress::Known(true) => return Ok(()),
                Progress::Known(false) if waits => return Ok(()),
                // What a cache lacks may have been made after it was filled.
                Progress::Known(false) => {
                    *unsure = Some(match self.ask(entry).await {
                        Asked::NotThere | Asked::Forbidden => {
                            return Err(AddError::NotFound { target: target() });
                        }
                        Asked::There => "the server has it, and the cache not yet".to_owned(),
                        Asked::Failed(why) => {
                            format!("it is not in the cache, and the server cannot be asked: {why}")
                        }
                    });
                    // Either may change its mind.
                    drop(timeout(AGAIN, progress.changed()).await);
                    continue;
                }
                Progress::Failing(State::Stale { why, .. }) => match why.cause {
                    Cause::Forbidden => {
                        return Err(AddError::Forbidden { target: target(), why: why.to_string() });
                    }
                    // That may be long ago: it may be served by now, and the informer not have tried again.
                    Cause::NotServed => {
                        if !matches!(self.ask(entry).await, Asked::There) {
                            return Err(AddError::UnknownResource { target: target(), why: why.to_string() });
                        }
                        *unsure = Some("the server has it, and the informer has not tried again".to_owned());
                        drop(timeout(AGAIN, progress.changed()).await);
                        continue;
                    }
                    _ => {}
                },
                Progress::Unknown | Progress::Failing(_) => {}
            }
            // The sender is in the entry.
            let _ = progress.changed().await;
        }
    }

    /// Asks the server itself whether the object is there. Not many at a time: each takes a connection.
    async fn ask(&self, entry: &Entry) -> Asked {
        let group = &entry.group;
        let namespace = Some(group.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let path = format!("{}/{}", group.resource.path(namespace), entry.name);
        let request = match http::Request::get(path).header(ACCEPT, METADATA).body(Vec::new()) {
            Ok(request) => request,
            Err(error) => return Asked::Failed(error.to_string()),
        };
        let asked = async {
            // It is never closed.
            let _one = self.asking.acquire().await;
            self.factory.client().request::<IgnoredAny>(request).await
        };
        match timeout(PATIENCE, asked).await {
            Ok(Ok(_)) => Asked::There,
            Ok(Err(Error::Api(status))) if status.code == 404 => Asked::NotThere,
            Ok(Err(Error::Api(status))) if status.code == 403 => Asked::Forbidden,
            Ok(Err(error)) => Asked::Failed(cause::of_request(&error)),
            Err(_) => Asked::Failed(format!("no answer within {PATIENCE:?}")),
        }
    }

    /// Why nothing is known, in words.
    fn obstacle(&self, entry: &Entry) -> String {
        let informer = {
            let state = self.lock();
            let feed = state.groups.get(&entry.group).and_then(|group| group.feed_of(&entry.name));
            feed.and_then(|feed| feed.informer())
        };
        match informer {
            Some(informer) => format!("its informer is {}", informer.health().state),
            None => "its informer has not begun".to_owned(),
        }
    }
}
