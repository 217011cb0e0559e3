//! Colours: for terminals that have them, and not where `NO_COLOR` is set.

use std::borrow::Cow;
use std::io::IsTerminal;

use kube_informer_feed::change::What;

use crate::output::visible::{Form, visible};

/// When there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum When {
    /// On terminals, unless NO_COLOR is set
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// Whether there are colours on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colours: bool,
    /// Whether somebody could be made to obey what is in a text.
    is_terminal: bool,
}

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const BOLD: &str = "1;33";
const RESET: &str = "0";

/// All that is ever written between `ESC [` and `m`.
pub(crate) const CODES: [&str; 5] = [GREEN, YELLOW, RED, BOLD, RESET];

/// What something is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Added,
    Changed,
    Deleted,
    /// To be seen, and no change.
    Warning,
    None,
}

impl Tone {
    /// That of a change.
    pub(crate) fn of(what: What) -> Self {
        match what {
            What::Added => Self::Added,
            What::Modified => Self::Changed,
            What::Deleted => Self::Deleted,
        }
    }
}

/// Whether a terminal does more than to show letters: `TERM` says so.
pub(crate) fn obeys() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

impl Style {
    pub(crate) fn stdout(when: When) -> Self {
        Self::of(when, std::io::stdout().is_terminal())
    }

    pub(crate) fn stderr(when: When) -> Self {
        Self::of(when, std::io::stderr().is_terminal())
    }

    fn of(when: When, is_terminal: bool) -> Self {
        let colours = match when {
            When::Auto => {
                is_terminal && obeys() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
            When::Always => true,
            When::Never => false,
        };
        Self { colours, is_terminal }
    }

    pub(crate) fn has_colours(self) -> bool {
        self.colours
    }

    /// A text in the colour of what it is. What a terminal would obey in the text itself is shown to it instead.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let text = if self.is_terminal { visible(text, Form::Text) } else { Cow::Borrowed(text) };
        let code = match tone {
            Tone::Added => GREEN,
            Tone::Changed => YELLOW,
            Tone::Deleted => RED,
            Tone::Warning => BOLD,
            Tone::None => return text.into_owned(),
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[{RESET}m") } else { text.into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_our_colours_and_none_of_its_own() {
        let text = "a\x1b[31mb\n";
        let style = |colours, is_terminal| Style { colours, is_terminal };
        assert_eq!(style(true, true).paint(Tone::Added, text), "\x1b[32ma^[[31mb\n\x1b[0m");
        assert_eq!(style(true, true).paint(Tone::None, text), "a^[[31mb\n");
        assert_eq!(style(false, true).paint(Tone::Added, text), "a^[[31mb\n");
        // In a pipe it is what it is.
        assert_eq!(style(true, false).paint(Tone::Added, text), format!("\x1b[32m{text}\x1b[0m"));
        assert_eq!(style(false, false).paint(Tone::Added, text), text);
    }
}
