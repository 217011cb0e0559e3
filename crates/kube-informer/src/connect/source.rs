//! Where it is written which server to connect to, and as whom.
//!
//! A source can be read again: files that rotate are read anew when the server does not accept what they said, or shows a
//! certificate that they do not vouch for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_client::Config;
use kube_client::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};

use super::{address, agent};

/// Where it is written which server to connect to, and as whom.
///
/// ```
/// use kube_informer::connect::Source;
///
/// // A program for people: their kubeconfig, and only else the cluster that it runs in.
/// let default = Source::default();
/// // One for clusters.
/// let daemon = Source::in_cluster_first();
/// // What `--context` and `--kubeconfig` say.
/// let chosen = Source::file("/etc/informer/kubeconfig").context("staging");
/// # let _ = (default, daemon, chosen);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Source {
    place: Place,
    context: Option<String>,
    impersonate: Option<Impersonate>,
    agent: Option<String>,
}

/// As whom one asks, in place of who one is.
#[derive(Debug, Clone)]
struct Impersonate {
    user: String,
    groups: Vec<String>,
}

#[derive(Debug, Clone, Default)]
enum Place {
    #[default]
    KubeconfigThenCluster,
    ClusterThenKubeconfig,
    Kubeconfig,
    File(PathBuf),
    Cluster(Option<InCluster>),
}

/// What a pod is given: the address in two variables, a folder with a token, a certificate authority and a namespace.
#[derive(Debug, Clone)]
pub(super) struct InCluster {
    pub(super) host: String,
    pub(super) port: String,
    pub(super) folder: PathBuf,
}

/// There is no connection to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The kubeconfig is missing, or cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[source] Box<KubeconfigError>),
    /// This process does not run in a cluster.
    #[error("not in a cluster: {variable} is not set")]
    NotInCluster {
        /// The variable that every pod has.
        variable: &'static str,
    },
    /// A file that every pod has is missing.
    #[error("in a cluster, but {path} cannot be read")]
    Mount {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is neither a kubeconfig nor a cluster that this process runs in.
    #[error("{kubeconfig}; {in_cluster}")]
    Neither {
        /// What is wrong with the kubeconfig.
        kubeconfig: Box<ConnectError>,
        /// What is wrong with the cluster.
        in_cluster: Box<ConnectError>,
    },
    /// The configuration makes no client, as where a certificate cannot be read or a program gives no credentials.
    #[error("no client can be made of the configuration: {0}")]
    Client(#[source] Box<kube_client::Error>),
    /// The address of the server is none.
    #[error("{address:?} is no address of a server: write one such as https://10.0.0.1:6443")]
    Address {
        /// What the configuration says.
        address: String,
    },
    /// The token is none.
    #[error("the token has a line's end in it, or something else that no header can have")]
    Token,
    /// The program that the kubeconfig names for credentials gave none.
    #[error("the login program {command:?} of the kubeconfig {why}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
    Login {
        /// What was run.
        command: String,
        /// What came of it, with what it said.
        why: String,
        /// How to get the program, in the words of the kubeconfig.
        hint: Option<String>,
    },
    /// What was read anew is another server.
    #[error(
        "the configuration leads to another server now: {now} instead of {before}; that would be another cluster"
    )]
    Moved {
        /// Where it led.
        before: String,
        /// Where it leads.
        now: String,
    },
    /// The credentials did not come in time.
    #[error("no credentials within {0:?}")]
    Slow(Duration),
    /// The runtime is shutting down.
    #[error("interrupted: the runtime is shutting down")]
    Interrupted,
}

/// Where pods find what they are given.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";
/// Where a test says that it is.
#[cfg(test)]
pub(super) const TEST_MOUNT: &str = "KUBE_INFORMER_TEST_MOUNT";

impl Source {
    /// The cluster that this process runs in; where it runs in none, the kubeconfig.
    #[must_use]
    pub fn in_cluster_first() -> Self {
        Self { place: Place::ClusterThenKubeconfig, ..Self::default() }
    }

    /// The cluster that this process runs in.
    #[must_use]
    pub fn in_cluster() -> Self {
        Self { place: Place::Cluster(None), ..Self::default() }
    }

    /// The kubeconfig: the files that `KUBECONFIG` names, or the one in the home folder.
    #[must_use]
    pub fn kubeconfig() -> Self {
        Self { place: Place::Kubeconfig, ..Self::default() }
    }

    /// One kubeconfig file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { place: Place::File(path.into()), ..Self::default() }
    }

    /// A context of the kubeconfig. Without, it is the current one. Who asks for a context does not get the cluster that
    /// the process runs in.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.context = Some(name.into());
        self.place = match self.place {
            Place::File(path) => Place::File(path),
            _ => Place::Kubeconfig,
        };
        self
    }

    /// Asks as another user, and as a member of these groups alone. The server must allow that. What the kubeconfig says
    /// about it does not count then.
    #[must_use]
    pub fn impersonate<G: Into<String>>(
        mut self,
        user: impl Into<String>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        self.impersonate = Some(Impersonate { user: user.into(), groups });
        self
    }

    /// What this program calls itself: `shop-operator/1.2`. The server writes the part before the slash into `managedFields`
    /// where a write names no field manager. Without, it is the name of the program's file.
    #[must_use]
    pub fn user_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// A pod's mount, wherever it is.
    #[cfg(test)]
    pub(super) fn mounted(in_cluster: InCluster) -> Self {
        Self { place: Place::Cluster(Some(in_cluster)), ..Self::default() }
    }

    /// What it says now; and where exactly that was found, which does not change when somebody chooses another context
    /// for themselves.
    pub(super) async fn load(&self) -> Result<(Config, Self), ConnectError> {
        let (mut config, found) = self.find().await?;
        address::complete(&mut config)?;
        if let Some(Impersonate { user, groups }) = &self.impersonate {
            let auth = &mut config.auth_info;
            auth.impersonate = Some(user.clone());
            auth.impersonate_groups = Some(groups.clone()).filter(|groups| !groups.is_empty());
            (auth.impersonate_uid, auth.impersonate_user_extra) = (None, None);
        }
        agent::introduce(&mut config, self.agent.as_deref());
        let (impersonate, agent) = (self.impersonate.clone(), self.agent.clone());
        Ok((config, Self { impersonate, agent, ..found }))
    }

    async fn find(&self) -> Result<(Config, Self), ConnectError> {
        let here = || async {
            let place = Place::Cluster(None);
            Ok((InCluster::here()?.load().await?, Self { place, ..Self::default() }))
        };
        match &self.place {
            Place::Kubeconfig => self.read(Place::Kubeconfig, kubeconfig).await,
            Place::File(path) => self.read(self.place.clone(), || Kubeconfig::read_from(path)).await,
            Place::Cluster(Some(in_cluster)) => Ok((in_cluster.load().await?, self.clone())),
            Place::Cluster(None) => here().await,
            Place::KubeconfigThenCluster => match self.read(Place::Kubeconfig, kubeconfig).await {
                Err(ConnectError::Kubeconfig(error)) if is_absent(&error) => {
                    here().await.map_err(|in_cluster| neither(ConnectError::Kubeconfig(error), in_cluster))
                }
                result => result,
            },
            Place::ClusterThenKubeconfig => match here().await {
                Ok(found) => Ok(found),
                Err(in_cluster) => {
                    let read = self.read(Place::Kubeconfig, kubeconfig).await;
                    read.map_err(|error| neither(error, in_cluster))
                }
            },
        }
    }

    async fn read(
        &self,
        place: Place,
        read: impl FnOnce() -> Result<Kubeconfig, KubeconfigError>,
    ) -> Result<(Config, Self), ConnectError> {
        let error = |error| ConnectError::Kubeconfig(Box::new(error));
        let kubeconfig = read().map_err(error)?;
        let context = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
        let has_proxy = has_proxy(&kubeconfig, context.as_deref());
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(error)?;
        if !has_proxy {
            // What the environment says is for all servers alike, and clusters are mostly among the exceptions.
            config.proxy_url = None;
        }
        Ok((config, Self { place, context, ..Self::default() }))
    }
}

/// The files that `KUBECONFIG` names, or the one in the home folder. Of several, those that are not there are left out, as
/// kubectl does.
fn kubeconfig() -> Result<Kubeconfig, KubeconfigError> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let (mut merged, mut missing) = (None, None);
    for path in std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()) {
        match Kubeconfig::read_from(path) {
            Ok(next) => {
                merged = Some(match merged.take() {
                    Some(all) => Kubeconfig::merge(all, next)?,
                    None => next,
                });
            }
            Err(error) if is_absent(&error) => missing = missing.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match (merged, missing) {
        (Some(merged), _) => Ok(merged),
        (None, Some(missing)) => Err(missing),
        // None is named.
        (None, None) => Kubeconfig::read(),
    }
}

/// Whether a context's cluster has a proxy of its own.
fn has_proxy(kubeconfig: &Kubeconfig, context: Option<&str>) -> bool {
    let named = kubeconfig.contexts.iter().find(|each| Some(each.name.as_str()) == context);
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| context.cluster.as_str());
    let found = kubeconfig.clusters.iter().find(|each| Some(each.name.as_str()) == cluster);
    let proxy =
        found.and_then(|found| found.cluster.as_ref()).and_then(|cluster| cluster.proxy_url.as_deref());
    proxy.is_some_and(|proxy| !proxy.is_empty())
}

/// Whether there is none, and not one that is wrong: what is wrong is to be told, not to be gone around.
fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn neither(kubeconfig: ConnectError, in_cluster: ConnectError) -> ConnectError {
    ConnectError::Neither { kubeconfig: Box::new(kubeconfig), in_cluster: Box::new(in_cluster) }
}

impl InCluster {
    fn here() -> Result<Self, ConnectError> {
        let read = |variable| std::env::var(variable).map_err(|_| ConnectError::NotInCluster { variable });
        Ok(Self { host: read(HOST)?, port: read(PORT)?, folder: mount() })
    }

    /// A mount is a kubeconfig in other words.
    async fn load(&self) -> Result<Config, ConnectError> {
        let path = |name: &str| self.folder.join(name);
        let (authority, token) = (path("ca.crt"), path("token"));
        for path in [&authority, &token] {
            read_mounted(path)?;
        }
        // Not every pod's token is of a namespace.
        let namespace = std::fs::read_to_string(path("namespace")).ok();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let name = "in-cluster".to_owned();
        let cluster = Cluster {
            server: Some(self.url()),
            certificate_authority: Some(text(&authority)),
            ..Cluster::default()
        };
        let user = AuthInfo { token_file: Some(text(&token)), ..AuthInfo::default() };
        let context = Context {
            cluster: name.clone(),
            user: Some(name.clone()),
            namespace: namespace.map(|namespace| namespace.trim().to_owned()),
            ..Context::default()
        };
        let kubeconfig = Kubeconfig {
            clusters: vec![NamedCluster {
                name: name.clone(),
                cluster: Some(cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(context),
                ..NamedContext::default()
            }],
            current_context: Some(name),
            ..Kubeconfig::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|error| ConnectError::Kubeconfig(Box::new(error)))?;
        // The authority rotates, too.
        config.root_cert_file = Some(authority);
        // The way to one's own cluster leads through no proxy.
        config.proxy_url = None;
        Ok(config)
    }

    fn url(&self) -> String {
        // An address with colons is written in brackets.
        let host = match self.host.parse::<std::net::Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.host.clone(),
        };
        format!("https://{host}:{}", self.port)
    }
}

fn mount() -> PathBuf {
    #[cfg(test)]
    if let Some(folder) = std::env::var_os(TEST_MOUNT) {
        return folder.into();
    }
    PathBuf::from(MOUNT)
}

fn read_mounted(path: &Path) -> Result<(), ConnectError> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(()),
        Err(source) => Err(ConnectError::Mount { path: path.to_owned(), source }),
    }
}
