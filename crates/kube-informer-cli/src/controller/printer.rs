//! Prints lines without holding up whoever says them.
//!
//! A terminal that was stopped, or a pager, lets a write wait for ever. So a thread of its own writes, and nobody waits for
//! it; lines that it cannot take in time are left out and counted. A reader that has seen enough ends the printing, and
//! nothing else.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::{mpsc, oneshot};

/// Lines that wait.
const LINES: usize = 1024;

/// How long the last lines may take.
const END: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Printer {
    lines: Lines,
    done: oneshot::Receiver<()>,
}

/// Where lines are said.
#[derive(Clone)]
pub(super) struct Lines {
    sender: mpsc::Sender<String>,
    left_out: Arc<AtomicU64>,
}

impl Printer {
    /// Begins with some words.
    pub(super) fn start(intro: String) -> anyhow::Result<Self> {
        let (sender, mut receiver) = mpsc::channel::<String>(LINES);
        let left_out = Arc::<AtomicU64>::default();
        let lines = Lines { sender, left_out: Arc::clone(&left_out) };
        let (ended, done) = oneshot::channel();
        let mut print = move || {
            let mut out = std::io::stdout();
            out.write_all(intro.as_bytes())?;
            while let Some(line) = receiver.blocking_recv() {
                match left_out.swap(0, Ordering::Relaxed) {
                    0 => {}
                    count => writeln!(out, "… {count} changes were not printed: nobody took them in time")?,
                }
                out.write_all(line.as_bytes())?;
            }
            out.flush()
        };
        let run = move || {
            let printed: std::io::Result<()> = print();
            if let Err(error) = printed
                && error.kind() != ErrorKind::BrokenPipe
            {
                tracing::error!(%error, "cannot write to stdout: changes are not printed any more");
            }
            // Nobody may wait for it any more.
            let _ = ended.send(());
        };
        std::thread::Builder::new().name("printer".to_owned()).spawn(run).context("cannot start a thread")?;
        Ok(Self { lines, done })
    }

    pub(super) fn lines(&self) -> Lines {
        self.lines.clone()
    }

    /// Waits a little until everything is printed. Whoever else has lines must have let go of them.
    pub(super) async fn end(self) {
        let Self { lines, done } = self;
        drop(lines);
        // What is not printed by then never is.
        let _ = tokio::time::timeout(END, done).await;
    }
}

impl Lines {
    pub(super) fn say(&self, line: String) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(line) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}
