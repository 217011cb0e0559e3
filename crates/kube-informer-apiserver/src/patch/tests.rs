use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::{Node, NodeKind, Schema, SchemaSet};

fn patched(doc: &Value, ops: &Value) -> Result<Value, PatchError> {
    let mut doc = doc.clone();
    json_patch(&mut doc, ops).map(|()| doc)
}

fn merged(doc: &Value, patch: &Value) -> Value {
    let mut doc = doc.clone();
    merge_patch(&mut doc, patch).unwrap();
    doc
}

fn strategic(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut doc = doc.clone();
    strategic_merge(&mut doc, patch, Some(&schema())).map(|()| doc)
}

/// `{finalizers: set of strings, items: list by name with nested env by name, plain: atomic list,
/// labels: map, tables: map of objects}`
fn schema() -> Schema {
    let leaf = Node { kind: NodeKind::String, ..Node::default() };
    let list = |items, merge_key: Option<&str>, merge| Node {
        kind: NodeKind::Array,
        items: Some(items),
        merge,
        merge_key: merge_key.map(str::to_owned),
        ..Node::default()
    };
    let object = |fields: &[(&str, u32)]| Node {
        kind: NodeKind::Object,
        properties: fields.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect(),
        ..Node::default()
    };
    let map = |values| Node { kind: NodeKind::Object, additional: Some(values), ..Node::default() };
    let nodes = vec![
        object(&[("finalizers", 2), ("items", 3), ("plain", 6), ("labels", 7), ("tables", 8), ("one", 4)]),
        leaf,
        list(1, None, true),
        list(4, Some("name"), true),
        object(&[("name", 1), ("image", 1), ("env", 5)]),
        list(4, Some("name"), true),
        list(1, None, false),
        map(1),
        map(4),
    ];
    Schema { set: Arc::new(SchemaSet { nodes }), node: 0 }
}

fn names(doc: &Value) -> Vec<&str> {
    doc["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

fn items(names: &[&str]) -> Value {
    Value::Array(names.iter().map(|name| json!({ "name": name })).collect())
}

// JSON Patch.

#[test]
fn operations_are_applied_in_order() {
    let doc = json!({"a": {"b": [1, 2, 3]}, "x/y~z": 1});
    let ops = json!([
        {"op": "test", "path": "/a/b/0", "value": 1},
        {"op": "add", "path": "/a/b/1", "value": 9},
        {"op": "add", "path": "/a/b/-", "value": 8},
        {"op": "remove", "path": "/a/b/0"},
        {"op": "replace", "path": "/a/b/-1", "value": 7},
        {"op": "move", "from": "/x~1y~0z", "path": "/moved"},
        {"op": "copy", "from": "/a/b", "path": "/copied"},
    ]);
    let want = json!({"a": {"b": [9, 2, 3, 7]}, "moved": 1, "copied": [9, 2, 3, 7]});
    assert_eq!(patched(&doc, &ops), Ok(want));
}

#[test]
fn the_library_of_the_real_server_is_more_lenient_than_the_rfc() {
    let doc = json!({"data": {"k": "v"}});
    let one = |op: Value| patched(&doc, &json!([op])).unwrap();
    assert_eq!(one(json!({"op": "replace", "path": "/data/new", "value": "x"}))["data"]["new"], "x");
    assert_eq!(one(json!({"op": "test", "path": "/data/none", "value": null})), doc);
    assert_eq!(one(json!({"op": "copy", "from": "/none", "path": "/data/k"}))["data"]["k"], Value::Null);
    assert_eq!(one(json!({"op": "add", "path": "/data/q"}))["data"]["q"], Value::Null);
}

#[test]
fn what_does_not_apply_is_422_without_a_reason() {
    let doc = json!({"a": [1], "s": "text", "n": null});
    for op in [
        json!({"op": "test", "path": "/a/0", "value": 2}),
        json!({"op": "remove", "path": "/none"}),
        json!({"op": "add", "path": "/none/x", "value": 1}),
        json!({"op": "add", "path": "/n/x", "value": 1}),
        json!({"op": "add", "path": "/s/x", "value": 1}),
        json!({"op": "add", "path": "/a/7", "value": 1}),
        json!({"op": "add", "path": "/a/x", "value": 1}),
        json!({"op": "replace", "path": "/a/1", "value": 1}),
        json!({"op": "move", "from": "/a", "path": "/a/0"}),
        json!({"op": "frob", "path": "/a"}),
        json!({"op": "add", "path": "", "value": 1}),
        json!({"op": "add"}),
        json!(null),
    ] {
        let error = patched(&doc, &json!([op.clone()])).unwrap_err();
        assert!(matches!(error, PatchError::DoesNotApply(_)), "{op}: {error:?}");
        let status = ApiError::from(error).to_json();
        let text = "the server rejected our request due to an error in our request";
        assert_eq!((&status["code"], &status["message"]), (&json!(422), &json!(text)));
        assert_eq!((&status["reason"], &status["details"]), (&json!("Invalid"), &json!({})));
    }
}

#[test]
fn a_patch_of_the_wrong_shape_is_400() {
    for (ops, what) in [
        (json!({}), "object into Go value of type []handlers.jsonPatchOp"),
        (json!(["x"]), "string into Go value of type handlers.jsonPatchOp"),
        (json!([{"op": "add", "path": 1}]), "number into Go struct field jsonPatchOp.path of type string"),
    ] {
        let want = format!("error decoding patch: json: cannot unmarshal {what}");
        assert_eq!(patched(&json!({}), &ops), Err(PatchError::Malformed(want)));
    }
    assert_eq!(ApiError::from(parse(b"[{").unwrap_err()).message, "invalid JSON patch");
}

#[test]
fn operations_are_counted() {
    let ops = Value::Array(vec![json!({"op": "test", "path": "/a", "value": null}); 10_001]);
    let error = ApiError::from(patched(&json!({}), &ops).unwrap_err());
    assert_eq!(error.code, 413);
    let text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(error.message, text);
}

#[test]
fn copies_cannot_blow_up_the_object() {
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let ops = Value::Array(vec![double; 200]);
    let error = patched(&json!({"a": ["x".repeat(100)]}), &ops).unwrap_err();
    assert!(error.to_string().starts_with("Unable to complete the copy"), "{error}");
}

#[test]
fn copies_cannot_dig_deeper_than_a_parser_reads() {
    let mut ops = vec![json!({"op": "add", "path": "/a", "value": {}})];
    let mut path = "/a".to_owned();
    for _ in 0..20 {
        let deeper = format!("{path}/a");
        ops.push(json!({"op": "copy", "from": "/a", "path": deeper}));
        path = format!("{path}{deeper}");
    }
    assert!(patched(&json!({}), &Value::Array(ops)).is_err());
}

#[test]
fn unknown_fields_of_operations_are_reported() {
    let ops = json!([{"op": "add", "path": "/a", "foo": 1}]);
    assert_eq!(unknown_op_fields(&ops), [r#"json patch unknown field "[0].foo""#]);
}

// JSON merge patch.

#[test]
fn the_examples_of_rfc_7386_hold() {
    for (doc, patch, want) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        assert_eq!(merged(&doc, &patch), want, "{doc} {patch}");
    }
}

#[test]
fn a_merge_patch_is_an_object() {
    let error = |patch: Value| ApiError::from(merge_patch(&mut json!({}), &patch).unwrap_err()).message;
    assert_eq!(error(Value::Null), "Invalid JSON Patch");
    let text =
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(error(json!([])), text);
}

// Strategic merge.

#[test]
fn keyed_lists_merge_by_key_and_scalars_by_value() {
    let doc = json!({"items": [{"name": "a", "image": "1", "env": [{"name": "x"}]}], "finalizers": ["f"], "plain": ["p"]});
    let patch = json!({
        "items": [{"name": "b"}, {"name": "a", "image": "2", "env": [{"name": "y"}]}],
        "finalizers": ["g", "f"],
        "plain": ["q"],
    });
    let want = json!({
        "items": [{"name": "b"}, {"name": "a", "image": "2", "env": [{"name": "y"}, {"name": "x"}]}],
        "finalizers": ["g", "f"],
        "plain": ["q"],
    });
    assert_eq!(strategic(&doc, &patch), Ok(want));
}

#[test]
fn items_that_only_the_server_has_stay_before_what_followed_them() {
    let doc = json!({"items": items(&["a", "b", "c", "d"])});
    let out = strategic(&doc, &json!({"items": items(&["d", "new", "b"])})).unwrap();
    assert_eq!(names(&out), ["a", "c", "d", "new", "b"]);
}

#[test]
fn set_element_order_decides() {
    let doc = json!({"items": items(&["a", "b", "c"]), "finalizers": ["1", "2", "3"]});
    let patch = json!({
        "$setElementOrder/items": items(&["c", "x", "a"]),
        "items": items(&["x"]),
        "$setElementOrder/finalizers": ["3", "1"],
    });
    let out = strategic(&doc, &patch).unwrap();
    assert_eq!(names(&out), ["b", "c", "x", "a"]);
    assert_eq!(out["finalizers"], json!(["2", "3", "1"]));
}

#[test]
fn an_order_list_that_contradicts_its_patch_is_refused() {
    let doc = json!({"items": items(&["a"])});
    let patch = json!({"$setElementOrder/items": items(&["y", "x"]), "items": items(&["x", "y"])});
    let error = ApiError::from(strategic(&doc, &patch).unwrap_err());
    let text = "The order in patch list:\n[map[name:x] map[name:y]]\n doesn't match $setElementOrder list:\n[map[name:y] map[name:x]]\n";
    assert_eq!((error.code, error.reason, error.message.as_str()), (500, "", text));
}

#[test]
fn directives_delete_and_replace() {
    let doc = json!({"items": items(&["a", "b"]), "labels": {"x": "1"}, "one": {"name": "n"}, "finalizers": ["1", "2"]});
    let delete =
        json!({"items": [{"name": "a", "$patch": "delete"}], "labels": {"$patch": "replace", "y": "2"}});
    let out = strategic(&doc, &delete).unwrap();
    assert_eq!((&out["items"], &out["labels"]), (&items(&["b"]), &json!({"y": "2"})));
    let replace = json!({"items": [{"$patch": "replace"}, {"name": "z"}], "one": {"$patch": "delete"}});
    let out = strategic(&doc, &replace).unwrap();
    assert_eq!((&out["items"], &out["one"]), (&items(&["z"]), &json!({})));
    let out = strategic(&doc, &json!({"$deleteFromPrimitiveList/finalizers": ["1", "9"]})).unwrap();
    assert_eq!(out["finalizers"], json!(["2"]));
    let out =
        strategic(&doc, &json!({"one": {"$retainKeys": ["image"], "image": "i"}, "labels": null})).unwrap();
    assert_eq!((&out["one"], out.get("labels")), (&json!({"image": "i"}), None));
}

#[test]
fn what_is_taken_whole_loses_its_nulls_and_directives() {
    let patch = json!({"one": {"name": null, "image": "i", "env": [{"name": "a", "$patch": "delete"}]}});
    let want = json!({"one": {"image": "i", "env": []}});
    assert_eq!(strategic(&json!({}), &patch), Ok(want));
}

#[test]
fn refusals_are_worded_as_on_the_real_server() {
    let doc = json!({"items": items(&["a"]), "one": {}, "tables": {"t": {}}});
    for (patch, code, text) in [
        (
            json!({"items": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (json!({"one": {"$patch": "frob"}}), 500, "unknown patch type: frob in map: map[$patch:frob]"),
        (json!({"one": {"$retainKeys": 1}}), 400, "invalid patch format of retainKeys"),
        (json!({"one": {"$retainKeys": ["a"], "image": "i"}}), 400, "invalid patch format of retainKeys"),
        (json!({"$deleteFromPrimitiveList": []}), 400, "invalid patch format of primitive list"),
        (json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list"),
        (
            json!({"items": [{"name": "x", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"tables": {"t": {"name": "x"}}}),
            500,
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        let error = ApiError::from(strategic(&doc, &patch).unwrap_err());
        assert_eq!((error.code, error.message.as_str()), (code, text), "{patch}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let names =
        prop::sample::select(vec!["name", "items", "finalizers", "env", "a", "$patch", "$retainKeys"]);
    let order =
        prop::sample::select(vec!["$setElementOrder/items", "$deleteFromPrimitiveList/finalizers", "one"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4i64).prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "delete", "replace", "/items/0", "/a", "add", "copy"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(prop_oneof![names.clone(), order.clone()], inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

/// RFC 7386, section 2, word for word.
fn model(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut out = target.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            out.remove(name);
        } else {
            out.insert(name.clone(), model(out.get(name).unwrap_or(&Value::Null), value));
        }
    }
    Value::Object(out)
}

/// Inside lists the real server drops nulls and the RFC does not, so the model is asked without lists.
fn without_lists(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.len().into(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), without_lists(v))).collect()),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn any_patch_on_any_object_ends(doc in any_json(), patch in any_json()) {
        let _ = patched(&doc, &patch);
        let _ = merge_patch(&mut doc.clone(), &patch);
        let _ = strategic(&doc, &patch);
    }

    #[test]
    fn any_operation_on_any_object_ends(
        doc in any_json(),
        op in prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]),
        path in "(/(items|a|0|1|-|-1|~0|~1)){0,3}",
        from in "(/(items|a|0|1)){0,3}",
        value in any_json(),
    ) {
        let _ = patched(&doc, &json!([{ "op": op, "path": path, "from": from, "value": value }]));
    }

    #[test]
    fn merge_patch_follows_the_rfc(doc in any_json(), patch in any_json()) {
        let (doc, patch) = (json!({ "x": doc }), json!({ "x": without_lists(&patch) }));
        prop_assert_eq!(merged(&doc, &patch), model(&doc, &patch));
    }

    #[test]
    fn an_added_value_can_be_tested_and_removed(doc in any_json(), value in any_json()) {
        let doc = json!({ "x": doc });
        let ops = json!([
            { "op": "add", "path": "/fresh", "value": value },
            { "op": "test", "path": "/fresh", "value": value },
            { "op": "remove", "path": "/fresh" },
        ]);
        prop_assert_eq!(patched(&doc, &ops), Ok(doc));
    }

    #[test]
    fn a_keyed_list_keeps_every_item_once(
        old in prop::sample::subsequence(vec!["a", "b", "c", "d"], 0..4).prop_shuffle(),
        change in prop::sample::subsequence(vec!["c", "d", "e", "f"], 0..4).prop_shuffle(),
    ) {
        let out = strategic(&json!({ "items": items(&old) }), &json!({ "items": items(&change) })).unwrap();
        let mut got = names(&out);
        // The patch's own order holds whatever the server had.
        prop_assert_eq!(got.iter().filter(|n| change.contains(n)).copied().collect::<Vec<_>>(), change.clone());
        let mut want: Vec<&str> = old.iter().chain(&change).copied().collect();
        want.sort_unstable();
        want.dedup();
        got.sort_unstable();
        prop_assert_eq!(got, want);
    }
}
