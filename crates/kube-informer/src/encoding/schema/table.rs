//! Reads `schema.txt` while the crate is compiled; whatever is wrong with it is a compile error.
//!
//! The first line tells the release and the counts. Then come the messages, sorted by name:
//!
//! - `:core/v1` is the package of those that follow,
//! - `PodSpec` begins one,
//! - `2[~M containers Container` is a field: number, shape, absent, kind, JSON name, and the message that the
//!   kind names, with its package if that is another one.
//!
//! Then come the roots, sorted by API version and kind: `@apps/v1 apps/v1` is an API version and its package,
//! `Deployment` a kind that is a message of this package, `meta/v1.Status` one of another.
//!
//! | shape | | absent | | kind | | kind | |
//! |---|---|---|---|---|---|---|---|
//! | `.` | one | `?` | omit | `b` | bool | `I` | int or string |
//! | `*` | pointer | `-` | omit, also zero | `i` `l` | int32, int64 | `R` | raw |
//! | `[` | list | `~` | null | `d` | double | `B` `A` `P` | schema or bool, array, string array |
//! | `{` | map | `!` | zero | `s` | string | `L` | strings |
//! | `+` | embedded | `0` | empty list | `y` | bytes | `Q` | quantity |
//! | | | | | `T` `U` | time, micro time | `M` | message |
//!
//! The compiler interprets what is here, some microseconds a step: bytes are looked at once, by patterns, and
//! calls into the standard library are rare.

use super::{Absent, Field, Kind, Message, MessageId, NO_FIELD, Name, Outline, Root, Shape};

pub(super) const TEXT: &str = include_str!("../schema.txt");

const HEAD: Head = head();

pub(super) const MINOR: u32 = HEAD.minor;

pub(super) const OBJECT_META: MessageId = PARSED.ids.get(hash(0, b"meta/v1.ObjectMeta").0);

pub(super) const PARTIAL_METADATA: MessageId = PARSED.ids.get(hash(0, b"meta/v1.PartialObjectMetadata").0);

/// Only the compiler sees this; the statics below are made of it.
#[allow(long_running_const_eval, reason = "it takes less than a second")]
const PARSED: &Parsed = &parse();

pub(super) static FIELDS: [Field; HEAD.fields] = {
    let mut all = [FieldRow::EMPTY.field(Kind::Bool); HEAD.fields];
    let mut i = 0;
    while i < HEAD.fields {
        let row = &PARSED.fields[i];
        all[i] = row.field(kind(row.kind, row.message));
        i += 1;
    }
    all
};

pub(super) static MESSAGES: [Message; HEAD.messages] = PARSED.messages;

pub(super) static OUTLINES: [Outline; HEAD.fields] = {
    let mut all = [Outline { number: 0, shape: Shape::One, kind: Kind::Bool }; HEAD.fields];
    let mut i = 0;
    while i < HEAD.fields {
        let row = &PARSED.fields[i];
        assert!(row.number <= u8::MAX as u16, "a number that is too large for an outline");
        all[i] = Outline { number: row.number as u8, shape: row.shape, kind: kind(row.kind, row.message) };
        i += 1;
    }
    all
};

/// By message: its first field, and how many it has.
pub(super) static EXTENTS: [(u16, u16); HEAD.messages] = {
    let mut all = [(0, 0); HEAD.messages];
    let mut i = 0;
    while i < HEAD.messages {
        all[i] = (PARSED.messages[i].first_field, PARSED.messages[i].fields);
        i += 1;
    }
    all
};

pub(super) static ROOTS: [Root; HEAD.roots] = {
    let mut all = [Root { api_version: NO_NAME, message: MessageId(0) }; HEAD.roots];
    let mut i = 0;
    while i < HEAD.roots {
        let RootRow { api_version, message } = PARSED.roots[i];
        all[i] = Root { api_version, message: PARSED.ids.get(message) };
        i += 1;
    }
    all
};

const NO_NAME: Name = Name(0);

/// What the first line says.
struct Head {
    minor: u32,
    messages: usize,
    fields: usize,
    roots: usize,
}

/// The lines as they are read. Fields and roots name their messages by hashes, because some come later.
struct Parsed {
    messages: [Message; HEAD.messages],
    fields: [FieldRow; HEAD.fields],
    roots: [RootRow; HEAD.roots],
    ids: Ids,
}

#[derive(Clone, Copy)]
struct FieldRow {
    name: Name,
    number: u16,
    shape: Shape,
    absent: Absent,
    drop_zero: bool,
    /// The letter.
    kind: u8,
    /// For kinds that name one.
    message: u64,
}

#[derive(Clone, Copy)]
struct RootRow {
    api_version: Name,
    message: u64,
}

/// Finds messages by the hashes of their names: a hash table with open addressing.
struct Ids {
    hashes: [u64; SLOTS],
    ids: [u16; SLOTS],
}

/// A power of two, and some three times the number of messages.
const SLOTS: usize = 4096;

const fn head() -> Head {
    let [b'#', b' ', rest @ ..] = TEXT.as_bytes() else { panic!("there is no head") };
    // The numbers in the order they come; the first is the major version.
    let (mut numbers, mut found, mut rest) = ([0; 5], 0, rest);
    while let [first, tail @ ..] = rest
        && *first != b'\n'
    {
        if first.is_ascii_digit() {
            (numbers[found], rest) = number(rest);
            found += 1;
        } else {
            rest = tail;
        }
    }
    assert!(found == 5 && numbers[0] == 1, "the head is not understood");
    let [_, minor, messages, fields, roots] = numbers;
    assert!(messages < SLOTS / 2 && fields < 1 << 16, "there are too many for the sizes chosen here");
    Head { minor: minor as u32, messages, fields, roots }
}

const fn parse() -> Parsed {
    let mut parsed = Parsed {
        messages: [Message { package: NO_NAME, name: NO_NAME, first_field: 0, fields: 0 }; HEAD.messages],
        fields: [FieldRow::EMPTY; HEAD.fields],
        roots: [RootRow { api_version: NO_NAME, message: 0 }; HEAD.roots],
        ids: Ids { hashes: [0; SLOTS], ids: [0; SLOTS] },
    };
    let (mut package, mut package_hash, mut api_version) = (NO_NAME, 0, NO_NAME);
    let (mut messages, mut fields, mut roots) = (0, 0, 0);
    let mut text = skip_line(TEXT.as_bytes());
    while let [first, rest @ ..] = text {
        match *first {
            b':' => {
                package_hash = hash(hash(0, rest).0, b".").0;
                (package, text) = name(rest);
            }
            b'@' => {
                (api_version, text) = name(rest);
                let [b' ', rest @ ..] = text else { panic!("an API version has no package") };
                package_hash = hash(hash(0, rest).0, b".").0;
                (_, text) = name(rest);
            }
            b'0'..=b'9' => {
                (parsed.fields[fields], text) = field(text, package_hash);
                parsed.messages[messages - 1].fields += 1;
                fields += 1;
            }
            _ if api_version.0 == NO_NAME.0 => {
                parsed.ids.insert(hash(package_hash, text).0, messages as u16);
                let own;
                (own, text) = name(text);
                parsed.messages[messages] =
                    Message { package, name: own, first_field: fields as u16, fields: 0 };
                messages += 1;
            }
            _ => {
                (parsed.roots[roots].message, text) = reference(text, package_hash);
                parsed.roots[roots].api_version = api_version;
                roots += 1;
            }
        }
        let [b'\n', rest @ ..] = text else { panic!("a line is too long") };
        text = rest;
    }
    assert!(messages == HEAD.messages, "the head counts other messages");
    assert!(fields == HEAD.fields, "the head counts other fields");
    assert!(roots == HEAD.roots, "the head counts other roots");
    parsed
}

/// A line up to its end, and the rest.
const fn field(line: &'static [u8], package: u64) -> (FieldRow, &'static [u8]) {
    let (number, [shape_mark, absent_mark, kind, rest @ ..]) = number(line) else {
        panic!("a field has not three marks")
    };
    assert!(number < NO_FIELD as usize, "a field's number is too large");
    let shape = shape(*shape_mark);
    let (absent, drop_zero) = absent(*absent_mark);
    let mut row =
        FieldRow { name: NO_NAME, number: number as u16, shape, absent, drop_zero, kind: *kind, message: 0 };
    let mut rest = rest;
    if !matches!(shape, Shape::Embedded) {
        let [b' ', tail @ ..] = rest else { panic!("a field has no name") };
        (row.name, rest) = name(tail);
    }
    if let [b' ', tail @ ..] = rest {
        (row.message, rest) = reference(tail, package);
    }
    (row, rest)
}

/// The hash of the message that is named here, and the rest. Packages are written small, types are not:
/// what begins with a type is in the package at hand.
const fn reference(text: &'static [u8], package: u64) -> (u64, &'static [u8]) {
    match text {
        [b'a'..=b'z', ..] => hash(0, text),
        _ => hash(package, text),
    }
}

/// A name up to the next space or the end of the line, and the rest.
const fn name(text: &'static [u8]) -> (Name, &'static [u8]) {
    let mut rest = text;
    while let [byte, tail @ ..] = rest
        && *byte > b' '
    {
        rest = tail;
    }
    let (at, len) = (TEXT.len() - text.len(), text.len() - rest.len());
    assert!(at < 1 << 24 && len > 0 && len < 1 << 8, "a name is missing or too long");
    (Name((at as u32) << 8 | len as u32), rest)
}

/// Goes on with the hash of a name up to the next space or the end; and the rest.
const fn hash(mut hash: u64, mut text: &[u8]) -> (u64, &[u8]) {
    while let [byte, rest @ ..] = text
        && *byte > b' '
    {
        // A prime below 2^55, so that nothing overflows.
        hash = (hash * 257 + *byte as u64) % 0x7f_ffff_ffff_ffc9;
        text = rest;
    }
    (hash, text)
}

const fn skip_line(mut text: &'static [u8]) -> &'static [u8] {
    while let [byte, rest @ ..] = text {
        text = rest;
        if *byte == b'\n' {
            break;
        }
    }
    text
}

impl FieldRow {
    const EMPTY: FieldRow = FieldRow {
        name: NO_NAME,
        number: 0,
        shape: Shape::One,
        absent: Absent::Omit,
        drop_zero: false,
        kind: 0,
        message: 0,
    };

    const fn field(&self, kind: Kind) -> Field {
        let Self { name, number, shape, absent, drop_zero, .. } = *self;
        let silent = matches!(absent, Absent::Omit) && !matches!(shape, Shape::Embedded);
        let silent_number = if silent { number } else { NO_FIELD };
        Field { name, number, silent_number, shape, kind, absent, drop_zero }
    }
}

impl Ids {
    const fn insert(&mut self, hash: u64, id: u16) {
        let mut slot = hash as usize % SLOTS;
        while self.hashes[slot] != 0 {
            assert!(self.hashes[slot] != hash, "two messages have the same name, or hash");
            slot = (slot + 1) % SLOTS;
        }
        self.hashes[slot] = hash;
        self.ids[slot] = id;
    }

    const fn get(&self, hash: u64) -> MessageId {
        let mut slot = hash as usize % SLOTS;
        while self.hashes[slot] != hash {
            assert!(self.hashes[slot] != 0, "a message is named that is not there");
            slot = (slot + 1) % SLOTS;
        }
        MessageId(self.ids[slot])
    }
}

/// The number that a text begins with, and what is behind it.
const fn number(mut text: &[u8]) -> (usize, &[u8]) {
    let mut value = 0;
    while let [digit @ b'0'..=b'9', rest @ ..] = text {
        value = value * 10 + (*digit - b'0') as usize;
        text = rest;
    }
    (value, text)
}

const fn shape(letter: u8) -> Shape {
    match letter {
        b'.' => Shape::One,
        b'*' => Shape::Pointer,
        b'[' => Shape::List,
        b'{' => Shape::Map,
        b'+' => Shape::Embedded,
        _ => panic!("an unknown shape"),
    }
}

/// What is shown for an absent field, and whether a present zero is dropped.
const fn absent(letter: u8) -> (Absent, bool) {
    match letter {
        b'?' => (Absent::Omit, false),
        b'-' => (Absent::Omit, true),
        b'~' => (Absent::Null, false),
        b'!' => (Absent::Zero, false),
        b'0' => (Absent::EmptyList, false),
        _ => panic!("an unknown rule for absent fields"),
    }
}

const fn kind(letter: u8, message: u64) -> Kind {
    assert!((message != 0) == matches!(letter, b'A' | b'B' | b'M' | b'P'), "a message too many, or none");
    match letter {
        b'b' => Kind::Bool,
        b'i' => Kind::Int32,
        b'l' => Kind::Int64,
        b'd' => Kind::Double,
        b's' => Kind::String,
        b'y' => Kind::Bytes,
        b'T' => Kind::Time,
        b'U' => Kind::MicroTime,
        b'Q' => Kind::Quantity,
        b'I' => Kind::IntOrString,
        b'R' => Kind::Raw,
        b'L' => Kind::Strings,
        b'A' => Kind::SchemaOrArray(PARSED.ids.get(message)),
        b'B' => Kind::SchemaOrBool(PARSED.ids.get(message)),
        b'P' => Kind::SchemaOrStringArray(PARSED.ids.get(message)),
        b'M' => Kind::Message(PARSED.ids.get(message)),
        _ => panic!("an unknown kind"),
    }
}
