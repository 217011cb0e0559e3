//! What may go to a terminal: text, and not what a terminal obeys.
//!
//! Objects are written by others. What is in them must not move the cursor, answer as the keyboard, or turn around what is
//! read: control characters and those that change the direction of writing are shown as what they are, `\u009b`. Colours and
//! the clearing of a line are our own, and pass; an object can at most have a colour.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text for a terminal.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let own = own(rest);
        if own > 0 {
            let (sequence, after) = rest.split_at_checked(own).unwrap_or((rest, ""));
            shown.push_str(sequence);
            rest = after;
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\u{1b}' => shown.push_str("^["),
            // Writing to a string cannot fail.
            c if is_odd(c) => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The same for a line in which nothing is our own but the text.
pub(crate) fn plain(text: &str) -> String {
    let hidden = |c: char| c == '\n' || c == '\t' || is_odd(c);
    let escaped = |mut line: String, c: char| {
        match hidden(c) {
            // Writing to a string cannot fail.
            true => drop(write!(line, "\\u{:04x}", u32::from(c))),
            false => line.push(c),
        }
        line
    };
    text.chars().fold(String::with_capacity(text.len()), escaped)
}

/// How long the sequence is that a text begins with, where it is one that we write: a colour, or the clearing of a line.
fn own(text: &str) -> usize {
    if text.starts_with("\r\x1b[K") {
        return 4;
    }
    let Some(after) = text.strip_prefix("\x1b[") else { return 0 };
    let digits = after.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    match after.as_bytes().get(digits) {
        Some(b'm') if digits <= 8 => digits + 3,
        _ => 0,
    }
}

fn is_odd(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Marks, embeddings, overrides and isolates of directions; separators of lines.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_what_it_is() {
        for (text, expected) in [
            ("a\tb\nä→…\n", "a\tb\nä→…\n"),
            ("\u{9b}31mred", "\\u009b31mred"),
            ("a\u{7f}b\u{0}c\u{8}", "a\\u007fb\\u0000c\\u0008"),
            ("txt\u{202e}exe", "txt\\u202eexe"),
            ("\u{2066}a\u{2069}\u{200f}\u{2028}", "\\u2066a\\u2069\\u200f\\u2028"),
            ("\x1b]0;title\x07", "^[]0;title\\u0007"),
            ("\x1b[2J\x1b[H", "^[[2J^[[H"),
            ("\x1b[6n", "^[[6n"),
            ("over\rwritten", "over\\u000dwritten"),
            ("\x1b[32m+ pod/web\x1b[0m\n", "\x1b[32m+ pod/web\x1b[0m\n"),
            ("\r\x1b[Kreading", "\r\x1b[Kreading"),
            ("\x1b[1;33mnote\x1b[0m", "\x1b[1;33mnote\x1b[0m"),
            ("\x1b", "^["),
            ("\x1b[", "^[["),
            ("\x1b[3", "^[[3"),
        ] {
            assert_eq!(visible(text), expected, "{text:?}");
        }
        assert_eq!(plain("a\n\x1b[31mb\u{9b}ä"), "a\\u000a\\u001b[31mb\\u009bä");
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_is_not_ours(text in "[\\x00-\\x1f\\x7f-\\u{9f}\\u{2028}-\\u{202e}\\[;mKJ0-9a]{0,40}") {
            let shown = visible(&text);
            let stripped = shown.replace("\r\x1b[K", "");
            let left: Vec<&str> = stripped.split("\x1b[").skip(1).collect();
            for part in left {
                let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
                prop_assert!(part[end..].starts_with('m'), "{:?} of {:?}", shown, text);
            }
            prop_assert!(!stripped.replace("\x1b[", "").chars().any(is_odd), "{:?} of {:?}", shown, text);
        }
    }
}
