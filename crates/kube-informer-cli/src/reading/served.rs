//! Tables that the server makes, for kinds whose columns only the server knows: those whose CustomResourceDefinition may not
//! be read, and those of other servers behind it.
//!
//! It is read page by page, at one version: as consistent as what an informer knows, and a moment younger.

use kube_informer::informer::Scope;
use serde_json::Value;

use super::Reading;
use crate::cluster::Cluster;
use crate::existence;
use crate::show::table::Head;

/// The form that is asked for; a server that has no tables sends something else.
const FORM: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// Rows that are asked for at a time, as kubectl does.
const PAGE: usize = 500;

/// A table as it came.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Line>,
}

/// A row: the namespace of its object, and its cells.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) namespace: String,
    pub(crate) cells: Vec<Value>,
}

impl Served {
    /// Asks for all that a reading is about; says why where there is no table.
    pub(crate) async fn read(cluster: &Cluster, reading: &Reading) -> Result<Self, String> {
        let mut served = Self::default();
        for informer in &reading.informers {
            match informer.scope() {
                Scope::All => served.list(cluster, reading, None).await?,
                Scope::Namespaces(namespaces) => {
                    for namespace in namespaces {
                        served.list(cluster, reading, Some(namespace)).await?;
                    }
                }
                Scope::Object { namespace, name } => {
                    let namespace = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
                    // A list, as the informer asks for it: what is not there has no row, and is missed elsewhere.
                    let (path, one) = (reading.resource().path(namespace), existence::named(name));
                    let uri = format!("{path}?fieldSelector={}", escaped(&one));
                    served.add(&ask(cluster, &uri).await?)?;
                }
                _ => return Err("it is not known how to ask for it".to_owned()),
            }
        }
        Ok(served)
    }

    async fn list(
        &mut self,
        cluster: &Cluster,
        reading: &Reading,
        namespace: Option<&str>,
    ) -> Result<(), String> {
        let path = reading.resource().path(namespace);
        let mut next = String::new();
        loop {
            let mut query = format!("?limit={PAGE}");
            let selectors = cluster.selectors().into_iter();
            let page = Some(("continue", next.as_str())).filter(|_| !next.is_empty());
            for (key, value) in selectors.chain(page) {
                query.push_str(&format!("&{key}={}", escaped(value)));
            }
            let answer = ask(cluster, &format!("{path}{query}")).await?;
            self.add(&answer)?;
            let token = answer.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default();
            if token.is_empty() {
                return Ok(());
            }
            token.clone_into(&mut next);
        }
    }

    fn add(&mut self, table: &Value) -> Result<(), String> {
        if table.get("kind").and_then(Value::as_str) != Some("Table") {
            return Err("the server makes no table of them".to_owned());
        }
        let list = |key: &str| table.get(key).and_then(Value::as_array).into_iter().flatten();
        // Of several pages the first has the columns of all.
        if self.heads.is_empty() {
            self.heads = list("columnDefinitions").map(Head::of_definition).collect();
        }
        for row in list("rows") {
            let cells = row.get("cells").and_then(Value::as_array).cloned().unwrap_or_default();
            let namespace = row.pointer("/object/metadata/namespace").and_then(Value::as_str);
            self.rows.push(Line { namespace: namespace.unwrap_or_default().to_owned(), cells });
        }
        Ok(())
    }
}

async fn ask(cluster: &Cluster, uri: &str) -> Result<Value, String> {
    let request = http::Request::get(uri).header(http::header::ACCEPT, FORM).body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    let client = cluster.factory.client();
    match tokio::time::timeout(cluster.patience, client.request::<Value>(request)).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("the server does not answer".to_owned()),
    }
}

/// A value in a query.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |mut out: String, byte: u8| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
        out
    };
    text.bytes().fold(String::with_capacity(text.len()), escape)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_escaped() {
        assert_eq!(escaped("app in (a,b),x!=ä"), "app%20in%20%28a%2Cb%29%2Cx%21%3D%C3%A4");
    }

    #[test]
    fn pages_are_one_table_and_what_is_none_is_told() {
        let page = |name: &str| {
            json!({
                "kind": "Table",
                "columnDefinitions": [
                    { "name": "Name", "type": "string", "format": "name", "priority": 0 },
                    { "name": "Zone", "type": "string", "format": "", "priority": 1 },
                ],
                "rows": [{ "cells": [name, "z"], "object": { "metadata": { "namespace": "n" } } }, {}],
            })
        };
        let mut served = Served::default();
        served.add(&page("a")).unwrap();
        served.add(&page("b")).unwrap();
        let heads: Vec<(&str, bool, bool)> =
            served.heads.iter().map(|head| (&*head.name, head.wide, head.is_name)).collect();
        assert_eq!(heads, [("Name", false, true), ("Zone", true, false)]);
        assert_eq!(served.rows.len(), 4);
        assert_eq!((&*served.rows[2].namespace, &served.rows[2].cells), ("n", &vec![json!("b"), json!("z")]));
        assert!(served.add(&json!({ "kind": "WidgetList", "items": [] })).is_err());
    }
}
