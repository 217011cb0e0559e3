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

    /// Drops what is so.
    pub(super) fn forget(&mut self, is_so: impl Fn(&W) -> bool) {
        self.values.retain(|what, _| !is_so(what));
    }

    /// All values of the rounds.
    pub(super) fn values(&self, what: &W) -> &[f64] {
        self.values.get(what).map_or(&[], Vec::as_slice)
    }

    /// The median of the rounds.
    pub(super) fn median(&self, what: &W) -> Option<f64> {
        median(self.values(what))
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

/// The value in the middle; of an even number, between the two that are.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    Some(if values.len() % 2 == 1 { *upper } else { (values.get(middle - 1)? + upper) / 2.0 })
}

/// The least value that so many percent of the values do not exceed. The values are in order.
pub(super) fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    // Less a little: 99.9 % of 1,000 would be a little more than 999.
    let rank = (percent / 100.0 * sorted.len() as f64 - 1e-6).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// What is to be said of something that should be at most that.
pub(super) fn verdict(found: Option<f64>, target: Option<f64>) -> &'static str {
    match (found, target) {
        (Some(found), Some(target)) if found <= target => "met",
        (Some(_), Some(_)) => "missed",
        _ => "",
    }
}

/// Two figures are more than a busy machine gives; around 1, where targets are, there are three, to see on which side it is.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        10.0.. => format!("{ratio:.0}"),
        2.0.. => format!("{ratio:.1}"),
        0.1.. => format!("{ratio:.2}"),
        ..0.0005 => "< 0.001".to_owned(),
        _ => format!("{ratio:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_seen_on_which_side_of_its_target_a_ratio_is() {
        let shown = [12.34, 2.04, 1.14, 1.06, 0.996, 0.12, 0.0123, 0.0006, 0.0001].map(ratio);
        assert_eq!(shown, ["12", "2.0", "1.14", "1.06", "1.00", "0.12", "0.012", "0.001", "< 0.001"]);
    }

    #[test]
    fn so_many_percent_do_not_exceed_a_percentile() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), Some(500.0));
        assert_eq!(percentile(&values, 99.0), Some(990.0));
        assert_eq!(percentile(&values, 99.9), Some(999.0));
        assert_eq!(percentile(&values, 99.95), Some(1000.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!((percentile(&[7.0], 99.0), percentile(&[], 50.0)), (Some(7.0), None));
    }

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
