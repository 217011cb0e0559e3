//! How far the first reading has come: one line on a terminal that is written anew, and gone when it is over.
//!
//! - Nothing is shown where stderr is no terminal, or one that cannot write a line anew, or where it is over in a moment.
//! - It is a bar where the server says [how many](totals) objects there are. That is an estimate, as others write meanwhile:
//!   where more come, or something had to be read again, it counts only what came.

mod bar;
mod totals;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use kube_informer::informer::{Informer, State};

use crate::cluster::Cluster;
use crate::output::Lines;
use crate::style;
use bar::Far;
use totals::Totals;

/// What is over before is not shown.
const MOMENT: Duration = Duration::from_millis(500);

/// See the module.
pub(crate) struct Progress {
    lines: Lines,
    /// Where it is shown at all.
    is_shown: bool,
    began: Instant,
    totals: Totals,
    /// Whether there is something in the line.
    is_dirty: bool,
}

impl Progress {
    pub(crate) fn new(lines: Lines, cluster: &Cluster) -> Self {
        Self {
            lines,
            is_shown: style::obeys() && std::io::stderr().is_terminal(),
            began: Instant::now(),
            totals: Totals::new(cluster),
            is_dirty: false,
        }
    }

    /// Says how far it is. Who calls it does so with the same informers, and some ten times in a second.
    pub(crate) async fn show(&mut self, informers: impl Iterator<Item = &Informer>) {
        if !self.is_shown || self.began.elapsed() < MOMENT {
            return;
        }
        let informers: Vec<&Informer> = informers.collect();
        self.totals.ask_once(&informers);
        let far = self.far(&informers);
        self.is_dirty = true;
        // Who has seen enough is told so by whoever prints what was asked for.
        let _ = self.lines.rewrite(&far.line(columns())).await;
    }

    fn far(&mut self, informers: &[&Informer]) -> Far {
        let mut far = Far { seconds: self.began.elapsed().as_secs(), total: Some(0), ..Far::default() };
        for (at, informer) in informers.iter().enumerate() {
            let (stats, is_synced) = (informer.stats(), informer.is_synced());
            let came = stats.received_objects;
            let all = match self.totals.of(at) {
                _ if is_synced => Some(came),
                // What is read again is counted again.
                _ if stats.begun_anew > 0 || matches!(stats.health.state, State::Stale { .. }) => None,
                total => total.filter(|total| came <= *total),
            };
            far.total = far.total.zip(all).map(|(total, all)| total.saturating_add(all));
            far.objects = far.objects.saturating_add(came);
            far.bytes = far.bytes.saturating_add(stats.received_bytes);
            let name = &informer.resource().plural;
            // One for each object that is named.
            if !is_synced && !far.waiting.contains(name) {
                far.waiting.push(name.clone());
            }
        }
        far
    }

    /// Takes it away.
    pub(crate) async fn clear(&mut self) {
        self.totals.end();
        if std::mem::take(&mut self.is_dirty) {
            let _ = self.lines.rewrite("").await;
        }
    }
}

/// Whoever ends it while it is shown has a clean line.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_dirty {
            self.lines.offer_clearing();
        }
    }
}

/// How wide the terminal is, where it says so.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
