//! Schedules of CronJobs, as far as it takes to say what is wrong with one.

const DESCRIPTORS: &[&str] =
    &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the five fields.
struct Field {
    from: u64,
    to: u64,
    names: &'static [&'static str],
    /// What the first name stands for.
    first: u64,
}

const FIELDS: [Field; 5] = [
    Field { from: 0, to: 59, names: &[], first: 0 },
    Field { from: 0, to: 23, names: &[], first: 0 },
    Field { from: 1, to: 31, names: &[], first: 0 },
    Field { from: 1, to: 12, names: MONTHS, first: 1 },
    Field { from: 0, to: 6, names: DAYS, first: 0 },
];

/// Reads a schedule, or says why not.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    // A zone in front of the schedule is refused elsewhere.
    let rest = match schedule.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => rest.trim(),
        _ => schedule,
    };
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for range in text.split(',') {
            read_range(range, field)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let valid = duration.ends_with(['h', 'm', 's']) && duration.starts_with(|c: char| c.is_ascii_digit());
        return if valid {
            Ok(())
        } else {
            Err(format!("failed to parse duration {text}: time: invalid duration {duration:?}"))
        };
    }
    if DESCRIPTORS.contains(&text) { Ok(()) } else { Err(format!("unrecognized descriptor: {text}")) }
}

fn read_range(text: &str, field: &Field) -> Result<(), String> {
    let mut parts = text.split('/');
    let (range, step, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let mut ends = range.split('-');
    let (start, end, extra) = (ends.next().unwrap_or_default(), ends.next(), ends.next());
    let (start, mut end, single) = if matches!(start, "*" | "?") {
        (field.from, field.to, false)
    } else {
        let first = read_number(start, field)?;
        match (end, extra) {
            (None, _) => (first, first, true),
            (Some(end), None) => (first, read_number(end, field)?, false),
            (Some(_), Some(_)) => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match (step, more) {
        (None, _) => 1,
        (Some(step), None) => {
            let step = read_plain_number(step)?;
            if single {
                end = field.to;
            }
            step
        }
        (Some(_), Some(_)) => return Err(format!("too many slashes: {text}")),
    };
    if start < field.from {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", field.from));
    }
    if end > field.to {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", field.to));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn read_number(text: &str, field: &Field) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match field.names.iter().zip(field.first..).find(|(name, _)| **name == lower) {
        Some((_, number)) => Ok(number),
        None => read_plain_number(text),
    }
}

fn read_plain_number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    #[test]
    fn common_schedules_are_read() {
        for schedule in
            ["* * * * *", "*/5 * * * *", "0 0 1 JAN sun", "1,2,3-9/2 ? * * 1-5", "@daily", "@every 5m"]
        {
            assert_eq!(parse(schedule), Ok(()), "{schedule}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-*/,@0-9a-zA-Z ?]{0,20}") {
            let _ = parse(&text);
        }
    }
}
