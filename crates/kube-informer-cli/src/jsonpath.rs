//! kubectl's JSONPath templates: text with actions in braces, `{.metadata.name}{"\n"}`.
//!
//! An action is a path: `.field`, `['key']`, `[0]`, `[1:3]`, `[*]`, `[0,2]`, `[?(@.type=="Ready")]`, `..name`, `*`; or a
//! quoted text, a number, `true`, `false`. `{range PATH}…{end}` repeats what is between for each result, which `@` and a
//! path without it begin at.
//!
//! - Results, and what they look like, are kubectl's, byte by byte. The entries of an object come in the order of their
//!   keys; kubectl gives them in any order.
//! - Fields that are not there have no results, as in `kubectl get` and `kubectl wait`.
//! - What kubectl only finds out while it runs, or never, is an error of the template here: words other than `range` and
//!   `end`, and these where they mean nothing.
//! - Errors name the place in the template, counted in characters from 1.
//! - No template and no object makes it panic, or takes more than the limits below.

mod compare;
mod eval;
mod parse;
mod print;
mod tree;

use std::fmt;

use serde_json::Value;

use tree::Piece;

/// A template is not longer than this, in bytes.
const LONGEST: usize = 64 * 1024;
/// Ranges and filters are not nested deeper than this.
const DEEPEST: usize = 32;
/// Values that are looked at for one object.
const STEPS: u64 = if cfg!(test) { 1_000_000 } else { 50_000_000 };
/// Results of one path, and of all of them.
const WIDEST: usize = if cfg!(test) { 100_000 } else { 10_000_000 };
/// What is written for one object, in bytes.
const LARGEST: usize = 256 * 1024 * 1024;

/// A template that was read.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

/// What went wrong, and where in the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPathError {
    message: String,
    /// In bytes of the template.
    at: usize,
}

/// One result: something in the object, or something that the template says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Item<'a> {
    /// In the object.
    Json(&'a Value),
    /// Text in the template.
    Text(&'a str),
    /// A number in the template.
    Int(i64),
    /// The same.
    Float(f64),
    /// `true` or `false` in the template.
    Bool(bool),
    /// One of a text's bytes, which wildcards take apart.
    Byte(u8),
    /// An element that a range found to be `null`.
    Nothing,
}

impl Template {
    /// Reads a template.
    pub(crate) fn parse(text: &str) -> Result<Self, JsonPathError> {
        Ok(Self { pieces: parse::template(text)? })
    }

    /// What an object makes of it.
    pub(crate) fn render(&self, object: &Value) -> Result<String, JsonPathError> {
        let mut text = String::new();
        for results in self.results(object)? {
            for (index, result) in results.into_iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                print::item(&mut text, result);
                if text.len() > LARGEST {
                    return Err(JsonPathError::new("the output is too large", 0));
                }
            }
        }
        Ok(text)
    }

    /// What its parts find: texts as they are, each action with its results.
    pub(crate) fn results<'a>(&'a self, object: &'a Value) -> Result<Vec<Vec<Item<'a>>>, JsonPathError> {
        eval::run(&self.pieces, object)
    }
}

impl Item<'_> {
    /// As it is printed.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        print::item(&mut text, self);
        text
    }
}

impl JsonPathError {
    fn new(message: impl Into<String>, at: usize) -> Self {
        Self { message: message.into(), at }
    }

    /// The whole, for the one who wrote the template.
    pub(crate) fn explain(&self, template: &str) -> String {
        let before = template.get(..self.at).unwrap_or(template);
        let place = before.chars().count() + 1;
        let shown: String = template.chars().take(80).collect();
        let more = if shown.len() < template.len() { "…" } else { "" };
        format!("{} at character {place} of {shown}{more}", self.message)
    }
}

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonPathError {}

/// A path as people write it where only a path can stand: `{.a.b}`, `.a.b` and `a.b` are `{.a.b}`.
pub(crate) fn relaxed(path: &str) -> Result<String, JsonPathError> {
    let bare = match path.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}'),
        None => Some(path),
    };
    let bare = bare.map(|bare| bare.strip_prefix('.').unwrap_or(bare));
    match bare {
        Some("") | None => {}
        Some(bare) if bare.contains(['{', '}']) => {}
        Some(bare) => return Ok(format!("{{.{bare}}}")),
    }
    let message = format!("{path:?} is no path: write {{.status.phase}}, .status.phase or status.phase");
    Err(JsonPathError::new(message, 0))
}

#[cfg(test)]
mod tests;
