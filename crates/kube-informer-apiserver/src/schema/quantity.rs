//! Resource quantities: `100m`, `1.5Gi`, `2e3`.
//!
//! Parsed and written as apimachinery does: a quantity that is written in its canonical form already
//! keeps its text, every other one gets the canonical text of its value. More than 38 digits keep their
//! text as it is.

use std::cmp::Ordering;
use std::fmt;

/// The error for anything that is no quantity at all.
pub(crate) const FORMAT: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// Digits that always fit 64 bits.
const FAST_DIGITS: i64 = 18;
const NANO: i64 = -9;
/// The largest amount that a binary quantity may have.
const MAX_BINARY: i128 = i64::MAX as i128 * 1_000_000_000;

/// Names of thousands, from 10^-9.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// A parsed quantity. Amounts are equal however they are written.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    text: String,
    /// In billionths; the ends of the range for values beyond it.
    nanos: i128,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.nanos.partial_cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalSi,
    DecimalExponent,
    BinarySi,
}

impl Quantity {
    /// Compared with nothing.
    pub(crate) fn sign(&self) -> Ordering {
        self.nanos.cmp(&0)
    }

    /// No fraction.
    pub(crate) fn is_whole(&self) -> bool {
        self.nanos % 1_000_000_000 == 0
    }

    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(FORMAT);
        }
        if text == "0" {
            return Ok(Self { text: text.to_owned(), nanos: 0 });
        }
        let parts = Parts::split(text)?;
        let (exponent, format) = suffix(parts.suffix).ok_or(SUFFIX)?;
        let digits = (parts.whole.len() + parts.fraction.len()) as i64;
        let fast = match format {
            Format::DecimalSi | Format::DecimalExponent => {
                FAST_DIGITS >= digits && exponent - parts.fraction.len() as i64 >= NANO
            }
            Format::BinarySi => {
                parts.fraction.is_empty() && 15 - parts.whole.len() as i64 - exponent * 3 / 10 > 0
            }
        };
        let shifted = format!("{}{}", parts.whole, parts.fraction);
        let Ok(unscaled) = shifted.parse::<i128>() else {
            // More than 38 digits: the value does not matter to anyone, the text is kept.
            return if shifted.is_empty() || shifted.bytes().any(|b| !b.is_ascii_digit()) {
                Err(NUMERIC)
            } else {
                Ok(Self::beyond(text, parts.positive))
            };
        };
        let sign = if parts.positive { 1 } else { -1 };
        let scale = if format == Format::BinarySi { 0 } else { exponent } - parts.fraction.len() as i64;
        let binary = if format == Format::BinarySi { exponent } else { 0 };
        let Some(mut nanos) = nanos(unscaled, scale, binary) else {
            return Ok(match format {
                Format::BinarySi => {
                    Self { text: canonical(sign * MAX_BINARY, format), nanos: sign * MAX_BINARY }
                }
                _ if scale < NANO => Self { text: canonical(sign, format), nanos: sign },
                _ => {
                    let text = decimal(sign * unscaled, scale, format);
                    Self { text, ..Self::beyond("", parts.positive) }
                }
            });
        };
        if fast {
            let canonical = match format {
                Format::BinarySi => unscaled & 7 != 0,
                _ => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
            };
            if canonical {
                return Ok(Self { text: text.to_owned(), nanos: nanos * sign });
            }
        } else if format == Format::BinarySi {
            nanos = nanos.min(MAX_BINARY);
        }
        let nanos = nanos * sign;
        Ok(Self { text: canonical(nanos, format), nanos })
    }

    fn beyond(text: &str, positive: bool) -> Self {
        Self { text: text.to_owned(), nanos: if positive { i128::MAX } else { i128::MIN } }
    }
}

/// `unscaled * 10^scale * 2^binary` in billionths, rounded up. `None` when it does not fit.
fn nanos(unscaled: i128, scale: i64, binary: i64) -> Option<i128> {
    let value = unscaled.checked_mul(1_i128.checked_shl(u32::try_from(binary).ok()?)?)?;
    let shift = scale - NANO;
    let power = |n: i64| u32::try_from(n).ok().and_then(|n| 10_i128.checked_pow(n));
    if value == 0 {
        Some(0)
    } else if shift >= 0 {
        value.checked_mul(power(shift)?)
    } else {
        let divisor = power(-shift)?;
        Some(value / divisor + i128::from(value % divisor != 0))
    }
}

struct Parts<'a> {
    positive: bool,
    /// Digits before the point, without leading zeros, at least one.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, &'static str> {
        let (positive, rest) = match text.as_bytes().first() {
            Some(b'-') => (false, &text[1..]),
            Some(b'+') => (true, &text[1..]),
            _ => (true, text),
        };
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let rest = rest.trim_start_matches('0');
        let (whole, rest) = rest.split_at(digits(rest));
        let whole = if whole.is_empty() { "0" } else { whole };
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        // Letters, then a sign, then digits.
        let tail = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
        if tail.bytes().all(|b| b.is_ascii_digit()) {
            Ok(Self { positive, whole, fraction, suffix })
        } else {
            Err(FORMAT)
        }
    }
}

fn suffix(text: &str) -> Option<(i64, Format)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(index) = DECIMAL.iter().position(|s| *s == text) {
        return Some((index as i64 * 3 - 9, Format::DecimalSi));
    }
    if let Some(index) = BINARY.iter().position(|s| *s == text) {
        return Some((index as i64 * 10 + 10, Format::BinarySi));
    }
    let exponent = text.strip_prefix(['e', 'E'])?;
    // The real server cuts an exponent to 32 bits.
    exponent.parse::<i64>().ok().map(|n| (i64::from(n as i32), Format::DecimalExponent))
}

fn canonical(nanos: i128, format: Format) -> String {
    const ONE: i128 = 1_000_000_000;
    if nanos == 0 {
        return "0".to_owned();
    }
    if format == Format::BinarySi && nanos.abs() >= 1024 * ONE && nanos % ONE == 0 {
        let (mut value, mut index) = (nanos / ONE, 0);
        while value % 1024 == 0 && index < 6 {
            value /= 1024;
            index += 1;
        }
        let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][index];
        return format!("{value}{suffix}");
    }
    decimal(nanos, NANO, format)
}

/// `value * 10^exponent` with the exponent brought to a multiple of three.
fn decimal(mut value: i128, mut exponent: i64, format: Format) -> String {
    while value % 10 == 0 && value != 0 {
        value /= 10;
        exponent += 1;
    }
    let mut zeros = 0;
    while exponent % 3 != 0 {
        zeros += 1;
        exponent -= 1;
    }
    let zeros = &"00"[..zeros];
    match format {
        Format::DecimalExponent if exponent == 0 => format!("{value}{zeros}"),
        Format::DecimalExponent => format!("{value}{zeros}e{exponent}"),
        _ => {
            // There is no name beyond `E`. The real server loses the exponent then, and so does this.
            let index = usize::try_from(exponent / 3 + 3).unwrap_or(usize::MAX);
            format!("{value}{zeros}{}", DECIMAL.get(index).unwrap_or(&""))
        }
    }
}
