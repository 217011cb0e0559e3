//! Where the items of a list are, found while it streams by.
//!
//! For each item the scanner tells one place that lies inside it. In protobuf,
//! where lengths are known, that is the middle; in JSON it is some bytes in,
//! or right before the closing brace of a shorter item. What is no list has no
//! items. Nothing is held, and malformed input only leads to no or odd places.

use super::frames::Format;
use super::protobuf::MAGIC;

/// How far into a JSON item its place is.
const INTO: u64 = 32;

/// Finds a place inside each item of a list.
#[derive(Debug)]
pub(crate) enum Scanner {
    Json(Json),
    Protobuf(Protobuf),
}

#[derive(Debug, Default)]
pub(crate) struct Json {
    /// The open brackets down to the items; below, only their number counts.
    arrays: Vec<bool>,
    in_string: bool,
    escaped: bool,
    item: Option<Item>,
    items: u64,
}

#[derive(Debug)]
struct Item {
    seen: u64,
    told: bool,
}

#[derive(Debug)]
pub(crate) struct Protobuf {
    step: Step,
    /// False in the envelope, true in the list.
    in_list: bool,
    items: u64,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Magic {
        seen: usize,
    },
    Tag {
        value: u64,
        shift: u32,
    },
    Number,
    Length {
        field: u64,
        value: u64,
        shift: u32,
    },
    Skip {
        left: u64,
    },
    /// Inside an item: so many bytes until its middle, and after.
    Item {
        before: u64,
        after: u64,
    },
    Broken,
}

impl Scanner {
    pub(crate) fn new(format: Format) -> Self {
        match format {
            Format::Json => Self::Json(Json::default()),
            Format::Protobuf => {
                Self::Protobuf(Protobuf { step: Step::Magic { seen: 0 }, in_list: false, items: 0 })
            }
        }
    }

    /// Follows a chunk; tells the number of each item and the place, counted
    /// from the chunk's beginning, that lies inside it.
    pub(crate) fn feed(&mut self, chunk: &[u8], mut tell: impl FnMut(u64, usize)) {
        match self {
            Self::Json(json) => {
                for (at, byte) in chunk.iter().enumerate() {
                    json.feed(*byte, |item| tell(item, at));
                }
            }
            Self::Protobuf(protobuf) => protobuf.feed(chunk, tell),
        }
    }
}

impl Json {
    fn feed(&mut self, byte: u8, mut tell: impl FnMut(u64)) {
        let closing = !self.in_string && byte == b'}' && self.arrays.len() == 3;
        if let Some(item) = &mut self.item {
            if !item.told && (item.seen == INTO || closing) {
                item.told = true;
                tell(self.items);
            }
            item.seen += 1;
        }
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else {
                self.escaped = byte == b'\\';
                self.in_string = byte != b'"';
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' => {
                if self.arrays == [false, true] {
                    self.item = Some(Item { seen: 1, told: false });
                }
                self.arrays.push(false);
            }
            b'[' => self.arrays.push(true),
            b'}' | b']' => {
                self.arrays.pop();
                if closing && self.item.take().is_some() {
                    self.items += 1;
                }
            }
            _ => {}
        }
    }
}

impl Protobuf {
    fn feed(&mut self, chunk: &[u8], mut tell: impl FnMut(u64, usize)) {
        let mut at = 0;
        while at < chunk.len() {
            let byte = chunk[at];
            self.step = match self.step {
                // Magic => (Magic | Tag | Broken)
                Step::Magic { seen } if byte == MAGIC[seen] => {
                    at += 1;
                    if seen + 1 == MAGIC.len() { TAG } else { Step::Magic { seen: seen + 1 } }
                }
                Step::Magic { .. } | Step::Broken => return self.step = Step::Broken,
                // Tag => (Tag | Number | Length | Skip | Broken)
                Step::Tag { value, shift } => {
                    at += 1;
                    let value = value | u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
                    match (byte & 0x80 != 0, value & 7) {
                        (true, _) if shift < 63 => Step::Tag { value, shift: shift + 7 },
                        (false, 0) => Step::Number,
                        (false, 1) => Step::Skip { left: 8 },
                        (false, 2) => Step::Length { field: value >> 3, value: 0, shift: 0 },
                        (false, 5) => Step::Skip { left: 4 },
                        _ => Step::Broken,
                    }
                }
                // Number => (Number | Tag)
                Step::Number => {
                    at += 1;
                    if byte & 0x80 == 0 { TAG } else { Step::Number }
                }
                // Length => (Length | Tag, in the list | Item | Skip | Broken)
                Step::Length { field, value, shift } => {
                    at += 1;
                    let value = value | u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
                    match (byte & 0x80 != 0, field) {
                        (true, _) if shift < 63 => Step::Length { field, value, shift: shift + 7 },
                        (true, _) => Step::Broken,
                        (false, 2) if self.in_list => {
                            Step::Item { before: value / 2, after: value - value / 2 }
                        }
                        (false, 2) => {
                            self.in_list = true;
                            TAG
                        }
                        (false, _) => Step::Skip { left: value },
                    }
                }
                // Skip => (Skip | Tag)
                Step::Skip { left } => {
                    let step = left.min((chunk.len() - at) as u64);
                    at += step as usize;
                    if step == left { TAG } else { Step::Skip { left: left - step } }
                }
                // Item => (Item | Skip, past its middle)
                Step::Item { before: 0, after } => {
                    tell(self.items, at);
                    self.items += 1;
                    Step::Skip { left: after }
                }
                Step::Item { before, after } => {
                    let step = before.min((chunk.len() - at) as u64);
                    at += step as usize;
                    Step::Item { before: before - step, after }
                }
            };
        }
    }
}

const TAG: Step = Step::Tag { value: 0, shift: 0 };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::protobuf;
    use super::*;

    fn places(format: Format, bytes: &[u8], cut: usize) -> Vec<(u64, usize)> {
        let (head, tail) = bytes.split_at(cut.min(bytes.len()));
        let mut scanner = Scanner::new(format);
        let mut found = Vec::new();
        scanner.feed(head, |item, at| found.push((item, at)));
        scanner.feed(tail, |item, at| found.push((item, head.len() + at)));
        found
    }

    fn protobuf_list(items: &[Vec<u8>]) -> Vec<u8> {
        let mut list = Vec::new();
        protobuf::put_bytes(&mut list, 1, b"\x12\x0242");
        for item in items {
            protobuf::put_bytes(&mut list, 2, item);
        }
        protobuf::envelope("v1", "PodList", &list)
    }

    proptest! {
        #[test]
        fn every_item_has_a_place_inside_it_wherever_the_list_is_cut(
            names in prop::collection::vec("[a-z\\\\\"{}\\[\\]]{0,60}", 0..8),
            cut in 0usize..2000,
        ) {
            let mut json = String::from(r#"{"kind":"PodList","metadata":{"x":[{"y":[]}]},"items":["#);
            let mut extents = Vec::new();
            for (at, name) in names.iter().enumerate() {
                json.push_str(if at > 0 { "," } else { "" });
                let start = json.len();
                json.push_str(&serde_json::json!({ "metadata": { "name": name, "l": [{}, [{}]] } }).to_string());
                extents.push((start, json.len()));
            }
            json.push_str("]}\n");
            let found = places(Format::Json, json.as_bytes(), cut);
            prop_assert_eq!(found.len(), names.len());
            for (at, (item, place)) in found.into_iter().enumerate() {
                prop_assert_eq!(item, at as u64);
                prop_assert!(extents[at].0 < place && place < extents[at].1, "{} not in {:?}", place, extents[at]);
            }
        }

        #[test]
        fn the_place_in_a_protobuf_item_is_its_middle(
            items in prop::collection::vec(prop::collection::vec(any::<u8>(), 2..300), 0..8),
            cut in 0usize..2500,
        ) {
            let list = protobuf_list(&items);
            let found = places(Format::Protobuf, &list, cut);
            prop_assert_eq!(found.len(), items.len());
            let mut from = 0;
            for ((_, place), item) in found.into_iter().zip(&items) {
                let start = from + list[from..].windows(item.len()).position(|window| window == item).unwrap();
                // Random items can be found earlier by chance; the middle is right from the end on.
                prop_assert!(place >= start + item.len() / 2);
                from = place + item.len() - item.len() / 2;
                prop_assert_eq!(&list[place - item.len() / 2..from], &item[..]);
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            places(Format::Json, &bytes, cut);
            places(Format::Protobuf, &bytes, cut);
            places(Format::Protobuf, &[MAGIC, &bytes[..]].concat(), cut);
        }
    }
}
