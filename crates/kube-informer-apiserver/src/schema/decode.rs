//! From JSON to what a Go struct would hold.
//!
//! The walk follows the document in its own order, as Go's decoder does, because the order decides which
//! error is told: the first mismatch is remembered and the walk goes on; a type that reads itself (a
//! quantity, a time) ends it at once. `null` is absence in a struct, and the zero value in a list or a map.
//! Unknown and repeated fields are left out and reported with their paths.
//!
//! Known differences: of a repeated field the last value counts (Go merges the objects); a number that is
//! no integer is shown as Rust prints it, not as the client wrote it.

mod read;

use std::collections::HashSet;
use std::fmt::Write;

use serde::de::{DeserializeSeed, Error};
use serde_json::Value;

use self::read::Place;
pub(crate) use self::read::type_name;
use super::scalars;
use super::syntax::{SyntaxError, check};
use super::{Node, NodeId, Schema, SchemaSet};

/// Strict messages beyond this many are dropped, as the real server does.
const MAX_STRICT: usize = 100;

/// What decoding noticed without failing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// `unknown field "spec.foo"`, `duplicate field "metadata.name"`, in the document's order.
    pub(crate) strict: Vec<String>,
}

impl Decoded {
    /// The error of `fieldValidation=Strict`, where there is one.
    pub(crate) fn strict_error(&self) -> Option<String> {
        (!self.strict.is_empty()).then(|| format!("strict decoding error: {}", self.strict.join(", ")))
    }
}

impl Schema {
    /// Reads a parsed document; on success `value` is what the struct would hold.
    ///
    /// Repeated fields cannot be seen here. The error is what follows `cannot be handled as a Kind: `.
    pub(crate) fn decode(&self, value: &mut Value) -> Result<Decoded, String> {
        let mut walk = Walk::new(&self.set);
        let result = walk.seed(self.node).deserialize(&*value);
        let (decoded, outcome) = walk.finish();
        outcome?;
        if let Ok(new) = result {
            *value = new.unwrap_or_default();
        }
        Ok(decoded)
    }

    /// Reads a document from its bytes.
    pub(crate) fn decode_slice(&self, bytes: &[u8]) -> Result<(Value, Decoded), String> {
        let mut walk = Walk::new(&self.set);
        let mut source = serde_json::Deserializer::from_slice(bytes);
        let result = walk.seed(self.node).deserialize(&mut source).and_then(|v| source.end().map(|()| v));
        let (decoded, outcome) = walk.finish();
        // The real server looks for syntax errors before anything else.
        if outcome.is_err() || result.is_err() {
            check(bytes).map_err(|SyntaxError(text)| text)?;
        }
        outcome?;
        match result {
            Ok(value) => Ok((value.unwrap_or_default(), decoded)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A value of a wrong type.
struct Mismatch {
    value: String,
    holder: String,
    field: String,
    expected: String,
}

impl Mismatch {
    fn text(&self) -> String {
        let Self { value, holder, field, expected } = self;
        if holder.is_empty() && field.is_empty() {
            format!("json: cannot unmarshal {value} into Go value of type {expected}")
        } else {
            format!("json: cannot unmarshal {value} into Go struct field {holder}.{field} of type {expected}")
        }
    }
}

/// An error that is remembered while the walk goes on.
enum Remembered {
    Mismatch(Mismatch),
    Other(String),
}

impl Remembered {
    fn text(&self) -> String {
        match self {
            Self::Mismatch(mismatch) => mismatch.text(),
            Self::Other(text) => text.clone(),
        }
    }
}

/// Where the walk is, and what it has met.
struct Walk<'s> {
    set: &'s SchemaSet,
    strict: Vec<String>,
    seen: HashSet<String>,
    /// Inside a type that reads itself: its unknown fields are nobody's concern.
    quiet: bool,
    /// `spec.containers[0].image`
    path: String,
    /// `spec.containers.image`, as type errors show it.
    fields: String,
    /// The Go struct that the innermost field belongs to.
    holder: &'s str,
    remembered: Option<Remembered>,
    fatal: Option<String>,
}

impl<'s> Walk<'s> {
    fn new(set: &'s SchemaSet) -> Self {
        Self {
            set,
            strict: Vec::new(),
            seen: HashSet::new(),
            quiet: false,
            path: String::new(),
            fields: String::new(),
            holder: "",
            remembered: None,
            fatal: None,
        }
    }

    fn finish(self) -> (Decoded, Result<(), String>) {
        let error = self.fatal.or_else(|| self.remembered.as_ref().map(Remembered::text));
        (Decoded { strict: self.strict }, error.map_or(Ok(()), Err))
    }

    fn seed(&mut self, node: NodeId) -> Place<'_, 's> {
        Place { walk: self, node }
    }

    fn node(&self, id: NodeId) -> Option<&'s Node> {
        self.set.nodes.get(id as usize)
    }

    fn report(&mut self, what: &str, field: &str) {
        if self.quiet || self.strict.len() >= MAX_STRICT {
            return;
        }
        let dot = if self.path.is_empty() { "" } else { "." };
        let message = format!("{what} field {}", scalars::quote(&format!("{}{dot}{field}", self.path)));
        if self.seen.insert(message.clone()) {
            self.strict.push(message);
        }
    }

    fn mismatch(&self, value: &str, expected: &str) -> Mismatch {
        Mismatch {
            value: value.to_owned(),
            holder: self.holder.to_owned(),
            field: self.fields.clone(),
            expected: expected.to_owned(),
        }
    }

    /// A value of a wrong type: remembered, unless another came first.
    fn wrong(&mut self, value: &str, node: &Node) {
        self.wrong_as(value, node.go.as_ref().map_or("", |go| go.name.as_str()));
    }

    fn wrong_as(&mut self, value: &str, expected: &str) {
        if self.remembered.is_none() {
            self.remembered = Some(Remembered::Mismatch(self.mismatch(value, expected)));
        }
    }

    /// Ends the walk with this error.
    fn fatal<E: Error>(&mut self, text: String) -> E {
        self.fatal = Some(text);
        E::custom("refused")
    }

    fn enter(&mut self, name: &str, indexed: bool) -> usize {
        let before = self.path.len();
        if indexed {
            // Writing to a string cannot fail.
            let _ = write!(self.path, "[{name}]");
        } else {
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
        }
        before
    }

    fn push_field(&mut self, name: &str) {
        if !self.fields.is_empty() {
            self.fields.push('.');
        }
        self.fields.push_str(name);
    }
}
