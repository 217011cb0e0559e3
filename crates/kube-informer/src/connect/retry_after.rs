//! The header `Retry-After`: seconds, or a date.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;

pub(super) fn read(text: &str) -> Option<Duration> {
    read_at(text, Timestamp::now())
}

fn read_at(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    // A date that is past asks for no wait.
    Some(until.duration_since(now).try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_number_of_seconds_or_a_date() {
        let now: Timestamp = "2015-10-21T07:27:50Z".parse().unwrap();
        let read = |text| read_at(text, now).map(|wait| wait.as_secs());
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(10));
        assert_eq!(read("Wed, 21 Oct 2015 07:20:00 GMT"), Some(0));
        assert_eq!(read("-3"), None);
        assert_eq!(read("soon"), None);
    }
}
