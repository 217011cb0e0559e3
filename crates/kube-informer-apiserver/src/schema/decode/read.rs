//! One value of the document, read as its place wants it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::super::scalars::{self, TimeForm};
use super::super::{Codec, Node, NodeId, NodeKind, Quantity, SchemaSet, quantity};
use super::{Remembered, Walk};

/// One place of the document, about to be read. Gives `None` for `null`.
pub(super) struct Place<'w, 's> {
    pub(super) walk: &'w mut Walk<'s>,
    pub(super) node: NodeId,
}

impl<'de> DeserializeSeed<'de> for Place<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        let Some(node) = self.walk.node(self.node) else { return Ok(Some(serde_value(source)?)) };
        match codec(node) {
            Codec::Raw => Ok(Some(serde_value(source)?).filter(|v| !v.is_null())),
            Codec::Plain if node.kind == NodeKind::Any => Ok(Some(serde_value(source)?)),
            _ => source.deserialize_any(Reader { walk: self.walk, node }),
        }
    }
}

fn serde_value<'de, D: Deserializer<'de>>(source: D) -> Result<Value, D::Error> {
    serde::Deserialize::deserialize(source)
}

fn codec(node: &Node) -> Codec {
    node.go.as_ref().map_or(Codec::Plain, |go| go.codec)
}

struct Reader<'w, 's> {
    walk: &'w mut Walk<'s>,
    node: &'s Node,
}

impl<'s> Reader<'_, 's> {
    fn literal<E: Error>(self, value: Value, name: &str) -> Result<Option<Value>, E> {
        let walk = self.walk;
        match (codec(self.node), &value) {
            (Codec::Bytes, Value::String(text)) => match scalars::base64(text) {
                Ok(text) => Ok(Some(text.into())),
                Err(error) => {
                    walk.remembered.get_or_insert(Remembered::Other(error));
                    Ok(None)
                }
            },
            (Codec::Time, Value::String(text)) => {
                scalars::time(text, TimeForm::Seconds).map_err(|e| walk.fatal(e))
            }
            (Codec::MicroTime, Value::String(text)) => {
                scalars::time(text, TimeForm::Micros).map_err(|e| walk.fatal(e))
            }
            (Codec::Time | Codec::MicroTime, _) => {
                let mismatch = walk.mismatch(name, "string");
                Err(walk.fatal(mismatch.text()))
            }
            (Codec::Quantity, value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                match Quantity::parse(text.trim()) {
                    Ok(quantity) => Ok(Some(quantity.to_string().into())),
                    Err(error) => Err(walk.fatal(error.to_owned())),
                }
            }
            (Codec::IntOrString, Value::String(_)) => Ok(Some(value)),
            (Codec::IntOrString, Value::Number(n)) => {
                if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) {
                    return Ok(Some(value));
                }
                let mismatch = walk.mismatch(&format!("number {n}"), "int32");
                Err(walk.fatal(mismatch.text()))
            }
            (Codec::IntOrString, _) => {
                let mismatch = walk.mismatch(name, "int32");
                Err(walk.fatal(mismatch.text()))
            }
            (Codec::SchemaOrBool, Value::Bool(_)) => Ok(Some(value)),
            (Codec::SchemaOrBool, _) => Err(walk.fatal("boolean or JSON schema expected".to_owned())),
            (Codec::SchemaOrArray | Codec::SchemaOrStrings, _) => Ok(Some(Value::Null)),
            _ => Ok(plain(walk, self.node, value, name)),
        }
    }

    /// A type that reads a JSONSchemaProps (or a list) with a decoder of its own: whatever is wrong in
    /// there ends the walk, and its unknown fields are not reported.
    fn apart<E: Error>(
        walk: &mut Walk<'s>,
        read: impl FnOnce(&mut Walk<'s>) -> Result<Option<Value>, E>,
    ) -> Result<Option<Value>, E> {
        let fields = std::mem::take(&mut walk.fields);
        let holder = std::mem::take(&mut walk.holder);
        let remembered = walk.remembered.take();
        let quiet = std::mem::replace(&mut walk.quiet, true);
        let result = read(walk);
        walk.quiet = quiet;
        walk.holder = holder;
        walk.fields = fields;
        let inner = std::mem::replace(&mut walk.remembered, remembered);
        let value = result?;
        match inner {
            None => Ok(value),
            Some(Remembered::Other(text)) => Err(walk.fatal(text)),
            Some(Remembered::Mismatch(mut mismatch)) => {
                walk.holder.clone_into(&mut mismatch.holder);
                let dot = if mismatch.field.is_empty() || walk.fields.is_empty() { "" } else { "." };
                mismatch.field = format!("{}{dot}{}", walk.fields, mismatch.field);
                Err(walk.fatal(mismatch.text()))
            }
        }
    }
}

/// Booleans, numbers and strings.
fn plain(walk: &mut Walk<'_>, node: &Node, value: Value, name: &str) -> Option<Value> {
    match (node.kind, &value) {
        (NodeKind::String, Value::String(_)) | (NodeKind::Boolean, Value::Bool(_)) => Some(value),
        (NodeKind::Integer, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|n| match node.format.as_deref() {
                Some("int32") => i32::try_from(n).is_ok(),
                _ => true,
            });
            if fits {
                return Some(value);
            }
            walk.wrong(&format!("number {number}"), node);
            None
        }
        (NodeKind::Number, Value::Number(number)) => Some(scalars::float(number)),
        // Nodes without Go types take what their kind takes; here they take anything.
        _ if node.go.is_none() => Some(value),
        _ => {
            walk.wrong(name, node);
            None
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        match codec(self.node) {
            Codec::SchemaOrBool if !self.node.go.as_ref().is_some_and(|go| go.pointer) => {
                Err(self.walk.fatal("boolean or JSON schema expected".to_owned()))
            }
            _ => Ok(None),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        self.literal(value.into(), "bool")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        self.literal(value.into(), "number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        self.literal(value.into(), "number")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        self.literal(Number::from_f64(value).map_or(Value::Null, Value::Number), "number")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        self.literal(value.into(), "string")
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Self::Value, E> {
        self.literal(value.into(), "string")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Self::Value, A::Error> {
        let Self { walk, node } = self;
        match codec(node) {
            Codec::SchemaOrArray | Codec::SchemaOrStrings => {
                let strings = codec(node) == Codec::SchemaOrStrings;
                let inner = node.go.as_ref().and_then(|go| go.inner);
                return Self::apart(walk, |walk| {
                    let mut out = Vec::new();
                    if strings {
                        // `[]string`: elements of other types are mismatches without a place.
                        while let Some(value) = source.next_element::<Value>()? {
                            if !value.is_string() && !value.is_null() {
                                walk.wrong_as(type_name(&value), "string");
                            }
                            out.push(Value::from(value.as_str().unwrap_or_default()));
                        }
                    } else {
                        while let Some(value) =
                            source.next_element_seed(walk.seed(inner.unwrap_or(NodeId::MAX)))?
                        {
                            out.push(value.unwrap_or_else(|| Value::Object(Map::new())));
                        }
                    }
                    Ok(Some(if out.is_empty() { Value::Null } else { Value::Array(out) }))
                });
            }
            Codec::Plain if node.kind == NodeKind::Array => {}
            Codec::Bytes => {
                // Go also reads bytes from a list of small numbers.
                let mut out = Vec::new();
                while let Some(value) = source.next_element::<Value>()? {
                    match (&value, value.as_u64().and_then(|n| u8::try_from(n).ok())) {
                        (_, Some(byte)) => out.push(byte),
                        (Value::Null, _) => out.push(0),
                        (Value::Number(n), _) => walk.wrong_as(&format!("number {n}"), "uint8"),
                        (other, _) => walk.wrong_as(type_name(other), "uint8"),
                    }
                }
                return Ok(Some(STANDARD.encode(out).into()));
            }
            codec => {
                drain(&mut source)?;
                return misplaced(walk, node, codec, "array");
            }
        }
        let Some(items) = node.items else {
            let mut out = Vec::new();
            while let Some(value) = source.next_element::<Value>()? {
                out.push(value);
            }
            return Ok(Some(Value::Array(out)));
        };
        let mut out = Vec::new();
        loop {
            let before = walk.enter(&out.len().to_string(), true);
            let next = source.next_element_seed(walk.seed(items));
            walk.path.truncate(before);
            let Some(value) = next? else { break };
            out.push(value.unwrap_or_else(|| zero_of(walk.set, items)));
        }
        Ok(Some(Value::Array(out)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Self::Value, A::Error> {
        let Self { walk, node } = self;
        match codec(node) {
            Codec::SchemaOrBool | Codec::SchemaOrArray | Codec::SchemaOrStrings => {
                let inner = node.go.as_ref().and_then(|go| go.inner).and_then(|id| walk.node(id));
                let Some(inner) = inner else {
                    while source.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    return Ok(None);
                };
                return Self::apart(walk, |walk| object(walk, inner, source).map(Some));
            }
            Codec::Plain if node.kind == NodeKind::Object => {}
            codec => {
                while source.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return misplaced(walk, node, codec, "object");
            }
        }
        object(walk, node, source).map(Some)
    }
}

fn drain<'de, A: SeqAccess<'de>>(source: &mut A) -> Result<(), A::Error> {
    while source.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A list or an object where something else belongs.
fn misplaced<E: Error>(
    walk: &mut Walk<'_>,
    node: &Node,
    codec: Codec,
    name: &str,
) -> Result<Option<Value>, E> {
    match codec {
        Codec::Plain | Codec::Bytes | Codec::Raw => {
            walk.wrong(name, node);
            Ok(None)
        }
        Codec::Time | Codec::MicroTime => {
            let mismatch = walk.mismatch(name, "string");
            Err(walk.fatal(mismatch.text()))
        }
        Codec::IntOrString => {
            let mismatch = walk.mismatch(name, "int32");
            Err(walk.fatal(mismatch.text()))
        }
        Codec::Quantity => Err(walk.fatal(quantity::FORMAT.to_owned())),
        Codec::SchemaOrBool => Err(walk.fatal("boolean or JSON schema expected".to_owned())),
        Codec::SchemaOrArray | Codec::SchemaOrStrings => Ok(Some(Value::Null)),
    }
}

/// What Go's JSON decoder calls a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What `null` leaves in a list or a map.
fn zero_of(set: &SchemaSet, id: NodeId) -> Value {
    let Some(node) = set.nodes.get(id as usize) else { return Value::Null };
    match (codec(node), node.kind) {
        (Codec::Plain | Codec::Bytes, NodeKind::String) => "".into(),
        (Codec::Plain, NodeKind::Integer | NodeKind::Number) | (Codec::IntOrString, _) => 0.into(),
        (Codec::Plain, NodeKind::Boolean) => false.into(),
        (Codec::Plain, NodeKind::Object) => Value::Object(Map::new()),
        (Codec::Quantity, _) => "0".into(),
        _ => Value::Null,
    }
}

fn object<'de, 's, A: MapAccess<'de>>(
    walk: &mut Walk<'s>,
    node: &'s Node,
    mut source: A,
) -> Result<Value, A::Error> {
    let mut out = Map::new();
    let is_struct = node.additional.is_none();
    while let Some(key) = source.next_key::<String>()? {
        let id = if is_struct { node.properties.get(&key).copied() } else { node.additional };
        let Some(id) = id else {
            if node.preserve_unknown {
                out.insert(key, source.next_value()?);
            } else {
                walk.report("unknown", &key);
                source.next_value::<IgnoredAny>()?;
            }
            continue;
        };
        if out.contains_key(&key) {
            walk.report("duplicate", &key);
        }
        let path = walk.enter(&key, false);
        let (fields, holder) = (walk.fields.len(), walk.holder);
        if is_struct {
            if let Some(via) =
                walk.node(id).and_then(|n| n.go.as_ref()).map(|go| &go.via).filter(|v| !v.is_empty())
            {
                walk.push_field(via);
            }
            walk.push_field(&key);
            walk.holder = node.go.as_ref().map_or("", |go| short(&go.name));
        }
        // After a fatal error the walk's place is not needed any more.
        let value = source.next_value_seed(walk.seed(id))?;
        walk.path.truncate(path);
        walk.fields.truncate(fields);
        walk.holder = holder;
        // `null` holds the key's place until the end, so that repetition is seen.
        let value = value.unwrap_or_else(|| if is_struct { Value::Null } else { zero_of(walk.set, id) });
        out.insert(key, value);
    }
    if is_struct {
        out.retain(|_, value| !value.is_null());
    }
    Ok(Value::Object(out))
}

/// `DeploymentSpec` of `v1.DeploymentSpec`.
fn short(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, short)| short)
}
