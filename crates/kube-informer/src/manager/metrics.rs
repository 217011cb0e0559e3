//! What managers do, in numbers. What there is, is read when it is asked for: it cannot drift. What was counted of a resource
//! goes with its last watch. Labels are managers, resources and fixed words; never names of objects.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Inner;
use super::error::AddError;
use super::plan::FeedKey;
use crate::informer::State;
use crate::workqueue;

/// The metrics of all managers that were given it ([`Manager::metrics`](super::Manager::metrics)). A clone is the same.
///
/// | metric, with the labels `manager` and `resource` | |
/// |---|---|
/// | `kube_informer_manager_watches` | watches that there are |
/// | `kube_informer_manager_informers` | informers that they are seen through, by `state` and by what they are `of`: an `object` or the `whole` namespace. Each is one connection |
/// | `kube_informer_manager_restarts_total` | informers that were begun anew |
/// | `kube_informer_manager_handler_calls_total` | calls of handlers, by `result`: `success`, `error`, `panic`, `timeout` |
///
/// | metric, with the label `manager` | |
/// |---|---|
/// | `kube_informer_manager_adds_total` | watches that were begun, by `result`: `success`, or why not; what is added once more is not counted |
/// | `kube_informer_manager_set_aside` | calls of handlers that take longer than a moment |
///
/// Those of the queue of calls are in [`workqueue::Metrics`]; their `name` is the manager's.
#[derive(Clone, Default)]
pub struct Metrics {
    queues: workqueue::Metrics,
    /// Whether the queues are somebody else's to register.
    shared: bool,
    managers: Arc<Mutex<Vec<Weak<Inner>>>>,
}

impl Metrics {
    /// With queues that are counted beside those of others, such as
    /// [controllers](crate::controller::Metrics::queues), which register them: each metric is in a registry once.
    ///
    /// ```
    /// use kube_informer::{controller, manager};
    /// use prometheus_client::registry::Registry;
    ///
    /// let mut registry = Registry::default();
    /// let controllers = controller::Metrics::default();
    /// let managers = manager::Metrics::sharing(controllers.queues());
    /// controllers.register(&mut registry);
    /// managers.register(&mut registry);
    /// ```
    #[must_use]
    pub fn sharing(queues: &workqueue::Metrics) -> Self {
        Self { queues: queues.clone(), shared: true, managers: Arc::default() }
    }

    /// Puts them into a registry; the queues, too, unless they are [shared](Self::sharing). Once: a second time, everything
    /// would be there twice.
    pub fn register(&self, registry: &mut Registry) {
        if !self.shared {
            self.queues.register(registry);
        }
        registry.register_collector(Box::new(self.clone()));
    }

    /// Where its queues are counted, for [others](crate::controller::Metrics::sharing) that have queues, too.
    #[must_use]
    pub fn queues(&self) -> &workqueue::Metrics {
        &self.queues
    }

    pub(super) fn add(&self, manager: &Arc<Inner>) {
        let mut managers = locked(&self.managers);
        managers.retain(|each| each.strong_count() > 0);
        if !managers.iter().any(|each| std::ptr::eq(each.as_ptr(), Arc::as_ptr(manager))) {
            managers.push(Arc::downgrade(manager));
        }
    }
}

/// What is counted of one resource.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) restarts: Counter,
    pub(super) handled: Counter,
    pub(super) errors: Counter,
    pub(super) panics: Counter,
    pub(super) timeouts: Counter,
}

/// What a manager has done since it was made. Unlike its metrics, nothing of it goes with the watches that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagerStats {
    /// Watches that were begun, by result: `success`, or why not in one word. What is added once more is not counted.
    pub adds: BTreeMap<&'static str, u64>,
    /// Informers that were begun anew.
    pub restarts: u64,
    /// Calls of handlers, by result: `success`, `error`, `panic`, `timeout`. What did not happen is not there.
    pub calls: BTreeMap<&'static str, u64>,
}

impl Series {
    /// Calls of handlers, by result.
    fn calls(&self) -> [(&'static str, &Counter); 4] {
        let Self { handled, errors, panics, timeouts, .. } = self;
        [("success", handled), ("error", errors), ("panic", panics), ("timeout", timeouts)]
    }
}

/// How asking for watches ended.
#[derive(Debug, Default)]
pub(super) struct Adds(Mutex<BTreeMap<&'static str, Counter>>);

impl Adds {
    pub(super) fn count(&self, failed: Option<&AddError>) {
        let result = failed.map_or("success", AddError::as_str);
        locked(&self.0).entry(result).or_default().inc();
    }
}

/// One manager, read.
struct Reading {
    name: String,
    adds: Vec<(&'static str, Counter)>,
    set_aside: usize,
    resources: BTreeMap<String, Resource>,
}

struct Resource {
    watches: usize,
    /// By what they are of, and how they are.
    informers: BTreeMap<(&'static str, &'static str), usize>,
    series: Arc<Series>,
}

impl Inner {
    pub(super) fn stats(&self) -> ManagerStats {
        let adds = locked(&self.adds.0).iter().map(|(result, counter)| (*result, counter.get())).collect();
        let calls = self.total.calls().map(|(result, counter)| (result, counter.get()));
        ManagerStats {
            adds,
            restarts: self.total.restarts.get(),
            calls: calls.into_iter().filter(|(_, count)| *count > 0).collect(),
        }
    }

    fn reading(&self) -> Reading {
        let state = self.lock();
        let mut resources: BTreeMap<String, Resource> = state
            .series
            .iter()
            .map(|(name, (series, watches))| {
                let (series, informers) = (Arc::clone(series), BTreeMap::new());
                (name.clone(), Resource { watches: *watches, informers, series })
            })
            .collect();
        for (key, group) in &state.groups {
            let Some(resource) = resources.get_mut(&key.resource.to_string()) else { continue };
            for feed in group.feeds.values() {
                let state = feed.informer().map_or(State::Starting, |informer| informer.health().state);
                let of = match feed.key {
                    FeedKey::One(_) => "object",
                    FeedKey::Whole => "whole",
                };
                *resource.informers.entry((of, state.as_str())).or_default() += 1;
            }
        }
        drop(state);
        let adds = locked(&self.adds.0).iter().map(|(result, counter)| (*result, counter.clone())).collect();
        Reading { name: self.name().to_string(), adds, set_aside: self.set_aside_count(), resources }
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let managers: Vec<Arc<Inner>> = locked(&self.managers).iter().filter_map(Weak::upgrade).collect();
        let mut readings: Vec<Reading> = managers.iter().map(|manager| manager.reading()).collect();
        drop(managers);
        // Of several of one name, each has series of its own.
        let mut names = HashMap::new();
        for reading in &mut readings {
            let count: &mut usize = names.entry(reading.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                reading.name = format!("{}-{count}", reading.name);
            }
        }
        let readings = readings;
        if readings.is_empty() {
            return Ok(());
        }
        type Values = Vec<(Vec<(&'static str, &'static str)>, Box<dyn EncodeMetric>)>;
        let mut family = |name: &str, help: &str, kind, values: &dyn Fn(&Resource) -> Values| {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for reading in &readings {
                for (resource, numbers) in &reading.resources {
                    for (more, value) in values(numbers) {
                        let mut labels = vec![("manager", reading.name.as_str()), ("resource", resource)];
                        labels.extend(more);
                        value.encode(family.encode_family(&labels)?)?;
                    }
                }
            }
            Ok(())
        };
        // The encoder adds `_total` to the names of counters.
        family("kube_informer_manager_watches", "Watches that there are", MetricType::Gauge, &|resource| {
            vec![(Vec::new(), gauge(resource.watches))]
        })?;
        family(
            "kube_informer_manager_informers",
            "Their informers, by what they are of and by state",
            MetricType::Gauge,
            &|resource| {
                let by = |((of, state), count): (&(&'static str, &'static str), &usize)| {
                    (vec![("of", *of), ("state", *state)], gauge(*count))
                };
                resource.informers.iter().map(by).collect()
            },
        )?;
        family(
            "kube_informer_manager_restarts",
            "Informers that were begun anew",
            MetricType::Counter,
            &|resource| vec![(Vec::new(), Box::new(resource.series.restarts.clone()))],
        )?;
        family(
            "kube_informer_manager_handler_calls",
            "Calls of handlers, by result",
            MetricType::Counter,
            &|resource| {
                let by = |(result, counter): (&'static str, &Counter)| -> (_, Box<dyn EncodeMetric>) {
                    (vec![("result", result)], Box::new(counter.clone()))
                };
                resource.series.calls().into_iter().map(by).collect()
            },
        )?;
        let mut adds = encoder.encode_descriptor(
            "kube_informer_manager_adds",
            "Watches that were begun, by result",
            None,
            MetricType::Counter,
        )?;
        for reading in &readings {
            for (result, counter) in &reading.adds {
                let labels = [("manager", reading.name.as_str()), ("result", *result)];
                ConstCounter::new(counter.get()).encode(adds.encode_family(&labels)?)?;
            }
        }
        let mut aside = encoder.encode_descriptor(
            "kube_informer_manager_set_aside",
            "Calls of handlers that take longer than a moment",
            None,
            MetricType::Gauge,
        )?;
        for reading in &readings {
            gauge(reading.set_aside).encode(aside.encode_family(&[("manager", reading.name.as_str())])?)?;
        }
        Ok(())
    }
}

fn gauge(value: usize) -> Box<dyn EncodeMetric> {
    Box::new(ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)))
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("managers", &locked(&self.managers).len()).finish_non_exhaustive()
    }
}

/// Nothing that runs under this lock leaves half a change behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
