//! What is printed, without holding up whoever says it.
//!
//! A terminal that was stopped, or a pager, lets a write wait for ever. So a thread of its own writes, in the order in which
//! things are said, and nobody waits for it who is to hear Ctrl-C. What waits for it is bounded, in bytes: who
//! [prints](Lines::print) more waits; what is [offered](Lines::offer) beyond it is left out, counted, and told.
//!
//! A reader that has seen enough, as `head`, ends the printing and is no error; a terminal that is closed is as Ctrl-C. What
//! cannot be written to stderr is lost.
//!
//! A terminal is given nothing that it would obey, but for what is our own ([`visible`]); a pipe is given what there is.

pub(crate) mod visible;

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::interrupt::Ended;
use visible::Form;

/// Bytes that wait for a slow terminal.
const ROOM: usize = 1 << 20;

/// What a piece takes at least: many small ones are bounded, too.
const LEAST: usize = 64;

/// How long the last words may take, where somebody wants to end: those that were printed, and those about the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Output {
    lines: Lines,
    /// Whether stdout was a terminal: of one that is closed that cannot be told any more.
    is_screen: bool,
    done: oneshot::Receiver<std::io::Result<()>>,
    /// Nobody can read stdout any more; until that was told, or is known never to be.
    gone: Option<oneshot::Receiver<()>>,
}

/// Where things are said. A clone leads to the same place.
#[derive(Clone)]
pub(crate) struct Lines {
    sender: mpsc::UnboundedSender<Piece>,
    room: Arc<Semaphore>,
    left_out: Arc<AtomicU64>,
}

/// Nobody prints any more: the reader has seen enough, or there is an error, which [`Output`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads what is printed")
    }
}

impl std::error::Error for Closed {}

struct Piece {
    text: String,
    to: Stream,
    form: Form,
    /// Given back when it is written.
    _room: OwnedSemaphorePermit,
}

impl Piece {
    /// Whether it is a line that the next one takes the place of.
    fn passes(&self) -> bool {
        self.form == Form::Rewritten && self.text != visible::CLEAR
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

impl Output {
    /// Starts the thread that prints.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (room, left_out) = (Arc::new(Semaphore::new(ROOM)), Arc::<AtomicU64>::default());
        let lines = Lines { sender, room: Arc::clone(&room), left_out: Arc::clone(&left_out) };
        let (ended, done) = oneshot::channel();
        let run = move || {
            let printed = print(receiver, &left_out);
            // Who waits for room, or would, is told that there is no use in it.
            room.close();
            // Nobody may wait for it any more.
            let _ = ended.send(printed);
        };
        std::thread::Builder::new().name("printer".to_owned()).spawn(run).context("cannot start a thread")?;
        let is_screen = std::io::stdout().is_terminal();
        let (told, gone) = oneshot::channel();
        let listen = move || listen_for_the_end(told);
        std::thread::Builder::new()
            .name("reader".to_owned())
            .spawn(listen)
            .context("cannot start a thread")?;
        Ok(Self { lines, is_screen, done, gone: Some(gone) })
    }

    pub(crate) fn lines(&self) -> Lines {
        self.lines.clone()
    }

    /// Waits until nothing is printed any more because nobody reads it, or because of an error; says how a command ends
    /// then. It can be asked for again until it is ready.
    pub(crate) async fn closed(&mut self) -> anyhow::Result<Ended> {
        tokio::select! {
            done = &mut self.done => verdict(done, self.is_screen),
            // Also while there is nothing to print.
            () = told(&mut self.gone) => Ok(unread(self.is_screen)),
        }
    }

    /// Waits until everything is printed, however long it takes. Whoever else has lines must have let go of them.
    async fn finish(self) -> anyhow::Result<Ended> {
        let Self { lines, done, is_screen, .. } = self;
        drop(lines);
        verdict(done.await, is_screen)
    }

    /// Ends a command: what it printed is written before anything is said about it, however long a pager takes; then come
    /// its last `words`, on stderr. But whoever interrupts waits a second at most for either, and who does it twice, which
    /// resolves `again`, not at all.
    pub(crate) async fn conclude(
        self,
        again: impl Future<Output = ()>,
        ended: anyhow::Result<Ended>,
        words: impl Future<Output = ()>,
    ) -> anyhow::Result<Ended> {
        let is_interrupted = matches!(ended, Ok(Ended::Interrupted));
        let end = async {
            if is_interrupted {
                let finished = self.end().await;
                // What is not said by then never is.
                let _ = tokio::time::timeout(LAST_WORDS, words).await;
                finished
            } else {
                let finished = self.finish().await;
                // Also where nobody reads stdout any more.
                words.await;
                finished
            }
        };
        let finished = tokio::select! {
            finished = end => finished,
            () = again => return Ok(Ended::Interrupted),
        };
        match finished? {
            // The terminal is closed: whatever there was to say, nobody has read it.
            Ended::Interrupted => Ok(Ended::Interrupted),
            _ => ended,
        }
    }

    /// Waits a little until everything is printed: what is not by then never is.
    pub(crate) async fn end(self) -> anyhow::Result<Ended> {
        tokio::time::timeout(LAST_WORDS, self.finish()).await.unwrap_or(Ok(Ended::Done))
    }
}

/// Waits until it is told; for ever where nobody does. Of the same it can be asked again.
async fn told(gone: &mut Option<oneshot::Receiver<()>>) {
    if let Some(waiting) = gone {
        let told = waiting.await;
        *gone = None;
        if told.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// How a command ends whose output nobody can read: a reader has seen enough, or somebody has closed the terminal.
fn unread(is_screen: bool) -> Ended {
    if is_screen { Ended::Interrupted } else { Ended::Done }
}

/// Waits, in a thread of its own, until nobody can read stdout any more; for ever where that cannot be, as of a file.
fn listen_for_the_end(gone: oneshot::Sender<()>) {
    let stdout = std::io::stdout();
    loop {
        // Nothing is asked for: that the other end is gone is told in any case.
        let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(_) => {
                let [polled] = polled;
                if polled.revents().intersects(PollFlags::ERR | PollFlags::HUP) {
                    // Nobody may wait for it any more.
                    let _ = gone.send(());
                }
                return;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn verdict(
    done: Result<std::io::Result<()>, oneshot::error::RecvError>,
    is_screen: bool,
) -> anyhow::Result<Ended> {
    // What is written to a terminal that is closed fails so.
    const CLOSED: i32 = rustix::io::Errno::IO.raw_os_error();
    match done {
        Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Ended::Done),
        Ok(Err(error)) if is_screen && error.raw_os_error() == Some(CLOSED) => Ok(Ended::Interrupted),
        Ok(Err(error)) => Err(unwritable(&error)),
        Ok(Ok(())) => Ok(Ended::Done),
        Err(_) => Err(anyhow::anyhow!("nothing is printed any more: the thread for it has ended")),
    }
}

/// What is said where stdout cannot be written to.
pub(crate) fn unwritable(error: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot write to stdout: {error}; make room there, or redirect it elsewhere")
}

/// Writes to stderr, past all others: for the last words of a command. A stderr that nobody reads lets it wait for ever;
/// dropped, nobody waits for it.
pub(crate) async fn last_words(text: String) {
    if text.is_empty() {
        return;
    }
    let write = move || {
        let mut err = std::io::stderr();
        let is_screen = err.is_terminal();
        // There is nowhere else to say that.
        let _ = err.write_all(shown(&text, Form::Text, is_screen).as_bytes());
    };
    // It panics only where writing does.
    let _ = tokio::task::spawn_blocking(write).await;
}

/// Writes to stdout, for a command that says where it can be reached, and no more. It is wanted, its words are not: that
/// nobody reads them is no error. A stdout that stands still lets it wait for ever; dropped, nobody waits for it.
///
/// # Errors
///
/// Where they cannot be written for another reason.
pub(crate) async fn first_words(text: String) -> anyhow::Result<()> {
    let write = move || {
        let mut out = std::io::stdout();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    match tokio::task::spawn_blocking(write).await.context("nobody writes to stdout")? {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(()),
    }
}

fn print(mut pieces: mpsc::UnboundedReceiver<Piece>, left_out: &AtomicU64) -> std::io::Result<()> {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let (is_screen, is_err_screen) = (out.is_terminal(), err.is_terminal());
    // Whether a line of stderr is to be written anew.
    let mut is_passing = false;
    while let Some(piece) = pieces.blocking_recv() {
        if std::mem::replace(&mut is_passing, piece.passes()) && piece.form != Form::Rewritten {
            // What stays begins a line of its own.
            let _ = err.write_all(visible::CLEAR.as_bytes());
        }
        match left_out.swap(0, Ordering::Relaxed) {
            0 => {}
            count => writeln!(out, "… {count} changes were not printed: nobody took them in time")?,
        }
        match piece.to {
            Stream::Stdout => out.write_all(shown(&piece.text, piece.form, is_screen).as_bytes())?,
            Stream::Stderr => {
                out.flush()?;
                // There is nowhere else to say that.
                let _ = err.write_all(shown(&piece.text, piece.form, is_err_screen).as_bytes());
            }
        }
        if pieces.is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

fn shown(text: &str, form: Form, is_screen: bool) -> Cow<'_, str> {
    if is_screen { visible::visible(text, form) } else { Cow::Borrowed(text) }
}

impl Lines {
    /// Prints to stdout, as soon as there is room.
    pub(crate) async fn print(&self, text: String) -> Result<(), Closed> {
        self.say(text, Stream::Stdout, Form::Text).await
    }

    /// The same, with what [`Style`](crate::style::Style) has painted: all of it was in its hands.
    pub(crate) async fn print_painted(&self, text: String) -> Result<(), Closed> {
        self.say(text, Stream::Stdout, Form::Painted).await
    }

    /// Prints to stderr, as soon as there is room; in order with what is printed.
    pub(crate) async fn note(&self, text: String) -> Result<(), Closed> {
        self.say(text, Stream::Stderr, Form::Text).await
    }

    /// The same, with what was painted.
    pub(crate) async fn note_painted(&self, text: String) -> Result<(), Closed> {
        self.say(text, Stream::Stderr, Form::Painted).await
    }

    /// Writes the last line of stderr anew, as soon as there is room. What is said next takes its place.
    pub(crate) async fn rewrite(&self, line: &str) -> Result<(), Closed> {
        self.say(format!("{}{line}", visible::CLEAR), Stream::Stderr, Form::Rewritten).await
    }

    /// Prints to stdout if there is room. If not, it is counted.
    pub(crate) fn offer(&self, text: String) {
        self.offer_as(text, Form::Text);
    }

    /// The same, with what was painted.
    pub(crate) fn offer_painted(&self, text: String) {
        self.offer_as(text, Form::Painted);
    }

    fn offer_as(&self, text: String, form: Form) {
        match Arc::clone(&self.room).try_acquire_many_owned(size(&text)) {
            Ok(room) => drop(self.send(text, Stream::Stdout, form, room)),
            Err(tokio::sync::TryAcquireError::NoPermits) => {
                self.left_out.fetch_add(1, Ordering::Relaxed);
            }
            Err(tokio::sync::TryAcquireError::Closed) => {}
        }
    }

    /// Empties the last line of stderr if there is room, for whoever cannot wait. If not, it stays.
    pub(crate) fn offer_clearing(&self) {
        let text = visible::CLEAR.to_owned();
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(size(&text)) {
            let _ = self.send(text, Stream::Stderr, Form::Rewritten, room);
        }
    }

    async fn say(&self, text: String, to: Stream, form: Form) -> Result<(), Closed> {
        if text.is_empty() {
            return Ok(());
        }
        let room = Arc::clone(&self.room).acquire_many_owned(size(&text)).await.map_err(|_| Closed)?;
        self.send(text, to, form, room)
    }

    fn send(&self, text: String, to: Stream, form: Form, room: OwnedSemaphorePermit) -> Result<(), Closed> {
        self.sender.send(Piece { text, to, form, _room: room }).map_err(|_| Closed)
    }
}

/// What is printed in pieces that are worth a write.
pub(crate) struct Page {
    lines: Lines,
    form: Form,
    text: String,
}

/// What is written at a time.
const CHUNK: usize = 32 * 1024;

impl Page {
    pub(crate) fn new(lines: Lines) -> Self {
        Self { lines, form: Form::Text, text: String::new() }
    }

    /// One of what was painted.
    pub(crate) fn painted(lines: Lines) -> Self {
        Self { form: Form::Painted, ..Self::new(lines) }
    }

    pub(crate) async fn add(&mut self, text: &str) -> Result<(), Closed> {
        self.text.push_str(text);
        if self.text.len() >= CHUNK { self.flush().await } else { Ok(()) }
    }

    /// A line on stderr, after what was added so far.
    pub(crate) async fn note(&mut self, text: String) -> Result<(), Closed> {
        self.flush().await?;
        self.lines.note(text).await
    }

    /// Whoever adds something flushes at the end.
    pub(crate) async fn flush(&mut self) -> Result<(), Closed> {
        self.lines.say(std::mem::take(&mut self.text), Stream::Stdout, self.form).await
    }
}

/// What is said to [`Lines`] that nobody prints.
#[cfg(test)]
pub(crate) struct Said(mpsc::UnboundedReceiver<Piece>);

#[cfg(test)]
impl Lines {
    /// Lines that are not printed, and what is said to them.
    pub(crate) fn said() -> (Self, Said) {
        let (sender, pieces) = mpsc::unbounded_channel();
        (Self { sender, room: Arc::new(Semaphore::new(ROOM)), left_out: Arc::default() }, Said(pieces))
    }
}

#[cfg(test)]
impl Said {
    /// Each piece since.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok()).map(|piece| piece.text).collect()
    }
}

/// What a piece takes of the room. One that is larger than all of it waits until nothing else does.
fn size(text: &str) -> u32 {
    u32::try_from(text.len().clamp(LEAST, ROOM)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_cannot_be_told_that_nobody_reads_can_ask_again() {
        let ((ended, done), (told, gone)) = (oneshot::channel(), oneshot::channel());
        let mut output = Output { lines: Lines::said().0, is_screen: false, done, gone: Some(gone) };
        assert!(output.closed().now_or_never().is_none());
        // As of a file, which always can be read.
        drop(told);
        assert!(output.closed().now_or_never().is_none());
        assert!(output.closed().now_or_never().is_none());
        ended.send(Ok(())).unwrap();
        assert_eq!(output.closed().await.unwrap(), Ended::Done);
    }

    #[tokio::test]
    async fn who_interrupts_waits_for_a_reader_that_stands_still_and_who_does_it_again_does_not() {
        // Whether a command was interrupted before, or only has to get rid of what it printed.
        for ended in [Ended::Interrupted, Ended::Done] {
            let stuck = || {
                let (writes, done) = oneshot::channel();
                (writes, Output { lines: Lines::said().0, is_screen: true, done, gone: None })
            };
            let (_writes, output) = stuck();
            let waits = output.conclude(std::future::pending(), Ok(ended), std::future::ready(()));
            assert!(waits.now_or_never().is_none(), "{ended:?}");
            let (_writes, output) = stuck();
            let at_once = output.conclude(std::future::ready(()), Ok(ended), std::future::ready(()));
            let at_once = at_once.now_or_never();
            assert_eq!(at_once.map(Result::unwrap), Some(Ended::Interrupted), "{ended:?}");
        }
    }

    #[tokio::test]
    async fn last_words_that_nobody_reads_hold_up_nobody_who_interrupts() {
        // Everything is printed.
        let printed = || {
            let (writes, done) = oneshot::channel();
            writes.send(Ok(())).unwrap();
            Output { lines: Lines::said().0, is_screen: true, done, gone: None }
        };
        for ended in [Ended::Interrupted, Ended::Late] {
            let (never, words) = (std::future::pending, std::future::ready(()));
            let said = printed().conclude(never(), Ok(ended), words).now_or_never();
            assert_eq!(said.map(Result::unwrap), Some(ended));
            // A stderr that nobody reads.
            let waits = printed().conclude(never(), Ok(ended), never());
            assert!(waits.now_or_never().is_none(), "{ended:?}");
            // Not before it is waited for.
            let again = tokio::task::yield_now();
            let at_once = printed().conclude(again, Ok(ended), never());
            let at_once = tokio::time::timeout(Duration::from_secs(60), at_once).await.unwrap();
            assert_eq!(at_once.unwrap(), Ended::Interrupted);
        }
    }

    #[test]
    fn a_terminal_that_is_closed_is_no_error_and_no_reader_that_has_seen_enough() {
        let failed = |error: rustix::io::Errno| Ok(Err(error.into()));
        assert_eq!(verdict(failed(rustix::io::Errno::IO), true).unwrap(), Ended::Interrupted);
        assert!(verdict(failed(rustix::io::Errno::IO), false).is_err());
        assert!(verdict(failed(rustix::io::Errno::NOSPC), true).is_err());
        assert_eq!(verdict(failed(rustix::io::Errno::PIPE), false).unwrap(), Ended::Done);
    }
}
