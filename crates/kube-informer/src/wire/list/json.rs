//! A list in JSON.

use bytes::Bytes;

use super::{ListEnd, MAX_HEAD, truncated};
use crate::encoding::json::key_of;
use crate::encoding::{DecodeError, Encoding, Fault};
use crate::wire::input::Input;
use crate::wire::json::{Extent, MAX_DEPTH, Members, Reached, spaces, string};
use crate::wire::text::{Text, unexpected};
use crate::wire::{Status, WireError};

/// How long a key can be and still be one that we know, every letter of it escaped.
const MAX_KEY: usize = 64;

#[derive(Debug)]
pub(super) struct List {
    limit: usize,
    state: State,
    /// A JSON object of those members that a list or a status has, without the closing brace.
    head: Vec<u8>,
    /// The names that were seen.
    seen: Vec<Name>,
    end: ListEnd,
}

#[derive(Debug)]
enum State {
    /// Before the opening brace.
    Begin,
    /// Something else than a list.
    Text(Text),
    /// After the opening brace: a key or the closing brace.
    FirstKey,
    /// After a comma: a key.
    NextKey,
    /// In a key.
    Key(Extent),
    Colon(Name),
    /// Before a value.
    Value(Name),
    /// In a value, which is kept.
    InValue(Name, Extent),
    /// In a value that is not needed.
    SkipValue(Extent),
    /// After a value: a comma or the closing brace.
    AfterValue,
    /// After the opening bracket of the items: an item or the closing bracket.
    FirstItem,
    /// After a comma: an item.
    NextItem,
    /// In an item, which is kept.
    Item(Extent),
    /// In an item that was reported as unusable.
    SkipItem(Extent),
    /// After an item: a comma or the closing bracket.
    AfterItem,
    /// After the closing brace.
    End,
}

/// The names of members that mean something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Items,
    ApiVersion,
    Kind,
    Metadata,
    Status,
    Message,
    Reason,
    Details,
    Code,
    Other,
}

/// `ListMeta`, and the type.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Head {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Meta>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    resource_version: Option<String>,
    r#continue: Option<String>,
    remaining_item_count: Option<i64>,
}

impl List {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: State::Begin, head: Vec::new(), seen: Vec::new(), end: ListEnd::default() }
    }

    pub(super) fn head(&self) -> usize {
        self.head.len()
    }

    pub(super) fn next(&mut self, input: &mut Input) -> Option<Result<Bytes, WireError>> {
        loop {
            let step = match &mut self.state {
                State::Text(text) => return text.collect(input).map(Err),
                State::Key(_) => self.key(input)?,
                State::InValue(..) => self.value(input)?,
                State::Item(_) => self.item(input)?,
                State::SkipItem(extent) => {
                    if skip(extent, input)? {
                        self.state = State::AfterItem;
                    }
                    Ok(None)
                }
                State::SkipValue(extent) => {
                    if skip(extent, input)? {
                        self.state = State::AfterValue;
                    }
                    Ok(None)
                }
                // All others stand before a byte that is no blank.
                _ => {
                    let rest = input.rest()?;
                    let blank = spaces(rest);
                    let found = rest.get(blank).copied();
                    input.advance(blank);
                    match found {
                        None => Ok(None),
                        Some(found) => self.token(found, input).map(|()| None),
                    }
                }
            };
            if let Some(result) = step.transpose() {
                return Some(result);
            }
        }
    }

    pub(super) fn finish(self, offset: usize) -> Result<ListEnd, WireError> {
        if let Some(status) = self.status() {
            return Err(status);
        }
        match self.state {
            State::End => Ok(self.end),
            State::Text(text) => Err(text.error()),
            State::Begin => Err(truncated(offset, "a list")),
            State::Item(_) | State::SkipItem(_) => Err(truncated(offset, "the rest of an item")),
            State::FirstItem | State::NextItem | State::AfterItem => {
                Err(truncated(offset, "an item or the end of the items"))
            }
            _ => Err(truncated(offset, "the rest of the list")),
        }
    }

    /// A byte that is no blank, between keys and values. It is consumed where it is not part of one.
    fn token(&mut self, found: u8, input: &mut Input) -> Result<(), WireError> {
        let offset = input.offset();
        let wrong = |expected| Err(WireError::Broken(unexpected(found, offset, expected)));
        let mut consumed = true;
        self.state = match (&self.state, found) {
            // Begin => (FirstKey | Text)
            (State::Begin, b'{') => State::FirstKey,
            (State::Begin, _) => {
                consumed = false;
                State::Text(Text::new(&[], unexpected(found, offset, "a list")))
            }
            // FirstKey => (Key | End), NextKey => Key
            (State::FirstKey | State::NextKey, b'"') => {
                consumed = false;
                input.keep();
                // A quote always begins a value.
                Extent::begin(found).map_or(State::NextKey, State::Key)
            }
            (State::FirstKey, b'}') => self.close(offset)?,
            (State::FirstKey, _) => return wrong("a key or }"),
            (State::NextKey, _) => return wrong("a key"),
            // Colon => Value
            (State::Colon(name), b':') => State::Value(*name),
            (State::Colon(_), _) => return wrong(":"),
            // Value => (InValue | SkipValue | FirstItem)
            (State::Value(Name::Items), b'[') => State::FirstItem,
            (State::Value(Name::Items), _) if found != b'n' => return wrong("a list of items"),
            (State::Value(Name::Metadata), _) if !matches!(found, b'{' | b'n') => return wrong("an object"),
            (State::Value(name), _) => {
                let Some(extent) = Extent::begin(found) else { return wrong("a value") };
                consumed = false;
                if *name == Name::Other {
                    State::SkipValue(extent)
                } else {
                    input.keep();
                    State::InValue(*name, extent)
                }
            }
            // AfterValue => (NextKey | End)
            (State::AfterValue, b',') => State::NextKey,
            (State::AfterValue, b'}') => self.close(offset)?,
            (State::AfterValue, _) => return wrong(", or }"),
            // FirstItem => (Item | SkipItem | AfterValue), NextItem => (Item | SkipItem)
            (State::FirstItem, b']') => State::AfterValue,
            (State::FirstItem | State::NextItem, _) => {
                let Some(extent) = Extent::begin(found) else { return wrong("an item") };
                if found != b'{' {
                    self.state = State::SkipItem(extent);
                    return Err(WireError::Skipped(unexpected(found, offset, "an item, an object")));
                }
                consumed = false;
                input.keep();
                State::Item(extent)
            }
            // AfterItem => (NextItem | AfterValue)
            (State::AfterItem, b',') => State::NextItem,
            (State::AfterItem, b']') => State::AfterValue,
            (State::AfterItem, _) => return wrong(", or ]"),
            (State::End, _) => return wrong("the end"),
            // These are not followed by tokens.
            (State::Text(_) | State::Key(_) | State::InValue(..) | State::SkipValue(_), _)
            | (State::Item(_) | State::SkipItem(_), _) => return wrong("nothing"),
        };
        if consumed {
            input.advance(1);
        }
        Ok(())
    }

    fn key(&mut self, input: &mut Input) -> Option<Result<Option<Bytes>, WireError>> {
        let State::Key(extent) = &mut self.state else { return Some(Ok(None)) };
        let rest = input.rest()?;
        let all = rest.len();
        let reached = extent.follow(rest);
        let Reached::End(length) = reached else {
            input.advance(all);
            if input.kept() > MAX_KEY {
                // Whatever it is called: nothing that we know.
                input.drop_kept();
            }
            return Some(Ok(None));
        };
        input.advance(length);
        let offset = input.kept_from();
        let is_long = input.kept() == 0 || input.kept() > MAX_KEY;
        let quoted = input.take();
        let name = if is_long { Some(Name::Other) } else { string(&quoted).map(|key| Name::of(&key)) };
        let Some(name) = name else {
            let fault = Fault::Unexpected { found: "a malformed string".to_owned() };
            return Some(Err(WireError::Broken(DecodeError::new(fault, offset, "a key"))));
        };
        if self.seen.contains(&name) {
            let fault = Fault::DuplicateKey { key: name.text().to_owned() };
            return Some(Err(WireError::Broken(DecodeError::new(fault, offset, "each key once"))));
        }
        if name != Name::Other {
            self.seen.push(name);
        }
        self.state = State::Colon(name);
        Some(Ok(None))
    }

    fn value(&mut self, input: &mut Input) -> Option<Result<Option<Bytes>, WireError>> {
        let State::InValue(name, extent) = &mut self.state else { return Some(Ok(None)) };
        let rest = input.rest()?;
        let all = rest.len();
        let reached = extent.follow(rest);
        let length = match reached {
            Reached::End(length) | Reached::TooDeep(length) => length,
            Reached::More => all,
        };
        input.advance(length);
        let (name, offset) = (*name, input.kept_from());
        let broken =
            |fault, expected| Some(Err(WireError::Broken(DecodeError::new(fault, offset, expected))));
        // With quotes, colon and comma.
        if self.head.len() + name.text().len() + 4 + input.kept() > MAX_HEAD {
            if matches!(name, Name::ApiVersion | Name::Kind | Name::Metadata | Name::Items) {
                return broken(Fault::TooLarge { limit: MAX_HEAD }, "the list's own fields");
            }
            // A status without its longest part is still a status.
            input.drop_kept();
            self.state = match reached {
                Reached::End(_) => State::AfterValue,
                _ => State::SkipValue(extent.clone()),
            };
            return Some(Ok(None));
        }
        match reached {
            Reached::More => return Some(Ok(None)),
            Reached::TooDeep(_) => return broken(Fault::TooDeep { limit: MAX_DEPTH }, "fewer levels"),
            Reached::End(_) => self.state = State::AfterValue,
        }
        let value = input.take();
        if name == Name::Items {
            if value != "null" {
                let found = String::from_utf8_lossy(&value).into_owned();
                return broken(Fault::Unexpected { found }, "a list of items");
            }
            return Some(Ok(None));
        }
        self.head.extend_from_slice(if self.head.is_empty() { b"{\"" } else { b",\"" });
        self.head.extend_from_slice(name.text().as_bytes());
        self.head.extend_from_slice(b"\":");
        self.head.extend_from_slice(&value);
        Some(Ok(None))
    }

    fn item(&mut self, input: &mut Input) -> Option<Result<Option<Bytes>, WireError>> {
        let State::Item(extent) = &mut self.state else { return Some(Ok(None)) };
        let rest = input.rest()?;
        let all = rest.len();
        let reached = extent.follow(rest);
        let length = match reached {
            Reached::End(length) | Reached::TooDeep(length) => length,
            Reached::More => all,
        };
        input.advance(length);
        let offset = input.kept_from();
        let error = if input.kept() > self.limit {
            DecodeError::new(Fault::TooLarge { limit: self.limit }, offset, "an item")
        } else {
            match reached {
                Reached::End(_) => {
                    self.state = State::AfterItem;
                    return Some(Ok(Some(input.take())));
                }
                Reached::More => return Some(Ok(None)),
                Reached::TooDeep(_) => {
                    let fault = Fault::TooDeep { limit: MAX_DEPTH };
                    DecodeError::new(fault, input.offset() - 1, "fewer levels")
                }
            }
        };
        self.state = match reached {
            Reached::End(_) => State::AfterItem,
            _ => State::SkipItem(extent.clone()),
        };
        // What is held beyond the limit depends on the chunks; the key must not.
        let item = input.take();
        let key = key_of(item.get(..self.limit).unwrap_or(&item), None).map(Box::new);
        Some(Err(WireError::Skipped(DecodeError { key, ..error })))
    }

    /// The status that this document is, as far as it has come.
    fn status(&self) -> Option<WireError> {
        let mut members = Members::new(&self.head).map_while(Result::ok);
        let kind = members.find(|member| member.key == Name::Kind.text())?;
        let kind = string(self.head.get(kind.value)?)?;
        (kind == "Status").then(|| {
            let document = [&self.head[..], b"}"].concat();
            WireError::Status(Box::new(Status::read(Encoding::Json, &document)))
        })
    }

    /// The closing brace.
    fn close(&mut self, offset: usize) -> Result<State, WireError> {
        if let Some(status) = self.status() {
            return Err(status);
        }
        self.head.extend_from_slice(if self.head.is_empty() { b"{}" } else { b"}" });
        let wrong = |found: String, expected: &'static str| {
            WireError::Broken(DecodeError::new(Fault::Unexpected { found }, offset, expected))
        };
        let head: Head = serde_json::from_slice(&self.head)
            .map_err(|error| wrong(format!("malformed fields ({error})"), "the fields of a list"))?;
        self.head = Vec::new();
        if !self.seen.contains(&Name::Items) {
            let found = match head.kind {
                Some(kind) => format!("the end of a document of the kind {kind:?}"),
                None => "the end of a document without a kind".to_owned(),
            };
            return Err(wrong(found, "items before"));
        }
        let meta = head.metadata.unwrap_or_default();
        self.end = ListEnd {
            api_version: head.api_version.unwrap_or_default(),
            kind: head.kind.unwrap_or_default(),
            resource_version: meta.resource_version.unwrap_or_default(),
            continue_token: meta.r#continue.unwrap_or_default(),
            remaining_item_count: meta.remaining_item_count,
        };
        Ok(State::End)
    }
}

/// Follows a value that is not needed; whether it has ended. `None` until more is pushed.
fn skip(extent: &mut Extent, input: &mut Input) -> Option<bool> {
    let rest = input.rest()?;
    let (length, ended) = match extent.follow(rest) {
        Reached::End(length) => (length, true),
        Reached::TooDeep(length) => (length, false),
        Reached::More => (rest.len(), false),
    };
    input.advance(length);
    Some(ended)
}

impl Name {
    const KNOWN: [Self; 9] = [
        Self::Items,
        Self::ApiVersion,
        Self::Kind,
        Self::Metadata,
        Self::Status,
        Self::Message,
        Self::Reason,
        Self::Details,
        Self::Code,
    ];

    fn of(key: &str) -> Self {
        Self::KNOWN.into_iter().find(|name| name.text() == key).unwrap_or(Self::Other)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::ApiVersion => "apiVersion",
            Self::Kind => "kind",
            Self::Metadata => "metadata",
            Self::Status => "status",
            Self::Message => "message",
            Self::Reason => "reason",
            Self::Details => "details",
            Self::Code => "code",
            Self::Other => "",
        }
    }
}
