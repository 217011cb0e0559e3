//! A time that an object has, or has not, in eight bytes: every cached object has one.

use jiff::Timestamp;

/// Microseconds. Times of metadata are whole seconds, and nothing in the API is finer than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(i64);

/// Before the first time that there is.
const NONE: i64 = i64::MIN;

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

impl Moment {
    pub(super) fn get(self) -> Option<Timestamp> {
        if self.0 == NONE {
            return None;
        }
        Timestamp::new(self.0 / SECOND, i32::try_from(self.0 % SECOND).ok()? * 1_000).ok()
    }
}

impl From<Option<Timestamp>> for Moment {
    fn from(time: Option<Timestamp>) -> Self {
        let micros = |time: Timestamp| time.as_second() * SECOND + i64::from(time.subsec_microsecond());
        Self(time.map_or(NONE, micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_comes_back_and_so_does_none() {
        assert_eq!(Moment::from(None).get(), None);
        for time in [
            Timestamp::MIN,
            Timestamp::UNIX_EPOCH,
            "1969-12-31T23:59:58.5Z".parse().unwrap(),
            "2026-01-02T03:04:05.678901Z".parse().unwrap(),
        ] {
            assert_eq!(Moment::from(Some(time)).get(), Some(time));
        }
        // The last one ends with nanoseconds, which nobody sends.
        let last = Moment::from(Some(Timestamp::MAX)).get().unwrap();
        assert_eq!(last.as_second(), Timestamp::MAX.as_second());
    }
}
