//! What tells one object from another that is nearly the same.
//!
//! A delta is a row of steps. Each copies bytes from the base, and then adds bytes that the base does not have:
//!
//! ```text
//! copy: varint    how many bytes to copy from the base, from where the last step ended
//! add:  varint    how many bytes to add, times four; plus two if they are hexadecimal digits, two in a byte;
//!                 plus one if the base continues elsewhere than so many bytes further on
//! the bytes
//! move: varint    only then: how many bytes further (even, halved) or back (odd, halved) that is
//! ```
//!
//! What differs between pods of one owner are mostly identifiers, which are hexadecimal.

/// Objects above this are not compared: places in the base are numbers of 16 bits.
pub(super) const LARGEST: usize = u16::MAX as usize;

/// Bytes that must be the same for a copy.
const SAME: usize = 8;

/// Every so-many-th place of the base is known. Copies of at least `SAME + STRIDE - 1` bytes are found.
const STRIDE: usize = SAME / 2;

const BITS: u32 = 11;
const PLACES: usize = 1 << BITS;

/// Bytes in a row that may differ.
const LONGEST: usize = 512;

/// So many bytes are longer than what identifies something: an address, a time, a hash.
const NEAR: usize = 96;

/// Hexadecimal digits in a row that are worth a step of their own.
const DIGITS: usize = 8;

/// Where in a base which bytes stand. It is made when it is first asked: many objects differ from their base in nothing
/// that is elsewhere, or longer or shorter.
pub(super) struct Index {
    /// By hash. Of several, the last; 0 also for none, so that no branch is needed: what is found is compared anyway.
    places: Box<[u16; PLACES]>,
    is_made: bool,
}

/// A delta does not give an object: it is damaged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damaged;

impl Index {
    pub(super) fn new() -> Self {
        Self { places: Box::new([0; PLACES]), is_made: false }
    }

    /// There will be another base.
    pub(super) fn forget(&mut self) {
        self.is_made = false;
    }

    /// The same base as long as it is not forgotten.
    fn of(&mut self, base: &[u8]) -> &Self {
        if !std::mem::replace(&mut self.is_made, true) {
            self.fill(base);
        }
        self
    }

    fn fill(&mut self, base: &[u8]) {
        self.places.fill(0);
        // A word is two strides. Most bases are asked once, and have hundreds of them: each takes a few steps.
        let (strides, _) = base.as_chunks::<STRIDE>();
        for (pair, number) in strides.windows(2).zip(0_u16..=u16::MAX / STRIDE as u16) {
            let [low, high] = [pair[0], pair[1]].map(|stride| u64::from(u32::from_le_bytes(stride)));
            self.places[hash(low | high << 32)] = number * STRIDE as u16;
        }
    }

    fn find(&self, word: u64) -> usize {
        usize::from(self.places[hash(word)])
    }
}

/// Writes the delta from base to object. `false` as soon as it would be longer than the limit; the output is of no
/// use then.
pub(super) fn encode(base: &[u8], index: &mut Index, object: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
    let (mut at, mut from) = (0, 0);
    while at < object.len() {
        let copied = common(object, at, base, from);
        at += copied;
        from += copied;
        let Some((end, next)) = resume(base, index, object, at, from, limit) else { return false };
        let Some(added) = object.get(at..end) else { return false };
        // The step's last part says where the base continues.
        add(out, copied, added, from, next);
        if out.len() > limit {
            return false;
        }
        (at, from) = (end, next);
    }
    true
}

/// Appends the object that a delta gives; never more than `len` bytes.
pub(super) fn decode(base: &[u8], delta: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), Damaged> {
    let mut rest = delta;
    let mut from = 0_usize;
    while !rest.is_empty() {
        let copied = take_number(&mut rest)?;
        let head = take_number(&mut rest)?;
        let (added, digits, moves) = (head >> 2, head & 2 != 0, head & 1 != 0);
        if copied.checked_add(added).is_none_or(|more| more > len.saturating_sub(out.len())) {
            return Err(Damaged);
        }
        let end = from.checked_add(copied).ok_or(Damaged)?;
        // Bytes may be added beyond the base's end, but not copied from there.
        if copied > 0 {
            out.extend_from_slice(base.get(from..end).ok_or(Damaged)?);
        }
        let (bytes, after) =
            rest.split_at_checked(if digits { added.div_ceil(2) } else { added }).ok_or(Damaged)?;
        rest = after;
        if digits {
            let both = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
            out.extend(both.take(added));
        } else {
            out.extend_from_slice(bytes);
        }
        from = end.checked_add(added).ok_or(Damaged)?;
        if moves {
            let moved = take_number(&mut rest)?;
            let by = moved >> 1;
            from = if moved & 1 == 0 { from.checked_add(by) } else { from.checked_sub(by) }.ok_or(Damaged)?;
        }
    }
    if out.len() == len { Ok(()) } else { Err(Damaged) }
}

/// Where, at the same time, the object and the base go on alike: the nearest such place of the object. `None` if that is
/// too far away.
fn resume(
    base: &[u8],
    index: &mut Index,
    object: &[u8],
    at: usize,
    from: usize,
    limit: usize,
) -> Option<(usize, usize)> {
    // Kin differ here and there, but not at length. Nor may more be added than the limit allows; digits take half.
    let last = object.len().min(at.saturating_add((2 * limit).min(LONGEST)));
    if object.len().saturating_sub(at) < SAME {
        // Nothing more that could be copied.
        return Some((object.len(), from + (object.len() - at)));
    }
    // Mostly something of the same length stands there instead: that is seen without asking where bytes are.
    if let (Some(differs), Some(base)) = (object.get(at..last), base.get(from..))
        && let Some(end) = beside(differs, base)
    {
        return Some((at + end, from + end));
    }
    let index = index.of(base);
    for end in at..last {
        let Some(here) = word(object, end) else { break };
        let beside = from + (end - at);
        let place = index.find(here);
        let found = if word(base, beside) == Some(here) {
            beside
        } else if word(base, place) == Some(here) {
            place
        } else {
            continue;
        };
        // Places are known in strides: it may have begun before.
        let back = object
            .get(at..end)
            .into_iter()
            .flat_map(|skipped| skipped.iter().rev())
            .zip(base.get(..found).into_iter().flat_map(|before| before.iter().rev()))
            .take_while(|(a, b)| a == b)
            .count();
        return Some((end - back, found - back));
    }
    // Nothing more to copy: the rest is added, and the base does not matter any more.
    (last == object.len()).then(|| (object.len(), from + (object.len() - at)))
}

/// Where the two are the same again, place by place, for a word's length. Words are compared: where they are the same for so
/// long, that is at the end of one word and the beginning of the next, or in one word from end to end. A last word that is not
/// whole is not looked at.
fn beside(object: &[u8], base: &[u8]) -> Option<usize> {
    let (object, base) = (object.chunks_exact(SAME), base.chunks_exact(SAME));
    // The bytes at the end of the last word that are the same.
    let mut before = 0;
    for (at, (a, b)) in (0..NEAR).step_by(SAME).zip(object.zip(base)) {
        let differ = word(a, 0)? ^ word(b, 0)?;
        if before + differ.trailing_zeros() as usize / 8 >= SAME {
            return Some(at - before);
        }
        before = differ.leading_zeros() as usize / 8;
    }
    None
}

/// Writes one step, or several if the added bytes have digits in a row.
fn add(out: &mut Vec<u8>, mut copied: usize, mut added: &[u8], mut from: usize, next: usize) {
    while let Some((start, digits)) = digits_in_a_row(added) {
        let (before, rest) = added.split_at(start);
        let (row, rest) = rest.split_at(digits);
        if !before.is_empty() {
            step(out, copied, before, false, None);
            (copied, from) = (0, from + before.len());
        }
        from += row.len();
        let moved = (rest.is_empty() && next != from).then_some((from, next));
        step(out, copied, row, true, moved);
        copied = 0;
        added = rest;
        if rest.is_empty() {
            return;
        }
    }
    from += added.len();
    step(out, copied, added, false, (next != from).then_some((from, next)));
}

fn step(out: &mut Vec<u8>, copied: usize, added: &[u8], digits: bool, moved: Option<(usize, usize)>) {
    put_number(out, copied);
    put_number(out, added.len() << 2 | usize::from(digits) << 1 | usize::from(moved.is_some()));
    if digits {
        let (pairs, odd) = added.as_chunks();
        out.extend(pairs.iter().map(|[high, low]| value(*high) << 4 | value(*low)));
        out.extend(odd.first().map(|high| value(*high) << 4));
    } else {
        out.extend_from_slice(added);
    }
    if let Some((from, next)) = moved {
        let back = next < from;
        put_number(out, from.abs_diff(next) << 1 | usize::from(back));
    }
}

/// The first place with enough digits in a row, and how many they are.
fn digits_in_a_row(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut start = 0;
    for row in bytes.split(|byte| !is_digit(*byte)) {
        if row.len() >= DIGITS {
            return Some((start, row.len()));
        }
        start += row.len() + 1;
    }
    None
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn value(digit: u8) -> u8 {
    if digit >= b'a' { digit.wrapping_sub(b'a' - 10) } else { digit.wrapping_sub(b'0') }
}

fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' - 10 + value }
}

/// How many bytes are the same from there on.
fn common(object: &[u8], at: usize, base: &[u8], from: usize) -> usize {
    let (mut a, mut b) = (object.get(at..).unwrap_or_default(), base.get(from..).unwrap_or_default());
    let mut same = 0;
    while let (Some((one, after_a)), Some((other, after_b))) =
        (a.split_first_chunk::<SAME>(), b.split_first_chunk::<SAME>())
    {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += SAME;
        (a, b) = (after_a, after_b);
    }
    same + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<SAME>().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Below [`PLACES`].
fn hash(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Result<usize, Damaged> {
    let mut number = 0_usize;
    for shift in (0..35).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or(Damaged)?;
        *bytes = rest;
        number |= usize::from(first & 0x7f).checked_shl(shift).ok_or(Damaged)?;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop, proptest};

    use super::{Damaged, Index, NEAR, PLACES, SAME, STRIDE, beside, decode, encode, hash, word};

    fn delta(base: &[u8], object: &[u8], limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        encode(base, &mut Index::new(), object, limit, &mut out).then_some(out)
    }

    fn applied(base: &[u8], delta: &[u8], len: usize) -> Result<Vec<u8>, Damaged> {
        let mut out = Vec::new();
        decode(base, delta, len, &mut out).map(|()| out)
    }

    fn size(base: &str, object: &str) -> usize {
        let delta = delta(base.as_bytes(), object.as_bytes(), 10_000).unwrap();
        assert_eq!(applied(base.as_bytes(), &delta, object.len()).unwrap(), object.as_bytes());
        delta.len()
    }

    const BASE: &str = r#"{"name":"web-7f9c-abcde","uid":"0f1e2d3c-1111-4222-a333-444455556666","node":"node-17","containerID":"containerd://00112233445566778899aabbccddeeff","phase":"Running"}"#;

    #[test]
    fn an_object_that_is_the_base_takes_some_bytes() {
        assert!(size(BASE, BASE) <= 4);
    }

    #[test]
    fn digits_take_half_their_size() {
        let other = BASE.replace("00112233445566778899aabbccddeeff", "f1112233445566778899aabbccddee0e");
        assert!(size(BASE, &other) <= 12, "only the ends differ");
        let other = BASE.replace("00112233445566778899aabbccddeeff", "9c1185a5c5e9fc54612808977ee8f548");
        assert!(size(BASE, &other) <= 16 + 8, "{}", size(BASE, &other));
        let odd = BASE.replace("00112233445566778899aabbccddeeff", "9c1185a5c5e9fc54612808977ee8f54");
        assert!(size(BASE, &odd) <= 16 + 10, "{}", size(BASE, &odd));
    }

    #[test]
    fn no_index_is_made_for_what_differs_in_its_place() {
        let is_made_for = |object: &str| {
            let (mut index, mut out) = (Index::new(), Vec::new());
            assert!(encode(BASE.as_bytes(), &mut index, object.as_bytes(), 10_000, &mut out));
            index.is_made
        };
        assert!(!is_made_for(BASE));
        assert!(!is_made_for(&BASE.replace("abcde", "vwxyz").replace("node-17", "node-23")));
        assert!(is_made_for(&BASE.replace("node-17", "node-number-1234")));
    }

    #[test]
    fn an_index_is_of_one_base_until_it_is_forgotten() {
        let (one, other) = (BASE.as_bytes(), BASE.to_uppercase());
        let (mut index, longer) = (Index::new(), BASE.replace("web", "website"));
        assert!(encode(one, &mut index, longer.as_bytes(), 40, &mut Vec::new()));
        index.forget();
        let longer = longer.to_uppercase();
        assert!(encode(other.as_bytes(), &mut index, longer.as_bytes(), 40, &mut Vec::new()));
    }

    #[test]
    fn what_is_longer_shorter_or_elsewhere_is_still_copied() {
        assert!(size(BASE, &BASE.replace("node-17", "node-number-1234")) <= 20);
        assert!(size(BASE, &BASE.replace("node-17", "")) <= 12);
        let (front, back) = BASE.split_at(80);
        assert!(size(BASE, &format!("{back}{front}")) <= 16);
        assert!(size(BASE, &BASE.repeat(3)) <= 24);
    }

    #[test]
    fn nothing_to_copy_and_nothing_at_all_are_objects_too() {
        assert_eq!(size("", ""), 0);
        assert_eq!(size(BASE, ""), 0);
        assert!(size("", BASE) <= BASE.len());
        assert!(size("short", "other") <= 7);
    }

    #[test]
    fn what_becomes_too_long_is_given_up() {
        assert_eq!(delta(BASE.as_bytes(), &[b'x'; 500], 100), None);
        let other = BASE.replace("00112233445566778899aabbccddeeff", "9c1185a5c5e9fc54612808977ee8f548");
        assert_eq!(delta(BASE.as_bytes(), other.as_bytes(), 10), None);
    }

    #[test]
    fn damaged_deltas_give_an_error() {
        let base = BASE.as_bytes();
        for delta in [&[0x80][..], &[0xff; 12], &[200, 1, 0], &[0, 4], &[0, 1, 3], &[4, 0], &[8, 1, 0x41]] {
            assert_eq!(applied(base, delta, 8), Err(Damaged), "{delta:?}");
        }
        assert_eq!(applied(base, &[8, 0], 8).unwrap(), &base[..8]);
        assert_eq!(applied(base, &[8, 0], 7), Err(Damaged));
        assert_eq!(applied(base, &[8, 0], 9), Err(Damaged));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_so_many_th_place_is_known_and_of_several_the_last(
            base in prop::collection::vec(prop::num::u8::ANY, 0..300),
            is_short_of_bytes in any::<bool>(),
        ) {
            // Few different bytes are the same in many places.
            let base: Vec<u8> = if is_short_of_bytes { base.iter().map(|byte| byte & 1).collect() } else { base };
            let mut places = [0; PLACES];
            for place in (0..base.len()).step_by(STRIDE) {
                if let Some(word) = word(&base, place) {
                    places[hash(word)] = place as u16;
                }
            }
            assert_eq!(*Index::new().of(&base).places, places);
        }

        #[test]
        fn every_object_comes_back_from_every_base(
            base in prop::collection::vec(prop::sample::select(b"abcdef0123xyz-\"".as_slice()), 0..400),
            edits in prop::collection::vec((any::<u16>(), 0_usize..40, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        ) {
            let mut object = base.clone();
            for (at, removed, added) in edits {
                let at = usize::from(at) % (object.len() + 1);
                let end = (at + removed).min(object.len());
                object.splice(at..end, added);
            }
            let delta = delta(&base, &object, 10_000).unwrap();
            assert_eq!(applied(&base, &delta, object.len()).unwrap(), object);
        }

        #[test]
        fn words_tell_where_two_are_the_same_again_as_bytes_do(
            object in prop::collection::vec(0_u8..2, 0..15),
            base in prop::collection::vec(0_u8..2, 0..15),
        ) {
            // Few different bytes, each eight times over and moved: long runs begin and end anywhere.
            let long = |bytes: &[u8]| -> Vec<u8> {
                bytes.iter().enumerate().flat_map(|(at, byte)| vec![*byte; 3 + at % 7]).collect()
            };
            let (object, base) = (long(&object), long(&base));
            let words = object.len().min(base.len()).min(NEAR) / SAME * SAME;
            let is_same = |at: &usize| object[*at..at + SAME] == base[*at..at + SAME];
            let first = (0..(words + 1).saturating_sub(SAME)).find(is_same);
            assert_eq!(beside(&object, &base), first);
        }

        #[test]
        fn no_delta_gives_more_than_was_asked_for_or_panics(
            base in prop::collection::vec(any::<u8>(), 0..100),
            delta in prop::collection::vec(prop::sample::select(&[0_u8, 1, 2, 3, 5, 8, 17, 64, 127, 128, 255]), 0..40),
            len in 0_usize..200,
        ) {
            let mut out = Vec::new();
            let _ = decode(&base, &delta, len, &mut out);
            assert!(out.len() <= len);
        }
    }
}
