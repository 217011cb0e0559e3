//! What the server gives away once: UIDs and generated names; and the time.

use std::sync::{Mutex, PoisonError};

/// Names that people can tell apart and that spell nothing.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest base that still leaves room for a suffix.
const LONGEST_BASE: usize = 63 - SUFFIX;
const SUFFIX: usize = 5;

/// Source of everything unique; the same seed gives the same sequences. Names have one of their own: who makes objects that
/// have names already does not change those that are generated for others.
pub(crate) struct Identity {
    uids: Mutex<Random>,
    names: Mutex<Random>,
}

/// SplitMix64.
struct Random(u64);

impl Identity {
    pub(crate) fn new(seed: u64) -> Self {
        Self { uids: Mutex::new(Random(seed)), names: Mutex::new(Random(!seed)) }
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        let (a, b) = (next(&self.uids), next(&self.uids));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0x0fff,
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff,
        )
    }

    /// `base` and five random characters.
    pub(crate) fn name(&self, base: &str) -> String {
        let cut = base.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= LONGEST_BASE);
        let mut name = base[..cut.last().unwrap_or(0)].to_owned();
        let mut random = next(&self.names);
        for _ in 0..SUFFIX {
            let at = (random % ALPHABET.len() as u64) as usize;
            name.push(char::from(ALPHABET[at]));
            random /= ALPHABET.len() as u64;
        }
        name
    }
}

fn next(random: &Mutex<Random>) -> u64 {
    let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
    random.0 = random.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = random.0;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// RFC 3339 without fractions.
pub(crate) fn seconds(time: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names_and_uids() {
        let (a, b) = (Identity::new(7), Identity::new(7));
        assert_eq!((a.uid(), a.name("web-")), (b.uid(), b.name("web-")));
        assert_ne!(a.uid(), a.uid());
        assert_eq!(a.name("web-"), b.name("web-"), "whoever else was made in between");
    }

    #[test]
    fn a_generated_name_is_never_longer_than_a_label() {
        let name = Identity::new(1).name(&"é".repeat(60));
        assert!(name.len() <= 63, "{name}");
    }

    #[test]
    fn uids_are_version_4_uuids() {
        let uid = Identity::new(3).uid();
        let parts: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&uid[14..15], "4");
    }
}
