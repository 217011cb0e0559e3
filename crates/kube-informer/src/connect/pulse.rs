//! A socket that says when something has come; or, while much comes, is asked every millisecond or two.
//!
//! To be told that something has come costs as much as to read some kilobytes of it: a thread is woken, and goes to sleep
//! again. A server sends a list piece by piece, and who is fast is woken for each. So while much comes, nobody waits for the
//! next piece: what has come meanwhile is read at once. As soon as less comes, whoever waits is told again.
//!
//! Who reads may allow that what comes waits for more of it, up to some time (`Gather`). Then a socket is asked, too, where
//! little comes, but often: as often as that time says, and more often where more comes than the kernel keeps. What comes after
//! a silence is told at once; when nothing has come for some pauses, whoever waits is told again.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use hyper_util::client::legacy::connect::{Connected, Connection};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::coop::{has_budget_remaining, poll_proceed};
use tokio::time::{Sleep, sleep};

use self::pace::{Often, Pace, Rate};
use super::gather::Gather;

mod pace;

/// See the module.
pub(super) struct Pulse {
    socket: Socket,
    rate: Rate,
    often: Often,
    /// Whether something came since it was last looked at how often it does.
    heard: bool,
    gather: Allowed,
    /// Somebody waits until more can be written, and is to be told: it cannot be asked meanwhile.
    is_full: bool,
    /// Where those are told.
    runtime: Handle,
}

/// How long what comes may wait, once who reads has allowed it. It is one of the connection's extras, by which readers find it.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed(Arc<OnceLock<Gather>>);

enum Socket {
    // ## Told => (Told | Asked)
    Told(TcpStream),
    // ## Asked => (Asked | Told)
    Asked(Asked),
    /// It could not be changed from one into the other, which was said.
    Lost,
}

/// Nobody is told when something comes over it.
struct Asked {
    stream: std::net::TcpStream,
    pause: Pin<Box<Sleep>>,
    /// Whether it is not to be asked before the pause is over.
    pausing: bool,
    pace: Pace,
    /// What came since the last pause.
    came: usize,
    /// Who waits for the pause to end.
    reader: Option<Waker>,
}

/// What the kernel keeps for a socket, where it does not say it.
const ROOM: usize = 128 << 10;

impl Pulse {
    /// Where the stream is told of, which is where this is called.
    pub(super) fn new(stream: TcpStream) -> Self {
        let now = Instant::now();
        Self {
            socket: Socket::Told(stream),
            rate: Rate::new(now),
            often: Often::new(now),
            heard: false,
            gather: Allowed::default(),
            is_full: false,
            runtime: Handle::current(),
        }
    }

    /// Whether it is to be asked from now on. Elsewhere than on Unix, pauses are too long for it.
    fn is_to_be_asked(&mut self) -> bool {
        // Who has had its turn does not wait for what comes.
        if !cfg!(unix) || self.is_full || !has_budget_remaining() {
            return false;
        }
        let now = Instant::now();
        // Who looks again and again does not make anything come.
        let heard = std::mem::take(&mut self.heard);
        self.rate.is_much(now) || heard && self.often.is_often(now, self.gather.get())
    }

    fn ask(&mut self) -> io::Result<()> {
        if let Socket::Told(stream) = std::mem::replace(&mut self.socket, Socket::Lost) {
            let stream = stream.into_std()?;
            let _runtime = self.runtime.enter();
            let pace = Pace::new();
            let pause = Box::pin(sleep(pace.length()));
            self.socket = Socket::Asked(Asked { stream, pause, pausing: true, pace, came: 0, reader: None });
        }
        Ok(())
    }

    /// The socket, whose readers and writers are told.
    fn told(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if let Socket::Asked(_) = &self.socket
            && let Socket::Asked(asked) = std::mem::replace(&mut self.socket, Socket::Lost)
        {
            let _runtime = self.runtime.enter();
            self.socket = Socket::Told(TcpStream::from_std(asked.stream)?);
            let now = Instant::now();
            (self.rate, self.often) = (Rate::new(now), Often::new(now));
            // The pause is gone: whoever waited for it must ask anew, to be told.
            asked.reader.into_iter().for_each(Waker::wake);
        }
        match &mut self.socket {
            Socket::Told(stream) => Ok(Pin::new(stream)),
            Socket::Asked(_) | Socket::Lost => Err(ErrorKind::NotConnected.into()),
        }
    }
}

impl Allowed {
    /// From now on, what comes may wait.
    pub(super) fn set(&self, gather: Gather) {
        // A connection of a watch has one reader.
        let _ = self.0.set(gather);
    }

    pub(super) fn get(&self) -> Duration {
        self.0.get().map_or(Duration::ZERO, Gather::get)
    }

    fn note_read(&self) {
        self.0.get().into_iter().for_each(Gather::note_read);
    }
}

impl Asked {
    /// How long it is waited for more; `None` where it is better to be told of it.
    fn next_pause(&mut self, allowed: &Allowed) -> Option<Duration> {
        let (came, gather) = (std::mem::take(&mut self.came), allowed.get());
        if gather.is_zero() {
            return self.pace.next(came);
        }
        if came > 0 {
            allowed.note_read();
        }
        let room = SockRef::from(&self.stream).recv_buffer_size().unwrap_or(ROOM);
        self.pace.next_within(came, gather, room)
    }

    /// What has come; `None` where it is better to be told of it.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
        allowed: &Allowed,
    ) -> Poll<Option<io::Result<()>>> {
        // The runtime does not see these reads: they must end a turn as others do.
        let turn = ready!(poll_proceed(cx));
        loop {
            if self.pausing {
                if self.pause.as_mut().poll(cx).is_pending() {
                    self.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                (self.pausing, self.reader) = (false, None);
            }
            match self.stream.read(out.initialize_unfilled()) {
                Ok(count) => {
                    turn.made_progress();
                    out.advance(count);
                    self.came += count;
                    return Poll::Ready(Some(Ok(())));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let Some(pause) = self.next_pause(allowed) else { return Poll::Ready(None) };
                    self.pause.as_mut().reset(tokio::time::Instant::now() + pause);
                    self.pausing = true;
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl AsyncRead for Pulse {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Socket::Told(stream) = &mut this.socket {
            let before = out.filled().len();
            let read = Pin::new(stream).poll_read(cx, out);
            let came = out.filled().len() - before;
            this.rate.came += came;
            this.heard |= came > 0;
            if read.is_ready() || !this.is_to_be_asked() {
                return read;
            }
            this.ask()?;
        }
        if let Socket::Asked(asked) = &mut this.socket
            && let Some(read) = ready!(asked.poll_read(cx, out, &this.gather))
        {
            return Poll::Ready(read);
        }
        this.told()?.poll_read(cx, out)
    }
}

/// What can be written at once is; otherwise whoever writes is told when it can.
impl AsyncWrite for Pulse {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Socket::Asked(asked) = &mut this.socket {
            let turn = ready!(poll_proceed(cx));
            match asked.stream.write_vectored(parts) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                written => {
                    turn.made_progress();
                    return Poll::Ready(written);
                }
            }
        }
        let written = this.told()?.poll_write_vectored(cx, parts);
        this.is_full = written.is_pending();
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Told(stream) => Pin::new(stream).poll_flush(cx),
            // Nothing is held back.
            Socket::Asked(_) | Socket::Lost => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Told(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Asked(asked) => match asked.stream.shutdown(Shutdown::Write) {
                Err(error) if error.kind() != ErrorKind::NotConnected => Poll::Ready(Err(error)),
                _ => Poll::Ready(Ok(())),
            },
            Socket::Lost => Poll::Ready(Ok(())),
        }
    }
}

impl Connection for Pulse {
    fn connected(&self) -> Connected {
        let connected = match &self.socket {
            Socket::Told(stream) => stream.connected(),
            Socket::Asked(_) | Socket::Lost => Connected::new(),
        };
        connected.extra(self.gather.clone())
    }
}

#[cfg(test)]
mod tests;
