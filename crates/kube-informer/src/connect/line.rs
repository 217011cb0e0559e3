//! The bytes of one connection, as many at a time as there are, and an end to its silence.
//!
//! TLS asks for some kilobytes at a time, and each of its questions would be one to the kernel. Here the kernel is asked
//! once for what has come.
//!
//! A connection over which nothing goes for too long is given up, in either direction. What is timed is mostly moved, and
//! seldom reached: its timer is only looked at when it rings.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use super::pulse::Pulse;

/// Opens connections over which something must go now and then.
#[derive(Clone)]
pub(super) struct Lines {
    http: HttpConnector,
    silence: Option<Duration>,
}

/// One connection. See the module.
pub(super) struct Line<T> {
    inner: T,
    /// What was read and not asked for: `buffer[at..end]`.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Reads in a row that a smaller buffer would do for.
    small: u32,
    /// When something last went over it.
    heard: Instant,
    silence: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// Idle connections are many, and busy ones few. More than what TLS asks for at a time.
const LEAST: usize = 8 << 10;
const MOST: usize = 64 << 10;

/// After so many small reads, a buffer is made smaller.
const SMALL: u32 = 64;

impl Lines {
    /// As a connector opens them, given up after so long a silence.
    pub(super) fn new(http: HttpConnector, silence: Option<Duration>) -> Self {
        Self { http, silence }
    }
}

impl Service<Uri> for Lines {
    type Response = TokioIo<Line<Pulse>>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (stream, silence) = (self.http.call(uri), self.silence);
        Box::pin(async move { Ok(TokioIo::new(Line::new(Pulse::new(stream.await?.into_inner()), silence))) })
    }
}

impl<T> Line<T> {
    fn new(inner: T, silence: Option<Duration>) -> Self {
        let heard = Instant::now();
        Self { inner, buffer: Vec::new(), at: 0, end: 0, small: 0, heard, silence, timer: None }
    }

    /// Hands out what there is.
    fn hand_out(&mut self, out: &mut ReadBuf<'_>) {
        let kept = self.buffer.get(self.at..self.end).unwrap_or_default();
        let some = kept.get(..out.remaining()).unwrap_or(kept);
        out.put_slice(some);
        self.at += some.len();
    }

    /// A buffer that suits what came last.
    fn fit(&mut self) {
        let (size, last) = (self.buffer.len(), self.end);
        self.small = if last < size / 4 { self.small + 1 } else { 0 };
        if last == size {
            self.buffer.resize((size * 2).clamp(LEAST, MOST), 0);
        } else if self.small >= SMALL && size > LEAST {
            self.small = 0;
            self.buffer.truncate(size / 2);
            self.buffer.shrink_to_fit();
        }
    }

    /// Nothing comes now: an error, if that has been so for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let due = self.silence.and_then(|longest| self.heard.checked_add(longest));
        let Some(due) = due else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= due {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            timer.as_mut().reset(due);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Line<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.at < this.end {
            this.hand_out(out);
            return Poll::Ready(Ok(()));
        }
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        this.fit();
        (this.at, this.end) = (0, 0);
        // Who asks for more than fits in between gets it without a copy.
        let read = if out.remaining() > this.buffer.len() {
            Pin::new(&mut this.inner).poll_read(cx, out)
        } else {
            let mut into = ReadBuf::new(&mut this.buffer);
            let read = Pin::new(&mut this.inner).poll_read(cx, &mut into);
            this.end = into.filled().len();
            read
        };
        if read.is_pending() {
            return this.poll_silence(cx);
        }
        this.heard = Instant::now();
        this.hand_out(out);
        read
    }
}

impl<T: AsyncWrite + Unpin> Line<T> {
    /// The time that a connection was not in use is no silence of the server.
    fn note_write(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.heard = Instant::now();
        }
        written
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Line<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.note_write(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(cx, parts);
        this.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

impl<T: Connection> Connection for Line<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);

    /// Counts how often it is asked.
    struct Counted<T>(T, u32);

    impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
        fn poll_read(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let this = self.get_mut();
            this.1 += 1;
            Pin::new(&mut this.0).poll_read(cx, out)
        }
    }

    #[tokio::test]
    async fn what_comes_is_what_was_sent_however_it_is_asked_for() {
        let (mut peer, line) = duplex(1 << 20);
        let mut line = Line::new(Counted(line, 0), None);
        let sent: Vec<u8> = (0..300_000u32).map(|each| (each % 251) as u8).collect();
        peer.write_all(&sent).await.unwrap();
        drop(peer);
        let (mut read, mut step) = (Vec::new(), 1);
        loop {
            let mut some = vec![0; step];
            let count = line.read(&mut some).await.unwrap();
            if count == 0 {
                break;
            }
            read.extend_from_slice(&some[..count]);
            step = (step * 3) % 5003 + 1;
        }
        assert!(read == sent);
        assert!(line.buffer.len() == MOST, "it grew while there was much");
        assert!(line.inner.1 < 20, "asked {} times for 300 kB", line.inner.1);
    }

    #[tokio::test]
    async fn a_buffer_that_is_not_needed_becomes_small_again() {
        let (mut peer, line) = duplex(1 << 20);
        let mut line = Line::new(line, None);
        let mut some = [0; 1000];
        peer.write_all(&vec![1; 200_000]).await.unwrap();
        for _ in 0..200 {
            line.read_exact(&mut some).await.unwrap();
        }
        assert_eq!(line.buffer.len(), MOST);
        for _ in 0..5 * SMALL {
            peer.write_all(b"little").await.unwrap();
            line.read_exact(&mut some[..6]).await.unwrap();
        }
        assert_eq!(line.buffer.len(), LEAST);
        assert!(line.buffer.capacity() < 2 * LEAST);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection_and_neither_what_comes_nor_what_goes_does() {
        let (mut peer, line) = duplex(1024);
        let mut line = Line::new(line, Some(SILENCE));
        let (mut some, almost) = ([0; 8], SILENCE - Duration::from_secs(1));
        for _ in 0..3 {
            let waited = tokio::time::timeout(almost, line.read(&mut some)).await;
            assert!(waited.is_err(), "nothing came, and it is too early to give up");
            peer.write_all(b"x").await.unwrap();
            assert_eq!(line.read(&mut some).await.unwrap(), 1);
            let waited = tokio::time::timeout(almost, line.read(&mut some)).await;
            assert!(waited.is_err());
            line.write_all(b"y").await.unwrap();
        }
        let begun = Instant::now();
        let error = line.read(&mut some).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), SILENCE.as_secs());
    }
}
