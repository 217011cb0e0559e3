//! What a pointer names.

use super::*;

const DOCUMENT: &str = concat!(
    r#"{"a":{"b":[10,{"c":"d"},[]],"0":"zero","":"empty"},"x/y":1,"x~y":2,"\u00e9":3, "s" : { "t" : 1.50 } ,"#,
    r#""n":null,"big":[0,1,2,3,4,5,6,7,8,9,10]}"#,
);

#[track_caller]
fn found(pointer: &str) -> Option<&'static str> {
    let found = seek(DOCUMENT.as_bytes(), &Pointer::parse(pointer).unwrap())?;
    Some(std::str::from_utf8(found).unwrap())
}

#[test]
fn a_pointer_leads_through_objects_and_arrays() {
    assert_eq!(found("/a/b/0"), Some("10"));
    assert_eq!(found("/a/b/1"), Some(r#"{"c":"d"}"#));
    assert_eq!(found("/a/b/1/c"), Some(r#""d""#));
    assert_eq!(found("/a/b/2"), Some("[]"));
    assert_eq!(found("/a/0"), Some(r#""zero""#));
    assert_eq!(found("/a/"), Some(r#""empty""#));
    assert_eq!(found("/n"), Some("null"));
    assert_eq!(found("/big/10"), Some("10"));
}

#[test]
fn the_empty_pointer_names_the_whole_document() {
    assert_eq!(found(""), Some(DOCUMENT));
    assert_eq!(seek(b" [1] ", &Pointer::parse("").unwrap()), Some(&b"[1]"[..]));
}

#[test]
fn what_is_found_has_no_space_around_it() {
    assert_eq!(found("/s"), Some(r#"{ "t" : 1.50 }"#));
    assert_eq!(found("/s/t"), Some("1.50"));
}

#[test]
fn tokens_are_compared_with_keys_without_escapes() {
    assert_eq!(found("/x~1y"), Some("1"));
    assert_eq!(found("/x~0y"), Some("2"));
    assert_eq!(found("/é"), Some("3"));
}

#[test]
fn what_is_not_there_is_not_found() {
    for pointer in ["/b", "/a/b/3", "/a/b/-", "/a/b/01", "/a/b/+1", "/a/b/", "/n/x", "/x~1y/0", "/a/b/1/c/d"]
    {
        assert_eq!(found(pointer), None, "{pointer}");
    }
    assert_eq!(found("/a/b/99999999999999999999999"), None);
}

#[test]
fn nothing_is_found_in_bytes_that_are_cut_before_it_ends() {
    let pod = include_bytes!("../../../../tests/corpus/json/pod.json");
    let pointer = Pointer::parse("/spec/containers/0/name").unwrap();
    let whole = seek(pod, &pointer).unwrap();
    assert_eq!(whole, br#""web""#);
    let end = whole.as_ptr() as usize - pod.as_ptr() as usize + whole.len();
    for length in 0..pod.len() {
        let expected = (length >= end).then_some(whole);
        assert_eq!(seek(&pod[..length], &pointer), expected, "{length}");
    }
}
