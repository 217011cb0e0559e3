//! Objects as people and programs read them: the forms of `-o`.

pub(crate) mod columns;
pub(crate) mod json;
pub(crate) mod table;
pub(crate) mod yaml;

use kube_informer::object::Object;
use kube_informer::resource::Resource;
use serde_json::{Value, json};

use crate::jsonpath::Template;
use columns::Columns;

/// A form of output.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    Table {
        wide: bool,
    },
    /// A table of what was chosen.
    Chosen(Columns),
    Json,
    Yaml,
    Name,
    /// What changed, by path.
    Diff,
    /// What a template makes of it.
    Template(Template),
}

/// What can be asked for of anything.
const FORMS: &str = "table, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=HEADER:PATH";

impl Format {
    /// For what is read once: everything but what needs a before and an after.
    pub(crate) fn of_state(text: &str) -> Result<Self, String> {
        match Self::parse(text)? {
            Some(Self::Diff) => Err("diff is for `watch`: it shows what changes".to_owned()),
            Some(format) => Ok(format),
            None => Err(format!("must be one of {FORMS}")),
        }
    }

    /// For what changes.
    pub(crate) fn of_changes(text: &str) -> Result<Self, String> {
        Self::parse(text)?.ok_or_else(|| format!("must be one of diff, {FORMS}"))
    }

    /// Nothing where there is no such form.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        Ok(Some(match text {
            "table" | "" => Self::Table { wide: false },
            "wide" => Self::Table { wide: true },
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "name" => Self::Name,
            "diff" => Self::Diff,
            _ if text.starts_with("jsonpath=") => {
                let template = text.strip_prefix("jsonpath=").unwrap_or_default();
                if template.is_empty() {
                    return Err(
                        "lacks a template: write jsonpath=TEMPLATE, such as jsonpath={.metadata.name}"
                            .to_owned(),
                    );
                }
                Self::Template(Template::parse(template).map_err(|error| error.explain(template))?)
            }
            _ if text.starts_with("custom-columns=") => {
                Self::Chosen(Columns::parse(text.strip_prefix("custom-columns=").unwrap_or_default())?)
            }
            _ if text.starts_with("go-template") || text.starts_with("template") => {
                return Err(
                    "Go templates are not supported: use jsonpath=TEMPLATE or custom-columns=HEADER:PATH, such as \
                     jsonpath={.metadata.name}"
                        .to_owned(),
                );
            }
            _ => return Ok(None),
        }))
    }

    /// Whether names say everything.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self, Self::Name)
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Self::Table { .. } | Self::Chosen(_))
    }
}

/// An object as JSON; with its kind, which objects in lists do not have.
///
/// # Errors
///
/// Only where memory was damaged.
pub(crate) fn document(object: &Object) -> anyhow::Result<Value> {
    let mut document: Value = object.read(|stored| stored.view())??;
    if let Value::Object(map) = &mut document {
        map.insert("apiVersion".to_owned(), json!(object.api_version()));
        map.insert("kind".to_owned(), json!(object.kind()));
    }
    Ok(document)
}

/// `pod`, `deployment.apps`: what stands before names.
pub(crate) fn kind(resource: &Resource) -> String {
    let kind = resource.kind.to_lowercase();
    if resource.group.is_empty() { kind } else { format!("{kind}.{}", resource.group) }
}

/// Several objects in one document.
pub(crate) fn list(objects: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "items": objects, "kind": "List", "metadata": { "resourceVersion": "" } })
}

/// The same, piece by piece: nobody has to hold them all.
#[derive(Debug)]
pub(crate) struct List {
    yaml: bool,
    count: usize,
}

impl List {
    pub(crate) fn new(yaml: bool) -> Self {
        Self { yaml, count: 0 }
    }

    /// What is written for the next object.
    pub(crate) fn item(&mut self, object: Value) -> String {
        let is_first = self.count == 0;
        self.count += 1;
        if self.yaml {
            let items = yaml::document(&json!({ "items": [object] }));
            let begin = if is_first { "apiVersion: v1\nitems:\n" } else { "" };
            return format!("{begin}{}", items.strip_prefix("items:\n").unwrap_or(&items));
        }
        let before = if is_first {
            "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        "
        } else {
            ",\n        "
        };
        format!("{before}{}", json::nested(&object, 2))
    }

    /// What is written at the end.
    pub(crate) fn end(self) -> String {
        let metadata = json!({ "resourceVersion": "" });
        if self.count == 0 {
            let list = list(Vec::new());
            return if self.yaml { yaml::document(&list) } else { format!("{}\n", json::pretty(&list)) };
        }
        if self.yaml {
            return yaml::document(&json!({ "kind": "List", "metadata": metadata }));
        }
        format!("\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {}\n}}\n", json::nested(&metadata, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(yaml: bool, objects: &[Value]) -> String {
        let mut list = List::new(yaml);
        let mut text: String = objects.iter().map(|object| list.item(object.clone())).collect();
        text.push_str(&list.end());
        text
    }

    #[test]
    fn a_list_in_pieces_is_the_list_in_one() {
        for count in [0, 1, 3] {
            let objects: Vec<Value> =
                (0..count).map(|number| json!({ "kind": "A", "spec": { "n": [number] } })).collect();
            let list = list(objects.clone());
            assert_eq!(written(false, &objects), format!("{}\n", json::pretty(&list)), "{count}");
            assert_eq!(written(true, &objects), yaml::document(&list), "{count}");
        }
    }

    #[test]
    fn a_form_that_there_is_not_is_told_with_those_that_there_are() {
        assert!(Format::of_changes("jsn").unwrap_err().contains("json"));
        assert!(matches!(Format::of_state("jsonpath={.a}"), Ok(Format::Template(_))));
        assert!(Format::of_state("jsonpath={.a").is_err());
        assert!(Format::of_state("diff").unwrap_err().contains("watch"));
        assert!(matches!(Format::of_state("wide"), Ok(Format::Table { wide: true })));
    }
}
