//! What was told, for those who come back: the last entries, each with its place.
//!
//! A [`Cursor`] is a place: the epoch, another one after each start, and a number that counts up. Whoever has a cursor can
//! be told what came after it, exactly, or is told why that cannot be.
//!
//! The journal is bounded, by entries and by bytes; the oldest are forgotten. It does no I/O and knows no clock.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place in what was told: `7f3:18834`. For clients it is a text that they give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The start of the server that it belongs to.
    pub epoch: Epoch,
    /// How much was told before, and here.
    pub seq: u64,
}

/// One start of a server, told from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

/// A text that is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor: a cursor is what the server gave, such as \"7f3:18834\"")]
pub struct ParseCursorError;

/// Why what came after a cursor cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It is from another start of the server.
    #[error("the cursor is from another start of the server: this one is {now}")]
    UnknownEpoch {
        /// This start.
        now: Epoch,
    },
    /// What came after it was forgotten.
    #[error("the cursor is too old: what is known begins at {oldest}")]
    TooOld {
        /// The oldest cursor that could be resumed from.
        oldest: Cursor,
    },
    /// It was never given.
    #[error("the cursor is in the future: the last one is {last}")]
    Future {
        /// The last one that was given.
        last: Cursor,
    },
}

/// What is kept in a journal.
pub trait Entry {
    /// What it takes, in bytes.
    fn bytes(&self) -> usize;
}

/// See the [module](self).
#[derive(Debug)]
pub struct Journal<T> {
    epoch: Epoch,
    /// With consecutive numbers; the last one has `last`.
    entries: VecDeque<T>,
    last: u64,
    bytes: usize,
    bounds: Bounds,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Entries.
    pub entries: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for Bounds {
    /// 16,384 entries, 32 MiB.
    fn default() -> Self {
        Self { entries: 16_384, bytes: 32 << 20 }
    }
}

impl Epoch {
    /// One that was not there before.
    #[must_use]
    pub fn random() -> Self {
        // The keys of a hasher are the randomness that the standard library has. Short, as it is in every message.
        Self(RandomState::new().hash_one(std::process::id()) & 0xffff_ffff_ffff)
    }
}

impl<T: Entry> Journal<T> {
    /// An empty journal of a new epoch.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self::of(Epoch::random(), bounds)
    }

    fn of(epoch: Epoch, bounds: Bounds) -> Self {
        Self { epoch, entries: VecDeque::new(), last: 0, bytes: 0, bounds }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The last place that was given.
    #[must_use]
    pub fn last(&self) -> Cursor {
        self.at(self.last)
    }

    /// The oldest place that can be resumed from.
    #[must_use]
    pub fn oldest(&self) -> Cursor {
        self.at(self.last.saturating_sub(self.entries.len() as u64))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the entries take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds what is made out of its place, and forgets what is too much.
    pub fn push(&mut self, entry: impl FnOnce(Cursor) -> T) -> Cursor {
        self.last = self.last.saturating_add(1);
        let cursor = self.last();
        let entry = entry(cursor);
        self.bytes = self.bytes.saturating_add(entry.bytes());
        self.entries.push_back(entry);
        while self.entries.len() > self.bounds.entries || self.bytes > self.bounds.bytes {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
        cursor
    }

    /// What came after a place, oldest first.
    ///
    /// # Errors
    ///
    /// Where that is not known.
    pub fn since(&self, cursor: Cursor) -> Result<impl Iterator<Item = &T> + '_, ResumeError> {
        if cursor.epoch != self.epoch {
            return Err(ResumeError::UnknownEpoch { now: self.epoch });
        }
        if cursor.seq > self.last {
            return Err(ResumeError::Future { last: self.last() });
        }
        let oldest = self.oldest();
        let skipped = cursor.seq.checked_sub(oldest.seq).ok_or(ResumeError::TooOld { oldest })?;
        Ok(self.entries.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)))
    }

    /// A place of this epoch.
    #[must_use]
    pub fn at(&self, seq: u64) -> Cursor {
        Cursor { epoch: self.epoch, seq }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let (epoch, seq) = text.split_once(':').ok_or(ParseCursorError)?;
        // Numbers with a sign, or in capitals, were not given by the server.
        let is_plain = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_plain(epoch) || !is_plain(seq) {
            return Err(ParseCursorError);
        }
        let epoch = u64::from_str_radix(epoch, 16).map_err(|_| ParseCursorError)?;
        let seq = seq.parse().map_err(|_| ParseCursorError)?;
        Ok(Self { epoch: Epoch(epoch), seq })
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
