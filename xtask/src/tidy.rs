//! Checks of the source tree that no compiler makes.
//!
//! | rule | says |
//! |---|---|
//! | `modules` | every `.rs` file belongs to a target: an unreferenced file never compiles |
//! | `machine` | no path of a developer's machine and no package mirror in any file |
//! | `unfinished` | no placeholder macros, no debug prints, no notes to oneself |
//! | `ignore` | an ignored test says why |
//! | `sleep` | tests wait for conditions; `// tidy: allow-sleep WHY` on the line or above it excepts one |
//! | `links` | a Markdown link to a file of the repository finds it |
//! | `examples` | the lists of examples have all there are, and no others |
//! | `commands` | every shell block of a document says whether the tests run it, every Rust block is a doc test ([`crate::docs`]) |
//! | `packages` | who may depend on whom, what nobody may; every package takes the workspace's lints |
//! | `workqueue` | the work queue imports no sibling module but the locks of `sync` |
//! | `promises` | each promise of the library has a test whose name begins with its number |
//! | `ci` | `.ci/run` runs the README's test command and nothing else |
//! | `size` | a file over 600 lines is listed; a warning, not an error |
//!
//! The rules are functions from a [`Tree`] to findings, without I/O. A rule that cannot
//! read what it needs reports that; it never passes silently.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use anyhow::bail;

mod code;
mod examples;
mod lex;
mod links;
mod machine;
mod modules;
mod packages;
mod tree;

pub(crate) use tree::Tree;

/// Something that a rule objects to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the root.
    path: String,
    /// Counted from 1; 0 means the whole file.
    line: usize,
    rule: &'static str,
    message: String,
    /// Listed, but no reason to fail.
    warning: bool,
}

impl Finding {
    fn new(rule: &'static str, path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { path: path.to_owned(), line, rule, message: message.into(), warning: false }
    }

    fn warning(rule: &'static str, path: &str, message: impl Into<String>) -> Self {
        Finding { warning: true, ..Finding::new(rule, path, 0, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning" } else { "error" };
        write!(f, "{kind}[{}] {}", self.rule, self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// `cargo xtask tidy`: prints the findings; an error if there is one that is not a warning.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let packages = packages::read(root)?;
    let findings = check(&tree, &packages);
    for finding in &findings {
        println!("{finding}");
    }
    match findings.iter().filter(|finding| !finding.warning).count() {
        0 => {
            println!("{} files are tidy", tree.len());
            Ok(())
        }
        count => bail!("{count} findings"),
    }
}

fn check(tree: &Tree, packages: &[packages::Package]) -> Vec<Finding> {
    let roots: Vec<&str> = packages.iter().flat_map(|p| p.roots.iter().map(String::as_str)).collect();
    let mut findings = Vec::new();
    findings.extend(modules::check(tree, &roots));
    findings.extend(machine::check(tree));
    findings.extend(code::check(tree));
    findings.extend(links::check(tree));
    findings.extend(examples::check(tree));
    findings.extend(commands(tree));
    findings.extend(ci(tree));
    findings.extend(promises(tree));
    findings.extend(packages::check(tree, packages));
    findings.sort();
    findings
}

/// Every shell block follows the rules of [`crate::docs`], every Rust block is a doc test.
fn commands(tree: &Tree) -> Vec<Finding> {
    let included = included(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for mistake in crate::docs::blocks(text).err().unwrap_or_default() {
            findings.push(Finding::new("commands", path, mistake.line, mistake.message));
        }
        if let Some(line) = crate::docs::rust_block(text)
            && !included.contains(path)
        {
            let message =
                "a Rust block that no crate includes with `#![doc = include_str!(…)]` is never compiled";
            findings.push(Finding::new("commands", path, line, message));
        }
    }
    findings
}

/// The documents that crates include in their own documentation.
fn included(tree: &Tree) -> BTreeSet<String> {
    let mut included = BTreeSet::new();
    for (path, text) in tree.with_extension("rs") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for line in text.lines().filter(|line| line.trim_start().starts_with('#') && line.contains("doc = "))
        {
            let target = line.split_once("include_str!(\"").and_then(|(_, rest)| rest.split('"').next());
            included.extend(target.map(|target| modules::join(folder, target)));
        }
    }
    included
}

/// The one test command.
const TEST_COMMAND: &str = "cargo xtask test";

/// CI runs what the README says, no more and no less.
fn ci(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let last = tree.get(".ci/run").and_then(|text| text.lines().rfind(|line| !line.trim().is_empty()));
    if last != Some(&format!("exec {TEST_COMMAND}")) {
        findings.push(Finding::new("ci", ".ci/run", 0, format!("does not end with `exec {TEST_COMMAND}`")));
    }
    let readme = tree.get("README.md").unwrap_or_default();
    if !crate::docs::fences(readme)
        .iter()
        .any(|fence| fence.language == "sh" && fence.lines == [TEST_COMMAND])
    {
        let message = format!("has no shell block that is exactly `{TEST_COMMAND}`, which .ci/run runs");
        findings.push(Finding::new("ci", "README.md", 0, message));
    }
    findings
}

/// How many promises the library makes.
const PROMISES: usize = 20;

/// Each promise is found in the tests by its number.
fn promises(tree: &Tree) -> Vec<Finding> {
    let tested = |promise: usize| {
        let name = format!("fn promise_{promise:02}_");
        tree.with_extension("rs").any(|(path, text)| path.starts_with(LIBRARY) && text.contains(&name))
    };
    let missing = (1..=PROMISES).filter(|promise| !tested(*promise));
    let message = |promise| format!("no test of promise {promise}: none is called promise_{promise:02}_…");
    missing.map(|promise| Finding::new("promises", LIBRARY, 0, message(promise))).collect()
}

const LIBRARY: &str = "crates/kube-informer/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_without_a_test_is_found() {
        let all: String =
            (1..=PROMISES).map(|promise| format!("fn promise_{promise:02}_holds() {{}}\n")).collect();
        let file = "crates/kube-informer/src/tests.rs";
        assert_eq!(promises(&Tree::of(&[(file, &all)])), []);
        let findings = promises(&Tree::of(&[(file, &all.replace("promise_07_", "promise_7_"))]));
        assert!(matches!(&findings[..], [finding] if finding.message.contains("promise 7")), "{findings:?}");
        assert_eq!(promises(&Tree::of(&[("xtask/src/tests.rs", &all)])).len(), PROMISES);
    }

    #[test]
    fn a_shell_block_without_a_word_is_found() {
        let tree = Tree::of(&[("README.md", "# A\n\n```sh\nls\n```\n")]);
        let findings = commands(&tree);
        assert_eq!((findings[0].rule, findings[0].line), ("commands", 3));
    }

    #[test]
    fn a_rust_block_that_is_never_compiled_is_found() {
        let readme = ("a/README.md", "```rust\nfn main() {}\n```\n");
        let findings = commands(&Tree::of(&[readme, ("a/src/lib.rs", "//! A.\n")]));
        assert_eq!((findings[0].rule, findings[0].line), ("commands", 1));
        let lib = ("a/src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n");
        assert_eq!(commands(&Tree::of(&[readme, lib])), []);
    }

    #[test]
    fn ci_that_runs_something_else_is_found() {
        let readme = ("README.md", "<!-- test: skip: itself -->\n```sh\ncargo xtask test\n```\n");
        assert_eq!(ci(&Tree::of(&[(".ci/run", "#!/bin/sh\nexec cargo xtask test\n"), readme])), []);
        let findings = ci(&Tree::of(&[(".ci/run", "#!/bin/sh\nexec cargo xtask test --only fmt\n"), readme]));
        assert_eq!(findings[0].path, ".ci/run");
        let findings = ci(&Tree::of(&[(".ci/run", "exec cargo xtask test\n"), ("README.md", "# A\n")]));
        assert_eq!(findings[0].path, "README.md");
    }

    #[test]
    fn a_finding_says_where() {
        let error = Finding::new("links", "a.md", 3, "no file b.md");
        assert_eq!(error.to_string(), "error[links] a.md:3: no file b.md");
        let warning = Finding::warning("size", "a.rs", "700 lines");
        assert_eq!(warning.to_string(), "warning[size] a.rs: 700 lines");
    }
}
