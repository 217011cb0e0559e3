//! The file to which tests write that they left themselves out.
//!
//! The writing side is `kube_informer_testbed::skip`. A test that skips returns, and
//! libtest counts it as passed: [`apply`] takes it out again.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::report::Report;

/// An empty file for one test run, gone with this value.
#[derive(Debug)]
pub(crate) struct SkipFile(PathBuf);

impl SkipFile {
    pub(crate) fn create() -> anyhow::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    pub(crate) fn create_in(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(format!("kube-informer-skips-{}", std::process::id()));
        std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(SkipFile(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads what the tests of one step wrote, and empties the file for the next.
    pub(crate) fn apply(&self, report: &mut Report) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.0).context("cannot read what the tests left out")?;
        std::fs::write(&self.0, "")?;
        apply(&text, report);
        Ok(())
    }
}

impl Drop for SkipFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// `SKIP <test>: <reason>` is left out; `MISSING <test>: <reason>` is left out for want of
/// a tool that can be installed. A line repeated by one test counts once.
fn apply(text: &str, report: &mut Report) {
    let mut seen = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let parsed = line.split_once(' ').and_then(|(word, rest)| Some((word, rest.split_once(": ")?)));
        match parsed {
            Some((_, (test, _))) if seen.contains(&test) => {}
            Some(("SKIP", (test, why))) => {
                seen.push(test);
                report.take_back_pass();
                report.skip(test, why);
            }
            Some(("MISSING", (test, why))) => {
                seen.push(test);
                report.take_back_pass();
                report.missing(test, why);
            }
            _ => report.fail("skip file", format!("cannot read the line {line:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(ci: bool, text: &str) -> String {
        let mut report = Report::new(ci);
        report.pass(5);
        apply(text, &mut report);
        report.render().lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let text = "SKIP watch::pods: no control plane\nSKIP watch::nodes: no control plane\n";
        assert_eq!(last_line(false, text), "3 passed, 0 failed, 2 skipped");
        assert_eq!(last_line(true, text), "3 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn a_test_that_says_it_twice_is_skipped_once() {
        assert_eq!(last_line(false, "SKIP a::b: x\nSKIP a::b: y\n"), "4 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_missing_tool_is_a_failure_in_ci() {
        assert_eq!(last_line(false, "MISSING a::b: kubectl\n"), "4 passed, 0 failed, 1 skipped");
        assert_eq!(last_line(true, "MISSING a::b: kubectl\n"), "4 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_line_that_makes_no_sense_fails() {
        assert_eq!(last_line(false, "SKIP\n"), "5 passed, 1 failed, 0 skipped");
        assert_eq!(last_line(false, "WHAT a: b\n"), "5 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn the_file_goes_with_the_run() {
        let file = SkipFile::create().unwrap();
        let path = file.path().to_owned();
        std::fs::write(&path, "SKIP a::b: c\n").unwrap();
        let mut report = Report::new(false);
        report.pass(1);
        file.apply(&mut report).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        drop(file);
        assert!(!path.exists());
    }
}
