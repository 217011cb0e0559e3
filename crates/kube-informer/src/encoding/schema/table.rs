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

use super::{Absent, Field, Kind, Message, MessageId, Root, Shape};

const TEXT: &[u8] = include_bytes!("../schema.txt");

const HEAD: Head = head();

/// Only the compiler sees this; the statics below are made of it.
#[allow(long_running_const_eval, reason = "takes a fraction of a second")]
const PARSED: &Parsed = &parse();

pub(super) const MINOR: u32 = HEAD.minor as u32;

pub(super) const OBJECT_META: MessageId = PARSED.find(b"meta/v1", b"ObjectMeta");

/// Every name once, one after the other.
static NAMES: [u8; PARSED.names.len] = {
    let mut all = [0; PARSED.names.len];
    all.copy_from_slice(PARSED.names.bytes.split_at(PARSED.names.len).0);
    all
};

#[allow(long_running_const_eval, reason = "takes a fraction of a second")]
static FIELDS: [Field; HEAD.fields] = {
    let mut all = [Row::EMPTY.field(""); HEAD.fields];
    let mut i = 0;
    while i < HEAD.fields {
        let row = &PARSED.fields[i];
        all[i] = row.field(row.name.text());
        i += 1;
    }
    all
};

pub(super) static MESSAGES: [Message; HEAD.messages] = {
    let mut all = [Message { name: "", fields: &[] }; HEAD.messages];
    let mut i = 0;
    while i < HEAD.messages {
        let start = PARSED.messages[i].first_field;
        let end = if i + 1 < HEAD.messages { PARSED.messages[i + 1].first_field } else { HEAD.fields };
        let fields = FIELDS.split_at(end).0.split_at(start).1;
        all[i] = Message { name: PARSED.messages[i].name.text(), fields };
        i += 1;
    }
    all
};

pub(super) static ROOTS: [Root; HEAD.roots] = {
    let mut all = [Root { api_version: "", kind: "", message: MessageId(0) }; HEAD.roots];
    let mut i = 0;
    while i < HEAD.roots {
        let row = &PARSED.roots[i];
        all[i] = Root {
            api_version: row.api_version.text(),
            kind: row.kind.text(),
            message: MessageId(row.message),
        };
        i += 1;
    }
    all
};

/// What the first line says.
struct Head {
    minor: usize,
    messages: usize,
    fields: usize,
    roots: usize,
}

struct Parsed {
    names: Names,
    messages: [MessageRow; HEAD.messages],
    fields: [Row; HEAD.fields],
    roots: [RootRow; HEAD.roots],
}

#[derive(Clone, Copy)]
struct MessageRow {
    name: Name,
    first_field: usize,
}

#[derive(Clone, Copy)]
struct Row {
    name: Name,
    number: u16,
    shape: Shape,
    kind: Kind,
    absent: Absent,
    drop_zero: bool,
}

#[derive(Clone, Copy)]
struct RootRow {
    api_version: Name,
    kind: Name,
    message: u16,
}

/// A place in [`NAMES`].
#[derive(Clone, Copy)]
struct Name {
    at: usize,
    len: usize,
}

/// [`NAMES`] as it grows, and where each field's name is, by hash.
struct Names {
    bytes: [u8; TEXT.len()],
    len: usize,
    slots: [Name; SLOTS],
}

/// More than twice the names.
const SLOTS: usize = 4096;

const fn head() -> Head {
    let (line, _) = cut(TEXT, 0, b'\n');
    // The numbers in the order they come; the first is the major version.
    let mut numbers = [0; 5];
    let (mut i, mut found) = (0, 0);
    while i < line.len() {
        if line[i].is_ascii_digit() {
            (numbers[found], i) = number(line, i);
            found += 1;
        } else {
            i += 1;
        }
    }
    assert!(found == 5 && numbers[0] == 1, "the first line of schema.txt is not understood");
    Head { minor: numbers[1], messages: numbers[2], fields: numbers[3], roots: numbers[4] }
}

const fn parse() -> Parsed {
    let none = Name { at: 0, len: 0 };
    let mut parsed = Parsed {
        names: Names { bytes: [0; TEXT.len()], len: 0, slots: [none; SLOTS] },
        messages: [MessageRow { name: none, first_field: 0 }; HEAD.messages],
        fields: [Row::EMPTY; HEAD.fields],
        roots: [RootRow { api_version: none, kind: none, message: 0 }; HEAD.roots],
    };
    parsed.read_messages();
    let roots = parsed.read_fields();
    parsed.read_roots(roots);
    parsed
}

impl Parsed {
    /// The names of all messages: fields refer to them in both directions.
    const fn read_messages(&mut self) {
        let (_, mut at) = cut(TEXT, 0, b'\n');
        let (mut package, mut messages, mut fields): (&[u8], _, _) = (b"", 0, 0);
        while TEXT[at] != b'@' {
            let (line, next) = cut(TEXT, at, b'\n');
            match line[0] {
                b':' => package = line.split_at(1).1,
                b'0'..=b'9' => fields += 1,
                _ => {
                    let name = self.names.push_qualified(package, line);
                    assert!(
                        messages == 0 || self.order(messages - 1, package, line) < 0,
                        "messages are not sorted"
                    );
                    self.messages[messages] = MessageRow { name, first_field: fields };
                    messages += 1;
                }
            }
            at = next;
        }
        assert!(messages == HEAD.messages && fields == HEAD.fields, "there are not as many as the head says");
    }

    /// Returns where the roots begin.
    const fn read_fields(&mut self) -> usize {
        let (_, mut at) = cut(TEXT, 0, b'\n');
        let (mut package, mut fields, mut last): (&[u8], _, _) = (b"", 0, 0);
        while TEXT[at] != b'@' {
            let (line, next) = cut(TEXT, at, b'\n');
            match line[0] {
                b':' => package = line.split_at(1).1,
                b'0'..=b'9' => {
                    let row = self.field(line, package);
                    assert!(row.number > last, "fields are not sorted");
                    last = row.number;
                    self.fields[fields] = row;
                    fields += 1;
                }
                _ => last = 0,
            }
            at = next;
        }
        at
    }

    const fn field(&mut self, line: &[u8], package: &[u8]) -> Row {
        let (number, at) = number(line, 0);
        let shape = shape(line[at]);
        let (absent, drop_zero) = absent(line[at + 1]);
        let letter = line[at + 2];
        let at = at + 4;
        let (name, at) = match shape {
            Shape::Embedded => (Name { at: 0, len: 0 }, at),
            _ => {
                let (name, at) = cut(line, at, b' ');
                (self.names.intern(name), at)
            }
        };
        let kind = match letter {
            b'A' => Kind::SchemaOrArray(self.reference(line, at, package)),
            b'B' => Kind::SchemaOrBool(self.reference(line, at, package)),
            b'M' => Kind::Message(self.reference(line, at, package)),
            b'P' => Kind::SchemaOrStringArray(self.reference(line, at, package)),
            _ => {
                assert!(at >= line.len(), "a kind without a message names one");
                simple(letter)
            }
        };
        Row { name, number: number as u16, shape, kind, absent, drop_zero }
    }

    const fn read_roots(&mut self, mut at: usize) {
        let (mut package, mut api_version, mut roots): (&[u8], _, _) = (b"", Name { at: 0, len: 0 }, 0);
        while at < TEXT.len() {
            let (line, next) = cut(TEXT, at, b'\n');
            if line[0] == b'@' {
                let (version, rest) = cut(line, 1, b' ');
                (api_version, package) = (self.names.push(version), line.split_at(rest).1);
            } else {
                let MessageId(message) = self.reference(line, 0, package);
                // The kind is the end of the message's name.
                let full = self.messages[message as usize].name;
                let len = cut(line, own(line), b'\n').0.len();
                let kind = Name { at: full.at + full.len - len, len };
                self.roots[roots] = RootRow { api_version, kind, message };
                roots += 1;
            }
            at = next;
        }
        assert!(roots == HEAD.roots, "there are not as many roots as the head says");
    }

    /// The message that the rest of a line names.
    const fn reference(&self, line: &[u8], at: usize, package: &[u8]) -> MessageId {
        let name = line.split_at(at).1;
        let own = own(name);
        if own == 0 {
            self.find(package, name)
        } else {
            self.find(name.split_at(own - 1).0, name.split_at(own).1)
        }
    }

    const fn find(&self, package: &[u8], own: &[u8]) -> MessageId {
        let (mut low, mut high) = (0, HEAD.messages);
        while low < high {
            let middle = (low + high) / 2;
            match self.order(middle, package, own) {
                0 => return MessageId(middle as u16),
                ..0 => low = middle + 1,
                1.. => high = middle,
            }
        }
        panic!("a message is named that is not there")
    }

    /// How a message's name compares with another one: negative if it comes first.
    const fn order(&self, message: usize, package: &[u8], own: &[u8]) -> i32 {
        let name = self.messages[message].name;
        let len = package.len() + 1 + own.len();
        let mut i = 0;
        while i < name.len && i < len {
            let other = if i < package.len() {
                package[i]
            } else if i == package.len() {
                b'.'
            } else {
                own[i - package.len() - 1]
            };
            let this = self.names.bytes[name.at + i];
            if this != other {
                return this as i32 - other as i32;
            }
            i += 1;
        }
        name.len as i32 - len as i32
    }
}

impl Row {
    const EMPTY: Row = Row {
        name: Name { at: 0, len: 0 },
        number: 0,
        shape: Shape::One,
        kind: Kind::Bool,
        absent: Absent::Omit,
        drop_zero: false,
    };

    const fn field(&self, name: &'static str) -> Field {
        Field {
            name,
            number: self.number,
            shape: self.shape,
            kind: self.kind,
            absent: self.absent,
            drop_zero: self.drop_zero,
        }
    }
}

impl Name {
    const fn text(self) -> &'static str {
        match str::from_utf8(NAMES.split_at(self.at).1.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => panic!("a name is not UTF-8"),
        }
    }
}

impl Names {
    const fn push(&mut self, name: &[u8]) -> Name {
        let at = self.len;
        let mut i = 0;
        while i < name.len() {
            self.bytes[at + i] = name[i];
            i += 1;
        }
        self.len = at + i;
        Name { at, len: i }
    }

    const fn push_qualified(&mut self, package: &[u8], own: &[u8]) -> Name {
        let at = self.push(package).at;
        self.push(b".");
        self.push(own);
        Name { at, len: self.len - at }
    }

    /// As `push`, but a name that is there already is not added.
    const fn intern(&mut self, name: &[u8]) -> Name {
        let mut slot = 0;
        let mut i = 0;
        while i < name.len() {
            slot = (slot * 31 + name[i] as usize) % SLOTS;
            i += 1;
        }
        while self.slots[slot].len > 0 {
            if self.is(self.slots[slot], name) {
                return self.slots[slot];
            }
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = self.push(name);
        self.slots[slot]
    }

    const fn is(&self, there: Name, name: &[u8]) -> bool {
        let mut i = 0;
        while i < name.len() && i < there.len && self.bytes[there.at + i] == name[i] {
            i += 1;
        }
        i == name.len() && i == there.len
    }
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

/// The kinds that name no message.
const fn simple(letter: u8) -> Kind {
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
        _ => panic!("an unknown kind"),
    }
}

/// What is between a position and the next `end`, and the position behind that.
const fn cut(text: &[u8], at: usize, end: u8) -> (&[u8], usize) {
    let mut i = at;
    while i < text.len() && text[i] != end {
        i += 1;
    }
    let part = text.split_at(i).0.split_at(at).1;
    (part, if i < text.len() { i + 1 } else { i })
}

/// The number at a position, and the position behind it.
const fn number(text: &[u8], at: usize) -> (usize, usize) {
    let (mut value, mut i) = (0, at);
    while i < text.len() && text[i].is_ascii_digit() {
        value = value * 10 + (text[i] - b'0') as usize;
        i += 1;
    }
    (value, i)
}

/// Where a message's own name begins, behind the package.
const fn own(name: &[u8]) -> usize {
    let mut i = name.len();
    while i > 0 && name[i - 1] != b'.' {
        i -= 1;
    }
    i
}
