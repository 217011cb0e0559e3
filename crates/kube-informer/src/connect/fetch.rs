//! Small documents: read as a whole, within a limit and a time.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

use super::Connection;
use crate::encoding::Encoding;
use crate::reflector::fault::{self, Fault};
use crate::wire::{Status, WireError};

/// How long a document may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A document, or what came in place of it.
pub(super) struct Fetched {
    pub(super) status: u16,
    /// Whether it says of itself that it is JSON.
    pub(super) json: bool,
    pub(super) body: Bytes,
}

impl Connection {
    /// Gets a document whatever the server says, within a limit.
    pub(super) async fn fetch(&self, path: &str, accept: &str, limit: usize) -> Result<Fetched, Fault> {
        let deadline = Instant::now() + PATIENCE;
        let stalled = |_| Fault::Stalled(PATIENCE);
        let mut response = timeout_at(deadline, self.get(path, accept)).await.map_err(stalled)??;
        let mut body = BytesMut::new();
        while let Some(chunk) = timeout_at(deadline, response.body.chunk()).await.map_err(stalled)? {
            let chunk = chunk?;
            if body.len() + chunk.len() > limit {
                let message = format!("{path}: a document of more than {limit} bytes");
                return Err(Fault::Connection(message));
            }
            body.put(chunk);
        }
        let json =
            response.content_type.as_deref().and_then(Encoding::of_content_type) == Some(Encoding::Json);
        Ok(Fetched { status: response.status, json, body: body.freeze() })
    }

    /// Gets a JSON document; what is not one, or no success, is a fault.
    pub(super) async fn document(&self, path: &str, accept: &str, limit: usize) -> Result<Bytes, Fault> {
        let fetched = self.fetch(path, accept, limit).await?;
        if !(200..300).contains(&fetched.status) {
            return Err(fetched.fault());
        }
        if !fetched.json {
            let beginning = Status::read(Encoding::Json, &fetched.body).message;
            return Err(Fault::Body(WireError::NotAnApi { beginning }));
        }
        Ok(fetched.body)
    }
}

impl Fetched {
    /// What an answer that is no success says.
    pub(super) fn fault(&self) -> Fault {
        fault::of_answer(self.status, self.json.then_some(Encoding::Json), &self.body)
    }
}
