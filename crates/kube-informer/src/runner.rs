//! Controllers and their informers under one roof.
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_informer::controller::{Action, BoxError, Context, Controller};
//! use kube_informer::factory::Factory;
//! use kube_informer::runner::Runner;
//!
//! async fn roll(_: Context<Deployment>) -> Result<Action, BoxError> { Ok(Action::done()) }
//! async fn copy(_: Context<ConfigMap>) -> Result<Action, BoxError> { Ok(Action::done()) }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::try_default().await?;
//! let runner = Runner::new(&factory)
//!     .controller(Controller::new(&factory).for_kind::<Deployment>(), roll)
//!     .controller(Controller::new(&factory).for_kind::<ConfigMap>().workers(4), copy);
//! let probes = runner.probes();                            // for /readyz and /healthz
//! assert!(!probes.readiness().ok);
//! let report = runner.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
//! for left in report.busy() {
//!     println!("was cut off: {left}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - **The beginning:** informers start, each controller waits for its required sources, then its workers start.
//! - **Leadership** ([`when`](Runner::when)): on standby, informers are warm and no keys are queued; when it is gained, every
//!   key that there is is queued, and workers start. When it is lost, reconciles are dropped where they are, at once, and [`run`](Runner::run) returns an error:
//!   what it was about to write, another one may write differently.
//! - **The end:** when the given future resolves, or a controller fails, no controller takes a key any more; what is busy
//!   is finished, or cut off at the controller's deadline, or when leadership is lost before it; then the factory is shut down. Nothing runs afterwards, but for
//!   what blocks its thread, and the report names that.
//!
//! It installs no signal handlers: the given future says when to end.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use crate::controller::engine::{Engine, Phase};
pub use crate::controller::gate::Gate;
use crate::controller::{Added, Controller, Reconciler, Report, RunError};
use crate::factory::{Factory, Shutdown};

/// How long it may take to give back what was lost and won again.
const TO_ABDICATE: Duration = Duration::from_secs(5);

/// Runs controllers. See the [module](self).
#[must_use = "nothing happens until `run` is called"]
pub struct Runner {
    factory: Factory,
    controllers: Vec<Entry>,
    gate: Option<Gate>,
    grace: Duration,
}

struct Entry {
    engine: Arc<Engine>,
    run: Box<Run>,
}

type Run = dyn FnOnce(Told, Option<Gate>) -> BoxFuture<'static, Result<Report, RunError>> + Send;

/// Says when to end.
type Told = watch::Receiver<bool>;

/// What runs, seen from outside. A clone is the same.
#[derive(Clone)]
pub struct Probes {
    engines: Arc<[Arc<Engine>]>,
}

/// An answer for those who ask how it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Whether all is well.
    pub ok: bool,
    /// Why not; and what else is worth knowing.
    pub reasons: Vec<String>,
}

/// What was left when all had ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunReport {
    /// Of each controller.
    pub controllers: Vec<Report>,
    /// Of the factory.
    pub factory: Shutdown,
}

impl Runner {
    /// A roof for controllers and the informers of a factory.
    pub fn new(factory: &Factory) -> Self {
        Self { factory: factory.clone(), controllers: Vec::new(), gate: None, grace: Duration::from_secs(30) }
    }

    /// One more controller. Its informers are asked for now, and start with [`run`](Self::run).
    pub fn controller<K: 'static, S: Added>(
        mut self,
        controller: Controller<K, S>,
        reconciler: impl Reconciler<K>,
    ) -> Self {
        let (engine, external) = controller.build();
        let running = Arc::clone(&engine);
        let run: Box<Run> = Box::new(move |mut told, gate| {
            // A sender that is gone tells the same.
            let shutdown = async move { drop(told.wait_for(|told| *told).await) };
            Box::pin(running.run(external, reconciler, shutdown, gate))
        });
        self.controllers.push(Entry { engine, run });
        self
    }

    /// Workers run only while this process may work: while it leads ([`&Leadership`](crate::leader::Leadership)), or a value
    /// that is watched is true. It is waited for, then it must stay: when it is lost, or its sender is gone, all that is busy
    /// is dropped at once, and [`run`](Self::run) returns [`RunError::LeadershipLost`]. Controllers that run
    /// [everywhere](Controller::everywhere) do not care.
    ///
    /// Leadership that was lost is not sought again: as soon as all have ended that need it, the candidacy ends, while others
    /// may still be busy. If it has been won again meanwhile, the lease is given back, so that another one can lead.
    /// [`shutdown`](crate::leader::Leadership::shutdown) afterwards tells what came of it.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use kube_informer::factory::Factory;
    /// # use kube_informer::leader::LeaderElection;
    /// # use kube_informer::runner::Runner;
    /// # async fn example(factory: Factory, client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let leadership = LeaderElection::new(client, "default", "my-controller").start()?;
    /// let runner = Runner::new(&factory).when(&leadership); // and its controllers
    /// let ended = runner.run(async { drop(tokio::signal::ctrl_c().await) }).await;
    /// leadership.shutdown(Duration::from_secs(5)).await; // nothing runs any more: another one leads at once
    /// ended?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn when(mut self, gate: impl Into<Gate>) -> Self {
        self.gate = Some(gate.into());
        self
    }

    /// How long handlers of the factory's informers may be busy at the end. Half a minute unless said otherwise.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// For health endpoints.
    #[must_use]
    pub fn probes(&self) -> Probes {
        Probes { engines: self.controllers.iter().map(|entry| Arc::clone(&entry.engine)).collect() }
    }

    /// Runs until the future resolves, and then to its end.
    ///
    /// # Errors
    ///
    /// Where a controller ends by itself, which ends all others; where leadership is lost; where two have the same name.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<RunReport, RunError> {
        let mut names = BTreeSet::new();
        for Entry { engine, .. } in &self.controllers {
            if !names.insert(&*engine.name) {
                return Err(RunError::SameName { controller: engine.name.to_string() });
            }
        }
        let (tell, told) = watch::channel(false);
        let mut gated = 0_usize;
        let run = |Entry { engine, run }: Entry| {
            let gate = self.gate.clone().filter(|_| !engine.runs_everywhere());
            let is_gated = gate.is_some();
            gated += usize::from(is_gated);
            let running = run(told.clone(), gate);
            async move { (is_gated, running.await) }
        };
        let mut running: FuturesUnordered<_> = self.controllers.into_iter().map(run).collect();
        self.factory.start();

        let mut shutdown = pin!(shutdown);
        let (mut controllers, mut failed, mut is_lost) = (Vec::new(), None, false);
        loop {
            let ending = *tell.borrow();
            if ending && running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                Some((is_gated, ended)) = running.next() => {
                    match ended {
                        Ok(report) => controllers.push(report),
                        Err(error) => {
                            is_lost |= matches!(error, RunError::LeadershipLost { .. });
                            failed.get_or_insert(error);
                            tell.send_replace(true);
                        }
                    }
                    gated -= usize::from(is_gated);
                    if let Some(gate) = self.gate.as_ref().filter(|_| is_lost && gated == 0) {
                        gate.abdicate(TO_ABDICATE);
                    }
                }
                () = &mut shutdown, if !ending => drop(tell.send_replace(true)),
            }
        }
        let factory = self.factory.shutdown_within(self.grace).await;
        match failed {
            Some(error) => Err(error),
            None => {
                controllers.sort_by(|a, b| a.controller.cmp(&b.controller));
                Ok(RunReport { controllers, factory })
            }
        }
    }
}

impl RunReport {
    /// What was still busy, by name: `controller key`, or a handler.
    pub fn busy(&self) -> impl Iterator<Item = String> {
        let keys = |report: &Report| {
            let Report { controller, busy, .. } = report.clone();
            busy.into_iter().map(move |request| format!("{controller} {request}"))
        };
        self.controllers.iter().flat_map(keys).chain(self.factory.busy.iter().cloned())
    }
}

impl Probes {
    /// Whether it does its work, or could at once: every controller has read what it needs. Standby is ready. Caches that
    /// may be old are named, but are no reason to be taken out of service: no other process would be better off.
    #[must_use]
    pub fn readiness(&self) -> Probe {
        let mut probe = Probe { ok: true, reasons: Vec::new() };
        for engine in &*self.engines {
            let phase = engine.phase();
            let ready = matches!(phase, Phase::Standby | Phase::Working);
            probe.ok &= ready;
            let reasons = match phase {
                Phase::Idle => vec!["not started".to_owned()],
                Phase::Syncing => engine.missing(),
                Phase::Standby => vec!["on standby: another one leads".to_owned()],
                Phase::Working => Vec::new(),
                Phase::Stopping => vec!["stopping".to_owned()],
                Phase::Ended => vec!["stopped".to_owned()],
            };
            let stale = if ready { engine.stale() } else { Vec::new() };
            probe.say(engine, reasons.into_iter().chain(stale));
        }
        probe
    }

    /// Whether it can go on: nothing is stuck that only a restart would help. That the server cannot be reached is no
    /// reason.
    #[must_use]
    pub fn liveness(&self) -> Probe {
        let mut probe = Probe { ok: true, reasons: Vec::new() };
        for engine in &*self.engines {
            let mut broken = engine.broken();
            if engine.phase() == Phase::Ended {
                broken.push("stopped".to_owned());
            }
            probe.ok &= broken.is_empty();
            probe.say(engine, broken);
        }
        probe
    }
}

impl Probe {
    fn say(&mut self, engine: &Engine, reasons: impl IntoIterator<Item = String>) {
        self.reasons.extend(reasons.into_iter().map(|reason| format!("{}: {reason}", engine.name)));
    }
}

/// `ok`, or why not; one line each.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.ok { "ok" } else { "not ok" })?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\n{reason}"))
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.controllers.iter().map(|entry| &entry.engine.name).collect();
        f.debug_struct("Runner").field("controllers", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probes").field("readiness", &self.readiness()).finish_non_exhaustive()
    }
}
