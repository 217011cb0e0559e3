//! Strings that mean something: times, bytes, quoted names; with Go's words for what is wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use serde_json::{Number, Value};

/// How precisely a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// `2026-01-02T03:04:05Z`; a fraction is read and dropped.
    Seconds,
    /// `2026-01-02T03:04:05.000006Z`: six digits, no more and no less.
    Micros,
}

impl TimeForm {
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Go's `strconv.Quote` for what field names can hold.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c == '\x7f' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A float as Go writes it: whole values without a fraction.
pub(crate) fn float(number: &Number) -> Value {
    match number.as_f64() {
        Some(f) if number.is_f64() && f.fract() == 0.0 && f.abs() < 9e15 => Value::from(f as i64),
        _ => Value::Number(number.clone()),
    }
}

/// Reads a time and writes it in UTC. `None`: Go's zero time, which is absence.
pub(crate) fn time(text: &str, form: TimeForm) -> Result<Option<Value>, String> {
    let fail = |rest: &str, element: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(text),
            quote(form.layout()),
            quote(rest),
            quote(element)
        )
    };
    let range = |what: &str| format!("parsing time {}: {what} out of range", quote(text));
    let mut cursor = Cursor { rest: text };
    let year = cursor.number(4, 4).ok_or_else(|| fail(cursor.rest, "2006"))?;
    cursor.literal('-').map_err(|rest| fail(rest, "-"))?;
    let month = cursor.number(2, 2).ok_or_else(|| fail(cursor.rest, "01"))?;
    if !(1..=12).contains(&month) {
        return Err(range("month"));
    }
    cursor.literal('-').map_err(|rest| fail(rest, "-"))?;
    let day = cursor.number(2, 2).ok_or_else(|| fail(cursor.rest, "02"))?;
    cursor.literal('T').map_err(|rest| fail(rest, "T"))?;
    let hour = cursor.number(1, 2).ok_or_else(|| fail(cursor.rest, "15"))?;
    if hour > 23 {
        return Err(range("hour"));
    }
    cursor.literal(':').map_err(|rest| fail(rest, ":"))?;
    let minute = cursor.number(2, 2).ok_or_else(|| fail(cursor.rest, "04"))?;
    if minute > 59 {
        return Err(range("minute"));
    }
    cursor.literal(':').map_err(|rest| fail(rest, ":"))?;
    let second = cursor.number(2, 2).ok_or_else(|| fail(cursor.rest, "05"))?;
    if second > 59 {
        return Err(range("second"));
    }
    let micros = match form {
        TimeForm::Seconds => {
            cursor.skip_fraction();
            0
        }
        TimeForm::Micros => cursor.micros().ok_or_else(|| fail(cursor.rest, ".000000"))?,
    };
    let (hours, minutes) = cursor.offset().ok_or_else(|| fail(cursor.rest, "Z07:00"))?;
    if hours.abs() > 24 {
        return Err(range("time zone offset hour"));
    }
    if minutes.abs() > 60 {
        return Err(range("time zone offset minute"));
    }
    if !cursor.rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(text), quote(cursor.rest)));
    }
    let date = Date::new(year as i16, month as i8, day as i8).map_err(|_| range("day"))?;
    let time =
        Time::new(hour as i8, minute as i8, second as i8, micros * 1000).map_err(|_| range("second"))?;
    let stamp = Offset::from_seconds(hours * 3600 + minutes * 60)
        .and_then(|o| o.to_timestamp(DateTime::from_parts(date, time)));
    // Beyond what the clock library counts: kept as it came.
    Ok(stamp.map_or_else(|_| Some(text.into()), |stamp| write_time(stamp, form)))
}

fn write_time(stamp: Timestamp, form: TimeForm) -> Option<Value> {
    let at = Offset::UTC.to_datetime(stamp);
    let (date, time) = (at.date(), at.time());
    let day = format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day());
    let clock = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    if day == "0001-01-01" && clock == "00:00:00" && time.subsec_nanosecond() == 0 {
        return None;
    }
    Some(match form {
        TimeForm::Seconds => format!("{day}T{clock}Z").into(),
        TimeForm::Micros => format!("{day}T{clock}.{:06}Z", time.subsec_nanosecond() / 1000).into(),
    })
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn digits(&self, most: usize) -> usize {
        self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count()
    }

    fn number(&mut self, least: usize, most: usize) -> Option<u16> {
        let count = self.digits(most);
        if count < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().ok()
    }

    fn literal(&mut self, c: char) -> Result<(), &'_ str> {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.rest),
        }
    }

    fn skip_fraction(&mut self) {
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else { return };
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 {
            self.rest = &rest[count..];
        }
    }

    fn micros(&mut self) -> Option<i32> {
        let rest = self.rest.strip_prefix(['.', ','])?;
        let digits = rest.get(..6).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
        let value = digits.parse().ok()?;
        self.rest = &rest[6..];
        Some(value)
    }

    /// Hours and minutes east of UTC.
    fn offset(&mut self) -> Option<(i32, i32)> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Some((0, 0));
        }
        let bytes = self.rest.as_bytes().get(..6)?;
        let sign = match bytes[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let two = |at: usize| {
            let (tens, ones) = (bytes[at], bytes[at + 1]);
            (tens.is_ascii_digit() && ones.is_ascii_digit())
                .then(|| i32::from(tens - b'0') * 10 + i32::from(ones - b'0'))
        };
        let (hours, minutes) = (two(1)?, two(4)?);
        if bytes[3] != b':' {
            return None;
        }
        self.rest = &self.rest[6..];
        Some((sign * hours, sign * minutes))
    }
}

/// Reads base64 as Go does (line breaks are skipped) and writes it in its one canonical form.
pub(crate) fn base64(text: &str) -> Result<String, String> {
    let corrupt = |at: usize| format!("illegal base64 data at input byte {at}");
    let source = text.as_bytes();
    let skip = |mut at: usize| {
        while source.get(at).is_some_and(|b| matches!(b, b'\n' | b'\r')) {
            at += 1;
        }
        at
    };
    let mut out = Vec::with_capacity(source.len() / 4 * 3);
    let mut at = 0;
    loop {
        let mut quantum = [0_u8; 4];
        let mut count = 0;
        while count < 4 {
            let Some(&byte) = source.get(at) else {
                if count == 0 {
                    return Ok(STANDARD.encode(out));
                }
                return Err(corrupt(at - count));
            };
            at += 1;
            match byte {
                b'\n' | b'\r' => {}
                b'=' => {
                    if count < 2 {
                        return Err(corrupt(at - 1));
                    }
                    if count == 2 {
                        at = skip(at);
                        match source.get(at) {
                            None => return Err(corrupt(source.len())),
                            Some(b'=') => at += 1,
                            Some(_) => return Err(corrupt(at - 1)),
                        }
                    }
                    at = skip(at);
                    if at < source.len() {
                        return Err(corrupt(at));
                    }
                    out.extend_from_slice(&bytes(quantum)[..count - 1]);
                    return Ok(STANDARD.encode(out));
                }
                _ => {
                    quantum[count] = sextet(byte).ok_or_else(|| corrupt(at - 1))?;
                    count += 1;
                }
            }
        }
        out.extend_from_slice(&bytes(quantum));
    }
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

fn bytes([a, b, c, d]: [u8; 4]) -> [u8; 3] {
    [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]
}
