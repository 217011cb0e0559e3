//! What a scenario holds: a server, a namespace there, and the transcript of what was answered.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, Method};
use kube_informer_apiserver::Server;
use kube_informer_testbed::http::{Endpoint, Streaming};
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};

/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server as one scenario sees it.
pub(crate) struct Api {
    endpoint: Endpoint,
    /// Where this is the embedded server.
    pub(crate) embedded: Option<Arc<Server>>,
    /// In the names of everything that this scenario makes outside its namespace.
    unique: String,
    /// The scenario's own namespace.
    pub(crate) namespace: String,
    transcript: Mutex<Vec<Value>>,
    /// To be deleted at the end.
    made: Mutex<Vec<String>>,
}

/// What was answered.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    asked: String,
}

/// A running watch.
pub(crate) struct Watch<'a> {
    api: &'a Api,
    stream: Streaming,
    asked: String,
    seen: usize,
}

impl Api {
    pub(crate) async fn new(
        endpoint: Endpoint,
        embedded: Option<Arc<Server>>,
        unique: String,
    ) -> Result<Self> {
        let namespace = format!("scn-{unique}");
        let body =
            json!({ "metadata": { "name": namespace, "labels": { "kube-informer.dev/test": "true" } } });
        endpoint.post("/api/v1/namespaces", &body).await?.success()?;
        Ok(Self {
            endpoint,
            embedded,
            unique,
            namespace,
            transcript: Mutex::default(),
            made: Mutex::default(),
        })
    }

    /// A name that no other scenario has.
    pub(crate) fn name(&self, base: &str) -> String {
        format!("{base}-{}", self.unique)
    }

    /// A group of custom resources that no other scenario has.
    pub(crate) fn group(&self) -> String {
        format!("{}.example.com", self.unique)
    }

    /// The path behind a short form: `configmaps/a` is in the core group and in the scenario's namespace,
    /// `apps/v1:deployments/a` in another group, and everything that starts with a slash is itself.
    pub(crate) fn path(&self, short: &str) -> String {
        let namespace = &self.namespace;
        let head = short.split(['?', '/']).next().unwrap_or_default();
        if short.starts_with('/') {
            return short.to_owned();
        }
        match short.split_once(':') {
            Some((group, rest))
                if head.len() < short.len()
                    && !head.contains(':')
                    && group.contains('/')
                    && !group.contains('?') =>
            {
                format!("/apis/{group}/namespaces/{namespace}/{rest}")
            }
            _ => format!("/api/v1/namespaces/{namespace}/{short}"),
        }
    }

    /// Sends anything and records the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        short: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        let path = self.path(short);
        let asked = format!("{method} {short}");
        let response = self.endpoint.request(method.clone(), &path, header_map(headers)?, body).await?;
        let body = match serde_json::from_slice(&response.body) {
            Ok(value) => value,
            Err(_) => Value::String(response.text().into_owned()),
        };
        let code = response.status.as_u16();
        if code == 201 && !path.contains("dryRun") {
            self.remember(&path, &method, &body);
        }
        self.record(&asked, code, &response.headers, &body);
        Ok(Answer { code, body, asked })
    }

    /// Sends anything and records nothing.
    pub(crate) async fn unrecorded(
        &self,
        method: Method,
        short: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        let response =
            self.endpoint.request(method.clone(), &self.path(short), header_map(headers)?, body).await?;
        let body = serde_json::from_slice(&response.body).unwrap_or_default();
        Ok(Answer { code: response.status.as_u16(), body, asked: format!("{method} {short}") })
    }

    /// Asks without recording.
    pub(crate) async fn peek(&self, short: &str) -> Result<Answer> {
        let response = self.endpoint.get(&self.path(short)).await?;
        let body = serde_json::from_slice(&response.body).unwrap_or_default();
        Ok(Answer { code: response.status.as_u16(), body, asked: format!("GET {short}") })
    }

    /// Creates without recording.
    pub(crate) async fn prepare(&self, path: &str, body: &Value) -> Result<()> {
        let made = self.endpoint.post(&self.path(path), body).await?.success()?.json()?;
        self.remember(&self.path(path), &Method::POST, &made);
        Ok(())
    }

    /// Asks for a form without recording.
    pub(crate) async fn quiet_as(&self, path: &str, accept: &str) -> Result<(u16, Value)> {
        let headers = header_map(&[("accept", accept)])?;
        let response = self.endpoint.request(Method::GET, &self.path(path), headers, "").await?;
        Ok((response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default()))
    }

    /// Asks, without recording, until the answer is as wanted.
    pub(crate) async fn until(&self, short: &str, wanted: impl Fn(&Answer) -> bool) -> Result<Answer> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.peek(short).await?;
            if wanted(&answer) {
                return Ok(answer);
            }
            if tokio::time::Instant::now() > deadline {
                bail!("{short} did not become what was wanted: {} {}", answer.code, answer.body);
            }
            // tidy: allow-sleep a server can only be asked again
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn get(&self, short: &str) -> Result<Answer> {
        self.send(Method::GET, short, &[], "").await
    }

    pub(crate) async fn get_as(&self, short: &str, accept: &str) -> Result<Answer> {
        self.send(Method::GET, short, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, short: &str, body: &Value) -> Result<Answer> {
        self.send(Method::POST, short, JSON, body.to_string()).await
    }

    pub(crate) async fn put(&self, short: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PUT, short, JSON, body.to_string()).await
    }

    pub(crate) async fn delete(&self, short: &str) -> Result<Answer> {
        self.send(Method::DELETE, short, &[], "").await
    }

    pub(crate) async fn delete_with(&self, short: &str, options: &Value) -> Result<Answer> {
        self.send(Method::DELETE, short, JSON, options.to_string()).await
    }

    /// PATCH; `format` is `json`, `merge` or `strategic-merge`.
    pub(crate) async fn patch(&self, short: &str, format: &str, body: &Value) -> Result<Answer> {
        let media = format!("application/{format}-patch+json");
        self.send(Method::PATCH, short, &[("content-type", &media)], body.to_string()).await
    }

    pub(crate) async fn merge(&self, short: &str, body: &Value) -> Result<Answer> {
        self.patch(short, "merge", body).await
    }

    /// Starts a watch; `short` names everything but `watch=true`.
    pub(crate) async fn watch(&self, short: &str) -> Result<Watch<'_>> {
        self.watch_as(short, "application/json").await
    }

    pub(crate) async fn watch_as(&self, short: &str, accept: &str) -> Result<Watch<'_>> {
        let separator = if short.contains('?') { '&' } else { '?' };
        let path = format!("{}{separator}watch=true", self.path(short));
        let headers = header_map(&[("accept", accept)])?;
        let mut stream = self.endpoint.stream(Method::GET, &path, headers, "").await?;
        let asked = format!("WATCH {short}");
        let code = stream.status.as_u16();
        let mut body = Value::Null;
        if code != 200 {
            let mut text = Vec::new();
            while let Some(chunk) = stream.chunk().await? {
                text.extend_from_slice(&chunk);
            }
            body = serde_json::from_slice(&text)
                .unwrap_or_else(|_| String::from_utf8_lossy(&text).into_owned().into());
        }
        let headers = stream.headers.clone();
        self.record(&asked, code, &headers, &body);
        Ok(Watch { api: self, stream, asked, seen: 0 })
    }

    /// Without credentials, or with others: not recorded under the scenario's own user.
    pub(crate) async fn send_as(&self, token: Option<&str>, method: Method, short: &str) -> Result<Answer> {
        self.send_as_somebody(token, method, short, &[]).await
    }

    /// The same with a token, and with headers.
    pub(crate) async fn send_as_with(
        &self,
        token: &str,
        method: Method,
        short: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        self.send_as_somebody(Some(token), method, short, headers).await
    }

    async fn send_as_somebody(
        &self,
        token: Option<&str>,
        method: Method,
        short: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let access = self.endpoint.access();
        let mut other = Access::anonymous(access.url.clone());
        other.ca_pem.clone_from(&access.ca_pem);
        if let Some(token) = token {
            other = other.with_token(token);
        }
        let endpoint = Endpoint::new(other)?;
        let response = endpoint.request(method.clone(), &self.path(short), header_map(headers)?, "").await?;
        let asked = format!("{method} {short} as somebody else");
        let body = serde_json::from_slice(&response.body)
            .unwrap_or_else(|_| Value::String(response.text().into_owned()));
        self.record(&asked, response.status.as_u16(), &response.headers, &body);
        Ok(Answer { code: response.status.as_u16(), body, asked })
    }

    /// Puts something that is no answer into the transcript.
    pub(crate) fn note(&self, what: &str, value: Value) {
        self.push(json!({ "step": what, "value": value }));
    }

    /// Takes the last entry back: of what differs by nature, a note says what counts.
    pub(crate) fn forget_last(&self) {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner).pop();
    }

    /// Empties the transcript: what only one server can be asked is not compared.
    pub(crate) fn forget(&self) {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn record(&self, asked: &str, code: u16, headers: &HeaderMap, body: &Value) {
        let mut kept = serde_json::Map::new();
        for name in [CONTENT_TYPE, RETRY_AFTER, WARNING] {
            let values: Vec<Value> =
                headers.get_all(&name).iter().map(|v| String::from_utf8_lossy(v.as_bytes()).into()).collect();
            if !values.is_empty() {
                kept.insert(name.to_string(), values.into());
            }
        }
        self.push(json!({ "step": asked, "code": code, "headers": kept, "body": body }));
    }

    fn push(&self, entry: Value) {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    fn remember(&self, path: &str, method: &Method, body: &Value) {
        let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let made = match *method {
            Method::PUT => path.to_owned(),
            _ if name.is_empty() || body.pointer("/metadata/uid").is_none() => return,
            _ => format!("{path}/{name}"),
        };
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(made);
    }

    /// What was recorded, and what the scenario's own names look like in it.
    pub(crate) fn transcript(&self) -> (Vec<Value>, &str) {
        (self.transcript.lock().unwrap_or_else(PoisonError::into_inner).clone(), &self.unique)
    }

    /// Removes what the scenario made, newest first, and its namespace.
    pub(crate) async fn clean_up(&self) -> Result<()> {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let namespace = format!("/api/v1/namespaces/{}", self.namespace);
        for path in made.into_iter().rev().chain([namespace]) {
            let deleted = self.endpoint.delete(&format!("{path}?gracePeriodSeconds=0")).await?;
            let body: Value = serde_json::from_slice(&deleted.body).unwrap_or_default();
            let has = |pointer: &str| {
                body.pointer(pointer).and_then(Value::as_array).is_some_and(|f| !f.is_empty())
            };
            if has("/metadata/finalizers") && body["kind"] != "CustomResourceDefinition"
                || body["status"] == "Success"
            {
                let nothing = json!({ "metadata": { "finalizers": null } });
                self.endpoint.merge_patch(&path, &nothing).await?;
            }
            if body["kind"] == "Namespace" {
                let mut body = self.endpoint.get(&path).await?.json()?;
                body["spec"] = json!({ "finalizers": [] });
                self.endpoint.put(&format!("{path}/finalize"), &body).await?;
            }
        }
        Ok(())
    }
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn header_map(headers: &[(&str, &str)]) -> Result<HeaderMap> {
    let mut map = HeaderMap::new();
    map.insert(USER_AGENT, HeaderValue::from_static("scenario/1.0"));
    for (name, value) in headers {
        let (name, value) = (HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        match name == USER_AGENT {
            true => drop(map.insert(name, value)),
            // One may be in several groups.
            false => drop(map.append(name, value)),
        }
    }
    Ok(map)
}

impl Answer {
    /// This answer, which must have this code.
    pub(crate) fn code(self, wanted: u16) -> Result<Self> {
        if self.code == wanted {
            return Ok(self);
        }
        bail!("{}: {} instead of {wanted}: {}", self.asked, self.code, self.body)
    }

    /// This refusal, which must have this code and reason.
    pub(crate) fn refused(self, code: u16, reason: &str) -> Result<Self> {
        if self.code == code && self.body["reason"] == reason {
            return Ok(self);
        }
        bail!("{}: {} instead of {code} {reason}: {}", self.asked, self.code, self.body)
    }

    /// The code and the reason.
    pub(crate) fn verdict(&self) -> Value {
        json!({ "code": self.code, "reason": self.body["reason"] })
    }

    fn text(&self, pointer: &str) -> String {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The object's (or list's) version.
    pub(crate) fn version(&self) -> String {
        self.text("/metadata/resourceVersion")
    }

    pub(crate) fn uid(&self) -> String {
        self.text("/metadata/uid")
    }

    pub(crate) fn name(&self) -> String {
        self.text("/metadata/name")
    }

    pub(crate) fn next_page(&self) -> String {
        self.text("/metadata/continue")
    }
}

impl Watch<'_> {
    /// Reads and records this many events, bookmarks apart unless they are the kind that ends an initial list.
    pub(crate) async fn events(&mut self, count: usize) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while events.len() < count {
            let event = self.next().await?.with_context(|| format!("{}: ended early", self.asked))?;
            // Ordinary bookmarks come when they like.
            if event["type"] == "BOOKMARK" && !event.to_string().contains(INITIAL_END) {
                continue;
            }
            self.seen += 1;
            self.api.push(json!({ "step": format!("{} event {}", self.asked, self.seen), "event": event }));
            events.push(event);
        }
        Ok(events)
    }

    /// The watch must end by itself, without a further event.
    pub(crate) async fn ends(&mut self) -> Result<()> {
        while let Some(event) = self.next().await? {
            if event["type"] != "BOOKMARK" {
                bail!("{}: an event instead of the end: {event}", self.asked);
            }
        }
        self.api.note(&format!("{} ends", self.asked), true.into());
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Value>> {
        let line = tokio::time::timeout(PATIENCE, self.stream.line())
            .await
            .with_context(|| format!("{}: no event within {PATIENCE:?}", self.asked))??;
        line.map(|line| {
            serde_json::from_slice(&line)
                .with_context(|| format!("{}: no event: {}", self.asked, String::from_utf8_lossy(&line)))
        })
        .transpose()
    }
}

const INITIAL_END: &str = "k8s.io/initial-events-end";
