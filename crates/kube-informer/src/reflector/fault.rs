//! What went wrong with a request, and what to do about it.

use std::time::Duration;

use super::transport::{Failure, Response};
use crate::encoding::Encoding;
use crate::wire::{Status, WireError};

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// Nobody listens there.
    #[error("{}", refused(.0))]
    Refused(String),
    /// The request got no response, or its body broke off.
    #[error("{0}")]
    Connection(String),
    /// The server's certificate is of no authority that is known here. There may be another one by now.
    #[error("{0}")]
    Untrusted(String),
    /// The server answered with an error.
    #[error("the server answered: {0}")]
    Status(Box<Status>),
    /// Something else answered than an API server.
    #[error("{0}")]
    Body(WireError),
    /// Nothing came for too long.
    #[error("no progress for {0:?}")]
    Stalled(Duration),
    /// The watch was ended long before its time.
    #[error("the watch ended after {0:.1?}")]
    Short(Duration),
    /// Something came that cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Systems say it themselves, and in other letters: it is not said twice.
fn refused(message: &str) -> String {
    const SAID: &str = "connection refused";
    match message.split_at_checked(SAID.len()) {
        Some((head, rest)) if head.eq_ignore_ascii_case(SAID) => format!("{SAID}{rest}"),
        _ => format!("{SAID}: {message}"),
    }
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Wait, then ask the same again: the server is there, or will be, and what was seen is still good.
    Again,
    /// The version is too old, or too new: ask for the newest.
    Newest,
    /// Wait, then ask for everything: it is not known what was missed.
    Everything,
    /// The credentials may be old.
    Credentials,
    /// It is not allowed. Somebody must change that; ask again now and then.
    Forbidden,
    /// The resource is not served. That proves nothing about its objects.
    NotServed,
    /// A streaming list is not to be had.
    PlainList,
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure { refused: true, message, .. } => Self::Refused(message),
            Failure { untrusted: true, message, .. } => Self::Untrusted(message),
            Failure { message, .. } => Self::Connection(message),
        }
    }
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Status(status) => Self::Status(status),
            other => Self::Body(other),
        }
    }
}

impl Fault {
    /// What to do. `streaming`: it was the answer to a streaming list.
    pub(crate) fn remedy(&self, streaming: bool) -> Remedy {
        let status = match self {
            // Of what was not received as a whole, nothing was missed.
            Self::Refused(_) | Self::Connection(_) | Self::Untrusted(_) | Self::Short(_) => {
                return Remedy::Again;
            }
            Self::Status(status) => status,
            Self::Stalled(_) if streaming => return Remedy::PlainList,
            Self::Body(_) | Self::Stalled(_) | Self::Unreadable(_) => return Remedy::Everything,
        };
        if status.is_expired() || status.is_too_large_resource_version() {
            return Remedy::Newest;
        }
        match status.code {
            429 => Remedy::Again,
            401 => Remedy::Credentials,
            403 => Remedy::Forbidden,
            404 => Remedy::NotServed,
            // Servers may not know the parameters, or cannot watch. Or something else is wrong with what is asked for: the
            // list tells.
            400 | 405 | 406 | 415 | 422 if streaming => Remedy::PlainList,
            _ => Remedy::Everything,
        }
    }

    /// Whether what is read anew from the kubeconfig, or from what is mounted, may help.
    pub(crate) fn is_of_credentials(&self) -> bool {
        matches!(self, Self::Untrusted(_)) || self.remedy(false) == Remedy::Credentials
    }

    /// Whether the version, or the page, that was asked for is too old.
    pub(crate) fn is_expired(&self) -> bool {
        matches!(self, Self::Status(status) if status.is_expired())
    }

    /// Whether the server says, to a streaming list, that it knows no such thing: 422 from those that have it switched
    /// off or are older, 400 from others. Any other refusal may be about this one resource, or what is selected of it.
    pub(crate) fn refuses_streaming_lists(&self) -> bool {
        let Self::Status(status) = self else { return false };
        let parameters = ["sendInitialEvents", "resourceVersionMatch"];
        let names = |text: &str| parameters.iter().any(|parameter| text.contains(parameter));
        let causes = &status.details.causes;
        matches!(status.code, 400 | 422)
            && (names(&status.message)
                || causes.iter().any(|cause| names(&cause.field) || names(&cause.message)))
    }

    /// How long the server asks to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status(status) => status.retry_after(),
            _ => None,
        }
    }
}

/// How much of an error's body is read.
const MOST_OF_AN_ERROR: usize = 64 << 10;

/// What a response with an error code says. It is an error whatever its body is.
pub(crate) async fn of_response(mut response: Response) -> Fault {
    let mut bytes = Vec::new();
    while let Some(Ok(chunk)) = response.body.chunk().await {
        let room = MOST_OF_AN_ERROR.saturating_sub(bytes.len());
        bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if room <= chunk.len() {
            break;
        }
    }
    let encoding = response.content_type.as_deref().and_then(Encoding::of_content_type);
    let mut fault = of_answer(response.status, encoding, &bytes);
    if let (Fault::Status(status), Some(after)) = (&mut fault, response.retry_after) {
        status.details.retry_after_seconds =
            status.details.retry_after_seconds.max(u32::try_from(after.as_secs()).unwrap_or(u32::MAX));
    }
    fault
}

/// What an answer with an error code says, in an encoding or none. It is an error whatever its body is.
pub(crate) fn of_answer(code: u16, encoding: Option<Encoding>, body: &[u8]) -> Fault {
    let mut status = Status::read(encoding.unwrap_or(Encoding::Json), body);
    // A page of a proxy has no code of its own.
    if status.code == 0 || encoding.is_none() {
        status.code = code;
    }
    Fault::Status(Box::new(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_connection_was_refused_is_said_once() {
        let said = |message: &str| Fault::Refused(message.to_owned()).to_string();
        assert_eq!(said("Connection refused (os error 111)"), "connection refused (os error 111)");
        assert_eq!(said("nobody is there"), "connection refused: nobody is there");
        assert_eq!(said(""), "connection refused: ");
    }
}
