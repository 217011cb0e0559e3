//! Clients whose connections suit watches.

use std::time::Duration;

use http::HeaderValue;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::{ClientBuilder, ConfigExt};
use kube_client::config::AuthInfo;
use kube_client::{Client, Config};

use super::line::Lines;
use super::straight::Straight;
use super::{ConnectError, address, agent, login};
use crate::reflector::LONGEST_WATCH;

/// A peer that is gone without a word is found after this and some intervals.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// How long a connection may be silent: longer than any watch lasts, for one may be idle all the time.
const LONGEST_SILENCE: Duration = LONGEST_WATCH.saturating_add(Duration::from_secs(60));

/// How long an unused connection is kept.
const UNUSED: Duration = Duration::from_secs(60);

/// Builds a client. Credentials may come from a program that takes its time: it does not hold up the runtime.
pub(super) async fn build(config: Config) -> Result<Client, ConnectError> {
    let mut config = tuned(config);
    address::complete(&mut config)?;
    check_token(&config)?;
    let program = config.auth_info.exec.clone();
    match tokio::task::spawn_blocking(move || build_now(config)).await {
        Ok(client) => client.map_err(|error| login::explain(error, program)),
        Err(ended) if ended.is_panic() => Err(login::unsendable(program)),
        Err(_) => Err(ConnectError::Interrupted),
    }
}

/// What watches need. A client of kube-client's defaults retries below the reflector, which then does not know what
/// happens, and waits for ever for a dead peer.
fn tuned(mut config: Config) -> Config {
    config.default_retry = false;
    config.disable_compression = true;
    let silence = config.read_timeout.unwrap_or_default();
    config.read_timeout = Some(silence.max(LONGEST_SILENCE));
    // The time that a connection was not in use is no silence of the server.
    config.reset_reader_on_write = true;
    trim_token(&mut config);
    agent::introduce(&mut config, None);
    config
}

/// A token in a file may end with a new line, as kubectl takes it and no header does. It is read once then, and again
/// when it is not accepted any more; files without are looked at every minute.
fn trim_token(config: &mut Config) {
    let auth = &mut config.auth_info;
    let (None, Some(file)) = (&auth.token, &auth.token_file) else { return };
    // Where it cannot be read, the client says so.
    let Ok(token) = std::fs::read_to_string(file) else { return };
    if token.trim() != token {
        auth.token = Some(token.trim().to_owned().into());
    }
}

/// A token that no header can have is told: kube-client panics about it.
fn check_token(config: &Config) -> Result<(), ConnectError> {
    let user = &config.auth_info;
    // Who has a password, or a provider, does not use it.
    let is_used = user.auth_provider.is_none() && (user.username.is_none() || user.password.is_none());
    if user.token.is_none() || !is_used {
        return Ok(());
    }
    // What is kept secret is shown only so.
    let token = AuthInfo { token: user.token.clone(), ..AuthInfo::default() };
    let shown = serde_json::to_value(token).unwrap_or_default();
    let token = shown.get("token").and_then(serde_json::Value::as_str).unwrap_or_default();
    match HeaderValue::try_from(format!("Bearer {token}")) {
        Ok(_) => Ok(()),
        Err(_) => Err(ConnectError::Token),
    }
}

fn build_now(config: Config) -> Result<Client, kube_client::Error> {
    if config.proxy_url.is_some() {
        // A proxy is dialled in a way of its own, which kube-client knows; the keepalive is the proxy's.
        return Client::try_from(config);
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    http.set_keepalive_retries(Some(KEEPALIVE_RETRIES));

    let lines = Lines::new(http, config.read_timeout);
    // Its reads are not timed: that would set a timer twice for each of them.
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(lines)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_write_timeout(config.write_timeout);

    let pooled = legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(UNUSED)
        .build(connector.clone());
    let service = Straight::new(pooled, connector);
    let namespace = config.default_namespace.clone();
    let builder = ClientBuilder::new(service, namespace).with_layer(&config.extra_headers_layer()?);
    Ok(match config.auth_layer()? {
        Some(auth) => builder.with_layer(&auth).with_layer(&config.base_uri_layer()).build(),
        None => builder.with_layer(&config.base_uri_layer()).build(),
    })
}
