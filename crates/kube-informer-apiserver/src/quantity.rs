//! Resource quantities: `500m`, `1Gi`, `2e3`.
//!
//! Amounts are compared in billionths, which is also the finest step that the real server keeps.

use std::cmp::Ordering;

/// An amount in billionths. Amounts beyond the range stop at its ends, as they do on the real server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nano: i128,
    family: Family,
}

/// How an amount was written, which is how it is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// `m`, none, `k`, `M`, …
    Decimal,
    /// `Ki`, `Mi`, …
    Binary,
    /// `e3`
    Exponent,
}

const ONE: i128 = 1_000_000_000;
/// Twelve digits more than an `i64` of billionths: room to compare, no overflow.
const LIMIT: i128 = i64::MAX as i128 * ONE;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Reads a quantity; `None` if it is not one.
pub(crate) fn parse(text: &str) -> Option<Quantity> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (family, tens, twos) = read_suffix(suffix)?;
    let mut nano = amount(whole, fraction, tens, twos);
    if negative {
        nano = -nano;
    }
    Some(Quantity { nano, family })
}

/// Family, power of ten and power of two of a suffix.
fn read_suffix(suffix: &str) -> Option<(Family, i32, u32)> {
    if let Some(power) = BINARY.iter().skip(1).position(|s| *s == suffix) {
        let power = u32::try_from(power).ok()?;
        return Some((Family::Binary, 0, 10 * (power + 1)));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Some((Family::Decimal, *power, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Family::Exponent, exponent.parse().ok()?, 0))
}

/// The digits, scaled and rounded up to billionths.
fn amount(whole: &str, fraction: &str, tens: i32, twos: u32) -> i128 {
    let mut digits: i128 = 0;
    let mut dropped = false;
    let mut scale = i64::from(tens) + 9;
    let mut past_point = false;
    for digit in whole.bytes().map(Some).chain([None]).chain(fraction.bytes().map(Some)) {
        let Some(digit) = digit else {
            past_point = true;
            continue;
        };
        let digit = i128::from(digit - b'0');
        if digits > LIMIT {
            // More digits than there is room for: they only say "at least this much".
            dropped |= digit != 0;
            scale += i64::from(!past_point);
            continue;
        }
        digits = digits * 10 + digit;
        scale -= i64::from(past_point);
    }
    let factor = 1i128 << twos;
    let mut nano = digits.saturating_mul(factor);
    while scale > 0 && nano != 0 {
        nano = nano.saturating_mul(10);
        if nano > LIMIT {
            return LIMIT;
        }
        scale -= 1;
    }
    while scale < 0 && nano != 0 {
        dropped |= nano % 10 != 0;
        nano /= 10;
        scale += 1;
    }
    (nano + i128::from(dropped)).min(LIMIT)
}

// Amounts are equal however they are written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.nano.partial_cmp(&other.nano)
    }
}

impl Quantity {
    pub(crate) fn sign(self) -> Ordering {
        self.nano.cmp(&0)
    }

    pub(crate) fn is_whole(self) -> bool {
        self.nano % ONE == 0
    }

    /// The shortest way to write it in its family: `1000m` is `1`, `1024Mi` is `1Gi`.
    pub(crate) fn canonical(self) -> String {
        let sign = if self.nano < 0 { "-" } else { "" };
        let nano = self.nano.abs();
        if self.family == Family::Binary && nano % ONE == 0 && nano >= 1024 * ONE {
            let mut number = nano / ONE;
            let mut power = 0;
            while number % 1024 == 0 && power + 1 < BINARY.len() && number != 0 {
                number /= 1024;
                power += 1;
            }
            return format!("{sign}{number}{}", BINARY.get(power).copied().unwrap_or_default());
        }
        let mut number = nano;
        let mut power = 0;
        while number != 0 && number % 1000 == 0 && power + 1 < DECIMAL.len() {
            number /= 1000;
            power += 1;
        }
        if number == 0 {
            return "0".to_owned();
        }
        let (suffix, tens) = DECIMAL.get(power).copied().unwrap_or_default();
        match self.family {
            Family::Exponent if tens != 0 => format!("{sign}{number}e{tens}"),
            _ => format!("{sign}{number}{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_written_the_short_way() {
        for (text, canonical) in [
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1024Mi", "1Gi"),
            ("2Gi", "2Gi"),
            ("1.5Gi", "1536Mi"),
            ("100Ki", "100Ki"),
            ("1e3", "1e3"),
            ("1000", "1k"),
            ("-1", "-1"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("+3", "3"),
            ("128974848", "128974848"),
            ("12e6", "12e6"),
        ] {
            assert_eq!(parse(text).map(Quantity::canonical).as_deref(), Some(canonical), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in ["", "-", ".", "a", "1 ", "1.2.3", "1Kib", "1e", "1e1.5", "Gi", "1mm"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.eEmkMGTPinu]{0,30}") {
            if let Some(quantity) = parse(&text) {
                let again = parse(&quantity.canonical());
                prop_assert_eq!(again, Some(quantity));
            }
        }

        #[test]
        fn whole_numbers_compare_as_numbers(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000) {
            let (x, y) = (parse(&a.to_string()).unwrap(), parse(&format!("{b}000m")).unwrap());
            prop_assert_eq!(x.partial_cmp(&y), a.partial_cmp(&b));
        }
    }
}
