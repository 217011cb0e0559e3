//! Whether a dictionary still does what it did at first.
//!
//! How much the first objects shrink is the baseline. After that, object by object, whole windows of objects are
//! compared with it. A window that is clearly worse asks for a new dictionary, but never sooner after a training than
//! a number of objects that doubles each time: the cost of training stays a small part of the cost of packing, and
//! objects that cannot be packed well are left in peace.

/// Objects that are compared as one.
const WINDOW: u32 = 256;

/// Worse means: what is kept is larger than the baseline by this part of it.
const WORSE: f64 = 1.5;

/// Objects after the first training until the next; doubled by each.
const FIRST_PAUSE: u64 = 4096;
const LONGEST_PAUSE: u64 = 1 << 20;

/// What to do after one more object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Go on.
    Fine,
    /// Look for a better dictionary.
    Worse,
}

/// Follows how well one packer's dictionaries do.
pub(super) struct Drift {
    /// The part that is kept; `None` until the first window is full.
    baseline: Option<f64>,
    window: Window,
    since_training: u64,
    pause: u64,
}

#[derive(Default)]
struct Window {
    objects: u32,
    plain: u64,
    kept: u64,
}

impl Drift {
    pub(super) fn new() -> Self {
        Self { baseline: None, window: Window::default(), since_training: 0, pause: FIRST_PAUSE }
    }

    /// One object was packed. Says `Worse` at most once per window.
    pub(super) fn observe(&mut self, plain: usize, kept: usize) -> Verdict {
        self.since_training = self.since_training.saturating_add(1);
        self.window.objects += 1;
        self.window.plain += plain as u64;
        self.window.kept += kept as u64;
        if self.window.objects < WINDOW {
            return Verdict::Fine;
        }
        let window = std::mem::take(&mut self.window);
        let part = window.kept as f64 / window.plain.max(1) as f64;
        match self.baseline {
            None => {
                self.baseline = Some(part);
                Verdict::Fine
            }
            Some(baseline) if part > baseline * WORSE && self.since_training >= self.pause => Verdict::Worse,
            Some(_) => Verdict::Fine,
        }
    }

    /// A training took place: the next objects make a new baseline.
    pub(super) fn trained(&mut self) {
        self.baseline = None;
        self.window = Window::default();
        self.since_training = 0;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::{Drift, FIRST_PAUSE, LONGEST_PAUSE, Verdict, WINDOW};

    /// How many objects until a new dictionary is asked for, if each keeps so much of 1,000 bytes.
    fn until_worse(drift: &mut Drift, kept: usize, at_most: u64) -> Option<u64> {
        (1..=at_most).find(|_| drift.observe(1000, kept) == Verdict::Worse)
    }

    fn baseline(drift: &mut Drift, kept: usize) {
        for _ in 0..WINDOW {
            assert_eq!(drift.observe(1000, kept), Verdict::Fine);
        }
    }

    #[test]
    fn objects_that_go_on_as_they_began_ask_for_nothing() {
        let mut drift = Drift::new();
        baseline(&mut drift, 100);
        assert_eq!(until_worse(&mut drift, 140, 10 * FIRST_PAUSE), None);
    }

    #[test]
    fn objects_that_became_clearly_worse_ask_for_a_new_dictionary_after_a_pause() {
        let mut drift = Drift::new();
        baseline(&mut drift, 100);
        let asked = until_worse(&mut drift, 160, 10 * FIRST_PAUSE).unwrap();
        assert!(asked + u64::from(WINDOW) >= FIRST_PAUSE, "{asked}");
        assert!(asked < FIRST_PAUSE + u64::from(WINDOW), "{asked}");
    }

    #[test]
    fn each_training_makes_the_next_one_wait_longer_up_to_a_limit() {
        let mut drift = Drift::new();
        let mut last = 0;
        for _ in 0..3 {
            baseline(&mut drift, 100);
            let asked = until_worse(&mut drift, 500, 100 * FIRST_PAUSE).unwrap();
            assert!(asked > last + last / 2, "{asked} after {last}");
            last = asked;
            drift.trained();
        }
        for _ in 0..64 {
            drift.trained();
        }
        assert_eq!(drift.pause, LONGEST_PAUSE);
    }

    #[test]
    fn after_a_training_a_new_baseline_is_taken() {
        let mut drift = Drift::new();
        baseline(&mut drift, 100);
        drift.trained();
        baseline(&mut drift, 500);
        assert_eq!(until_worse(&mut drift, 500, 10 * FIRST_PAUSE), None);
    }
}
