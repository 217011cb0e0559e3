//! Colours: for terminals that have them, and not where `NO_COLOR` is set.

use std::io::IsTerminal;

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
}

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
        Self { colours }
    }

    pub(crate) fn has_colours(self) -> bool {
        self.colours
    }

    /// A text in the colour of what it is.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Added => "32",
            Tone::Changed => "33",
            Tone::Deleted => "31",
            Tone::Warning => "1;33",
            Tone::None => return text.to_owned(),
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
