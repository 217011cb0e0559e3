//! Connections, before they are WebSockets.
//!
//! So many may be open, and each for so long: who opens one and says nothing, or reads nothing, is dropped. A WebSocket has
//! its own rules; its place here is free again.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// See the module.
pub(crate) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Duration,
}

/// A connection, for as long as the patience lasts or it is a WebSocket.
pub(crate) struct Io {
    stream: TcpStream,
    deadline: Option<Pin<Box<Sleep>>>,
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
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

/// After a connection that could not be taken: file descriptors may be free again then.
const BREATH: Duration = Duration::from_millis(50);

impl Door {
    pub(crate) fn new(listener: TcpListener, pending: usize, patience: Duration) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(pending)), patience }
    }
}

impl Listener for Door {
    type Io = Io;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Io, SocketAddr) {
        // Others wait in the kernel's queue.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Small messages must not wait for more to come.
                    let _: io::Result<()> = stream.set_nodelay(true);
                    let pass = Arc::new(Pass { is_in: AtomicBool::new(false), place: Mutex::new(place) });
                    let deadline = Some(Box::pin(tokio::time::sleep(self.patience)));
                    return (Io { stream, deadline, pass }, address);
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
        Pin::new(&mut self.stream).poll_write(cx, bytes)
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
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
