//! A program at work that is told what to do, line by line, and answers so.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A program at work that is told what to do. Dropped, it is killed.
pub(super) struct Running {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// What it has used since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    /// Seconds.
    pub(super) wall: f64,
    /// Seconds of the processor.
    pub(super) cpu: f64,
    /// Bytes.
    pub(super) rss: f64,
    pub(super) peak: f64,
    pub(super) objects: u64,
    pub(super) updates: u64,
    /// Stamps that were seen and count.
    pub(super) fresh: u64,
}

/// Beyond this, something hangs: the slowest sync takes minutes, and a busy machine makes that more.
pub(super) const PATIENCE: Duration = Duration::from_secs(900);

/// How long a process is looked at to see whether it rests.
const LOOK: Duration = Duration::from_millis(500);

/// It rests where it needs less of the processor meanwhile, in seconds.
const RESTING: f64 = 0.005;

/// How often it is looked at before it counts as one that never rests.
const LOOKS: usize = 60;

impl Running {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", command.as_std().get_program().display()))?;
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = child.stdout.take().context("no stdout")?;
        Ok(Self { child, stdin, answers: BufReader::new(stdout).lines() })
    }

    /// Awaits what it says by itself.
    pub(super) async fn said(&mut self) -> Result<Value> {
        self.answer().await
    }

    /// Awaits that it has synced.
    pub(super) async fn synced(&mut self) -> Result<Usage> {
        usage(&self.answer().await?)
    }

    /// Has it do something, and tell what it has used until then.
    pub(super) async fn after(&mut self, command: &str) -> Result<Usage> {
        usage(&self.told(command).await?)
    }

    /// Has it do something.
    pub(super) async fn told(&mut self, command: &str) -> Result<Value> {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await?;
        self.answer().await.with_context(|| format!("told to: {command}"))
    }

    /// Awaits that it has nothing more to do; what it has used until then.
    pub(super) async fn rested(&mut self) -> Result<Usage> {
        let mut before = self.after("usage").await?;
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK).await;
            let now = self.after("usage").await?;
            if now.cpu - before.cpu < RESTING {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }

    /// From now on its peak is what it has at most from now on. Not every kernel can do that: whether this one did.
    pub(super) fn forget_peak(&self) -> Result<bool> {
        let process = self.child.id().context("it has ended")?;
        let forgotten = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
        if let Err(error) = &forgotten {
            eprintln!("left out: its peak, which the kernel does not forget: {error}");
        }
        Ok(forgotten.is_ok())
    }

    /// Ends it.
    pub(super) async fn end(self) -> Result<()> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        let status = tokio::time::timeout(PATIENCE, child.wait()).await.context("it does not end")??;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }

    async fn answer(&mut self) -> Result<Value> {
        let line =
            tokio::time::timeout(PATIENCE, self.answers.next_line()).await.context("it says nothing")??;
        let line = line.context("it has ended")?;
        serde_json::from_str(&line).with_context(|| format!("not what was expected: {line}"))
    }
}

fn usage(answer: &Value) -> Result<Usage> {
    let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name} in {answer}"));
    let count = |name: &str| answer[name].as_u64().with_context(|| format!("no {name} in {answer}"));
    Ok(Usage {
        wall: number("wall_ns")? / 1e9,
        cpu: number("cpu_ns")? / 1e9,
        rss: number("rss_bytes")?,
        peak: number("peak_bytes")?,
        objects: count("objects")?,
        updates: count("updates")?,
        fresh: count("fresh")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_used_is_read() {
        let answer = json!({
            "wall_ns": 2_500_000_000u64, "cpu_ns": 500_000_000, "rss_bytes": 10, "peak_bytes": 20, "objects": 3,
            "updates": 4, "fresh": 5,
        });
        let expected = Usage { wall: 2.5, cpu: 0.5, rss: 10.0, peak: 20.0, objects: 3, updates: 4, fresh: 5 };
        assert_eq!(usage(&answer).unwrap(), expected);
        assert!(usage(&json!({ "wall_ns": 1 })).is_err());
    }
}
