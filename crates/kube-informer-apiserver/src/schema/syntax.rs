//! Go's words for broken JSON, and the look at `apiVersion` and `kind` that comes before decoding.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::scalars::quote;

/// Deeper than this is refused.
const MAX_DEPTH: usize = 10_000;

/// What is wrong with the text, as Go's decoder says it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError(pub(super) String);

/// Finds the first syntax error of a JSON document.
pub(super) fn check(bytes: &[u8]) -> Result<(), SyntaxError> {
    let mut scan = Scan { bytes, at: 0, open: Vec::new() };
    scan.document()
}

/// The first syntax error of a JSON document, in Go's words.
pub(crate) fn syntax_error(bytes: &[u8]) -> Option<String> {
    check(bytes).err().map(|error| error.0)
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// `{` and `[` that are not closed yet. Kept here, not on the stack: the document is the client's.
    open: Vec<u8>,
}

impl Scan<'_> {
    fn document(&mut self) -> Result<(), SyntaxError> {
        loop {
            // Here a value begins; afterwards it has ended.
            match self.next_solid()? {
                open @ (b'{' | b'[') => {
                    self.open.push(open);
                    if self.open.len() > MAX_DEPTH {
                        return Err(SyntaxError("exceeded max depth".to_owned()));
                    }
                    let close = if open == b'{' { b'}' } else { b']' };
                    if self.peek_solid() != Some(close) {
                        if open == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    self.open.pop();
                }
                b'"' => self.string()?,
                first @ (b'-' | b'0'..=b'9') => self.number(first)?,
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                other => return Err(wrong(other, "looking for beginning of value")),
            }
            // After a value: close what ends here, or go to the next one.
            loop {
                let Some(&open) = self.open.last() else {
                    return match self.peek_solid() {
                        None => Ok(()),
                        Some(byte) => Err(wrong(byte, "after top-level value")),
                    };
                };
                match (open, self.next_solid()?) {
                    (b'{', b',') => {
                        self.key()?;
                        break;
                    }
                    (b'[', b',') => break,
                    (b'{', b'}') | (b'[', b']') => {
                        self.open.pop();
                    }
                    (b'{', byte) => return Err(wrong(byte, "after object key:value pair")),
                    (_, byte) => return Err(wrong(byte, "after array element")),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), SyntaxError> {
        match self.next_solid()? {
            b'"' => self.string()?,
            byte => return Err(wrong(byte, "looking for beginning of object key string")),
        }
        match self.next_solid()? {
            b':' => Ok(()),
            byte => Err(wrong(byte, "after object key")),
        }
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(wrong(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(wrong(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(wrong(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8) -> Result<(), SyntaxError> {
        let mut first = first;
        if first == b'-' {
            first = self.next_or_space()?;
            if !first.is_ascii_digit() {
                return Err(wrong(first, "in numeric literal"));
            }
        }
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            let byte = self.next_or_space()?;
            if !byte.is_ascii_digit() {
                return Err(wrong(byte, "after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let mut byte = self.next_or_space()?;
            if matches!(byte, b'+' | b'-') {
                byte = self.next_or_space()?;
            }
            if !byte.is_ascii_digit() {
                return Err(wrong(byte, "in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Result<(), SyntaxError> {
        for expected in word.bytes().skip(1) {
            let byte = self.next_or_space()?;
            if byte != expected {
                let hint = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(wrong(byte, &hint));
            }
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_solid(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.peek()
    }

    fn next(&mut self) -> Result<u8, SyntaxError> {
        let byte = self.peek().ok_or_else(|| SyntaxError("unexpected end of JSON input".to_owned()))?;
        self.at += 1;
        Ok(byte)
    }

    fn next_solid(&mut self) -> Result<u8, SyntaxError> {
        self.peek_solid();
        self.next()
    }

    /// Go ends a document with an imagined space, which a number or a word in the making trips over.
    fn next_or_space(&mut self) -> Result<u8, SyntaxError> {
        Ok(self.next().unwrap_or(b' '))
    }
}

fn wrong(byte: u8, hint: &str) -> SyntaxError {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        0x80..=0x9f => format!("\\u{byte:04x}"),
        0xa0 => "\\u00a0".to_owned(),
        0xad => "\\u00ad".to_owned(),
        _ => quote(&char::from(byte).to_string()).trim_matches('"').to_owned(),
    };
    SyntaxError(format!("invalid character '{shown}' {hint}"))
}

/// `apiVersion` and `kind` of a document; empty where it has none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct TypeMeta {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Reads `apiVersion` and `kind`. The error is what follows `(must be of type Kind): `.
pub(crate) fn type_meta(bytes: &[u8]) -> Result<TypeMeta, String> {
    const SHAPE: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
         Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let failed = |why: &str| format!("couldn't get version/kind; json parse error: {why}");
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let result = source.deserialize_any(MetaVisitor).and_then(|found| source.end().map(|()| found));
    let found = match result {
        Ok(found) => found,
        Err(error) => {
            check(bytes).map_err(|SyntaxError(why)| failed(&why))?;
            return Err(failed(&error.to_string()));
        }
    };
    match found {
        Found::Meta(meta) => Ok(meta),
        Found::Field(field, value) => {
            let why = format!("json: cannot unmarshal {value} into Go struct field .{field} of type string");
            Err(failed(&why))
        }
        Found::Document(value) => {
            Err(failed(&format!("json: cannot unmarshal {value} into Go value of type {SHAPE}")))
        }
    }
}

enum Found {
    Meta(TypeMeta),
    /// The first of the two fields that holds something else, and what.
    Field(&'static str, &'static str),
    /// No object, but this.
    Document(&'static str),
}

struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Found;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Meta(TypeMeta::default()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Document("bool"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Document("number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Document("number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::Document("number"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Found, E> {
        Ok(Found::Document("string"))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut source: A) -> Result<Found, A::Error> {
        while source.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Document("array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Found, A::Error> {
        let mut meta = TypeMeta::default();
        let mut wrong = None;
        while let Some(key) = source.next_key::<String>()? {
            // This look, unlike the decoding after it, does not mind the case of letters.
            let (name, slot) = if key.eq_ignore_ascii_case("apiVersion") {
                ("apiVersion", &mut meta.api_version)
            } else if key.eq_ignore_ascii_case("kind") {
                ("kind", &mut meta.kind)
            } else {
                source.next_value::<IgnoredAny>()?;
                continue;
            };
            match source.next_value::<Value>()? {
                Value::String(text) => *slot = text,
                Value::Null => {}
                other => {
                    wrong.get_or_insert(Found::Field(name, super::type_name(&other)));
                }
            }
        }
        Ok(wrong.unwrap_or(Found::Meta(meta)))
    }
}
