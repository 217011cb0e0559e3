//! What can go wrong with a body.

use super::Status;
use crate::encoding::DecodeError;

/// Something in a body that is not a frame or an item. Offsets count from the start of the body.
///
/// ```
/// use kube_informer::encoding::Encoding;
/// use kube_informer::wire::WatchFrames;
///
/// let mut frames = WatchFrames::new(Encoding::Json, 1 << 20);
/// frames.push("{\"type\":\"MOVED\",\"object\":{}}\n".into());
/// let error = frames.next_frame().expect("there is a frame").expect_err("which is unusable");
/// assert!(!error.is_fatal(), "the next frame is not affected");
/// assert_eq!(
///     error.to_string(),
///     r#"found the event type "MOVED" at byte 8: expected ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// One frame or item is unusable. Those after it are not affected.
    #[error(transparent)]
    Skipped(DecodeError),
    /// The body cannot be read from there on, or ended too early.
    #[error(transparent)]
    Broken(DecodeError),
    /// A web page or other text: something else answered instead of the server.
    #[error("an answer that is not the API server's: {beginning:?}")]
    NotAnApi {
        /// How it begins, on one line; at most some hundred bytes.
        beginning: String,
    },
    /// A `Status` in place of what was asked for.
    #[error("the server answered: {0}")]
    Status(Box<Status>),
}

impl WireError {
    /// Whether nothing can follow: the splitter gives no more, whatever it is pushed.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Skipped(_))
    }
}
