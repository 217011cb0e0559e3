//! Pointers and rules.

use super::*;

#[test]
fn a_pointer_is_parsed_and_written_back() {
    for text in ["", "/", "/spec", "/metadata/annotations/a.io~1b", "/a~0b/~01"] {
        assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
    }
    let pointer = Pointer::parse("/metadata/annotations/a.io~1b").unwrap();
    assert_eq!(pointer.tokens().collect::<Vec<_>>(), ["metadata", "annotations", "a.io/b"]);
}

#[test]
fn a_pointer_that_is_none_says_why() {
    for (text, why) in [("spec", "does not begin with /"), ("/a~2", "~ must be"), ("/a~", "~ must be")] {
        let error = Pointer::parse(text).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(text), "{error}");
    }
}

#[test]
fn what_identifies_an_object_cannot_be_dropped() {
    for text in ["", "/kind", "/apiVersion", "/metadata", "/metadata/name", "/metadata/uid/x"] {
        let error = Rules::default().drop(Pointer::parse(text).unwrap()).unwrap_err();
        assert!(error.to_string().contains("cannot be dropped"), "{error}");
    }
}

#[test]
fn rules_compare_equal_whatever_order_they_were_made_in() {
    let rules = |pointers: &[&str]| {
        pointers
            .iter()
            .fold(Rules::default(), |rules, text| rules.drop(Pointer::parse(text).unwrap()).unwrap())
    };
    assert_eq!(rules(&["/status", "/data"]), rules(&["/data", "/status", "/data"]));
}
