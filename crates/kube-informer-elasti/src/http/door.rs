//! Connections: so many at a time, and each for so long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};

use super::{Limits, Phase};

/// Where connections come in.
pub(super) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    limits: Limits,
    phase: watch::Receiver<Phase>,
}

/// A connection.
pub(super) struct Io {
    stream: TcpStream,
    /// Until when it may be open, as far as is known.
    deadline: Pin<Box<Sleep>>,
    /// Ready when the server is over; gone when that was seen.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    heard: Arc<AtomicBool>,
    is_answered: bool,
    answer: Duration,
    /// Free again when it is dropped.
    _place: Option<OwnedSemaphorePermit>,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    heard: Arc<AtomicBool>,
}

/// After a connection that could not be taken: file descriptors may be free again then.
const BREATH: Duration = Duration::from_millis(50);

impl Door {
    pub(super) fn new(
        listener: TcpListener,
        places: Arc<Semaphore>,
        limits: Limits,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self { listener, places, limits, phase }
    }
}

impl Listener for Door {
    type Io = Io;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Io, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // An answer is small, and must not wait for more to come.
                    let _: io::Result<()> = stream.set_nodelay(true);
                    let mut phase = self.phase.clone();
                    let over = async move {
                        // A server that is gone is over as well.
                        let _ = phase.wait_for(|phase| *phase == Phase::Over).await;
                    };
                    let io = Io {
                        stream,
                        deadline: Box::pin(tokio::time::sleep(self.limits.request)),
                        over: Some(Box::pin(over)),
                        heard: Arc::default(),
                        is_answered: false,
                        answer: self.limits.answer,
                        _place: place,
                    };
                    return (io, address);
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
        Self { heard: Arc::clone(&stream.io().heard) }
    }
}

impl Peer {
    /// The request has come as a whole: from now on it is for us to answer.
    pub(crate) fn heard(&self) {
        self.heard.store(true, Ordering::Release);
    }
}

impl Io {
    /// Whether its time is over.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let timed_out = |what| Err(io::Error::new(io::ErrorKind::TimedOut, what));
        if self.over.as_mut().is_none_or(|over| over.as_mut().poll(cx).is_ready()) {
            self.over = None;
            return timed_out("the server has ended");
        }
        while self.deadline.as_mut().poll(cx).is_ready() {
            if self.is_answered || !self.heard.load(Ordering::Acquire) {
                return timed_out("a request did not come, or was not answered, in time");
            }
            self.is_answered = true;
            let until = Instant::now() + self.answer;
            self.deadline.as_mut().reset(until);
        }
        Ok(())
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
