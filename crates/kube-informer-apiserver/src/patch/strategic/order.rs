//! The order of a merged list.
//!
//! Two orders meet: the one the patch asks for, and the one the server has. Items that the patch names
//! come in its order; items that only the server has keep their order and stay before the first patch
//! item that used to follow them.

use std::collections::HashMap;

use serde_json::Value;

/// What identifies an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyed<'a> {
    /// The item itself.
    Scalars,
    /// A member of the item.
    By(&'a str),
}

/// Puts `items` into order: `wanted` first of all, else as in `server`.
pub(super) fn arrange(
    items: Vec<Value>,
    wanted: &[Value],
    server: &[Value],
    keyed: Keyed<'_>,
) -> Result<Vec<Value>, String> {
    let wanted = places(wanted, keyed)?;
    let server = places(server, keyed)?;
    let mut named = Vec::new();
    let mut server_only = Vec::new();
    for item in items {
        let id = identity(&item, keyed)?;
        if wanted.contains_key(&id) { named.push((id, item)) } else { server_only.push((id, item)) }
    }
    sort(&mut named, &wanted);
    sort(&mut server_only, &server);

    let mut out = Vec::with_capacity(named.len() + server_only.len());
    let mut left = server_only.into_iter().peekable();
    for (id, item) in named {
        if let Some(here) = server.get(&id) {
            while let Some((_, earlier)) = left.next_if(|(id, _)| server.get(id).is_some_and(|at| at < here))
            {
                out.push(earlier);
            }
        }
        out.push(item);
    }
    out.extend(left.map(|(_, item)| item));
    Ok(out)
}

/// Beyond this the real server's sort is no longer plain insertion.
const SMALL: usize = 20;

/// Sorts by place. Items that have none move as the real server's sort moves them, whose comparison
/// holds for every pair with an unknown item, either way round.
fn sort(items: &mut [(String, Value)], places: &HashMap<String, usize>) {
    if items.len() > SMALL || items.iter().all(|(id, _)| places.contains_key(id)) {
        // Stable: several items with one key stay as they are.
        items.sort_by_key(|(id, _)| places.get(id).copied().unwrap_or(usize::MAX));
        return;
    }
    for end in 1..items.len() {
        for at in (1..=end).rev() {
            let before = match (places.get(&items[at].0), places.get(&items[at - 1].0)) {
                (Some(this), Some(previous)) => this < previous,
                _ => true,
            };
            if !before {
                break;
            }
            items.swap(at, at - 1);
        }
    }
}

/// First position of each identity.
fn places(list: &[Value], keyed: Keyed<'_>) -> Result<HashMap<String, usize>, String> {
    let mut places = HashMap::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        places.entry(identity(item, keyed)?).or_insert(at);
    }
    Ok(places)
}

fn identity(item: &Value, keyed: Keyed<'_>) -> Result<String, String> {
    match keyed {
        Keyed::Scalars => Ok(item.to_string()),
        Keyed::By(key) => {
            let id = item.get(key).map(Value::to_string);
            id.ok_or_else(|| super::no_merge_key(item, key))
        }
    }
}
