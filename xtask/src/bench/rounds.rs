//! What was measured in several rounds: medians, what one is of the other, and whether that is enough.

use std::collections::HashMap;
use std::hash::Hash;

/// All values of all rounds, of whatever was measured of whom.
#[derive(Debug)]
pub(super) struct Rounds<W> {
    values: HashMap<W, Vec<f64>>,
}

impl<W: Eq + Hash> Rounds<W> {
    pub(super) fn add(&mut self, what: W, value: f64) {
        self.values.entry(what).or_default().push(value);
    }

    /// All there is, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&W, &Vec<f64>)> {
        self.values.iter()
    }

    /// The median of the rounds.
    pub(super) fn median(&self, what: &W) -> Option<f64> {
        let mut values = self.values.get(what)?.clone();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = values.get(middle)?;
        Some(if values.len() % 2 == 1 { *upper } else { (values.get(middle - 1)? + upper) / 2.0 })
    }

    /// What the median of one is of that of the other.
    pub(super) fn ratio(&self, one: &W, other: &W) -> Option<f64> {
        Some(self.median(one)? / self.median(other)?)
    }
}

impl<W> Default for Rounds<W> {
    fn default() -> Self {
        Self { values: HashMap::new() }
    }
}

/// What is to be said of something that should be at most that.
pub(super) fn verdict(found: Option<f64>, target: Option<f64>) -> &'static str {
    match (found, target) {
        (Some(found), Some(target)) if found <= target => "met",
        (Some(_), Some(_)) => "missed",
        _ => "",
    }
}

/// Two figures are more than a busy machine gives.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        10.0.. => format!("{ratio:.0}"),
        1.0.. => format!("{ratio:.1}"),
        0.1.. => format!("{ratio:.2}"),
        _ => format!("{ratio:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_rounds_counts() {
        let mut rounds = Rounds::default();
        [9.0, 1.0, 2.0].into_iter().for_each(|value| rounds.add("ours", value));
        [3.0, 5.0].into_iter().for_each(|value| rounds.add("theirs", value));
        assert_eq!(rounds.median(&"ours"), Some(2.0));
        assert_eq!(rounds.ratio(&"ours", &"theirs"), Some(0.5));
        assert_eq!(rounds.median(&"nobody's"), None);
    }
}
