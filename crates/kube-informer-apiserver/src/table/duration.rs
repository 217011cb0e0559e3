//! Durations in two or three significant figures, as `kubectl` shows them.

use jiff::SignedDuration;

/// `45s`, `3m20s`, `5h`, `2d3h`, `4y12d`. Less than two seconds in the future is `0s` (clocks differ),
/// more is `<invalid>`.
pub(crate) fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let with = |whole: i64, unit: &str, rest: i64, rest_unit: &str| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{rest_unit}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match (seconds, minutes, hours) {
        (..-1, _, _) => "<invalid>".to_owned(),
        (..0, _, _) => "0s".to_owned(),
        (..120, _, _) => format!("{seconds}s"),
        (_, ..10, _) => with(minutes, "m", seconds % 60, "s"),
        (_, ..180, _) => format!("{minutes}m"),
        (_, _, ..8) => with(hours, "h", minutes % 60, "m"),
        (_, _, ..48) => format!("{hours}h"),
        (_, _, ..192) => with(hours / 24, "d", hours % 24, "h"),
        (_, _, ..17_520) => format!("{}d", hours / 24),
        (_, _, ..70_080) => with(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}
