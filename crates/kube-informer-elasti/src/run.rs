//! Everything under one roof: the operator, its informers, who leads, who is told how it goes, and the resolver's calls.
//!
//! - **The beginning:** addresses are taken first, then the cluster is connected to. What keeps it from starting is one
//!   error that says what to do. A cluster that is away, or has no ElastiServices yet, is waited for; `/readyz` says so.
//! - **Leadership:** with [`leader_elect`](Settings::leader_elect), ElastiServices are looked after by the one who leads.
//!   The others have everything at hand, and answer the resolver's calls as well. Who loses leadership ends with an error,
//!   and is started anew by whoever runs it.
//! - **The end:** when the given future resolves, no call and no ElastiService is taken any more, what is busy is finished
//!   or cut off at a deadline, the lease is given back, and nothing runs afterwards.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kube_informer::connect::{ConnectError, Source};
use kube_informer::controller;
use kube_informer::factory::Factory;
use kube_informer::leader::{self, LeaderElection, Leadership};
use kube_informer::manager::{self, Manager};
use kube_informer::runner::Runner;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

mod counting;
mod pages;

use crate::http::{Limits as HttpLimits, Serving};
use crate::metrics::Metrics;
use crate::operator::{Operator, OperatorSettings, WakeError};
use crate::scale::Scaled;
use crate::settings::{Address, Election, LEASE, ListenError, Settings};
use crate::wake::{self, NotWoken, Wake, Wakes};
use counting::Counting;

/// How long reconciles may take at the end.
const DRAIN: Duration = Duration::from_secs(10);

/// How long calls may take at the end, and events, and giving back the lease.
const GOODBYE: Duration = Duration::from_secs(3);

/// The operator, connected and listening. [`run`](Self::run) makes it work.
#[must_use = "nothing is looked after until `run` is called"]
pub struct Running {
    factory: Factory,
    manager: Manager,
    operator: Operator,
    runner: Runner,
    leadership: Option<Leadership>,
    wakes: Wakes,
    called: Serving,
    metrics: Option<Serving>,
    probes: Option<Serving>,
}

/// Why the operator does not start, or ends without being asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There is no connection to be had.
    #[error(
        "cannot connect to a cluster: {0}; give --kubeconfig FILE, and --context NAME where it has several, or run it in a \
         cluster"
    )]
    Connect(#[source] ConnectError),
    /// The times of the election make no sense.
    #[error(
        "cannot stand for election: {0}; see --leader-elect-lease-duration, -renew-deadline and -retry-period"
    )]
    Election(#[source] leader::SettingsError),
    /// The controller ended.
    #[error("the operator has ended: {0}")]
    Controller(#[source] controller::RunError),
}

/// Runs the operator until the future resolves, and then to its end.
///
/// # Errors
///
/// Where it does not start, or ends without being asked to.
pub async fn run(settings: Settings, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    Running::start(settings).await?.run(shutdown).await
}

impl Running {
    /// Connects, and listens.
    ///
    /// # Errors
    ///
    /// Where an address is taken, or there is no cluster to connect to.
    pub async fn start(settings: Settings) -> Result<Self, RunError> {
        settings.log_unused();
        let called = settings.wake.listen("--wake-bind-address").await?;
        let metrics_at = listen(settings.metrics.as_ref(), "--metrics-bind-address").await?;
        let probes_at = listen(settings.probes.as_ref(), "--health-probe-bind-address").await?;

        let factory = Factory::from_source(source(&settings)).await.map_err(RunError::Connect)?;
        let own = || factory.client().default_namespace().to_owned();
        let namespace = settings.operator_namespace.clone().unwrap_or_else(own);
        let resolver = settings.resolver_namespace.clone().unwrap_or_else(|| namespace.clone());
        let mut registry = Registry::default();
        factory.register_metrics(&mut registry);

        let controllers = controller::Metrics::default();
        controllers.register(&mut registry);
        let managers = manager::Metrics::sharing(controllers.queues());
        managers.register(&mut registry);
        let manager = Manager::new(&factory).name("elasti").metrics(&managers);
        let mut operator_settings =
            OperatorSettings::new(resolver, settings.resolver_service.clone(), settings.resolver_proxy_port)
                .scope(settings.scope())
                .workers(settings.workers);
        operator_settings.linger = settings.linger;
        let operator = Operator::new(operator_settings, &factory, &manager);
        let metrics = Metrics::default();
        metrics.register(&mut registry);
        metrics.register_modes(&mut registry, operator.informer());
        metrics.register_watches(&mut registry, &manager);
        operator.recorder().register_metrics(&mut registry);

        let controller = operator.controller().metrics(&controllers).drain(DRAIN);
        let mut runner =
            Runner::new(&factory).controller(controller, Counting::new(operator.clone(), &metrics));
        let leadership = match settings.leader_elect {
            true => Some(stand(&settings, &namespace, &mut registry).await?),
            false => None,
        };
        if let Some(leadership) = &leadership {
            runner = runner.when(leadership);
            operator.lead_by(leadership);
        }

        let probes = runner.probes();
        let registry = Arc::new(registry);
        let wakes = Wakes::new(Arc::new(operator.clone()), wake::Limits::default(), &metrics);
        let pages = pages::metrics(&registry);
        let serve = |listener, router, flag: &'static str, address: &Address| {
            let error = |source| ListenError { address: address.clone(), flag, source };
            Serving::start(listener, router, HttpLimits::default()).map_err(error)
        };
        let called = serve(
            called,
            wake::router(wakes.clone()).merge(pages.clone()),
            "--wake-bind-address",
            &settings.wake,
        )?;
        let metrics = match (metrics_at, &settings.metrics) {
            (Some(listener), Some(address)) => {
                Some(serve(listener, pages, "--metrics-bind-address", address)?)
            }
            _ => None,
        };
        let probes = match (probes_at, &settings.probes) {
            (Some(listener), Some(address)) => {
                Some(serve(listener, pages::probes(probes), "--health-probe-bind-address", address)?)
            }
            _ => None,
        };
        Ok(Self { factory, manager, operator, runner, leadership, wakes, called, metrics, probes })
    }

    /// Where the resolver calls.
    #[must_use]
    pub fn wake_address(&self) -> SocketAddr {
        self.called.address()
    }

    /// Where metrics are read.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Serving::address)
    }

    /// Where it is asked how it goes.
    #[must_use]
    pub fn probe_address(&self) -> Option<SocketAddr> {
        self.probes.as_ref().map(Serving::address)
    }

    /// Runs until the future resolves, and then to its end.
    ///
    /// # Errors
    ///
    /// Where leadership is lost, or the controller ends by itself.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let Self { factory, manager, operator, runner, leadership, wakes, called, metrics, probes } = self;
        manager.start();
        let (ending, mut ends) = watch::channel(false);
        let work = async {
            let ended = runner
                .run(async {
                    shutdown.await;
                    tracing::info!("ending");
                    ending.send_replace(true);
                })
                .await;
            // It may have ended by itself.
            ending.send_replace(true);
            ended
        };
        let calls = async {
            // The sender is there until the work has ended.
            let _ = ends.wait_for(|ends| *ends).await;
            tokio::join!(called.shutdown(GOODBYE), wakes.shutdown(GOODBYE));
        };
        let (ended, ()) = tokio::join!(work, calls);
        operator.ops().shutdown().await;
        manager.shutdown(GOODBYE).await;
        // The runner has done so; where it did not begin, nobody has.
        factory.shutdown_within(GOODBYE).await;
        // Nothing works any more: another one may.
        let release = async {
            if let Some(leadership) = &leadership {
                let lease = leadership.shutdown(GOODBYE).await;
                tracing::debug!(?lease, "no candidate any more");
            }
        };
        tokio::join!(release, operator.recorder().shutdown(GOODBYE));
        for server in [metrics, probes].into_iter().flatten() {
            server.shutdown(GOODBYE).await;
        }
        let report = ended.map_err(RunError::Controller)?;
        for busy in report.busy() {
            tracing::warn!(busy, "was cut off");
        }
        Ok(())
    }
}

/// Listens where it was told to, if it was.
async fn listen(
    address: Option<&Address>,
    flag: &'static str,
) -> Result<Option<tokio::net::TcpListener>, ListenError> {
    match address {
        Some(address) => address.listen(flag).await.map(Some),
        None => Ok(None),
    }
}

/// The cluster, and as what the operator writes there: the lease, what it makes, and what it says are all its own.
fn source(settings: &Settings) -> Source {
    settings.source.clone().user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
}

/// Stands for election, with a connection of its own: a lease must not wait for other requests.
async fn stand(
    settings: &Settings,
    namespace: &str,
    registry: &mut Registry,
) -> Result<Leadership, RunError> {
    let own = Factory::from_source(source(settings)).await.map_err(RunError::Connect)?;
    let metrics = leader::Metrics::default();
    metrics.register(registry);
    let Election { lease, renew, retry } = settings.election;
    LeaderElection::new(own.client(), namespace, LEASE)
        .lease(lease)
        .renew(renew)
        .retry(retry)
        .metrics(&metrics)
        .start()
        .map_err(RunError::Election)
}

impl Wake for Operator {
    fn is_ready(&self) -> bool {
        Self::is_ready(self)
    }

    fn wake(&self, namespace: String, service: String) -> BoxFuture<'static, Result<String, NotWoken>> {
        let operator = self.clone();
        Box::pin(async move {
            match Self::wake(&operator, &namespace, &service).await {
                Ok(woken) => {
                    let Scaled { before, now, .. } = woken.scaled;
                    Ok(format!("{namespace}/{service} is woken: replicas {before}→{now}"))
                }
                Err(WakeError::Unknown { .. }) => Err(NotWoken::Unknown),
                Err(error) => Err(NotWoken::Failed(said(&error))),
            }
        })
    }
}

/// An error with its causes, in one line.
fn said(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(because) = cause {
        let text = because.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = because.source();
    }
    said
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("wake", &self.wake_address())
            .field("metrics", &self.metrics_address())
            .field("probes", &self.probe_address())
            .finish_non_exhaustive()
    }
}
