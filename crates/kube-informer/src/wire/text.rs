//! What to say of bytes that are not what was expected: short, on one line, without control characters.

use super::WireError;
use super::input::Input;
use crate::encoding::{DecodeError, Fault};

/// How much of a text is collected.
const LIMIT: usize = 256;

/// The beginning of a body that is not the API's.
///
/// It is collected up to a fixed length before it is reported, so that the report does not depend on chunks.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
    /// What is wrong where it turns out to be no text.
    otherwise: DecodeError,
}

impl Text {
    pub(super) fn new(seen: &[u8], otherwise: DecodeError) -> Self {
        Self { bytes: seen.to_vec(), otherwise }
    }

    /// Collects; the error once there is enough.
    pub(super) fn collect(&mut self, input: &mut Input) -> Option<WireError> {
        while self.bytes.len() < LIMIT {
            let rest = input.rest()?;
            let used = rest.len().min(LIMIT - self.bytes.len());
            self.bytes.extend(rest.iter().take(used));
            input.advance(used);
        }
        Some(self.error())
    }

    /// The error, from what was collected.
    pub(super) fn error(&self) -> WireError {
        // A character may be cut at the end.
        let text = String::from_utf8_lossy(&self.bytes);
        let binary = |c: char| c == '\u{fffd}' || (c.is_control() && !c.is_ascii_whitespace());
        if text.trim_end_matches('\u{fffd}').contains(binary) {
            return WireError::Broken(self.otherwise.clone());
        }
        WireError::NotAnApi { beginning: beginning(&self.bytes) }
    }
}

/// The beginning of a text, on one line.
pub(super) fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..LIMIT).unwrap_or(bytes));
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    words.join(" ").trim_end_matches('\u{fffd}').to_owned()
}

/// A byte, as an error names it.
pub(super) fn byte(byte: u8) -> String {
    if byte.is_ascii_graphic() { format!("{:?}", char::from(byte)) } else { format!("the byte 0x{byte:02x}") }
}

/// A byte that has no place where it is.
pub(super) fn unexpected(found: u8, offset: usize, expected: &'static str) -> DecodeError {
    DecodeError::new(Fault::Unexpected { found: byte(found) }, offset, expected)
}
