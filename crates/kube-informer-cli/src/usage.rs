//! Arguments that only turn out to be wrong when they are looked at together: exit code 2, as for any other wrong ones.

use std::fmt;

/// Why arguments cannot be meant so, and how they can be written.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
