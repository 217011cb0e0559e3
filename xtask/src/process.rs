//! Runs a command, shows its output as it comes, and lets the caller read along.
//!
//! stdout and stderr share one pipe, so that lines keep their order. The command gets a
//! process group of its own: when it exceeds its time, or when the future is dropped
//! (Ctrl-C), the whole group is killed, not only the first process. When the caller has
//! seen enough, or wants it to end, the group is told to, and has some seconds to clean up
//! before that. A process that a *finished* command leaves behind is left alone.

use std::ops::ControlFlow;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};

/// How a command came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself.
    Exit(ExitStatus),
    /// The caller had seen enough.
    Stopped,
    /// It took longer than it may.
    TimedOut(Duration),
}

impl Ended {
    pub(crate) fn ok(&self) -> bool {
        match self {
            Ended::Exit(status) => status.success(),
            Ended::Stopped => true,
            Ended::TimedOut(_) => false,
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(status) => write!(f, "{status}"),
            Ended::Stopped => write!(f, "stopped"),
            Ended::TimedOut(limit) => write!(f, "killed after {} s, its limit", limit.as_secs()),
        }
    }
}

/// After the command's own end, what is still in the pipe is read; a process that it left
/// behind may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_secs(1);

/// What is told to end has so long to leave nothing behind.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// Runs `command` within `limit`; each line of its output is printed and given to `each`.
pub(crate) async fn stream(
    command: Command,
    limit: Duration,
    each: impl FnMut(&str) -> ControlFlow<()>,
) -> anyhow::Result<Ended> {
    stream_until(command, limit, each, std::future::pending()).await
}

/// The same; it is told to end when `stop` does.
pub(crate) async fn stream_until(
    mut command: Command,
    limit: Duration,
    mut each: impl FnMut(&str) -> ControlFlow<()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Ended> {
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

    let mut deadline = Instant::now() + limit;
    let (mut status, mut stopped) = (None, false);
    let mut line = Vec::new();
    while let Some(child) = &mut group.child {
        tokio::select! {
            read = timeout_at(deadline, reader.read_until(b'\n', &mut line)) => match read {
                Err(_elapsed) if status.is_some() || stopped => break,
                Err(_elapsed) => return Ok(Ended::TimedOut(limit)),
                Ok(read) => {
                    let end = read.context("cannot read the command's output")? == 0;
                    if !line.is_empty() && show(&line, &mut each).is_break() && !stopped {
                        stopped = true;
                        deadline = Instant::now() + CLEAN_UP;
                        group.signal("TERM");
                    }
                    line.clear();
                    if end {
                        break;
                    }
                }
            },
            () = &mut stop, if !stopped => {
                stopped = true;
                deadline = Instant::now() + CLEAN_UP;
                group.signal("TERM");
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
    if stopped {
        // Whoever is left is killed.
        return Ok(Ended::Stopped);
    }
    let status = match (status, &mut group.child) {
        (Some(status), _) => status,
        (None, Some(child)) => match timeout_at(deadline, child.wait()).await {
            Ok(status) => status?,
            Err(_elapsed) => return Ok(Ended::TimedOut(limit)),
        },
        (None, None) => anyhow::bail!("the command vanished"),
    };
    group.child = None;
    Ok(Ended::Exit(status))
}

fn show(line: &[u8], each: &mut impl FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\n', '\r']);
    println!("{text}");
    each(text)
}

/// The process group of a running child; dropped while it still runs, it kills the group.
struct Group {
    child: Option<Child>,
    id: Option<u32>,
}

impl Group {
    fn of(child: Child) -> Self {
        Group { id: child.id(), child: Some(child) }
    }

    fn signal(&self, signal: &str) {
        let (Some(_), Some(id)) = (&self.child, self.id) else {
            return;
        };
        // Through the shell, because the standard library can only kill one process.
        let _ = std::process::Command::new("sh")
            .args(["-c", &format!("kill -s {signal} -- -{id}")])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal("KILL");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(script: &str, limit: Duration, stop_at: &str) -> (Ended, Vec<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut lines = Vec::new();
        let ended = stream(command, limit, |line| {
            lines.push(line.to_owned());
            if line == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await
        .unwrap();
        (ended, lines)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn both_outputs_come_in_order() {
        let (ended, lines) = run("echo a; echo b >&2; printf c", LONG, "").await;
        assert!(ended.ok());
        assert_eq!(lines, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn a_failed_command_says_how() {
        let (ended, _) = run("exit 3", LONG, "").await;
        assert!(!ended.ok());
        assert_eq!(ended.to_string(), "exit status: 3");
    }

    #[tokio::test]
    async fn a_command_past_its_limit_is_killed_with_its_children() {
        let (ended, lines) = run("sleep 600 & echo $!; wait", Duration::from_millis(300), "").await;
        assert!(matches!(ended, Ended::TimedOut(_)), "{ended}");
        assert!(gone(&lines[0]).await, "the command's child still runs");
    }

    #[tokio::test]
    async fn a_reader_that_has_seen_enough_ends_the_command() {
        let (ended, lines) = run("sleep 600 & echo $!; echo ready; wait", LONG, "ready").await;
        assert!(matches!(ended, Ended::Stopped), "{ended}");
        assert!(gone(&lines[0]).await, "the command's child still runs");
    }

    #[tokio::test]
    async fn a_command_ends_when_the_caller_wants_it_to() {
        let (ready, stop) = tokio::sync::oneshot::channel::<()>();
        let (mut ready, mut child) = (Some(ready), String::new());
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; wait"]);
        let each = |line: &str| {
            line.clone_into(&mut child);
            drop(ready.take());
            ControlFlow::Continue(())
        };
        let ended = stream_until(command, LONG, each, async { drop(stop.await) }).await.unwrap();
        assert!(matches!(ended, Ended::Stopped), "{ended}");
        assert!(gone(&child).await, "the command's child still runs");
    }

    #[tokio::test]
    async fn what_is_ended_has_time_to_clean_up() {
        let script = "f=$(mktemp); trap 'rm $f; exit' TERM; echo $f; echo ready; sleep 600 & wait";
        let (ended, lines) = run(script, LONG, "ready").await;
        assert!(matches!(ended, Ended::Stopped), "{ended}");
        assert!(!std::path::Path::new(&lines[0]).exists(), "{} was left", lines[0]);
    }

    #[tokio::test]
    async fn a_process_left_behind_does_not_hold_the_caller() {
        let (ended, lines) = run("sleep 600 & echo $!", LONG, "").await;
        assert!(ended.ok(), "{ended}");
        let killed = Command::new("sh").args(["-c", &format!("kill {}", lines[0])]).status().await.unwrap();
        assert!(killed.success(), "what a finished command leaves behind is left alone");
    }

    /// A killed process is gone once it has been collected, which takes a moment.
    async fn gone(pid: &str) -> bool {
        let script = format!(
            "for i in $(seq 500); do kill -0 {pid} 2>/dev/null || exit 0; [ -r /proc/{pid}/stat ] && grep -q ') Z ' /proc/{pid}/stat && exit 0; sleep 0.01; done; exit 1"
        );
        Command::new("sh").args(["-c", &script]).status().await.unwrap().success()
    }
}
