//! How a target is woken, and put to sleep: through its scale subresource, whatever kind it is.
//!
//! - What is compared is what is *wanted* (`spec.replicas`), not what is there yet: a target whose sleep is not over is woken
//!   all the same.
//! - [`up`](Scaler::up) never takes replicas away, and never leads to zero. Only [`down_to_zero`](Scaler::down_to_zero) does.
//! - A write is by version: where others have changed the target since it was read, it is read and compared again, a bounded
//!   number of times. So nobody's write is undone by one that knew nothing of it.
//! - Nothing takes longer than ten seconds, or than is [said](Scaler::patience). Errors say what was tried, what the server
//!   said, and what to do.

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use kube_client::{Client, Error};
use kube_informer::factory::Factory;
use kube_informer::informer::Written;
use kube_informer::resource::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod error;

pub use error::ScaleError;

/// Scales targets. See the [module](self). A clone is the same.
#[derive(Clone)]
pub struct Scaler {
    origin: Origin,
    patience: Duration,
}

#[derive(Clone)]
enum Origin {
    Client(Client),
    Factory(Factory),
}

/// What came of scaling.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scaled {
    /// How many replicas were wanted before.
    pub before: i32,
    /// How many are wanted now.
    pub now: i32,
    /// What was written; `None` where there was nothing to do.
    pub written: Option<Written>,
}

/// How often a write is tried that others come before.
const TRIES: u32 = 6;

/// How long it is waited after the first such try; twice as long after each more.
const PAUSE: Duration = Duration::from_millis(20);

/// How long it may take in all.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a number of replicas becomes another one; `None` where it stays.
type Change<'a> = &'a (dyn Fn(i32) -> Option<i32> + Send + Sync);

impl Scaler {
    /// One that uses a client as it is.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { origin: Origin::Client(client), patience: PATIENCE }
    }

    /// One that uses the client that a factory has at the time: credentials are read anew there.
    #[must_use]
    pub fn of(factory: &Factory) -> Self {
        Self { origin: Origin::Factory(factory.clone()), patience: PATIENCE }
    }

    /// How long it may take in all to scale a target. Ten seconds unless said otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Wakes a target: sees to it that at least so many replicas are wanted.
    ///
    /// # Errors
    ///
    /// Where less than one replica is asked for, the target is not there or cannot be scaled, or the server does not let it be.
    pub async fn up(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        to: i32,
    ) -> Result<Scaled, ScaleError> {
        let target = Target::new(format_args!("scale up to {to}"), resource, namespace, name);
        self.raise(&target, to, &|now| (now < to).then_some(to)).await
    }

    /// Wakes a target that sleeps, in one write; one that has any replicas stays as it is.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub async fn wake_if_asleep(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        to: i32,
    ) -> Result<Scaled, ScaleError> {
        let target = Target::new(format_args!("wake to {to}"), resource, namespace, name);
        self.raise(&target, to, &|now| (now == 0).then_some(to)).await
    }

    /// Puts a target to sleep: no replica of it is wanted any more.
    ///
    /// # Errors
    ///
    /// Where the target is not there or cannot be scaled, or the server does not let it be.
    pub async fn down_to_zero(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Scaled, ScaleError> {
        let target = Target::new("scale down to zero", resource, namespace, name);
        self.change(&target, &|now| (now != 0).then_some(0)).await
    }

    async fn raise(&self, target: &Target<'_>, to: i32, change: Change<'_>) -> Result<Scaled, ScaleError> {
        if to < 1 {
            return Err(ScaleError::Refused { tried: target.tried.clone(), to });
        }
        match self.change(target, change).await {
            // What says nothing about its replicas has one: that may be enough.
            Err(ScaleError::Unset { .. }) if change(1).is_none() => {
                Ok(Scaled { before: 1, now: 1, written: None })
            }
            scaled => scaled,
        }
    }

    async fn change(&self, target: &Target<'_>, change: Change<'_>) -> Result<Scaled, ScaleError> {
        let patience = self.patience;
        let changed = tokio::time::timeout(patience, self.try_to_change(target, change)).await;
        changed.unwrap_or_else(|_| Err(ScaleError::Silent { tried: target.tried.clone(), patience }))
    }

    async fn try_to_change(&self, target: &Target<'_>, change: Change<'_>) -> Result<Scaled, ScaleError> {
        let mut pause = PAUSE;
        for tried in 1..=TRIES {
            let mut scale: Value = self.get(target).await?;
            // A Scale leaves a zero out.
            let before = match scale.pointer("/spec/replicas") {
                None | Some(Value::Null) => 0,
                Some(value) => {
                    value.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
                        let why = format!("the server gave {value} as spec.replicas");
                        ScaleError::Failed { tried: target.tried.clone(), why, source: None }
                    })?
                }
            };
            let Some(now) = change(before) else {
                return Ok(Scaled { before, now: before, written: None });
            };
            set_replicas(&mut scale, now);
            match self.send::<Value>(target.put(&scale)).await {
                Ok(answer) => {
                    let version = answer.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                    let written = version.map(|version| target.written(version));
                    tracing::info!(
                        target = %target.text(), before, now, "replicas of a target were changed"
                    );
                    return Ok(Scaled { before, now, written });
                }
                Err(Fault::Api(status)) if status.code == 409 && tried < TRIES => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(Fault::Api(status)) if status.code == 409 => {
                    return Err(ScaleError::Contended { tried: target.tried.clone(), times: TRIES });
                }
                Err(fault) => return Err(self.error(target, fault).await),
            }
        }
        Err(ScaleError::Contended { tried: target.tried.clone(), times: TRIES })
    }

    async fn get(&self, target: &Target<'_>) -> Result<Value, ScaleError> {
        match self.send::<Value>(target.get("/scale")).await {
            Ok(scale) => Ok(scale),
            Err(fault) => Err(self.error(target, fault).await),
        }
    }

    /// What a failure means.
    async fn error(&self, target: &Target<'_>, fault: Fault) -> ScaleError {
        let tried = target.tried.clone();
        let status = match fault {
            Fault::Unfit(why) => return ScaleError::Failed { tried, why, source: None },
            Fault::Failed(error) => {
                let why = chain(&error);
                return ScaleError::Failed { tried, why, source: Some(Box::new(error)) };
            }
            Fault::Api(status) => status,
        };
        let why = status.message.clone();
        match status.code {
            // Either there is no such object, or it has no such subresource: the answers look alike.
            404 => match self.send::<Value>(target.get("")).await {
                Ok(_) => ScaleError::Unsupported { tried, resource: target.resource.to_string() },
                Err(_) => ScaleError::NotFound { tried, why },
            },
            405 => ScaleError::Unsupported { tried, resource: target.resource.to_string() },
            // Credentials are read anew.
            401 => {
                let why = format!("the operator's credentials were not accepted ({why})");
                ScaleError::Failed { tried, why, source: Some(Box::new(Error::Api(status))) }
            }
            403 => ScaleError::Forbidden { tried, why, resource: Box::new(target.resource.clone()) },
            422 | 400 => ScaleError::Rejected { tried, why },
            500 if why.contains("spec replicas field") && why.contains("does not exist") => {
                ScaleError::Unset { tried, why }
            }
            _ => ScaleError::Failed { tried, why, source: Some(Box::new(Error::Api(status))) },
        }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, http::Error>,
    ) -> Result<T, Fault> {
        let request = request.map_err(|error| Fault::Unfit(error.to_string()))?;
        let client = match &self.origin {
            Origin::Client(client) => client.clone(),
            Origin::Factory(factory) => factory.client(),
        };
        match client.request(request).await {
            Ok(answer) => Ok(answer),
            Err(Error::Api(status)) => Err(Fault::Api(status)),
            Err(error) => Err(Fault::Failed(error)),
        }
    }
}

/// Why a request came to nothing.
enum Fault {
    Api(Box<kube_client::core::Status>),
    Failed(Error),
    Unfit(String),
}

/// What is scaled, and for what.
struct Target<'a> {
    resource: &'a Resource,
    namespace: &'a str,
    name: &'a str,
    /// For errors.
    tried: String,
}

impl<'a> Target<'a> {
    fn new(what: impl fmt::Display, resource: &'a Resource, namespace: &'a str, name: &'a str) -> Self {
        let tried = format!("{what} {resource} {namespace}/{name}");
        Self { resource, namespace, name, tried }
    }

    fn get(&self, part: &str) -> Result<http::Request<Vec<u8>>, http::Error> {
        http::Request::get(self.path(part)).header(ACCEPT, "application/json").body(Vec::new())
    }

    fn put(&self, scale: &Value) -> Result<http::Request<Vec<u8>>, http::Error> {
        http::Request::put(self.path("/scale"))
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(scale.to_string().into_bytes())
    }

    fn path(&self, part: &str) -> String {
        let namespace = self.resource.namespaced.then(|| segment(self.namespace));
        format!("{}/{}{part}", self.resource.path(namespace.as_deref()), segment(self.name))
    }

    fn written(&self, version: &str) -> Written {
        let namespace = if self.resource.namespaced { self.namespace } else { "" };
        Written::new(self.resource.clone(), namespace, version)
    }

    fn text(&self) -> String {
        format!("{} {}/{}", self.resource, self.namespace, self.name)
    }
}

/// The Scale that was read, with another number: its version and UID stay in it, and are checked.
fn set_replicas(scale: &mut Value, replicas: i32) {
    match scale.get_mut("spec").and_then(Value::as_object_mut) {
        Some(spec) => _ = spec.insert("replicas".to_owned(), replicas.into()),
        None => {
            if let Some(scale) = scale.as_object_mut() {
                scale.insert("spec".to_owned(), json!({ "replicas": replicas }));
            }
        }
    }
}

/// A name as one part of a path, whatever somebody wrote into a spec.
pub(crate) fn segment(name: &str) -> String {
    use fmt::Write;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b':' => out.push(char::from(byte)),
            // Alone, or with another one, it would lead elsewhere.
            b'.' if !matches!(name, "." | "..") => out.push('.'),
            // Writing to a string does not fail.
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

/// An error with all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many say what their cause says.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl fmt::Debug for Scaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scaler").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_part_of_a_path() {
        assert_eq!(segment("web-1.example"), "web-1.example");
        assert_eq!(segment("../secrets/a?b#c d%ü"), "..%2Fsecrets%2Fa%3Fb%23c%20d%25%C3%BC");
        assert_eq!((segment(".."), segment(".")), ("%2E%2E".to_owned(), "%2E".to_owned()));
    }

    #[test]
    fn what_is_sent_keeps_what_was_read() {
        let mut scale = json!({ "metadata": { "resourceVersion": "7", "uid": "u" }, "spec": {} });
        set_replicas(&mut scale, 2);
        assert_eq!(
            scale,
            json!({ "metadata": { "resourceVersion": "7", "uid": "u" }, "spec": { "replicas": 2 } })
        );
        let mut scale = json!({ "metadata": {} });
        set_replicas(&mut scale, 1);
        assert_eq!(scale, json!({ "metadata": {}, "spec": { "replicas": 1 } }));
    }
}
