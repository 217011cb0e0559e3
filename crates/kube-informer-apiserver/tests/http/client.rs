//! A client that hides nothing: one connection, one protocol.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Fails instead of hanging.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// One connection.
pub(crate) struct Connection {
    sender: Sender,
    task: JoinHandle<()>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr, protocol: Protocol) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap(), protocol).await
    }

    /// Over TLS, with the protocol that both sides want.
    pub(crate) async fn open_tls(address: SocketAddr, ca_pem: &str, protocol: Protocol) -> Self {
        let stream = tls(address, Some(ca_pem), protocol).await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(agreed.as_deref(), Some(alpn(protocol)));
        Self::over(stream, protocol).await
    }

    async fn over(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, protocol: Protocol) -> Self {
        let io = TokioIo::new(io);
        match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await.unwrap();
                // How it ends is seen by the requests on it.
                let task = tokio::spawn(async { connection.await.unwrap_or_default() });
                Self { sender: Sender::Http1(sender), task }
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
                let task = tokio::spawn(async { connection.await.unwrap_or_default() });
                Self { sender: Sender::Http2(sender), task }
            }
        }
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Http2(sender) => sender.clone().send_request(request).await,
        }
    }

    /// Sends with the headers and reads the whole answer.
    pub(crate) async fn ask_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (Response<()>, Bytes) {
        let answer = soon("an answer", self.send(request(method, path, headers, body))).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = soon("a body", body.collect()).await.unwrap().to_bytes();
        (Response::from_parts(parts, ()), body)
    }

    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let (answer, body) = self.ask_with(method, path, &[], body).await;
        (answer.status(), serde_json::from_slice(&body).unwrap_or_default())
    }

    pub(crate) async fn get(&mut self, path: &str) -> (StatusCode, Value) {
        self.ask(Method::GET, path, None).await
    }

    /// The connection's own task ends.
    pub(crate) async fn ended(self) {
        drop(self.sender);
        soon("the connection's end", self.task).await.unwrap();
    }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Request<Full<Bytes>> {
    // An authority makes it fit for HTTP/2; HTTP/1.1 sends the path alone.
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    request.body(Full::new(Bytes::from(body))).unwrap()
}

fn alpn(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Http1 => b"http/1.1",
        Protocol::Http2 => b"h2",
    }
}

/// A TLS connection that trusts this certificate alone, or none.
pub(crate) async fn tls(
    address: SocketAddr,
    ca_pem: Option<&str>,
    protocol: Protocol,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    if let Some(pem) = ca_pem {
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let mut config = builder
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn(protocol).to_vec()];
    let name = ServerName::try_from(address.ip().to_string()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(address).await?).await
}

/// A watch: its events, line by line.
pub(crate) struct Watch {
    body: Incoming,
    rest: Vec<u8>,
}

impl Watch {
    pub(crate) async fn open(connection: &mut Connection, path: &str) -> Self {
        let answer = soon("a watch", connection.send(request(Method::GET, path, &[], None))).await.unwrap();
        assert_eq!(answer.status(), 200);
        Self { body: answer.into_body(), rest: Vec::new() }
    }

    /// The next event; `None` at a clean end, an error where the connection was cut.
    pub(crate) async fn next(&mut self) -> Option<Result<Value, hyper::Error>> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(Ok(serde_json::from_slice(&line).unwrap()));
            }
            match soon("an event", self.body.frame()).await? {
                Ok(frame) => self.rest.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Writes raw bytes and reads until the peer has answered `answers` times with a body of `ok`.
pub(crate) async fn raw_health_checks(stream: &mut TcpStream, answers: usize) -> usize {
    stream.write_all("GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(answers).as_bytes()).await.unwrap();
    let mut read = Vec::new();
    soon("all answers", async {
        loop {
            let text = String::from_utf8_lossy(&read);
            let complete = text.matches("\r\n\r\nok").count();
            if complete == answers {
                return text.matches("HTTP/1.1 200 OK").count();
            }
            assert!(stream.read_buf(&mut read).await.unwrap() > 0, "closed after {complete} of {answers}");
        }
    })
    .await
}
