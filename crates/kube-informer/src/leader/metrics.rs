//! What is counted of elections, for Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::handle::View;

/// The metrics of all elections that were given it ([`LeaderElection::metrics`](super::LeaderElection::metrics)), under
/// client-go's names. A clone is the same.
///
/// | metric, with the label `name` | |
/// |---|---|
/// | `leader_election_master_status` | 1 while this process leads, by the clock, else 0 |
/// | `leader_election_slowpath_total` | renewals that did not succeed at once, so that the lease had to be read again |
///
/// `name` is that of the lease. It is there as long as the candidacy is.
#[derive(Clone, Default)]
pub struct Metrics {
    named: Arc<Mutex<BTreeMap<String, Vec<Weak<Series>>>>>,
}

#[derive(Default)]
struct Series {
    slow: AtomicU64,
    view: Mutex<Option<watch::Receiver<View>>>,
}

/// Where one election counts.
#[derive(Clone, Default)]
pub(super) struct Counted(Arc<Series>);

impl Counted {
    pub(super) fn observe(&self, view: watch::Receiver<View>) {
        *locked(&self.0.view) = Some(view);
    }

    pub(super) fn slow_path(&self) {
        self.0.slow.fetch_add(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Puts them into a registry. Once: a second time, everything would be there twice.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    pub(super) fn series(&self, name: &str) -> Counted {
        let mut named = locked(&self.named);
        named.retain(|_, all| {
            all.retain(|series| series.strong_count() > 0);
            !all.is_empty()
        });
        let counted = Counted::default();
        named.entry(name.to_owned()).or_default().push(Arc::downgrade(&counted.0));
        counted
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Leases of one name, in several namespaces, are counted together.
        let mut all = Vec::new();
        for (name, series) in &*locked(&self.named) {
            let series: Vec<Arc<Series>> = series.iter().filter_map(Weak::upgrade).collect();
            if series.is_empty() {
                continue;
            }
            let leads = |series: &Arc<Series>| {
                locked(&series.view).as_ref().is_some_and(|view| view.borrow().leads())
            };
            let slow: u64 = series.iter().map(|series| series.slow.load(Ordering::Relaxed)).sum();
            all.push((name.clone(), u64::from(series.iter().any(leads)), slow));
        }
        if all.is_empty() {
            return Ok(());
        }
        let help = "1 while this process leads, else 0";
        let mut family =
            encoder.encode_descriptor("leader_election_master_status", help, None, MetricType::Gauge)?;
        for (name, leads, _) in &all {
            family.encode_family(&[("name", name.as_str())])?.encode_gauge(leads)?;
        }
        let help = "Renewals that did not succeed at once";
        // The encoder adds `_total`.
        let mut family =
            encoder.encode_descriptor("leader_election_slowpath", help, None, MetricType::Counter)?;
        for (name, _, slow) in &all {
            let labels = [("name", name.as_str())];
            family.encode_family(&labels)?.encode_counter::<Vec<(String, String)>, _, u64>(slow, None)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("leases", &locked(&self.named).keys()).finish()
    }
}

/// Nothing that runs under these locks leaves half a change behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
