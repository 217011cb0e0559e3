//! From text to a selector, by Kubernetes' rules.
//!
//! Words are whatever stands between spaces and the symbols `= ! ( ) , > <`. `in` and `notin` are operators only where an
//! operator is expected, and words like any other elsewhere. A value may be missing, which means the empty one.

use super::{Operator, ParseSelectorError, Requirement, Selector, SelectorFault};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// One of `= == != ! ( ) , > <`.
    Symbol(&'a str),
    End,
}

pub(super) fn parse(text: &str) -> Result<Selector, ParseSelectorError> {
    let mut parser = Parser { text, next: 0, at: 0 };
    parser.selector().map_err(|why| ParseSelectorError { selector: text.to_owned(), at: parser.at, why })
}

struct Parser<'a> {
    text: &'a str,
    /// Where the next token is to be looked for.
    next: usize,
    /// Where the last token began: what errors are about.
    at: usize,
}

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<Selector, SelectorFault> {
        let mut requirements = Vec::new();
        if self.peek() == Token::End {
            return Ok(Selector::default());
        }
        loop {
            requirements.push(self.requirement()?);
            match self.take() {
                Token::End => return Ok(requirements.into_iter().collect()),
                Token::Symbol(",") => {}
                other => return Err(unexpected("a comma or the end", other)),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorFault> {
        let negated = self.take_symbol("!");
        let key = match self.take() {
            Token::Word(key) => key,
            other if negated => return Err(unexpected("a label's key after !", other)),
            other => return Err(unexpected("a label's key or !", other)),
        };
        let key_at = self.at;
        let is_alone = matches!(self.peek(), Token::End | Token::Symbol(","));
        if negated || is_alone {
            let operator = if negated { Operator::DoesNotExist } else { Operator::Exists };
            return Requirement::new(key, operator, [] as [&str; 0]);
        }
        let operator = match self.take() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=" | "==") => Operator::Equals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return Err(unexpected("one of in, notin, =, ==, !=, >, <, a comma or the end", other)),
        };
        let values_at = self.next;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        Requirement::new(key, operator, values).inspect_err(|fault| {
            let is_key = matches!(fault, SelectorFault::Label(super::LabelSyntaxError::Key { .. }));
            self.at = if is_key { key_at } else { self.skip_space(values_at) };
        })
    }

    /// A value, or nothing, which is the empty value.
    fn value(&mut self) -> Result<&'a str, SelectorFault> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok("");
        }
        match self.take() {
            Token::Word(value) => Ok(value),
            other => Err(unexpected("a value", other)),
        }
    }

    /// Values in parentheses. Between commas there may be nothing, which is the empty value.
    fn values(&mut self) -> Result<Vec<&'a str>, SelectorFault> {
        match self.take() {
            Token::Symbol("(") => {}
            other => return Err(unexpected("(", other)),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Token::Word(value) => {
                    self.take();
                    value
                }
                _ => "",
            };
            values.push(value);
            match self.take() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => return Ok(values),
                other if value.is_empty() => return Err(unexpected("a value, a comma or )", other)),
                other => return Err(unexpected("a comma or )", other)),
            }
        }
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        if found {
            self.take();
        }
        found
    }

    fn take(&mut self) -> Token<'a> {
        let (token, at, next) = self.scan();
        (self.at, self.next) = (at, next);
        token
    }

    fn peek(&self) -> Token<'a> {
        self.scan().0
    }

    fn skip_space(&self, from: usize) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        self.text.len() - rest.trim_start_matches(is_space).len()
    }

    /// The next token, where it begins, and where it ends.
    fn scan(&self) -> (Token<'a>, usize, usize) {
        let at = self.skip_space(self.next);
        let rest = self.text.get(at..).unwrap_or_default();
        let symbols = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
        if let Some(symbol) =
            symbols.iter().find_map(|symbol| rest.get(..symbol.len()).filter(|it| it == symbol))
        {
            return (Token::Symbol(symbol), at, at + symbol.len());
        }
        let end = rest.find(|each| is_space(each) || is_symbol(each)).unwrap_or(rest.len());
        match rest.get(..end) {
            None | Some("") => (Token::End, at, at),
            Some(word) => (Token::Word(word), at, at + end),
        }
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn unexpected(expected: &'static str, found: Token<'_>) -> SelectorFault {
    let found = match found {
        Token::Word(text) | Token::Symbol(text) => format!("{text:?}"),
        Token::End => "the end".to_owned(),
    };
    SelectorFault::Unexpected { expected, found }
}
