//! YAML as `kubectl` writes it: block style, two spaces, lists not indented in mappings, lines folded after 80 columns, texts
//! quoted only where they must be.
//!
//! It is the form of go-yaml, version 2, which people compare and keep under version control. Keys are in its order, too:
//! numbers in keys count as numbers (`a2` before `a10`).

mod order;
mod plain;

use serde_json::Value;

use super::json;

/// A document, with its last line's end.
pub(crate) fn document(value: &Value) -> String {
    let mut emitter = Emitter::default();
    emitter.node(value, Context::Root);
    emitter.end()
}

/// Past this column, a line is folded at the next space.
const WIDTH: usize = 80;

/// Keys that are longer have a `?` before them.
const LONGEST_KEY: usize = 128;

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    /// An element of a list.
    Item,
    /// The value of a member.
    Member,
    /// The key of a member.
    Key,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// A number as it is in JSON, but with two figures in its exponent.
fn float(number: &str) -> String {
    match number
        .split_once("e-")
        .map(|split| ("e-", split))
        .or_else(|| number.split_once("e+").map(|split| ("e+", split)))
    {
        Some((sign, (digits, power))) if power.len() == 1 => format!("{digits}{sign}0{power}"),
        _ => number.to_owned(),
    }
}

#[derive(Debug)]
struct Emitter {
    out: String,
    /// In characters.
    column: usize,
    indent: Option<usize>,
    /// Whether the last character separates.
    spaced: bool,
    /// Whether there is nothing but indentation and dashes in this line.
    indenting: bool,
}

impl Default for Emitter {
    fn default() -> Self {
        Self { out: String::new(), column: 0, indent: None, spaced: true, indenting: true }
    }
}

impl Emitter {
    fn node(&mut self, value: &Value, context: Context) {
        match value {
            Value::Null => self.plain("null", context),
            Value::Bool(true) => self.plain("true", context),
            Value::Bool(false) => self.plain("false", context),
            Value::Number(number) => self.plain(&float(&json::number(number)), context),
            Value::String(text) => self.text(text, context),
            Value::Array(items) if items.is_empty() => self.word("[]"),
            Value::Object(map) if map.is_empty() => self.word("{}"),
            Value::Array(items) => {
                let before = self.indent;
                // A list in a mapping stands where the mapping does.
                if context != Context::Member || self.indenting {
                    self.indent = Some(before.map_or(0, |indent| indent + 2));
                }
                for item in items {
                    self.line();
                    self.mark('-');
                    self.node(item, Context::Item);
                }
                self.indent = before;
            }
            Value::Object(map) => {
                let before = self.indent;
                self.indent = Some(before.map_or(0, |indent| indent + 2));
                let mut members: Vec<_> = map.iter().collect();
                members.sort_by(|(a, _), (b, _)| order::keys(a, b));
                for (key, value) in members {
                    self.line();
                    self.member(key, value);
                }
                self.indent = before;
            }
        }
    }

    fn member(&mut self, key: &str, value: &Value) {
        if key.len() <= LONGEST_KEY && !plain::Shape::of(key).multiline {
            self.text(key, Context::Key);
            self.put(':');
            self.spaced = false;
            self.indenting = false;
        } else {
            self.mark('?');
            self.text(key, Context::Member);
            self.line();
            self.mark(':');
        }
        self.node(value, Context::Member);
    }

    /// The end of the document: it ends with a line.
    fn end(mut self) -> String {
        if self.column > 0 {
            self.newline();
        }
        self.out
    }

    fn text(&mut self, text: &str, context: Context) {
        let before = self.deepen();
        self.quoted_or_not(text, context);
        self.indent = before;
    }

    /// What follows of a text stands further in. What the indentation was is given back.
    fn deepen(&mut self) -> Option<usize> {
        self.indent.replace(self.indent.map_or(2, |indent| indent + 2))
    }

    fn quoted_or_not(&mut self, text: &str, context: Context) {
        let shape = plain::Shape::of(text);
        let is_key = context == Context::Key;
        let mut style = if text.contains('\n') {
            Style::Literal
        } else if plain::means_itself(text) {
            Style::Plain
        } else {
            Style::Double
        };
        if is_key && shape.multiline {
            style = Style::Double;
        }
        if style == Style::Plain && (!shape.plain || (text.is_empty() && is_key)) {
            style = Style::Single;
        }
        if style == Style::Single && !shape.single {
            style = Style::Double;
        }
        if style == Style::Literal && (!shape.block || is_key) {
            style = Style::Double;
        }
        let folds = !is_key;
        match style {
            Style::Plain => self.folded(text, folds, false),
            Style::Single => {
                self.separate();
                self.put('\'');
                self.folded(text, folds, true);
                self.put('\'');
            }
            Style::Double => self.double(text, folds),
            Style::Literal => self.literal(text),
        }
        if style != Style::Literal {
            self.spaced = false;
            self.indenting = false;
        }
    }

    fn plain(&mut self, text: &str, context: Context) {
        self.folded(text, context != Context::Key, false);
        self.spaced = false;
        self.indenting = false;
    }

    /// Plain, or between single quotes.
    fn folded(&mut self, text: &str, folds: bool, quoted: bool) {
        if !quoted {
            self.separate();
        }
        let (mut spaces, mut breaks) = (false, false);
        let mut chars = text.chars().enumerate().peekable();
        let last = text.chars().count().saturating_sub(1);
        while let Some((at, c)) = chars.next() {
            let next_is_space = chars.peek().is_some_and(|(_, next)| *next == ' ');
            if c == ' ' {
                let is_inside = !quoted || (at > 0 && at < last);
                if folds && !spaces && self.column > WIDTH && is_inside && !next_is_space {
                    self.line();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if plain::is_break(c) {
                if !breaks && c == '\n' {
                    self.newline();
                }
                self.line_break(c);
                self.indenting = true;
                breaks = true;
            } else {
                if breaks {
                    self.line();
                }
                if quoted && c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indenting = false;
                (spaces, breaks) = (false, false);
            }
        }
    }

    fn double(&mut self, text: &str, folds: bool) {
        self.separate();
        self.put('"');
        let last = text.chars().count().saturating_sub(1);
        let mut spaces = false;
        let mut chars = text.chars().enumerate().peekable();
        while let Some((at, c)) = chars.next() {
            if !plain::is_printable(c) || plain::is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
                spaces = false;
            } else if c == ' ' {
                if folds && !spaces && self.column > WIDTH && at > 0 && at < last {
                    self.indenting = false;
                    self.line();
                    if chars.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.put('"');
    }

    fn escape(&mut self, c: char) {
        let short = match c {
            '\0' => "\\0",
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\t' => "\\t",
            '\n' => "\\n",
            '\u{b}' => "\\v",
            '\u{c}' => "\\f",
            '\r' => "\\r",
            '\u{1b}' => "\\e",
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{85}' => "\\N",
            '\u{a0}' => "\\_",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            _ => "",
        };
        let code = u32::from(c);
        let long = match code {
            _ if !short.is_empty() => String::new(),
            0..=0xff => format!("\\x{code:02X}"),
            0x100..=0xffff => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        for c in short.chars().chain(long.chars()) {
            self.put(c);
        }
    }

    fn literal(&mut self, text: &str) {
        self.separate();
        self.put('|');
        if text.starts_with(|c| c == ' ' || plain::is_break(c)) {
            self.put('2');
        }
        let mut from_end = text.chars().rev().map(plain::is_break);
        match (from_end.next(), from_end.next()) {
            (Some(false) | None, _) => self.put('-'),
            (Some(true), Some(true) | None) => self.put('+'),
            (Some(true), Some(false)) => {}
        }
        self.newline();
        self.spaced = true;
        self.indenting = true;
        let mut breaks = true;
        for c in text.chars() {
            if plain::is_break(c) {
                self.line_break(c);
                self.indenting = true;
                breaks = true;
            } else {
                if breaks {
                    self.line();
                }
                self.put(c);
                self.indenting = false;
                breaks = false;
            }
        }
    }

    /// A dash, question mark or colon that something follows in the same line.
    fn mark(&mut self, mark: char) {
        self.separate();
        self.put(mark);
        self.spaced = false;
    }

    fn word(&mut self, word: &str) {
        self.separate();
        for c in word.chars() {
            self.put(c);
        }
        self.spaced = false;
        self.indenting = false;
    }

    fn separate(&mut self) {
        if !self.spaced {
            self.put(' ');
        }
    }

    /// Goes on at the indentation: in this line, if there is nothing else in it yet, or in the next one.
    fn line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indenting || self.column > indent || (self.column == indent && !self.spaced) {
            self.newline();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.spaced = true;
        self.indenting = true;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn newline(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn line_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }
}

#[cfg(test)]
mod tests;
