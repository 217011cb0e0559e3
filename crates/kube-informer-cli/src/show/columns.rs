//! Columns that somebody chose: `-o custom-columns=NAME:.metadata.name,IP:.status.podIP`.
//!
//! As kubectl has them: paths with or without braces; `<none>` where there is nothing; several values with commas between.

use serde_json::Value;

use super::json;
use crate::jsonpath::{Item, Template, relaxed};

/// Headers, and what is under them.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    columns: Vec<(String, Template)>,
}

/// More columns than these nobody reads.
const MOST: usize = 100;

impl Columns {
    /// Reads `HEADER:PATH,HEADER:PATH`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut columns = Vec::new();
        for column in text.split(',') {
            let Some((header, path)) = column.split_once(':').filter(|(header, _)| !header.is_empty()) else {
                return Err(format!(
                    "{column:?} is no column: write HEADER:PATH, such as NAME:.metadata.name"
                ));
            };
            let path = relaxed(path).map_err(|error| error.to_string())?;
            let template = Template::parse(&path).map_err(|error| error.explain(&path))?;
            columns.push((header.to_owned(), template));
        }
        if columns.len() > MOST { Err(format!("has more than {MOST} columns")) } else { Ok(Self { columns }) }
    }

    pub(crate) fn header(&self) -> Vec<String> {
        self.columns.iter().map(|(header, _)| header.clone()).collect()
    }

    /// The cells of an object.
    pub(crate) fn row(&self, object: &Value) -> anyhow::Result<Vec<String>> {
        let cell = |(_, template): &(String, Template)| {
            let results =
                template.results(object).map_err(|error| anyhow::anyhow!("-o custom-columns: {error}"))?;
            let found: Vec<String> = results.into_iter().flatten().map(cell).collect();
            Ok(if found.is_empty() { "<none>".to_owned() } else { found.join(",") })
        };
        self.columns.iter().map(cell).collect()
    }
}

fn cell(item: Item<'_>) -> String {
    match item {
        Item::Json(value) => go(value),
        other => other.text(),
    }
}

/// A value as Go's `%v` writes it.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => json::number(number),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members = json::sorted(map).into_iter().map(|(key, value)| format!("{key}:{}", go(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_have_a_header_and_a_path() {
        let columns = Columns::parse("NAME:.metadata.name,ALL:{.list[*].a},NO:.none,MAP:.m").unwrap();
        assert_eq!(columns.header(), ["NAME", "ALL", "NO", "MAP"]);
        let object = json!({ "metadata": { "name": "x" }, "list": [{ "a": 1 }, { "a": true }], "m": { "b": [1], "a": null } });
        assert_eq!(columns.row(&object).unwrap(), ["x", "1,true", "<none>", "map[a:<nil> b:[1]]"]);
        for wrong in ["", "NAME", ":.a", "NAME:{.a"] {
            assert!(Columns::parse(wrong).is_err(), "{wrong}");
        }
    }
}
