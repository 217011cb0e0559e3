use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1 << 20;

/// A stream of frames: its bytes and the frames they must be split into.
fn stream(format: Format, payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let frames: Vec<Vec<u8>> = payloads
        .iter()
        .map(|payload| match format {
            Format::Json => {
                let mut line: Vec<u8> = payload.iter().map(|b| if *b == b'\n' { b' ' } else { *b }).collect();
                line.push(b'\n');
                line
            }
            Format::Protobuf => [&(payload.len() as u32).to_be_bytes()[..], payload].concat(),
        })
        .collect();
    (frames.concat(), frames)
}

/// Cuts at the given places, each taken modulo what is there.
fn chunks<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn formats() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Json), Just(Format::Protobuf)]
}

proptest! {
    #[test]
    fn a_stream_cut_anywhere_gives_the_same_frames(
        format in formats(),
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..24),
    ) {
        let (bytes, frames) = stream(format, &payloads);
        let mut splitter = Splitter::new(format, LIMIT);
        let mut got = Vec::new();
        for chunk in chunks(&bytes, &cuts) {
            splitter.push(chunk);
            while let Some(frame) = splitter.next_frame().unwrap() {
                got.push(frame.to_vec());
            }
        }
        prop_assert_eq!(got, frames);
        prop_assert!(splitter.take_rest().is_empty());
    }

    #[test]
    fn an_unfinished_frame_is_what_is_left(
        format in formats(),
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..6),
        missing in 1usize..20,
    ) {
        let (bytes, frames) = stream(format, &payloads);
        let last = frames.last().unwrap().len();
        let end = bytes.len() - missing.min(last);
        let mut splitter = Splitter::new(format, LIMIT);
        splitter.push(&bytes[..end]);
        let mut whole = 0;
        while splitter.next_frame().unwrap().is_some() {
            whole += 1;
        }
        prop_assert_eq!(whole, frames.len() - 1);
        prop_assert_eq!(&splitter.take_rest()[..], &bytes[bytes.len() - last..end]);
    }

    #[test]
    fn a_tracker_counts_the_frames_that_a_splitter_gives(
        format in formats(),
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..24),
    ) {
        let (bytes, frames) = stream(format, &payloads);
        let mut tracker = Tracker::new(format);
        let ended: u64 = chunks(&bytes, &cuts).into_iter().map(|chunk| tracker.feed(chunk)).sum();
        prop_assert_eq!(ended, frames.len() as u64);
        prop_assert!(tracker.at_boundary());
    }

    #[test]
    fn a_stream_passed_through_up_to_anywhere_is_split_from_the_next_boundary(
        format in formats(),
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..12),
        switch in any::<usize>(),
    ) {
        let (bytes, frames) = stream(format, &payloads);
        let switch = switch % (bytes.len() + 1);
        let mut tracker = Tracker::new(format);
        let passed = tracker.feed(&bytes[..switch]) as usize;
        let rest = &bytes[switch..];
        let (used, begun) = if tracker.at_boundary() { (0, 0) } else { (tracker.feed_to_boundary(rest), 1) };
        prop_assert!(tracker.at_boundary());
        let mut splitter = Splitter::new(format, LIMIT);
        splitter.push(&rest[used..]);
        let mut got = Vec::new();
        while let Some(frame) = splitter.next_frame().unwrap() {
            got.push(frame.to_vec());
        }
        prop_assert_eq!(&got[..], &frames[passed + begun..]);
    }
}

#[test]
fn a_frame_above_the_limit_is_an_error_before_it_is_held() {
    let mut json = Splitter::new(Format::Json, 10);
    json.push(b"0123456789a");
    assert_eq!(json.next_frame(), Err(TooLarge { limit: 10 }));

    let mut protobuf = Splitter::new(Format::Protobuf, 10);
    protobuf.push(&7u32.to_be_bytes());
    assert_eq!(protobuf.next_frame(), Err(TooLarge { limit: 10 }));
}

#[test]
fn a_frame_of_just_the_limit_passes() {
    let mut json = Splitter::new(Format::Json, 10);
    json.push(b"012345678\n");
    assert_eq!(json.next_frame().unwrap().unwrap().len(), 10);
}

#[test]
fn formats_are_told_by_the_media_type_whatever_its_parameters() {
    assert_eq!(Format::of("application/json"), Some(Format::Json));
    assert_eq!(Format::of("application/vnd.kubernetes.protobuf;stream=watch"), Some(Format::Protobuf));
    assert_eq!(Format::of("application/json;as=Table;v=v1"), Some(Format::Json));
    assert_eq!(Format::of("text/html; charset=utf-8"), None);
}
