//! Whether this process may work.

use std::time::Duration;

use tokio::sync::watch;

use crate::leader::{Leadership, Lost};

/// Says whether this process may work: a value that somebody sets, or [`Leadership`].
///
/// Of leadership, the clock is looked at before each step of a reconcile: a process that was frozen for longer than its
/// lease makes none any more, whatever task has its turn first.
#[derive(Debug, Clone)]
pub struct Gate {
    open: watch::Receiver<bool>,
    leadership: Option<Leadership>,
    /// The term in which it opened.
    term: u64,
}

/// It will not open any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shut;

impl Gate {
    /// Waits until it is open.
    pub(super) async fn opened(&mut self) -> Result<(), Shut> {
        match &self.leadership {
            Some(leadership) => self.term = leadership.begun().await.ok_or(Shut)?,
            None => {
                self.open.wait_for(|open| *open).await.map_err(|_| Shut)?;
            }
        }
        Ok(())
    }

    /// Waits until it is open no more. Whoever opened it and is gone will not open it again.
    pub(super) async fn closed(&mut self) {
        match &self.leadership {
            Some(leadership) => leadership.ended(self.term).await,
            None => drop(self.open.wait_for(|open| !*open).await),
        }
    }

    /// It was lost, and all work has ended: if that is leadership, another one shall have it, whatever is yet to end here.
    pub(crate) fn abdicate(&self, deadline: Duration) {
        if let Some(leadership) = &self.leadership {
            leadership.end(deadline);
        }
    }

    /// Makes the steps of a future while it is open.
    pub(super) async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        match &self.leadership {
            Some(leadership) => leadership.guard_term(self.term, work).await,
            None => Ok(work.await),
        }
    }
}

impl From<watch::Receiver<bool>> for Gate {
    fn from(open: watch::Receiver<bool>) -> Self {
        Self { open, leadership: None, term: 0 }
    }
}

impl From<&Leadership> for Gate {
    fn from(leadership: &Leadership) -> Self {
        Self { open: leadership.changes(), leadership: Some(leadership.clone()), term: 0 }
    }
}
