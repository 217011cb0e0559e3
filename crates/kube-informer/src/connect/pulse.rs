//! A socket that says when something has come; or, while much comes, is asked every millisecond or two.
//!
//! To be told that something has come costs as much as to read some kilobytes of it: a thread is woken, and goes to sleep
//! again. A server sends a list piece by piece, and who is fast is woken for each. So while much comes, nobody waits for the
//! next piece: what has come meanwhile is read at once. As soon as less comes, whoever waits is told again.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::coop::{has_budget_remaining, poll_proceed};
use tokio::time::{Sleep, sleep};

/// See the module.
pub(super) struct Pulse {
    socket: Socket,
    rate: Rate,
    /// Somebody waits until more can be written, and is to be told: it cannot be asked meanwhile.
    is_full: bool,
    /// Where those are told.
    runtime: Handle,
}

/// What came since then, and how often nothing more had.
struct Rate {
    since: Instant,
    came: usize,
    waits: u32,
}

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
    /// What came since the last pause.
    came: usize,
    /// Who waits for the pause to end.
    reader: Option<Waker>,
}

/// The runtime's clock makes up to two of it, and has no shorter one.
const PAUSE: Duration = Duration::from_millis(1);

/// How much comes is looked at after so long, and so many waits.
const LOOK: Duration = Duration::from_millis(4);
const WAITS: u32 = 8;

/// In a millisecond, this is much; and this is little.
const MUCH: usize = 32 << 10;
const LITTLE: usize = 8 << 10;

impl Pulse {
    /// Where the stream is told of, which is where this is called.
    pub(super) fn new(stream: TcpStream) -> Self {
        let (socket, rate) = (Socket::Told(stream), Rate::new(Instant::now()));
        Self { socket, rate, is_full: false, runtime: Handle::current() }
    }

    /// Whether it is to be asked from now on. Elsewhere than on Unix, pauses are too long for it.
    fn is_to_be_asked(&mut self) -> bool {
        // Who has had its turn does not wait for what comes.
        cfg!(unix) && !self.is_full && has_budget_remaining() && self.rate.is_much(Instant::now())
    }

    fn ask(&mut self) -> io::Result<()> {
        if let Socket::Told(stream) = std::mem::replace(&mut self.socket, Socket::Lost) {
            let stream = stream.into_std()?;
            let _runtime = self.runtime.enter();
            let pause = Box::pin(sleep(PAUSE));
            self.socket = Socket::Asked(Asked { stream, pause, pausing: true, came: 0, reader: None });
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
            self.rate = Rate::new(Instant::now());
            // The pause is gone: whoever waited for it must ask anew, to be told.
            asked.reader.into_iter().for_each(Waker::wake);
        }
        match &mut self.socket {
            Socket::Told(stream) => Ok(Pin::new(stream)),
            Socket::Asked(_) | Socket::Lost => Err(ErrorKind::NotConnected.into()),
        }
    }
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { since: now, came: 0, waits: 0 }
    }

    /// There is nothing to read: whether much has come lately.
    fn is_much(&mut self, now: Instant) -> bool {
        self.waits += 1;
        let took = now.saturating_duration_since(self.since);
        if self.waits < WAITS || took < LOOK {
            return false;
        }
        let much = self.came as u128 >= MUCH as u128 * took.as_micros() / PAUSE.as_micros();
        *self = Self::new(now);
        much
    }
}

impl Asked {
    /// What has come; `None` as soon as that was little.
    fn poll_read(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<Option<io::Result<()>>> {
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
                    if std::mem::take(&mut self.came) < LITTLE {
                        return Poll::Ready(None);
                    }
                    self.pause.as_mut().reset(tokio::time::Instant::now() + PAUSE);
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
            this.rate.came += out.filled().len() - before;
            if read.is_ready() || !this.is_to_be_asked() {
                return read;
            }
            this.ask()?;
        }
        if let Socket::Asked(asked) = &mut this.socket
            && let Some(read) = ready!(asked.poll_read(cx, out))
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
        match &self.socket {
            Socket::Told(stream) => stream.connected(),
            Socket::Asked(_) | Socket::Lost => Connected::new(),
        }
    }
}

#[cfg(test)]
mod tests;
