//! What can be chosen about a control plane.

use std::path::PathBuf;

/// What to start. The default: etcd and kube-apiserver in a temporary folder, ending with this process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Start kube-controller-manager, too.
    pub controller_manager: bool,
    /// More flags for kube-apiserver, as `--name=value`. The last of two equal flags wins, so these win.
    pub apiserver_flags: Vec<String>,
    /// More flags for etcd.
    pub etcd_flags: Vec<String>,
    /// More flags for kube-controller-manager.
    pub controller_manager_flags: Vec<String>,
    /// The folder to use, which is kept; otherwise a temporary one.
    pub dir: Option<PathBuf>,
    /// The servers get sessions of their own and can be left running.
    pub detached: bool,
}

impl Options {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts kube-controller-manager, too: namespaces, garbage collection, workloads, service accounts.
    #[must_use]
    pub fn controller_manager(mut self, on: bool) -> Self {
        self.controller_manager = on;
        self
    }

    /// Adds a flag for kube-apiserver, as `--name=value`.
    #[must_use]
    pub fn apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.apiserver_flags.push(flag.into());
        self
    }

    /// Adds a flag for etcd.
    #[must_use]
    pub fn etcd_flag(mut self, flag: impl Into<String>) -> Self {
        self.etcd_flags.push(flag.into());
        self
    }

    /// Adds a flag for kube-controller-manager.
    #[must_use]
    pub fn controller_manager_flag(mut self, flag: impl Into<String>) -> Self {
        self.controller_manager_flags.push(flag.into());
        self
    }

    /// Uses this folder and leaves it behind.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Starts servers that can be [left running](super::ControlPlane::leave_running).
    #[must_use]
    pub fn detached(mut self, on: bool) -> Self {
        self.detached = on;
        self
    }
}
