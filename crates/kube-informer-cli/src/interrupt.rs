//! Ctrl-C and SIGTERM, as a future.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It had nothing more to do.
    Done,
    /// Somebody ended it.
    Interrupted,
}

/// Ctrl-C and SIGTERM are ours from [`Interrupt::install`] on: before, they end the process at once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    /// To be called before anything is printed that makes somebody want to end us.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let install = |kind| signal(kind).context("cannot listen for Ctrl-C");
        Ok(Self {
            interrupt: install(SignalKind::interrupt())?,
            terminate: install(SignalKind::terminate())?,
        })
    }

    /// Resolves at the first Ctrl-C or SIGTERM since.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
