//! What is told, in the form that was asked for.
//!
//! | form | what there is | a change |
//! |---|---|---|
//! | table, wide | rows, after two spaces | a row after `+ `, `~ ` or `- `; with `--output-watch-events`, a word in a column |
//! | json | one object per line: `{"type":"ADDED","initial":true,"object":{…}}` | the same without `initial` |
//! | yaml | the same as documents | the same |
//! | name | `  pod/web` | `+ pod/web` |
//! | jsonpath | what the template makes of each object, after two spaces, and a line's end | the same after `+ `, `~ ` or `- `; with `--output-watch-events`, the template is given `{"type":…,"object":{…}}`, and there are no marks |
//! | diff | nothing | a line that says what it means, then each value that is another, old → new |
//!
//! Rows of a table stand under the header of their kind: where several kinds are shown, it is printed again, after an empty
//! line, whenever the row before was of another one. Columns that somebody chose are those of all kinds: they are one table,
//! with one header.
//!
//! What else there is to know is in json and yaml, too: `SYNCED` after what there is, `GAP` where changes were left out,
//! `STALE` and `LIVE`. Objects that are gone have their last known state.
//!
//! An object of which a form makes nothing, as a template with an index that is out of bounds, is [`Unshown`]: which one it
//! is, and why. Others are not concerned.
//!
//! All of it has been in the hands of [`Style::paint`]: a terminal obeys nothing that is in objects.

use std::fmt;

use jiff::Timestamp;
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use kube_informer_feed::change::{Change, FieldChange, What};
use serde_json::{Map, Value, json};

use super::pulse::Beat;
use super::story::Told;
use crate::show::table::{Cells, Layout, Row, Table};
use crate::show::{self, Format, json, yaml};
use crate::style::{Style, Tone};

/// How changes are marked in tables and names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    /// `+ `, `~ `, `- ` before the line.
    Signs,
    /// `ADDED`, `MODIFIED`, `DELETED` in a column.
    Words,
}

/// See the module.
#[derive(Debug)]
pub(super) struct View {
    format: Format,
    marks: Marks,
    headers: bool,
    style: Style,
    /// One for each reading, in their order.
    sections: Vec<Section>,
    tables: Vec<Table>,
    /// Of which table rows stand under the header.
    under: Option<usize>,
}

#[derive(Debug)]
struct Section {
    /// What its objects are called together: `pods`. In records.
    resource: String,
    /// What names begin with: `pod/`.
    prefix: String,
    /// In tables: which one.
    table: Option<usize>,
}

/// What is printed, piece by piece.
pub(super) type Pieces<'v> = Box<dyn Iterator<Item = Result<String, Unshown>> + 'v>;

/// An object that cannot be shown, in words.
#[derive(Debug)]
pub(super) struct Unshown(Box<str>);

impl Unshown {
    fn new(mark: Mark, object: &Object, why: &anyhow::Error) -> Self {
        let text = format!("not shown: {} {} ({}): {why:#}", object.kind(), object.key(), mark.word());
        Self(text.into())
    }
}

impl fmt::Display for Unshown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happened, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It was there.
    There,
    Added,
    Modified,
    Deleted,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Self::There => "  ",
            Self::Added => "+ ",
            Self::Modified => "~ ",
            Self::Deleted => "- ",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::There | Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::There => Tone::None,
            Self::Added => Tone::Added,
            Self::Modified => Tone::Changed,
            Self::Deleted => Tone::Deleted,
        }
    }
}

/// How much of a value is shown in a diff.
const LONGEST_VALUE: usize = 200;

impl View {
    pub(super) fn new(format: Format, marks: Marks, headers: bool, style: Style) -> Self {
        Self { format, marks, headers, style, sections: Vec::new(), tables: Vec::new(), under: None }
    }

    /// Objects of the next reading are rows of a table.
    pub(super) fn add_table(&mut self, cells: Cells, namespaces: bool, prefix: String) {
        let is_chosen = matches!(cells, Cells::Chosen(_));
        let wide = matches!(self.format, Format::Table { wide: true });
        let event = (self.marks == Marks::Words).then_some("EVENT");
        let mut table = Table::new(cells, Layout { wide, namespaces, prefix, event });
        if event.is_some() {
            // The longest of the words: the columns stay where they are.
            table.fit(&[Mark::Modified.word().to_owned()]);
        }
        if self.tables.is_empty() || !is_chosen {
            self.tables.push(table);
        }
        let (resource, prefix, last) = (String::new(), String::new(), self.tables.len().checked_sub(1));
        self.sections.push(Section { resource, prefix, table: last });
    }

    /// Objects of the next reading are something else.
    pub(super) fn add(&mut self, resource: &Resource) {
        let (resource, prefix) = (resource.to_string(), format!("{}/", show::kind(resource)));
        self.sections.push(Section { resource, prefix, table: None });
    }

    /// What there is, piece by piece: nobody has to hold it all.
    pub(super) fn beginning<'v>(&'v mut self, at: usize, objects: &'v [Object]) -> Pieces<'v> {
        let now = Timestamp::now();
        if matches!(self.format, Format::Diff) {
            return Box::new(std::iter::empty());
        }
        let table = self.sections.get(at).and_then(|section| section.table);
        if let Some(table) = table.and_then(|table| self.tables.get_mut(table)) {
            // How wide columns are is known only when all rows are.
            let mut row = |object: &Object| -> anyhow::Result<Row> {
                let cells = table.row(Mark::There.word(), &show::document(object)?, now)?;
                Ok(table.keep(&cells))
            };
            let row = |object| row(object).map_err(|why| Unshown::new(Mark::There, object, &why));
            let rows: Vec<Result<Row, Unshown>> = objects.iter().map(row).collect();
            return Box::new(rows.into_iter().map(move |row| Ok(self.row(at, Mark::There, &row?.cells()))));
        }
        Box::new(objects.iter().map(move |object| self.shown(at, Mark::There, object, now, None)))
    }

    /// Something that is told.
    pub(super) fn told(&mut self, at: usize, told: &Told) -> Result<String, Unshown> {
        let now = Timestamp::now();
        let (mark, object, extra) = match told {
            Told::Added(new) => (Mark::Added, new, None),
            Told::Modified { new, .. } => (Mark::Modified, new, None),
            Told::Deleted { last, certain } => {
                (Mark::Deleted, last, (!certain).then(|| ("reason", json!("found-missing"))))
            }
            Told::Gap { missed } => {
                let resource = self.sections.get(at).map(|section| section.resource.as_str());
                return Ok(self.record(json!({ "type": "GAP", "resource": resource, "missed": missed })));
            }
        };
        if matches!(self.format, Format::Diff) {
            return self.diff(told).map_err(|why| Unshown::new(mark, object, &why));
        }
        self.shown(at, mark, object, now, extra)
    }

    /// How it goes, where that is part of the output.
    pub(super) fn beat(&self, beat: &Beat) -> String {
        self.record(match beat {
            Beat::Stale { resource, since, cause, message } => json!({
                "type": "STALE", "resource": resource, "since": since.to_string(), "reason": cause.as_str(),
                "message": message,
            }),
            Beat::Live { resource } => json!({ "type": "LIVE", "resource": resource }),
        })
    }

    /// That what there was has been told.
    pub(super) fn begun(&self, resource: &str, count: usize) -> String {
        self.record(json!({ "type": "SYNCED", "resource": resource, "objects": count }))
    }

    /// The same in words, where nothing else says that it has begun.
    pub(super) fn begun_note(&self, resource: &str, count: usize) -> Option<String> {
        matches!(self.format, Format::Diff)
            .then(|| format!("{resource} that are there: {count}; what changes follows"))
    }

    /// Whether nothing is said where there is nothing: records say that, and so does the note of a diff.
    pub(super) fn hides_nothing(&self) -> bool {
        !matches!(self.format, Format::Json | Format::Yaml | Format::Diff)
    }

    fn shown(
        &mut self,
        at: usize,
        mark: Mark,
        object: &Object,
        now: Timestamp,
        extra: Option<(&str, Value)>,
    ) -> Result<String, Unshown> {
        self.piece(at, mark, object, now, extra).map_err(|why| Unshown::new(mark, object, &why))
    }

    fn piece(
        &mut self,
        at: usize,
        mark: Mark,
        object: &Object,
        now: Timestamp,
        extra: Option<(&str, Value)>,
    ) -> anyhow::Result<String> {
        match &self.format {
            Format::Table { .. } | Format::Chosen(_) => {
                let document = show::document(object)?;
                let table = self.sections.get(at).and_then(|section| section.table);
                let table = table.and_then(|table| self.tables.get(table));
                let Some(table) = table else { return Ok(String::new()) };
                let row = table.row(mark.word(), &document, now)?;
                Ok(self.row(at, mark, &row))
            }
            Format::Name => {
                let prefix = self.sections.get(at).map(|section| section.prefix.as_str()).unwrap_or_default();
                let line = format!("{prefix}{}", object.name());
                let line = match self.marks {
                    Marks::Signs => format!("{}{line}", mark.sign()),
                    Marks::Words => format!("{:<11}{line}", mark.word()),
                };
                Ok(format!("{}\n", self.style.paint(mark.tone(), &line)))
            }
            Format::Template(template) => {
                let document = show::document(object)?;
                let (sign, given) = match self.marks {
                    Marks::Signs => (mark.sign(), document),
                    // As kubectl has it.
                    Marks::Words => ("", json!({ "type": mark.word(), "object": document })),
                };
                let text = template.render(&given);
                let text = text.map_err(|error| anyhow::anyhow!("-o jsonpath: {error}"))?;
                Ok(format!("{}\n", self.style.paint(mark.tone(), &format!("{sign}{text}"))))
            }
            Format::Json | Format::Yaml | Format::Diff => {
                let mut record = Map::new();
                record.insert("type".to_owned(), json!(mark.word()));
                if mark == Mark::There {
                    record.insert("initial".to_owned(), json!(true));
                }
                record.extend(extra.map(|(key, value)| (key.to_owned(), value)));
                record.insert("object".to_owned(), show::document(object)?);
                Ok(self.record(Value::Object(record)))
            }
        }
    }

    /// A row, with the header before it where it does not stand under it already.
    fn row(&mut self, at: usize, mark: Mark, row: &[String]) -> String {
        let place = self.sections.get(at).and_then(|section| section.table);
        let (is_first, is_under) = (self.under.is_none(), self.under == place);
        let Some(table) = place.and_then(|place| self.tables.get_mut(place)) else { return String::new() };
        let mut text = String::new();
        if self.headers && !is_under {
            let header = table.header();
            table.fit(row);
            table.fit(&header);
            text.push_str(if is_first { "" } else { "\n" });
            text.push_str(if self.marks == Marks::Signs { "  " } else { "" });
            text.push_str(&self.style.paint(Tone::None, &table.line(&header)));
        }
        self.under = place;
        let line = table.line(row);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let sign = if self.marks == Marks::Signs { mark.sign() } else { "" };
        text.push_str(&self.style.paint(mark.tone(), &format!("{sign}{line}")));
        text.push('\n');
        text
    }

    /// A record, in the forms that have such.
    fn record(&self, record: Value) -> String {
        let text = match self.format {
            Format::Json => {
                let kind = record.get("type").map(json::compact).unwrap_or_default();
                let mut rest = record;
                if let Value::Object(map) = &mut rest {
                    map.remove("type");
                }
                let rest = json::compact(&rest);
                let members =
                    rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
                let comma = if members.is_empty() { "" } else { "," };
                format!("{{\"type\":{kind}{comma}{members}}}\n")
            }
            Format::Yaml => format!("---\n{}", yaml::document(&record)),
            _ => String::new(),
        };
        self.style.paint(Tone::None, &text)
    }

    fn diff(&self, told: &Told) -> anyhow::Result<String> {
        let change = match told {
            Told::Added(new) => Change::added(new)?,
            Told::Modified { old, new } => Change::modified(old, new)?,
            Told::Deleted { last, certain } => Change::deleted(last, *certain)?,
            Told::Gap { .. } => return Ok(String::new()),
        };
        // A write that changed nothing but the version.
        if !change.is_visible() {
            return Ok(String::new());
        }
        let tone = Tone::of(change.what);
        let by = change.actor.as_ref().map(|actor| format!(" ({})", actor.manager)).unwrap_or_default();
        let head = format!("{} {change}{by}", change.time.strftime("%H:%M:%SZ"));
        let mut text = format!("{}\n", self.style.paint(tone, &head));
        if change.what == What::Modified {
            change.changes.iter().for_each(|field| text.push_str(&self.field(field)));
            if change.truncated > 0 {
                text.push_str(&format!("    … and {} more\n", change.truncated));
            }
        }
        Ok(text)
    }

    /// One value: `    ~ /spec/replicas: 3 → 5`.
    fn field(&self, field: &FieldChange) -> String {
        let path = &field.path;
        let (tone, line) = match (&field.old, &field.new) {
            (Some(old), Some(new)) => (Tone::Changed, format!("~ {path}: {} → {}", short(old), short(new))),
            (None, Some(new)) => (Tone::Added, format!("+ {path}: {}", short(new))),
            (Some(old), None) => (Tone::Deleted, format!("- {path}: {}", short(old))),
            (None, None) => return String::new(),
        };
        format!("    {}\n", self.style.paint(tone, &line))
    }
}

/// A value in one line that is not too long.
fn short(value: &Value) -> String {
    let text = json::compact(value);
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
