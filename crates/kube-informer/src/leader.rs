//! One of several processes leads: leader election over a `Lease`, as client-go's, with which it can share one.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use kube_informer::leader::LeaderElection;
//!
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let leadership = LeaderElection::new(client, "default", "my-controller").start()?;
//! leadership.acquired().await;
//! // Ends with the work, or when leadership is lost: then nothing more of it runs.
//! let _ = leadership.guard(async { /* the work */ }).await;
//! leadership.shutdown(Duration::from_secs(5)).await; // gives the lease back: another one need not wait for its end
//! # Ok(())
//! # }
//! ```
//!
//! Promised:
//!
//! 1. **Never two leaders.** A leader leads until the *renew deadline* (10 s) after it **sent** its last successful write.
//!    Others wait for the *lease duration* (15 s), which the record names, after they **saw** that write, which is later.
//!    Both are measured on the monotonic clock of who measures; wall clocks are written into the lease for people, and
//!    never read. What is left between them (5 s) is for work that must come to an end.
//! 2. **Whoever asks is told the truth of that moment.** [`is_leader`](Leadership::is_leader) looks at the clock itself: a
//!    process that was stopped (SIGSTOP, a debugger, a full machine) and goes on after its time knows so at the first
//!    question, before any task has had its turn. [`guard`](Leadership::guard) asks before each step of a future.
//! 3. A write is made only to the version that was read. Where another one was faster (409), it is read again. A write whose
//!    answer was lost counts for nothing here, though it may count for others.
//! 4. A lease that cannot be read or written (403, 5xx, silence) is tried again: by a leader every *retry period* (2 s), by
//!    others more and more seldom, up to the lease duration. It is logged when that begins, changes and ends. Each request
//!    has half of the renew deadline, and never more than what is left to a leader.
//! 5. Who has lost stands for election again, for as long as somebody holds the [`Leadership`].
//! 6. On [`shutdown`](Leadership::shutdown) the lease is given back (unless [told otherwise](LeaderElection::release)), and
//!    only after `is_leader` says no. Where all handles are dropped, it is not: who still works then is unknown. It lapses.
//! 7. A lease is written as client-go writes it (`acquireTime`, `renewTime`, `leaseTransitions`); labels, annotations, and
//!    fields that are unknown here stay. The verbs `get`, `create` and `update` are all that it needs.
//!
//! More careful than client-go: a lease that was deleted is not free sooner than it would have been for who saw it, and a
//! lease in the name of one's own identity counts as one's own only if this process has taken it: a process that starts
//! again under a fixed identity waits, and two processes of one identity do not lead at once.
//!
//! Not promised: that a request which was sent while leading arrives while leading. There is no fencing; what must not be
//! overtaken needs the resource version of what it changes. And no clock here goes on while a whole machine is suspended.

use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;

// What is written down, and what follows from it.
mod machine;
mod record;
mod settings;

// Who asks the server.
mod store;
mod task;

// What others see.
mod handle;
mod metrics;

#[cfg(test)]
pub(crate) use handle::leads_until;
pub use handle::{Ended, Leadership, Lost};
pub use metrics::Metrics;
pub use settings::SettingsError;

use machine::Machine;
use settings::Settings;
use store::Store;

/// A candidate, to be set up and [started](Self::start). See the [module](self).
#[must_use]
pub struct LeaderElection {
    client: Client,
    namespace: String,
    name: String,
    settings: Settings,
    metrics: Option<Metrics>,
}

impl LeaderElection {
    /// A candidate for the lease of that name. The client should be one of its own, without retries: with HTTP/1.1 a
    /// request may wait for others of the same client, and a retry below takes time that is counted here.
    pub fn new(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let settings = Settings::default();
        Self { client, namespace: namespace.into(), name: name.into(), settings, metrics: None }
    }

    /// What it is called in the lease; host name and something random unless told otherwise.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.settings.identity = identity.into();
        self
    }

    /// How long others wait after the last renewal that they saw; 15 s unless told otherwise. Written in whole seconds,
    /// rounded up.
    pub fn lease(mut self, duration: Duration) -> Self {
        self.settings.lease = duration;
        self
    }

    /// How long a leader leads after it sent its last successful renewal; 10 s unless told otherwise. What it is shorter than
    /// the lease is the time that work has to come to an end.
    pub fn renew(mut self, deadline: Duration) -> Self {
        self.settings.renew = deadline;
        self
    }

    /// How often a leader renews, and the least time between two tries of another one; 2 s unless told otherwise.
    pub fn retry(mut self, period: Duration) -> Self {
        self.settings.retry = period;
        self
    }

    /// Whether [`Leadership::shutdown`] gives the lease back, so that another one can lead when it looks the next time (after
    /// 1 to 2.2 retry periods), and need not wait for its end; yes, unless told otherwise. Then work must have ended before.
    pub fn release(mut self, release: bool) -> Self {
        self.settings.release = release;
        self
    }

    /// Where it is counted, under the name of the lease.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Stands for election, in a task of its own that ends with the last handle.
    ///
    /// # Errors
    ///
    /// Where the settings make no sense; it says which, and what they should be.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which a client needs, too.
    pub fn start(self) -> Result<Leadership, SettingsError> {
        settings::check_name("namespace", &self.namespace)?;
        settings::check_name("name", &self.name)?;
        self.settings.check()?;
        let store = Store::new(self.client, &self.namespace, &self.name);
        let identity: Arc<str> = self.settings.identity.as_str().into();
        let counted = self.metrics.map(|metrics| metrics.series(&self.name)).unwrap_or_default();
        let (leadership, board) = handle::pair(identity, &counted);
        let machine = Machine::new(self.settings, store.blank(), counted);
        let span = tracing::error_span!(
            parent: None,
            "leader_election",
            lease = format_args!("{}/{}", self.namespace, self.name)
        );
        task::spawn(machine, store, board, span);
        Ok(leadership)
    }
}

impl std::fmt::Debug for LeaderElection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaderElection")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
