//! Connections: HTTP/1.1 and HTTP/2, with TLS or without, until the server stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch as channel};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::service::{OnConnection, Service};

/// More connections than this wait in the kernel's queue.
const CONNECTIONS: usize = 10_000;
/// Longer than any server runs, and short enough to be added to any time.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// A client that opens a TLS connection and says nothing is dropped.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the head of a request.
    pub(crate) head: Duration,
    /// For open requests at the end.
    pub(crate) grace: Duration,
}

/// Takes connections while `gate` is true; ends them all when it turns false, or when `stopping` is true,
/// after a grace. `is_open` is told whenever the wish has been followed. A connection on which no request
/// arrives in time ends.
pub(crate) async fn run(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    service: Service,
    mut gate: channel::Receiver<bool>,
    is_open: channel::Sender<bool>,
    mut stopping: channel::Receiver<bool>,
    patience: Patience,
) {
    let Ok(address) = listener.local_addr() else { return };
    let mut listener = Some(listener);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut last = 0;
    while !*stopping.borrow() {
        if !*gate.borrow_and_update() {
            listener = None;
            connections.shutdown().await;
        } else if listener.is_none() {
            match rebind(address) {
                Ok(again) => listener = Some(again),
                Err(error) => {
                    tracing::warn!(%address, %error, "cannot listen again yet");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            }
        }
        is_open.send_replace(listener.is_some());
        tokio::select! {
            _ = stopping.changed() => {}
            changed = gate.changed() => if changed.is_err() { break },
            Some(_) = connections.join_next() => {}
            accepted = accept(listener.as_ref(), &places) => {
                let (stream, place) = accepted;
                last += 1;
                let kill = Arc::new(Notify::new());
                let service = service.on_connection(last, Arc::clone(&kill));
                let (tls, stopping) = (tls.clone(), stopping.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = serve(stream, tls, service, stopping, patience.head) => {}
                        // A fault cuts the connection, whatever state it is in.
                        () = kill.notified() => {}
                    }
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    let ended =
        tokio::time::timeout(patience.grace, async { while connections.join_next().await.is_some() {} })
            .await;
    if ended.is_err() {
        connections.shutdown().await;
    }
}

fn rebind(address: std::net::SocketAddr) -> std::io::Result<TcpListener> {
    let socket =
        if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

async fn accept(
    listener: Option<&TcpListener>,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
    let Some(listener) = listener else { return std::future::pending().await };
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                // Out of file descriptors, or the client left already: neither ends the server.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    service: OnConnection,
    mut stopping: channel::Receiver<bool>,
    head: Duration,
) {
    // Small watch events must not wait for more to come.
    let _: std::io::Result<()> = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head);
    // The library's patience begins when it knows which HTTP it is; a client may never say.
    let begun = service.begun();
    let first_request = tokio::time::sleep(head.min(FOR_EVER));
    tokio::pin!(first_request);
    macro_rules! serve {
        ($io:expr) => {{
            let connection = builder.serve_connection($io, service);
            tokio::pin!(connection);
            let mut asked = false;
            let mut unsure = true;
            loop {
                tokio::select! {
                    result = connection.as_mut() => {
                        if let Err(error) = result {
                            tracing::debug!(%error, "connection ended");
                        }
                        return;
                    }
                    _ = stopping.wait_for(|stopping| *stopping), if !asked => {
                        asked = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    () = first_request.as_mut(), if unsure => {
                        unsure = false;
                        if !begun.load(Ordering::Acquire) {
                            tracing::debug!("no request came; connection ended");
                            return;
                        }
                    }
                }
            }
        }};
    }
    match tls {
        None => serve!(TokioIo::new(stream)),
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve!(TokioIo::new(stream)),
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake timed out"),
        },
    }
}
