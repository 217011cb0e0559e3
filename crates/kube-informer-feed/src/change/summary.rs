//! One line for people, out of what the differences mean.

use std::collections::{BTreeMap, HashSet};

use super::Class;
use super::cut::head;
use super::fact::Fact;
use super::image;

/// What does not fit is counted.
const LONGEST: usize = 240;

/// Of one group, such as the variables of one container, not more are told one by one.
const ONE_BY_ONE: usize = 3;

/// "replicas 3→5; image web 1.4→1.5". `more`: what is not among the facts.
pub(super) fn of_changes(mut facts: Vec<Fact>, more: usize) -> String {
    let most = facts.iter().map(|fact| fact.weight).max();
    facts.retain(|fact| Some(fact.weight) == most);
    // What is being deleted is said first.
    facts.sort_by_key(|fact| (fact.class != Class::Delete, fact.class));
    let mut sizes = BTreeMap::<String, usize>::new();
    for fact in facts.iter().filter(|fact| !fact.group.is_empty()) {
        *sizes.entry(fact.group.clone()).or_default() += 1;
    }
    let mut said = HashSet::new();
    let items = facts.into_iter().filter_map(|fact| {
        let many = sizes.get(&fact.group).filter(|size| **size > ONE_BY_ONE);
        let text = match many {
            Some(size) => format!("{} {size} changes", fact.group),
            None => fact.text,
        };
        said.insert(text.clone()).then_some(text)
    });
    let items: Vec<String> = items.collect();
    if items.is_empty() && more == 0 {
        return "no visible change".to_owned();
    }
    line(items, more)
}

/// "created; replicas 3; image web 1.4".
pub(super) fn of_state(what: &str, state: &[(Vec<String>, serde_json::Value)]) -> String {
    let mut items = vec![what.to_owned()];
    for (place, value) in state {
        items.push(match (place.as_slice(), value.as_str()) {
            ([.., name, last], Some(text)) if last == "image" && place.len() > 2 => {
                format!("image {name} {}", image::whole(text))
            }
            ([.., last], Some(text)) => format!("{last} {}", image::whole(text)),
            ([.., last], None) => format!("{last} {value}"),
            ([], _) => continue,
        });
    }
    line(items, 0)
}

/// As many as fit; at least one, and of that as much as fits.
fn line(items: Vec<String>, more: usize) -> String {
    let total = items.len() + more;
    let mut line = String::new();
    let mut told = 0;
    for item in items {
        let item = one_line(&item);
        if told > 0 && line.len() + item.len() + 2 > LONGEST {
            break;
        }
        line.push_str(if told == 0 { "" } else { "; " });
        line.push_str(head(&item, LONGEST));
        told += 1;
    }
    match total - told {
        0 => line,
        rest if told == 0 => format!("{rest} changes"),
        rest => format!("{line}; and {rest} more"),
    }
}

/// Without what would break a line, or make a terminal do something.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
