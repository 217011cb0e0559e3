//! Snapshots of the store, and the way back.
//!
//! Both ways are the ones that an administrator takes: the snapshot is streamed from the running etcd by its
//! maintenance API, as `etcdctl snapshot save` does (here through etcd's HTTP gateway, so that no further tool
//! is needed), and `etcdutl snapshot restore` makes a new data folder from it. That was preferred to a copy of
//! a stopped data folder: it needs no downtime, checks the snapshot's hash, and gives a cluster with new
//! member ids and a new log, at the old revision, which is what clients meet after a real restore.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, Method};
use serde_json::Value;

use super::layout::Layout;
use super::servers::Ports;
use crate::http::Endpoint;
use crate::kubeconfig::Access;

/// The state of the store at one moment. The file is removed when this is dropped.
#[derive(Debug)]
pub struct Snapshot {
    file: tempfile::TempPath,
}

impl Snapshot {
    pub(super) async fn take(etcd: &str, dir: &Path) -> Result<Self> {
        let endpoint = Endpoint::new(Access::anonymous(etcd))?;
        let mut stream =
            endpoint.stream(Method::POST, "/v3/maintenance/snapshot", HeaderMap::new(), "{}").await?;
        let mut file = tempfile::Builder::new().prefix("snapshot-").suffix(".db").tempfile_in(dir)?;
        let mut remaining = None;
        while let Some(line) = stream.line().await? {
            let message: Value = serde_json::from_slice(&line)
                .with_context(|| format!("etcd sent no JSON: {}", String::from_utf8_lossy(&line)))?;
            let result = &message["result"];
            let Some(blob) = result["blob"].as_str() else {
                bail!("etcd refused a snapshot: {message}");
            };
            file.write_all(&BASE64.decode(blob).context("a snapshot is not base64")?)?;
            // 64-bit numbers are strings in this encoding, and zero is left out.
            remaining = Some(result["remaining_bytes"].as_str().unwrap_or("0").to_owned());
        }
        match remaining.as_deref() {
            Some("0") => Ok(Self { file: file.into_temp_path() }),
            remaining => bail!("a snapshot broke off with {} bytes to come", remaining.unwrap_or("all")),
        }
    }

    /// The file, in the format of `etcdctl snapshot save`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Replaces the data of an etcd that does not run.
    pub(super) async fn restore(&self, etcdutl: &Path, layout: &Layout, ports: &Ports) -> Result<()> {
        let data: PathBuf = layout.etcd_data();
        std::fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        let peer = ports.etcd_peer_url();
        let output = tokio::process::Command::new(etcdutl)
            .args(["snapshot", "restore"])
            .arg(self.path())
            .arg(format!("--data-dir={}", data.display()))
            .arg(format!("--initial-cluster=default={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg("--name=default")
            .output()
            .await
            .context("cannot run etcdutl")?;
        if !output.status.success() {
            bail!(
                "etcdutl snapshot restore ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(())
    }
}
