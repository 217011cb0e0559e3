use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fields::tests::any_json;
use crate::strategy::tests::{RESOURCES, resource};

#[test]
fn a_step_leads_to_every_item_and_makes_only_what_it_is_told_to() {
    let rules =
        [unset(&[&["a[]", "b[]"], &["c"]], "d", Default::Int(1)), zero(&[&["e!"]], "f", Default::Empty)];
    let mut value = json!({ "a": [{ "c": {} }, { "c": { "d": 0 } }, {}], "b": [{ "c": {} }], "x": 1 });
    apply_rules(&rules, &mut value);
    assert_eq!(
        value,
        json!({ "a": [{ "c": { "d": 1 } }, { "c": { "d": 0 } }, {}], "b": [{ "c": { "d": 1 } }],
                "e": { "f": {} }, "x": 1 })
    );
}

proptest! {
    #[test]
    fn defaults_are_total_and_filled_in_once(
        index in 0..RESOURCES.len(), spec in any_json(), status in any_json(), metadata in any_json(),
    ) {
        let resource = resource(RESOURCES[index].0, RESOURCES[index].1);
        let mut object = json!({ "metadata": metadata, "spec": spec, "status": status });
        apply(&resource, &mut object);
        let once = object.clone();
        apply(&resource, &mut object);
        prop_assert_eq!(once, object);
    }
}
