//! What a template finds in an object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::{Filter, Node, Piece, Slice, Step};
use super::{DEEPEST, Item, JsonPathError, STEPS, WIDEST, compare};

/// An error; and whether something had been found when it happened, which is enough for a filter that asks no more.
struct Failed {
    error: JsonPathError,
    found: bool,
}

type Found<'a> = Result<Vec<Item<'a>>, Failed>;

/// What each part finds.
pub(super) fn run<'a>(pieces: &'a [Piece], object: &'a Value) -> Result<Vec<Vec<Item<'a>>>, JsonPathError> {
    let mut walk = Walk { steps: 0, results: 0 };
    let mut found = Vec::new();
    walk.pieces(pieces, 0, pieces.len(), Item::Json(object), &mut found, 0)?;
    Ok(found)
}

struct Walk {
    /// Values that were looked at.
    steps: u64,
    /// Results so far.
    results: usize,
}

impl Walk {
    /// The pieces from one place to another, with what is current there.
    fn pieces<'a>(
        &mut self,
        pieces: &'a [Piece],
        from: usize,
        to: usize,
        current: Item<'a>,
        found: &mut Vec<Vec<Item<'a>>>,
        depth: usize,
    ) -> Result<(), JsonPathError> {
        let mut here = from;
        while let Some(piece) = pieces.get(here).filter(|_| here < to) {
            self.step(0).map_err(|failed| failed.error)?;
            here += 1;
            match piece {
                Piece::Text(text) => self.keep(vec![Item::Text(text)], found)?,
                Piece::Path(path) => {
                    let items = self.path(vec![current], path).map_err(|failed| failed.error)?;
                    self.keep(items, found)?;
                }
                Piece::Range { over, end, resume } => {
                    for item in self.path(vec![current], over).map_err(|failed| failed.error)? {
                        let item = if matches!(item, Item::Json(Value::Null)) { Item::Nothing } else { item };
                        // Templates have no deeper ranges.
                        if depth < DEEPEST {
                            self.pieces(pieces, here, *end, item, found, depth + 1)?;
                        }
                    }
                    here = *resume;
                }
                Piece::End => {}
            }
        }
        Ok(())
    }

    fn keep<'a>(
        &mut self,
        items: Vec<Item<'a>>,
        found: &mut Vec<Vec<Item<'a>>>,
    ) -> Result<(), JsonPathError> {
        self.results = self.results.saturating_add(items.len().max(1));
        if self.results > WIDEST {
            return Err(too_many(0).error);
        }
        found.push(items);
        Ok(())
    }

    fn path<'a>(&mut self, mut items: Vec<Item<'a>>, path: &'a [Node]) -> Found<'a> {
        for node in path {
            items = self.node(items, node)?;
            if items.len() > WIDEST {
                return Err(too_many(node.at));
            }
        }
        Ok(items)
    }

    fn node<'a>(&mut self, items: Vec<Item<'a>>, node: &'a Node) -> Found<'a> {
        self.step(node.at)?;
        let each = |item: Item<'a>| vec![item; items.len()];
        match &node.step {
            Step::Text(text) => Ok(vec![Item::Text(text)]),
            Step::Int(number) => Ok(each(Item::Int(*number))),
            Step::Float(number) => Ok(each(Item::Float(*number))),
            Step::Bool(value) => Ok(each(Item::Bool(*value))),
            Step::Field(name) => self.field(&items, name, node.at),
            Step::Wildcard => self.wildcard(&items, node.at),
            Step::Recursive => {
                let mut found = Vec::new();
                for item in items {
                    self.descend(item, &mut found, node.at, 0)?;
                }
                Ok(found)
            }
            Step::Slice(slice) => self.slice(&items, *slice, node.at),
            Step::Union(paths) => {
                let mut found = Vec::new();
                for path in paths {
                    let part = self.path(items.clone(), path);
                    found.extend(part.map_err(|failed| Failed { found: !items.is_empty(), ..failed })?);
                }
                Ok(found)
            }
            Step::Filter(filter) => self.filter(&items, filter, node.at),
        }
    }

    fn field<'a>(&mut self, items: &[Item<'a>], name: &str, at: usize) -> Found<'a> {
        let mut found = Vec::new();
        for item in items {
            self.step(at)?;
            if let Item::Json(Value::Object(object)) = item {
                found.extend(object.get(name).map(Item::Json));
            }
        }
        Ok(found)
    }

    fn wildcard<'a>(&mut self, items: &[Item<'a>], at: usize) -> Found<'a> {
        let mut found = Vec::new();
        for item in items {
            self.inside(*item, &mut found, at)?;
        }
        Ok(found)
    }

    /// What a value holds.
    fn inside<'a>(&mut self, item: Item<'a>, found: &mut Vec<Item<'a>>, at: usize) -> Result<(), Failed> {
        let before = found.len();
        match item {
            Item::Json(Value::Object(object)) => {
                // Sorted, whatever the map does.
                let sorted: BTreeMap<&String, &Value> = object.iter().collect();
                found.extend(sorted.into_values().map(Item::Json));
            }
            Item::Json(Value::Array(array)) => found.extend(array.iter().map(Item::Json)),
            Item::Json(Value::String(text)) => found.extend(text.bytes().map(Item::Byte)),
            Item::Text(text) => found.extend(text.bytes().map(Item::Byte)),
            _ => {}
        }
        self.steps(found.len() - before, at)
    }

    /// A value that holds something, and all such values in it, each before what it holds.
    fn descend<'a>(
        &mut self,
        item: Item<'a>,
        found: &mut Vec<Item<'a>>,
        at: usize,
        depth: usize,
    ) -> Result<(), Failed> {
        /// Objects of Kubernetes are flat; JSON that is read is not deeper than this.
        const DEEP: usize = 256;
        self.step(at)?;
        let holds_something = match item {
            Item::Json(Value::Object(object)) => !object.is_empty(),
            Item::Json(Value::Array(array)) => !array.is_empty(),
            Item::Json(Value::String(text)) => !text.is_empty(),
            Item::Text(text) => !text.is_empty(),
            _ => false,
        };
        if !holds_something {
            return Ok(());
        }
        if depth > DEEP || found.len() > WIDEST {
            return Err(too_many(at));
        }
        found.push(item);
        if matches!(item, Item::Json(Value::Object(_) | Value::Array(_))) {
            let mut inside = Vec::new();
            self.inside(item, &mut inside, at)?;
            for item in inside {
                self.descend(item, found, at, depth + 1)?;
            }
        }
        Ok(())
    }

    fn slice<'a>(&mut self, items: &[Item<'a>], slice: Slice, at: usize) -> Found<'a> {
        let mut found = Vec::new();
        let fails = |message: String| failed(message, at, !items.is_empty());
        for item in items {
            self.step(at)?;
            let array = match item {
                Item::Json(Value::Null) | Item::Nothing => continue,
                Item::Json(Value::Array(array)) => array,
                other => return Err(fails(format!("{} is not array or slice", type_of(*other)))),
            };
            let length = i64::try_from(array.len()).unwrap_or(i64::MAX);
            let mut from = slice.from.unwrap_or(0);
            if from < 0 {
                from = from.saturating_add(length);
            }
            let mut to = slice.to.unwrap_or(length);
            if to < 0 || (to == 0 && slice.single) {
                to = to.saturating_add(length);
            }
            if from == to {
                // As kubectl has it: nothing is looked at any more.
                return Ok(found);
            }
            let outside = |index: i64| format!("array index out of bounds: index {index}, length {length}");
            if from >= length || from < 0 {
                return Err(fails(outside(from)));
            }
            if to > length || to < 0 {
                return Err(fails(outside(to.saturating_sub(1))));
            }
            if from > to {
                return Err(fails(format!("starting index {from} is greater than ending index {to}")));
            }
            let step = slice.step.unwrap_or(1);
            if step <= 0 {
                return Err(fails("step must be > 0".to_owned()));
            }
            let index = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
            let part = array.get(index(from)..index(to)).unwrap_or_default();
            self.steps(part.len(), at)?;
            found.extend(part.iter().step_by(index(step)).map(Item::Json));
            if found.len() > WIDEST {
                return Err(too_many(at));
            }
        }
        Ok(found)
    }

    fn filter<'a>(&mut self, items: &[Item<'a>], filter: &'a Filter, at: usize) -> Found<'a> {
        let mut found = Vec::new();
        for item in items {
            let Item::Json(Value::Array(array)) = item else {
                let message = format!("{} is not array or slice and cannot be filtered", type_of(*item));
                return Err(failed(message, at, !items.is_empty()));
            };
            for element in array {
                self.step(at)?;
                if self.passes(Item::Json(element), filter, at, !items.is_empty(), !found.is_empty())? {
                    found.push(Item::Json(element));
                }
            }
        }
        Ok(found)
    }

    /// Whether an element passes; with what was found where it cannot be told, as kubectl counts it.
    fn passes<'a>(
        &mut self,
        element: Item<'a>,
        filter: &'a Filter,
        at: usize,
        given: bool,
        found: bool,
    ) -> Result<bool, Failed> {
        let left = self.path(vec![element], &filter.left);
        let Some((operator, right)) = &filter.test else {
            return match left {
                Ok(left) => Ok(!left.is_empty()),
                // Limits hold everywhere.
                Err(failed) if failed.error.message == TOO_MUCH => Err(failed),
                Err(failed) => Ok(failed.found),
            };
        };
        let one = |side: Vec<Item<'a>>| match side[..] {
            [] => Ok(None),
            [item] => Ok(Some(item)),
            _ => Err(failed("can only compare one element at a time".to_owned(), at, given)),
        };
        let given_to = |failed: Failed| Failed { found: given, ..failed };
        let Some(left) = one(left.map_err(given_to)?)? else { return Ok(false) };
        let right = self.path(vec![element], right).map_err(given_to)?;
        let Some(right) = one(right)? else { return Ok(false) };
        compare::passes(left, *operator, right).map_err(|message| failed(message.to_owned(), at, found))
    }

    fn step(&mut self, at: usize) -> Result<(), Failed> {
        self.steps(1, at)
    }

    fn steps(&mut self, count: usize, at: usize) -> Result<(), Failed> {
        self.steps = self.steps.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if self.steps > STEPS || count > WIDEST { Err(too_many(at)) } else { Ok(()) }
    }
}

const TOO_MUCH: &str = "the template finds too much";

fn too_many(at: usize) -> Failed {
    failed(TOO_MUCH.to_owned(), at, false)
}

fn failed(message: String, at: usize, found: bool) -> Failed {
    Failed { error: JsonPathError::new(message, at), found }
}

/// As kubectl calls it, which is written in Go.
fn type_of(item: Item<'_>) -> &'static str {
    match item {
        Item::Json(Value::Null) => "<nil>",
        Item::Nothing => "<no value>",
        Item::Json(Value::Object(_)) => "map[string]interface {}",
        Item::Json(Value::Array(_)) => "[]interface {}",
        Item::Json(Value::String(_)) | Item::Text(_) => "string",
        Item::Json(Value::Bool(_)) | Item::Bool(_) => "bool",
        Item::Json(Value::Number(number)) if number.is_i64() => "int64",
        Item::Json(Value::Number(_)) | Item::Float(_) => "float64",
        Item::Int(_) => "int",
        Item::Byte(_) => "uint8",
    }
}
