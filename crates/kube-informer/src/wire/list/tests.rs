use super::*;

/// How many items a body has that comes byte by byte, and how much work that was per byte.
fn one_by_one(encoding: Encoding, limit: usize, body: &[u8]) -> (usize, usize) {
    let mut list = ListItems::new(encoding, limit);
    let mut found = 0;
    for byte in body {
        list.push(Bytes::copy_from_slice(&[*byte]));
        while list.next_item().is_some() {
            found += 1;
        }
    }
    (found, list.input.work / body.len())
}

fn json(length: usize) -> Vec<u8> {
    format!("{{\"metadata\":{{}},\"items\":[{{\"a\":\"{}\"}}]}}", "x".repeat(length)).into_bytes()
}

/// A list with one item of 64 KiB, whose content no one looks at.
fn protobuf() -> Vec<u8> {
    let mut body = b"k8s\0\x0a\x09\x12\x07PodList\x12\x84\x80\x04\x12\x80\x80\x04".to_vec();
    body.resize(body.len() + 0x10000, 0xff);
    body
}

#[test]
fn a_large_item_in_tiny_chunks_is_looked_at_a_fixed_number_of_times() {
    for length in [1_000, 100_000] {
        let (found, work) = one_by_one(Encoding::Json, 1 << 20, &json(length));
        assert_eq!(found, 1);
        assert!(work <= 3, "{work} looks at each of {length} bytes");
    }
    assert!(matches!(one_by_one(Encoding::Protobuf, 1 << 20, &protobuf()), (1, ..=3)));
}

#[test]
fn an_item_above_the_limit_is_skipped_in_the_same_way() {
    assert!(matches!(one_by_one(Encoding::Json, 1_000, &json(100_000)), (1, ..=3)));
    assert!(matches!(one_by_one(Encoding::Protobuf, 1_000, &protobuf()), (1, ..=3)));
}
