//! Documents that went wrong: what is accepted is what serde_json accepts, and nothing panics.

use super::*;

/// What stands between two faults of a document: pieces that change its meaning.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u",
    "\\ud83d\\ude00",
    "\\udc00",
    "\\\"",
    "null",
    "true",
    "fals",
    "0",
    "-",
    ".",
    "e",
    "E+",
    "1e999",
    "9223372036854775808",
    "-0.0",
    "00",
    " ",
    "\n",
    "\t",
    "\0",
    "\u{1f}",
    "é",
    "😀",
    "\u{feff}",
    "\"name\"",
    "\"a\":1,",
    "\"metadata\":",
    "\"managedFields\":",
    "\"kind\":\"Status\",",
    "{}",
    "[]",
    "\"spec\":",
    "\"2026-03-01T09:15:00Z\"",
    "/*",
    "'",
    "<",
    "NaN",
];

/// The committed documents, in the order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/json");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10);
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn some_rules() -> Vec<Rules> {
    vec![
        Rules::default(),
        rules(ManagedFields::Writers, &["/spec", "/metadata/labels/app"]),
        rules(ManagedFields::Keep, &["/spec/b", "/spec/a", "/metadata/annotations", "/status/conditions"]),
    ]
}

fn mutate(document: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(document.len() + 1);
    let end = (at + dice.below(12)).min(document.len());
    match dice.below(7) {
        0 => document.truncate(at),
        1 => drop(document.drain(at..end)),
        2 => {
            let copy = document[at..end].to_vec();
            let to = dice.below(document.len() + 1);
            document.splice(to..to, copy);
        }
        3 if at < document.len() => document[at] ^= 1 << dice.below(8),
        4 if at < document.len() => document[at] = dice.below(256) as u8,
        _ => {
            let piece = PIECES[dice.below(PIECES.len())].bytes();
            let end = if dice.below(2) == 0 { at } else { (at + 1).min(document.len()) };
            document.splice(at..end, piece);
        }
    }
}

/// serde_json reads `-0` as a fraction; as a generation it is zero here.
fn is_a_known_difference(bytes: &[u8]) -> bool {
    let generation = seek(bytes, &Pointer::parse("/metadata/generation").unwrap());
    generation == Some(b"-0")
}

#[test]
fn the_committed_documents_are_judged_as_serde_json_judges_them() {
    for document in corpus() {
        for rules in some_rules() {
            oracle::compare(&document, &rules);
        }
    }
}

#[test]
fn a_document_that_is_cut_anywhere_is_cut() {
    for document in corpus() {
        // Behind the last bracket, only space can be missing.
        let end = document.trim_ascii_end().len();
        for length in 0..end {
            let error = error(&document[..length]);
            assert!(
                matches!(error.fault, Fault::Truncated | Fault::DuplicateKey { .. }),
                "{error}: {}",
                String::from_utf8_lossy(&document[..length])
            );
        }
    }
}

#[test]
fn a_damaged_document_is_accepted_only_where_serde_json_accepts_it() {
    let rounds = if full() { 500_000 } else { 20_000 };
    let corpus = corpus();
    let rules = some_rules();
    let pointers = ["", "/metadata/name", "/spec/containers/0/ports/0", "/spec/0/2/0/a", "/status"]
        .map(|p| Pointer::parse(p).unwrap());
    let mut dice = Dice::new(7);
    let mut accepted = 0;
    for round in 0..rounds {
        let mut document = corpus[dice.below(corpus.len())].clone();
        for _ in 0..=dice.below(3) {
            mutate(&mut document, &mut dice);
        }
        // What was never checked is looked into, too: it must only not panic.
        let _ = metadata(&document);
        for pointer in &pointers {
            let _ = seek(&document, pointer);
        }
        if !is_a_known_difference(&document) {
            accepted += usize::from(oracle::compare(&document, &rules[round % rules.len()]));
        }
    }
    // Both answers are given often.
    assert!(accepted > rounds / 20 && accepted < rounds / 2, "{accepted} of {rounds}");
}

#[test]
fn words_of_json_in_any_order_are_accepted_only_where_serde_json_accepts_them() {
    let rounds = if full() { 500_000 } else { 20_000 };
    let mut dice = Dice::new(11);
    let rules = dropping(&[]);
    let mut accepted = 0;
    for _ in 0..rounds {
        let mut value = String::new();
        for _ in 0..=dice.below(5) {
            value.push_str(PIECES[dice.below(PIECES.len())]);
        }
        accepted += usize::from(oracle::compare(named(&format!(r#","a":{value}"#)).as_bytes(), &rules));
    }
    assert!(accepted > 100, "{accepted} of {rounds}");
}
