//! Wrong arguments: one line that says what is wrong and where to read on, and exit code 2.

use std::ffi::OsString;
use std::fmt;

use clap::Command;
use clap::error::ErrorKind;

/// Arguments that only turn out to be wrong when they are looked at together: why they cannot be meant so, and how they can
/// be written.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// What is wrong with a command line, in one line; nothing where what was asked for is longer: help, or a version.
pub(crate) fn explain(error: &clap::Error, commands: &Command, words: &[OsString]) -> Option<String> {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        _ => {}
    }
    let said = error.render().to_string();
    let mut parts = Vec::new();
    for paragraph in said.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        match paragraph.split_once(": ") {
            Some(("error", what)) => parts.push(what.to_owned()),
            // What looks like a flag is one that was misspelt, and no name of an object.
            Some(("tip", tip)) if tip.starts_with("to pass ") => {}
            Some(("tip", tip)) => parts.push(tip.to_owned()),
            _ => {}
        }
    }
    parts.extend(instead(words).map(str::to_owned));
    parts.push(format!("`{} --help` says more", named(commands, words)));
    Some(parts.join("; "))
}

/// What to do instead of what only kubectl's `get` has.
fn instead(words: &[OsString]) -> Option<&'static str> {
    let words = || words.iter().skip(1).filter_map(|word| word.to_str());
    let command = words().find(|word| !word.starts_with('-'));
    let word = words().find_map(|word| match word.split('=').next().unwrap_or_default() {
        "-w" | "--watch" if command == Some("get") => Some("to see what changes, use `watch`"),
        "--show-labels" => {
            Some("labels can be shown with -o custom-columns=NAME:.metadata.name,LABELS:.metadata.labels")
        }
        "--sort-by" => Some("for another order, pipe it through sort"),
        _ => None,
    });
    word.filter(|_| matches!(command, Some("get" | "watch" | "wait")))
}

/// The command that words name, as it is typed.
fn named(commands: &Command, words: &[OsString]) -> String {
    let mut name = commands.get_bin_name().unwrap_or(commands.get_name()).to_owned();
    let mut command = commands;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-')) {
        match command.find_subcommand(word) {
            Some(found) => {
                name = format!("{name} {}", found.get_name());
                command = found;
            }
            None => break,
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::naming::{self, Called};

    fn explained(line: &str) -> Option<String> {
        let commands = naming::commands(crate::Args::command(), Called::Plugin);
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = commands.clone().try_get_matches_from(&words).unwrap_err();
        explain(&error, &commands, &words)
    }

    #[test]
    fn what_is_wrong_is_one_line_with_where_to_read_on() {
        for (line, expected) in [
            ("x get --sdf", "unexpected argument '--sdf' found; `kubectl informer get --help` says more"),
            (
                "x -v get pods --watchonly --no-header",
                "unexpected argument '--watchonly' found; `kubectl informer get --help` says more",
            ),
            (
                "x watch pods --watchonly",
                "unexpected argument '--watchonly' found; a similar argument exists: '--watch-only'; \
                 `kubectl informer watch --help` says more",
            ),
            (
                "x wiat",
                "unrecognized subcommand 'wiat'; some similar subcommands exist: 'watch', 'wait'; `kubectl informer --help` says more",
            ),
            (
                "x watch pods --color red",
                "invalid value 'red' for '--color <WHEN>' [possible values: auto, always, never]; \
                 `kubectl informer watch --help` says more",
            ),
            (
                "x wait pod/a",
                "the following required arguments were not provided: --for <CONDITION>; \
                 `kubectl informer wait --help` says more",
            ),
            (
                "x controller pods",
                "unrecognized subcommand 'pods'; `kubectl informer controller --help` says more",
            ),
        ] {
            assert_eq!(explained(line).as_deref(), Some(expected), "{line}");
        }
        for line in ["x --help", "x get -h", "x --version", "x", "x controller"] {
            assert_eq!(explained(line), None, "{line}");
        }
    }
}
