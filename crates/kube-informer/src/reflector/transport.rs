//! What the reflector asks of a server: one request, one response whose body is read as it comes.
//!
//! The trait is all that it knows of HTTP, so that scripts can play the server on paused time.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use crate::resource::Resource;

/// One GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// `/api/v1/pods`
    pub(crate) path: Cow<'static, str>,
    /// In the order in which they are sent.
    pub(crate) query: Vec<(&'static str, String)>,
    /// In which forms the response may be.
    pub(crate) accept: &'static str,
}

impl Request {
    /// What is asked for, to be read by people: `LIST /api/v1/pods?limit=500`.
    pub(crate) fn described(&self) -> String {
        let watches = self.query.iter().any(|(key, _)| *key == "watch");
        format!("{} {}", if watches { "WATCH" } else { "LIST" }, self.uri())
    }

    /// Path and query, encoded.
    pub(crate) fn uri(&self) -> String {
        let mut out = self.path.clone().into_owned();
        for (index, (key, value)) in self.query.iter().enumerate() {
            out.push(if index == 0 { '?' } else { '&' });
            out.push_str(key);
            out.push('=');
            out.extend(form_urlencoded::byte_serialize(value.as_bytes()));
        }
        out
    }
}

/// What came back, before its body.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Box<dyn Body>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

/// A chunk to come.
pub(crate) type Chunk<'b> = Pin<Box<dyn Future<Output = Option<Result<Bytes, Failure>>> + Send + 'b>>;

/// A body that is read chunk by chunk.
pub(crate) trait Body: Send {
    /// The next chunk; `None` at the end. To be called again if it was dropped before it was ready: nothing is lost by
    /// that.
    fn chunk(&mut self) -> Chunk<'_>;

    /// From now on what comes may wait for more of it, for as long as was agreed.
    fn gather(&mut self) {}
}

/// What a [`Failure`] says where a connection that worked was closed by the other side.
pub(crate) const CLOSED: &str = "the server has closed the connection";

/// A request that got no response, or a body that broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    /// Nobody listens there: the server is starting, or gone.
    pub(crate) refused: bool,
    /// The server's certificate is of no authority that is known here, and those can be read anew.
    pub(crate) untrusted: bool,
    /// What happened, with its causes.
    pub(crate) message: String,
}

/// Sends requests to one server.
pub(crate) trait Transport: Send + Sync {
    /// Sends one request.
    fn send(&self, request: Request) -> impl Future<Output = Result<Response, Failure>> + Send;

    /// The server did not accept the credentials, or is not trusted: reads them and the authorities anew, if they can be read anew.
    fn reload_credentials(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The resource is not served: is it gone, and all its objects with it?
    fn absence(&self, resource: &Resource) -> impl Future<Output = Absence> + Send {
        let _ = resource;
        std::future::ready(Absence::NotProven("nothing can be proven here".to_owned()))
    }
}

/// Whether a resource is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It is, and so are its objects.
    Proven,
    /// It may be there, for this reason.
    NotProven(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_as_a_uri() {
        let query = vec![("labelSelector", "a in (b,c),d!=e f".to_owned()), ("watch", "1".to_owned())];
        let request = Request { path: Cow::Borrowed("/api/v1/pods"), query, accept: "application/json" };
        assert_eq!(request.uri(), "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29%2Cd%21%3De+f&watch=1");
        assert_eq!(request.described(), format!("WATCH {}", request.uri()));
        let list = Request { query: vec![("limit", "500".to_owned())], ..request };
        assert_eq!(list.described(), "LIST /api/v1/pods?limit=500");
    }
}
