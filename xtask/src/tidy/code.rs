//! `unfinished`, `ignore`, `sleep`, `size`: what Rust sources must not hold.

use super::lex::{self, Line};
use super::{Finding, Tree};

/// A file beyond this is listed.
const LONG: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        if path.ends_with(".rs") {
            let lines = lex::lines(text);
            findings.extend(unfinished(path, &lines));
            findings.extend(ignored(path, text, &lines));
            findings.extend(sleeps(path, &lines));
            let count = text.lines().count();
            if count > LONG {
                findings.push(Finding::warning("size", path, format!("{count} lines; one idea per file?")));
            }
        } else if is_source(path) {
            for (number, line) in (1..).zip(text.lines()) {
                findings.extend(note(path, number, line));
            }
        }
    }
    findings.extend(workqueue(tree));
    findings
}

fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    [".go", ".toml", ".md", ".sh", ".yaml", ".yml", ".html", ".js"].iter().any(|end| name.ends_with(end))
        || path.starts_with(".ci/")
}

/// Placeholders that compile, and debug prints.
const MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

fn unfinished(path: &str, lines: &[Line]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(lines) {
        for name in MACROS.iter().filter(|name| has_word(&line.code, name)) {
            findings.push(Finding::new("unfinished", path, number, format!("`{name}` is left in the code")));
        }
        findings.extend(note(path, number, &line.comment));
    }
    findings
}

/// Notes to oneself; written apart, or this file would be a finding.
const NOTES: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

fn note(path: &str, number: usize, text: &str) -> Option<Finding> {
    let note = NOTES.iter().find(|note| has_word(text, note))?;
    Some(Finding::new("unfinished", path, number, format!("`{note}`: do it, or open an issue")))
}

/// Whether `word` stands in `text` with nothing of a word before and after it.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let ends_open = !word.ends_with(part);
        !before.is_some_and(part) && (ends_open || !after.is_some_and(part))
    })
}

fn ignored(path: &str, text: &str, lines: &[Line]) -> Vec<Finding> {
    (1..)
        .zip(lines.iter().zip(text.lines()))
        .filter(|(_, (line, raw))| {
            let code = line.code.replace(' ', "");
            let bare =
                code.contains("#[ignore]") || (code.contains("#[cfg_attr(") && code.contains(",ignore)"));
            let empty = code.contains("#[ignore=\"\"]") && raw.contains("\"\"");
            bare || empty
        })
        .map(|(number, _)| {
            Finding::new("ignore", path, number, "an ignored test says why: `#[ignore = \"WHY\"]`")
        })
        .collect()
}

/// The comment that excepts one sleep.
const ALLOW_SLEEP: &str = "tidy: allow-sleep ";

fn sleeps(path: &str, lines: &[Line]) -> Vec<Finding> {
    let first = if is_test_file(path) { 0 } else { first_test_line(lines) };
    // A function of that name that the file itself defines does something else.
    let own = lines.iter().any(|line| has_word(&line.code, "fn sleep"));
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(first) {
        let qualified = ["time::sleep", "thread::sleep"].iter().any(|path| line.code.contains(path));
        let bare = ["sleep(", "sleep_until("].iter().any(|call| has_word(&line.code, call));
        let imported = line.code.trim_start().starts_with("use ");
        if imported || !(qualified || (bare && !own)) {
            continue;
        }
        // The line itself, or the comment lines right above it.
        let above = lines[..index].iter().rev().take_while(|line| line.code.trim().is_empty());
        let allowed = std::iter::once(line)
            .chain(above)
            .any(|line| line.comment.split_once(ALLOW_SLEEP).is_some_and(|(_, why)| !why.trim().is_empty()));
        if !allowed {
            let message =
                "a test waits for a condition, not for a time; except it with `// tidy: allow-sleep WHY`";
            findings.push(Finding::new("sleep", path, index + 1, message));
        }
    }
    findings
}

/// Integration tests, and modules named `tests`.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').rev().skip(1).any(|part| part == "tests")
}

/// By the house style a file's tests come last: from `#[cfg(test)]` above a `mod … {` on,
/// everything is test.
fn first_test_line(lines: &[Line]) -> usize {
    let inline = |pair: &[Line]| {
        pair[0].code.trim().starts_with("#[cfg(test)]")
            && pair[1].code.contains("mod ")
            && pair[1].code.contains('{')
    };
    lines.windows(2).position(inline).unwrap_or(lines.len())
}

/// The folder and the file of the work queue, which could leave the library as it is.
const WORKQUEUE: &str = "crates/kube-informer/src/workqueue";

/// Itself, and the locks that a scheduler of tests can take over, which know nothing of the library.
const KNOWN_TO_WORKQUEUE: [&str; 2] = ["workqueue", "sync::"];

fn workqueue(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        let Some(rest) = path.strip_prefix(WORKQUEUE) else {
            continue;
        };
        if rest != ".rs" && !rest.starts_with('/') {
            continue;
        }
        let top = rest == ".rs";
        for (number, line) in (1..).zip(lex::lines(text)) {
            let is_known = |after: &str| KNOWN_TO_WORKQUEUE.iter().any(|known| after.starts_with(known));
            let sibling = line.code.split("crate::").skip(1).any(|after| !is_known(after));
            let above = top && line.code.starts_with("use super::");
            if sibling || above {
                findings.push(Finding::new(
                    "workqueue",
                    path,
                    number,
                    "the work queue imports no sibling module",
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn placeholders_are_found_in_code_only() {
        let text = "fn f() {\n    todo!()\n}\n// todo!() is fine here\nlet s = \"dbg!(x)\";\ndbg!(x); unimplemented!();";
        assert_eq!(rules("a.rs", text), [("unfinished", 2), ("unfinished", 6), ("unfinished", 6)]);
        assert_eq!(rules("a.rs", "my_todo!()"), []);
    }

    #[test]
    fn notes_to_oneself_are_found_everywhere() {
        let [first, second] = NOTES;
        assert_eq!(rules("a.rs", &format!("a();\nb(); // {first}: later")), [("unfinished", 2)]);
        assert_eq!(rules("a.md", &format!("{second} here")), [("unfinished", 1)]);
        assert_eq!(rules("a.sh", &format!("mktemp {second}{second}")), []);
    }

    #[test]
    fn an_ignored_test_needs_a_reason() {
        assert_eq!(rules("a.rs", "#[test]\n#[ignore]\nfn f() {}"), [("ignore", 2)]);
        assert_eq!(rules("a.rs", "#[ignore = \"\"]\nfn f() {}"), [("ignore", 1)]);
        assert_eq!(rules("a.rs", "#[cfg_attr(windows, ignore)]\nfn f() {}"), [("ignore", 1)]);
        assert_eq!(rules("a.rs", "#[ignore = \"takes an hour\"]\nfn f() {}"), []);
    }

    #[test]
    fn a_sleep_in_a_test_is_found() {
        let call = "    tokio::time::sleep(SHORT).await;\n";
        assert_eq!(rules("a/tests/b.rs", call), [("sleep", 1)]);
        assert_eq!(rules("a/src/b/tests.rs", "std::thread::sleep(SHORT);"), [("sleep", 1)]);
        let inline = format!("fn f() {{\n{call}}}\n\n#[cfg(test)]\nmod tests {{\n{call}}}\n");
        assert_eq!(rules("a/src/b.rs", &inline), [("sleep", 7)]);
        assert_eq!(rules("a/tests/b.rs", "use tokio::time::sleep;\nsleep(SHORT).await;"), [("sleep", 2)]);
        assert_eq!(rules("a/tests/b.rs", "fn sleep(n: u32) -> Child {}\nlet child = sleep(600);"), []);
    }

    #[test]
    fn a_sleep_may_be_excepted_with_a_reason() {
        let path = "a/tests/b.rs";
        assert_eq!(rules(path, "sleep(x).await; // tidy: allow-sleep the clock is paused"), []);
        assert_eq!(rules(path, "// tidy: allow-sleep the clock\n// is paused\nsleep(x).await;"), []);
        assert_eq!(rules(path, "// tidy: allow-sleep \nsleep(x).await;"), [("sleep", 2)]);
        assert_eq!(rules(path, "// tidy: allow-sleep for a\na();\nsleep(x).await;"), [("sleep", 3)]);
    }

    #[test]
    fn a_long_file_is_a_warning() {
        let findings = check(&Tree::of(&[("a.rs", &"\n".repeat(601))]));
        assert!(findings[0].rule == "size" && findings[0].warning);
        assert_eq!(check(&Tree::of(&[("a.rs", &"\n".repeat(600))])), []);
    }

    #[test]
    fn the_work_queue_stays_alone() {
        let file = "crates/kube-informer/src/workqueue.rs";
        let part = "crates/kube-informer/src/workqueue/delay.rs";
        assert_eq!(rules(file, "use crate::workqueue::delay;\nuse self::delay::Delay;"), []);
        assert_eq!(rules(file, "use crate::cache::Key;"), [("workqueue", 1)]);
        assert_eq!(rules(file, "use super::cache::Key;"), [("workqueue", 1)]);
        assert_eq!(rules(part, "use super::Queue;\nfn f(k: crate::object::Key) {}"), [("workqueue", 2)]);
        assert_eq!(rules("crates/kube-informer/src/controller.rs", "use crate::cache::Key;"), []);
    }
}
