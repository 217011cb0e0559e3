//! JSON Patch (RFC 6902) with the habits of the library behind the real server.
//!
//! Where that library is more lenient than the RFC, so is this: replacing a missing key adds it, copying
//! a missing key copies null, testing a missing key for null succeeds, and negative indices count from
//! the end. Clients have come to depend on the first.

use serde_json::Value;

use super::PatchError;
use crate::object::{DEEPEST, depth};
use crate::schema;

/// As on the real server.
const MAX_OPERATIONS: usize = 10_000;
/// How much all `copy` operations of one patch may add, in bytes of JSON.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies the operations in order; the first that fails ends it.
pub(crate) fn json_patch(doc: &mut Value, ops: &Value) -> Result<(), PatchError> {
    let ops = parse(ops)?;
    if ops.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            ops.len()
        )));
    }
    let mut copied = 0;
    for op in &ops {
        op.apply(doc, &mut copied).map_err(PatchError::DoesNotApply)?;
    }
    Ok(())
}

/// Fields that no operation knows, as strict field validation reports them:
/// `json patch unknown field "[0].foo"`.
pub(crate) fn unknown_op_fields(ops: &Value) -> Vec<String> {
    let ops = ops.as_array().map(Vec::as_slice).unwrap_or_default();
    let objects = ops.iter().enumerate().filter_map(|(i, op)| op.as_object().map(|op| (i, op)));
    objects
        .flat_map(|(i, op)| {
            let unknown = op.keys().filter(|k| !["op", "path", "from", "value"].contains(&k.as_str()));
            unknown.map(move |k| format!("json patch unknown field \"[{i}].{k}\""))
        })
        .collect()
}

struct Op<'a> {
    op: Option<&'a str>,
    path: Option<&'a str>,
    from: Option<&'a str>,
    value: Option<&'a Value>,
}

fn parse(ops: &Value) -> Result<Vec<Op<'_>>, PatchError> {
    let malformed = |what: &Value, into: &str| {
        let what = schema::type_name(what);
        PatchError::Malformed(format!("error decoding patch: json: cannot unmarshal {what} into Go {into}"))
    };
    let items = match ops {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        other => return Err(malformed(other, "value of type []handlers.jsonPatchOp")),
    };
    let mut parsed = Vec::with_capacity(items.len());
    for item in items {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => {
                parsed.push(Op { op: None, path: None, from: None, value: None });
                continue;
            }
            other => return Err(malformed(other, "value of type handlers.jsonPatchOp")),
        };
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => Err(malformed(other, &format!("struct field jsonPatchOp.{name} of type string"))),
        };
        parsed.push(Op {
            op: text("op")?,
            path: text("path")?,
            from: text("from")?,
            value: fields.get("value").filter(|v| !v.is_null()),
        });
    }
    Ok(parsed)
}

impl Op<'_> {
    fn apply(&self, doc: &mut Value, copied: &mut usize) -> Result<(), String> {
        match self.op.unwrap_or("unknown") {
            "add" => self.add(doc),
            "remove" => self.remove(doc),
            "replace" => self.replace(doc),
            "move" => self.shift(doc),
            "copy" => self.copy(doc, copied),
            "test" => self.test(doc),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn path(&self, name: &str) -> Result<&str, String> {
        self.path.ok_or_else(|| {
            format!("{name} operation failed to decode path: operation missing path field: missing value")
        })
    }

    fn from(&self, name: &str) -> Result<&str, String> {
        self.from.ok_or_else(|| {
            format!("{name} operation failed to decode from: operation, missing from field: missing value")
        })
    }

    fn add(&self, doc: &mut Value) -> Result<(), String> {
        let path = self.path.ok_or("add operation failed to decode path: missing value")?;
        let value = self.value.cloned().unwrap_or_default();
        check_depth(path, &value)?;
        let (parent, key) = find(doc, path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        insert(parent, &key, value).map_err(|e| format!("error in add for path: '{path}': {e}"))
    }

    fn remove(&self, doc: &mut Value) -> Result<(), String> {
        let path = self.path.ok_or("remove operation failed to decode path: missing value")?;
        let (parent, key) = find(doc, path).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        take(parent, &key).map(drop).map_err(|e| format!("error in remove for path: '{path}': {e}"))
    }

    fn replace(&self, doc: &mut Value) -> Result<(), String> {
        let path = self.path("replace")?;
        let value = self.value.cloned().unwrap_or_default();
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array".to_owned());
            }
            *doc = value;
            return Ok(());
        }
        check_depth(path, &value)?;
        let (parent, key) = find(doc, path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        })?;
        match parent {
            Value::Array(items) => {
                let slot = index(&key, items.len()).ok().and_then(|at| items.get_mut(at));
                let slot = slot.ok_or_else(|| {
                    format!("replace operation does not apply: doc is missing key: {path}: missing value")
                })?;
                *slot = value;
                Ok(())
            }
            parent => insert(parent, &key, value),
        }
    }

    fn shift(&self, doc: &mut Value) -> Result<(), String> {
        let from = self.from("move")?;
        let (parent, key) = find(doc, from).ok_or_else(|| {
            format!("move operation does not apply: doc is missing from path: {from}: missing value")
        })?;
        let value = take(parent, &key).map_err(|e| format!("error in move for path: '{key}': {e}"))?;
        let path = self.path("move")?;
        check_depth(path, &value)?;
        let (parent, key) = find(doc, path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        })?;
        insert(parent, &key, value).map_err(|e| format!("error in move for path: '{path}': {e}"))
    }

    fn copy(&self, doc: &mut Value, copied: &mut usize) -> Result<(), String> {
        let from = self.from("copy")?;
        let (parent, key) = find(doc, from).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing from path: {from}: missing value")
        })?;
        let source = peek(parent, &key).map_err(|e| format!("error in copy for from: '{from}': {e}"))?;
        // Counted before it is cloned: this limit is what keeps a small patch from filling the memory.
        *copied = copied.saturating_add(source.map_or(0, json_len));
        if *copied > MAX_COPIED {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                 exceeding the limit {MAX_COPIED}"
            ));
        }
        let value = source.cloned().unwrap_or_default();
        let path = self.path.ok_or("copy operation failed to decode path: missing value")?;
        check_depth(path, &value)?;
        let (parent, key) = find(doc, path).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing destination path: {path}: missing value")
        })?;
        insert(parent, &key, value).map_err(|e| format!("error while adding value during copy: {e}"))
    }

    fn test(&self, doc: &mut Value) -> Result<(), String> {
        let path = self.path("test")?;
        let failed = || format!("testing value {path} failed: test failed");
        if path.is_empty() {
            return if Some(&*doc) == self.value { Ok(()) } else { Err(failed()) };
        }
        let (parent, key) = find(doc, path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: missing value")
        })?;
        let found = peek(parent, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
        if found.filter(|v| !v.is_null()) == self.value { Ok(()) } else { Err(failed()) }
    }
}

/// The container that a pointer leads into, and the last step. What stands before the first slash is
/// ignored, as the real server does.
fn find<'d>(doc: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    let mut steps = path.split('/').skip(1).map(unescape);
    let mut key = steps.next()?;
    let mut here = doc;
    for next in steps {
        here = match here {
            Value::Object(map) => map.get_mut(&key)?,
            Value::Array(items) => {
                let at = index(&key, items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
        key = next;
    }
    (here.is_object() || here.is_array()).then_some((here, key))
}

fn unescape(step: &str) -> String {
    // One pass: `~01` is `~1`, not a slash.
    let mut out = String::with_capacity(step.len());
    let mut rest = step;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(tail) = rest.strip_prefix("~1") {
            out.push('/');
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("~0") {
            out.push('~');
            rest = tail;
        } else {
            out.push('~');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// Where a step points in a list of this length; the end of the list is a place for `len + 1`.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let at: i64 = atoi(key)?;
    let size = i64::try_from(len).unwrap_or(i64::MAX);
    let resolved = if at < 0 { at + size } else { at };
    if resolved < 0 || resolved >= size {
        return Err(format!("Unable to access invalid index: {at}: invalid index referenced"));
    }
    usize::try_from(resolved).map_err(|e| e.to_string())
}

fn atoi(key: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    key.parse().map_err(|e: std::num::ParseIntError| {
        let why = match e.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {key:?}: {why}")
    })
}

fn insert(parent: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            atoi(key).map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            let at = index(key, items.len() + 1)?;
            items.insert(at, value);
        }
        _ => return Err("missing value".to_owned()),
    }
    Ok(())
}

fn take(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(map) => {
            map.remove(key).ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
        }
        Value::Array(items) => index(key, items.len()).map(|at| items.remove(at)),
        _ => Err("missing value".to_owned()),
    }
}

/// What is there. A missing key of an object is no error, a wrong index of a list is.
fn peek<'v>(parent: &'v Value, key: &str) -> Result<Option<&'v Value>, String> {
    match parent {
        Value::Object(map) => Ok(map.get(key)),
        Value::Array(items) => index(key, items.len()).map(|at| items.get(at)),
        _ => Err("missing value".to_owned()),
    }
}

/// Nested copies and moves could build an object deeper than any parser reads back.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    let above = path.bytes().filter(|b| *b == b'/').count();
    if above + depth(value) > DEEPEST { Err("exceeded max depth".to_owned()) } else { Ok(()) }
}

/// Length of the compact JSON text.
fn json_len(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Writing JSON into a counter cannot fail; a wrong count only moves a limit.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
