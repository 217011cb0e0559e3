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
    /// Its time was up before it was done, and it has said so.
    Late,
    /// What was not to be is, and it has said so.
    Failed,
}

/// Who wants an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Somebody at a terminal: Ctrl-C.
    Person,
    /// Who runs daemons: SIGTERM.
    Supervisor,
}

/// Ctrl-C and SIGTERM are ours from [`Interrupt::install`] on: before, they end the process at once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Wish {
    /// How a daemon ends that was asked to and did: for who runs daemons, that is what was wanted.
    pub(crate) fn of_a_daemon(self) -> Ended {
        match self {
            Self::Person => Ended::Interrupted,
            Self::Supervisor => Ended::Done,
        }
    }
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
        self.wish().await;
    }

    /// The same, and says which one it was.
    pub(crate) async fn wish(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Person,
            _ = self.terminate.recv() => Wish::Supervisor,
        }
    }
}
