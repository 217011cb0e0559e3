//! Which texts can stand without quotes, and in which form else.

/// What a text allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) multiline: bool,
    /// Without quotes.
    pub(super) plain: bool,
    /// Between single quotes.
    pub(super) single: bool,
    /// As lines of their own.
    pub(super) block: bool,
}

impl Shape {
    pub(super) fn of(text: &str) -> Self {
        let Some(first) = text.chars().next() else {
            return Self { multiline: false, plain: true, single: true, block: false };
        };
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut break_space, mut space_break) = (false, false, false, false);
        let mut before = None;
        let mut chars = text.chars().enumerate().peekable();
        while let Some((at, c)) = chars.next() {
            let is_followed = chars.peek().is_none_or(|(_, next)| matches!(next, ' ' | '\t'));
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if at == 0 =>
                {
                    true
                }
                '-' | '?' if at == 0 => is_followed,
                ':' => is_followed,
                '#' => before.is_some_and(|c| matches!(c, ' ' | '\t' | '\0') || is_break(c)),
                _ => false,
            };
            special |= !is_printable(c);
            breaks |= is_break(c);
            break_space |= c == ' ' && before.is_some_and(is_break);
            space_break |= is_break(c) && before == Some(' ');
            before = Some(c);
        }
        let last = before.unwrap_or(first);
        let is_edge = |c: char| c == ' ' || is_break(c);
        let odd = space_break || special;
        Self {
            multiline: breaks,
            plain: !(is_edge(first) || is_edge(last) || break_space || odd || breaks || indicators),
            single: !(break_space || odd),
            block: !(last == ' ' || odd),
        }
    }
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether it is written as it is. What is beyond the basic plane is not.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

/// Whether a text without quotes is read as that text, and not as a number, a time, a truth or nothing.
pub(super) fn means_itself(text: &str) -> bool {
    let Some(first) = text.bytes().next() else { return false };
    if is_word(text) {
        return false;
    }
    match first {
        b'.' => !is_float(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            !(is_time(text) || is_integer(&digits) || is_float(&digits) || is_base_60(text))
        }
        _ => true,
    }
}

/// A word that stands for something else.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 34] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO",
        "false", "False", "FALSE", "off", "Off", "OFF", "~", "null", "Null", "NULL", ".nan", ".NaN", ".NAN",
        ".inf", ".Inf", ".INF", "+.inf", "-.inf",
    ];
    WORDS.contains(&text) || ["+.Inf", "+.INF", "-.Inf", "-.INF"].contains(&text)
}

fn is_integer(text: &str) -> bool {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, text.get(1..).unwrap_or_default()),
        Some(b'+') => (1, text.get(1..).unwrap_or_default()),
        _ => (0, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.get(..2) {
        Some("0x") => (16, lower.get(2..)),
        Some("0o") => (8, lower.get(2..)),
        Some("0b") => (2, lower.get(2..)),
        Some(two) if two.starts_with('0') => (8, lower.get(1..)),
        _ => (10, Some(lower.as_str())),
    };
    let digits = digits.unwrap_or_default();
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return false;
    }
    let Ok(number) = i128::from_str_radix(digits, base) else { return false };
    match sign {
        0 => number <= i128::from(u64::MAX),
        1 => number <= i128::from(i64::MAX),
        _ => number <= -i128::from(i64::MIN),
    }
}

/// `1`, `1.5`, `.5`, `1.`, `1e3`.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, power) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at).unwrap_or_default(), unsigned.get(at + 1..)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let power_fits = power.is_none_or(|power| is_digits(power.strip_prefix(['+', '-']).unwrap_or(power)));
    let number_fits = match number.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(number),
    };
    number_fits && power_fits && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `1:30`, `12:30:45.5`: numbers to the base of 60, as old readers take them.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (unsigned, ""),
    };
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let is_part = |part: &&str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(is_digit)
        && !rest.is_empty()
        && rest.iter().all(is_part)
        && fraction.bytes().all(is_digit)
}

/// A date, or a date and a time: `2024-1-2`, `2024-01-02T03:04:05.6Z`, `2024-01-02 03:04:05`.
fn is_time(text: &str) -> bool {
    parse_time(text).is_some()
}

fn parse_time(text: &str) -> Option<()> {
    let (year, rest) = text.split_at_checked(4)?;
    let year: i16 = all_digits(year)?.parse().ok()?;
    let (month, rest) = digits(rest.strip_prefix('-')?)?;
    let (day, rest) = digits(rest.strip_prefix('-')?)?;
    jiff::civil::Date::new(year, month, day).ok()?;
    let Some(separator) = rest.chars().next() else { return Some(()) };
    let (hour, rest) = digits(rest.strip_prefix(['T', 't', ' '])?)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?)?;
    let (second, rest) = digits(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let zone = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (zone.len() < fraction.len()).then_some(zone)?
        }
        None => rest,
    };
    let is_right = match separator {
        ' ' => zone.is_empty(),
        _ => zone == "Z" || is_offset(zone),
    };
    is_right.then_some(())
}

/// `+01:00`.
fn is_offset(zone: &str) -> bool {
    let Some((hours, minutes)) = zone.strip_prefix(['+', '-']).and_then(|zone| zone.split_once(':')) else {
        return false;
    };
    let number = |text: &str| (text.len() == 2).then(|| all_digits(text)?.parse::<u8>().ok()).flatten();
    matches!((number(hours), number(minutes)), (Some(..=24), Some(..60)))
}

/// One or two digits, and what follows.
fn digits(text: &str) -> Option<(i8, &str)> {
    let length = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length)?;
    Some((digits.parse().ok()?, rest))
}

fn all_digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}
