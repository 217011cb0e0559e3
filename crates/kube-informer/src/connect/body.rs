//! A response's body, chunk by chunk, as it comes.

use http_body_util::BodyExt;
use kube_client::client::Body;

use super::cause;
use crate::reflector::transport::{self, Chunk};

pub(super) struct Stream(pub(super) Body);

impl transport::Body for Stream {
    fn chunk(&mut self) -> Chunk<'_> {
        Box::pin(async move {
            loop {
                match self.0.frame().await? {
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
