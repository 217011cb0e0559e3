//! How an election is held, and what of it makes no sense.

use std::time::Duration;

use crate::host;

/// As client-go: see there.
pub(super) const JITTER: f64 = 1.2;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) identity: String,
    /// How long others wait after the last renewal that they saw.
    pub(super) lease: Duration,
    /// How long a leader leads after its last renewal was sent.
    pub(super) renew: Duration,
    /// Between two renewals.
    pub(super) retry: Duration,
    pub(super) release: bool,
}

/// Settings of an election that make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the leader election cannot be held: {setting} is {value}, but {must}")]
#[non_exhaustive]
pub struct SettingsError {
    /// Which one.
    pub setting: &'static str,
    /// What it is.
    pub value: String,
    /// What it should be.
    pub must: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identity: identity(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            release: true,
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let wrong = |setting, value: String, must: String| Err(SettingsError { setting, value, must });
        let time = |setting, value: Duration, must: String| wrong(setting, format!("{value:?}"), must);
        if self.identity.is_empty() {
            return wrong("the identity", "empty".to_owned(), "it must tell this process from others".into());
        }
        if self.identity.len() > LONGEST_IDENTITY {
            let length = format!("{} bytes long", self.identity.len());
            return wrong("the identity", length, format!("it must not be longer than {LONGEST_IDENTITY}"));
        }
        if self.lease < Duration::from_secs(1) || self.lease > LONGEST_LEASE {
            return time("lease", self.lease, format!("it must be from 1 s to {LONGEST_LEASE:?}"));
        }
        if self.renew >= self.lease {
            let must =
                format!("it must be shorter than lease ({:?}): others may lead after that", self.lease);
            return time("renew", self.renew, must);
        }
        if self.retry.is_zero() {
            return time("retry", self.retry, "it must be longer than nothing".to_owned());
        }
        if self.retry >= self.renew {
            // Nor can it be multiplied, whatever it is.
            let must = format!("it must be shorter than renew ({:?}), to try once more", self.renew);
            return time("retry", self.retry, must);
        }
        let least = self.retry.mul_f64(JITTER);
        if self.renew <= least {
            let must = format!("it must be longer than {JITTER} times retry ({least:?}), to try once more");
            return time("renew", self.renew, must);
        }
        Ok(())
    }

    /// What the lease says of its duration: not less than it is.
    pub(super) fn lease_seconds(&self) -> i32 {
        let up = u64::from(self.lease.subsec_nanos() > 0);
        i32::try_from(self.lease.as_secs().saturating_add(up)).unwrap_or(i32::MAX)
    }

    /// How long a request may take.
    pub(super) fn request(&self) -> Duration {
        self.renew / 2
    }
}

/// A day: nobody waits longer for a leader that is gone.
const LONGEST_LEASE: Duration = Duration::from_secs(86_400);

/// More than any host name and anything random.
const LONGEST_IDENTITY: usize = 1024;

/// What goes into a path.
pub(super) fn check_name(setting: &'static str, value: &str) -> Result<(), SettingsError> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !value.is_empty() && value.len() <= 253 && value.bytes().all(allowed) {
        return Ok(());
    }
    let must = "it must be up to 253 lower case letters, digits, dashes and dots".to_owned();
    Err(SettingsError { setting, value: format!("{value:?}"), must })
}

/// Host name and something random: two processes of one host are two.
fn identity() -> String {
    let random = || fastrand::u64(..);
    format!("{}_{:016x}{:016x}", host::name(), random(), random())
}
