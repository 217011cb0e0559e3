//! Chance that repeats itself.
//!
//! A draw is a hash of the seed, what it is for, and whom it is about, not the next number of a sequence:
//! so it does not depend on the order in which objects are looked at.

use std::time::Duration;

/// The source of every duration and choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dice {
    seed: u64,
    speed: f64,
}

impl Dice {
    pub(super) fn new(seed: u64, speed: f64) -> Self {
        let speed = if speed.is_finite() && speed > 0.0 { speed } else { 1.0 };
        Self { seed, speed }
    }

    /// A number that depends on nothing but the seed and the arguments.
    pub(super) fn roll(&self, purpose: &str, about: &str, turn: u64) -> u64 {
        let mut hash = FNV_BASIS ^ mix(self.seed);
        for part in [purpose.as_bytes(), &[0], about.as_bytes(), &[0], &turn.to_le_bytes()] {
            hash = fnv(hash, part);
        }
        mix(hash)
    }

    /// The same, in [0, 1).
    pub(super) fn chance(&self, purpose: &str, about: &str, turn: u64) -> f64 {
        // 53 bits are what an f64 holds exactly.
        (self.roll(purpose, about, turn) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A duration between two numbers of simulated seconds, in real time.
    pub(super) fn between(&self, seconds: (f64, f64), purpose: &str, about: &str, turn: u64) -> Duration {
        let (least, most) = seconds;
        self.real(least + (most - least) * self.chance(purpose, about, turn))
    }

    /// How long simulated seconds are in real time.
    pub(super) fn real(&self, seconds: f64) -> Duration {
        // Longer than anybody waits, and far from overflowing an `Instant`.
        const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
        Duration::try_from_secs_f64(seconds.max(0.0) / self.speed).unwrap_or(LONGEST).min(LONGEST)
    }

    /// Hexadecimal digits, such as image and container IDs are made of.
    pub(super) fn hex(&self, purpose: &str, about: &str, turn: u64) -> String {
        (0..4).map(|part| format!("{:016x}", mix(self.roll(purpose, about, turn) ^ part))).collect()
    }
}

/// A number for a name, the same in every run.
pub(super) fn hash(name: &str) -> u64 {
    mix(fnv(FNV_BASIS, name.as_bytes()))
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// The finaliser of SplitMix64: neighbouring inputs give unrelated outputs.
pub(super) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A short name for a pod template, as the real controllers derive one: 32 bits of FNV-1a in an alphabet
/// that spells nothing.
pub(super) fn short_hash(text: &str, collisions: i64) -> String {
    const ALPHABET: &[u8; 10] = b"bcdf456789";
    let mut hash: u32 = 0x811c_9dc5;
    for byte in text.bytes().chain(collisions.to_le_bytes().into_iter().filter(|_| collisions != 0)) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit - b'0') % 10])).collect()
}
