//! For this crate's own tests, and nobody else: one promise at a time can be broken, so that the soak test can show that
//! it would notice.
//!
//! In a build without debug assertions nothing can be broken.

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Sabotage {
    /// A list takes nothing away: objects that it lacks stay.
    NoRelistDiff = 1,
    /// An object that was made again under its name counts as changed.
    NoUidCheck = 2,
    /// Changes that a registration has no room for are dropped without a word.
    NoGap = 3,
}

#[cfg(debug_assertions)]
static BROKEN: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Breaks something in the whole process, or, with `None`, nothing any more.
#[cfg(debug_assertions)]
pub fn set(broken: Option<Sabotage>) {
    BROKEN.store(broken.map_or(0, |broken| broken as u8), std::sync::atomic::Ordering::Relaxed);
}

/// Whether this is broken.
#[cfg(debug_assertions)]
pub(crate) fn is(what: Sabotage) -> bool {
    BROKEN.load(std::sync::atomic::Ordering::Relaxed) == what as u8
}

/// Nothing is.
#[cfg(not(debug_assertions))]
pub(crate) const fn is(_what: Sabotage) -> bool {
    false
}
