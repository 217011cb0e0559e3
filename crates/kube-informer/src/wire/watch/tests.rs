use super::*;

/// The frames of a body that comes byte by byte, and how much work that was per byte.
fn one_by_one(encoding: Encoding, limit: usize, body: &[u8]) -> (usize, usize) {
    let mut frames = WatchFrames::new(encoding, limit);
    let mut found = 0;
    for byte in body {
        frames.push(Bytes::copy_from_slice(&[*byte]));
        while frames.next_frame().is_some() {
            found += 1;
        }
    }
    (found, frames.input.work / body.len())
}

#[test]
fn a_large_event_in_tiny_chunks_is_looked_at_a_fixed_number_of_times() {
    for length in [1_000, 100_000] {
        let object = format!("{{\"a\":\"{}\"}}", "x".repeat(length));
        let json = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
        let (found, work) = one_by_one(Encoding::Json, 1 << 20, json.as_bytes());
        assert_eq!(found, 1);
        assert!(work <= 3, "{work} looks at each of {length} bytes");

        let mut protobuf = u32::try_from(length).unwrap().to_be_bytes().to_vec();
        protobuf.resize(length + 4, 0);
        let (found, work) = one_by_one(Encoding::Protobuf, 1 << 20, &protobuf);
        assert_eq!(found, 1);
        assert!(work <= 3, "{work} looks at each of {length} bytes");
    }
}

#[test]
fn an_event_above_the_limit_is_skipped_in_the_same_way() {
    let json = format!("{}\n", "{".repeat(100_000));
    assert!(matches!(one_by_one(Encoding::Json, 1_000, json.as_bytes()), (1, ..=3)));
    let protobuf = [&100_000u32.to_be_bytes()[..], &[0; 100_000]].concat();
    assert!(matches!(one_by_one(Encoding::Protobuf, 1_000, &protobuf), (1, ..=3)));
}
