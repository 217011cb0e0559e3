//! Which release the server is of.

use serde::Deserialize;

use super::Connection;
use crate::encoding::ServerVersion;
use crate::reflector::fault::Fault;

/// A version is a dozen short strings.
const LIMIT: usize = 64 << 10;

#[derive(Deserialize)]
struct Document {
    major: String,
    minor: String,
}

impl Connection {
    /// The server's version, asked for once. `None` where the server does not tell: it is forbidden, there is none, or it
    /// is no version. That is not remembered.
    ///
    /// # Errors
    ///
    /// Where the server cannot be asked, or is in no state to answer.
    pub(crate) async fn version(&self) -> Result<Option<ServerVersion>, Fault> {
        if let Some(version) = self.shared.version.get() {
            return Ok(Some(*version));
        }
        let body = match self.document("/version", "application/json", LIMIT).await {
            Ok(body) => body,
            Err(Fault::Status(status)) if matches!(status.code, 403 | 404) => return Ok(None),
            Err(Fault::Body(_)) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let version = serde_json::from_slice::<Document>(&body)
            .ok()
            .and_then(|document| ServerVersion::parse(&document.major, &document.minor));
        if let Some(version) = version {
            // Another one was faster: it is the same.
            let _ = self.shared.version.set(version);
        }
        Ok(version)
    }
}
