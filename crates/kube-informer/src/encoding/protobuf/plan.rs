//! What is dropped from the messages of one kind: JSON pointers, worked out to field numbers once.
//!
//! The same plan cuts the bytes before they are stored and tells views what was cut, so that they do not
//! show it as if it were empty. A map that loses all its entries is gone, for the wire has no empty ones.

use super::reader::{self, Reader, Value as Wire};
use crate::encoding::rules::PointerError;
use crate::encoding::schema::{self, Field, Kind, Message, MessageId, Shape};
use crate::encoding::{DecodeError, ManagedFields, Rules};

/// What is dropped from one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// Ascending field numbers.
    actions: Vec<(u32, Action)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// The field.
    Field,
    /// Entries of a map.
    Keys(Vec<Box<str>>),
    /// Something in the message that the field holds.
    Below(Node),
}

impl Node {
    /// Works out the rules for a kind.
    ///
    /// A pointer to a field that the kind does not have drops nothing.
    pub(crate) fn compile(kind: MessageId, rules: &Rules) -> Result<Self, PointerError> {
        let mut plan = Self::default();
        if rules.managed_fields != ManagedFields::Keep {
            plan.insert(schema::message(kind), &["metadata", "managedFields"]).map_err(|why| {
                PointerError::NotDroppable { pointer: "/metadata/managedFields".to_owned(), why }
            })?;
        }
        for pointer in rules.dropped() {
            let tokens: Vec<&str> = pointer.tokens().collect();
            plan.insert(schema::message(kind), &tokens)
                .map_err(|why| PointerError::NotDroppable { pointer: pointer.to_string(), why })?;
        }
        Ok(plan)
    }

    fn insert(&mut self, message: &'static Message, tokens: &[&str]) -> Result<(), &'static str> {
        let Some((first, rest)) = tokens.split_first() else { return Ok(()) };
        let Some(path) = find(message, first) else { return Ok(()) };
        let Some((field, outer)) = path.split_last() else { return Ok(()) };
        let mut node = self;
        for embedded in outer {
            match node.action(embedded, || Action::Below(Self::default())) {
                Action::Below(below) => node = below,
                // The whole of it goes already.
                Action::Field | Action::Keys(_) => return Ok(()),
            }
        }
        match (rest, field.shape, field.kind) {
            ([], ..) => *node.action(field, || Action::Field) = Action::Field,
            ([key], Shape::Map, _) => {
                if let Action::Keys(keys) = node.action(field, || Action::Keys(Vec::new())) {
                    keys.push((*key).into());
                }
            }
            (_, Shape::Map, _) => return Err("it leads through a map"),
            (_, Shape::List, _) | (_, _, Kind::Strings) => return Err("it leads through a list"),
            (_, _, Kind::Message(id)) => {
                if let Action::Below(below) = node.action(field, || Action::Below(Self::default())) {
                    below.insert(schema::message(id), rest)?;
                }
            }
            (
                _,
                _,
                Kind::Raw | Kind::SchemaOrBool(_) | Kind::SchemaOrArray(_) | Kind::SchemaOrStringArray(_),
            ) => {
                return Err("it leads into a value without a schema");
            }
            // Text and numbers have nothing below them.
            _ => {}
        }
        Ok(())
    }

    fn action(&mut self, field: &Field, new: impl FnOnce() -> Action) -> &mut Action {
        let number = u32::from(field.number);
        let index = match self.actions.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(index) => index,
            Err(index) => {
                self.actions.insert(index, (number, new()));
                index
            }
        };
        &mut self.actions[index].1
    }

    fn get(&self, number: u32) -> Option<&Action> {
        self.actions.iter().find(|(each, _)| *each == number).map(|(_, action)| action)
    }

    /// Whether the field as a whole is dropped.
    pub(crate) fn drops(&self, number: u32) -> bool {
        matches!(self.get(number), Some(Action::Field))
    }

    /// Whether an entry of a map is dropped.
    pub(crate) fn drops_entry(&self, number: u32, pair: &[u8]) -> Result<bool, DecodeError> {
        match self.get(number) {
            Some(Action::Keys(keys)) => drops_key(keys, pair),
            _ => Ok(false),
        }
    }

    /// What is dropped from the message in a field.
    pub(crate) fn below(&self, number: u32) -> Option<&Self> {
        match self.get(number) {
            Some(Action::Below(below)) => Some(below),
            _ => None,
        }
    }

    /// Appends a message without what is dropped. Everything else stays byte for byte.
    pub(crate) fn cut(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if self.actions.is_empty() {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        let mut reader = Reader::new(bytes);
        // What is kept is copied in runs, not entry by entry.
        let mut kept_from = 0;
        while let Some(entry) = reader.next()? {
            let Some(action) = self.get(entry.number) else { continue };
            let inner = match (action, entry.value) {
                (Action::Field, _) => None,
                (Action::Keys(keys), Wire::Bytes(pair)) if drops_key(keys, pair)? => None,
                (Action::Below(below), Wire::Bytes(inner)) => Some((below, inner)),
                _ => continue,
            };
            out.extend_from_slice(bytes.get(kept_from..entry.start).unwrap_or_default());
            kept_from = entry.end;
            if let Some((below, inner)) = inner {
                below.cut_entry(entry.number, inner, out)?;
            }
        }
        out.extend_from_slice(bytes.get(kept_from..).unwrap_or_default());
        Ok(())
    }

    /// Appends a tag, a length and the cut message.
    fn cut_entry(&self, number: u32, inner: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        reader::put_varint(out, u64::from(number) << 3 | 2);
        // The length is not known yet. Room for the longest that it can be is left before the message, and
        // what is not needed of it is closed afterwards.
        let length_at = out.len();
        let room = reader::varint_len(inner.len() as u64);
        out.resize(length_at + room, 0);
        self.cut(inner, out)?;
        let length = out.len() - length_at - room;
        let mut prefix = Vec::with_capacity(room);
        reader::put_varint(&mut prefix, length as u64);
        out.splice(length_at..length_at + room, prefix);
        Ok(())
    }
}

fn drops_key(keys: &[Box<str>], pair: &[u8]) -> Result<bool, DecodeError> {
    let mut reader = Reader::new(pair);
    let mut key: &[u8] = &[];
    while let Some(entry) = reader.next()? {
        if let (1, Wire::Bytes(bytes)) = (entry.number, entry.value) {
            key = bytes;
        }
    }
    Ok(keys.iter().any(|each| each.as_bytes() == key))
}

/// The way from a message to a field with a JSON name: through messages that are flat in JSON.
fn find(message: &'static Message, name: &str) -> Option<Vec<&'static Field>> {
    if let Some(field) = message.field_by_name(name) {
        return Some(vec![field]);
    }
    message.fields().iter().filter(|field| field.shape == Shape::Embedded).find_map(|outer| {
        let Kind::Message(id) = outer.kind else { return None };
        let mut path = find(schema::message(id), name)?;
        path.insert(0, outer);
        Some(path)
    })
}

#[cfg(test)]
mod tests;
