//! What the operator is told: by flags, and by the variables that KubeElasti's chart sets.
//!
//! A flag wins over its variable, a variable over the default; a variable that is empty is not there. Nothing is demanded
//! that has a sensible default. What cannot be read is one error that names the variable, what it says, and the flag that
//! could be given instead.
//!
//! | variable | flag | unless said |
//! |---|---|---|
//! | `ELASTI_OPERATOR_NAMESPACE` | `--operator-namespace` | the namespace of the pod, or of the kubeconfig's context |
//! | `ELASTI_OPERATOR_PORT` | `--wake-bind-address` | `8013`, on every address |
//! | `ELASTI_RESOLVER_NAMESPACE` | `--resolver-namespace` | the operator's namespace |
//! | `ELASTI_RESOLVER_SERVICE_NAME` | `--resolver-service` | `elasti-resolver-service` |
//! | `ELASTI_RESOLVER_PROXY_PORT` | `--resolver-proxy-port` | `8012` |
//!
//! Other variables of KubeElasti may be set and are [named](Settings::unused), because nothing follows from them here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use kube_informer::connect::Source;
use kube_informer::informer::Scope;

use crate::operator::LINGER;

mod address;
#[cfg(test)]
mod tests;

pub use address::{Address, ListenError};

/// The lease that candidates stand for; KubeElasti's, so that both never work at once.
pub const LEASE: &str = "acf50383.truefoundry.io";

/// What a flag or a variable can be about, for errors.
const OPERATOR_NAMESPACE: Named = Named("ELASTI_OPERATOR_NAMESPACE", "--operator-namespace");
const OPERATOR_PORT: Named = Named("ELASTI_OPERATOR_PORT", "--wake-bind-address");
const RESOLVER_NAMESPACE: Named = Named("ELASTI_RESOLVER_NAMESPACE", "--resolver-namespace");
const RESOLVER_SERVICE: Named = Named("ELASTI_RESOLVER_SERVICE_NAME", "--resolver-service");
const RESOLVER_PROXY_PORT: Named = Named("ELASTI_RESOLVER_PROXY_PORT", "--resolver-proxy-port");

/// Variables of KubeElasti from which somebody may expect what does not happen here.
const MISSED: [&str; 5] = [
    "POLLING_INTERVAL",
    "PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER",
    "PROMETHEUS_TRIGGER_SERVER_ADDRESS",
    "SENTRY_DSN",
    "SENTRY_ENVIRONMENT",
];

/// Variables of KubeElasti that nothing is left to be done for: what they name is found without them.
const NEEDLESS: [&str; 5] = [
    "ELASTI_OPERATOR_DEPLOYMENT_NAME",
    "ELASTI_OPERATOR_SERVICE_NAME",
    "ELASTI_RESOLVER_DEPLOYMENT_NAME",
    "ELASTI_RESOLVER_PORT",
    "KUBERNETES_CLUSTER_DOMAIN",
];

/// What was given on the command line. What is `None` was not.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "each is the setting of the same name")]
pub struct Flags {
    pub operator_namespace: Option<String>,
    pub resolver_namespace: Option<String>,
    pub resolver_service: Option<String>,
    pub resolver_proxy_port: Option<u16>,
    pub wake: Option<Address>,
}

/// How the operator is to run. See the [module](self).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Where the lease is; where nothing is said, the client's own namespace.
    pub operator_namespace: Option<String>,
    /// Where the resolver is; where nothing is said, the operator's namespace.
    pub resolver_namespace: Option<String>,
    /// The Service whose endpoints are the resolver's.
    pub resolver_service: String,
    /// The port on which the resolver takes the requests of sleeping services.
    pub resolver_proxy_port: u16,
    /// The namespaces whose ElastiServices are looked after; none is all of them.
    pub watch_namespaces: BTreeSet<String>,
    /// Whether it stands for election, and works only while it leads.
    pub leader_elect: bool,
    /// How long a leader leads.
    pub election: Election,
    /// Where the resolver calls.
    pub wake: Address,
    /// Where metrics are read, if they are.
    pub metrics: Option<Address>,
    /// Where it is asked how it goes, if it is.
    pub probes: Option<Address>,
    /// The cluster.
    pub source: Source,
    /// How many ElastiServices are looked after at the same time.
    pub workers: usize,
    /// How long a private Service stays after the redirect has ended; see
    /// [`OperatorSettings::linger`](crate::operator::OperatorSettings::linger).
    pub linger: Duration,
    /// Variables that are set, and that nothing follows from, though somebody may expect it.
    missed: Vec<&'static str>,
    /// Variables that are set and not needed.
    needless: Vec<&'static str>,
}

/// The times of an election, as in [`LeaderElection`](kube_informer::leader::LeaderElection).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "an election has these three times")]
pub struct Election {
    /// How long others wait after a renewal that they saw.
    pub lease: Duration,
    /// How long a leader leads after its last renewal.
    pub renew: Duration,
    /// How often it is renewed.
    pub retry: Duration,
}

/// A variable that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {value:?}, which {problem}; correct it, or give {flag}")]
pub struct SettingsError {
    /// The variable.
    pub variable: &'static str,
    /// What it says.
    pub value: String,
    /// What is wrong with that.
    pub problem: String,
    /// What can be given instead.
    pub flag: &'static str,
}

/// A setting's variable and its flag.
#[derive(Clone, Copy)]
struct Named(&'static str, &'static str);

impl Default for Election {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { lease: seconds(15), renew: seconds(10), retry: seconds(2) }
    }
}

impl Settings {
    /// What flags and the variables of this process say.
    ///
    /// # Errors
    ///
    /// Where a variable that counts cannot be read.
    pub fn from_env(flags: Flags) -> Result<Self, SettingsError> {
        Self::read(flags, std::env::var_os)
    }

    /// What flags and variables say.
    ///
    /// # Errors
    ///
    /// Where a variable that counts cannot be read.
    pub fn read(
        flags: Flags,
        variable: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let is_set = |name: &&'static str| variable(name).is_some();
        Ok(Self {
            operator_namespace: OPERATOR_NAMESPACE.read(flags.operator_namespace, variable, name)?,
            resolver_namespace: RESOLVER_NAMESPACE.read(flags.resolver_namespace, variable, name)?,
            resolver_service: RESOLVER_SERVICE
                .read(flags.resolver_service, variable, name)?
                .unwrap_or_else(|| "elasti-resolver-service".to_owned()),
            resolver_proxy_port: RESOLVER_PROXY_PORT
                .read(flags.resolver_proxy_port, variable, port)?
                .unwrap_or(8012),
            watch_namespaces: BTreeSet::new(),
            leader_elect: false,
            election: Election::default(),
            wake: OPERATOR_PORT
                .read(flags.wake, variable, |text| Ok(Address::everywhere(port(text)?)))?
                .unwrap_or_else(|| Address::everywhere(8013)),
            metrics: Some(Address::everywhere(8080)),
            probes: Some(Address::everywhere(8081)),
            source: Source::in_cluster_first(),
            workers: 8,
            linger: LINGER,
            missed: MISSED.into_iter().filter(is_set).collect(),
            needless: NEEDLESS.into_iter().filter(is_set).collect(),
        })
    }

    /// Which objects are looked after.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self.watch_namespaces.is_empty() {
            true => Scope::All,
            false => Scope::namespaces(self.watch_namespaces.iter().cloned()),
        }
    }

    /// Variables that are set and that nothing follows from, all of them.
    pub fn unused(&self) -> impl Iterator<Item = &'static str> {
        self.missed.iter().chain(&self.needless).copied()
    }

    /// Says which variables nothing follows from.
    pub(crate) fn log_unused(&self) {
        if !self.missed.is_empty() {
            tracing::warn!(
                variables = self.missed.join(", "),
                "these variables are set, and not acted on yet"
            );
        }
        if !self.needless.is_empty() {
            tracing::debug!(variables = self.needless.join(", "), "these variables are set, and not needed");
        }
    }
}

impl Named {
    /// What the flag says, or else the variable.
    fn read<T>(
        self,
        flag: Option<T>,
        variable: impl Fn(&'static str) -> Option<OsString>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SettingsError> {
        let Self(name, instead) = self;
        if flag.is_some() {
            return Ok(flag);
        }
        let Some(value) = variable(name) else { return Ok(None) };
        let read = match value.to_str() {
            Some(text) => read(text.trim()),
            None => Err("is no text".to_owned()),
        };
        let error = |problem| SettingsError {
            variable: name,
            value: value.to_string_lossy().into_owned(),
            problem,
            flag: instead,
        };
        read.map(Some).map_err(error)
    }
}

/// Reads a name of a namespace or a Service.
///
/// # Errors
///
/// What is wrong with it.
pub fn name(text: &str) -> Result<String, String> {
    match crate::wake::is_label(text) {
        true => Ok(text.to_owned()),
        false => Err("is no name: up to 63 small letters, digits and -, with a letter or digit at both ends"
            .to_owned()),
    }
}

/// Reads a port, as `8012` or `:8012`.
///
/// # Errors
///
/// What is wrong with it.
pub fn port(text: &str) -> Result<u16, String> {
    match text.strip_prefix(':').unwrap_or(text).parse() {
        Ok(port @ 1..) => Ok(port),
        _ => Err("is no port: a whole number from 1 to 65535".to_owned()),
    }
}
