//! A socket that says when something has come; or, while much comes, is asked every millisecond.
//!
//! To be told that something has come costs as much as to read some kilobytes of it: a thread is woken, and goes to sleep
//! again. A server sends a list piece by piece, and who is fast is woken for each. So while much comes, nobody waits for the
//! next piece: what has come within a millisecond is read at once. As soon as less comes, whoever waits is told again.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop::poll_proceed;
use tokio::time::{Sleep, sleep};

/// See the module.
pub(super) struct Pulse {
    socket: Socket,
    rate: Rate,
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
}

/// The runtime's clock has no shorter one.
const PAUSE: Duration = Duration::from_millis(1);

/// How much comes is looked at after so long, and so many waits.
const LOOK: Duration = Duration::from_millis(4);
const WAITS: u32 = 8;

/// In a millisecond, this is much; and this is little.
const MUCH: usize = 32 << 10;
const LITTLE: usize = 8 << 10;

impl Pulse {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { socket: Socket::Told(stream), rate: Rate::new(Instant::now()) }
    }

    fn ask(&mut self) -> io::Result<()> {
        if let Socket::Told(stream) = std::mem::replace(&mut self.socket, Socket::Lost) {
            let (stream, pause) = (stream.into_std()?, Box::pin(sleep(PAUSE)));
            self.socket = Socket::Asked(Asked { stream, pause, pausing: true, came: 0 });
        }
        Ok(())
    }

    /// The socket, whose readers and writers are told.
    fn told(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if let Socket::Asked(_) = &self.socket
            && let Socket::Asked(asked) = std::mem::replace(&mut self.socket, Socket::Lost)
        {
            self.socket = Socket::Told(TcpStream::from_std(asked.stream)?);
            self.rate = Rate::new(Instant::now());
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
                ready!(self.pause.as_mut().poll(cx));
                self.pausing = false;
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
            if read.is_ready() || !this.rate.is_much(Instant::now()) {
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
        let this = self.get_mut();
        match this.write(|stream| stream.write(bytes)) {
            Some(written) => Poll::Ready(written),
            None => this.told()?.poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.write(|stream| stream.write_vectored(parts)) {
            Some(written) => Poll::Ready(written),
            None => this.told()?.poll_write_vectored(cx, parts),
        }
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
        self.get_mut().told()?.poll_shutdown(cx)
    }
}

impl Pulse {
    /// Writes without waiting, while nobody is told; `None` if that cannot be.
    fn write(
        &mut self,
        write: impl FnOnce(&mut std::net::TcpStream) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        let Socket::Asked(asked) = &mut self.socket else { return None };
        match write(&mut asked.stream) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            written => Some(written),
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
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A socket that is asked, and the other end of it.
    async fn asked() -> (Pulse, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut pulse = Pulse::new(listener.accept().await.unwrap().0);
        pulse.ask().unwrap();
        (pulse, peer)
    }

    fn is_asked(pulse: &Pulse) -> bool {
        matches!(pulse.socket, Socket::Asked(_))
    }

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn much_is_what_comes_fast_and_in_many_pieces() {
        let start = Instant::now();
        let after = |piece: usize, pieces: u32, each: Duration| {
            let mut rate = Rate::new(start);
            (1..=pieces).any(|at| {
                rate.came += piece;
                rate.is_much(start + each * at)
            })
        };
        assert!(after(4 << 10, 100, Duration::from_micros(60)), "a list, piece by piece");
        assert!(!after(4 << 10, 100, Duration::from_millis(1)), "a thousand changes per second");
        assert!(!after(1 << 20, 7, Duration::from_millis(4)), "few waits for it");
        assert!(!after(100, 1000, Duration::from_micros(10)), "many pieces of little");
        assert!(!after(4 << 10, 50, Duration::from_micros(60)), "not for long enough to tell");
    }

    #[test]
    fn what_came_long_ago_does_not_count() {
        let start = Instant::now();
        let mut rate = Rate { since: start, came: 10 << 20, waits: WAITS };
        assert!(!rate.is_much(start + Duration::from_secs(60)));
        rate.came += 1 << 10;
        rate.waits = WAITS;
        assert!(!rate.is_much(start + Duration::from_secs(60) + LOOK));
    }

    #[tokio::test]
    async fn who_waits_while_much_comes_is_not_woken_for_a_piece_of_it() {
        let (mut pulse, mut peer) = asked().await;
        let pause_until = |pulse: &mut Pulse, then| {
            let Socket::Asked(asked) = &mut pulse.socket else { panic!("it is asked") };
            asked.pause.as_mut().reset(then);
        };
        pause_until(&mut pulse, tokio::time::Instant::now() + Duration::from_secs(3600));
        let counted = Arc::<Counted>::default();
        let waker = Waker::from(counted.clone());
        let mut buffer = vec![0; 1 << 16];
        let mut poll = |pulse: &mut Pulse| {
            let mut out = ReadBuf::new(&mut buffer);
            let read = Pin::new(pulse).poll_read(&mut Context::from_waker(&waker), &mut out);
            read.map(|read| read.map(|()| out.filled().len()).unwrap())
        };
        assert!(poll(&mut pulse).is_pending());
        for _ in 0..20 {
            peer.write_all(&[1; 1000]).unwrap();
            // The runtime looks at its sockets in a turn without work.
            tokio::task::yield_now().await;
        }
        assert!(poll(&mut pulse).is_pending(), "it is not asked before the pause is over");
        assert_eq!(counted.0.load(Ordering::SeqCst), 0);
        pause_until(&mut pulse, tokio::time::Instant::now());
        let (mut reads, mut read) = (0, 0);
        while read < 20_000 {
            match poll(&mut pulse) {
                Poll::Ready(count) => (reads, read) = (reads + 1, read + count),
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
        // The kernel may hold back the last of them for a moment.
        assert!(reads < 10, "{reads} reads of what was there");
    }

    #[tokio::test]
    async fn when_little_comes_whoever_waits_is_told_again() {
        let (mut pulse, mut peer) = asked().await;
        let mut some = vec![0; 1 << 16];
        peer.write_all(&[1; 20_000]).unwrap();
        pulse.read_exact(&mut some[..20_000]).await.unwrap();
        assert!(is_asked(&pulse));
        peer.write_all(b"little").unwrap();
        pulse.read_exact(&mut some[..6]).await.unwrap();
        assert_eq!(&some[..6], b"little");
        // Nothing comes until it is told.
        let until = poll_fn(|cx| {
            let read = Pin::new(&mut pulse).poll_read(cx, &mut ReadBuf::new(&mut some));
            assert!(read.is_pending());
            if is_asked(&pulse) { Poll::Pending } else { Poll::Ready(()) }
        });
        until.await;
        peer.write_all(b"later").unwrap();
        pulse.read_exact(&mut some[..5]).await.unwrap();
        assert_eq!(&some[..5], b"later");
        drop(peer);
        assert_eq!(pulse.read(&mut some).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_is_asked_can_be_written_to_and_ends_as_any_other() {
        let (mut pulse, mut peer) = asked().await;
        pulse.write_all(b"question").await.unwrap();
        assert!(is_asked(&pulse));
        let mut heard = [0; 8];
        peer.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"question");
        // More than fits on the way: it is told when there is room.
        let much = vec![7; 16 << 20];
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            peer.read_to_end(&mut all).map(|_| all)
        });
        pulse.write_all(&much).await.unwrap();
        assert!(!is_asked(&pulse));
        pulse.shutdown().await.unwrap();
        assert!(reader.join().unwrap().unwrap() == much);
    }

    #[tokio::test]
    async fn an_end_is_read_without_being_told() {
        let (mut pulse, peer) = asked().await;
        drop(peer);
        assert_eq!(pulse.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(is_asked(&pulse));
    }

    #[tokio::test]
    async fn who_reads_all_the_time_lets_others_have_their_turn() {
        let (mut pulse, mut peer) = asked().await;
        peer.write_all(&[1; 20_000]).unwrap();
        pulse.read_exact(&mut [0]).await.unwrap();
        let mut reads = 0;
        let all = poll_fn(|cx| {
            while Pin::new(&mut pulse).poll_read(cx, &mut ReadBuf::new(&mut [0])).is_ready() {
                reads += 1;
            }
            Poll::Ready(())
        });
        all.await;
        assert!((1..1000).contains(&reads), "{reads} reads in one turn");
    }
}
