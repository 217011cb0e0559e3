//! Patterns: Go's regular expressions, run on the `regex` crate.
//!
//! Both speak RE2, with small differences that [`translate`] evens out: Go's `\d`, `\w`, `\s` and `\b`
//! are ASCII, a `{` that starts no repetition is itself, and inside brackets only `]`, `\` and `[:`
//! are special.

use regex::{Regex, RegexBuilder};

/// Go allows no more repetitions than this.
const MAX_REPEAT: u32 = 1000;
/// Bound of a compiled pattern: a hostile one is refused instead of filling the memory.
const SIZE_LIMIT: usize = 1 << 20;

/// One compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    regex: Result<Regex, String>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Self {
        Self { source: source.to_owned(), regex: compile(source) }
    }

    /// What is wrong with it, in Go's words where they are simple to find.
    pub(crate) fn error(&self) -> Option<&str> {
        self.regex.as_ref().err().map(String::as_str)
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_ok_and(|regex| regex.is_match(text))
    }
}

fn compile(source: &str) -> Result<Regex, String> {
    let translated = translate(source)?;
    RegexBuilder::new(&translated).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build().map_err(
        |error| {
            match error {
                regex::Error::CompiledTooBig(_) => {
                    format!("error parsing regexp: expression too large: `{source}`")
                }
                other => {
                    // The last line holds the reason; those above it draw an arrow.
                    let text = other.to_string();
                    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    format!("error parsing regexp: {reason}: `{source}`")
                }
            }
        },
    )
}

fn translate(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 8);
    let mut depth = 0_usize;
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                rest = translate_escape(after, &mut out, false)?;
                continue;
            }
            '[' => {
                rest = translate_class(rest, &mut out)?;
                continue;
            }
            '(' => {
                depth += 1;
                if let Some(look) = ["(?=", "(?!", "(?<=", "(?<!"].iter().find(|l| rest.starts_with(**l)) {
                    // Go stops reading after the three characters that tell.
                    let shown = if look.len() > 3 { "(?<" } else { look };
                    return Err(format!(
                        "error parsing regexp: invalid or unsupported Perl syntax: `{shown}`"
                    ));
                }
                out.push(c);
            }
            ')' => {
                if depth == 0 {
                    return Err(format!("error parsing regexp: unexpected ): `{source}`"));
                }
                depth -= 1;
                out.push(c);
            }
            '{' => match repetition(after) {
                Some((low, high)) if low > MAX_REPEAT || high.is_some_and(|h| h > MAX_REPEAT || h < low) => {
                    let shown = rest.split_inclusive('}').next().unwrap_or(rest);
                    return Err(format!("error parsing regexp: invalid repeat count: `{shown}`"));
                }
                Some(_) => out.push(c),
                None => out.push_str("\\{"),
            },
            _ => out.push(c),
        }
        rest = after;
    }
    if depth > 0 {
        return Err(format!("error parsing regexp: missing closing ): `{source}`"));
    }
    Ok(out)
}

/// The numbers of `3}`, `3,}` or `3,5}`; nothing if this is not a repetition.
fn repetition(text: &str) -> Option<(u32, Option<u32>)> {
    let inside = text.split_once('}')?.0;
    let number = |s: &str| {
        let digits = !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| s.parse().unwrap_or(u32::MAX))
    };
    match inside.split_once(',') {
        None => Some((number(inside)?, None)),
        Some((low, "")) => Some((number(low)?, None)),
        Some((low, high)) => Some((number(low)?, Some(number(high)?))),
    }
}

/// Translates what follows a backslash; returns what follows the escape.
fn translate_escape<'s>(after: &'s str, out: &mut String, in_class: bool) -> Result<&'s str, String> {
    let Some(c) = after.chars().next() else {
        return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
    };
    let rest = &after[c.len_utf8()..];
    match (c, in_class) {
        ('d', false) => out.push_str("[0-9]"),
        ('d', true) => out.push_str("0-9"),
        ('D', _) => out.push_str("[^0-9]"),
        ('w', false) => out.push_str("[0-9A-Za-z_]"),
        ('w', true) => out.push_str("0-9A-Za-z_"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('s', false) => out.push_str("[\\t\\n\\f\\r ]"),
        ('s', true) => out.push_str("\\t\\n\\f\\r "),
        ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
        ('b', false) => out.push_str("(?-u:\\b)"),
        ('B', false) => out.push_str("(?-u:\\B)"),
        ('Q', false) => {
            let (literal, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(literal));
            return Ok(rest);
        }
        // Any punctuation may be escaped; the regex crate gives some of it another meaning.
        (c, _) if c.is_ascii_punctuation() => {
            out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        }
        (c, _) => {
            out.push('\\');
            out.push(c);
        }
    }
    Ok(rest)
}

/// Translates a bracket expression; returns what follows it.
fn translate_class<'s>(class: &'s str, out: &mut String) -> Result<&'s str, String> {
    let unclosed = || format!("error parsing regexp: missing closing ]: `{class}`");
    out.push('[');
    let mut rest = &class[1..];
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        let c = rest.chars().next().ok_or_else(unclosed)?;
        let after = &rest[c.len_utf8()..];
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(after);
            }
            '\\' => {
                rest = translate_escape(after, out, true).map_err(|_| unclosed())?;
                first = false;
                continue;
            }
            '[' if after.starts_with(':') && after.contains(":]") => {
                let end = after.find(":]").map_or(after.len(), |at| at + 2);
                out.push('[');
                out.push_str(&after[..end]);
                rest = &after[end..];
                first = false;
                continue;
            }
            '-' => out.push_str(if after.starts_with('-') || first { "\\-" } else { "-" }),
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
        first = false;
        rest = after;
    }
}
