//! JSONPath as Kubernetes has it: printer columns, selectable fields.
//!
//! `.spec.a`, `.a\.b`, `['x']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `.*`, `..name`, `[0,2]`, and filters such
//! as `[?(@.type=="Ready")]` or `[?(@.ready)]`. Leading `$` and `@` are the object itself. A path that
//! cannot be followed (an index out of bounds, a filter on something that is no list) finds nothing.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter { left: Vec<Step>, comparison: Option<(Operator, Operand)> },
}

#[derive(Debug, Clone, Default)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    /// A single index: `end` follows from `start`.
    single: bool,
}

#[derive(Debug, Clone)]
enum Operand {
    Literal(Value),
    Path(Vec<Step>),
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl JsonPath {
    /// Reads a path; braces around it are not part of it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { steps: parse_steps(text)? })
    }

    /// Everything that the path leads to.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        follow(&self.steps, vec![value]).unwrap_or_default()
    }
}

fn parse_steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("[?(") {
            rest = parse_filter(after, &mut steps)?;
            continue;
        }
        if let Some(after) = rest.strip_prefix("..") {
            if matches!(steps.last(), Some(Step::Recursive)) {
                return Err("invalid multiple recursive descent".to_owned());
            }
            steps.push(Step::Recursive);
            rest = if after.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                parse_field(after, &mut steps)
            } else {
                after
            };
            continue;
        }
        let after = &rest[c.len_utf8()..];
        match c {
            ' ' | '$' | '@' => rest = after,
            '[' => rest = parse_brackets(after, &mut steps)?,
            '.' => rest = parse_field(after, &mut steps),
            '\r' | '\n' => return Err("unclosed action".to_owned()),
            other => {
                return Err(format!(
                    "unrecognized character in action: U+{:04X} '{other}'",
                    u32::from(other)
                ));
            }
        }
    }
    Ok(steps)
}

/// Reads up to the next character that ends a name, backslashes escaping it.
fn parse_field<'t>(text: &'t str, steps: &mut Vec<Step>) -> &'t str {
    let mut end = text.len();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if " \t\r\n.,[]$@{}".contains(c) {
            end = at;
            break;
        }
    }
    let (name, rest) = text.split_at(end);
    steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) });
    rest
}

/// Reads what follows a `[`.
fn parse_brackets<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, String> {
    let (inside, rest) = text.split_once(']').ok_or("unterminated array")?;
    if inside.contains('\n') {
        return Err("unterminated array".to_owned());
    }
    let parts: Vec<&str> = inside.split(',').collect();
    if parts.len() > 1 {
        let mut union = Vec::new();
        for part in parts {
            let mut steps = Vec::new();
            parse_bracket(part.trim_matches(' '), &mut steps)?;
            union.push(steps);
        }
        steps.push(Step::Union(union));
    } else {
        parse_bracket(inside, steps)?;
    }
    Ok(rest)
}

fn parse_bracket(inside: &str, steps: &mut Vec<Step>) -> Result<(), String> {
    if inside == "*" {
        steps.push(Step::Slice(Slice::default()));
        return Ok(());
    }
    let quoted = inside.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    if let Some(name) = quoted.filter(|name| !name.contains('\'')) {
        // A quoted name is read like a dotted one: its dots have to be escaped as well.
        steps.extend(parse_steps(&format!(".{name}"))?);
        return Ok(());
    }
    let bounds: Vec<&str> = inside.split(':').collect();
    if bounds.len() > 3 {
        return Err(format!("invalid array index {inside}"));
    }
    let bound = |at: usize| -> Result<Option<i64>, String> {
        match bounds.get(at) {
            None | Some(&"") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| format!("invalid array index {inside}")),
        }
    };
    let (start, end, step) = (bound(0)?, bound(1)?, bound(2)?);
    steps.push(Step::Slice(Slice { start, end, step, single: bounds.len() == 1 }));
    Ok(())
}

/// Reads what follows a `[?(`.
fn parse_filter<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, String> {
    let mut quote = None;
    let mut closed = false;
    let mut end = None;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '\n' => break,
            '"' | '\'' => match quote {
                None => quote = Some(c),
                Some(open) => closed |= open == c && previous != '\\',
            },
            ')' if quote.is_some() == closed => {
                end = Some(at);
                break;
            }
            _ => {}
        }
        previous = c;
    }
    let end = end.ok_or("unterminated filter")?;
    let rest = text[end + 1..].strip_prefix(']').ok_or("unclosed array expect ]")?;
    let inside = &text[..end];
    let operators = |c: char| "!<>=".contains(c);
    let comparison = inside.find(operators).filter(|at| *at > 0).and_then(|at| {
        let (left, right) = inside.split_at(at);
        let width = right.find(|c| !operators(c)).unwrap_or(right.len());
        let (operator, right) = right.split_at(width);
        (!right.is_empty()).then_some((left, operator, right))
    });
    let step = match comparison {
        None => Step::Filter { left: parse_steps(inside)?, comparison: None },
        Some((left, operator, right)) => {
            let operator = match operator {
                "<" => Operator::Less,
                "<=" => Operator::LessOrEqual,
                "==" => Operator::Equal,
                "!=" => Operator::NotEqual,
                ">=" => Operator::GreaterOrEqual,
                ">" => Operator::Greater,
                other => return Err(format!("unrecognized filter operator {other}")),
            };
            let comparison = Some((operator, parse_operand(right.trim())?));
            Step::Filter { left: parse_steps(left)?, comparison }
        }
    };
    steps.push(step);
    Ok(rest)
}

fn parse_operand(text: &str) -> Result<Operand, String> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            let inside = rest.strip_suffix(quote).ok_or("unterminated quoted string")?;
            return Ok(Operand::Literal(inside.replace(&format!("\\{quote}"), &quote.to_string()).into()));
        }
    }
    if let Ok(flag) = text.parse::<bool>() {
        return Ok(Operand::Literal(flag.into()));
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') {
        if let Ok(int) = text.parse::<i64>() {
            return Ok(Operand::Literal(int.into()));
        }
        return match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Operand::Literal(float.into())),
            _ => Err(format!("cannot parse number {text}")),
        };
    }
    parse_steps(text).map(Operand::Path)
}

/// Follows a path from several values at once; nothing if the way is barred.
fn follow<'v>(steps: &[Step], from: Vec<&'v Value>) -> Option<Vec<&'v Value>> {
    let mut values = from;
    for step in steps {
        let mut next = Vec::new();
        match step {
            Step::Field(name) => next.extend(values.iter().filter_map(|value| value.as_object()?.get(name))),
            Step::Wildcard => values.iter().for_each(|value| next.extend(children(value))),
            Step::Recursive => values.iter().for_each(|value| descend(value, &mut next)),
            Step::Slice(slice) => {
                for value in values.iter().filter(|value| !value.is_null()) {
                    next.extend(slice.of(value.as_array()?)?);
                }
            }
            Step::Union(paths) => {
                for path in paths {
                    next.extend(follow(path, values.clone())?);
                }
            }
            Step::Filter { left, comparison } => {
                for value in &values {
                    for item in value.as_array()? {
                        if passes(left, comparison.as_ref(), item)? {
                            next.push(item);
                        }
                    }
                }
            }
        }
        values = next;
    }
    Some(values)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(list) => list.iter().collect(),
        _ => Vec::new(),
    }
}

/// A value and everything below it that has something below it.
fn descend<'v>(value: &'v Value, out: &mut Vec<&'v Value>) {
    let below = children(value);
    if !below.is_empty() {
        out.push(value);
        below.into_iter().for_each(|child| descend(child, out));
    }
}

impl Slice {
    fn of<'v>(&self, list: &'v [Value]) -> Option<Vec<&'v Value>> {
        let length = i64::try_from(list.len()).ok()?;
        let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
        let start = from_end(self.start.unwrap_or_default());
        let end = if self.single { start.saturating_add(1) } else { self.end.map_or(length, from_end) };
        if start == end {
            return Some(Vec::new());
        }
        let step = self.step.unwrap_or(1);
        let inside = (0..length).contains(&start) && (0..=length).contains(&end) && start < end && step > 0;
        if !inside {
            return None;
        }
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        Some(list.get(start..end)?.iter().step_by(usize::try_from(step).ok()?).collect())
    }
}

fn passes(left: &[Step], comparison: Option<&(Operator, Operand)>, item: &Value) -> Option<bool> {
    let Some((operator, right)) = comparison else {
        return Some(follow(left, vec![item]).is_some_and(|found| !found.is_empty()));
    };
    let one = |found: Vec<&Value>| -> Option<Option<Value>> {
        match found.as_slice() {
            [] => Some(None),
            [one] => Some(Some((*one).clone())),
            _ => None,
        }
    };
    let Some(left) = one(follow(left, vec![item])?)? else { return Some(false) };
    let right = match right {
        Operand::Literal(value) => value.clone(),
        Operand::Path(path) => match one(follow(path, vec![item])?)? {
            Some(value) => value,
            None => return Some(false),
        },
    };
    let order = compare(&left, &right)?;
    let ordered = !left.is_boolean();
    match operator {
        Operator::Equal => Some(order.is_eq()),
        Operator::NotEqual => Some(order.is_ne()),
        Operator::Less if ordered => Some(order.is_lt()),
        Operator::LessOrEqual if ordered => Some(order.is_le()),
        Operator::Greater if ordered => Some(order.is_gt()),
        Operator::GreaterOrEqual if ordered => Some(order.is_ge()),
        _ => None,
    }
}

/// Only values of one kind compare; an integer and a float are two kinds.
fn compare(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
            _ => None,
        },
        _ => None,
    }
}
