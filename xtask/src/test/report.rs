//! What a test run adds up to: the counts, what failed, what was left out and why.
//!
//! Every thing that ran is counted once: a test as one, a step such as the
//! formatting check as one. The last line printed is `N passed, N failed, N skipped`,
//! alone on its line, whatever happened before.

use std::fmt::Write as _;
use std::time::Duration;

use kube_informer_testbed::binaries::{Unavailable, Verdict};

/// The sum over all steps.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// `CI=true`: a part that is left out although its tool can be installed has failed.
    ci: bool,
    passed: u64,
    failures: Vec<Entry>,
    skips: Vec<Entry>,
    durations: Vec<(String, Duration)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    what: String,
    why: String,
}

impl Report {
    pub(crate) fn new(ci: bool) -> Self {
        Report { ci, ..Report::default() }
    }

    pub(crate) fn pass(&mut self, count: u64) {
        self.passed += count;
    }

    pub(crate) fn fail(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.failures.push(Entry { what: what.into(), why: why.into() });
    }

    pub(crate) fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skips.push(Entry { what: what.into(), why: why.into() });
    }

    /// Left out for want of a tool that can be installed: in CI this is a failure.
    pub(crate) fn missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        if self.ci {
            self.fail(what, why);
        } else {
            self.skip(what, why);
        }
    }

    /// Left out for want of something, as bad as that is.
    pub(crate) fn unavailable(&mut self, what: impl Into<String>, unavailable: &Unavailable) {
        let why = unavailable.reason();
        match unavailable.verdict() {
            Verdict::NotHere => self.skip(what, why),
            Verdict::Installable { .. } => self.missing(what, why),
            Verdict::Broken => self.fail(what, why),
        }
    }

    /// Something counted as passed turned out to be left out.
    pub(crate) fn take_back_pass(&mut self) {
        self.passed = self.passed.saturating_sub(1);
    }

    pub(crate) fn took(&mut self, step: impl Into<String>, duration: Duration) {
        self.durations.push((step.into(), duration));
    }

    pub(crate) fn failures(&self) -> usize {
        self.failures.len()
    }

    pub(crate) fn ok(&self) -> bool {
        self.failures.is_empty()
    }

    /// The closing text, without the last line break.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        section(
            &mut text,
            "Time",
            self.durations.iter().map(|(step, time)| format!("{step}: {}", human(*time))),
        );
        section(&mut text, "Left out", self.skips.iter().map(|e| format!("{}: {}", e.what, e.why)));
        section(&mut text, "Failed", self.failures.iter().map(|e| format!("{}: {}", e.what, e.why)));
        let _ = write!(
            text,
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failures.len(),
            self.skips.len()
        );
        text
    }
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "{title}:");
    for line in lines {
        let _ = writeln!(text, "  {}", line.replace('\n', "\n    "));
    }
    text.push('\n');
}

/// `0.4 s`, `12 s`, `3 min 07 s`.
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_sum() {
        let mut report = Report::new(false);
        report.pass(41);
        report.pass(1);
        report.fail("clippy", "exit status 101");
        report.skip("deny", "cargo-deny is not installed");
        report.missing("real server", "Go not found");
        assert_eq!(report.render().lines().last(), Some("42 passed, 1 failed, 2 skipped"));
        assert!(!report.ok());
    }

    #[test]
    fn a_run_without_anything_to_tell_is_one_line() {
        assert_eq!(Report::new(true).render(), "0 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn a_missing_tool_fails_in_ci_only() {
        let mut report = Report::new(true);
        report.missing("real server", "Go not found");
        report.skip("deny", "optional");
        assert_eq!(report.render().lines().last(), Some("0 passed, 1 failed, 1 skipped"));
    }

    #[test]
    fn failures_and_skips_are_listed_with_their_reasons() {
        let mut report = Report::new(false);
        report.fail("docs", "two\nlines");
        report.skip("soak", "only with --full");
        let text = report.render();
        assert!(text.contains("Left out:\n  soak: only with --full\n"), "{text}");
        assert!(text.contains("Failed:\n  docs: two\n    lines\n"), "{text}");
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(human(Duration::from_millis(449)), "0.4 s");
        assert_eq!(human(Duration::from_secs(12)), "12 s");
        assert_eq!(human(Duration::from_secs(187)), "3 min 07 s");
    }
}
