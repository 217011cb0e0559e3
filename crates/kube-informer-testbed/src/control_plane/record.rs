//! What runs in a folder, written down for other processes.
//!
//! The record is rewritten whenever a server starts, so that whoever finds the folder can end exactly those
//! processes, even if the one that started them did not get to the end.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{Layout, STOP_DEADLINE, write_atomically};
use crate::process::Identity;

/// What runs in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The API server's address.
    pub url: String,
    /// Whether kube-controller-manager is among the servers.
    pub controller_manager: bool,
    /// The servers, in the order of their start.
    pub servers: Vec<Server>,
}

/// A server and its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The binary's name.
    pub name: String,
    /// The process.
    #[serde(flatten)]
    pub identity: Identity,
}

impl Record {
    /// The record in the folder `dir`, if there is one.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = Layout::new(dir).record();
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("{} is no record of a control plane", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Whether all servers were started and run.
    #[must_use]
    pub fn is_up(&self) -> bool {
        let expected = if self.controller_manager { 3 } else { 2 };
        self.servers.len() == expected && self.servers.iter().all(|server| server.identity.is_alive())
    }

    /// Whether any server runs.
    #[must_use]
    pub fn any_alive(&self) -> bool {
        self.servers.iter().any(|server| server.identity.is_alive())
    }

    /// Ends the servers that still run, the last one started first, and no other process.
    pub async fn stop(&self) -> Result<Vec<&Server>> {
        let alive: Vec<_> = self.servers.iter().rev().filter(|server| server.identity.is_alive()).collect();
        for server in &alive {
            server
                .identity
                .stop(STOP_DEADLINE)
                .await
                .with_context(|| format!("cannot end {}", server.name))?;
        }
        Ok(alive)
    }

    pub(super) fn write(&self, layout: &Layout) -> Result<()> {
        write_atomically(&layout.record(), &serde_json::to_vec_pretty(self)?)
    }
}
