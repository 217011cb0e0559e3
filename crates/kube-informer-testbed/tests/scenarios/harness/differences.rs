//! What the embedded server deliberately does otherwise.
//!
//! An entry is one path of one scenario. One that does not occur (any more) fails its scenario. Every reason
//! is in the embedded server's `DIFFERENCES.md`.

/// A difference that is meant.
pub(crate) struct Difference {
    pub(crate) scenario: &'static str,
    /// The step and the path in it, as a failed comparison prints them.
    pub(crate) path: &'static str,
    pub(crate) reason: &'static str,
}

/// All of them.
pub(crate) const DIFFERENCES: &[Difference] = &[];
