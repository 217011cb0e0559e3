//! From text to pieces: what a template consists of, one after the other.
//!
//! Words mean what they mean to kubectl, oddities included: `['a.b']` is the field `b` of the field `a`, and a dot that
//! belongs to a key is written `\.`.

use super::tree::{Filter, Node, Operator, Piece, Slice, Step};
use super::{DEEPEST, JsonPathError, LONGEST};

/// What stands in braces, before ranges and their ends have found each other.
#[derive(Debug, Default)]
struct Action {
    nodes: Vec<Node>,
    /// `range` or `end`, and where.
    word: Option<(Word, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Range,
    End,
}

enum Part {
    Text(String),
    Action(Action),
}

type Result<T> = std::result::Result<T, JsonPathError>;

/// Reads a template.
pub(super) fn template(text: &str) -> Result<Vec<Piece>> {
    if text.len() > LONGEST {
        return Err(JsonPathError::new(
            format!("a template of more than {LONGEST} bytes is too long"),
            LONGEST,
        ));
    }
    let parts = Parser { text, at: 0, base: 0, depth: 0 }.parts()?;
    pair(parts)
}

/// Ranges find their ends.
fn pair(parts: Vec<Part>) -> Result<Vec<Piece>> {
    let mut pieces = Vec::with_capacity(parts.len());
    let mut open: Vec<usize> = Vec::new();
    for part in parts {
        let here = pieces.len();
        let piece = match part {
            Part::Text(text) => Piece::Text(text),
            Part::Action(Action { nodes, word: None }) => Piece::Path(nodes),
            Part::Action(Action { nodes, word: Some((Word::Range, at)) }) => {
                open.push(here);
                if open.len() > DEEPEST {
                    return Err(JsonPathError::new(format!("more than {DEEPEST} ranges in each other"), at));
                }
                Piece::Range { over: nodes, end: usize::MAX, resume: usize::MAX }
            }
            Part::Action(Action { word: Some((Word::End, at)), .. }) => {
                let begin = open.pop();
                let begin = begin.and_then(|begin| pieces.get_mut(begin));
                let Some(Piece::Range { end, resume, .. }) = begin else {
                    return Err(JsonPathError::new("not in range, nothing to end", at));
                };
                (*end, *resume) = (here, here + 1);
                Piece::End
            }
        };
        pieces.push(piece);
    }
    let count = pieces.len();
    let last_end = pieces.iter().rposition(|piece| matches!(piece, Piece::End));
    for begin in open {
        if let Some(Piece::Range { end, resume, .. }) = pieces.get_mut(begin) {
            *end = count;
            *resume = last_end.filter(|last| *last > begin).map_or(begin + 1, |last| last + 1);
        }
    }
    Ok(pieces)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// Where the text begins in the whole template; what is in brackets is read by itself.
    base: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn parts(mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        loop {
            let rest = self.rest();
            let brace = rest.find('{').unwrap_or(rest.len());
            let (text, rest) = rest.split_at(brace);
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
            if rest.is_empty() {
                return Ok(parts);
            }
            self.at += brace + 1;
            parts.push(Part::Action(self.action()?));
        }
    }

    /// Reads on until behind the closing brace.
    fn action(&mut self) -> Result<Action> {
        let mut action = Action::default();
        loop {
            let here = self.at;
            let rest = self.rest();
            let at = self.base.saturating_add(here);
            let mut add = |step| action.nodes.push(Node { step, at });
            if rest.starts_with("[?(") {
                add(Step::Filter(self.filter()?));
                continue;
            }
            if rest.starts_with("..") {
                if action.nodes.last().is_some_and(|node| matches!(node.step, Step::Recursive)) {
                    return Err(self.wrong("invalid multiple recursive descent", here));
                }
                action.nodes.push(Node { step: Step::Recursive, at });
                self.at += 2;
                if self.rest().starts_with(is_word) {
                    action.nodes.push(self.field());
                }
                continue;
            }
            match rest.chars().next() {
                None | Some('\n' | '\r') => return Err(self.wrong("unclosed action", here)),
                Some('}') => {
                    self.at += 1;
                    return Ok(action);
                }
                Some(' ' | '@' | '$') => self.at += 1,
                Some('[') => self.brackets(&mut action.nodes)?,
                Some(quote @ ('"' | '\'')) => add(Step::Text(self.quoted(quote)?)),
                Some('.') => {
                    self.at += 1;
                    action.nodes.push(self.field());
                }
                Some(c) if c == '+' || c == '-' || is_digit(c) => add(self.number()?),
                Some(c) if is_word(c) => self.word(&mut action)?,
                Some(c) => {
                    let shown = if c.is_control() { String::new() } else { format!(" '{c}'") };
                    let message = format!("unrecognized character in action: U+{:04X}{shown}", u32::from(c));
                    return Err(self.wrong(message, here));
                }
            }
        }
    }

    /// `true`, `false`, `range`, `end`.
    fn word(&mut self, action: &mut Action) -> Result<()> {
        let here = self.at;
        let at = self.base.saturating_add(here);
        let rest = self.rest();
        let word = rest.split(is_terminator).next().unwrap_or_default().to_owned();
        self.at += word.len();
        let mut keyword = |found| {
            let alone = action.nodes.is_empty() && action.word.is_none() && self.depth == 0;
            action.word = Some((found, at));
            alone
        };
        let stands_right = match &*word {
            "true" => {
                action.nodes.push(Node { step: Step::Bool(true), at });
                true
            }
            "false" => {
                action.nodes.push(Node { step: Step::Bool(false), at });
                true
            }
            "range" => keyword(Word::Range),
            "end" => keyword(Word::End) && self.rest().trim_start_matches(' ').starts_with('}'),
            _ => {
                let message = format!("unrecognized identifier {word}: texts are quoted, {{\"{word}\"}}");
                return Err(self.wrong(message, here));
            }
        };
        if stands_right {
            return Ok(());
        }
        Err(self.wrong("write {range PATH} and {end}: nothing else can stand beside these words", here))
    }

    /// What follows a dot, up to what cannot be part of a name. Its beginning was read.
    fn field(&mut self) -> Node {
        let at = self.base.saturating_add(self.at);
        let mut name = String::new();
        let mut raw = 0;
        let mut chars = self.rest().chars();
        while let Some(c) = chars.next() {
            if c == '\\' {
                raw += 1;
                // Whatever follows is part of the name; only backslashes never are.
                if let Some(escaped) = chars.next() {
                    raw += escaped.len_utf8();
                    name.extend(Some(escaped).filter(|c| *c != '\\'));
                }
                continue;
            }
            if is_terminator(c) {
                break;
            }
            raw += c.len_utf8();
            name.push(c);
        }
        let is_wildcard = name == "*" && raw == 1;
        self.at += raw;
        Node { step: if is_wildcard { Step::Wildcard } else { Step::Field(name) }, at }
    }

    fn number(&mut self) -> Result<Step> {
        let here = self.at;
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['+', '-']));
        let digits = rest.get(sign..).unwrap_or_default();
        let end = digits.find(|c| c != '.' && !is_digit(c)).unwrap_or(digits.len());
        let number = rest.get(..sign + end).unwrap_or_default();
        let step = match (number.parse(), number.parse()) {
            (Ok(int), _) => Step::Int(int),
            (_, Ok(float)) if f64::is_finite(float) => Step::Float(float),
            _ => return Err(self.wrong(format!("cannot parse number {number}"), here)),
        };
        self.at += sign + end;
        Ok(step)
    }

    /// `[…]`, but for filters.
    fn brackets(&mut self, nodes: &mut Vec<Node>) -> Result<()> {
        let here = self.at;
        let at = self.base.saturating_add(here);
        let rest = self.rest();
        let inside = rest.get(1..).unwrap_or_default();
        let line = inside.lines().next().unwrap_or_default();
        let Some((inside, _)) = line.split_once(']') else {
            return Err(self.wrong("unterminated array", here));
        };
        self.at += inside.len() + 2;
        if inside.contains(',') {
            let mut union = Vec::new();
            let mut begin = here + 1;
            for part in inside.split(',') {
                let trimmed = part.trim_matches(' ');
                let skipped = part.len() - part.trim_start_matches(' ').len();
                // As if it stood in braces and brackets of its own.
                let base = self.base.saturating_add(begin + skipped).saturating_sub(2);
                union.push(self.apart(&format!("{{[{trimmed}]}}"), base)?);
                begin += part.len() + 1;
            }
            nodes.push(Node { step: Step::Union(union), at });
            return Ok(());
        }
        let key = inside.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            // The dot is where the quote was.
            let base = self.base.saturating_add(here);
            nodes.extend(self.apart(&format!("{{.{key}}}"), base)?);
            return Ok(());
        }
        let slice = self.slice(if inside == "*" { ":" } else { inside }, here + 1)?;
        nodes.push(Node { step: Step::Slice(slice), at });
        Ok(())
    }

    fn slice(&self, text: &str, here: usize) -> Result<Slice> {
        let mut parts = text.split(':');
        let (from, to, step) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let is_index =
            |part: &str| part.strip_prefix('-').unwrap_or(part).bytes().all(|b| b.is_ascii_digit());
        if parts.next().is_some() || !text.split(':').all(is_index) {
            return Err(self.wrong(format!("invalid array index {text}"), here));
        }
        let number = |part: &str| match part {
            "" => Ok(None),
            part => part
                .parse::<i64>()
                .map(Some)
                .map_err(|_| self.wrong(format!("array index {part} is not a number"), here)),
        };
        let from = number(from)?;
        let single = to.is_none();
        let to = match to {
            Some(to) => number(to)?,
            None => Some(from.unwrap_or_default().saturating_add(1)),
        };
        Ok(Slice { from, to, single, step: number(step.unwrap_or_default())? })
    }

    /// `[?(…)]`. Of quotes, only one pair is looked at: what is in it closes nothing.
    fn filter(&mut self) -> Result<Filter> {
        let here = self.at;
        let begin = here + 3;
        let text = self.text.get(begin..).unwrap_or_default();
        let mut quote = None;
        let mut is_closed = false;
        let mut before = '(';
        let mut end = None;
        for (index, c) in text.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' => match quote {
                    None => quote = Some(c),
                    Some(open) if open == c && before != '\\' => is_closed = true,
                    Some(_) => {}
                },
                ')' if quote.is_some() == is_closed => {
                    end = Some(index);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let Some(end) = end else { return Err(self.wrong("unterminated filter", here)) };
        if !text.get(end..).is_some_and(|rest| rest.starts_with(")]")) {
            return Err(self.wrong("unclosed array expect ]", begin + end));
        }
        self.at = begin + end + 2;
        let text = text.get(..end).unwrap_or_default();
        let part = |part: &str, skipped: usize| {
            let base = self.base.saturating_add(begin + skipped).saturating_sub(1);
            self.apart(&format!("{{{part}}}"), base)
        };
        let Some((left, operator, right)) = split(text) else {
            return Ok(Filter { left: part(text, 0)?, test: None });
        };
        let left_nodes = part(left, 0)?;
        let right_nodes = part(right, left.len() + operator.len())?;
        let operator = match operator {
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            other => {
                let message = format!("unrecognized filter operator {other}");
                return Err(self.wrong(message, begin + left.len()));
            }
        };
        Ok(Filter { left: left_nodes, test: Some((operator, right_nodes)) })
    }

    fn quoted(&mut self, quote: char) -> Result<String> {
        let here = self.at;
        let rest = self.rest();
        let mut before = quote;
        let mut end = None;
        for (index, c) in rest.char_indices().skip(1) {
            if c == '\n' {
                break;
            }
            if c == quote && before != '\\' {
                end = Some(index);
                break;
            }
            before = c;
        }
        let inside = end.and_then(|end| rest.get(1..end));
        let Some(inside) = inside else { return Err(self.wrong("unterminated quoted string", here)) };
        let wrong =
            || self.wrong(format!("unquote string {quote}{inside}{quote} error invalid syntax"), here);
        let text = unquote(inside, quote).ok_or_else(wrong)?;
        self.at += inside.len() + 2;
        Ok(text)
    }

    /// Reads what is in brackets by itself.
    fn apart(&self, text: &str, base: usize) -> Result<Vec<Node>> {
        if self.depth >= DEEPEST {
            return Err(self.wrong(format!("nested more than {DEEPEST} deep"), self.at));
        }
        let parser = Parser { text, at: 0, base, depth: self.depth + 1 };
        let first = parser.parts()?.into_iter().next();
        Ok(match first {
            Some(Part::Action(action)) => action.nodes,
            _ => Vec::new(),
        })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, message: impl Into<String>, here: usize) -> JsonPathError {
        JsonPathError::new(message, self.base.saturating_add(here))
    }
}

/// Left, operator, right; `None` where nothing is compared.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let begin = text.find(is_operator).filter(|begin| *begin > 0)?;
    let (left, rest) = text.split_at(begin);
    let length = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
    // There is always something on the right: if need be, the operator's last character.
    let length = if length == rest.len() { length - 1 } else { length };
    let (operator, right) = rest.split_at(length);
    (!operator.is_empty()).then_some((left, operator, right))
}

/// Go's escapes in a quoted text.
fn unquote(text: &str, quote: char) -> Option<String> {
    if !text.contains(['\\', quote]) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match chars.next()? {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            '\\' => bytes.push(b'\\'),
            c if c == quote => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            'x' => bytes.push(u8::try_from(digits(&mut chars, 2, 16)?).ok()?),
            c @ ('u' | 'U') => {
                let number = digits(&mut chars, if c == 'u' { 4 } else { 8 }, 16)?;
                bytes.extend(char::from_u32(number)?.encode_utf8(&mut [0; 4]).as_bytes());
            }
            c @ '0'..='7' => {
                let number = c.to_digit(8)? * 64 + digits(&mut chars, 2, 8)?;
                bytes.push(u8::try_from(number).ok()?);
            }
            _ => return None,
        }
    }
    String::from_utf8(bytes).ok()
}

fn digits(chars: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Option<u32> {
    let mut number = 0_u32;
    for _ in 0..count {
        number = number.checked_mul(radix)?.checked_add(chars.next()?.to_digit(radix)?)?;
    }
    Some(number)
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphabetic() || is_digit(c)
}

fn is_digit(c: char) -> bool {
    c.is_numeric()
}
