//! Bodies that clients send in protobuf, read into JSON.
//!
//! kubectl and client-go write built-in kinds in protobuf where they can, and expect every server to take
//! it. Only requests are read; answers are JSON. The result is what the client meant, not yet what the
//! server would store: it goes through the same decoding, defaulting and validation as a JSON body. Unknown
//! fields are skipped, as Go does. Total over any bytes: an error, never a panic, never a read past the
//! end, bounded recursion.

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::kinds;
use crate::schema::{Codec, Node, NodeId, NodeKind, SchemaSet};
use crate::status::ApiError;

/// The media type of such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Deeper than any object that a server would take in JSON.
const MAX_DEPTH: usize = 100;

/// Reads an object with its envelope.
pub(crate) fn read(body: &[u8]) -> Result<Value, ApiError> {
    document(body, 0).map_err(|why| {
        ApiError::bad_request(format!("the object provided is unrecognized (protobuf): {why}"))
    })
}

/// `k8s\0`, then what the object is, then the object.
fn document(body: &[u8], depth: usize) -> Result<Value, String> {
    let body = body.strip_prefix(MAGIC).ok_or("provided data does not appear to be a protobuf message")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(body) {
        match field? {
            (1, Wire::Bytes(meta)) => {
                for field in Fields(meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = lossy(text),
                        (2, Wire::Bytes(text)) => kind = lossy(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    // Options come with the version of the group that they are sent to.
    let schema = kinds::kind(group, version, &kind).or_else(|| kinds::kind("", "v1", &kind));
    let schema =
        schema.ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?}"))?;
    let reader = Reader { set: &schema.set };
    let mut object = Map::new();
    reader.message(schema.node, &[], raw, &mut object, depth)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

/// A value on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// The fields of a message, in the order they are in.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u32, Wire<'a>), String> {
        let tag = self.varint()?;
        let number =
            u32::try_from(tag >> 3).ok().filter(|n| *n > 0).ok_or("a field with an illegal number")?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| END)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(format!("field {number} has the unknown wire type {other}")),
        };
        Ok((number, wire))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number with more than ten bytes".to_owned())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(END)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| END.to_owned())
    }
}

const END: &str = "unexpected end of the message";
const WRONG: &str = "a field with the wrong wire type";

struct Reader<'s> {
    set: &'s SchemaSet,
}

impl<'s> Reader<'s> {
    fn node(&self, id: NodeId) -> &'s Node {
        &self.set.nodes[id as usize]
    }

    /// Reads a message into `out`. `way` leads into embedded structs, whose fields are flat in JSON.
    fn message(
        &self,
        id: NodeId,
        way: &[u32],
        bytes: &[u8],
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        let node = self.node(id);
        for field in Fields(bytes) {
            let (number, wire) = field?;
            let way: Vec<u32> = way.iter().copied().chain([number]).collect();
            let Some((known, name)) = node.wire.iter().find(|(known, _)| known.starts_with(&way)) else {
                continue;
            };
            if known.len() > way.len() {
                self.message(id, &way, expect_bytes(wire)?, out, depth + 1)?;
                continue;
            }
            let Some(&field) = node.properties.get(name) else { continue };
            self.field(field, wire, out.entry(name.clone()).or_insert(Value::Null), depth)?;
            if out.get(name).is_some_and(Value::is_null) {
                out.remove(name);
            }
        }
        Ok(())
    }

    /// Reads one occurrence of a field; lists and maps grow, everything else is replaced.
    fn field(&self, id: NodeId, wire: Wire<'_>, out: &mut Value, depth: usize) -> Result<(), String> {
        let node = self.node(id);
        let wrapped = node.go.as_ref().is_some_and(|go| go.wrapped);
        match (node.items, node.additional) {
            (Some(items), _) if wrapped => {
                for field in Fields(expect_bytes(wire)?) {
                    if let (1, wire) = field? {
                        push(out, self.value(items, wire, depth)?);
                    }
                }
            }
            (Some(items), _) => match (wire, self.node(items).kind) {
                (Wire::Bytes(packed), NodeKind::Integer | NodeKind::Boolean) => {
                    let mut packed = Fields(packed);
                    while !packed.0.is_empty() {
                        let number = Wire::Varint(packed.varint()?);
                        push(out, self.value(items, number, depth)?);
                    }
                }
                _ => push(out, self.value(items, wire, depth)?),
            },
            (None, Some(values)) => {
                let (mut key, mut value) = (String::new(), None);
                for field in Fields(expect_bytes(wire)?) {
                    match field? {
                        (1, Wire::Bytes(text)) => key = lossy(text),
                        (2, wire) => {
                            let mut read = Value::Null;
                            self.field(values, wire, &mut read, depth + 1)?;
                            value = Some(read);
                        }
                        _ => {}
                    }
                }
                if !out.is_object() {
                    *out = json!({});
                }
                out[key] = value.unwrap_or_else(|| zero(self.node(values)));
            }
            (None, None) => *out = self.value(id, wire, depth)?,
        }
        Ok(())
    }

    fn value(&self, id: NodeId, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
        let node = self.node(id);
        let codec = node.go.as_ref().map(|go| go.codec).unwrap_or_default();
        if codec != Codec::Plain {
            return self.special(node, codec, expect_bytes(wire)?, depth);
        }
        Ok(match (node.kind, wire) {
            (NodeKind::String, Wire::Bytes(bytes)) => lossy(bytes).into(),
            (NodeKind::Boolean, Wire::Varint(number)) => (number != 0).into(),
            // Negative numbers are sign-extended to 64 bits.
            (NodeKind::Integer, Wire::Varint(number)) => (number as i64).into(),
            (NodeKind::Number, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
            (NodeKind::Number, Wire::Fixed32(bits)) => f64::from(f32::from_bits(bits)).into(),
            (NodeKind::Object, Wire::Bytes(bytes)) => {
                let mut out = Map::new();
                self.message(id, &[], bytes, &mut out, depth + 1)?;
                Value::Object(out)
            }
            _ => return Err(WRONG.to_owned()),
        })
    }

    /// The types that are messages on the wire and something else in JSON.
    fn special(&self, node: &Node, codec: Codec, bytes: &[u8], depth: usize) -> Result<Value, String> {
        if codec == Codec::Bytes {
            return Ok(STANDARD.encode(bytes).into());
        }
        let mut numbers = [0u64; 4];
        let mut parts: [Vec<&[u8]>; 4] = Default::default();
        for field in Fields(bytes) {
            match field? {
                (number @ 1..=3, Wire::Varint(value)) => numbers[number as usize] = value,
                (number @ 1..=3, Wire::Bytes(value)) => parts[number as usize].push(value),
                _ => {}
            }
        }
        let last = |number: usize| parts[number].last().copied().unwrap_or_default();
        let inner = |bytes: &[u8]| -> Result<Value, String> {
            let id = node.go.as_ref().and_then(|go| go.inner).ok_or("a schema without a type")?;
            let mut out = Map::new();
            self.message(id, &[], bytes, &mut out, depth + 1)?;
            Ok(Value::Object(out))
        };
        Ok(match codec {
            Codec::Time | Codec::MicroTime if bytes.is_empty() => Value::Null,
            Codec::Time => time(numbers[1] as i64, 0, false),
            Codec::MicroTime => time(numbers[1] as i64, numbers[2] as i64, true),
            Codec::Quantity => match last(1) {
                [] => "0".into(),
                text => lossy(text).into(),
            },
            // The type says which of the two counts.
            Codec::IntOrString if numbers[1] == 0 => (numbers[2] as i64).into(),
            Codec::IntOrString => lossy(last(3)).into(),
            Codec::Raw => match last(1) {
                [] => Value::Null,
                raw if raw.starts_with(MAGIC) => document(raw, depth + 1)?,
                raw => serde_json::from_slice(raw).map_err(|error| format!("raw JSON: {error}"))?,
            },
            Codec::SchemaOrBool => match parts[2].last() {
                Some(schema) => inner(schema)?,
                None => (numbers[1] != 0).into(),
            },
            Codec::SchemaOrArray => match (parts[2].as_slice(), parts[1].last()) {
                ([], Some(schema)) => inner(schema)?,
                ([], None) => Value::Null,
                (list, _) => list.iter().map(|bytes| inner(bytes)).collect::<Result<_, _>>()?,
            },
            Codec::SchemaOrStrings => match (parts[2].as_slice(), parts[1].last()) {
                ([], Some(schema)) => inner(schema)?,
                ([], None) => Value::Null,
                (list, _) => list.iter().map(|text| Value::from(lossy(text))).collect(),
            },
            Codec::Plain | Codec::Bytes => Value::Null,
        })
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

/// What a map entry without a value holds.
fn zero(node: &Node) -> Value {
    match node.kind {
        NodeKind::Integer | NodeKind::Number => 0.into(),
        NodeKind::Boolean => false.into(),
        NodeKind::Object => json!({}),
        NodeKind::Array => json!([]),
        NodeKind::Quantity => "0".into(),
        NodeKind::String | NodeKind::Any | NodeKind::IntOrString => "".into(),
    }
}

fn expect_bytes(wire: Wire<'_>) -> Result<&[u8], String> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        _ => Err(WRONG.to_owned()),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Seconds since 1970 as text; the year 1 is Go's zero time.
fn time(seconds: i64, nanos: i64, micros: bool) -> Value {
    const YEAR_ONE: i64 = -62_135_596_800;
    if seconds == YEAR_ONE {
        return Value::Null;
    }
    let nanos = i32::try_from(nanos.clamp(0, 999_999_999)).unwrap_or_default();
    match jiff::Timestamp::new(seconds, nanos) {
        Ok(time) if micros => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into(),
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
        Err(_) => Value::Null,
    }
}
