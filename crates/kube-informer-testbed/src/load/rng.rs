//! Numbers that look random and are the same everywhere.

/// A splitmix64 generator: small, fast, good enough to vary objects; no secret
/// should depend on it.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

/// The characters of generated names: no vowels, so no words.
const NAME: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Rng {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator of its own for one of many things made from one seed.
    #[must_use]
    pub fn of(seed: u64, what: &str, index: u64) -> Self {
        let mut state = Self::new(seed).next();
        for byte in what.bytes().chain(index.to_le_bytes()) {
            state = Self::new(state ^ u64::from(byte)).next();
        }
        Self::new(state)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound; 0 for the bound 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a wide product is even enough for any bound in use.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// One of several.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// So many hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(*self.pick(b"0123456789abcdef"))).collect()
    }

    /// So many characters as generated names have them.
    pub fn name(&mut self, characters: usize) -> String {
        (0..characters).map(|_| char::from(*self.pick(NAME))).collect()
    }

    /// Something shaped as a UUID.
    pub fn uuid(&mut self) -> String {
        let [a, b, c, d, e] = [8, 4, 3, 3, 12].map(|digits| self.hex(digits));
        format!("{a}-{b}-4{c}-a{d}-{e}")
    }

    /// A moment of one certain day.
    pub fn time(&mut self) -> String {
        let second = self.below(86_400);
        format!("2026-03-01T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}
