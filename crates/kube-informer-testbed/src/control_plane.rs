//! A real control plane on this machine: etcd, kube-apiserver and, on request, kube-controller-manager.
//!
//! [`ControlPlane::start`] returns when the API server answers `/readyz`, RBAC's roles are there and so is the
//! namespace `default`. Everything lies in one folder ([`ControlPlane::dir`]): keys, data, logs, kubeconfigs.
//! Servers listen on the loopback interface; their ports stay the same for the life of the control plane,
//! across restarts and restores, so that clients find it again.
//!
//! Authentication by client certificate, token and service account; authorization by RBAC. There are no
//! nodes, no scheduler, and without the controller manager nothing acts on objects: namespaces do not finish
//! terminating, owners do not take their dependents along, no service accounts appear.
//!
//! A server that exits or does not get ready is an error with its command, its status and the end of its log.
//!
//! The servers end with this process at the latest (see [`process`](crate::process)), at
//! [`stop`](ControlPlane::stop) in good order, at drop at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;

use crate::binaries::{self, Tool, Unavailable};
use crate::http::Endpoint;
use crate::kubeconfig::Access;
use crate::process::{Identity, Lifetime};

mod accounts;
mod layout;
mod options;
mod record;
mod servers;
mod snapshot;

pub use accounts::Accounts;
pub use layout::Layout;
pub use options::Options;
pub use record::{Record, Server};
pub use snapshot::Snapshot;

pub(crate) use accounts::service_account;

use servers::{Binaries, Ports, Servers};

/// How long a server has to end after SIGTERM before it is killed.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Ports are chosen anew this many times when somebody else was faster.
const PORT_ATTEMPTS: usize = 5;

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    accounts: Accounts,
    controller_manager: bool,
    /// What is running now. Locked across restarts: nobody pauses a server that is just being replaced.
    servers: Mutex<Servers>,
    /// Dropped last: the folder goes after the servers that write into it.
    folder: layout::Folder,
}

impl ControlPlane {
    /// Starts the servers and waits until they are ready.
    ///
    /// Missing binaries are [`Unavailable`], found by [`Unavailable::from_error`]; everything else is a
    /// failure.
    pub async fn start(options: Options) -> Result<Self> {
        let binaries = Binaries {
            etcd: binaries::locate(Tool::Etcd).await?,
            kube_apiserver: binaries::locate(Tool::KubeApiserver).await?,
            kube_controller_manager: match options.controller_manager {
                true => Some(binaries::locate(Tool::KubeControllerManager).await?),
                false => None,
            },
        };
        let folder = layout::Folder::create(options.dir.as_deref())?;
        if Record::read(folder.layout().dir())?.is_some_and(|record| record.any_alive()) {
            bail!("servers still run in {}", folder.layout().dir().display());
        }
        let controller_manager = options.controller_manager;

        let mut attempt = 1;
        loop {
            let ports = Ports::choose()?;
            let accounts = Accounts::create(folder.layout().clone(), ports.apiserver)?;
            let mut servers = Servers::new(binaries.clone(), options.clone(), ports, accounts.clone());
            match servers.start_all().await {
                Ok(()) => {
                    return Ok(Self { accounts, controller_manager, servers: Mutex::new(servers), folder });
                }
                Err(error) if attempt < PORT_ATTEMPTS && servers.port_was_taken() => {
                    tracing::info!(%error, "a port was taken; trying others");
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The folder that holds everything.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.folder.layout().dir()
    }

    /// The API server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        self.accounts.url()
    }

    /// The certificate of the authority that signed the API server's.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.accounts.ca_pem()
    }

    /// A token of a member of `system:masters`, whom nothing is forbidden.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        self.accounts.admin_token()
    }

    /// A kubeconfig with that token.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.accounts.admin_kubeconfig()
    }

    /// A client with that token, with connections of its own.
    pub fn endpoint(&self) -> Result<Endpoint> {
        Endpoint::new(self.accounts.admin())
    }

    /// How the administrator gets in.
    #[must_use]
    pub fn admin(&self) -> Access {
        self.accounts.admin()
    }

    /// Who gets in, for those who hand out kubeconfigs without the servers.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Whether kube-controller-manager runs.
    #[must_use]
    pub fn has_controller_manager(&self) -> bool {
        self.controller_manager
    }

    /// A kubeconfig of the user `name`, who may do what RBAC allows that user and those groups.
    pub async fn kubeconfig_for_user(&self, name: &str, groups: &[&str]) -> Result<PathBuf> {
        self.accounts.kubeconfig_for_user(name, groups)
    }

    /// A kubeconfig with a token of a service account, which is created if it does not exist.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        self.accounts.kubeconfig_for_service_account(namespace, name).await
    }

    /// The servers that run now.
    pub async fn processes(&self) -> Vec<(String, Identity)> {
        self.servers.lock().await.identities()
    }

    /// Ends the API server in good order and starts it again; returns when it is ready. Watches end.
    pub async fn restart_apiserver(&self) -> Result<()> {
        let mut servers = self.servers.lock().await;
        servers.stop_apiserver().await?;
        servers.start_apiserver().await
    }

    /// Ends etcd and starts it again with its data; returns when the API server is ready with it.
    pub async fn restart_etcd(&self) -> Result<()> {
        let mut servers = self.servers.lock().await;
        servers.stop_etcd().await?;
        servers.start_etcd().await?;
        servers.apiserver_ready().await
    }

    /// Stops the API server in its tracks: connections stay open, new ones are accepted by the kernel, and
    /// nothing answers.
    pub async fn pause_apiserver(&self) -> Result<()> {
        self.servers.lock().await.apiserver()?.pause().await
    }

    /// Lets a paused API server go on.
    pub async fn resume_apiserver(&self) -> Result<()> {
        self.servers.lock().await.apiserver()?.resume()
    }

    /// Kills the API server: connections break, new ones are refused until
    /// [`start_apiserver`](Self::start_apiserver).
    pub async fn kill_apiserver(&self) -> Result<()> {
        self.servers.lock().await.kill_apiserver()
    }

    /// Starts an API server that was killed; returns when it is ready.
    pub async fn start_apiserver(&self) -> Result<()> {
        self.servers.lock().await.start_apiserver().await
    }

    /// Takes a snapshot of the store while everything goes on, as `etcdctl snapshot save` does.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let etcd = self.servers.lock().await.ports().etcd_url();
        Snapshot::take(&etcd, self.dir()).await
    }

    /// Puts the store back to a snapshot, the way etcd's documentation tells an administrator to: all
    /// servers are stopped, `etcdutl snapshot restore` writes a new data folder, they start again.
    /// Versions go back with the data: what was written since is gone, and its versions will be given out anew.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        let etcdutl = binaries::locate(Tool::Etcdutl).await?;
        let mut servers = self.servers.lock().await;
        servers.stop_all().await?;
        snapshot.restore(&etcdutl, self.folder.layout(), servers.ports()).await?;
        servers.start_etcd().await?;
        servers.start_apiserver().await?;
        servers.start_controller_manager().await
    }

    /// Ends all servers in good order. The folder is removed unless it was given in the options.
    pub async fn stop(self) -> Result<()> {
        let mut servers = self.servers.into_inner();
        servers.stop_all().await
    }

    /// Leaves detached servers running: they are found again by the [`Record`] in the folder.
    pub fn leave_running(self) {
        self.servers.into_inner().leave_running();
        self.folder.keep();
    }
}

impl Unavailable {
    /// What a failed start comes down to: a tool that is missing, or something broken.
    #[must_use]
    pub fn from_error(error: anyhow::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(unavailable) => unavailable,
            Err(error) => Self::broken(&error),
        }
    }
}

/// How servers are started for `options`.
fn lifetime(options: &Options) -> Lifetime {
    if options.detached { Lifetime::Detached } else { Lifetime::WithParent }
}

/// Where something is written that a reader must never see half of.
fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("new");
    crate::kubeconfig::write_private(&beside, bytes)?;
    std::fs::rename(&beside, path).with_context(|| format!("cannot write {}", path.display()))
}

/// Bytes that nobody can guess, and that two processes do not share.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    use std::io::Read;
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
