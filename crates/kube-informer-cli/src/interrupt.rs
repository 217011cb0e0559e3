//! Ctrl-C and SIGTERM, as a future.

use tokio::signal::unix::{SignalKind, signal};

/// How a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It had nothing more to do.
    Done,
    /// Somebody ended it.
    Interrupted,
}

/// Resolves at the first Ctrl-C or SIGTERM.
pub(crate) async fn interrupted() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}
