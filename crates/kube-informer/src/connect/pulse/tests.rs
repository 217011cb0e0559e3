//! When it is asked, when it says something, and that nobody who waits is forgotten.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::pace::{LOOK, OFTEN, WAITS, apart};
use super::*;

/// A socket, and the other end of it.
async fn told() -> (Pulse, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_nodelay(true).unwrap();
    (Pulse::new(listener.accept().await.unwrap().0), peer)
}

/// A socket that is asked, and the other end of it.
async fn asked() -> (Pulse, std::net::TcpStream) {
    let (mut pulse, peer) = told().await;
    pulse.ask().unwrap();
    (pulse, peer)
}

/// A pause, of which nobody sees the end.
const LONG: Duration = Duration::from_secs(3600);

fn pause_until(pulse: &mut Pulse, then: tokio::time::Instant) {
    let Socket::Asked(asked) = &mut pulse.socket else { panic!("it is asked") };
    asked.pause.as_mut().reset(then);
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

#[tokio::test]
async fn who_waits_while_much_comes_is_not_woken_for_a_piece_of_it() {
    let (mut pulse, mut peer) = asked().await;
    pause_until(&mut pulse, tokio::time::Instant::now() + LONG);
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
    until_told(&mut pulse).await;
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

/// Fills what is on the way, until no more can be written.
fn fill(pulse: &mut Pulse, waker: &Waker) {
    let (mut cx, much) = (Context::from_waker(waker), vec![7; 1 << 20]);
    while Pin::new(&mut *pulse).poll_write(&mut cx, &much).is_ready() {}
}

fn reads(pulse: &mut Pulse, waker: &Waker) -> bool {
    let (mut cx, mut some) = (Context::from_waker(waker), [0; 8]);
    Pin::new(pulse).poll_read(&mut cx, &mut ReadBuf::new(&mut some)).is_ready()
}

#[tokio::test]
async fn who_waits_for_a_pause_is_woken_where_somebody_else_ends_it() {
    let (mut pulse, peer) = asked().await;
    let (reader, writer) = (Arc::<Counted>::default(), Waker::from(Arc::<Counted>::default()));
    assert!(!reads(&mut pulse, &reader.clone().into()));
    tokio::task::unconstrained(async { fill(&mut pulse, &writer) }).await;
    assert!(!is_asked(&pulse));
    assert_eq!(reader.0.load(Ordering::SeqCst), 1);
    drop(peer);
}

#[tokio::test]
async fn nobody_is_forgotten_who_waits_to_write() {
    let (mut pulse, mut peer) = asked().await;
    pulse.told().unwrap();
    let (reader, writer) = (Waker::from(Arc::<Counted>::default()), Arc::<Counted>::default());
    // It may be written to before it has said that it can be.
    pulse.write_all(b"x").await.unwrap();
    tokio::task::unconstrained(async { fill(&mut pulse, &writer.clone().into()) }).await;
    pulse.rate = Rate { since: Instant::now() - LOOK, came: 1 << 30, waits: WAITS };
    assert!(!reads(&mut pulse, &reader));
    assert!(!is_asked(&pulse));
    let drain =
        std::thread::spawn(move || while peer.read(&mut [0; 1 << 16]).is_ok_and(|count| count > 0) {});
    while writer.0.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    drop(pulse);
    drain.join().unwrap();
}

#[tokio::test]
async fn what_much_comes_over_is_asked_and_read_on() {
    let (mut pulse, mut peer) = asked().await;
    pulse.told().unwrap();
    pulse.rate = Rate { since: Instant::now() - LOOK, came: 1 << 30, waits: WAITS };
    let reader = Arc::<Counted>::default();
    assert!(!reads(&mut pulse, &reader.clone().into()));
    assert!(is_asked(&pulse));
    peer.write_all(b"more").unwrap();
    while reader.0.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let mut more = [0; 4];
    pulse.read_exact(&mut more).await.unwrap();
    assert_eq!(&more, b"more");
}

#[tokio::test]
async fn what_is_asked_can_be_shut_down() {
    let (mut pulse, mut peer) = asked().await;
    pulse.shutdown().await.unwrap();
    assert!(is_asked(&pulse));
    assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
    peer.write_all(b"still").unwrap();
    pulse.read_exact(&mut [0; 5]).await.unwrap();
}

#[tokio::test]
async fn it_can_be_read_outside_of_its_runtime() {
    let (mut pulse, mut peer) = asked().await;
    let turn = std::thread::spawn(move || {
        let read = futures_util::future::poll_immediate(poll_fn(|cx| {
            Pin::new(&mut pulse).poll_read(cx, &mut ReadBuf::new(&mut [0; 8]))
        }));
        assert!(read.now_or_never().flatten().is_none());
        pulse.told().unwrap();
        pulse.ask().unwrap();
        pulse
    });
    let mut pulse = turn.join().unwrap();
    peer.write_all(b"later").unwrap();
    pulse.read_exact(&mut [0; 5]).await.unwrap();
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

const GATHER: Duration = Duration::from_millis(20);

/// Something comes, and is read, at a time that is not that of what came before.
async fn hears(pulse: &mut Pulse, peer: &mut std::net::TcpStream) {
    peer.write_all(b"some").unwrap();
    pulse.read_exact(&mut [0; 4]).await.unwrap();
    later(pulse);
}

/// Time passes, and not too much of it.
fn later(pulse: &mut Pulse) {
    let now = Instant::now();
    (pulse.often.since, pulse.often.last) = (now + LONG, now - apart(GATHER));
}

#[tokio::test]
async fn what_comes_often_waits_where_it_may_and_is_read_at_once() {
    let (mut pulse, mut peer) = told().await;
    pulse.gather.set(Gather::new(GATHER));
    let reader = Arc::<Counted>::default();
    for _ in 0..OFTEN {
        assert!(!is_asked(&pulse));
        hears(&mut pulse, &mut peer).await;
        assert!(!reads(&mut pulse, &reader.clone().into()));
    }
    assert!(is_asked(&pulse));
    pause_until(&mut pulse, tokio::time::Instant::now() + LONG);
    for _ in 0..20 {
        peer.write_all(&[1; 100]).unwrap();
        tokio::task::yield_now().await;
    }
    assert!(!reads(&mut pulse, &reader.clone().into()));
    assert_eq!(reader.0.load(Ordering::SeqCst), 0, "nobody is told before the pause is over");
    pause_until(&mut pulse, tokio::time::Instant::now());
    let (mut count, mut read, mut some) = (0, 0, [0; 2000]);
    while read < some.len() {
        read += pulse.read(&mut some[read..]).await.unwrap();
        count += 1;
    }
    // The kernel may hold back the last of them for a moment.
    assert!(count < 10, "{count} reads of what was there");
}

#[tokio::test]
async fn who_looks_often_makes_nothing_come_often() {
    let (mut pulse, mut peer) = told().await;
    pulse.gather.set(Gather::new(GATHER));
    hears(&mut pulse, &mut peer).await;
    for _ in 0..10 * OFTEN {
        assert!(!reads(&mut pulse, &Waker::from(Arc::<Counted>::default())));
        assert!(!is_asked(&pulse));
        later(&mut pulse);
    }
}

#[tokio::test]
async fn after_a_silence_whoever_may_wait_is_told_at_once() {
    let (mut pulse, mut peer) = told().await;
    pulse.gather.set(Gather::new(Duration::from_millis(2)));
    pulse.ask().unwrap();
    until_told(&mut pulse).await;
    peer.write_all(b"now").unwrap();
    pulse.read_exact(&mut [0; 3]).await.unwrap();
    assert!(!is_asked(&pulse));
}

/// Nothing comes, until it is told again.
async fn until_told(pulse: &mut Pulse) {
    let mut some = [0; 8];
    poll_fn(|cx| {
        let read = Pin::new(&mut *pulse).poll_read(cx, &mut ReadBuf::new(&mut some));
        assert!(read.is_pending());
        if is_asked(pulse) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

#[tokio::test]
async fn who_does_not_want_to_wait_any_more_is_told() {
    let (mut pulse, mut peer) = told().await;
    let gather = Gather::new(Duration::from_millis(50));
    pulse.gather.set(gather.clone());
    pulse.ask().unwrap();
    peer.write_all(b"some").unwrap();
    pulse.read_exact(&mut [0; 4]).await.unwrap();
    assert!(is_asked(&pulse));
    gather.at_most(Duration::ZERO);
    until_told(&mut pulse).await;
}

#[tokio::test]
async fn pauses_are_as_long_as_the_kernel_has_room_for_what_comes() {
    let allowed = Allowed::default();
    allowed.set(Gather::new(GATHER));
    let next_pause = async |room: usize| {
        let (mut pulse, _peer) = asked().await;
        let Socket::Asked(asked) = &mut pulse.socket else { panic!("it is asked") };
        SockRef::from(&asked.stream).set_recv_buffer_size(room).unwrap();
        for _ in 0..10 {
            asked.came = 1;
            asked.next_pause(&allowed);
        }
        asked.came = 40 << 10;
        asked.next_pause(&allowed).unwrap()
    };
    assert_eq!(next_pause(8 << 10).await, GATHER / 2, "it hardly fits");
    // The kernel may allow less than this, which is more than enough.
    assert_eq!(next_pause(1 << 20).await, GATHER);
}

#[tokio::test]
async fn what_had_waited_is_counted_when_it_is_read() {
    let (mut pulse, mut peer) = told().await;
    let gather = Gather::new(GATHER);
    pulse.gather.set(gather.clone());
    hears(&mut pulse, &mut peer).await;
    assert_eq!(gather.reads(), 0, "it was told of");
    pulse.ask().unwrap();
    peer.write_all(&[1; 100]).unwrap();
    pulse.read_exact(&mut [0; 100]).await.unwrap();
    until_told(&mut pulse).await;
    assert_eq!(gather.reads(), 1, "pauses in which nothing came do not count");
}

#[tokio::test]
async fn nothing_waits_unless_it_is_allowed() {
    let (mut pulse, mut peer) = told().await;
    for _ in 0..2 * OFTEN {
        hears(&mut pulse, &mut peer).await;
        assert!(!reads(&mut pulse, &Waker::from(Arc::<Counted>::default())));
        assert!(!is_asked(&pulse));
    }
}
