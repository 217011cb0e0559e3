//! Runs a command, shows its output as it comes, and lets the caller read along.
//!
//! stdout and stderr share one pipe, so that lines keep their order. The command gets a
//! process group of its own: when it exceeds its time, or when the future is dropped
//! (Ctrl-C), the whole group is killed, not only the first process. When the caller has
//! seen enough, or wants it to end, the group is told to, and has some time to clean up
//! before that: who needs more has failed, and so has who ends otherwise than by the signal.
//! A process that a *finished* command leaves behind is left alone, unless [`Bounds`] say otherwise.

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::{Instant, sleep_until, timeout_at};

mod group;

use group::Group;

/// How a command came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself.
    Exit(ExitStatus),
    /// The caller had seen enough, and told it to.
    Stopped(ExitStatus),
    /// It was told to, and did not within that time: it was killed.
    WouldNotEnd(Duration),
    /// It took longer than it may.
    TimedOut(Duration),
}

impl Ended {
    pub(crate) fn ok(&self) -> bool {
        match self {
            Ended::Exit(status) => status.success(),
            Ended::Stopped(status) => obeyed(*status),
            Ended::WouldNotEnd(_) | Ended::TimedOut(_) => false,
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(status) => write!(f, "{status}"),
            Ended::Stopped(status) => write!(f, "told to end, it ended with {status}"),
            Ended::WouldNotEnd(time) => {
                write!(f, "told to end, it did not within {} s, and was killed", time.as_secs())
            }
            Ended::TimedOut(limit) => write!(f, "killed after {} s, its limit", limit.as_secs()),
        }
    }
}

/// Whether a program that was sent SIGTERM has ended as one does: in good order, or of a signal. Shells have numbers for that,
/// and programs that tell of it themselves have the same ones; Ctrl-C is the other signal that means it.
pub(crate) fn obeyed(status: ExitStatus) -> bool {
    const INTERRUPT: i32 = 2;
    const TERMINATE: i32 = 15;
    match (status.code(), status.signal()) {
        (Some(code), _) => code == 0 || [INTERRUPT, TERMINATE].contains(&(code - 128)),
        (None, signal) => signal.is_some_and(|signal| [INTERRUPT, TERMINATE].contains(&signal)),
    }
}

/// After the command's own end, what is still in the pipe is read; a process that it left
/// behind may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_secs(1);

/// How often it is looked for those who were not there when the others were told to end.
const LOOK: Duration = Duration::from_secs(2);

/// How long a command may take, and what becomes of what it leaves behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Beyond this it is killed.
    pub(crate) limit: Duration,
    /// What is told to end has so long to do so, and to leave nothing behind.
    pub(crate) clean_up: Duration,
    /// Whether what it leaves behind in its group is killed when it has ended by itself.
    pub(crate) alone: bool,
}

impl Bounds {
    /// Ample for what ends in good order, on a busy machine, too.
    const CLEAN_UP: Duration = Duration::from_secs(60);

    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, clean_up: Self::CLEAN_UP, alone: false }
    }
}

/// Runs `command` within `limit`; each line of its output is printed and given to `each`.
pub(crate) async fn stream(
    command: Command,
    limit: Duration,
    each: impl FnMut(&str) -> ControlFlow<()>,
) -> anyhow::Result<Ended> {
    stream_until(command, Bounds::new(limit), each, std::future::pending()).await
}

/// The same; it is told to end when `stop` does.
pub(crate) async fn stream_until(
    mut command: Command,
    bounds: Bounds,
    mut each: impl FnMut(&str) -> ControlFlow<()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Ended> {
    let Bounds { limit, clean_up, alone } = bounds;
    let (writer, reader) = pipe::pipe().context("cannot make a pipe")?;
    let writer = writer.into_blocking_fd()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let program = command.as_std().get_program().to_owned();
    let child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    // The command holds the pipe's writing ends: with them open, the end is never read.
    drop(command);
    let mut group = Group::of(child);
    let mut reader = BufReader::new(reader);
    let mut stop = pin!(stop);

    let (mut deadline, mut look) = (Instant::now() + limit, Instant::now());
    let (mut status, mut stopped, mut late) = (None, false, false);
    let mut line = Vec::new();
    while let Some(child) = &mut group.child {
        tokio::select! {
            read = timeout_at(deadline, reader.read_until(b'\n', &mut line)) => match read {
                Err(_elapsed) if status.is_some() || stopped => {
                    late = stopped;
                    break;
                }
                Err(_elapsed) => return Ok(Ended::TimedOut(limit)),
                Ok(read) => {
                    let end = read.context("cannot read the command's output")? == 0;
                    if !line.is_empty() && show(&line, &mut each).is_break() && !stopped {
                        stopped = true;
                        (deadline, look) = (Instant::now() + clean_up, Instant::now() + LOOK);
                        group.end();
                    }
                    line.clear();
                    if end {
                        break;
                    }
                }
            },
            () = &mut stop, if !stopped => {
                stopped = true;
                (deadline, look) = (Instant::now() + clean_up, Instant::now() + LOOK);
                group.end();
            }
            () = sleep_until(look), if stopped => {
                look = Instant::now() + LOOK;
                group.end_latecomers();
            }
            exit = child.wait(), if status.is_none() => {
                status = Some(exit?);
                // What was told to end may leave its children more to do.
                if !stopped {
                    deadline = Instant::now() + DRAIN;
                }
            }
        }
    }
    if status.is_none()
        && let Some(child) = &mut group.child
        && let Ok(exit) = timeout_at(deadline, child.wait()).await
    {
        status = Some(exit?);
    }
    match status {
        // Somebody else may hold the pipe, who has left the group.
        Some(status) if stopped && !(late && group.is_there()) => Ok(Ended::Stopped(status)),
        // Whoever is left is killed.
        _ if stopped => Ok(Ended::WouldNotEnd(clean_up)),
        None => Ok(Ended::TimedOut(limit)),
        Some(status) => {
            if !alone {
                group.leave();
            }
            Ok(Ended::Exit(status))
        }
    }
}

fn show(line: &[u8], each: &mut impl FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\n', '\r']);
    println!("{text}");
    each(text)
}

#[cfg(test)]
mod tests;
