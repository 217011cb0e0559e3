//! Selectors beside Kubernetes' own parser, and beside a naive reading of the rules.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::encoding::{Codec, Encoding, Rules};
use crate::object::Intake;

/// What Kubernetes makes of selectors.
const KUBERNETES: &str = include_str!("kubernetes.txt");

#[test]
fn what_kubernetes_accepts_is_accepted_and_what_it_refuses_is_refused() {
    let mut rows = 0;
    for line in KUBERNETES.lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once('\t').unwrap();
        let text: String = serde_json::from_str(text).unwrap();
        let parsed = text.parse::<Selector>();
        rows += 1;
        if expected == "refused" {
            assert!(parsed.is_err(), "{text:?} is refused by Kubernetes, but is {parsed:?}");
            continue;
        }
        let expected: String = serde_json::from_str(expected).unwrap();
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}, and it is {expected:?}"));
        assert_eq!(parsed.to_string(), expected, "{text:?}");
        assert_eq!(expected.parse::<Selector>().unwrap(), parsed, "{text:?}");
    }
    assert!(rows > 800, "{rows}");
}

#[test]
fn an_error_says_where_and_what_was_expected() {
    let said = |text: &str| text.parse::<Selector>().unwrap_err();
    for (text, at, why) in [
        ("app in web", 7, "expected (, found \"web\""),
        ("app in (web", 11, "expected a comma or ), found the end"),
        ("app in (web api)", 12, "expected a comma or ), found \"api\""),
        ("app in (", 8, "expected a value, a comma or ), found the end"),
        ("app web", 4, "expected one of in, notin, =, ==, !=, >, <, a comma or the end, found \"web\""),
        ("app=web,", 8, "expected a label's key or !, found the end"),
        ("!,app", 1, "expected a label's key after !, found \",\""),
        ("!app=web", 4, "expected a comma or the end, found \"=\""),
        ("app==!", 5, "expected a value, found \"!\""),
        ("a,  cores > many", 12, "GreaterThan wants one whole number of 64 bits, and got many"),
        (
            "a,-b=c",
            2,
            "\"-b\" cannot be the key of a label: the name must be of letters, digits and inner -, _ and .",
        ),
        (
            "a,X/b",
            2,
            "\"X/b\" cannot be the key of a label: what stands before the slash must be a domain: parts of a-z, 0-9 and inner -, joined by dots",
        ),
        ("a/b/c", 0, "\"a/b/c\" cannot be the key of a label: there may be one slash"),
        (
            "a= b/c",
            3,
            "\"b/c\" cannot be the value of a label: it must be empty, or of letters, digits and inner -, _ and .",
        ),
    ] {
        let error = said(text);
        assert_eq!((error.at, error.why.to_string().as_str()), (at, why), "{text:?}");
        assert_eq!(error.to_string(), format!("label selector {text:?}, at byte {at}: {why}"));
    }
    // Kubernetes stops reading here, and would take the first.
    assert!("a\0".parse::<Selector>().is_err());
    assert!("\0a".parse::<Selector>().is_err());
}

#[test]
fn requirements_can_be_made_without_text() {
    let make = |operator, values: &[&str]| Requirement::new("app", operator, values.iter().copied());
    let two: Selector =
        [make(Operator::NotIn, &["b", "a", "b"]).unwrap(), make(Operator::Exists, &[]).unwrap()]
            .into_iter()
            .collect();
    assert_eq!(two.to_string(), "app notin (a,b),app");
    assert!(make(Operator::Exists, &["a"]).is_err());
    assert!(make(Operator::In, &[]).is_err());
    assert!(make(Operator::Equals, &["a", "b"]).is_err());
    assert!(make(Operator::NotEquals, &[]).is_err());
    assert!(make(Operator::LessThan, &["x"]).is_err());
    assert!(make(Operator::Equals, &["-"]).is_err());
    assert_eq!(make(Operator::In, &["a"]).unwrap().exact(), Some("a"));
    assert_eq!(make(Operator::NotIn, &["a"]).unwrap().exact(), None);
}

const KEYS: [&str; 4] = ["a", "b", "x.y/c", "in"];
const VALUES: [&str; 7] = ["", "a", "1", "5", "007", "in", "9223372036854775807"];

/// What a requirement means, in the words of Kubernetes' documentation.
fn naive(key: &str, operator: &str, values: &[&str], labels: &BTreeMap<&str, &str>) -> bool {
    let label = labels.get(key);
    let number = |text: &str| text.parse::<i128>().ok();
    match operator {
        "" => label.is_some(),
        "!" => label.is_none(),
        "=" | "==" | "in" => label.is_some_and(|label| values.contains(label)),
        "!=" | "notin" => !label.is_some_and(|label| values.contains(label)),
        ">" => label.and_then(|label| number(label)).is_some_and(|label| label > number(values[0]).unwrap()),
        "<" => label.and_then(|label| number(label)).is_some_and(|label| label < number(values[0]).unwrap()),
        _ => unreachable!(),
    }
}

fn text(key: &str, operator: &str, values: &[&str]) -> String {
    match operator {
        "" => key.to_owned(),
        "!" => format!("!{key}"),
        "in" | "notin" => format!("{key} {operator} ({})", values.join(" , ")),
        other => format!("{key} {other}{}", values[0]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_selector_means_what_its_requirements_mean(
        parts in proptest::collection::vec((
            proptest::sample::select(&KEYS[..]),
            proptest::sample::select(&["", "!", "=", "==", "!=", "in", "notin", ">", "<"][..]),
            proptest::collection::vec(proptest::sample::select(&VALUES[..]), 1..4),
            0_i64..10,
        ), 0..4),
        sets in proptest::collection::vec(
            proptest::collection::btree_map(
                proptest::sample::select(&KEYS[..]), proptest::sample::select(&VALUES[..]), 0..4),
            1..20),
    ) {
        let bounds: Vec<String> = parts.iter().map(|part| part.3.to_string()).collect();
        let parts: Vec<(&str, &str, Vec<&str>)> = parts.iter().zip(&bounds).map(|((key, operator, values, _), bound)| {
            let is_bound = matches!(*operator, ">" | "<");
            (*key, *operator, if is_bound { vec![bound.as_str()] } else { values.clone() })
        }).collect();
        // Where one value is asked for, the first counts.
        let one = |operator: &str| !matches!(operator, "in" | "notin");
        let text: Vec<String> = parts.iter().map(|(key, operator, values)| text(key, operator, values)).collect();
        let selector: Selector = text.join(",").parse().unwrap();
        prop_assert_eq!(&selector.to_string().parse::<Selector>().unwrap(), &selector);
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let mut intake = Intake::new(codec);
        for labels in sets {
            let expected = parts.iter().all(|(key, operator, values)| {
                naive(key, operator, if one(operator) { &values[..1] } else { values }, &labels)
            });
            let document = json!({"metadata": {"name": "a", "labels": labels}});
            let object = intake.object(document.to_string().as_bytes()).unwrap();
            prop_assert_eq!(selector.matches(object.labels()), expected, "{} on {:?}", selector, labels);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>(), mix in "[ab!=(),<> in\\n/.ä-]{0,20}") {
        for text in [text, mix] {
            if let Ok(selector) = text.parse::<Selector>() {
                prop_assert_eq!(&selector.to_string().parse::<Selector>().unwrap(), &selector);
            }
        }
    }
}
