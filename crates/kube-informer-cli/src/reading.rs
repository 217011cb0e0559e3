//! Informers for what somebody asks for, and the wait until they know it.
//!
//! - What can never be is told at once: a resource that may not be read, a selector that the server does not take.
//! - All else is waited for: by those who read once, no longer than an answer may take; by those who watch, for ever, and
//!   they are told why it takes so long.

pub(crate) mod served;

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use kube_informer::encoding::ManagedFields;
use kube_informer::informer::{Cause, Health, Informer, Scope, State, Why};
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use kube_informer_apiserver::print::Printer;

use crate::cluster::Cluster;
use crate::progress::Progress;
use crate::show;
use crate::target::Target;
use crate::usage::Usage;

/// One target, and who knows about it.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) target: Target,
    /// One for all objects, or one for each that is named.
    pub(crate) informers: Vec<Informer>,
    /// Whether objects are told apart by their namespaces, too.
    pub(crate) shows_namespaces: bool,
}

/// How much of the objects is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What they are called.
    Names,
    Everything(ManagedFields),
}

/// How often it is looked after how it goes.
const TICK: Duration = Duration::from_millis(100);

impl Reading {
    /// Begins to read.
    pub(crate) fn begin(cluster: &Cluster, targets: Vec<Target>, depth: Depth) -> Result<Vec<Self>, Usage> {
        let mut readings = Vec::new();
        for target in targets {
            let mut informers = Vec::new();
            for scope in cluster.scopes(&target)? {
                let builder = cluster.informer(&target.resource, scope)?;
                let builder = match depth {
                    Depth::Names => builder.metadata_only(),
                    Depth::Everything(fields) => builder.managed_fields(fields),
                };
                informers.push(builder.informer());
            }
            let shows_namespaces = cluster.shows_namespaces(&target.resource);
            readings.push(Self { target, informers, shows_namespaces });
        }
        cluster.factory.start();
        Ok(readings)
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.target.resource
    }

    /// What there is, in the order in which the server lists it; what is named in the order in which it was. `missing`
    /// gets what is named and not there.
    pub(crate) fn objects(&self, missing: &mut Vec<String>) -> Vec<Object> {
        let mut objects = Vec::new();
        for informer in &self.informers {
            if let Scope::Object { namespace, name } = informer.scope() {
                match informer.get(namespace, name) {
                    Some(object) => objects.push(object),
                    None => missing.push(not_found(self.resource(), namespace, name)),
                }
            } else {
                objects.extend(informer.list().iter());
            }
        }
        if self.target.names.is_empty() {
            objects.sort_by(in_order);
        }
        objects
    }

    /// How its objects are shown in a table; or why that is not known.
    pub(crate) async fn printer(&self, cluster: &Cluster) -> Result<Printer, NoColumns> {
        let Resource { group, version, plural, .. } = self.resource();
        if let Some(printer) = Printer::built_in(group, version, plural) {
            return Ok(printer);
        }
        let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
        let why = match http::Request::get(definition).body(Vec::new()) {
            Ok(request) => {
                let client = cluster.factory.client();
                let answer = client.request::<serde_json::Value>(request);
                match tokio::time::timeout(cluster.patience, answer).await {
                    Ok(Ok(definition)) => match Printer::custom(&definition, version) {
                        Some(printer) => return Ok(printer),
                        None => "its definition has no such version".to_owned(),
                    },
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "the server does not answer".to_owned(),
                }
            }
            Err(error) => error.to_string(),
        };
        Err(NoColumns { resource: self.resource().to_string(), why })
    }
}

/// The columns of a kind are not known: its CustomResourceDefinition cannot be read.
#[derive(Debug)]
pub(crate) struct NoColumns {
    resource: String,
    why: String,
}

impl NoColumns {
    /// What is to be said where names and ages are shown instead.
    pub(crate) fn note(&self) -> String {
        format!(
            "note: {} are shown by name and age: their columns are in the CustomResourceDefinition, which cannot be read ({})",
            self.resource, self.why
        )
    }
}

/// `pods "web" not found in shop`.
pub(crate) fn not_found(resource: &Resource, namespace: &str, name: &str) -> String {
    let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    let plural = &resource.plural;
    match resource.group.as_str() {
        "" => format!("{plural} {name:?} not found{place}"),
        group => format!("{plural}.{group} {name:?} not found{place}"),
    }
}

/// Servers list by a key of namespace, slash and name: `a-b/x` comes before `a/x`.
pub(crate) fn in_order(a: &Object, b: &Object) -> Ordering {
    by_key((a.namespace(), a.name()), (b.namespace(), b.name()))
}

fn by_key<'k>(a: (&'k str, &'k str), b: (&'k str, &'k str)) -> Ordering {
    let key = |(namespace, name): (&'k str, &'k str)| namespace.bytes().chain([b'/']).chain(name.bytes());
    key(a).cmp(key(b))
}

/// Waits until everything is known.
///
/// # Errors
///
/// Where that can never be; or nothing comes for longer than the deadline, or what comes is the beginning, again and again.
pub(crate) async fn synced(
    readings: &[Reading],
    deadline: Option<Duration>,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut patience = Patience { deadline, heard: Instant::now(), received: 0 };
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let informers: Vec<&Informer> = readings.iter().flat_map(|reading| &reading.informers).collect();
    for informer in &informers {
        let mut synced = std::pin::pin!(informer.synced(Duration::MAX));
        loop {
            tokio::select! {
                biased;
                result = &mut synced => {
                    if result.is_err() {
                        fail_if_hopeless(informer, &informer.health())?;
                        anyhow::bail!("{} cannot be read: they are not watched any more", informer.resource());
                    }
                    break;
                }
                _ = tick.tick() => {}
            }
            for informer in &informers {
                fail_if_hopeless(informer, &informer.health())?;
            }
            let received = informers.iter().map(|informer| informer.stats().received_bytes).sum();
            let again = informers.iter().map(|informer| begun_again(informer)).max().unwrap_or(0);
            if let Some(waited) = patience.is_over(Instant::now(), received, again) {
                let is_stale = |one: &&&Informer| matches!(one.health().state, State::Stale { .. });
                let unread = informers.iter().filter(|informer| !informer.is_synced());
                return Err(too_late(unread.clone().find(is_stale).unwrap_or(informer), waited));
            }
            progress.show(informers.iter().copied()).await;
        }
    }
    progress.clear().await;
    Ok(())
}

/// How long it is waited for what does not come.
struct Patience {
    deadline: Option<Duration>,
    /// When something came last that counts.
    heard: Instant,
    /// The bytes that have come.
    received: u64,
}

/// A list that was begun so often again that it will hardly come to its end.
const BEGINNINGS: u64 = 5;

impl Patience {
    /// Whether it is over, and after how long. A large list takes its time: only a server that sends nothing is waited for in
    /// vain. So is one that sends the beginning, or why there is none, for ever: what comes then counts no more.
    fn is_over(&mut self, now: Instant, received: u64, again: u64) -> Option<Duration> {
        if received > self.received && again <= BEGINNINGS {
            self.heard = now;
        }
        self.received = received;
        self.deadline.filter(|deadline| now.duration_since(self.heard) >= *deadline)
    }
}

/// How often an informer has begun to read everything after the first time; of several namespaces, on average.
fn begun_again(informer: &Informer) -> u64 {
    if informer.is_synced() {
        return 0;
    }
    let health = informer.health();
    let all: u64 = health.relists.by_reason().iter().map(|(_, count)| count).sum();
    let scopes = u64::try_from(health.scopes.len()).unwrap_or(u64::MAX).max(1);
    (all - health.relists.first.min(all)) / scopes
}

fn too_late(informer: &Informer, waited: Duration) -> anyhow::Error {
    let resource = informer.resource();
    match informer.health().state {
        State::Stale { why, .. } => anyhow::anyhow!(
            "{resource} cannot be read: {}; it was tried for {waited:?} after that, which --request-timeout can make longer",
            reason(&why)
        ),
        _ => anyhow::anyhow!(
            "{resource} cannot be read: the server has sent nothing for {waited:?}; give a longer --request-timeout"
        ),
    }
}

/// What went wrong, and what to do.
pub(crate) fn reason(why: &Why) -> String {
    why.explained()
}

/// Whether nothing comes of asking again.
fn fail_if_hopeless(informer: &Informer, health: &Health) -> anyhow::Result<()> {
    if informer.is_synced() {
        return Ok(());
    }
    for (_, state) in &health.scopes {
        if let State::Stale { why, .. } = state
            && is_hopeless(why.cause)
        {
            anyhow::bail!("{} cannot be read: {}", informer.resource(), reason(why));
        }
    }
    Ok(())
}

/// Waits until an informer is not allowed to read, in one of its namespaces: why, and what to do.
pub(crate) async fn not_allowed<T>(informer: &Informer<T>) -> anyhow::Error {
    let why = stale(informer, |cause| matches!(cause, Cause::Unauthorized | Cause::Forbidden)).await;
    anyhow::anyhow!("{} cannot be read: {}", informer.resource(), reason(&why))
}

/// Waits until an informer cannot read for another reason, which may pass: which one it is.
pub(crate) async fn held_up<T>(informer: &Informer<T>) -> String {
    let is_other = |cause| !matches!(cause, Cause::Unauthorized | Cause::Forbidden | Cause::Relisting);
    reason(&stale(informer, is_other).await)
}

/// Waits until one of the namespaces of an informer is stale for such a reason.
async fn stale<T>(informer: &Informer<T>, is_such: impl Fn(Cause) -> bool) -> Why {
    let mut health = std::pin::pin!(informer.health_changes());
    while let Some(now) = health.next().await {
        // The whole is only as one of them.
        for (_, state) in now.scopes {
            if let State::Stale { why, .. } = state
                && is_such(why.cause)
            {
                return why;
            }
        }
    }
    std::future::pending().await
}

/// Whether waiting does not help: what is wrong at the beginning ends a command then.
pub(crate) fn is_hopeless(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Unauthorized
            | Cause::Forbidden
            | Cause::NotServed
            | Cause::Rejected
            | Cause::NotAnApi
            | Cause::Misconfigured
            | Cause::Broken
    )
}

/// What stands before names where there are objects of several kinds: `pod/`.
pub(crate) fn prefixes(readings: &[Reading]) -> Vec<String> {
    let several = readings.len() > 1;
    let prefix = |reading: &Reading| {
        if several { format!("{}/", show::kind(reading.resource())) } else { String::new() }
    };
    readings.iter().map(prefix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_its_time_unless_it_is_begun_again_for_ever() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let new = || Patience { deadline: Some(second * 30), heard: begin, received: 0 };
        // Each half of the deadline, some more: for hours, also after some beginnings.
        let mut slow = new();
        assert!((1..500).all(|n| slow.is_over(begin + second * 15 * n, u64::from(n), BEGINNINGS).is_none()));
        let mut silent = new();
        assert_eq!(silent.is_over(begin + second * 29, 0, 0), None);
        assert_eq!(silent.is_over(begin + second * 30, 0, 0), Some(second * 30));
        let mut broken = new();
        let over = (1..100)
            .find(|n| broken.is_over(begin + second * 15 * *n, u64::from(*n), u64::from(*n)).is_some());
        assert_eq!(over, Some(7), "two turns after the fifth beginning");
        let mut endless = Patience { deadline: None, ..new() };
        assert_eq!(endless.is_over(begin + second * 86_400, 0, 100), None);
    }

    #[test]
    fn objects_are_in_the_order_of_the_servers_keys() {
        let mut keys = vec![("a", "b"), ("a-b", "a"), ("a", "a"), ("b", "a"), ("a.b", "z")];
        keys.sort_by(|a, b| by_key(*a, *b));
        assert_eq!(keys, [("a-b", "a"), ("a.b", "z"), ("a", "a"), ("a", "b"), ("b", "a")]);
    }
}
