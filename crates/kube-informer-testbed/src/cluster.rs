//! What a test asks for: a cluster, and a namespace of its own in it.
//!
//! [`Cluster::shared`] is one control plane for a whole test run:
//!
//! 1. `KUBECONFIG_E2E` names a kubeconfig: that existing cluster, as its user;
//! 2. `KUBE_INFORMER_E2E_DIR` names the folder of a running control plane (`cargo xtask test` starts one): that;
//! 3. otherwise one per process, started by the first test that asks, ended with the process.
//!
//! [`Cluster::own`] is for tests that stop, break or configure servers. They do not run on an existing cluster.
//!
//! Every call returns a client with connections of its own, so tests with different tokio runtimes do not
//! depend on each other. Tests share the cluster but not a [`Namespace`].
//!
//! [`require!`](crate::require) takes a test out by name when something is [`Unavailable`].

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result};
use http::StatusCode;
use tokio::sync::OnceCell;

use crate::binaries::{self, Tool, Unavailable, Verdict};
use crate::control_plane::{self, Accounts, ControlPlane, Options, Record};
use crate::http::Endpoint;
use crate::kubeconfig::Access;
use crate::skip;

mod namespace;

pub use namespace::Namespace;

/// The variable that names an existing cluster's kubeconfig.
pub const KUBECONFIG_E2E: &str = "KUBECONFIG_E2E";

/// The variable that names the folder of a running control plane.
pub const E2E_DIR: &str = "KUBE_INFORMER_E2E_DIR";

/// A cluster to test against.
#[derive(Clone, Debug)]
pub struct Cluster {
    source: Arc<Source>,
    endpoint: Endpoint,
}

/// A cluster whose servers belong to the test.
#[derive(Clone, Debug)]
pub struct OwnCluster {
    cluster: Cluster,
    control_plane: Arc<ControlPlane>,
}

#[derive(Debug)]
enum Source {
    /// Somebody's cluster. Kubeconfigs made for it go to a folder of ours.
    Existing { kubeconfig: PathBuf, admin: Access, made: tempfile::TempDir, controller_manager: bool },
    /// A control plane of ours, here or in another process.
    Ours { accounts: Accounts, controller_manager: bool },
}

impl Cluster {
    /// The cluster of this test run. It may have no controllers: see
    /// [`has_controller_manager`](Self::has_controller_manager).
    pub async fn shared() -> Result<Self, Unavailable> {
        static SHARED: OnceCell<Result<ControlPlane, Unavailable>> = OnceCell::const_new();
        if let Some(cluster) = Self::of_environment(false).await? {
            return Ok(cluster);
        }
        Self::of_process(&SHARED, Options::new()).await
    }

    /// The same for tests that need kube-controller-manager: namespaces that end, garbage collection,
    /// deployments, service accounts.
    pub async fn shared_with_controllers() -> Result<Self, Unavailable> {
        static SHARED: OnceCell<Result<ControlPlane, Unavailable>> = OnceCell::const_new();
        if let Some(cluster) = Self::of_environment(true).await? {
            return Ok(cluster);
        }
        Self::of_process(&SHARED, Options::new().controller_manager(true)).await
    }

    /// A cluster whose servers the test may stop, break and configure. It ends when the last handle is dropped.
    pub async fn own(options: Options) -> Result<OwnCluster, Unavailable> {
        own_servers().await?;
        let control_plane = ControlPlane::start(options).await.map_err(Unavailable::from_error)?;
        let cluster = Self::of_control_plane(&control_plane)?;
        Ok(OwnCluster { cluster, control_plane: Arc::new(control_plane) })
    }

    /// The cluster in the folder of a running control plane.
    pub async fn open(dir: &Path) -> Result<Self> {
        let record = Record::read(dir)?
            .filter(Record::is_up)
            .with_context(|| format!("no control plane runs in {}", dir.display()))?;
        Self::of_accounts(Accounts::open(dir).await?, record.controller_manager)
    }

    /// Somebody's cluster, as the user of a kubeconfig's current context.
    pub async fn existing(kubeconfig: &Path) -> Result<Self> {
        let admin = Access::read(kubeconfig).await?;
        let endpoint = Endpoint::new(admin.clone())?;
        // Controllers make this one, and people do not delete it.
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        let controller_manager = endpoint.get(account).await?.status == StatusCode::OK;
        let made = tempfile::tempdir().context("cannot create a temporary folder")?;
        let source = Source::Existing { kubeconfig: kubeconfig.to_owned(), admin, made, controller_manager };
        Ok(Self { source: Arc::new(source), endpoint })
    }

    /// A client that may do everything.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The API server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// How the administrator gets in: address, authority, credentials.
    #[must_use]
    pub fn admin(&self) -> &Access {
        self.endpoint.access()
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        match &*self.source {
            Source::Existing { kubeconfig, .. } => kubeconfig.clone(),
            Source::Ours { accounts, .. } => accounts.admin_kubeconfig(),
        }
    }

    /// Whether controllers act on objects here.
    #[must_use]
    pub fn has_controller_manager(&self) -> bool {
        match &*self.source {
            Source::Existing { controller_manager, .. } | Source::Ours { controller_manager, .. } => {
                *controller_manager
            }
        }
    }

    /// Whether this is somebody's cluster: other things live there, and go on living.
    #[must_use]
    pub fn is_existing(&self) -> bool {
        matches!(&*self.source, Source::Existing { .. })
    }

    /// A kubeconfig of a user, who may do what RBAC allows that user and those groups. On an existing cluster
    /// the administrator acts as that user.
    pub async fn kubeconfig_for_user(&self, name: &str, groups: &[&str]) -> Result<PathBuf> {
        match &*self.source {
            Source::Ours { accounts, .. } => accounts.kubeconfig_for_user(name, groups),
            Source::Existing { admin, made, .. } => {
                let path = made.path().join(unique("user")?);
                admin.clone().acting_as(name, groups).write(&path)?;
                Ok(path)
            }
        }
    }

    /// A user whose client certificate expires then, or has expired. An existing cluster's authority signs nothing for us.
    pub fn user_until(&self, name: &str, until: SystemTime) -> Result<Access, Unavailable> {
        match &*self.source {
            Source::Ours { accounts, .. } => {
                accounts.user_until(name, until).map_err(|error| Unavailable::broken(&error))
            }
            Source::Existing { .. } => {
                Err(Unavailable::not_here("an existing cluster's authority is not ours to sign with"))
            }
        }
    }

    /// A kubeconfig with a token of a service account, which is created if it does not exist.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        match &*self.source {
            Source::Ours { accounts, .. } => accounts.kubeconfig_for_service_account(namespace, name).await,
            Source::Existing { admin, made, .. } => {
                let path = made.path().join(unique("service-account")?);
                control_plane::service_account(admin, namespace, name).await?.write(&path)?;
                Ok(path)
            }
        }
    }

    /// A new namespace, named after a test, and gone when the value is closed or dropped.
    pub async fn namespace(&self, test_name: &str) -> Result<Namespace> {
        Namespace::create(self, test_name).await
    }

    async fn of_environment(controllers: bool) -> Result<Option<Self>, Unavailable> {
        if let Some(kubeconfig) = variable(KUBECONFIG_E2E) {
            let cluster = Self::existing(&kubeconfig).await.with_context(|| format!("of {KUBECONFIG_E2E}"));
            return cluster.map(Some).map_err(|error| Unavailable::broken(&error));
        }
        let Some(dir) = variable(E2E_DIR) else {
            return Ok(None);
        };
        let cluster = Self::open(&dir)
            .await
            .with_context(|| format!("of {E2E_DIR}"))
            .map_err(|error| Unavailable::broken(&error))?;
        Ok(Some(cluster).filter(|cluster| !controllers || cluster.has_controller_manager()))
    }

    async fn of_process(
        cell: &'static OnceCell<Result<ControlPlane, Unavailable>>,
        options: Options,
    ) -> Result<Self, Unavailable> {
        // A failure is kept, too: it would only take its time again in every test.
        let started = cell
            .get_or_init(|| async { ControlPlane::start(options).await.map_err(Unavailable::from_error) });
        Self::of_control_plane(started.await.as_ref().map_err(Clone::clone)?)
    }

    fn of_control_plane(control_plane: &ControlPlane) -> Result<Self, Unavailable> {
        Self::of_accounts(control_plane.accounts().clone(), control_plane.has_controller_manager())
            .map_err(|error| Unavailable::broken(&error))
    }

    fn of_accounts(accounts: Accounts, controller_manager: bool) -> Result<Self> {
        let endpoint = Endpoint::new(accounts.admin())?;
        Ok(Self { source: Arc::new(Source::Ours { accounts, controller_manager }), endpoint })
    }
}

impl OwnCluster {
    /// The servers.
    #[must_use]
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The servers, to be shared with tasks. They end when the last handle is dropped.
    #[must_use]
    pub fn share_control_plane(&self) -> Arc<ControlPlane> {
        Arc::clone(&self.control_plane)
    }
}

impl Deref for OwnCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// Whether a test may start servers of its own, and has their binaries.
pub async fn own_servers() -> Result<(), Unavailable> {
    if variable(KUBECONFIG_E2E).is_some() {
        return Err(Unavailable::not_here(
            "tests that restart, kill or restore servers do not run on an existing cluster",
        ));
    }
    for tool in [Tool::Etcd, Tool::KubeApiserver] {
        binaries::locate(tool).await?;
    }
    Ok(())
}

/// The value of a `Result<_, Unavailable>`, or the end of the test: skipped by name, or failed.
///
/// `require!(Cluster::shared().await)` in a test that returns nothing,
/// `require!(Cluster::shared().await, else Ok(()))` in one that returns a result.
#[macro_export]
macro_rules! require {
    ($result:expr $(, else $value:expr)?) => {
        match $result {
            Ok(value) => value,
            Err(unavailable) => {
                fn here() {}
                $crate::cluster::leave_out($crate::cluster::test_name(here), &unavailable);
                return $($value)?;
            }
        }
    };
}

/// Leaves `test` out by name.
///
/// # Panics
///
/// If what is missing is broken, or could be installed and this is CI.
pub fn leave_out(test: &str, unavailable: &Unavailable) {
    leave_out_on(std::env::var_os("CI").is_some_and(|value| value == "true"), test, unavailable);
}

fn leave_out_on(ci: bool, test: &str, unavailable: &Unavailable) {
    match unavailable.verdict() {
        Verdict::NotHere => skip::skip(test, unavailable.reason()),
        Verdict::Installable { tool, how } if !ci => skip::skip_missing(test, tool, how),
        Verdict::Installable { .. } => panic!("{test}: on CI this is no reason to skip: {unavailable}"),
        Verdict::Broken => panic!("{test}: {unavailable}"),
    }
}

/// The path, within its crate, of the function that a nested function `here` stands in.
#[doc(hidden)]
#[must_use]
pub fn test_name<T>(_here: T) -> &'static str {
    let path = std::any::type_name::<T>();
    let path = path.strip_suffix("::here").unwrap_or(path);
    let path = path.trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_crate, path)| path)
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `prefix` and something that no other test has.
fn unique(prefix: &str) -> Result<String> {
    Ok(format!("{prefix}-{}", control_plane::hex(&control_plane::random_bytes::<4>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_test_is_named_as_libtest_names_it() {
        fn here() {}
        assert_eq!(test_name(here), "cluster::tests::a_test_is_named_as_libtest_names_it");
    }

    #[test]
    #[should_panic(expected = "etcd is gone")]
    fn something_broken_is_never_skipped() {
        let unavailable = Unavailable::broken(&anyhow::anyhow!("etcd is gone"));
        let _: () = require!(Err(unavailable));
    }

    #[test]
    #[should_panic(
        expected = "on CI this is no reason to skip: unavailable: Go not found; install it with: apt"
    )]
    fn on_ci_what_can_be_installed_is_no_reason_to_skip() {
        leave_out_on(true, "a_test", &Unavailable::installable("Go", "apt"));
    }
}
