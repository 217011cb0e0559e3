//! The commands that the documents tell people to type, typed by the tests.
//!
//! Above every shell block (```` ```sh ````) of a Markdown file stands a comment, on the
//! line before it or one blank line further up:
//!
//! - `<!-- test: run -->`: the block is run at the root of the repository and must succeed;
//! - `<!-- test: run until output -->`: the same for a command that does not end by
//!   itself: it is stopped when its expected output has been seen;
//! - `<!-- test: run with control plane -->`: it is run where the real control plane can be had;
//! - `<!-- test: skip: WHY -->`: it is not run; `cargo xtask test` lists it with the reason.
//!
//! A `text` block with `<!-- test: output -->` above it is what the block before it
//! prints: its lines must be found in the output, in order. `…` stands for anything
//! within a line, and alone on a line for any lines. Lines between may be left out.
//!
//! Rust blocks are doc tests: the crate that a README belongs to includes it in its own
//! documentation. `skip: WHY` excepts one.
//!
//! Finding and matching are here, without I/O but for [`run`].

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::Command;

use crate::process::{self, Ended};

/// A shell block of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Where it begins, counted from 1.
    pub(crate) line: usize,
    pub(crate) script: String,
    pub(crate) action: Action,
    /// The lines of its expected output.
    pub(crate) output: Vec<String>,
}

/// What is to be done with a block.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) enum Action {
    /// Run it to its end.
    Run,
    /// Run it until the expected output is complete.
    RunUntilOutput,
    /// Run it to its end where the real control plane can be had.
    RunWithControlPlane,
    /// Leave it out.
    Skip {
        /// The reason that the document gives.
        why: String,
    },
}

/// A document that does not follow the rules above.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// A fenced block as it stands in the file.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) lines: Vec<String>,
    /// The content of the `<!-- test: … -->` above it.
    directive: Option<String>,
}

impl Fence {
    fn is_rust(&self) -> bool {
        self.language == "rust"
    }
}

/// The line of the first Rust block that must be a doc test.
pub(crate) fn rust_block(text: &str) -> Option<usize> {
    let excepted = |fence: &Fence| fence.directive.as_deref().and_then(reason).is_some();
    fences(text).iter().find(|fence| fence.is_rust() && !excepted(fence)).map(|fence| fence.line)
}

/// Languages that mean a shell; `sh` is the one that is allowed.
const SHELLS: [&str; 6] = ["bash", "shell", "console", "zsh", "shell-session", "sh"];

/// The shell blocks of a document, or every rule that it breaks.
pub(crate) fn blocks(text: &str) -> Result<Vec<Block>, Vec<Mistake>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut mistakes = Vec::new();
    for fence in fences(text) {
        let mut mistake = |message: &str| {
            mistakes.push(Mistake { line: fence.line, message: message.to_owned() });
        };
        let directive = fence.directive.as_deref();
        if fence.language == "sh" {
            let action = match directive {
                Some("run") => Action::Run,
                Some("run until output") => Action::RunUntilOutput,
                Some("run with control plane") => Action::RunWithControlPlane,
                Some(other) if reason(other).is_some() => {
                    Action::Skip { why: reason(other).unwrap_or_default().to_owned() }
                }
                Some(other) => {
                    mistake(&format!("`test: {other}` is not a `run …` or `skip: WHY` that is known"));
                    continue;
                }
                None => {
                    mistake(
                        "a shell block needs `<!-- test: run -->` or `<!-- test: skip: WHY -->` above it",
                    );
                    continue;
                }
            };
            blocks.push(Block {
                line: fence.line,
                script: fence.lines.join("\n"),
                action,
                output: Vec::new(),
            });
        } else if SHELLS.contains(&fence.language.as_str()) {
            mistake("a shell block is written as `sh`, and its output as `text`");
        } else if directive == Some("output") {
            match blocks.last_mut() {
                Some(block) if block.output.is_empty() => {
                    block.output = fence.lines.into_iter().filter(|line| !line.trim().is_empty()).collect();
                }
                _ => mistake("`test: output` belongs right after the shell block that prints it"),
            }
        } else if fence.is_rust() && directive.is_some_and(|directive| reason(directive).is_some()) {
            // Excepted from being a doc test.
        } else if let Some(other) = directive {
            mistake(&format!("`test: {other}` above a block that is neither `sh` nor its output"));
        }
    }
    for block in &blocks {
        if block.action == Action::RunUntilOutput && block.output.is_empty() {
            let message = "`run until output` needs a block with `<!-- test: output -->` after it".to_owned();
            mistakes.push(Mistake { line: block.line, message });
        }
    }
    if mistakes.is_empty() { Ok(blocks) } else { Err(mistakes) }
}

/// The reason in `skip: WHY`.
fn reason(directive: &str) -> Option<&str> {
    directive.strip_prefix("skip:").map(str::trim).filter(|why| !why.is_empty())
}

/// The fenced blocks of a Markdown text.
pub(crate) fn fences(text: &str) -> Vec<Fence> {
    let mut fences: Vec<Fence> = Vec::new();
    let mut open: Option<(Fence, String)> = None;
    let mut directive: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        if let Some((mut fence, mark)) = open.take() {
            if trimmed.starts_with(&mark) && trimmed.trim_end().chars().all(|c| mark.starts_with(c)) {
                fences.push(fence);
            } else {
                fence.lines.push(line.to_owned());
                open = Some((fence, mark));
            }
        } else if let Some(mark) = mark(trimmed) {
            let info = trimmed.trim_start_matches(['`', '~']).trim();
            let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
            let directive = directive.take().filter(|(at, _)| number - at <= 2).map(|(_, text)| text);
            open = Some((Fence { line: number, language, lines: Vec::new(), directive }, mark));
        } else if let Some(text) =
            trimmed.trim_end().strip_prefix("<!-- test:").and_then(|rest| rest.strip_suffix("-->"))
        {
            directive = Some((number, text.trim().to_owned()));
        } else if !trimmed.is_empty() {
            directive = None;
        }
    }
    fences.extend(open.map(|(fence, _)| fence));
    fences
}

/// The run of backticks or tildes that opens a block.
fn mark(line: &str) -> Option<String> {
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let mark: String = line.chars().take_while(|c| *c == first).collect();
    (mark.len() >= 3 && !line[mark.len()..].contains('`')).then_some(mark)
}

/// Finds expected lines in output as it comes.
#[derive(Debug)]
pub(crate) struct Expect<'a> {
    missing: &'a [String],
}

impl<'a> Expect<'a> {
    pub(crate) fn new(lines: &'a [String]) -> Self {
        let mut expect = Expect { missing: lines };
        expect.pass_ellipses();
        expect
    }

    pub(crate) fn line(&mut self, line: &str) {
        if let Some((first, rest)) = self.missing.split_first()
            && matches(first.trim(), line.trim())
        {
            self.missing = rest;
            self.pass_ellipses();
        }
    }

    /// The first line that has not come.
    pub(crate) fn missing(&self) -> Option<&'a str> {
        self.missing.first().map(String::as_str)
    }

    fn pass_ellipses(&mut self) {
        while let Some((first, rest)) = self.missing.split_first()
            && first.trim() == "…"
        {
            self.missing = rest;
        }
    }
}

/// Whether `line` is `pattern`, in which `…` stands for anything.
fn matches(pattern: &str, line: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('…') else {
        return pattern == line;
    };
    let Some(rest) = line.strip_prefix(head) else {
        return false;
    };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| matches(tail, &rest[at..]))
}

/// Runs a block at `root`; `Ok(None)` is success, `Ok(Some(why))` failure.
pub(crate) async fn run(block: &Block, root: &Path, limit: Duration) -> anyhow::Result<Option<String>> {
    let mut command = Command::new("sh");
    command.args(["-euc", &block.script]).current_dir(root);
    let mut expect = Expect::new(&block.output);
    let ended = process::stream(command, limit, |line| {
        expect.line(line);
        if block.action == Action::RunUntilOutput && expect.missing().is_none() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .await
    .context("cannot run a document's command")?;
    Ok(match (&ended, expect.missing()) {
        (ended, Some(line)) => Some(format!("its output lacks the line `{line}` ({ended})")),
        (Ended::Exit(_), None) if block.action == Action::RunUntilOutput => None,
        (ended, None) => (!ended.ok()).then(|| ended.to_string()),
    })
}

#[cfg(test)]
mod tests;
