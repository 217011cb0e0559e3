//! How far the first reading has come: one line on a terminal that is written anew, and gone when it is over.
//!
//! Nothing is shown where stderr is no terminal, or one that cannot write a line anew, or where it is over in a moment.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use kube_informer::informer::Informer;

use crate::output::Lines;
use crate::style;

/// What is over before is not shown.
const MOMENT: Duration = Duration::from_millis(500);

/// See the module.
pub(crate) struct Progress {
    lines: Lines,
    /// Where it is shown at all.
    is_shown: bool,
    began: Instant,
    /// Whether there is something in the line.
    is_dirty: bool,
}

impl Progress {
    pub(crate) fn new(lines: Lines) -> Self {
        Self {
            lines,
            is_shown: style::obeys() && std::io::stderr().is_terminal(),
            began: Instant::now(),
            is_dirty: false,
        }
    }

    /// Says how far it is.
    pub(crate) async fn show(&mut self, informers: impl Iterator<Item = &Informer>) {
        if !self.is_shown || self.began.elapsed() < MOMENT {
            return;
        }
        let (mut objects, mut bytes) = (0, 0);
        let mut waiting = Vec::new();
        for informer in informers {
            let stats = informer.stats();
            objects += stats.received_objects;
            bytes += stats.received_bytes;
            let name = informer.resource().plural.as_str();
            // One for each object that is named.
            if !informer.is_synced() && !waiting.contains(&name) {
                waiting.push(name);
            }
        }
        let seconds = self.began.elapsed().as_secs();
        let what = shortened(&waiting);
        let line = format!("reading {what}: {objects} objects, {} ({seconds}s)", size(bytes));
        self.is_dirty = true;
        // Who has seen enough is told so by whoever prints what was asked for.
        let _ = self.lines.rewrite(fitting(&line, columns())).await;
    }

    /// Takes it away.
    pub(crate) async fn clear(&mut self) {
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

/// As much of a line as stands in one row: what goes on in the next cannot be taken away.
fn fitting(line: &str, columns: Option<usize>) -> &str {
    let most = columns.map_or(usize::MAX, |columns| columns.saturating_sub(1));
    line.char_indices().nth(most).map_or(line, |(end, _)| line.get(..end).unwrap_or_default())
}

/// Not longer than a line.
fn shortened(names: &[&str]) -> String {
    match names {
        [a, b, c, _, ..] => format!("{a}, {b}, {c} and {} more", names.len() - 3),
        few => few.join(", "),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_into_a_line() {
        assert_eq!(shortened(&["pods", "services"]), "pods, services");
        assert_eq!(shortened(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
        assert_eq!(fitting("reading pods: 5", Some(8)), "reading");
        assert_eq!(fitting("reading pods: 5", Some(80)), "reading pods: 5");
        assert_eq!(fitting("reading pods: 5", None), "reading pods: 5");
        assert_eq!((size(12_345), size(12_345_678)), ("12 kB".to_owned(), "12.3 MB".to_owned()));
    }
}
