//! Objects and lists in the form that was asked for.
//!
//! Lists are streamed: the bytes of each object are lent as they are stored, never joined.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::crd;
use crate::kinds::Resource;
use crate::negotiate::{Answer, MetaVersion};
use crate::object::{Form, Stored};
use crate::table::{self, IncludeObject};

/// What a table's rows carry besides their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableForm {
    pub(crate) include: IncludeObject,
    /// A watch sends the columns with its first event only.
    pub(crate) headers: bool,
    pub(crate) version: MetaVersion,
}

/// One object.
pub(crate) fn object(resource: &Resource, stored: &Stored, answer: Answer, form: TableForm) -> Bytes {
    match answer {
        Answer::Metadata { version, .. } => stored.bytes(resource, Form::Metadata(version)),
        Answer::Table(_) => {
            let object = stored.value_as(resource);
            let version = object.pointer("/metadata/resourceVersion").cloned();
            let meta = json!({ "resourceVersion": version });
            table(resource, &[object], Some(&meta), form).to_string().into()
        }
        _ => stored.bytes(resource, Form::Object),
    }
}

/// A list with its metadata.
pub(crate) fn list(
    resource: &Arc<Resource>,
    objects: Vec<Arc<Stored>>,
    meta: &Value,
    answer: Answer,
    form: TableForm,
) -> Body {
    let (api_version, kind, one) = match answer {
        Answer::Table(_) => {
            let values: Vec<Value> = objects.iter().map(|o| o.value_as(resource)).collect();
            return Body::whole(table(resource, &values, Some(meta), form).to_string());
        }
        Answer::Metadata { version, .. } => (
            version.api_version().to_owned(),
            "PartialObjectMetadataList".to_owned(),
            Form::Metadata(version),
        ),
        _ => (resource.api_version(), resource.list_kind.clone(), Form::Object),
    };
    let (api_version, kind) = (Value::from(api_version), Value::from(kind));
    // Custom resources are written with sorted keys by the real server: their items come before the
    // version of the list. Clients must bear both.
    let (head, tail) = if resource.custom.is_some() && one == Form::Object {
        (
            format!(r#"{{"apiVersion":{api_version},"items":["#),
            format!(r#"],"kind":{kind},"metadata":{meta}}}"#),
        )
    } else {
        (
            format!(r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{meta},"items":["#),
            "]}".to_owned(),
        )
    };
    if objects.is_empty() && one != Form::Object {
        // Go's nil slice.
        let null = json!({ "kind": kind, "apiVersion": api_version, "metadata": meta, "items": null });
        return Body::whole(format!("{null}\n"));
    }
    let resource = Arc::clone(resource);
    let items = objects.into_iter().enumerate().flat_map(move |(at, object)| {
        let comma = if at > 0 { Bytes::from_static(b",") } else { Bytes::new() };
        // Items of built-in lists do not say what they are; custom ones do.
        let [head, rest] = match one {
            Form::Object if resource.custom.is_none() => object.item(&resource),
            form => [Bytes::new(), object.bytes(&resource, form)],
        };
        [comma, head, rest].into_iter().filter(|piece| !piece.is_empty())
    });
    let pieces = std::iter::once(Bytes::from(head)).chain(items).chain([Bytes::from(tail + "\n")]);
    Body::stream(futures_util::stream::iter(coalesce(pieces)))
}

/// Joins small pieces, so that a long list of small objects is not sent comma by comma.
fn coalesce(pieces: impl Iterator<Item = Bytes> + Send) -> impl Iterator<Item = Bytes> + Send {
    const ENOUGH: usize = 32 * 1024;
    let mut pieces = pieces.fuse();
    std::iter::from_fn(move || {
        let first = pieces.next()?;
        if first.len() >= ENOUGH {
            return Some(first);
        }
        let mut joined = Vec::with_capacity(ENOUGH);
        joined.extend_from_slice(&first);
        while joined.len() < ENOUGH {
            match pieces.next() {
                Some(piece) => joined.extend_from_slice(&piece),
                None => break,
            }
        }
        Some(joined.into())
    })
}

/// A `Table` of a `Scale`, which is of no resource of its own.
pub(crate) fn scale(of: &Resource, scale: Value, form: TableForm) -> Value {
    let resource =
        Resource { group: "autoscaling".into(), plural: "scale".into(), custom: None, ..of.clone() };
    let version = scale.pointer("/metadata/resourceVersion").cloned();
    table(&resource, &[scale], Some(&json!({ "resourceVersion": version })), form)
}

/// A `Table` of objects.
pub(crate) fn table(resource: &Resource, objects: &[Value], meta: Option<&Value>, form: TableForm) -> Value {
    let empty = Value::Object(Map::new());
    let meta = meta.unwrap_or(&empty);
    let options = table::Options {
        include: form.include,
        headers: form.headers,
        version: form.version,
        now: jiff::Timestamp::now(),
    };
    let printed =
        resource.custom.as_ref().map(|custom| &custom.columns).filter(|columns| !columns.is_empty());
    let Some(printed) = printed else { return table::render(resource, objects, meta, None, options) };
    let find = |object: &Value| crd::found(printed, object);
    let custom = table::CustomColumns { columns: table::headers(printed), find: &find };
    table::render(resource, objects, meta, Some(&custom), options)
}
