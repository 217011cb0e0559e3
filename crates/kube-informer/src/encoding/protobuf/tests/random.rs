//! Random messages made of the schema table itself: what Go writes, and the same in any other order.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::encoding::protobuf::check;
use crate::encoding::protobuf::reader::{Reader, Value as Wire, put_bytes, put_varint};
use crate::encoding::schema::{self, Field, Kind, Message, MessageId, Root, Shape};
use crate::encoding::{Codec, Encoding, ManagedFields, Pointer, Rules};

/// A generator with a seed (SplitMix64).
pub(super) struct Random {
    state: u64,
    /// How many more values an object may have.
    values: usize,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, values: 0 }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const TEXTS: [&[u8]; 9] =
    [b"", b"a", b"web", b"a/b~c", "ü€🦀".as_bytes(), b"nul\0nul", b"\xff\xfe", b"<&>\"\\\n", b"cut \xe2\x82"];
const NUMBERS: [i64; 9] = [0, 1, -1, 127, 128, 1 << 31, -(1 << 31), i64::MAX, i64::MIN];
const DOUBLES: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -3.0,
    0.5,
    1e21,
    1e20,
    -1e19,
    1e-7,
    1.7e308,
    1_152_921_504_606_846_976.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    9_007_199_254_740_993.0,
];
const SECONDS: [i64; 8] =
    [0, 1, 1_700_000_000, -1, -62_135_596_800, -62_135_596_801, 253_402_300_800, -100_000_000_000];
const NANOS: [i64; 6] = [0, 1, 999, 1_000, 123_456_789, 999_999_999];
const QUANTITIES: [&str; 6] = ["0", "1", "100m", "2Gi", "-5", "1500k"];
const JSONS: [&str; 10] = [
    "null",
    " null ",
    "{}",
    "[]",
    "0",
    "-0.5",
    "1e300",
    "\"text\"",
    r#"{"b":[1,{"c":null}],"a":"\u00e9"}"#,
    "[ true , false ]",
];

impl Random {
    /// A message as Go writes it.
    pub(super) fn message(&mut self, table: &Message, depth: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for field in table.fields() {
            // Deep messages get fewer and fewer fields.
            if self.values > 0 && self.once_in(1 + depth) {
                self.field(field, depth, &mut out);
            }
        }
        out
    }

    /// An object: it has a name.
    pub(super) fn object(&mut self, root: &Root) -> Vec<u8> {
        self.values = 200;
        let table = schema::message(root.message);
        let mut out = Vec::new();
        for field in table.fields() {
            if field.number == 1 {
                let Kind::Message(id) = field.kind else { continue };
                let mut metadata = vec![];
                put_bytes(&mut metadata, 1, b"name");
                for field in schema::message(id).fields().iter().filter(|field| field.number != 1) {
                    if self.once_in(2) {
                        self.field(field, 2, &mut metadata);
                    }
                }
                put_bytes(&mut out, 1, &metadata);
            } else {
                self.field(field, 1, &mut out);
            }
        }
        out
    }

    /// A definition with a schema, the most nested of all messages.
    pub(super) fn definition(&mut self) -> Vec<u8> {
        self.values = 200;
        let validation = schema::root("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
        let path = [2, 7, 4];
        let mut table = schema::message(validation.message);
        for number in path {
            let Kind::Message(id) = table.field_by_number(number).unwrap().kind else { unreachable!() };
            table = schema::message(id);
        }
        let schema = self.message(table, 0);
        let schema = path.iter().rev().fold(schema, |inner, number| field(*number, &inner));
        [field(1, &field(1, b"name")), schema].concat()
    }

    fn field(&mut self, field: &Field, depth: usize, out: &mut Vec<u8>) {
        let number = u32::from(field.number);
        let times = if matches!(field.shape, Shape::List | Shape::Map) { 1 + self.below(3) } else { 1 };
        for index in 0..times {
            if field.shape == Shape::Map {
                let mut pair = Vec::new();
                // Ascending, as Go sorts them; the first may be empty.
                let key = if index == 0 && self.once_in(4) { String::new() } else { format!("key{index}") };
                put_bytes(&mut pair, 1, key.as_bytes());
                self.value(field.kind, 2, depth, &mut pair);
                put_bytes(out, number, &pair);
            } else {
                self.value(field.kind, number, depth, out);
            }
        }
    }

    /// One entry.
    fn value(&mut self, kind: Kind, number: u32, depth: usize, out: &mut Vec<u8>) {
        self.values = self.values.saturating_sub(1);
        let mut varint = |value: i64| {
            put_varint(out, u64::from(number) << 3);
            put_varint(out, value as u64);
        };
        match kind {
            Kind::Bool => varint(self.below(2) as i64),
            Kind::Int32 => varint(i64::from(self.pick(&NUMBERS) as i32)),
            Kind::Int64 => varint(self.pick(&NUMBERS)),
            Kind::Double => {
                put_varint(out, u64::from(number) << 3 | 1);
                out.extend_from_slice(&self.pick(&DOUBLES).to_le_bytes());
            }
            _ => {
                let inner = self.inner(kind, depth);
                put_bytes(out, number, &inner);
            }
        }
    }

    /// What stands in a length-delimited entry.
    fn inner(&mut self, kind: Kind, depth: usize) -> Vec<u8> {
        let mut out = Vec::new();
        match kind {
            Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double => {}
            Kind::String | Kind::Bytes => out.extend_from_slice(self.pick(&TEXTS)),
            Kind::Message(id) => return self.message(schema::message(id), depth + 1),
            Kind::Time | Kind::MicroTime => {
                if !self.once_in(8) {
                    put_varint(&mut out, 1 << 3);
                    put_varint(&mut out, self.pick(&SECONDS) as u64);
                    put_varint(&mut out, 2 << 3);
                    put_varint(&mut out, self.pick(&NANOS) as u64);
                }
            }
            Kind::Quantity => put_bytes(&mut out, 1, self.pick(&QUANTITIES).as_bytes()),
            Kind::IntOrString => {
                put_varint(&mut out, 1 << 3);
                put_varint(&mut out, self.below(2) as u64);
                put_varint(&mut out, 2 << 3);
                put_varint(&mut out, self.pick(&NUMBERS) as i32 as u64);
                put_bytes(&mut out, 3, self.pick(&TEXTS));
            }
            Kind::Raw => {
                if !self.once_in(6) {
                    put_bytes(&mut out, 1, self.pick(&JSONS).as_bytes());
                }
            }
            Kind::SchemaOrBool(id) => {
                self.value(Kind::Bool, 1, depth, &mut out);
                self.schemas(id, 2, 2, depth, &mut out);
            }
            Kind::SchemaOrArray(id) => {
                self.schemas(id, 1, 2, depth, &mut out);
                self.schemas(id, 2, 3, depth, &mut out);
            }
            Kind::SchemaOrStringArray(id) => {
                self.schemas(id, 1, 2, depth, &mut out);
                for _ in 0..self.below(3) {
                    self.value(Kind::String, 2, depth, &mut out);
                }
            }
            Kind::Strings => {
                for _ in 0..self.below(3) {
                    self.value(Kind::String, 1, depth, &mut out);
                }
            }
        }
        out
    }

    /// Fewer than `end` schemas.
    fn schemas(&mut self, id: MessageId, number: u32, end: usize, depth: usize, out: &mut Vec<u8>) {
        for _ in 0..self.below(end) {
            self.value(Kind::Message(id), number, depth + 1, out);
        }
    }
}

/// What a message with rules of its own looks like inside.
fn slots(kind: Kind) -> Vec<(Kind, Shape)> {
    match kind {
        Kind::Time | Kind::MicroTime => vec![(Kind::Int64, Shape::One), (Kind::Int32, Shape::One)],
        // The type is 0 or 1, as a bool is.
        Kind::IntOrString => {
            vec![(Kind::Bool, Shape::One), (Kind::Int32, Shape::One), (Kind::String, Shape::One)]
        }
        Kind::SchemaOrBool(id) => vec![(Kind::Bool, Shape::One), (Kind::Message(id), Shape::Pointer)],
        Kind::SchemaOrArray(id) => {
            vec![(Kind::Message(id), Shape::Pointer), (Kind::Message(id), Shape::List)]
        }
        Kind::SchemaOrStringArray(id) => {
            vec![(Kind::Message(id), Shape::Pointer), (Kind::String, Shape::List)]
        }
        Kind::Strings => vec![(Kind::String, Shape::List)],
        _ => vec![],
    }
}

impl Random {
    /// The same message in another order: entries of different fields change places, messages are torn
    /// in two, and values that do not count stand before those that do.
    pub(super) fn scramble(&mut self, id: MessageId, bytes: &[u8]) -> Vec<u8> {
        self.scrambled(Kind::Message(id), bytes).concat()
    }

    /// The entries of a value in another order; or the value itself, where it has no entries.
    fn scrambled(&mut self, kind: Kind, bytes: &[u8]) -> Vec<Vec<u8>> {
        match kind {
            // The values that do not count must be quantities and JSON, too.
            Kind::String | Kind::Bytes | Kind::Quantity | Kind::Raw => vec![bytes.to_vec()],
            Kind::Message(id) => self.entries(bytes, |number| {
                let field = schema::message(id).field_by_number(number).unwrap();
                (field.kind, field.shape)
            }),
            kind => self.entries(bytes, |number| slots(kind)[number as usize - 1]),
        }
    }

    fn entries(&mut self, bytes: &[u8], slot: impl Fn(u32) -> (Kind, Shape)) -> Vec<Vec<u8>> {
        let mut all: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut reader = Reader::new(bytes);
        while let Some(entry) = reader.next().unwrap() {
            let (kind, shape) = slot(entry.number);
            match (shape, entry.value) {
                (Shape::Map, Wire::Bytes(pair)) => {
                    let pair = self.pair(kind, pair);
                    all.push((entry.number, field(entry.number, &pair)));
                }
                (Shape::List, Wire::Bytes(inner)) => {
                    let inner = self.scrambled(kind, inner).concat();
                    all.push((entry.number, field(entry.number, &inner)));
                }
                (Shape::List, _) => all.push((entry.number, bytes[entry.start..entry.end].to_vec())),
                (_, wire) => {
                    let whole = &bytes[entry.start..entry.end];
                    let parts = self.one(kind, entry.number, wire, whole);
                    all.extend(parts.into_iter().map(|part| (entry.number, part)));
                }
            }
        }
        self.shuffle(all, |number| slot(number).1 == Shape::Map)
    }

    /// What stands once, as several entries that come to the same.
    fn one(&mut self, kind: Kind, number: u32, wire: Wire<'_>, whole: &[u8]) -> Vec<Vec<u8>> {
        let Wire::Bytes(inner) = wire else { return self.after_another(kind, number, whole.to_vec()) };
        let entries = self.scrambled(kind, inner);
        match kind {
            // Merged by Go.
            Kind::Message(_)
            | Kind::SchemaOrBool(_)
            | Kind::SchemaOrArray(_)
            | Kind::SchemaOrStringArray(_)
            | Kind::Strings
            | Kind::Quantity
            | Kind::IntOrString
            | Kind::Raw => {
                if self.once_in(2) {
                    return vec![field(number, &entries.concat())];
                }
                let (before, after) = entries.split_at(self.below(entries.len() + 1));
                vec![field(number, &before.concat()), field(number, &after.concat())]
            }
            // The last one counts.
            _ => self.after_another(kind, number, field(number, &entries.concat())),
        }
    }

    /// Sometimes puts another value before one that replaces it.
    fn after_another(&mut self, kind: Kind, number: u32, entry: Vec<u8>) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        if self.once_in(3) {
            let mut other = Vec::new();
            self.value(kind, number, 3, &mut other);
            out.push(other);
        }
        out.push(entry);
        out
    }

    /// An entry of a map: of several values the last one counts, whatever it is.
    fn pair(&mut self, kind: Kind, pair: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        let mut reader = Reader::new(pair);
        while let Some(entry) = reader.next().unwrap() {
            let kind = if entry.number == 1 { Kind::String } else { kind };
            let bytes = match entry.value {
                Wire::Bytes(inner) => field(entry.number, &self.scrambled(kind, inner).concat()),
                _ => pair[entry.start..entry.end].to_vec(),
            };
            let parts = self.after_another(kind, entry.number, bytes);
            all.extend(parts.into_iter().map(|part| (entry.number, part)));
        }
        self.shuffle(all, |_| false).concat()
    }

    /// Shuffles entries. Those of one field keep their order among each other, unless it is `free`.
    fn shuffle(&mut self, entries: Vec<(u32, Vec<u8>)>, free: impl Fn(u32) -> bool) -> Vec<Vec<u8>> {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        for index in (1..order.len()).rev() {
            let other = self.below(index + 1);
            order.swap(index, other);
        }
        let mut next: BTreeMap<u32, usize> = BTreeMap::new();
        let mut out = Vec::new();
        for index in order {
            let (number, bytes) = &entries[index];
            if free(*number) {
                out.push(bytes.clone());
                continue;
            }
            // Whichever of this field it is, those before it come first.
            let skip = next.entry(*number).or_default();
            let mut same = entries.iter().filter(|(each, _)| each == number);
            out.push(same.nth(*skip).unwrap().1.clone());
            *skip += 1;
        }
        out
    }
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, bytes);
    out
}

/// All kinds that are objects.
fn roots() -> impl Iterator<Item = &'static Root> {
    schema::roots().iter().filter(|root| schema::is_object(root))
}

/// A random object of each kind, and some definitions.
fn objects(random: &mut Random) -> Vec<(&'static Root, Vec<u8>)> {
    let mut all: Vec<_> = roots().map(|root| (root, random.object(root))).collect();
    let definition = schema::root("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    all.extend((0..20).map(|_| (definition, random.definition())));
    all
}

fn rounds() -> u64 {
    if std::env::var_os("KUBE_INFORMER_FULL").is_some() { 50 } else { 2 }
}

fn codecs(root: &Root) -> [Codec; 2] {
    [ManagedFields::Keep, ManagedFields::Cut].map(|managed_fields| {
        let rules = Rules::default().managed_fields(managed_fields);
        Codec::new(Encoding::Protobuf, root.api_version(), root.kind(), rules).unwrap()
    })
}

#[test]
fn what_go_writes_passes_unchanged_and_can_be_seen_every_way() {
    assert!(roots().count() > 150);
    for seed in 0..rounds() {
        for (root, object) in objects(&mut Random::new(seed)) {
            let told = format!("seed {seed}: {} {}", root.api_version(), root.kind());
            let order = check::check(root.message, &object, None).expect(&told);
            assert_eq!(order, check::Order::Canonical, "{told}");
            let [codec, _] = codecs(root);
            let mut stored = Vec::new();
            let metadata = codec.ingest(&object, &mut stored).expect(&told);
            assert_eq!(stored, object, "{told}");
            assert_eq!(codec.metadata(&stored).unwrap(), metadata, "{told}");
            let value: Value = codec.view(&stored).expect(&told);
            let json = codec.json(&stored).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value, "{told}");
            assert_eq!(
                (&value["apiVersion"], &value["kind"]),
                (&root.api_version().into(), &root.kind().into())
            );
            assert_eq!(value["metadata"]["name"], *metadata.name, "{told}");
            for (field, shown) in value.as_object().unwrap() {
                let pointer = Pointer::parse(&format!("/{field}")).unwrap();
                assert_eq!(codec.pointer(&stored, &pointer).unwrap().as_ref(), Some(shown), "{told} {field}");
            }
        }
    }
}

#[test]
fn the_same_object_in_any_order_is_stored_as_the_same_bytes() {
    for seed in 0..rounds() {
        let mut random = Random::new(seed);
        for (root, object) in objects(&mut random) {
            let told = format!("seed {seed}: {} {}", root.api_version(), root.kind());
            let disordered = random.scramble(root.message, &object);
            for codec in codecs(root) {
                let (mut stored, mut stored_too) = (Vec::new(), Vec::new());
                let metadata = codec.ingest(&object, &mut stored).expect(&told);
                let metadata_too = codec.ingest(&disordered, &mut stored_too).expect(&told);
                assert_eq!(stored_too, stored, "{told}");
                assert_eq!(metadata_too, metadata, "{told}");
                // What is stored is in order, and stays as it is.
                codec.ingest(&stored, &mut stored_too).expect(&told);
                assert_eq!(stored_too, stored, "{told}");
            }
        }
    }
}
