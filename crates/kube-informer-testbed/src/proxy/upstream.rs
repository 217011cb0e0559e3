//! The way to the real server: one pooled HTTP/1.1 client.
//!
//! Requests go out as they came, but for the headers that belong to a single
//! connection. Bodies stream. There is no deadline: what waits, waits visibly.

use anyhow::{Context, Result};
use http::header::{AUTHORIZATION, CONNECTION, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::http::tls;
use crate::kubeconfig::{Access, Credentials};

/// The server behind the proxy.
pub(crate) struct Upstream {
    url: String,
    client: Client<HttpsConnector<HttpConnector>, Incoming>,
    authorization: Option<HeaderValue>,
}

impl Upstream {
    pub(crate) fn new(server: &Access, add_credentials: bool) -> Result<Self> {
        let mut server = server.clone();
        let mut authorization = None;
        if !add_credentials {
            // A client certificate would win over what the client brings.
            server.credentials = Credentials::Anonymous;
        } else if let Credentials::Token(token) = &server.credentials {
            authorization =
                Some(HeaderValue::try_from(format!("Bearer {token}")).context("a token fits no header")?);
        }
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls(&server)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { url: server.url, client, authorization })
    }

    /// Passes a request on.
    pub(crate) async fn forward(&self, request: http::Request<Incoming>) -> Result<http::Response<Incoming>> {
        let (mut head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = format!("{}{path}", self.url).parse::<Uri>().context("no valid address")?;
        strip_hops(&mut head.headers);
        head.headers.remove(HOST);
        if let Some(authorization) = &self.authorization {
            head.headers.entry(AUTHORIZATION).or_insert_with(|| authorization.clone());
        }
        let mut response = self.client.request(http::Request::from_parts(head, body)).await?;
        strip_hops(response.headers_mut());
        Ok(response)
    }
}

/// Takes out what speaks of one connection only.
fn strip_hops(headers: &mut HeaderMap) {
    let hops = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")];
    for name in hops {
        headers.remove(name);
    }
}
