//! What of an object is kept: rules that are applied to its bytes before they are stored.

use std::fmt;

/// What becomes of `metadata.managedFields`, often more than half of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ManagedFields {
    /// They are cut from the bytes.
    #[default]
    Cut,
    /// They are cut from the bytes; who wrote, how and when is kept beside them.
    Writers,
    /// They stay as they are.
    Keep,
}

/// What of an object is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    /// What becomes of `metadata.managedFields`.
    pub(crate) managed_fields: ManagedFields,
    /// Fields that are dropped with all that is under them. They never name what identifies the object:
    /// [`Rules::drop`] refuses those.
    drop: Vec<Pointer>,
}

/// A JSON pointer (RFC 6901), parsed: its tokens, unescaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer {
    tokens: Box<[Box<str>]>,
}

/// A JSON pointer that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// It is not a JSON pointer.
    #[error("{pointer:?} is not a JSON pointer: {why}")]
    Malformed {
        /// What was given.
        pointer: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What it names cannot be dropped.
    #[error("{pointer} cannot be dropped: {why}")]
    NotDroppable {
        /// What was given.
        pointer: String,
        /// Why not.
        why: &'static str,
    },
}

impl Pointer {
    /// Parses a JSON pointer: empty (the whole document), or tokens each led by `/`, in which `~1` stands
    /// for `/` and `~0` for `~`.
    ///
    /// # Errors
    ///
    /// Where the text is neither, or a `~` is not followed by 0 or 1.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let malformed = |why| PointerError::Malformed { pointer: text.to_owned(), why };
        if text.is_empty() {
            return Ok(Self { tokens: Box::default() });
        }
        let rest = text.strip_prefix('/').ok_or_else(|| malformed("it does not begin with /"))?;
        let unescape = |token: &str| {
            let mut out = String::with_capacity(token.len());
            let mut characters = token.chars();
            while let Some(character) = characters.next() {
                out.push(match character {
                    '~' => match characters.next() {
                        Some('0') => '~',
                        Some('1') => '/',
                        _ => return Err(malformed("~ must be followed by 0 or 1")),
                    },
                    other => other,
                });
            }
            Ok(out.into_boxed_str())
        };
        let tokens = rest.split('/').map(unescape).collect::<Result<_, _>>()?;
        Ok(Self { tokens })
    }

    pub(crate) fn as_tokens(&self) -> &[Box<str>] {
        &self.tokens
    }

    /// The tokens, unescaped.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tokens.iter().map(AsRef::as_ref)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.tokens {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

impl Rules {
    /// Sets what becomes of `metadata.managedFields`.
    #[must_use]
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.managed_fields = managed_fields;
        self
    }

    /// Drops a field with all that is under it.
    ///
    /// A pointer leads through objects, not through lists: there is no index in it. Where one leads into a list all the
    /// same, it drops nothing of JSON, whose types are not known beforehand; in protobuf the
    /// [codec](super::Codec::new) refuses it.
    ///
    /// # Errors
    ///
    /// Where the pointer names what identifies the object: the document itself, `apiVersion`, `kind`,
    /// `metadata` as a whole, or its name, namespace, UID or version.
    pub fn drop(mut self, pointer: Pointer) -> Result<Self, PointerError> {
        let tokens: Vec<&str> = pointer.tokens().collect();
        let identifies = match tokens.as_slice() {
            [] | ["apiVersion" | "kind" | "metadata"] => true,
            ["metadata", field, ..] => {
                matches!(*field, "name" | "namespace" | "uid" | "resourceVersion")
            }
            _ => false,
        };
        if identifies {
            let why = "it identifies the object";
            return Err(PointerError::NotDroppable { pointer: pointer.to_string(), why });
        }
        self.drop.push(pointer);
        self.drop.sort();
        self.drop.dedup();
        Ok(self)
    }

    /// The fields that are dropped, sorted, each once.
    #[must_use]
    pub fn dropped(&self) -> &[Pointer] {
        &self.drop
    }
}

#[cfg(test)]
mod tests;
