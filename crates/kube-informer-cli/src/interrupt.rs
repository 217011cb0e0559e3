//! Ctrl-C, SIGTERM, and the end of the terminal, as a future.

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
    /// Unless somebody wants us to outlast the terminal, as `nohup` does.
    hangup: Option<Signal>,
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
            hangup: if is_hangup_ours() { Some(install(SignalKind::hangup())?) } else { None },
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
            // The window was closed, or the line is dead.
            () = hung_up(&mut self.hangup) => Wish::Person,
        }
    }
}

async fn hung_up(hangup: &mut Option<Signal>) {
    match hangup {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether SIGHUP would end the process. Where that is not known, it is left as it is.
fn is_hangup_ours() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| !ignores_hangup(&status).unwrap_or(true))
}

/// Whether the first signal is among those that a process ignores, by its `/proc/self/status`.
fn ignores_hangup(status: &str) -> Option<bool> {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    Some(u64::from_str_radix(ignored.trim(), 16).ok()? & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ignores_the_end_of_the_terminal_goes_on_doing_so() {
        assert_eq!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\n"), Some(true));
        assert_eq!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001000\n"), Some(false));
        assert_eq!(ignores_hangup("Name:\tx\n"), None);
    }
}
