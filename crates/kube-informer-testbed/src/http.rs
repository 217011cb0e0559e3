//! A small HTTP client: what was sent and what came back, nothing in between.
//!
//! An [`Endpoint`] is a server and who one is there. Requests are HTTP/1.1 over TCP or TLS; nothing is
//! retried, decompressed, followed or decoded. [`Endpoint::request`] collects the answer within the
//! endpoint's deadline; [`Endpoint::stream`] returns once the head of the answer is there, and its body may go
//! on for ever. Every error names the method and the address.
//!
//! Clones share connections. A connection lives in the tokio runtime that opened it: do not share an endpoint
//! between tests, make one per test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

use crate::kubeconfig::{Access, Credentials};

/// A server and who one is there.
#[derive(Clone)]
pub struct Endpoint {
    access: Arc<Access>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    headers: HeaderMap,
    timeout: Duration,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as it came.
    pub body: Bytes,
    /// What was asked, for messages.
    asked: String,
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct Streaming {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Incoming,
    asked: String,
    /// What came after the last line that was taken.
    rest: BytesMut,
}

impl Endpoint {
    /// The endpoint that `access` describes.
    pub fn new(access: Access) -> Result<Self> {
        let mut headers = HeaderMap::new();
        if let Credentials::Token(token) = &access.credentials {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).context("a token fits no header")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if let Some(impersonate) = &access.impersonate {
            headers.insert("impersonate-user", HeaderValue::try_from(&impersonate.user)?);
            for group in &impersonate.groups {
                headers.append("impersonate-group", HeaderValue::try_from(group)?);
            }
        }
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls(&access).with_context(|| format!("in the access to {}", access.url))?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { access: Arc::new(access), client, headers, timeout: Duration::from_secs(30) })
    }

    /// The endpoint of a kubeconfig's current context.
    pub async fn from_kubeconfig(path: &Path) -> Result<Self> {
        Self::new(Access::read(path).await?)
    }

    /// Sets the deadline of a request and its answer, or of the head of a stream; 30 s unless told otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.access.url
    }

    /// How this endpoint gets in.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Sends a request and collects the answer, whatever its status.
    pub async fn request(
        &self,
        method: Method,
        path_and_query: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Response> {
        let asked = self.describe(&method, path_and_query);
        let exchange = async {
            let Streaming { status, headers, body, asked, .. } =
                self.send(method, path_and_query, headers, body.into()).await?;
            let body =
                body.collect().await.with_context(|| format!("{asked}: the body broke off"))?.to_bytes();
            Ok(Response { status, headers, body, asked })
        };
        self.in_time(&asked, exchange).await
    }

    /// Sends a request and returns when the head of the answer is there.
    pub async fn stream(
        &self,
        method: Method,
        path_and_query: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Streaming> {
        let asked = self.describe(&method, path_and_query);
        self.in_time(&asked, self.send(method, path_and_query, headers, body.into())).await
    }

    /// GET, whatever the status.
    pub async fn get(&self, path_and_query: &str) -> Result<Response> {
        self.request(Method::GET, path_and_query, HeaderMap::new(), Bytes::new()).await
    }

    /// GET of a JSON document; another status than 2xx is an error.
    pub async fn get_json(&self, path_and_query: &str) -> Result<Value> {
        self.get(path_and_query).await?.success()?.json()
    }

    /// POST of a JSON document, whatever the status.
    pub async fn post(&self, path_and_query: &str, body: &Value) -> Result<Response> {
        self.send_json(Method::POST, path_and_query, "application/json", body).await
    }

    /// PUT of a JSON document, whatever the status.
    pub async fn put(&self, path_and_query: &str, body: &Value) -> Result<Response> {
        self.send_json(Method::PUT, path_and_query, "application/json", body).await
    }

    /// PATCH with a JSON merge patch, whatever the status.
    pub async fn merge_patch(&self, path_and_query: &str, body: &Value) -> Result<Response> {
        self.send_json(Method::PATCH, path_and_query, "application/merge-patch+json", body).await
    }

    /// DELETE, whatever the status.
    pub async fn delete(&self, path_and_query: &str) -> Result<Response> {
        self.request(Method::DELETE, path_and_query, HeaderMap::new(), Bytes::new()).await
    }

    /// Sends a JSON document under a content type of its own, whatever the status.
    pub async fn send_json(
        &self,
        method: Method,
        path_and_query: &str,
        content_type: &'static str,
        body: &Value,
    ) -> Result<Response> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        self.request(method, path_and_query, headers, body.to_string()).await
    }

    async fn send(
        &self,
        method: Method,
        path_and_query: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Streaming> {
        let asked = self.describe(&method, path_and_query);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path_and_query}", self.access.url))
            .body(Full::new(body))
            .with_context(|| format!("{asked}: no valid request"))?;
        let all: &mut HeaderMap = request.headers_mut();
        all.clone_from(&self.headers);
        let mut previous: Option<HeaderName> = None;
        for (name, value) in headers {
            // `None` means one more value of the name before it.
            match name.or_else(|| previous.clone()) {
                Some(name) if previous.as_ref() == Some(&name) => {
                    all.append(name, value);
                }
                Some(name) => {
                    all.insert(name.clone(), value);
                    previous = Some(name);
                }
                None => {}
            }
        }
        let answer = self.client.request(request).await.with_context(|| format!("{asked}: no answer"))?;
        let (head, body) = answer.into_parts();
        Ok(Streaming { status: head.status, headers: head.headers, body, asked, rest: BytesMut::new() })
    }

    async fn in_time<T>(&self, asked: &str, exchange: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(result) => result,
            Err(_) => bail!("{asked}: no answer within {:?}", self.timeout),
        }
    }

    fn describe(&self, method: &Method, path_and_query: &str) -> String {
        format!("{method} {}{path_and_query}", self.access.url)
    }
}

impl std::fmt::Debug for Endpoint {
    /// Without the credentials: this ends up in test output.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.access.url).finish_non_exhaustive()
    }
}

impl Response {
    /// This response if its status is 2xx, otherwise an error with the body.
    pub fn success(self) -> Result<Self> {
        if self.status.is_success() {
            return Ok(self);
        }
        bail!("{}: {}: {}", self.asked, self.status, self.text().trim())
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{}: {}: the body is no JSON: {}", self.asked, self.status, self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

impl Streaming {
    /// The next piece of the body as it came; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        if !self.rest.is_empty() {
            return Ok(Some(self.rest.split().freeze()));
        }
        self.more().await
    }

    /// The next line of the body, without its end; `None` at the end of the body. Safe to cancel.
    pub async fn line(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let mut line = self.rest.split_to(end + 1);
                line.truncate(end);
                return Ok(Some(line.freeze()));
            }
            match self.more().await? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None if self.rest.is_empty() => return Ok(None),
                None => return Ok(Some(self.rest.split().freeze())),
            }
        }
    }

    async fn more(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.with_context(|| format!("{}: the body broke off", self.asked))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// The TLS settings of `access`, with ring and without the platform's certificates.
pub fn tls(access: &Access) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    if let Some(pem) = &access.ca_pem {
        for certificate in certificates(pem).context("bad certificate authority")? {
            roots.add(certificate).context("bad certificate authority")?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("ring lacks a protocol version")?
        .with_root_certificates(roots);
    let Credentials::ClientCertificate { cert_pem, key_pem } = &access.credentials else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).context("bad client key")?;
    let chain = certificates(cert_pem).context("bad client certificate")?;
    builder.with_client_auth_cert(chain, key).context("client certificate and key do not fit")
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>> {
    Ok(CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A server that reads one request, sends `answer` and keeps the request.
    async fn answering(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = socket.read(&mut request).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (url, served)
    }

    #[tokio::test]
    async fn credentials_and_headers_are_sent_and_the_answer_comes_back_as_it_is() {
        let (url, served) = answering("HTTP/1.1 418 Teapot\r\nx-a: b\r\ncontent-length: 2\r\n\r\nhi").await;
        let access = Access::anonymous(url).with_token("secret").acting_as("jane", &["dev", "ops"]);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("a/b"))]);
        let response =
            Endpoint::new(access).unwrap().request(Method::PUT, "/x?y=z", headers, "body").await.unwrap();
        assert_eq!(
            (response.status.as_u16(), &response.body[..], &response.headers["x-a"]),
            (418, &b"hi"[..], &HeaderValue::from_static("b"))
        );
        let error = response.success().unwrap_err().to_string();
        assert!(
            error.starts_with("PUT http://127.0.0.1:") && error.ends_with("418 I'm a teapot: hi"),
            "{error}"
        );

        let request = served.await.unwrap();
        assert!(request.starts_with("PUT /x?y=z HTTP/1.1\r\n"), "{request}");
        for line in [
            "authorization: Bearer secret",
            "content-type: a/b",
            "impersonate-user: jane",
            "impersonate-group: ops",
        ] {
            assert!(request.contains(line), "{line} in {request}");
        }
    }

    #[tokio::test]
    async fn a_stream_is_read_line_by_line_to_its_end() {
        let (url, _) = answering("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\none\ntwo\nrest").await;
        let endpoint = Endpoint::new(Access::anonymous(url)).unwrap();
        let mut stream = endpoint.stream(Method::GET, "/", HeaderMap::new(), "").await.unwrap();
        let mut lines = Vec::new();
        while let Some(line) = stream.line().await.unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["one", "two", "rest"]);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named() {
        let endpoint = Endpoint::new(Access::anonymous("http://127.0.0.1:1")).unwrap();
        let error = format!("{:#}", endpoint.get("/x").await.unwrap_err());
        assert!(error.contains("GET http://127.0.0.1:1/x") && error.contains("refused"), "{error}");
    }
}
