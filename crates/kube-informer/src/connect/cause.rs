//! Why a request failed, in words, down to the last cause.

use std::error::Error;
use std::io;

use crate::reflector::transport::{CLOSED, Failure};

/// What a failed request is to the reflector.
pub(super) fn failure(error: &(dyn Error + 'static)) -> Failure {
    Failure { refused: is_refused(error), untrusted: false, message: chain(error) }
}

/// What a request of kube-client failed with: what the server said, or why nothing was heard of it.
pub(crate) fn of_request(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Api(status) => format!("{} ({} {})", status.message, status.code, status.reason),
        error => chain(error),
    }
}

/// Whether it failed because nobody who is known here has signed the server's certificate: the authority may be an old one. What else
/// may be wrong with a certificate, no authority mends.
pub(super) fn is_not_trusted(message: &str) -> bool {
    [UNKNOWN, ANOTHER].iter().any(|words| message.contains(words))
}

/// The message of an error and of each of its causes, once each: many errors repeat what their cause says.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut out = String::new();
    for cause in causes(error) {
        let text = cause.to_string();
        let text = text.strip_prefix("ServiceError: ").unwrap_or(&text);
        if !LAYERS.contains(&text) && !out.contains(text) {
            out.push_str(if out.is_empty() { "" } else { ": " });
            out.push_str(text);
        }
    }
    if out.is_empty() {
        out = error.to_string();
    }
    // The way worked: there is nothing else to say about it.
    if out.contains(BODY) && CUT.iter().any(|text| out.contains(text)) {
        return CLOSED.to_owned();
    }
    if let Some((_, meaning)) = MEANINGS.iter().find(|(text, _)| out.contains(text)) {
        out.push_str(" (");
        out.push_str(meaning);
        out.push(')');
    }
    out
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// An error and its causes. Where an `io::Error` is a mere shell, what it holds is next: its own `source` would leave
/// that out.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        held.map(|held| held as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

/// What hyper says where an answer had begun.
const BODY: &str = "error reading a body from connection";

/// What is said then where the connection is closed, in order or not.
const CUT: [&str; 3] = ["unexpected EOF", "close_notify", "reset by peer"];

/// What layers say that know nothing but that another one failed.
const LAYERS: [&str; 2] = ["client error (Connect)", "tcp connect error"];

/// What rustls says of a certificate that nobody has signed who is known here.
const UNKNOWN: &str = "UnknownIssuer";
const ANOTHER: &str = "BadSignature";

/// What libraries say, of certificates that are not accepted above all, and what that means to people.
const MEANINGS: [(&str, &str); 7] = [
    ("unexpected EOF", CLOSED),
    (
        "InvalidContentType",
        "the server does not speak TLS: its address may begin with http, and not with https",
    ),
    (UNKNOWN, "the server's certificate is signed by an authority that is not known here"),
    // Clusters name their authorities alike: this is what another cluster's looks like.
    (ANOTHER, "the server's certificate is signed by another authority than the one of that name here"),
    ("not valid for name", "the server's certificate is for another name than it was asked for by"),
    ("certificate expired", "the server's certificate has expired, or the clock here is wrong"),
    ("certificate not valid yet", "the server's certificate is not valid yet, or the clock here is wrong"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    }

    fn layer(text: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Layer {
        Layer { text, source: source.into() }
    }

    #[test]
    fn every_cause_is_told_once() {
        let error = layer("request failed: no way", layer("no way", io::Error::other("the last cause")));
        assert_eq!(chain(&error), "request failed: no way: the last cause");
    }

    #[test]
    fn a_connection_that_was_closed_in_the_middle_is_just_that() {
        for (said, kind) in [
            ("unexpected EOF during chunk size line", io::ErrorKind::UnexpectedEof),
            (
                "peer closed connection without sending TLS close_notify: see there",
                io::ErrorKind::UnexpectedEof,
            ),
            ("Connection reset by peer (os error 104)", io::ErrorKind::ConnectionReset),
        ] {
            let error = layer("error reading a body from connection", io::Error::new(kind, said));
            assert_eq!(chain(&error), CLOSED, "{said}");
        }
        let handshake = layer("client error (Connect)", io::Error::other("unexpected EOF in the handshake"));
        assert_ne!(chain(&handshake), CLOSED, "who never got through is told more");
    }

    #[test]
    fn layers_that_know_nothing_say_nothing() {
        let refused = io::Error::from_raw_os_error(111);
        let connect = layer("client error (Connect)", layer("tcp connect error", refused));
        let said = chain(&layer("ServiceError: client error (Connect)", connect));
        assert_eq!(said, io::Error::from_raw_os_error(111).to_string());
        assert_eq!(
            chain(&Layer { text: "client error (Connect)", source: "tcp connect error".into() }),
            "client error (Connect)"
        );
    }

    #[test]
    fn a_refusal_is_found_at_any_depth() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        // A shell, whose own source is that of what it holds.
        let inside = io::Error::other(refused);
        assert!(failure(&layer("request", layer("connect", inside))).refused);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!failure(&layer("request", reset)).refused);
    }
}
