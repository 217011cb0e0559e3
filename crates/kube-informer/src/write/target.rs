//! One request to one object of a resource, known at compile time or not.

use std::fmt;
use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::{Client, Error};
use serde::Deserialize;
use serde_json::Value;

use super::{WriteError, Written};
use crate::connect::cause;
use crate::object::KeyRef;
use crate::resource::Resource;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A resource, and a client to write to it with.
#[derive(Clone)]
pub(super) struct Target {
    client: Client,
    pub(super) resource: Resource,
}

/// What is needed of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
}

/// How an object is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Merge,
    Apply,
}

/// What is tried, for errors: `add the finalizer x to pods default/web`.
pub(super) struct Tried<'a> {
    pub(super) what: &'a str,
    pub(super) resource: &'a Resource,
    pub(super) key: KeyRef<'a>,
}

impl fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.what, self.resource, self.key)
    }
}

impl Target {
    pub(super) fn new(client: Client, resource: Resource) -> Self {
        Self { client, resource }
    }

    pub(super) fn tried<'a>(&'a self, what: &'a str, key: KeyRef<'a>) -> Tried<'a> {
        Tried { what, resource: &self.resource, key }
    }

    /// The object's metadata as the server has it now.
    pub(super) async fn get(&self, tried: &Tried<'_>) -> Result<Answer, WriteError> {
        let request = Request::get(self.path(tried.key, "")).header(ACCEPT, "application/json");
        self.send(request.body(Vec::new()), tried).await
    }

    /// Patches the object, or a subresource of it.
    pub(super) async fn patch(
        &self,
        tried: &Tried<'_>,
        subresource: &str,
        form: Form,
        manager: Option<&str>,
        patch: &Value,
    ) -> Result<Answer, WriteError> {
        let content = match form {
            Form::Merge => "application/merge-patch+json",
            Form::Apply => "application/apply-patch+yaml",
        };
        let uri = format!("{}{}", self.path(tried.key, subresource), query(form, manager));
        let request = Request::patch(uri).header(ACCEPT, "application/json").header(CONTENT_TYPE, content);
        self.send(request.body(patch.to_string().into_bytes()), tried).await
    }

    async fn send(
        &self,
        request: Result<Request<Vec<u8>>, http::Error>,
        tried: &Tried<'_>,
    ) -> Result<Answer, WriteError> {
        let unfit =
            |error: http::Error| WriteError::Unfit { tried: tried.to_string(), why: error.to_string() };
        let answer = self.client.request::<Answer>(request.map_err(unfit)?);
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Error::Api(status))) if status.code == 404 => {
                Err(WriteError::Gone { tried: tried.to_string(), hint: "" })
            }
            Ok(Err(error)) => Err(WriteError::Failed {
                tried: tried.to_string(),
                why: cause::of_request(&error),
                source: Box::new(error),
            }),
            Err(_) => Err(WriteError::Silent { tried: tried.to_string(), patience: PATIENCE }),
        }
    }

    fn path(&self, key: KeyRef<'_>, subresource: &str) -> String {
        let namespace = Some(key.namespace).filter(|namespace| !namespace.is_empty()).map(segment);
        let mut path = format!("{}/{}", self.resource.path(namespace.as_deref()), segment(key.name));
        if !subresource.is_empty() {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }

    /// What was written, by the answer to it.
    pub(super) fn written(&self, key: KeyRef<'_>, answer: &Answer) -> Written {
        let version = answer.metadata.resource_version.as_deref().unwrap_or_default();
        Written::new(self.resource.clone(), key.namespace, version).named(key.name)
    }
}

fn query(form: Form, manager: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(manager) = manager {
        query.append_pair("fieldManager", manager);
    }
    if form == Form::Apply {
        query.append_pair("force", "true");
    }
    match query.finish() {
        query if query.is_empty() => query,
        query => format!("?{query}"),
    }
}

/// Whether the server says that the object is not what it was thought to be: another version, another UID.
pub(super) fn is_conflict(error: &WriteError) -> bool {
    matches!(error, WriteError::Failed { source, .. } if matches!(&**source, Error::Api(status) if status.code == 409))
}

/// Whether the server says that what was sent is not allowed.
pub(super) fn is_invalid(error: &WriteError) -> bool {
    matches!(error, WriteError::Failed { source, .. } if matches!(&**source, Error::Api(status) if status.code == 422))
}

/// A name as part of a path. Names of some kinds may have almost any character.
fn segment(name: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' => {
                out.push(char::from(byte));
            }
            // Writing to a string does not fail.
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_part_of_a_path() {
        assert_eq!(segment("system:node-1.example"), "system:node-1.example");
        assert_eq!(segment("a/../b?c#d e%ü"), "a%2F..%2Fb%3Fc%23d%20e%25%C3%BC");
    }

    #[test]
    fn who_writes_is_part_of_the_query() {
        assert_eq!(query(Form::Merge, None), "");
        assert_eq!(query(Form::Merge, Some("a b")), "?fieldManager=a+b");
        assert_eq!(query(Form::Apply, Some("x")), "?fieldManager=x&force=true");
    }
}
