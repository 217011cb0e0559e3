//! What may go to a terminal: text, and not what a terminal obeys.
//!
//! Objects are written by others, and so are the words of servers. What is in them must not move the cursor, hide what
//! follows, answer as the keyboard, or turn around what is read: control characters and those that change the direction of
//! writing are shown as what they are, `\u009b`. What is our own passes where it can only be that: the clearing of a line at
//! the beginning of one that is [rewritten](Form::Rewritten), and the colours of what is [painted](Form::Painted).

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::style;

/// Back to the beginning of the line, and away with what is in it.
pub(crate) const CLEAR: &str = "\r\x1b[K";

/// What of a text is our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing.
    Text,
    /// Colours: of [`Style`](crate::style::Style), which has taken those of others away before.
    Painted,
    /// [`CLEAR`] at its beginning.
    Rewritten,
}

/// A text for a terminal.
pub(crate) fn visible(text: &str, form: Form) -> Cow<'_, str> {
    match form {
        Form::Text => escaped(text, |_| 0),
        Form::Painted => escaped(text, colour),
        Form::Rewritten => match text.strip_prefix(CLEAR) {
            Some(rest) => Cow::Owned(format!("{CLEAR}{}", escaped(rest, |_| 0))),
            None => escaped(text, |_| 0),
        },
    }
}

/// A text without anything that is obeyed, but for what is our own: how much of the beginning of a text that is.
fn escaped(text: &str, own: impl Fn(&str) -> usize) -> Cow<'_, str> {
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

/// How long the colour is that a text begins with, where it is one that we write.
fn colour(text: &str) -> usize {
    let Some(after) = text.strip_prefix("\x1b[") else { return 0 };
    let is_ours = |code: &&str| after.strip_prefix(*code).is_some_and(|after| after.starts_with('m'));
    style::CODES.into_iter().find(is_ours).map_or(0, |code| "\x1b[".len() + code.len() + "m".len())
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
            ("\x1b[32m+ pod/web\x1b[0m\n", "^[[32m+ pod/web^[[0m\n"),
            ("\r\x1b[Kreading", "\\u000d^[[Kreading"),
            ("\x1b", "^["),
            ("\x1b[", "^[["),
            ("\x1b[3", "^[[3"),
        ] {
            assert_eq!(visible(text, Form::Text), expected, "{text:?}");
        }
        assert_eq!(plain("a\n\x1b[31mb\u{9b}ä"), "a\\u000a\\u001b[31mb\\u009bä");
    }

    #[test]
    fn what_is_our_own_passes_where_it_can_be() {
        let shown = |text: &str, form: Form| visible(text, form).into_owned();
        for ours in ["\x1b[32m+ pod/web\x1b[0m\n", "\x1b[1;33mnote\x1b[0m"] {
            assert_eq!(shown(ours, Form::Painted), ours);
        }
        // What hides the text, what is no colour, what is longer.
        for (others, expected) in [
            ("\x1b[8m", "^[[8m"),
            ("\x1b[m", "^[[m"),
            ("\x1b[32", "^[[32"),
            ("\x1b[32;8m", "^[[32;8m"),
            ("\r\x1b[K", "\\u000d^[[K"),
        ] {
            assert_eq!(shown(others, Form::Painted), expected);
        }
        assert_eq!(shown("\r\x1b[Kreading", Form::Rewritten), "\r\x1b[Kreading");
        assert_eq!(shown("\r\x1b[Ka\r\x1b[Kb\x1b[0m", Form::Rewritten), "\r\x1b[Ka\\u000d^[[Kb^[[0m");
        assert_eq!(shown("a\r\x1b[K", Form::Rewritten), "a\\u000d^[[K");
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_is_not_ours(text in "[\\x00-\\x1f\\x7f-\\u{9f}\\u{2028}-\\u{202e}\\[;mKJ0-9a]{0,40}") {
            prop_assert!(!visible(&text, Form::Text).chars().any(is_odd), "{:?}", text);
            let rewritten = visible(&text, Form::Rewritten);
            prop_assert!(!rewritten.strip_prefix(CLEAR).unwrap_or(&rewritten).chars().any(is_odd), "{:?}", text);
            let mut painted = visible(&text, Form::Painted).into_owned();
            for code in style::CODES {
                painted = painted.replace(&format!("\x1b[{code}m"), "");
            }
            prop_assert!(!painted.chars().any(is_odd), "{:?}", text);
        }
    }
}
