//! Patterns: Go's regular expressions, run on the `regex` crate.
//!
//! Both speak RE2, with small differences that are evened out here: Go's `\d`, `\w`, `\s` and `\b` are
//! ASCII, a `{` that starts no repetition is itself, inside brackets only `]`, `\` and `[:` are special,
//! and some things that the crate reads are errors in Go.

use regex::{Regex, RegexBuilder};

/// Go allows no more repetitions than this.
const MAX_REPEAT: u32 = 1000;
/// Bound of a compiled pattern: a hostile one is refused instead of filling the memory.
const SIZE_LIMIT: usize = 1 << 20;

const ASCII_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// One compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    regex: Result<Regex, String>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Self {
        let regex = compile(source).map_err(|error| format!("error parsing regexp: {error}"));
        Self { source: source.to_owned(), regex }
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
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => format!("expression too large: `{source}`"),
        other => {
            // The last line holds the reason; those above it draw an arrow.
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("{reason}: `{source}`")
        }
    })
}

fn translate(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 8);
    let mut depth = 0_usize;
    let mut rest = source;
    // Whether something stands here that can be repeated, and the repetition right before.
    let mut operand = false;
    let mut repeated: Option<&str> = None;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let operator = match c {
            '*' | '+' | '?' => Some(1),
            '{' => repetition(after).map(|(width, _)| width + 1),
            _ => None,
        };
        if let Some(width) = operator {
            let lazy = usize::from(rest[width..].starts_with('?'));
            let (text, after) = rest.split_at(width + lazy);
            if !operand {
                return Err(format!("missing argument to repetition operator: `{text}`"));
            }
            if let Some(start) = repeated {
                let both = &start[..start.len() - after.len()];
                return Err(format!("invalid nested repetition operator: `{both}`"));
            }
            if c == '{'
                && let Some((_, (low, high))) = repetition(&rest[1..])
                && (low > MAX_REPEAT || high.is_some_and(|high| high > MAX_REPEAT || high < low))
            {
                return Err(format!("invalid repeat count: `{}`", &rest[..width]));
            }
            repeated = Some(rest);
            out.push_str(text);
            rest = after;
            continue;
        }
        repeated = None;
        operand = true;
        match c {
            '\\' => rest = translate_escape(rest, &mut out, false)?,
            '[' => rest = translate_class(rest, &mut out)?,
            '(' => {
                check_group(rest)?;
                depth += 1;
                operand = false;
                let plain = if rest.starts_with("(?") { rest.find([':', ')', '>']) } else { None };
                let (opening, after) = rest.split_at(plain.map_or(1, |at| at + 1));
                if opening.ends_with(')') {
                    // Flags alone: the group is closed already.
                    depth -= 1;
                }
                out.push_str(opening);
                rest = after;
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or_else(|| format!("unexpected ): `{source}`"))?;
                out.push(c);
                rest = after;
            }
            '|' => {
                operand = false;
                out.push(c);
                rest = after;
            }
            '{' => {
                out.push_str("\\{");
                rest = after;
            }
            _ => {
                out.push(c);
                rest = after;
            }
        }
    }
    if depth > 0 {
        return Err(format!("missing closing ): `{source}`"));
    }
    Ok(out)
}

/// Width and numbers of `3}`, `3,}` or `3,5}`; nothing if this is not a repetition.
fn repetition(text: &str) -> Option<(usize, (u32, Option<u32>))> {
    let inside = text.split_once('}')?.0;
    let number = |s: &str| {
        let digits = !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| s.parse().unwrap_or(u32::MAX))
    };
    let bounds = match inside.split_once(',') {
        None => (number(inside)?, None),
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
    };
    Some((inside.len() + 1, bounds))
}

/// Whether Go knows a group that opens like this.
fn check_group(group: &str) -> Result<(), String> {
    let Some(flags) = group.strip_prefix("(?") else { return Ok(()) };
    let lookbehind = flags.starts_with("<=") || flags.starts_with("<!");
    let named = flags.strip_prefix("P<").or_else(|| flags.strip_prefix('<')).filter(|_| !lookbehind);
    if let Some(name) = named {
        let Some((name, _)) = name.split_once('>') else {
            return Err(format!("invalid named capture: `{group}`"));
        };
        let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || !name.chars().all(word) {
            let shown = group.split_inclusive('>').next().unwrap_or(group);
            return Err(format!("invalid named capture: `{shown}`"));
        }
        return Ok(());
    }
    for (at, c) in flags.char_indices() {
        match c {
            'i' | 'm' | 's' | 'U' | '-' => {}
            ':' | ')' => return Ok(()),
            _ => {
                let shown = &group[..2 + at + c.len_utf8()];
                return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
            }
        }
    }
    Err(format!("missing closing ): `{group}`"))
}

/// Translates an escape; returns what follows it.
fn translate_escape<'s>(escape: &'s str, out: &mut String, in_class: bool) -> Result<&'s str, String> {
    let after = &escape[1..];
    let Some(c) = after.chars().next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let rest = &after[c.len_utf8()..];
    let invalid = || format!("invalid escape sequence: `\\{c}`");
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
        ('p' | 'P', _) => {
            let width = if rest.starts_with('{') { rest.find('}').map(|at| at + 1) } else { None };
            let width = width.or_else(|| rest.chars().next().map(char::len_utf8)).ok_or_else(invalid)?;
            let (name, rest) = rest.split_at(width);
            let class = format!("\\{c}{name}");
            if Regex::new(&class).is_err() {
                return Err(format!("invalid character class range: `{class}`"));
            }
            out.push_str(&class);
            return Ok(rest);
        }
        ('0'..='7', _) => {
            // Up to three octal digits; a single one that is not zero would be a back reference.
            let digits = after.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
            if digits == 1 && c != '0' {
                return Err(invalid());
            }
            let (octal, rest) = after.split_at(digits);
            let code = u32::from_str_radix(octal, 8).map_err(|_| invalid())?;
            out.push_str(&format!("\\x{{{code:X}}}"));
            return Ok(rest);
        }
        ('x', _) => {
            // Two digits, or any number of them in braces.
            let width = if rest.starts_with('{') { rest.find('}').map(|at| at + 1) } else { Some(2) };
            let digits = width.and_then(|width| rest.get(..width)).ok_or_else(invalid)?;
            out.push_str("\\x");
            out.push_str(digits);
            return Ok(&rest[digits.len()..]);
        }
        ('A' | 'z', false) | ('a' | 'f' | 'n' | 'r' | 't' | 'v', _) => {
            out.push('\\');
            out.push(c);
        }
        // Any punctuation may be escaped; the regex crate gives some of it another meaning.
        (c, _) if c.is_ascii_punctuation() => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        _ => return Err(invalid()),
    }
    Ok(rest)
}

/// Translates a bracket expression; returns what follows it.
fn translate_class<'s>(class: &'s str, out: &mut String) -> Result<&'s str, String> {
    let unclosed = || format!("missing closing ]: `{class}`");
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
        let high = after.strip_prefix('-').and_then(|range| range.chars().next());
        if let Some(high) =
            high.filter(|high| (first || c != ']') && !"\\[".contains(c) && !"]\\[".contains(*high))
        {
            if high < c {
                return Err(format!("invalid character class range: `{c}-{high}`"));
            }
            for (at, end) in [c, high].into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "-" });
                out.push_str(&regex::escape(end.encode_utf8(&mut [0; 4])));
            }
            rest = &after[1 + high.len_utf8()..];
            first = false;
            continue;
        }
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(after);
            }
            '\\' => {
                rest = translate_escape(rest, out, true)?;
                first = false;
                continue;
            }
            '[' if after.starts_with(':') && after.contains(":]") => {
                let end = after.find(":]").map_or(after.len(), |at| at + 2);
                let (named, after) = after.split_at(end);
                let name = named.trim_matches([':', ']']).trim_start_matches('^');
                if !ASCII_CLASSES.contains(&name) {
                    return Err(format!("invalid character class range: `[{named}`"));
                }
                out.push('[');
                out.push_str(named);
                rest = after;
                first = false;
                continue;
            }
            '-' if first || after.starts_with(['-', ']']) => out.push_str("\\-"),
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
