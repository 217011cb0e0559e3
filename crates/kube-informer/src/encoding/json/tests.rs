//! What the encoding promises, sentence by sentence; then [`model`] and [`fuzz`] against serde_json.

mod cutting;
mod faults;
mod fuzz;
mod metadata;
mod model;
mod oracle;
mod seeking;
mod speed;

use super::*;
use crate::encoding::{Fault, ManagedFields};

/// A pod as the server sends it: on one line, 14 KB, almost half of it `managedFields` of four managers.
const POD: &[u8] = include_bytes!("../../../tests/data/pod.json");

/// An object with a name, and other members of the root.
fn named(members: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Thing","metadata":{{"name":"web","namespace":"shop"}}{members}}}"#)
}

/// An object with other fields in its metadata.
fn with_fields(fields: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Thing","metadata":{{"name":"web","namespace":"shop"{fields}}}}}"#)
}

/// Rules that drop fields.
fn rules(managed_fields: ManagedFields, drop: &[&str]) -> Rules {
    let mut rules = Rules::default();
    rules.managed_fields = managed_fields;
    drop.iter().fold(rules, |rules, pointer| rules.drop(Pointer::parse(pointer).unwrap()).unwrap())
}

/// Rules that drop fields and leave `managedFields` as they are.
fn dropping(pointers: &[&str]) -> Rules {
    rules(ManagedFields::Keep, pointers)
}

/// What is kept of a document.
#[track_caller]
fn kept(document: &str, rules: &Rules) -> String {
    let mut out = b"what was there before".to_vec();
    if let Err(error) = ingest(document.as_bytes(), None, rules, &mut out) {
        panic!("{error}: {document}");
    }
    String::from_utf8(out).unwrap()
}

/// What is wrong with a document. Nothing is kept of it.
#[track_caller]
fn error(document: impl AsRef<[u8]>) -> DecodeError {
    let mut out = b"what was there before".to_vec();
    let error = ingest(document.as_ref(), None, &Rules::default(), &mut out).unwrap_err();
    assert!(out.is_empty());
    error
}

/// The long forms of tests run where they are asked for.
fn full() -> bool {
    std::env::var_os("KUBE_INFORMER_FULL").is_some_and(|value| value == "1")
}

/// Numbers that are the same on every run, and look like chance.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a limit.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}
