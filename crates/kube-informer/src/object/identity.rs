//! What an object is told apart by: key, UID, version. Small, because every cached object has them.

use std::cmp::Ordering;
use std::fmt;

use crate::encoding::ObjectKey;

/// Namespace and name, lent by an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyRef<'a> {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

impl KeyRef<'_> {
    /// The same, independent of the object.
    #[must_use]
    pub fn to_key(self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.to_owned(), name: self.name.to_owned() }
    }

    /// Whether both are the same. Keys are short, and of those that are compared most are the same: they are read in words,
    /// here, and no comparison of memory is called for.
    #[inline]
    pub(crate) fn is(self, other: KeyRef<'_>) -> bool {
        is_same_text(self.name, other.name) && is_same_text(self.namespace, other.namespace)
    }
}

/// Words from the front, and one that ends where the texts end.
#[inline]
fn is_same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    if let (Some(last_a), Some(last_b)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
        return last_a == last_b && words.into_iter().all(|(a, b)| a == b);
    }
    if let (Some(last_a), Some(last_b)) = (a.last_chunk::<4>(), b.last_chunk::<4>()) {
        return last_a == last_b && a.first_chunk::<4>() == b.first_chunk::<4>();
    }
    a.iter().zip(b).all(|(a, b)| a == b)
}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl From<KeyRef<'_>> for ObjectKey {
    fn from(key: KeyRef<'_>) -> Self {
        key.to_key()
    }
}

impl PartialEq<KeyRef<'_>> for ObjectKey {
    fn eq(&self, other: &KeyRef<'_>) -> bool {
        other == self
    }
}

impl PartialEq<ObjectKey> for KeyRef<'_> {
    fn eq(&self, other: &ObjectKey) -> bool {
        self.namespace == other.namespace && self.name == other.name
    }
}

/// An object's UID. Servers give UUIDs, which are kept in 16 bytes; any other text is kept as it is.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(UidForm);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum UidForm {
    Uuid([u8; 16]),
    Text(Box<str>),
}

/// Where a UUID has its dashes.
const DASHES: [usize; 4] = [8, 13, 18, 23];

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| UidForm::Text(text.into()), UidForm::Uuid))
    }
}

/// The bytes of a UUID in its usual form, lower case; anything else would not be written back as it was.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let bytes: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut out = [0u8; 16];
    let mut digits = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if DASHES.contains(&at) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        let place = out.get_mut(digits / 2)?;
        *place = *place << 4 | value;
        digits += 1;
    }
    Some(out)
}

impl Uid {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, UidForm::Text(text) if text.is_empty())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            UidForm::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
            UidForm::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        match &self.0 {
            UidForm::Uuid(bytes) => uuid(other).as_ref() == Some(bytes),
            UidForm::Text(text) => **text == *other,
        }
    }
}

impl PartialEq<&str> for Uid {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

/// A resource version: of an object, of a list, of a bookmark.
///
/// Versions are numbers, except where an aggregated API makes them otherwise. Numbers of one resource are ordered; of
/// anything else only equality is known.
///
/// ```
/// use kube_informer::object::Version;
///
/// assert!(Version::from("99") < Version::from("100"));
/// assert_eq!(Version::from("a").partial_cmp(&Version::from("b")), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(VersionForm);

#[derive(Clone, PartialEq, Eq, Hash)]
enum VersionForm {
    Number(u64),
    Text(Box<str>),
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self(number(text).map_or_else(|| VersionForm::Text(text.into()), VersionForm::Number))
    }
}

/// The number that a text is, where it is written back as it was.
fn number(text: &str) -> Option<u64> {
    let plain = text == "0" || text.starts_with(|first: char| first.is_ascii_digit() && first != '0');
    text.parse().ok().filter(|_| plain)
}

impl Version {
    /// The version as a number, where it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.0 {
            VersionForm::Number(number) => Some(number),
            VersionForm::Text(_) => None,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, VersionForm::Text(text) if text.is_empty())
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self.number(), other.number()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => (self == other).then_some(Ordering::Equal),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            VersionForm::Number(number) => number.fmt(f),
            VersionForm::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

impl PartialEq<str> for Version {
    fn eq(&self, other: &str) -> bool {
        match &self.0 {
            VersionForm::Number(own) => number(other) == Some(*own),
            VersionForm::Text(text) => **text == *other,
        }
    }
}

impl PartialEq<&str> for Version {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_written_back_as_it_was() {
        for text in [
            "7b1f0c3e-5a1d-4f0e-9d0a-0123456789ab",
            "7B1F0C3E-5A1D-4F0E-9D0A-0123456789AB",
            "7b1f0c3e-5a1d-4f0e-9d0a-0123456789a",
            "7b1f0c3e-5a1d-4f0e-9d0a+0123456789ab",
            "7b1f0c3e55a1d-4f0e-9d0a-0123456789ab",
            "",
            "mirror-pod-hash",
            "日本",
        ] {
            let uid = Uid::from(text);
            assert_eq!(uid.to_string(), text);
            assert_eq!(&uid, text);
            assert_eq!(uid.is_empty(), text.is_empty());
        }
        assert!(matches!(Uid::from("7b1f0c3e-5a1d-4f0e-9d0a-0123456789ab").0, UidForm::Uuid(_)));
    }

    #[test]
    fn a_version_is_written_back_as_it_was() {
        for text in
            ["0", "1", "18446744073709551615", "18446744073709551616", "007", "+7", "", "a", "1a", "-1"]
        {
            assert_eq!(Version::from(text).to_string(), text);
            assert_eq!(&Version::from(text), text);
        }
        assert_ne!(&Version::from("7"), "07");
    }

    #[test]
    fn versions_that_are_no_numbers_have_no_order() {
        let version = |text| Version::from(text);
        assert!(version("9") < version("10"));
        assert_eq!(version("9").partial_cmp(&version("x")), None);
        assert_eq!(version("y").partial_cmp(&version("x")), None);
        assert_eq!(version("x").partial_cmp(&version("x")), Some(Ordering::Equal));
        // Equal as numbers would be, but not the same version.
        assert_ne!(version("007"), version("7"));
        assert_eq!(version("7").number(), Some(7));
    }

    #[test]
    fn keys_are_the_same_where_every_byte_is() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        for length in 0..=text.len() {
            let key = KeyRef { namespace: &text[..length], name: &text[26 - length..] };
            let same = key.to_key();
            assert!(key.is(KeyRef { namespace: &same.namespace, name: &same.name }));
            for at in 0..length {
                let mut other = same.clone();
                other.namespace.replace_range(at..=at, "-");
                assert!(!key.is(KeyRef { namespace: &other.namespace, name: &same.name }), "{length} {at}");
                other.name.replace_range(at..=at, "-");
                assert!(!key.is(KeyRef { namespace: &same.namespace, name: &other.name }), "{length} {at}");
                assert!(!key.is(KeyRef { namespace: &same.namespace[..at], name: &same.name }));
                assert!(!key.is(KeyRef { namespace: &same.namespace, name: &same.name[..at] }));
            }
        }
    }

    #[test]
    fn a_key_without_a_namespace_is_the_name() {
        assert_eq!(KeyRef { namespace: "", name: "node-1" }.to_string(), "node-1");
        let key = KeyRef { namespace: "default", name: "web" };
        assert_eq!(key.to_string(), "default/web");
        assert_eq!(key, key.to_key());
        assert_eq!(key.to_key().to_string(), "default/web");
    }
}
