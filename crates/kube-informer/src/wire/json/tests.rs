use proptest::prelude::*;

use super::*;

/// What following a value byte by byte gives: every turn, until the value ends.
fn byte_by_byte(bytes: &[u8]) -> Vec<Reached> {
    let mut extent = Extent::begin(bytes[0]).unwrap();
    let mut turns = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match extent.follow_byte(*byte) {
            Turn::None => {}
            Turn::TooDeep => turns.push(Reached::TooDeep(at + 1)),
            Turn::End => {
                turns.push(Reached::End(at + 1));
                return turns;
            }
        }
    }
    turns.push(Reached::More);
    turns
}

/// The same, in chunks of these sizes, again and again.
fn in_chunks(bytes: &[u8], sizes: &[usize]) -> Vec<Reached> {
    let mut extent = Extent::begin(bytes[0]).unwrap();
    let mut turns = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut at = 0;
    while at < bytes.len() {
        let end = (at + sizes.next().unwrap()).min(bytes.len());
        while at < end {
            match extent.follow(&bytes[at..end]) {
                Reached::End(length) => {
                    turns.push(Reached::End(at + length));
                    return turns;
                }
                Reached::TooDeep(length) => {
                    at += length;
                    turns.push(Reached::TooDeep(at));
                }
                Reached::More => at = end,
            }
        }
    }
    turns.push(Reached::More);
    turns
}

fn anything() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[{}\\[\\]\",:a]{1,3}".prop_map(String::into_bytes),
        2 => "[\\\\\"]{1,4}".prop_map(String::into_bytes),
        2 => "[a-z ]{1,80}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 1..12),
    ];
    (prop::sample::select(vec![b'{', b'[', b'"']), prop::collection::vec(piece, 0..40))
        .prop_map(|(first, pieces)| [vec![first], pieces.concat()].concat())
}

fn valid() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<i32>().prop_map(serde_json::Value::from),
        "[a-z\\\\\"{}\\[\\]é\n]{0,50}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-z\\\\\"{}\\[\\]]{0,20}", inner, 0..6)
                .prop_map(serde_json::Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn eight_bytes_at_a_time_see_what_single_bytes_see(
        bytes in anything(),
        sizes in prop::collection::vec(1usize..40, 1..5),
    ) {
        prop_assert_eq!(in_chunks(&bytes, &sizes), byte_by_byte(&bytes));
    }

    #[test]
    fn a_valid_value_is_followed_to_its_end(value in valid(), size in 1usize..30) {
        let text = value.to_string();
        // What comes after must not matter.
        let bytes = format!("{text} }}]\"");
        prop_assert_eq!(in_chunks(bytes.as_bytes(), &[size]), vec![Reached::End(text.len())]);
    }

    #[test]
    fn the_members_of_an_object_are_those_that_a_parser_sees(
        members in prop::collection::btree_map("[a-z\\\\\"{}]{0,9}", valid(), 0..6),
        pretty in any::<bool>(),
    ) {
        let value = serde_json::Value::from_iter(members.clone());
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let mut found = std::collections::BTreeMap::new();
        for member in Members::new(text.as_bytes()) {
            let member = member.unwrap();
            found.insert(member.key.into_owned(), serde_json::from_str(&text[member.value]).unwrap());
        }
        prop_assert_eq!(found, members);
    }
}

#[test]
fn a_lane_is_found_where_the_byte_is() {
    for at in 0..8 {
        for other in [0x00, 0x21, 0x23, 0x7f, 0x80, 0xa2, 0xff] {
            let mut bytes = [other; 8];
            bytes[at] = b'"';
            assert_eq!(equal(u64::from_le_bytes(bytes), b'"'), 1 << (8 * at), "{bytes:x?}");
        }
    }
}

#[test]
fn the_deepest_allowed_level_is_allowed() {
    for (levels, too_deep) in [(MAX_DEPTH, false), (MAX_DEPTH + 1, true)] {
        let bytes = [vec![b'['; levels], vec![b']'; levels]].concat();
        let mut extent = Extent::begin(b'[').unwrap();
        let expected = if too_deep { Reached::TooDeep(MAX_DEPTH + 1) } else { Reached::End(2 * levels) };
        assert_eq!(extent.follow(&bytes), expected);
    }
}

#[test]
fn an_object_that_is_malformed_says_where() {
    for (text, offset, expected) in [
        ("", 0, "{"),
        ("  ", 2, "{"),
        ("[]", 0, "{"),
        ("{", 1, "a key or }"),
        ("{,", 1, "a key"),
        ("{a:1}", 1, "a key"),
        (r#"{"a"}"#, 4, ":"),
        (r#"{"a":}"#, 5, "a value"),
        (r#"{"a":1"#, 6, "the end of a value"),
        (r#"{"a":"1}"#, 8, "the end of a value"),
        (r#"{"a":1,}"#, 7, "a key"),
        (r#"{"a":1 "b":2}"#, 7, ", or }"),
        (r#"{"a":1}}"#, 7, "the end"),
        (r#"{"\q":1}"#, 1, "a key"),
    ] {
        let error = Members::new(text.as_bytes()).find_map(Result::err).unwrap();
        assert_eq!((error.offset, &*error.expected), (offset, expected), "{text}");
        let mut members = Members::new(text.as_bytes());
        assert!(
            members.by_ref().any(|member| member.is_err()) && members.next().is_none(),
            "{text}: it goes on"
        );
    }
}
