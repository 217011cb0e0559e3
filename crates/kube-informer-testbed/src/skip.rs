//! Tests that leave themselves out, and say so.
//!
//! libtest knows no test that finds out at run time that it cannot run: the
//! test returns, and counts as passed. So it calls [`skip`] (or [`skip_missing`])
//! before it returns. The line `SKIP <binary>::<test>: <reason>` goes to the
//! test's own output and, when `KUBE_INFORMER_SKIP_FILE` names a file, to the end of
//! that file, where `cargo xtask test` reads it, takes the test out of the passed
//! ones and shows it with its reason. One call per test.
//!
//! Lines of many processes may go to the file at once: each is one append.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// The variable that names the file.
pub const SKIP_FILE: &str = "KUBE_INFORMER_SKIP_FILE";

/// Says that `test` was left out, because of something that this machine cannot help.
pub fn skip(test: &str, reason: &str) {
    record("SKIP", test, reason);
}

/// Says that `test` was left out because `tool` is missing, which `install` (a
/// command) would bring. Where `CI=true`, `cargo xtask test` counts this as a failure.
pub fn skip_missing(test: &str, tool: &str, install: &str) {
    record("MISSING", test, &format!("{tool} not found; install it with: {install}"));
}

fn record(word: &str, test: &str, reason: &str) {
    let line = line(word, &binary(), test, reason);
    print!("{line}");
    let Some(file) = std::env::var_os(SKIP_FILE).filter(|file| !file.is_empty()) else {
        return;
    };
    if let Err(error) = append(Path::new(&file), &line) {
        // A skip that nobody counts would pass for a success.
        panic!("{SKIP_FILE} ({}) cannot be written: {error}", Path::new(&file).display());
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).open(file)?.write_all(line.as_bytes())
}

/// One line, whatever the reason holds: the file is read line by line.
fn line(word: &str, binary: &str, test: &str, reason: &str) -> String {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{word} {binary}::{test}: {reason}\n")
}

/// The test binary's name without cargo's hash: two crates may have a test of one name.
fn binary() -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    let stem = exe.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line("SKIP", "bin", "mod::test", "no\n  Go"), "SKIP bin::mod::test: no Go\n");
    }

    #[test]
    fn lines_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("skipped");
        append(&file, "SKIP a: b\n").unwrap();
        append(&file, "SKIP c: d\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "SKIP a: b\nSKIP c: d\n");
    }

    #[test]
    fn the_binary_has_no_hash() {
        assert_eq!(binary(), "kube_informer_testbed");
    }
}
