use proptest::prelude::*;
use serde_json::{Value, json};

use crate::crd::json_path::JsonPath;

fn find(path: &str, value: &Value) -> Vec<Value> {
    JsonPath::parse(path).unwrap().find(value).into_iter().cloned().collect()
}

#[test]
fn paths_lead_where_kubernetes_leads_them() {
    let object = json!({ "spec": {
        "a": { "b.c": 5, "d": [1, 2, 3, 4] },
        "conds": [{ "type": "Ready", "status": "True", "n": 3 }, { "type": "X", "status": "False", "n": 5 }],
        "s": "text",
        "m": { "x": { "v": 1 }, "y": { "v": 2 } },
    } });
    for (path, expected) in [
        (".spec.s", json!(["text"])),
        ("$.spec.s", json!(["text"])),
        (".spec['s']", json!(["text"])),
        (r".spec.a.b\.c", json!([5])),
        (r".spec.a['b\.c']", json!([5])),
        (".spec.a.d[0]", json!([1])),
        (".spec.a.d[-1]", json!([4])),
        (".spec.a.d[1:3]", json!([2, 3])),
        (".spec.a.d[::2]", json!([1, 3])),
        (".spec.a.d[-2:]", json!([3, 4])),
        (".spec.a.d[*]", json!([1, 2, 3, 4])),
        (".spec.a.d[0,2]", json!([1, 3])),
        (r#".spec.conds[?(@.type=="Ready")].status"#, json!(["True"])),
        (".spec.conds[?(@.type=='X')].status", json!(["False"])),
        (".spec.conds[?(@.n>4)].type", json!(["X"])),
        (".spec.conds[?(@.n)].type", json!(["Ready", "X"])),
        (r#".spec.conds[?(@.type!="Ready")].type"#, json!(["X"])),
        (r#".spec.conds[?(@.type=="a)b")].x"#, json!([])),
        (".spec.m.*.v", json!([1, 2])),
        (".spec..v", json!([1, 2])),
    ] {
        assert_eq!(Value::Array(find(path, &object)), expected, "{path}");
    }
}

#[test]
fn a_barred_way_leads_nowhere() {
    let object = json!({ "s": "text", "d": [1], "c": [{ "n": 1 }, { "n": 1.5 }], "nul": null });
    for path in
        [".d[9]", ".d[-2]", ".s[0]", ".s.x", ".missing.x", ".s[?(@.x==1)]", ".c[?(@.n>1)].n", ".nul[0]", "."]
    {
        assert_eq!(find(path, &object), [Value::Null; 0], "{path}");
    }
}

#[test]
fn a_path_that_cannot_be_read_is_an_error() {
    for path in
        [".spec[", ".a[x]", ".a[?(@.b==1)", ".a[?(@.b=1)]", "....a", "a", ".a[1:2:3:4]", r#".a[?(@.b=="x)]"#]
    {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

proptest! {
    #[test]
    fn dotted_names_are_followed_one_by_one(names in prop::collection::vec("[a-z.]{1,4}", 1..5), leaf in any::<i64>()) {
        let mut value = json!(leaf);
        for name in names.iter().rev() {
            value = json!({ name.as_str(): value });
        }
        let path: String = names.iter().map(|name| format!(".{}", name.replace('.', r"\."))).collect();
        prop_assert_eq!(find(&path, &value), vec![json!(leaf)]);
    }

    #[test]
    fn slices_are_those_of_a_list(length in 0_usize..8, start in 0_usize..8, end in 0_usize..9) {
        let list: Vec<usize> = (0..length).collect();
        let expected: Vec<Value> =
            list.get(start..end).unwrap_or_default().iter().map(|item| json!(item)).collect();
        // An end beyond the list is an error, which finds nothing, as Rust's own slices do.
        prop_assert_eq!(find(&format!("[{start}:{end}]"), &json!(list)), expected);
    }

    #[test]
    fn any_text_is_read_or_refused(path in r#"[.\[\]()?@$*:,'"\\=<>!0-9a-z -]{0,24}"#, value in super::totality::any_json()) {
        if let Ok(path) = JsonPath::parse(&path) {
            path.find(&value);
        }
    }
}
