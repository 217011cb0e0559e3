//! The text form of label selectors.
//!
//! `selector := "" | requirement ("," requirement)*`, where a requirement is `key`, `!key`,
//! `key (=|==|!=|>|<) value`, or `key (in|notin) (value, …)`. `in` and `notin` are keywords only where
//! an operator can stand. The words of each refusal are those of the real server.

use super::labels::{Operator, Requirement, label_key_errors};
use crate::status::FieldError;

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Not => {
                let one = parser.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
                requirements.push(one);
                match parser.next() {
                    Token::End => return Ok(requirements),
                    Token::Comma => {
                        let next = parser.peek();
                        if !matches!(next, Token::Word(_) | Token::Not) {
                            return Err(format!("found '{}', expected: identifier after ','", next.text()));
                        }
                    }
                    other => {
                        return Err(format!("found '{}', expected: ',' or 'end of string'", other.text()));
                    }
                }
            }
            Token::End => return Ok(requirements),
            other => {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Less,
    NotEquals,
    Open,
    /// Also `in` and `notin`.
    Word(String),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::End => "",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::DoubleEquals => "==",
            Self::Equals => "=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::NotEquals => "!=",
            Self::Open => "(",
        }
    }
}

/// A NUL ends the text, as it does for the real server.
fn tokens(text: &str) -> Vec<Token> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut out = Vec::new();
    let mut rest = text.split('\0').next().unwrap_or_default();
    loop {
        rest = rest.trim_start_matches(is_space);
        let Some(first) = rest.chars().next() else { break };
        if is_symbol(first) {
            let two = rest.get(..2).unwrap_or_default();
            let (token, length) = match (first, two) {
                (_, "==") => (Token::DoubleEquals, 2),
                (_, "!=") => (Token::NotEquals, 2),
                ('=', _) => (Token::Equals, 1),
                ('!', _) => (Token::Not, 1),
                ('(', _) => (Token::Open, 1),
                (')', _) => (Token::Close, 1),
                ('>', _) => (Token::Greater, 1),
                ('<', _) => (Token::Less, 1),
                _ => (Token::Comma, 1),
            };
            out.push(token);
            rest = rest.get(length..).unwrap_or_default();
        } else {
            let end = rest.find(|c| is_space(c) || is_symbol(c)).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            out.push(Token::Word(word.to_owned()));
            rest = tail;
        }
    }
    out.push(Token::End);
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next();
        let absent = token == Token::Not;
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        let wrong = label_key_errors(&key);
        if !wrong.is_empty() {
            // The query parameter has no path of its own.
            return Err(FieldError::invalid("<nil>", key.as_str(), wrong.join("; ")).to_string());
        }
        if absent {
            return Requirement::new(&key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(&key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        values.sort();
        values.dedup();
        Requirement::new(&key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next() {
            Token::Word(word) if word == "in" => Operator::In,
            Token::Word(word) if word == "notin" => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        })
    }

    /// `(a,b)`, where nothing between commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let first = self.peek();
        match first {
            Token::Close => {
                self.next();
                return Ok(vec![String::new()]);
            }
            Token::Word(_) | Token::Comma => {}
            other => {
                return Err(format!("found '{}', expected: ',', ')' or identifier", other.text()));
            }
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(word);
                    match self.peek() {
                        Token::Comma => {}
                        Token::Close => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Comma => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek() {
                        Token::Close => {
                            values.push(String::new());
                            break;
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
        self.next();
        Ok(values)
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}
