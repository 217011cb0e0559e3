//! Objects as rows, as `kubectl get` shows them: the printers of this server, for those who have objects and no server to ask.
//!
//! Columns and cells are those of kube-apiserver for its own kinds, wide columns included. Custom resources have the
//! columns of their definition.
//!
//! ```
//! use kube_informer_apiserver::print::Printer;
//! use serde_json::json;
//!
//! let printer = Printer::built_in("", "v1", "configmaps").expect("a kind that every server has");
//! let names: Vec<&str> = printer.columns().iter().map(|column| column.name.as_str()).collect();
//! assert_eq!(names, ["Name", "Data", "Age"]);
//! let object = json!({ "metadata": { "name": "settings" }, "data": { "a": "b" } });
//! assert_eq!(printer.cells(&object, jiff::Timestamp::now()), [json!("settings"), json!(1), json!("<unknown>")]);
//! ```

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::crd::{self, PrinterColumn};
use crate::kinds::{self, Resource};
use crate::table::{self, CustomColumns};

/// How the objects of one resource are shown.
#[derive(Clone)]
pub struct Printer {
    columns: Arc<[Column]>,
    cells: Cells,
}

/// A column's header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// As the server writes it: `Name`, `Nominated Node`.
    pub name: String,
    /// Whether it is shown on request only.
    pub wide: bool,
    /// Whether it has the names of the objects.
    pub is_name: bool,
}

#[derive(Clone)]
enum Cells {
    BuiltIn(Arc<Resource>),
    Custom(Arc<[PrinterColumn]>),
}

impl Printer {
    /// For a resource that every server has; `None` where this one does not know it.
    #[must_use]
    pub fn built_in(group: &str, version: &str, plural: &str) -> Option<Self> {
        let mut all = kinds::builtin().iter();
        let resource = all.find(|resource| resource.is(group, plural) && resource.version == version)?;
        let columns = table::columns(resource, None);
        Some(Self { columns: shown(columns), cells: Cells::BuiltIn(Arc::clone(resource)) })
    }

    /// For a custom resource, by its CustomResourceDefinition; `None` where that has no such version.
    #[must_use]
    pub fn custom(definition: &Value, version: &str) -> Option<Self> {
        let versions = definition.pointer("/spec/versions")?.as_array()?;
        let version = versions.iter().find(|each| each.get("name").is_some_and(|name| name == version))?;
        Some(Self::of_columns(crd::printer_columns(version)))
    }

    /// For any resource: the name and the age.
    #[must_use]
    pub fn plain() -> Self {
        Self::of_columns(crd::printer_columns(&Value::Null))
    }

    fn of_columns(columns: Vec<PrinterColumn>) -> Self {
        let custom = CustomColumns { columns: table::headers(&columns), find: &|_| Vec::new() };
        // Columns that cannot be read are none at all: the age is shown then.
        let custom = (!columns.is_empty()).then_some(&custom);
        Self { columns: shown(table::custom_columns(custom)), cells: Cells::Custom(columns.into()) }
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The cells of an object, one for each column: texts, numbers, and null where there is nothing to show. Ages are
    /// measured at `now`.
    #[must_use]
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.cells {
            Cells::BuiltIn(resource) => table::row(resource, object, None, now),
            Cells::Custom(columns) => {
                let find = |object: &Value| crd::found(columns, object);
                let custom = CustomColumns { columns: table::headers(columns), find: &find };
                table::custom_row(object, (!columns.is_empty()).then_some(&custom), now)
            }
        }
    }
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printer").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// How long something took or takes, in two or three figures, as in the column `AGE`: `45s`, `3m20s`, `2d3h`.
#[must_use]
pub fn human_duration(duration: SignedDuration) -> String {
    table::human_duration(duration)
}

fn shown(columns: Vec<table::Column>) -> Arc<[Column]> {
    let shown = |column: table::Column| Column {
        is_name: column.format == "name" && column.kind == "string",
        wide: column.priority > 0,
        name: column.name,
    };
    columns.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(printer: &Printer) -> Vec<(&str, bool)> {
        printer.columns().iter().map(|column| (column.name.as_str(), column.wide)).collect()
    }

    #[test]
    fn a_custom_resource_has_the_columns_of_its_definition() {
        let definition = json!({ "spec": { "versions": [
            { "name": "v1beta1" },
            { "name": "v1", "additionalPrinterColumns": [
                { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                { "name": "Zone", "type": "string", "jsonPath": ".spec.zone", "priority": 1 },
                { "name": "Up", "type": "boolean", "jsonPath": ".status.up" },
            ] },
        ] } });
        let printer = Printer::custom(&definition, "v1").unwrap();
        assert_eq!(names(&printer), [("Name", false), ("Size", false), ("Zone", true), ("Up", false)]);
        let object = json!({ "metadata": { "name": "a" }, "spec": { "size": 3, "zone": "b" } });
        let cells = printer.cells(&object, Timestamp::UNIX_EPOCH);
        assert_eq!(cells, [json!("a"), json!(3), json!("b"), Value::Null]);
        assert!(Printer::custom(&definition, "v2").is_none());
        assert_eq!(names(&Printer::custom(&definition, "v1beta1").unwrap()), names(&Printer::plain()));
    }

    #[test]
    fn a_kind_that_nobody_knows_has_a_name_and_an_age() {
        assert!(Printer::built_in("example.com", "v1", "widgets").is_none());
        let object = json!({ "metadata": { "name": "a", "creationTimestamp": "1970-01-01T00:00:00Z" } });
        let now = Timestamp::from_second(90).unwrap();
        assert_eq!(names(&Printer::plain()), [("Name", false), ("Age", false)]);
        assert_eq!(Printer::plain().cells(&object, now), [json!("a"), json!("90s")]);
    }
}
