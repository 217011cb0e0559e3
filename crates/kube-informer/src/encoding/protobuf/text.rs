//! Values that are text in JSON and something else on the wire: times, and strings that are no UTF-8.
//!
//! Each is written as Go's `encoding/json` shows it.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::reader::{Reader, Value};
use crate::encoding::DecodeError;

/// Seconds since 1970 of the first second of year 1: Go's zero time.
const GO_ZERO: i64 = -62_135_596_800;

/// Seconds and nanoseconds of a `Timestamp` message; `None` for the zero time.
pub(crate) fn timestamp(message: &[u8]) -> Result<Option<(i64, i32)>, DecodeError> {
    if message.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(message);
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.value) {
            (1, Value::Varint(value)) => seconds = value as i64,
            (2, Value::Varint(value)) => nanos = value as i32,
            _ => {}
        }
    }
    Ok(Some((seconds, nanos)))
}

/// Seconds since 1970 of a `Time`; `None` for the zero time.
///
/// Nanoseconds are ignored: JSON never had them, and Go drops them when reading.
pub(crate) fn seconds(message: &[u8]) -> Result<Option<i64>, DecodeError> {
    Ok(timestamp(message)?.map(|(seconds, _)| seconds).filter(|&seconds| seconds != GO_ZERO))
}

/// Whether a `Time` is the zero time. One that cannot be read is not.
pub(crate) fn is_zero_time(message: &[u8]) -> bool {
    /// The bytes of a field that holds [`GO_ZERO`], or any number before 1970.
    const LONG: usize = 11;
    match message.len() {
        0 => true,
        1..LONG => false,
        _ => matches!(seconds(message), Ok(None)),
    }
}

/// A time as text.
pub(crate) enum Time {
    /// Of a year of four digits; not on the heap, for every pod has a dozen of them.
    Usual(Aligned),
    /// Of another year.
    Other(String),
}

/// `2006-01-02T15:04:05Z`. Where it begins at a word, it is checked by words that it is UTF-8.
#[repr(align(8))]
pub(crate) struct Aligned([u8; 20]);

impl Time {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Usual(Aligned(text)) => std::str::from_utf8(text).unwrap_or_default(),
            Self::Other(text) => text,
        }
    }
}

/// RFC 3339 in whole seconds, UTC; `None` where JSON shows `null`.
pub(crate) fn time(message: &[u8]) -> Result<Option<Time>, DecodeError> {
    Ok(seconds(message)?.map(|seconds| match usual(seconds) {
        Some(text) => Time::Usual(text),
        None => Time::Other(unusual(seconds) + "Z"),
    }))
}

/// RFC 3339 with six digits, UTC; `None` where JSON shows `null`.
pub(crate) fn micro_time(message: &[u8]) -> Result<Option<String>, DecodeError> {
    Ok(timestamp(message)?.and_then(|(seconds, nanos)| {
        let micros = i64::from(nanos / 1000);
        let seconds = seconds.saturating_add(micros.div_euclid(1_000_000));
        let micros = micros.rem_euclid(1_000_000);
        if seconds == GO_ZERO && micros == 0 {
            return None;
        }
        let mut out = String::with_capacity(27);
        match usual(seconds) {
            Some(text) => out.push_str(Time::Usual(text).as_str().trim_end_matches('Z')),
            None => out.push_str(&unusual(seconds)),
        }
        let _ = write!(out, ".{micros:06}Z");
        Some(out)
    }))
}

/// `2006-01-02T15:04:05Z`, if the year has four digits. Written by hand: a formatter takes ten times as long.
fn usual(seconds: i64) -> Option<Aligned> {
    let [year, month, day, hour, minute, second] = date_time(seconds);
    if !(0..10_000).contains(&year) {
        return None;
    }
    let mut text = *b"0000-00-00T00:00:00Z";
    let pairs =
        [(0, year / 100), (2, year % 100), (5, month), (8, day), (11, hour), (14, minute), (17, second)];
    for (at, value) in pairs {
        // Each value is below 100, and each place is within the text.
        text[at] = b'0' + (value / 10) as u8;
        text[at + 1] = b'0' + (value % 10) as u8;
    }
    Some(Aligned(text))
}

/// `12006-01-02T15:04:05`.
fn unusual(seconds: i64) -> String {
    let [year, month, day, hour, minute, second] = date_time(seconds);
    // Go's four digits do not count the sign.
    let sign = if year < 0 { "-" } else { "" };
    let year = year.unsigned_abs();
    format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Year, month, day, hour, minute and second.
fn date_time(seconds: i64) -> [i64; 6] {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

/// Year, month and day of a number of days since 1970 (the proleptic Gregorian calendar, in eras of 400 years).
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from March of year 0, so that the leap day is the last of a year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A string as Go's JSON shows it: one replacement character for each byte that is not part of UTF-8.
#[inline]
pub(crate) fn string(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(repaired(bytes)),
    }
}

#[cold]
fn repaired(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::reader::put_varint;
    use super::*;

    fn stamp(seconds: i64, nanos: i32) -> Vec<u8> {
        let mut out = vec![0x08];
        put_varint(&mut out, seconds as u64);
        out.push(0x10);
        put_varint(&mut out, i64::from(nanos) as u64);
        out
    }

    #[test]
    fn times_are_those_of_go() {
        let show = |seconds, nanos| {
            let bytes = stamp(seconds, nanos);
            let shown = time(&bytes).unwrap().map(|time| time.as_str().to_owned());
            assert_eq!(is_zero_time(&bytes), shown.is_none());
            shown
        };
        assert_eq!(show(0, 0).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(show(951_782_399, 999).unwrap(), "2000-02-28T23:59:59Z");
        assert_eq!(show(951_868_799, 0).unwrap(), "2000-02-29T23:59:59Z");
        assert_eq!(show(253_402_300_799, 0).unwrap(), "9999-12-31T23:59:59Z");
        assert_eq!(show(253_402_300_800, 0).unwrap(), "10000-01-01T00:00:00Z");
        assert_eq!(show(-1, 0).unwrap(), "1969-12-31T23:59:59Z");
        assert_eq!(show(GO_ZERO, 5), None);
        assert!(time(&[]).unwrap().is_none() && is_zero_time(&[]));
        for extreme in [i64::MIN, i64::MAX] {
            assert!(show(extreme, 0).is_some());
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut expected = jiff::civil::date(1899, 12, 30);
        for day in 0..80_000 {
            let start = -25_569; // 1899-12-30
            let (year, month, dom) = civil(start + day);
            assert_eq!(
                (i64::from(expected.year()), i64::from(expected.month()), i64::from(expected.day())),
                (year, month, dom)
            );
            expected = expected.tomorrow().unwrap();
        }
    }

    #[test]
    fn micro_times_have_six_digits() {
        let show = |seconds, nanos| micro_time(&stamp(seconds, nanos)).unwrap();
        assert_eq!(show(0, 1_999).unwrap(), "1970-01-01T00:00:00.000001Z");
        assert_eq!(show(1, -1_000).unwrap(), "1970-01-01T00:00:00.999999Z");
        assert_eq!(show(GO_ZERO, 0), None);
        assert_eq!(show(GO_ZERO, 1_000).unwrap(), "0001-01-01T00:00:00.000001Z");
        assert_eq!(micro_time(&[]).unwrap(), None);
        assert!(show(i64::MAX, i32::MAX).is_some());
    }

    #[test]
    fn each_broken_byte_is_replaced_by_itself() {
        assert_eq!(string(b"abc"), "abc");
        assert_eq!(string(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        // The first two bytes of a three-byte character.
        assert_eq!(string(b"\xe2\x82x"), "\u{fffd}\u{fffd}x");
    }
}
