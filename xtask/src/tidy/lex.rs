//! Tells Rust code, comments and literals apart, line by line.
//!
//! Just enough for the rules: a word in a string is no macro call, a word in a comment is
//! no code. In the code of a line, the content of strings and characters is blanked;
//! comments are kept apart. Knows line and nested block comments, strings with escapes,
//! raw and byte strings, characters and lifetimes.

/// One line of Rust.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Without comments, strings emptied.
    pub(crate) code: String,
    /// What stands in comments.
    pub(crate) comment: String,
}

enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    String,
    RawString { hashes: usize },
}

/// The lines of a Rust source.
pub(crate) fn lines(source: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut state = State::Code;
    let chars: Vec<char> = source.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let c = chars[at];
        if c == '\n' {
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            lines.push(std::mem::take(&mut line));
            at += 1;
            continue;
        }
        // How many characters this step takes.
        let mut taken = 1;
        match &mut state {
            State::Code => match c {
                '/' if rest.starts_with(&['/', '/']) => {
                    state = State::LineComment;
                    taken = 2;
                }
                '/' if rest.starts_with(&['/', '*']) => {
                    state = State::BlockComment { depth: 1 };
                    taken = 2;
                }
                'r' if let Some(hashes) = raw_string(&chars, at) => {
                    line.code.push('"');
                    state = State::RawString { hashes };
                    taken = hashes + 2;
                }
                '"' => {
                    line.code.push('"');
                    state = State::String;
                }
                '\'' => {
                    taken = character(rest);
                    line.code.push_str(if taken == 1 { "'" } else { "''" });
                }
                _ => line.code.push(c),
            },
            State::LineComment => line.comment.push(c),
            State::BlockComment { depth } => {
                if rest.starts_with(&['/', '*']) {
                    *depth += 1;
                    taken = 2;
                } else if rest.starts_with(&['*', '/']) {
                    *depth -= 1;
                    taken = 2;
                } else {
                    line.comment.push(c);
                }
                if *depth == 0 {
                    state = State::Code;
                }
            }
            State::String => match c {
                // An escaped line break is left for the next step, which ends the line.
                '\\' if rest.get(1) != Some(&'\n') => taken = 2,
                '"' => {
                    line.code.push('"');
                    state = State::Code;
                }
                _ => {}
            },
            State::RawString { hashes } => {
                if c == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= *hashes {
                    line.code.push('"');
                    taken = *hashes + 1;
                    state = State::Code;
                }
            }
        }
        at += taken;
    }
    if line != Line::default() {
        lines.push(line);
    }
    lines
}

/// The number of hashes, if a raw string begins here; `for"` and `r#name` are none.
fn raw_string(chars: &[char], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|at| chars[at]);
    let prefix = before == Some('b') || before == Some('c');
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') && !prefix {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// The length of a character literal, or 1 for the quote of a lifetime.
fn character(rest: &[char]) -> usize {
    match rest.get(1) {
        Some('\\') => rest[2..].iter().skip(1).position(|c| *c == '\'').map_or(1, |at| at + 4),
        Some(_) if rest.get(2) == Some(&'\'') => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> Vec<String> {
        lines(source).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_code_are_told_apart() {
        let found = lines("let a = 1; // one\n/* two /* deep */ still */ b();\n");
        assert_eq!(found[0], Line { code: "let a = 1; ".into(), comment: " one".into() });
        assert_eq!(found[1], Line { code: " b();".into(), comment: " two  deep  still ".into() });
    }

    #[test]
    fn strings_are_emptied() {
        assert_eq!(
            code(r#"call("// no \" comment", 'x', '"', '\'', b"y");"#),
            [r#"call("", '', '', '', b"");"#]
        );
        assert_eq!(code("r#\"a \" b\"# + r\"c\" + br##\"d\"#e\"##;"), ["\"\" + \"\" + b\"\";"]);
    }

    #[test]
    fn a_string_over_lines_keeps_their_number() {
        assert_eq!(code("a(\"one \\\n  two\nthree\"); b\nc"), ["a(\"", "", "\"); b", "c"]);
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        assert_eq!(code("fn f<'a>(r#type: &'a str, c: char) {}"), ["fn f<'a>(r#type: &'a str, c: char) {}"]);
        assert_eq!(code(r"let c = '\u{1F600}'; d()"), ["let c = ''; d()"]);
        assert_eq!(code("for x in r {}"), ["for x in r {}"]);
    }
}
