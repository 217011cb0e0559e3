//! The line that says how far it is: a bar where it is known how much there is, else what came.

/// How far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Far {
    /// What is not read yet, by the names of resources.
    pub(super) waiting: Vec<String>,
    /// Objects that came.
    pub(super) objects: u64,
    /// How many there are, where that is known.
    pub(super) total: Option<u64>,
    pub(super) bytes: u64,
    pub(super) seconds: u64,
}

/// How wide a bar is, at most and at least: one that is narrower says nothing that the number beside it does not.
const WIDEST: usize = 30;
const NARROWEST: usize = 8;

impl Far {
    /// The line, for a terminal that is so wide, or does not say it.
    pub(super) fn line(&self, columns: Option<usize>) -> String {
        let Self { objects, bytes, seconds, .. } = self;
        let what = format!("reading {}: ", shortened(&self.waiting));
        let came = format!("{} ({seconds}s)", size(*bytes));
        // What goes on in the next row cannot be taken away.
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(1));
        let line = match self.total.filter(|total| *total > 0 && objects <= total) {
            Some(total) => {
                let percent = u128::from(*objects) * 100 / u128::from(total);
                let numbers = format!("{percent:>3}%, {objects} of {total} objects, {came}");
                let taken = what.chars().count() + numbers.chars().count() + "[] ".len();
                let width = room.saturating_sub(taken).min(WIDEST);
                format!("{what}{}{numbers}", bar(*objects, total, width))
            }
            None => format!("{what}{objects} objects, {came}"),
        };
        line.chars().take(room).collect()
    }
}

/// `[#####-----] `, or nothing where there is no room for it.
fn bar(objects: u64, total: u64, width: usize) -> String {
    if width < NARROWEST {
        return String::new();
    }
    let full = u128::from(objects) * width as u128 / u128::from(total.max(1));
    let full = usize::try_from(full).map_or(width, |full| full.min(width));
    format!("[{}{}] ", "#".repeat(full), "-".repeat(width - full))
}

/// Not longer than a line.
fn shortened(names: &[String]) -> String {
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

    fn far(objects: u64, total: Option<u64>) -> Far {
        Far { waiting: vec!["pods".to_owned()], objects, total, bytes: 12_345_678, seconds: 4 }
    }

    #[test]
    fn without_a_total_it_counts() {
        for total in [None, Some(0)] {
            assert_eq!(far(5, total).line(None), "reading pods: 5 objects, 12.3 MB (4s)");
        }
    }

    #[test]
    fn with_a_total_it_is_a_bar() {
        let bars = [
            (0, "------------------------------]   0%"),
            (1, "------------------------------]   0%"),
            (500, "###############---------------]  50%"),
            (999, "#############################-]  99%"),
            (1000, "##############################] 100%"),
        ];
        for (objects, bar) in bars {
            let expected = format!("reading pods: [{bar}, {objects} of 1000 objects, 12.3 MB (4s)");
            assert_eq!(far(objects, Some(1000)).line(None), expected);
        }
        assert!(far(u64::MAX, Some(u64::MAX)).line(None).contains("] 100%"));
    }

    #[test]
    fn more_than_there_was_to_come_is_counted_and_no_part_of_anything() {
        assert_eq!(far(1001, Some(1000)).line(None), "reading pods: 1001 objects, 12.3 MB (4s)");
    }

    #[test]
    fn it_fits_into_a_line() {
        for total in [None, Some(1000)] {
            for columns in 1..120 {
                let line = far(500, total).line(Some(columns));
                assert!(line.chars().count() < columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn a_narrow_terminal_has_a_shorter_bar_or_none() {
        let line = |columns| far(500, Some(1000)).line(Some(columns));
        assert_eq!(line(69), "reading pods: [######------]  50%, 500 of 1000 objects, 12.3 MB (4s)");
        assert_eq!(line(60), "reading pods:  50%, 500 of 1000 objects, 12.3 MB (4s)");
        assert_eq!(line(9), "reading ");
    }

    #[test]
    fn names_and_sizes_are_short() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(shortened(&names(&["pods", "services"])), "pods, services");
        assert_eq!(shortened(&names(&["a", "b", "c", "d", "e"])), "a, b, c and 2 more");
        assert_eq!((size(12_345), size(12_345_678)), ("12 kB".to_owned(), "12.3 MB".to_owned()));
    }
}
