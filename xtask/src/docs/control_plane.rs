//! The folder of the control plane that a document starts: nobody else's, and nothing runs in it afterwards.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kube_informer_testbed::control_plane::Record;

/// Where a control plane lies, as documents have it.
pub(super) const PLANE: &str = "target/control-plane";

/// A folder in its place. Dropped, it ends what still runs there: servers that were started to stay would stay.
#[derive(Debug)]
pub(super) struct Plane(PathBuf);

impl Plane {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The text with this folder.
    pub(super) fn exchanged(&self, text: &str) -> String {
        text.replace(PLANE, &self.0.display().to_string())
    }

    /// Ends what is left.
    pub(super) async fn stop(&self) -> Result<()> {
        if let Some(record) = Record::read(&self.0)? {
            record.stop().await.context("the control plane does not end")?;
        }
        Ok(())
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let Ok(Some(record)) = Record::read(&self.0) else {
            return;
        };
        if !record.any_alive() {
            return;
        }
        // Whoever runs the block was told to give up: nothing is waited for on this thread any more.
        let end = move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            runtime.block_on(record.stop()).map(drop)
        };
        // What cannot be ended is told by nobody: the one who asked is gone.
        let _ = std::thread::spawn(end).join();
    }
}
