//! Lengths of time as people write them, and as Go and kubectl take them: `90s`, `1m30s`, `1.5h`, `500ms`, `0`.
//!
//! A number without a unit is seconds, as kubectl's `--request-timeout` has it. Nothing is negative, and nothing is longer
//! than what Go can say, 292 years.

use std::time::Duration;

/// What a flag is told where it was given something else.
const EXAMPLES: &str = "must be a time such as 30s, 1m30s, 1.5h or 500ms";

/// The longest that Go can say.
const LONGEST: u128 = i64::MAX as u128;

const SECOND: u128 = 1_000_000_000;

/// Units with their nanoseconds.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads one; says what is wrong with it, and how it is written.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return sum(text, "", SECOND, 0);
    }
    let (mut rest, mut nanos) = (text.strip_prefix('+').unwrap_or(text), 0);
    let mut time = Err(EXAMPLES.to_owned());
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (part, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && part.is_empty() {
            return Err(EXAMPLES.to_owned());
        }
        let (name, after) =
            after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        let Some((_, unit)) = UNITS.into_iter().find(|(unit, _)| *unit == name) else {
            return Err(no_unit(name));
        };
        let sum = sum(whole, part, unit, nanos)?;
        (nanos, time, rest) = (sum.as_nanos(), Ok(sum), after);
    }
    time
}

/// The digits that a text begins with, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// So many units and a part of one, to what there is already.
fn sum(whole: &str, part: &str, unit: u128, nanos: u128) -> Result<Duration, String> {
    let too_long = || "is too long: the longest is 292 years, 2562047h".to_owned();
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_long())? };
    // What is less than a nanosecond is nothing; so many digits are enough for one, whatever the unit.
    let (part, digits) = part.bytes().take(18).fold((0_u128, 1_u128), |(part, digits), byte| {
        (part * 10 + u128::from(byte.saturating_sub(b'0')), digits * 10)
    });
    let sum = whole.checked_mul(unit).and_then(|whole| whole.checked_add(part * unit / digits + nanos));
    let sum = sum.filter(|sum| *sum <= LONGEST).and_then(|sum| u64::try_from(sum).ok());
    sum.map(Duration::from_nanos).ok_or_else(too_long)
}

fn no_unit(name: &str) -> String {
    match name {
        "" => format!("lacks a unit, one of ns, us, ms, s, m and h: it {EXAMPLES}"),
        name => format!("{name:?} is no unit of time, as ns, us, ms, s, m and h are: it {EXAMPLES}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("90", 90_000_000_000),
            ("90s", 90_000_000_000),
            ("+5s", 5_000_000_000),
            ("1m30s", 90_000_000_000),
            ("2h", 7_200_000_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("500ms", 500_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3µs", 3_000),
            ("3μs", 3_000),
            ("0.3333333333333333333h", 1_200_000_000_000 - 1),
            ("5s5s", 10_000_000_000),
            ("9223372036854775807ns", i64::MAX.unsigned_abs()),
            ("000000000000000000000001s", 1_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_says_how_one_is_written() {
        for (wrong, why) in [
            ("", "must be a time such as 30s, 1m30s"),
            ("s", "such as 30s"),
            (".", "such as 30s"),
            (".s", "such as 30s"),
            ("+", "such as 30s"),
            ("-1s", "such as 30s"),
            (" 1s", "such as 30s"),
            ("soon", "such as 30s"),
            ("2 m", "\" m\" is no unit of time"),
            ("2d", "\"d\" is no unit of time"),
            ("2min", "\"min\" is no unit of time"),
            ("1m30s ", "\"s \" is no unit of time"),
            ("1m30", "lacks a unit"),
            ("1.5", "lacks a unit"),
            ("٣s", "such as 30s"),
            ("99999999999999999999h", "292 years"),
            ("9223372036854775808ns", "292 years"),
            ("2562047h48m", "292 years"),
            ("999999999999999999999999999999999999999999s", "292 years"),
        ] {
            let said = duration(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9.+smhunµ -]{0,40}|\\PC{0,10}") {
            let _ = duration(&text);
        }

        #[test]
        fn parts_add_up(hours in 0_u64..9999, minutes in 0_u64..9999, millis in 0_u64..9999) {
            let expected = Duration::from_millis((hours * 60 + minutes) * 60_000 + millis);
            prop_assert_eq!(duration(&format!("{hours}h{minutes}m{millis}ms")), Ok(expected));
        }
    }
}
