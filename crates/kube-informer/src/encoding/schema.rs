//! The schema table: what the protobuf messages of the built-in kinds look like in JSON.
//!
//! It is generated from the Go types of one Kubernetes release ([`MINOR`]) and committed as text,
//! `schema.txt`; `cargo xtask schema` writes it. The compiler reads that text, so that here are only
//! statics: nothing is parsed, allocated or initialized at run time, and a table that is not well formed
//! does not compile. They hold no pointers, names are places in the text: ten thousand pointers would have
//! to be relocated whenever a process starts, and took more room than all the rest. In a program the text
//! takes 148 KB and the statics 124 KB, none of which is written to: pages that no one looks at stay on disk.
//!
//! It promises, for every kind that [`root`] finds: each field that a server of that release can write has
//! its number here, and each name that the server's JSON can have, but for `apiVersion` and `kind` of the
//! root, has its field. There is no field that is on the wire only. A number that is not here comes from
//! another release: a newer one, or an older one with an alpha field that is gone. Kinds that protobuf does
//! not carry (custom resources, `Table`) have no root.

use std::fmt;

mod table;

#[cfg(test)]
mod tests;

/// The minor version of the Kubernetes release that the table was made from.
pub(crate) const MINOR: u32 = table::MINOR;

/// A message's place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageId(u16);

/// One protobuf message; displayed as in `core/v1.PodSpec`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    package: Name,
    name: Name,
    first_field: u16,
    fields: u16,
}

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    name: Name,
    /// The number on the wire; less than [`NO_FIELD`].
    pub(crate) number: u16,
    /// The number again, if JSON shows nothing of a field that is not on the wire; otherwise [`NO_FIELD`]. Who
    /// looks for a number goes past all fields for which this is less, and has missed nothing.
    pub(crate) silent_number: u16,
    /// How often the value may be there, and where.
    pub(crate) shape: Shape,
    /// The value: of the element for a list, of the entry's value for a map.
    pub(crate) kind: Kind,
    /// What JSON shows when the field is not on the wire.
    pub(crate) absent: Absent,
    /// Whether JSON leaves the field out as well when it is on the wire, but zero: 0, `""`, `false`, no
    /// bytes, the zero time. Then [`absent`](Self::absent) is [`Absent::Omit`].
    pub(crate) drop_zero: bool,
}

/// What a check asks about a field, and nothing else: ten of them are in one line of the processor's caches. Objects come one
/// at a time, and between two of them the caches are used by others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    /// As [`Field::number`].
    pub(crate) number: u8,
    /// As [`Field::shape`].
    pub(crate) shape: Shape,
    /// As [`Field::kind`].
    pub(crate) kind: Kind,
}

/// A number that is larger than that of any field.
pub(crate) const NO_FIELD: u16 = u16::MAX;

/// Metadata without the rest: as an item of a list, JSON shows its type with it.
pub(crate) const PARTIAL_METADATA: MessageId = table::PARTIAL_METADATA;

/// How often a value may be there, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// One value, which the Go type holds directly.
    One,
    /// One value behind a pointer: if it is on the wire, it is in JSON, even if zero.
    Pointer,
    /// Any number of values. The wire may have numbers packed or not.
    List,
    /// Any number of entries, each a message {1: key, a string; 2: value}. What an entry lacks is `""`, or
    /// what the kind decoded from nothing gives.
    Map,
    /// One message, nested on the wire, whose fields stand in JSON among those of the outer one.
    Embedded,
}

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A varint; JSON's `true` and `false`.
    Bool,
    /// A varint.
    Int32,
    /// A varint.
    Int64,
    /// Eight bytes.
    Double,
    /// Bytes that should be UTF-8.
    String,
    /// Bytes; base64 in JSON. On the wire and empty is `""`; `null` is for what is not there.
    Bytes,
    /// {1: seconds, 2: nanoseconds}; RFC 3339 in whole seconds.
    Time,
    /// {1: seconds, 2: nanoseconds}; RFC 3339 with six digits.
    MicroTime,
    /// {1: the string that JSON shows}.
    Quantity,
    /// {1: 0 for a number, 1 for a string; 2: the number; 3: the string}.
    IntOrString,
    /// {1: JSON, or a nested document in protobuf}: `RawExtension`, `FieldsV1`, the `JSON` of
    /// CustomResourceDefinitions.
    Raw,
    /// {1: allows, a bool; 2: schema}; JSON has the one or the other.
    SchemaOrBool(MessageId),
    /// {1: schema; 2: list of schemas}; JSON has the one or the other.
    SchemaOrArray(MessageId),
    /// {1: schema; 2: list of strings}; JSON has the one or the other.
    SchemaOrStringArray(MessageId),
    /// {1: items}, a list of strings that is a message of its own; JSON has the list. On the wire and empty
    /// is `[]`; `null` is for what is not there.
    Strings,
    /// A message of this table.
    Message(MessageId),
}

/// What JSON shows for a field that is not on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Absent {
    /// Nothing, not even the name.
    Omit,
    /// `null`.
    Null,
    /// The kind's zero: `0`, `""`, `false`, or what a message or a special kind decoded from nothing gives.
    Zero,
    /// `[]`.
    EmptyList,
}

/// A kind that can stand alone: in an envelope, or as an item of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root {
    api_version: Name,
    /// What it looks like.
    pub(crate) message: MessageId,
}

/// A place in the text: the offset in the upper 24 bits, the length in the lower 8.
#[derive(Clone, Copy)]
struct Name(u32);

/// The message at a place.
pub(crate) fn message(id: MessageId) -> &'static Message {
    // Ids come out of the table alone, and the compiler has checked each of them.
    &table::MESSAGES[usize::from(id.0)]
}

/// The outlines of a message's fields, sorted by number.
pub(crate) fn outlines(id: MessageId) -> &'static [Outline] {
    let (first, count) = table::EXTENTS[usize::from(id.0)];
    let first = usize::from(first);
    table::OUTLINES.get(first..first + usize::from(count)).unwrap_or_default()
}

/// All kinds, sorted by API version and kind.
pub(crate) fn roots() -> &'static [Root] {
    &table::ROOTS
}

/// The kind of that name, if the table has it.
pub(crate) fn root(api_version: &str, kind: &str) -> Option<&'static Root> {
    let found = table::ROOTS
        .binary_search_by(|root| (root.api_version(), root.kind()).cmp(&(api_version, kind)))
        .ok()?;
    table::ROOTS.get(found)
}

/// Whether a kind has the metadata of an object: not so lists, options, reviews without a name, `Status`.
pub(crate) fn is_object(root: &Root) -> bool {
    message(root.message)
        .field_by_number(1)
        .is_some_and(|field| field.shape == Shape::One && field.kind == Kind::Message(table::OBJECT_META))
}

impl Message {
    /// The Go type, as in `PodSpec`; unique in its package.
    pub(crate) fn name(&self) -> &'static str {
        self.name.text()
    }

    /// Group and version of the Go package, as in `core/v1`; mind that this is not the API version.
    pub(crate) fn package(&self) -> &'static str {
        self.package.text()
    }

    /// All fields, sorted by number.
    pub(crate) fn fields(&self) -> &'static [Field] {
        let first = usize::from(self.first_field);
        table::FIELDS.get(first..first + usize::from(self.fields)).unwrap_or_default()
    }

    /// The field with a number; `None` if the table does not know it.
    pub(crate) fn field_by_number(&self, number: u32) -> Option<&'static Field> {
        let fields = self.fields();
        let found = fields.binary_search_by_key(&number, |field| u32::from(field.number)).ok()?;
        fields.get(found)
    }

    /// The field with a name in JSON. Those of embedded messages are not found here.
    pub(crate) fn field_by_name(&self, json: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name() == json && field.shape != Shape::Embedded)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.package(), self.name())
    }
}

impl Field {
    /// The name in JSON; empty for [`Shape::Embedded`].
    #[inline]
    pub(crate) fn name(&self) -> &'static str {
        self.name.text()
    }
}

impl Root {
    /// As in the envelope: `v1`, `apps/v1`.
    pub(crate) fn api_version(&self) -> &'static str {
        self.api_version.text()
    }

    /// As in the envelope: `Pod`.
    pub(crate) fn kind(&self) -> &'static str {
        // A kind has the name of its Go type.
        message(self.message).name()
    }
}

impl Name {
    #[inline]
    fn text(self) -> &'static str {
        let (at, len) = ((self.0 >> 8) as usize, (self.0 & 0xff) as usize);
        table::TEXT.get(at..at + len).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}
