//! Connections, before they are WebSockets.
//!
//! So many may be open, so many of them of one address, and each for so long: who opens one and says nothing, says it byte by
//! byte, or reads nothing, is dropped. A WebSocket has its own rules; its place here is free again.
//!
//! What is written and not read piles up where it is bounded, and not in the kernel: its buffer is small. So it is seen
//! whether somebody reads, however slowly ([`Peer::progress`]).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

use super::addresses::{Addresses, Seat};
use crate::metrics::{Metrics, Refusal};

/// See the module.
pub(crate) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    addresses: Arc<Addresses>,
    metrics: Arc<Metrics>,
    patience: Duration,
}

/// A connection, for as long as the patience lasts or it is a WebSocket.
pub(crate) struct Io {
    stream: TcpStream,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Whether the last bytes could not be written, because those before were not read.
    is_held_up: bool,
    pass: Arc<Pass>,
}

/// Where a connection comes from, and how it becomes one for long.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pass: Arc<Pass>,
}

#[derive(Debug)]
struct Pass {
    is_in: AtomicBool,
    place: Mutex<Option<(OwnedSemaphorePermit, Seat)>>,
    progress: AtomicU64,
}

/// What the kernel keeps of what was written to a connection; it takes twice as much.
const SEND_BUFFER: u32 = 64 << 10;

/// Connections that may wait in the kernel.
const BACKLOG: u32 = 1024;

/// After a connection that could not be taken: file descriptors may be free again then.
const BREATH: Duration = Duration::from_millis(50);

impl Door {
    pub(crate) fn new(
        listener: TcpListener,
        pending: usize,
        addresses: Arc<Addresses>,
        metrics: Arc<Metrics>,
        patience: Duration,
    ) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(pending)), addresses, metrics, patience }
    }

    /// Listens, in such a way that the kernel keeps little of what is not read.
    pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As listeners have it: a server that is started again finds its port.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        // Connections have what the one has that they came by.
        socket.set_send_buffer_size(SEND_BUFFER)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    }
}

impl Listener for Door {
    type Io = Io;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Io, SocketAddr) {
        // Others wait in the kernel's queue.
        let mut place = Arc::clone(&self.places).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let Some(seat) = self.addresses.seat(address.ip()) else {
                        // There are too many to say it to each.
                        self.metrics.refused(Refusal::Address);
                        tracing::debug!(peer = %address, "too many connections of one address wait");
                        continue;
                    };
                    let place = place.take().map(|place| (place, seat));
                    // Small messages must not wait for more to come.
                    let _: io::Result<()> = stream.set_nodelay(true);
                    let pass = Arc::new(Pass {
                        is_in: AtomicBool::new(false),
                        place: Mutex::new(place),
                        progress: AtomicU64::new(0),
                    });
                    let deadline = Some(Box::pin(tokio::time::sleep(self.patience)));
                    return (Io { stream, deadline, is_held_up: false, pass }, address);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Door>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        Self { address: *stream.remote_addr(), pass: Arc::clone(&stream.io().pass) }
    }
}

impl Peer {
    /// It is a WebSocket from now on.
    pub(crate) fn comes_in(&self) {
        self.pass.is_in.store(true, Ordering::Release);
        drop(self.pass.place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Goes up each time that something can be written that could not: the other side has read.
    pub(crate) fn progress(&self) -> u64 {
        self.pass.progress.load(Ordering::Relaxed)
    }
}

impl Io {
    /// Whether its time is over.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(deadline) = &mut self.deadline else { return Ok(()) };
        if self.pass.is_in.load(Ordering::Acquire) {
            self.deadline = None;
            return Ok(());
        }
        match deadline.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no complete request came in time"))
            }
        }
    }
}

impl Io {
    fn note<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &written {
            Poll::Pending => self.is_held_up = true,
            Poll::Ready(Ok(_)) if std::mem::take(&mut self.is_held_up) => {
                self.pass.progress.fetch_add(1, Ordering::Relaxed);
            }
            Poll::Ready(_) => {}
        }
        written
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_deadline(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_deadline(cx)?;
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_deadline(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_deadline(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_deadline(cx)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
