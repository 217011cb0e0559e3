//! Where addresses lead. Endpoints must not have loopback addresses, and nothing else can be listened on everywhere: so pods
//! have addresses of a network that is a table.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A network. A clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Network {
    hosts: Arc<Mutex<HashMap<String, SocketAddr>>>,
    last: Arc<AtomicU32>,
}

/// Somebody who listens at an address, until this is dropped.
pub(crate) struct Host {
    network: Network,
    address: String,
    serves: JoinHandle<()>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Network {
    /// An address that nobody has.
    pub(crate) fn address(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("10.200.{}.{}", number / 250, number % 250 + 1)
    }

    /// Somebody listens at an address, at every port.
    pub(crate) async fn listen(&self, address: &str, app: Router) -> Result<Host> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        self.hosts.lock().unwrap().insert(address.to_owned(), listener.local_addr()?);
        let serves = tokio::spawn(async move { drop(axum::serve(listener, app).await) });
        Ok(Host { network: self.clone(), address: address.to_owned(), serves })
    }

    /// Where an address leads.
    pub(crate) fn at(&self, address: &str) -> Result<SocketAddr> {
        let Some(there) = self.hosts.lock().unwrap().get(address).copied() else {
            bail!("nobody is at {address}");
        };
        Ok(there)
    }

    /// Asks whoever listens at an address, once.
    pub(crate) async fn ask(&self, address: &str, host: &str, path: &str) -> Result<Answer> {
        let there = self.at(address)?;
        let mut stream =
            TcpStream::connect(there).await.with_context(|| format!("cannot reach {address}"))?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("{address} hung up"))?;
        let status = head.split(' ').nth(1).context("an answer without a status")?.parse()?;
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        ensure!(length.is_none_or(|length: usize| length == body.len()), "{address} hung up in the middle");
        Ok(Answer { status, body: body.to_owned() })
    }
}

impl Host {
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.network.hosts.lock().unwrap().remove(&self.address);
        self.serves.abort();
    }
}
