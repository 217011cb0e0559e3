use super::*;

fn fields(bytes: &[u8]) -> Vec<Result<(u64, Content<'_>), (Fault, usize)>> {
    Fields::new(bytes)
        .map(|field| match field {
            Ok(field) => Ok((field.number, field.content)),
            Err(error) => Err((error.fault, error.offset)),
        })
        .collect()
}

#[test]
fn fields_of_every_shape_are_read() {
    let bytes = b"\x08\x96\x01\x12\x02hi\x1d\0\0\0\0\x21\0\0\0\0\0\0\0\0\x2a\0";
    let expected = [
        (1, Content::Number(150)),
        (2, Content::Bytes(b"hi")),
        (3, Content::Fixed),
        (4, Content::Fixed),
        (5, Content::Bytes(b"")),
    ];
    assert_eq!(fields(bytes), expected.map(Ok));
}

#[test]
fn a_message_that_is_malformed_says_where() {
    for (bytes, offset) in [
        (&b"\x80"[..], 1),                                       // a tag that is cut
        (b"\x08\xff", 2),                                        // a number that is cut
        (b"\x12\x03hi", 4),                                      // bytes that are cut
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi", 13), // a length beyond all memory
        (b"\x1d\0\0", 3),                                        // a fixed number that is cut
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10),   // a number of 65 bits
        (b"\x0b", 0),                                            // a group
        (b"\x02", 0),                                            // the field 0
        (b"\x80\x80\x80\x80\x80\x01", 0),                        // a field number beyond all fields
    ] {
        let found = fields(bytes);
        assert!(matches!(found.as_slice(), [Err((_, found))] if *found == offset), "{bytes:x?}: {found:?}");
    }
}

#[test]
fn of_content_that_is_cut_the_lenient_reading_gives_what_there_is() {
    let found: Vec<_> = readable(b"\x08\x01\x12\x09hi").collect();
    assert_eq!(found, [(1, Content::Number(1)), (2, Content::Bytes(b"hi"))]);
}
