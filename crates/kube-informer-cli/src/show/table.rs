//! Tables as `kubectl get` prints them: columns three spaces apart, as wide as what is in them.
//!
//! A table that goes on, as of a watch, keeps its columns where they are, and moves them where something does not fit.

use jiff::Timestamp;
use kube_informer::object::Object;
use kube_informer_apiserver::print::{Column, Printer};
use serde_json::Value;

use super::columns::Columns;
use super::json;

/// What lies between columns, and how narrow one is at least: as kubectl has it.
const PADDING: usize = 3;
const NARROWEST: usize = 6;

/// How the objects of one resource are shown, and how wide the columns are so far.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    cells: Cells,
    /// The columns of the resource.
    heads: Vec<Head>,
    layout: Layout,
    widths: Vec<usize>,
}

/// Who knows what is in a row.
#[derive(Debug, Clone)]
pub(crate) enum Cells {
    /// The resource.
    Printer(Printer),
    /// Whoever asked. Nothing else is shown then.
    Chosen(Columns),
    /// The server: its rows are [arranged](Table::arrange), and none is made of an object.
    Served(Vec<Head>),
}

/// A column of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) name: String,
    /// Whether it is shown on request only.
    pub(crate) wide: bool,
    /// Whether it has the names of the objects.
    pub(crate) is_name: bool,
}

impl Head {
    /// A column as a server describes it.
    pub(crate) fn of_definition(definition: &Value) -> Self {
        let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
        let priority = definition.get("priority").and_then(Value::as_i64).unwrap_or_default();
        let is_name = text("format") == "name" && text("type") == "string";
        Self { name: text("name").to_owned(), wide: priority > 0, is_name }
    }
}

impl From<&Column> for Head {
    fn from(column: &Column) -> Self {
        Self { name: column.name.clone(), wide: column.wide, is_name: column.is_name }
    }
}

/// A row that waits to be printed, small: there may be a hundred thousand.
#[derive(Debug)]
pub(crate) struct Row(Box<str>);

/// What no cell has: they are texts for people.
const BETWEEN: &str = "\u{1f}";

impl Row {
    pub(crate) fn cells(&self) -> Vec<String> {
        self.0.split(BETWEEN).map(str::to_owned).collect()
    }
}

/// What is shown beside the columns of the resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) wide: bool,
    /// A column for the namespace.
    pub(crate) namespaces: bool,
    /// What stands before names, such as `pod/`.
    pub(crate) prefix: String,
    /// A column before all others, with this header.
    pub(crate) event: Option<&'static str>,
}

impl Table {
    pub(crate) fn new(cells: Cells, layout: Layout) -> Self {
        let heads = match &cells {
            Cells::Printer(printer) => printer.columns().iter().map(Head::from).collect(),
            Cells::Served(heads) => heads.clone(),
            Cells::Chosen(_) => Vec::new(),
        };
        Self { cells, heads, layout, widths: Vec::new() }
    }

    /// The headers.
    pub(crate) fn header(&self) -> Vec<String> {
        let before = self.layout.event.map(str::to_owned).into_iter();
        if let Cells::Chosen(columns) = &self.cells {
            return before.chain(columns.header()).collect();
        }
        let namespace = self.layout.namespaces.then(|| "NAMESPACE".to_owned());
        let heads = self.heads.iter().filter(|head| self.layout.wide || !head.wide);
        before.chain(namespace).chain(heads.map(|head| head.name.to_uppercase())).collect()
    }

    /// The cells of an object.
    pub(crate) fn row(&self, event: &str, object: &Value, now: Timestamp) -> anyhow::Result<Vec<String>> {
        let cells = match &self.cells {
            Cells::Chosen(columns) => {
                let event = self.layout.event.map(|_| event.to_owned()).into_iter();
                return Ok(event.chain(columns.row(object)?.iter().map(|cell| one_line(cell))).collect());
            }
            Cells::Printer(printer) => printer.cells(object, now),
            Cells::Served(_) => Vec::new(),
        };
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        Ok(self.arrange(event, namespace, &cells))
    }

    /// The cells that are shown of those that there are for an object.
    pub(crate) fn arrange(&self, event: &str, namespace: &str, cells: &[Value]) -> Vec<String> {
        let mut row: Vec<String> = self.layout.event.map(|_| event.to_owned()).into_iter().collect();
        row.extend(self.layout.namespaces.then(|| namespace.to_owned()));
        for (head, cell) in self.heads.iter().zip(cells).filter(|(head, _)| self.layout.wide || !head.wide) {
            // Not all kinds show the name first, or at all.
            let prefix = if head.is_name { self.layout.prefix.as_str() } else { "" };
            row.push(format!("{prefix}{}", text(cell)));
        }
        row
    }

    /// The rows of many objects, with room for each of them: how wide columns are is known only when all rows are.
    pub(crate) fn rows(
        &mut self,
        event: &str,
        objects: &[Object],
        now: Timestamp,
    ) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::with_capacity(objects.len());
        for object in objects {
            let cells = self.row(event, &super::document(object)?, now)?;
            rows.push(self.keep(&cells));
        }
        Ok(rows)
    }

    /// A row that waits to be printed, and has its room.
    pub(crate) fn keep(&mut self, cells: &[String]) -> Row {
        self.fit(cells);
        Row(cells.join(BETWEEN).into())
    }

    /// Makes room for a row.
    pub(crate) fn fit(&mut self, row: &[String]) {
        if self.widths.len() < row.len() {
            self.widths.resize(row.len(), NARROWEST);
        }
        for (width, cell) in self.widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count() + PADDING);
        }
    }

    /// A row as a line, with its end. What does not fit makes its column wider from here on.
    pub(crate) fn line(&mut self, row: &[String]) -> String {
        self.fit(row);
        let mut line = String::new();
        let last = row.len().saturating_sub(1);
        for (at, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
            line.push_str(cell);
            if at < last {
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
            }
        }
        line.push('\n');
        line
    }
}

fn text(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        Value::Number(number) => json::number(number),
        other => other.to_string(),
    }
}

/// A cell is one line, and nothing in it moves the cursor.
fn one_line(text: &str) -> String {
    let (line, cut) = match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => (text.get(..end).unwrap_or_default(), "..."),
        None => (text, ""),
    };
    format!("{}{cut}", line.replace('\u{1b}', "^[").replace(BETWEEN, "?"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_three_spaces_apart_and_the_last_is_as_wide_as_it_likes() {
        let mut table = Table::new(Cells::Printer(Printer::plain()), Layout::default());
        for row in [row(&["NAME", "AGE"]), row(&["a-long-name", "5m"]), row(&["b", ""])] {
            table.fit(&row);
        }
        assert_eq!(table.line(&row(&["NAME", "AGE"])), "NAME          AGE\n");
        assert_eq!(table.line(&row(&["b", "5m"])), "b             5m\n");
        assert_eq!(table.line(&row(&["a-very-long-name", "5m"])), "a-very-long-name   5m\n");
        assert_eq!(table.line(&row(&["b", "5m"])), "b                  5m\n", "what grew stays");
    }

    #[test]
    fn narrow_columns_have_a_least_width() {
        let mut table = Table::new(Cells::Printer(Printer::plain()), Layout::default());
        assert_eq!(table.line(&row(&["a", "b"])), "a     b\n");
    }

    #[test]
    fn a_cell_is_one_line_and_moves_no_cursor() {
        assert_eq!(text(&json!("a\nb")), "a...");
        assert_eq!(text(&json!("\u{1b}[31ma")), "^[[31ma");
        assert_eq!(text(&json!(null)), "");
        assert_eq!(text(&json!(3)), "3");
        assert_eq!(text(&json!(true)), "true");
    }

    #[test]
    fn namespaces_kinds_and_events_have_their_place() {
        let printer = Printer::built_in("", "v1", "configmaps").unwrap();
        let layout =
            Layout { namespaces: true, prefix: "configmap/".to_owned(), event: Some("EVENT"), wide: false };
        let table = Table::new(Cells::Printer(printer), layout);
        assert_eq!(table.header(), ["EVENT", "NAMESPACE", "NAME", "DATA", "AGE"]);
        let object = json!({ "metadata": { "name": "a", "namespace": "n" } });
        let cells = table.row("ADDED", &object, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(cells, ["ADDED", "n", "configmap/a", "0", "<unknown>"]);
    }
}
