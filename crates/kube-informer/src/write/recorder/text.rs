//! What events may say, and how they may be called.

use crate::host;

/// The longest note, in bytes: the server refuses more.
pub(super) const NOTE: usize = 1024;

/// The longest reason, action and instance.
pub(super) const WORD: usize = 128;

/// The longest name of an object.
const NAME: usize = 253;

/// At most so many bytes, and whole characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// A word that must not be empty.
pub(super) fn word(text: &str) -> String {
    match cut(text, WORD) {
        "" => "Unknown".to_owned(),
        text => text.to_owned(),
    }
}

/// A note; what is too long ends with dots.
pub(super) fn note(text: String) -> String {
    if text.len() <= NOTE {
        return text;
    }
    format!("{}…", cut(&text, NOTE - '…'.len_utf8()))
}

/// The name of a controller as the server takes it: up to 63 characters, with a domain before a slash if need be.
pub(super) fn controller(name: &str) -> String {
    let part = |text: &str, lower: bool, most: usize| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.') || (c == '_' && !lower);
        let text: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(most).collect();
        let text = if lower { text.to_ascii_lowercase() } else { text };
        text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
    };
    let (domain, name) = match name.split_once('/') {
        Some((domain, name)) => (part(domain, true, NAME), part(name, false, 63)),
        None => (String::new(), part(name, false, 63)),
    };
    match (domain.as_str(), name.as_str()) {
        (_, "") => "kube-informer".to_owned(),
        ("", name) => name.to_owned(),
        // Two dots in a row are no domain.
        (domain, name) if domain.split('.').any(|label| !is_label(label)) => name.to_owned(),
        (domain, name) => format!("{domain}/{name}"),
    }
}

fn is_label(label: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    label.len() <= 63 && end(label.as_bytes().first()) && end(label.as_bytes().last())
}

/// This process, as one of several of that controller.
pub(super) fn instance(controller: &str) -> String {
    let name = controller.rsplit('/').next().unwrap_or_default();
    cut(&format!("{name}-{}", host::name()), WORD).to_owned()
}

/// A name for an event: that of the object, so that people find it, and something that no other event has.
pub(super) fn name(object: &str, nanoseconds: i128, random: u32) -> String {
    let end = format!(".{nanoseconds:x}{random:08x}");
    let labels = |name: &str| {
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        name.split('.').all(|label| is_label(label) && label.bytes().all(lower))
    };
    let begin = cut(object, NAME.saturating_sub(end.len())).trim_end_matches(['.', '-']);
    if labels(begin) { format!("{begin}{end}") } else { format!("event{end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(cut("aü", 2), "a");
        assert_eq!(word(""), "Unknown");
        let long = note("ü".repeat(1000));
        assert!(long.len() <= NOTE && long.len() > NOTE - 4 && long.ends_with('…'), "{}", long.len());
        assert_eq!(note("short".to_owned()), "short");
    }

    #[test]
    fn names_are_valid_whatever_the_object_is_called() {
        assert_eq!(name("web", 0x1234, 0xab), "web.1234000000ab");
        assert_eq!(name("system:node", 1, 1), "event.100000001");
        assert_eq!(name("Web", 1, 1), "event.100000001");
        assert_eq!(name("", 1, 1), "event.100000001");
        let long = name(&format!("{}.x", "a".repeat(63)).repeat(10), i128::from(i64::MAX), u32::MAX);
        assert!(long.len() <= NAME, "{long}");
        assert!(name(&"a".repeat(300), 1, 1).starts_with("event."), "no label is that long");
    }

    #[test]
    fn names_of_controllers_are_made_to_fit() {
        for (given, made) in [
            ("example.com/my-controller", "example.com/my-controller"),
            ("my controller!", "my-controller"),
            ("Example..com/x", "x"),
            ("a/b/c", "a/b-c"),
            ("", "kube-informer"),
            ("日本", "kube-informer"),
        ] {
            assert_eq!(controller(given), made);
        }
        assert!(controller(&"x".repeat(500)).len() <= 63);
        assert!(instance("example.com/x").len() <= WORD && instance("e/x").starts_with("x-"));
    }
}
