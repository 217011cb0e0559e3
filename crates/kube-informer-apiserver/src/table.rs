//! Objects as the rows of a `Table` (`meta.k8s.io`), the form that `kubectl get` asks for.
//!
//! Columns and cells are those of the real server, wide columns included: a client hides what it does not
//! want by priority. Kinds without columns of their own show their name and when they were created.
//! Custom resources bring their columns with them; the caller evaluates the paths.
//!
//! Column descriptions are left empty. Quantities are shown as they are stored.

mod api;
mod cluster;
mod duration;
mod network;
mod pod;
mod storage;
mod view;
mod workload;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::view::View;
use crate::crd::PrinterColumn;
use crate::kinds::Resource;
use crate::negotiate::MetaVersion;
use crate::object::partial_metadata;

pub(crate) use duration::human_duration;

/// A column's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Above zero: shown on request only.
    pub(crate) priority: i64,
}

/// The printer columns of a custom resource.
pub(crate) struct CustomColumns<'a> {
    /// Without the name, which always comes first.
    pub(crate) columns: Vec<Column>,
    /// What each column's path finds in an object, in the order of the columns.
    pub(crate) find: &'a dyn Fn(&Value) -> Vec<Option<Value>>,
}

/// How much of the object comes with its row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// The query parameter. An error is the text of a 400.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            )),
        }
    }
}

/// What a table is to look like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) include: IncludeObject,
    /// A watch sends the columns with its first event only.
    pub(crate) headers: bool,
    pub(crate) version: MetaVersion,
    pub(crate) now: Timestamp,
}

/// The columns of a resource.
pub(crate) fn columns(resource: &Resource, custom: Option<&CustomColumns<'_>>) -> Vec<Column> {
    if resource.custom.is_some() || custom.is_some() {
        return custom_columns(custom);
    }
    layout(resource).columns.iter().map(Col::column).collect()
}

/// The columns of a custom resource: the name, and its own ones, or the age.
pub(crate) fn custom_columns(custom: Option<&CustomColumns<'_>>) -> Vec<Column> {
    let own = custom.map_or_else(|| vec![Col { kind: "date", ..AGE }.column()], |c| c.columns.clone());
    std::iter::once(NAME.column()).chain(own).collect()
}

/// The headers of a custom resource's own columns.
pub(crate) fn headers(columns: &[PrinterColumn]) -> Vec<Column> {
    let header = |column: &PrinterColumn| Column {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
        description: column.description.clone(),
        priority: column.priority,
    };
    columns.iter().map(header).collect()
}

/// The cells of one object.
pub(crate) fn row(
    resource: &Resource,
    object: &Value,
    custom: Option<&CustomColumns<'_>>,
    now: Timestamp,
) -> Vec<Value> {
    if resource.custom.is_none() && custom.is_none() {
        return (layout(resource).cells)(&View::new(object, now));
    }
    custom_row(object, custom, now)
}

/// The cells of a custom object.
pub(crate) fn custom_row(object: &Value, custom: Option<&CustomColumns<'_>>, now: Timestamp) -> Vec<Value> {
    let view = View::new(object, now);
    let mut cells = vec![json!(view.name())];
    match custom {
        None => cells.push(json!(view.age())),
        Some(custom) => {
            let mut found = (custom.find)(object).into_iter();
            for column in &custom.columns {
                let value = found.next().flatten();
                cells.push(value.map_or(Value::Null, |value| custom_cell(&column.kind, &value, now)));
            }
        }
    }
    cells
}

/// A whole table: of a list, with its metadata, or of one object, with that object's version.
pub(crate) fn render<'v>(
    resource: &Resource,
    objects: impl IntoIterator<Item = &'v Value>,
    metadata: &Value,
    custom: Option<&CustomColumns<'_>>,
    options: Options,
) -> Value {
    let mut objects: Vec<&Value> = objects.into_iter().collect();
    if resource.is("flowcontrol.apiserver.k8s.io", "flowschemas") {
        // The only kind whose rows are not in the order of the list: first match first.
        objects.sort_by_key(|o| o.pointer("/spec/matchingPrecedence").and_then(Value::as_i64));
    }
    let mut kept = serde_json::Map::new();
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = metadata.get(name).filter(|v| *v != "") {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    let headers = options.headers.then(|| {
        let all = columns(resource, custom).into_iter().map(|c| {
            json!({
                "name": c.name,
                "type": c.kind,
                "format": c.format,
                "description": c.description,
                "priority": c.priority,
            })
        });
        all.collect::<Vec<_>>()
    });
    // A table of one object has that object's metadata, and marks no default.
    let is_list = metadata.get("uid").is_none();
    let default_class = storage::default_class(resource, &objects).filter(|_| is_list);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = row(resource, object, custom, options.now);
            if default_class.is_some_and(|class| std::ptr::eq(class, *object))
                && let Some(Value::String(name)) = cells.first_mut()
            {
                name.push_str(" (default)");
            }
            let mut row = json!({ "cells": cells, "object": shown(object, options) });
            if let Some(condition) = pod::row_condition(resource, object) {
                row["conditions"] = json!([condition]);
            }
            row
        })
        .collect();
    // Where the real server shows when an object was created, it has no rows, not zero rows.
    let built_in = resource.custom.is_none() && custom.is_none();
    let plain = built_in && layout(resource).columns.iter().any(|c| c.name == "Created At");
    let rows = if rows.is_empty() && plain { Value::Null } else { Value::Array(rows) };
    json!({
        "kind": "Table",
        "apiVersion": options.version.api_version(),
        "metadata": kept,
        "columnDefinitions": headers,
        "rows": rows,
    })
}

fn shown(object: &Value, options: Options) -> Value {
    match options.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => partial_metadata(object, options.version),
    }
}

/// A found value in the type of its column; what does not fit is left out.
fn custom_cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::Null) => json!("null"),
        ("string", Value::Object(_) | Value::Array(_)) => json!(value.to_string()),
        ("string", value) => json!(crate::patch::go_value(value)),
        ("integer", Value::Number(n)) => {
            // A fraction is cut, and what does not fit is the nearest that does.
            let whole = n.as_i64().or_else(|| n.as_f64().map(|f| f as i64));
            whole.map_or(Value::Null, Into::into)
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            _ if text.is_empty() => json!("<unknown>"),
            Ok(time) => json!(human_duration(now.duration_since(time))),
            Err(_) => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// A built-in kind's columns, and how its cells are made.
struct Layout {
    columns: &'static [Col],
    cells: fn(&View<'_>) -> Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Col {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: i64,
}

const NAME: Col = Col { name: "Name", kind: "string", format: "name", priority: 0 };
const AGE: Col = text("Age");
const CREATED_AT: &[Col] = &[NAME, Col { name: "Created At", kind: "date", format: "", priority: 0 }];

const fn text(name: &'static str) -> Col {
    Col { name, kind: "string", format: "", priority: 0 }
}

const fn integer(name: &'static str) -> Col {
    Col { name, kind: "integer", format: "", priority: 0 }
}

const fn flag(name: &'static str) -> Col {
    Col { name, kind: "boolean", format: "", priority: 0 }
}

const fn wide(name: &'static str) -> Col {
    Col { name, kind: "string", format: "", priority: 1 }
}

impl Col {
    fn column(&self) -> Column {
        Column {
            name: self.name.to_owned(),
            kind: self.kind.to_owned(),
            format: self.format.to_owned(),
            description: String::new(),
            priority: self.priority,
        }
    }
}

fn layout(resource: &Resource) -> Layout {
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    pod::layout(group, plural)
        .or_else(|| workload::layout(group, plural))
        .or_else(|| network::layout(group, plural))
        .or_else(|| storage::layout(group, plural))
        .or_else(|| cluster::layout(group, plural))
        .or_else(|| api::layout(group, plural))
        .unwrap_or(Layout {
            columns: CREATED_AT,
            cells: |o| vec![json!(o.name()), json!(o.text("/metadata/creationTimestamp"))],
        })
}
