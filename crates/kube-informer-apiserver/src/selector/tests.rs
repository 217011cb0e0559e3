use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fields::FieldTerm;
use super::*;
use crate::kinds::Resource;

fn resource(group: &str, plural: &str) -> Resource {
    let namespaced = !matches!(plural, "nodes" | "namespaces");
    Resource { namespaced, ..crate::kinds::test_resource(group, "v1", "", plural) }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn every_operator_matches_as_it_says() {
    let web = labels(&[("app", "web"), ("n", "5"), ("empty", "")]);
    for (selector, want) in [
        ("", true),
        ("app", true),
        ("!app", false),
        ("!none", true),
        ("app=web", true),
        ("app==web", true),
        ("app!=web", false),
        ("none!=web", true),
        ("app in (db, web)", true),
        ("app notin (db,web)", false),
        ("none notin (x)", true),
        ("none in (x)", false),
        ("n>4", true),
        ("n<5", false),
        ("app>4", false),
        ("empty=", true),
        ("empty in ()", true),
        ("app=web,n", true),
        ("app=web,none", false),
    ] {
        let selector = LabelSelector::parse(selector).unwrap();
        assert_eq!(selector.matches(&web), want, "{selector}");
    }
    assert!(LabelSelector::parse("").unwrap().matches(&BTreeMap::new()));
    assert!(!LabelSelector::parse("a").unwrap().matches(&BTreeMap::new()));
}

#[test]
fn label_selectors_are_refused_in_the_words_of_the_real_server() {
    let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    for (selector, want) in [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned()),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier".to_owned()),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier".to_owned()),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        (",a", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a=b=c", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a=(", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
        ),
        ("/x=1", "unable to parse requirement: <nil>: Invalid value: \"/x\": prefix part must be non-empty".to_owned()),
        ("-a=b", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": name part {name}")),
        (
            "a/b/c",
            format!(
                "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key {name} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ),
        ),
        (
            "A_/x=1",
            "unable to parse requirement: <nil>: Invalid value: \"A_/x\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned(),
        ),
        (
            "a=-b",
            "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned(),
        ),
    ] {
        assert_eq!(LabelSelector::parse(selector), Err(want), "{selector}");
    }
    let long = "x".repeat(64);
    assert!(LabelSelector::parse(&long).unwrap_err().ends_with("name part must be no more than 63 bytes"));
}

#[test]
fn in_and_notin_are_words_where_no_operator_stands() {
    let selector = LabelSelector::parse("in in (in,notin),notin").unwrap();
    assert!(selector.matches(&labels(&[("in", "notin"), ("notin", "")])));
}

#[test]
fn a_selector_in_an_object_has_two_parts() {
    let selector = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    });
    let selector = LabelSelector::from_json(&selector).unwrap();
    assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
    assert!(selector.matches(&labels(&[("app", "web"), ("tier", "a")])));
    assert!(!selector.matches(&labels(&[("app", "web")])));
    assert!(LabelSelector::from_json(&json!({})).unwrap().matches(&labels(&[])));
    assert!(!LabelSelector::from_json(&Value::Null).unwrap().matches(&labels(&[])));
    let odd = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    assert_eq!(
        LabelSelector::from_json(&odd).unwrap_err(),
        "\"Like\" is not a valid label selector operator"
    );
}

#[test]
fn field_selectors_are_terms_with_escapes() {
    let selector = FieldSelector::parse(r"metadata.name=a\,b\=c\\,spec.nodeName!=n,type==x,").unwrap();
    let term = |path: &str, equals, value: &str| FieldTerm {
        path: path.to_owned(),
        equals,
        value: value.to_owned(),
    };
    let want =
        [term("metadata.name", true, r"a,b=c\"), term("spec.nodeName", false, "n"), term("type", true, "x")];
    assert_eq!(selector.terms(), want);
    assert_eq!(selector.to_string(), r"metadata.name=a\,b\=c\\,spec.nodeName!=n,type=x");
    assert_eq!(selector.exact_name(), Some(r"a,b=c\"));
}

#[test]
fn field_selectors_are_refused_in_the_words_of_the_real_server() {
    for (selector, want) in [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b"),
        ("metadata.name=a,b", "invalid selector: 'metadata.name=a,b'; can't understand 'b'"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        ("metadata.name=x\\", "invalid field selector: invalid escape sequence: \\"),
    ] {
        assert_eq!(FieldSelector::parse(selector), Err(want.to_owned()), "{selector}");
    }
}

#[test]
fn fields_that_a_resource_does_not_offer_are_refused() {
    let refused = |group: &str, plural: &str, field: &str| {
        let selector = FieldSelector::parse(&format!("{field}=x")).unwrap();
        selector.for_resource(&resource(group, plural), &[]).unwrap_err()
    };
    let default = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    assert_eq!(refused("", "configmaps", "spec.foo"), format!("\"spec.foo\" {default}"));
    assert_eq!(refused("apps", "replicasets", "status.replicas"), format!("\"status.replicas\" {default}"));
    assert_eq!(refused("", "pods", "spec.foo"), "field label not supported: spec.foo");
    assert_eq!(refused("", "namespaces", "name"), "field label not supported: name");
    assert_eq!(refused("", "nodes", "metadata.namespace"), "field label not supported: metadata.namespace");
    assert_eq!(refused("batch", "jobs", "spec.foo"), "field label \"spec.foo\" not supported for Job");
    assert_eq!(
        refused("resource.k8s.io", "resourceslices", "spec.foo"),
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.foo"
    );
}

#[test]
fn pods_are_selected_by_node_phase_and_more() {
    let pods = resource("", "pods");
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"nodeName": "n1", "restartPolicy": "Always"},
        "status": {"phase": "Running", "podIPs": [{"ip": "1.2.3.4"}]},
    });
    for (selector, want) in [
        ("spec.nodeName=n1,status.phase!=Failed", true),
        ("spec.host=n1", true),
        ("spec.nodeName=", false),
        ("status.podIP=1.2.3.4,spec.hostNetwork=false,metadata.namespace=ns", true),
        ("status.podIPs=1.2.3.4", false),
        ("status.nominatedNodeName=", true),
    ] {
        let selector = FieldSelector::parse(selector).unwrap().for_resource(&pods, &[]).unwrap();
        assert_eq!(selector.matches(&field_values(&pods, &pod)), want, "{selector}");
    }
}

#[test]
fn both_groups_name_the_fields_of_events_their_own_way() {
    let core =
        json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}, "reportingComponent": "c"});
    let events = json!({"metadata": {"name": "e"}, "regarding": {"kind": "Pod"}, "reportingController": "c"});
    for (group, object, selector) in [
        ("", core, "involvedObject.kind=Pod,reportingComponent=c,source=c"),
        ("events.k8s.io", events, "regarding.kind=Pod,reportingController=c"),
    ] {
        let resource = resource(group, "events");
        let selector = FieldSelector::parse(selector).unwrap().for_resource(&resource, &[]).unwrap();
        assert!(selector.matches(&field_values(&resource, &object)), "{group}");
    }
}

#[test]
fn selectable_fields_of_a_custom_resource_come_from_the_caller() {
    let resource = resource("ex.io", "widgets");
    let own = ["spec.color".to_owned()];
    let selector = FieldSelector::parse("spec.color=red").unwrap().for_resource(&resource, &own).unwrap();
    let mut values = field_values(&resource, &json!({"metadata": {"name": "w"}}));
    values.push(("spec.color".to_owned(), "red".to_owned()));
    assert!(selector.matches(&values));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ a-z=!(),<>/.\\\\-]{0,24}") {
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }

    #[test]
    fn a_selector_reads_its_own_text(
        parts in prop::collection::vec("!?[a-c]|[a-c](=|==|!=)[x-z]?|[a-c] (in|notin) \\([x-z](,[x-z])?\\)|[a-c][<>][0-9]", 0..4),
        labels in prop::collection::btree_map("[a-c]", "[x-z0-9]", 0..3),
    ) {
        let one = LabelSelector::parse(&parts.join(",")).unwrap();
        let two = LabelSelector::parse(&one.to_string()).unwrap();
        prop_assert_eq!(one.matches(&labels), two.matches(&labels));
        // All must hold: the whole is the conjunction of its parts.
        let each = parts.iter().all(|part| LabelSelector::parse(part).unwrap().matches(&labels));
        prop_assert_eq!(one.matches(&labels), each);
    }

    #[test]
    fn a_field_selector_keeps_any_value(value in "[a,=\\\\!]{0,8}") {
        let term = FieldTerm { path: "metadata.name".to_owned(), equals: true, value };
        let escaped = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        let selector = FieldSelector::parse(&format!("metadata.name={escaped}")).unwrap();
        prop_assert_eq!(selector.terms(), [term]);
    }
}
