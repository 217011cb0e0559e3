//! A response's body, chunk by chunk, as it comes.

use http_body_util::BodyExt;
use kube_client::client::Body;

use super::cause;
use super::gather::Gather;
use super::pulse::Allowed;
use crate::reflector::transport::{self, Chunk};

/// See the module.
pub(super) struct Stream {
    pub(super) body: Body,
    /// Where it can be said that what comes may wait, and how long.
    pub(super) gather: Option<(Allowed, Gather)>,
}

impl transport::Body for Stream {
    fn gather(&mut self) {
        if let Some((allowed, gather)) = self.gather.take() {
            allowed.set(gather);
        }
    }

    fn chunk(&mut self) -> Chunk<'_> {
        Box::pin(async move {
            loop {
                match self.body.frame().await? {
                    Ok(frame) => {
                        // Trailers say nothing that is of interest here.
                        if let Ok(chunk) = frame.into_data() {
                            return Some(Ok(chunk));
                        }
                    }
                    Err(error) => return Some(Err(cause::failure(&error))),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reflector::transport::Body as _;

    #[test]
    fn what_comes_waits_only_after_that_was_allowed() {
        let (allowed, longest) = (Allowed::default(), Duration::from_millis(20));
        let gather = Some((allowed.clone(), Gather::new(longest)));
        let mut stream = Stream { body: Body::empty(), gather };
        assert_eq!(allowed.get(), Duration::ZERO);
        stream.gather();
        assert_eq!(allowed.get(), longest);
    }
}
