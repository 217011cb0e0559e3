//! The commands that the documents tell people to type, typed by the tests.
//!
//! Above every shell block (```` ```sh ````) of a Markdown file stands a comment, on the
//! line before it or one blank line further up:
//!
//! - `<!-- test: run -->`: the block is run at the root of the repository and must succeed;
//! - `<!-- test: run as installed -->`: it is run in an empty home folder, with the binary
//!   `kube-informer` on the `PATH`;
//! - `<!-- test: run on the embedded server -->`: at the root of the repository, with the
//!   binary on the `PATH`, and `KUBECONFIG` leads to an embedded server, simulated and empty;
//! - `<!-- test: run on the demo -->`: the same, and it is the demo's server, with its shop;
//! - `<!-- test: run in another terminal -->`: it is run beside the block before it, which
//!   goes on until then, and where that one is run;
//! - `<!-- test: run with control plane -->`: it is run where the real control plane can be had,
//!   which lies in `target/control-plane`: that is exchanged for a folder that goes away, and
//!   what still runs there is ended;
//! - `<!-- test: skip: WHY -->`: it is not run; `cargo xtask test` lists it with the reason.
//!
//! Behind each `run …` may stand `until output`, for a block whose last command does not end by
//! itself: it is told to end by SIGTERM when its expected output has been seen, and what is run
//! in other terminals after it is over. It fails if it does not end then, or not as one does
//! that is told to.
//!
//! A block that is run starts nothing in the background, has no pipes, and names ports by
//! 127.0.0.1, of which others are put in place. What it leaves running is killed.
//!
//! A `text` block with `<!-- test: output -->` above it is what the block before it
//! prints: its lines must be found in the output, in order. `…` stands for anything
//! within a line, and alone on a line for any lines. Lines between may be left out.
//!
//! Rust blocks are doc tests: the crate that a README belongs to includes it in its own
//! documentation. `skip: WHY` excepts one.
//!
//! What the documents say is found here, without I/O; [`Stage`] does it.

// What it must not say.
mod script;

// Where a block is run, and with what.
mod control_plane;
mod environment;
mod ground;
mod ports;

// What it prints, and how it ends.
mod expect;
mod stage;

pub(crate) use stage::{Outcome, Stage};

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
    /// Run it.
    Run {
        place: Place,
        /// Not to its end, but until the expected output is complete.
        until_output: bool,
    },
    /// Leave it out.
    Skip {
        /// The reason that the document gives.
        why: String,
    },
}

/// Where a block is run.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Place {
    /// At the root of the repository.
    Here,
    /// The same, where the real control plane can be had.
    ControlPlane,
    /// In an empty home folder, with the binary.
    Installed,
    /// With the binary and an embedded server.
    Embedded,
    /// With the binary and the demo.
    Demo,
    /// Beside the block before it, and where that one is run.
    OtherTerminal,
}

impl Block {
    /// Whether it is run beside the block before it.
    fn is_beside(&self) -> bool {
        matches!(self.action, Action::Run { place: Place::OtherTerminal, .. })
    }

    fn is_until_output(&self) -> bool {
        matches!(self.action, Action::Run { until_output: true, .. })
    }

    /// Whether it is run, and calls the binary that `cargo build --release` makes.
    pub(crate) fn wants_binary(&self) -> bool {
        match self.action {
            Action::Run { place: Place::Installed | Place::Embedded | Place::Demo, .. } => true,
            Action::Run { .. } => self.script.contains("--release"),
            Action::Skip { .. } => false,
        }
    }
}

/// Blocks that are run together: one, and those that are run beside it.
pub(crate) fn scenes(blocks: &[Block]) -> impl Iterator<Item = &[Block]> {
    blocks.chunk_by(|_, next| next.is_beside())
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
            let action = match directive.map(|words| action(words).ok_or(words)) {
                Some(Ok(action)) => action,
                Some(Err(other)) => {
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
    let mut mistake = |block: &Block, message: &str| {
        mistakes.push(Mistake { line: block.line, message: message.to_owned() });
    };
    for block in blocks.iter().filter(|block| matches!(block.action, Action::Run { .. })) {
        script::mistakes(&block.script).for_each(|message| mistake(block, &message));
    }
    for block in blocks.iter().filter(|block| block.is_until_output() && block.output.is_empty()) {
        mistake(block, "`until output` needs a block with `<!-- test: output -->` after it");
    }
    for scene in scenes(&blocks) {
        if let [first, beside @ ..] = scene
            && (first.is_beside() || !beside.is_empty() && !first.is_until_output())
        {
            let message = "`in another terminal` belongs after a block that is run `until output`";
            mistake(beside.first().unwrap_or(first), message);
        }
    }
    if mistakes.is_empty() { Ok(blocks) } else { Err(mistakes) }
}

/// What the words above a shell block mean.
fn action(words: &str) -> Option<Action> {
    if let Some(why) = reason(words) {
        return Some(Action::Skip { why: why.to_owned() });
    }
    let rest = words.strip_prefix("run")?;
    let (place, until_output) = match rest.strip_suffix(" until output") {
        Some(place) => (place, true),
        None => (rest, false),
    };
    let place = match place {
        "" => Place::Here,
        " as installed" => Place::Installed,
        " on the embedded server" => Place::Embedded,
        " on the demo" => Place::Demo,
        " in another terminal" => Place::OtherTerminal,
        " with control plane" => Place::ControlPlane,
        _ => return None,
    };
    Some(Action::Run { place, until_output })
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

#[cfg(test)]
mod tests;
