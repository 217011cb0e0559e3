//! Paths that a definition writes about its own schema: `.spec.a`, `.spec['a']`.

use serde_json::Value;

/// The schema of the place that a path names.
pub(super) fn resolve<'s>(path: &str, schema: &'s Value, brackets: bool) -> Result<&'s Value, String> {
    let mut schema = schema;
    let mut rest = path;
    while let Some((token, after)) = next(rest) {
        rest = after;
        let name = match token {
            "." => {
                let (name, after) = next(rest).ok_or("unexpected end of JSON path")?;
                rest = after;
                name.to_owned()
            }
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let (quoted, after) = next(rest).ok_or("unexpected end of JSON path")?;
                let name = quoted.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
                let name = name.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let (close, after) = next(after).ok_or("unexpected end of JSON path")?;
                if close != "]" {
                    return Err(format!("expected ] but got {close}"));
                }
                rest = after;
                name.replace("\\'", "'")
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        schema = field(schema, &name).ok_or("does not refer to a valid field")?;
    }
    Ok(schema)
}

fn field<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty());
    match properties {
        Some(properties) => properties.get(name),
        None => schema.get("additionalProperties").filter(|value| value.is_object()),
    }
}

/// The next delimiter, quoted string or name.
fn next(text: &str) -> Option<(&str, &str)> {
    let first = text.chars().next()?;
    let end = if ".[]".contains(first) {
        1
    } else if first == '\'' {
        let mut previous = '\'';
        let close = text.char_indices().skip(1).find(|(_, c)| {
            let found = *c == '\'' && previous != '\\';
            previous = *c;
            found
        });
        close.map_or(text.len(), |(at, _)| at + 1)
    } else {
        text.find(['.', '[', ']']).unwrap_or(text.len())
    };
    Some(text.split_at(end))
}
