use serde_json::json;

use super::*;

// The same templates and objects, here and to kubectl.
mod against_kubectl;

// Whatever comes, nothing panics.
mod any_input;

/// An object of all sorts of values.
pub(super) fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {
            "name": "web",
            "labels": { "app.kubernetes.io/name": "web", "tier": "front" },
            "annotations": { "a.b/c-d": "dotted" },
        },
        "spec": {
            "replicas": 3,
            "zero": 0,
            "huge": 9_007_199_254_740_993_i64,
            "ratio": 0.25,
            "large": 12_345_678.5,
            "on": true,
            "off": false,
            "empty": "",
            "text": "two words",
            "html": "<a href=\"x\">&</a>",
            "words": ["zero", "one", "two", "three", "four"],
            "numbers": [3, 1, 2],
            "none": [],
            "nothing": {},
            "single": { "key": "value" },
            "matrix": [[1, 2], [3, 4]],
            "containers": [
                { "name": "app", "image": "app:1", "ports": [{ "port": 80 }, { "port": 443 }], "cpu": 2, "ok": true },
                { "name": "side", "image": "side:2", "ports": [], "cpu": 1, "ok": false },
                { "name": "tool", "image": "tool:3", "cpu": 3, "ok": true, "share": 0.5 },
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                { "type": "Ready", "status": "True" },
                { "type": "Scheduled", "status": "False", "reason": "it's (odd)" },
            ],
        },
    })
}

fn render(template: &str) -> String {
    let read = Template::parse(template).unwrap_or_else(|error| panic!("{}", error.explain(template)));
    read.render(&object()).unwrap_or_else(|error| panic!("{}", error.explain(template)))
}

fn fails(template: &str) -> String {
    let rendered = Template::parse(template).and_then(|read| read.render(&object()));
    rendered.unwrap_err().explain(template)
}

#[test]
fn paths_find_what_they_name() {
    for (template, expected) in [
        ("{.spec.replicas}", "3"),
        ("{.metadata.labels['tier']}", "front"),
        (r"{.metadata.labels.app\.kubernetes\.io/name}", "web"),
        (r"{.metadata.labels['app\.kubernetes\.io/name']}", "web"),
        ("{.spec.words[0]} {.spec.words[-1]}", "zero four"),
        ("{.spec.words[1:3]}", "one two"),
        ("{.spec.words[::2]}", "zero two four"),
        ("{.spec.words[0,2]}", "zero two"),
        ("{.spec.containers[*].name}", "app side tool"),
        ("{.spec.containers[?(@.name==\"side\")].image}", "side:2"),
        ("{.spec.containers[?(@.cpu>=2)].name}", "app tool"),
        ("{.spec.containers[?(@.share)].name}", "tool"),
        ("{..port}", "80 443"),
        ("{.spec.containers[0]['name','image']}", "app app:1"),
        ("{.spec.none[*]}{.missing.deeper}", ""),
        ("{.spec.single}", r#"{"key":"value"}"#),
        ("no action", "no action"),
        ("", ""),
    ] {
        assert_eq!(render(template), expected, "{template}");
    }
}

#[test]
fn ranges_repeat_what_is_in_them() {
    let template = r#"{range .spec.containers[*]}{.name}={.image}{"\n"}{end}done"#;
    assert_eq!(render(template), "app=app:1\nside=side:2\ntool=tool:3\ndone");
    let nested = "{range .spec.containers[*]}{@.name}:{range .ports[*]}{.port},{end};{end}";
    assert_eq!(render(nested), "app:80,443,;side:;tool:;");
    assert_eq!(render("{range .missing[*]}{.name}{end}after"), "after");
}

#[test]
fn entries_of_objects_come_in_the_order_of_their_keys() {
    assert_eq!(render("{.metadata.labels.*}"), "web front");
}

#[test]
fn errors_name_the_place() {
    for (template, expected) in [
        ("{.spec.words[}", "unterminated array at character 13"),
        ("äö{.spec.words[}", "unterminated array at character 15"),
        ("{.spec", "unclosed action at character 7"),
        ("{.a[x]}", "invalid array index x at character 5"),
        ("{.spec.words[99]}", "array index out of bounds: index 99, length 5 at character 13"),
        ("{.a[?(@.b)", "unclosed array expect ] at character 10"),
        ("{.a[?(@.b]}", "unterminated filter at character 4"),
        ("{.a[?(@.b==~)]}", "unrecognized character in action: U+007E '~' at character 12"),
        ("{name}", "unrecognized identifier name"),
        ("{end}", "not in range, nothing to end at character 2"),
        ("{.a range}", "write {range PATH} and {end}"),
        ("{.a[?(@.b==[x])]}", "invalid array index x at character 13"),
        ("{.a[0, x]}", "invalid array index x at character 8"),
        ("{.a['b[']}", "unterminated array at character 7"),
        ("{'a}", "unterminated quoted string at character 2"),
    ] {
        assert!(fails(template).contains(expected), "{template}: {}", fails(template));
    }
}

#[test]
fn a_template_can_be_used_again() {
    let template = Template::parse("{range .spec.words[*]}{@}{end}").unwrap();
    let first = template.render(&object()).unwrap();
    assert_eq!(template.render(&object()).unwrap(), first);
}

#[test]
fn paths_can_be_written_without_braces() {
    for path in ["{.a.b}", "{a.b}", ".a.b", "a.b"] {
        assert_eq!(relaxed(path).unwrap(), "{.a.b}", "{path}");
    }
    for wrong in ["", "{}", ".", "{.a}{.b}", "{.a", ".a}"] {
        assert!(relaxed(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_would_take_too_much_is_refused() {
    let wide = json!({ "a": vec![0; 10_000] });
    let too_much = |template: &str| {
        let error = Template::parse(template).unwrap().render(&wide).unwrap_err();
        assert_eq!(error.to_string(), "the template finds too much", "{template}");
    };
    too_much(&format!("{{[{}][*]}}", ["'a'"; 20].join(",")));
    too_much(&format!("{{[{}][?(@==0)]}}", ["'a'"; 200].join(",")));
    // A range that is never closed is gone through twice, and so is each one in it.
    too_much(&"{range}".repeat(DEEPEST));
    let deep = "{range .a}".repeat(DEEPEST + 1);
    assert!(Template::parse(&deep).is_err());
    assert!(Template::parse(&"a".repeat(LONGEST + 1)).is_err());
}
