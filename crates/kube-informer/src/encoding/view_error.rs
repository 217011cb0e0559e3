//! Why an object could not be seen as a type: where in the object, and what the type wanted.

use std::borrow::Cow;
use std::fmt;

use super::DecodeError;
use super::rules::PointerError;
use crate::object::UnpackError;

/// A view that could not be made. The object itself is unharmed: it stays cached, listed and counted.
///
/// One pointer wide, because a view's every field passes through a `Result` with it.
pub struct ViewError(Box<Inner>);

struct Inner {
    /// Field names and list indexes, innermost first.
    path: Vec<Cow<'static, str>>,
    cause: Cause,
}

#[derive(Debug)]
pub(crate) enum Cause {
    /// The bytes are broken.
    Bytes(DecodeError),
    /// The JSON does not fit the type.
    Json(serde_json::Error),
    /// The value does not fit the type, or the type refused it.
    Type(String),
    /// Entries of a message are not in ascending order. Never of stored bytes: those were put in order.
    Disorder,
    /// The stored bytes could not be unpacked.
    Unpack(UnpackError),
    /// What was asked for is not a JSON pointer.
    Pointer(PointerError),
}

impl ViewError {
    pub(crate) fn new(cause: Cause) -> Self {
        Self(Box::new(Inner { path: Vec::new(), cause }))
    }

    /// The same error, seen from one level up.
    pub(crate) fn within(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.0.path.push(name.into());
        self
    }

    /// Where in the object, as a JSON pointer; empty where that is not known.
    #[must_use]
    pub fn pointer(&self) -> String {
        let escaped = |token: &Cow<'static, str>| format!("/{}", token.replace('~', "~0").replace('/', "~1"));
        self.0.path.iter().rev().map(escaped).collect()
    }
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.is_empty() {
            write!(f, "{}: ", self.pointer())?;
        }
        match &self.0.cause {
            Cause::Bytes(error) => error.fmt(f),
            Cause::Json(error) => error.fmt(f),
            Cause::Type(error) => f.write_str(error),
            Cause::Disorder => f.write_str("the fields of the message are not in order"),
            Cause::Unpack(error) => error.fmt(f),
            Cause::Pointer(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewError").field("pointer", &self.pointer()).field("cause", &self.0.cause).finish()
    }
}

impl std::error::Error for ViewError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.cause {
            Cause::Bytes(error) => Some(error),
            Cause::Json(error) => Some(error),
            Cause::Unpack(error) => Some(error),
            Cause::Pointer(error) => Some(error),
            Cause::Type(_) | Cause::Disorder => None,
        }
    }
}

impl serde::de::Error for ViewError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Cause::Type(message.to_string()))
    }
}

impl From<DecodeError> for ViewError {
    fn from(error: DecodeError) -> Self {
        Self::new(Cause::Bytes(error))
    }
}

impl From<serde_json::Error> for ViewError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Cause::Json(error))
    }
}

impl From<UnpackError> for ViewError {
    fn from(error: UnpackError) -> Self {
        Self::new(Cause::Unpack(error))
    }
}

impl From<PointerError> for ViewError {
    fn from(error: PointerError) -> Self {
        Self::new(Cause::Pointer(error))
    }
}
