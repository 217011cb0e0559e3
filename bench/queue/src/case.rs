//! What a queue is asked to do.

use anyhow::{Result, bail};

/// One case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// All keys are added; then one worker gets them, one after the other, and is done with each.
    FillAndDrain,
    /// The same with four workers.
    FillAndDrainByFour,
    /// Keys that wait already are added, in another order than before.
    AddPending,
    /// One worker gets a key, is done with it, and it is added again, while all others wait.
    Steady,
    /// All keys are added with a delay of up to 10 ms, and one worker gets them.
    Delayed,
    /// All keys failed once: they are added as the limiter says; one worker gets them, and has them forgotten.
    RateLimited,
    /// Keys that failed once are forgotten, in another order.
    Forget,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::FillAndDrain,
        Self::FillAndDrainByFour,
        Self::AddPending,
        Self::Steady,
        Self::Delayed,
        Self::RateLimited,
        Self::Forget,
    ];

    /// As it is called on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FillAndDrain => "fill-and-drain",
            Self::FillAndDrainByFour => "fill-and-drain-by-four",
            Self::AddPending => "add-pending",
            Self::Steady => "steady",
            Self::Delayed => "delayed",
            Self::RateLimited => "rate-limited",
            Self::Forget => "forget",
        }
    }

    /// The case of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn named(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|case| case.name() == name) {
            Some(case) => Ok(case),
            None => bail!("no such case: {name}"),
        }
    }

    /// How often it is played: few keys take less time than a clock can tell. Where keys wait for their time, so does
    /// the player.
    #[must_use]
    pub fn times(self, keys: usize) -> usize {
        let operations = match self {
            Self::Delayed | Self::RateLimited => 50_000,
            _ => 500_000,
        };
        (operations / keys.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_found_by_its_name() {
        for case in Case::ALL {
            assert_eq!(Case::named(case.name()).unwrap(), case);
        }
        assert!(Case::named("sort").is_err());
    }
}
