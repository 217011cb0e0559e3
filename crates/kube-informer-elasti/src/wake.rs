//! The resolver's call: somebody asks for a service that sleeps.
//!
//! `POST /informer/incoming-request` with `{"count": 1, "svc": "web", "namespace": "shop"}`. Every answer is JSON,
//! `{"message": "…"}`:
//!
//! | | |
//! |---|---|
//! | 200 | the service's target is to have as many replicas as it is woken to, or more |
//! | 400 | the body cannot be read, or lacks what is needed |
//! | 404 | no ElastiService is about that service |
//! | 405 | another method |
//! | 408, 413 | the body did not come in time, or is larger than 64 KiB |
//! | 503 | scaling failed, or this process has not read the cluster yet, or too many services are being woken; with `Retry-After` |
//!
//! Promised:
//!
//! 1. **200 means that it was scaled.** Where it was not, the resolver is told, and asks again.
//! 2. **Many calls for one service are one scaling.** Who calls while a service is being woken gets the answer of that.
//! 3. **Any process answers,** whether it leads or not: the Service in front of them picks one, waking changes nothing but
//!    the number of replicas, upwards, and doing it twice is doing it once.
//! 4. A caller that goes away does not stop what others wait for. Nothing takes longer than [`Limits::deadline`].
//! 5. Everything is bounded: bodies, calls, services that are being woken.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};

mod routes;
#[cfg(test)]
mod tests;

pub(crate) use routes::router;

use crate::metrics::Metrics;

/// Wakes services. The operator does; tests have others.
pub trait Wake: Send + Sync + 'static {
    /// Whether enough is known to say that a service is unknown.
    fn is_ready(&self) -> bool;

    /// Wakes the target of a service.
    fn wake(&self, namespace: String, service: String) -> BoxFuture<'static, Result<String, NotWoken>>;
}

/// Why a service was not woken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotWoken {
    /// Nothing is known of it.
    #[error("no ElastiService is about this service")]
    Unknown,
    /// It could not be scaled.
    #[error("{0}")]
    Failed(String),
}

/// How much is done at a time, and for how long.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// How many services may be waiting to be woken; beyond, callers are told to come again.
    pub waiting: usize,
    /// How many of them are being woken at the same time.
    pub at_once: usize,
    /// How long one may take, its wait included.
    pub deadline: Duration,
}

/// Wakes services, each once at a time. A clone is the same.
#[derive(Clone)]
pub(crate) struct Wakes {
    inner: Arc<Inner>,
}

struct Inner {
    wake: Arc<dyn Wake>,
    limits: Limits,
    metrics: Metrics,
    turns: Semaphore,
    flights: Mutex<Flights>,
}

#[derive(Default)]
struct Flights {
    /// What is being woken.
    all: HashMap<Service, Flight>,
    /// Nothing is woken any more.
    is_over: bool,
    /// A number for each, so that nobody ends another's.
    last: u64,
}

struct Flight {
    number: u64,
    outcome: watch::Receiver<Option<Outcome>>,
    abort: tokio::task::AbortHandle,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Service {
    namespace: String,
    name: String,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Woken(String),
    Unknown,
    Failed(String),
    /// It took too long.
    Late,
    /// There are too many others, or it is not known yet what there is, or it is over.
    Busy(&'static str),
}

/// Takes a flight off when its task ends, however that is.
struct Landing {
    wakes: Wakes,
    service: Service,
    number: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting: 1024, at_once: 32, deadline: Duration::from_secs(20) }
    }
}

impl Wakes {
    pub(crate) fn new(wake: Arc<dyn Wake>, limits: Limits, metrics: &Metrics) -> Self {
        let inner = Inner {
            wake,
            limits,
            metrics: metrics.clone(),
            turns: Semaphore::new(limits.at_once.max(1)),
            flights: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Wakes a service, or waits for who does already.
    pub(crate) async fn wake(&self, namespace: String, name: String) -> Outcome {
        let outcome = self.outcome(Service { namespace, name }).await;
        self.inner.metrics.woken(&outcome);
        outcome
    }

    async fn outcome(&self, service: Service) -> Outcome {
        if !self.inner.wake.is_ready() {
            return Outcome::Busy("the cluster has not been read yet");
        }
        let mut flight = match self.join(service) {
            Ok(flight) => flight,
            Err(busy) => return busy,
        };
        match flight.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Outcome::Late),
            Err(_) => Outcome::Failed("it was given up".to_owned()),
        }
    }

    /// The flight of a service; a new one, where there is none.
    fn join(&self, service: Service) -> Result<watch::Receiver<Option<Outcome>>, Outcome> {
        let mut flights = self.lock();
        if flights.is_over {
            return Err(Outcome::Busy("the operator ends"));
        }
        if let Some(flight) = flights.all.get(&service) {
            self.inner.metrics.wake_joined();
            return Ok(flight.outcome.clone());
        }
        if flights.all.len() >= self.inner.limits.waiting {
            return Err(Outcome::Busy("too many services are being woken"));
        }
        flights.last += 1;
        let number = flights.last;
        let (told, outcome) = watch::channel(None);
        let landing = Landing { wakes: self.clone(), service: service.clone(), number };
        let task = tokio::spawn(async move {
            let outcome = landing.fly().await;
            // Whoever comes from now on begins anew.
            drop(landing);
            told.send_replace(Some(outcome));
        });
        let flight = Flight { number, outcome: outcome.clone(), abort: task.abort_handle() };
        flights.all.insert(service, flight);
        Ok(outcome)
    }

    /// Wakes nothing any more: what is busy has so long.
    pub(crate) async fn shutdown(&self, deadline: Duration) {
        let flights: Vec<_> = {
            let mut flights = self.lock();
            flights.is_over = true;
            flights.all.values().map(|flight| (flight.outcome.clone(), flight.abort.clone())).collect()
        };
        let until = tokio::time::Instant::now() + deadline;
        for (mut outcome, abort) in flights {
            if tokio::time::timeout_at(until, outcome.wait_for(Option::is_some)).await.is_err() {
                abort.abort();
            }
            // Its sender goes with its task.
            while outcome.changed().await.is_ok() {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Flights> {
        self.inner.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Landing {
    async fn fly(&self) -> Outcome {
        let inner = &self.wakes.inner;
        let Service { namespace, name } = self.service.clone();
        let turn = async {
            // Never closed.
            let _turn = inner.turns.acquire().await;
            inner.wake.wake(namespace, name).await
        };
        let outcome = match tokio::time::timeout(inner.limits.deadline, turn).await {
            Ok(Ok(done)) => Outcome::Woken(done),
            Ok(Err(NotWoken::Unknown)) => Outcome::Unknown,
            Ok(Err(NotWoken::Failed(why))) => Outcome::Failed(why),
            Err(_) => Outcome::Late,
        };
        let Service { namespace, name } = &self.service;
        match &outcome {
            Outcome::Woken(done) => tracing::info!(namespace, service = name, done, "woken"),
            Outcome::Failed(why) => tracing::warn!(namespace, service = name, why, "not woken"),
            outcome => tracing::debug!(namespace, service = name, ?outcome, "not woken"),
        }
        outcome
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut flights = self.wakes.lock();
        if flights.all.get(&self.service).is_some_and(|flight| flight.number == self.number) {
            flights.all.remove(&self.service);
        }
    }
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").field("waiting", &self.lock().all.len()).finish_non_exhaustive()
    }
}

/// Whether it can be the name of a namespace or a Service.
pub(crate) fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}
