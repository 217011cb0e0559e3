//! One soak from its beginning to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Config;
use kube_informer::encoding::Encoding;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Informer, Relists, Scope, Written};
use kube_informer::resource::Resource;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::load::Rng;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::audience::Audience;
use crate::compare::Watched;
use crate::faults::{Director, Disaster, INDISPENSABLE, Tally};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::view::{Court, Heard, Rule, Violation};
use crate::world::{Kind, Place, World};
use crate::writers::{self, Writer};

/// Long enough for anything on a busy machine; nothing waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

const WRITERS: u64 = 4;

/// What the informer that selects by color selects.
const SELECTED: &str = "color in (blue,red)";

/// Two runtimes: in the one, where informers run, no task may be left.
pub(crate) struct Soak {
    plan: Plan,
    servers: Runtime,
    informers: Runtime,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) violations: Vec<Violation>,
    heard: Heard,
    relists: Vec<Relists>,
    encodings: Vec<Option<Encoding>>,
    faults: BTreeMap<&'static str, u64>,
    idle_operations: Vec<String>,
}

impl Soak {
    pub(crate) fn new(plan: Plan) -> Self {
        let runtime = || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { plan, servers: runtime(), informers: runtime() }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.servers.block_on(future)
    }

    /// Runs it; everything must hold, and everything must have been tried.
    pub(crate) fn must_hold(self, world: World) {
        let (plan, is_real) = (self.plan, world.server.is_none());
        let found = self.run(world);
        println!("{plan:?}: {found:#?}");
        let violations: Vec<String> = found.violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{plan:?}:\n{}", violations.join("\n"));
        assert_eq!(found.idle_operations, [""; 0], "{plan:?}");
        let Heard { gaps, again, found_missing, .. } = found.heard;
        assert!(gaps > 0 && again > 0 && found_missing > 0, "{plan:?}: {:?}", found.heard);
        let relists = |reason: fn(&Relists) -> u64| found.relists.iter().map(reason).sum::<u64>();
        assert!(relists(|lists| lists.expired) > 0, "{plan:?}: {found:?}");
        assert!(relists(|lists| lists.failure) > 0, "{plan:?}: {found:?}");
        if is_real {
            // Fewer operations, and less time for each of them.
            assert!(found.faults.len() > 8, "{plan:?}: {:?}", found.faults);
        } else {
            let missing: Vec<_> =
                INDISPENSABLE.into_iter().filter(|name| !found.faults.contains_key(name)).collect();
            assert_eq!(missing, [""; 0], "{plan:?}: {:?}", found.faults);
        }
        let some = |encoding| found.encodings.contains(&Some(encoding));
        assert!(some(Encoding::Json) && (some(Encoding::Protobuf) || !is_real), "{plan:?}: {found:?}");
    }

    /// Runs it, and tells what was found.
    pub(crate) fn run(self, world: World) -> Found {
        let progress = Progress::new(self.plan.operations);
        let court = Court::new(progress.clone());
        self.servers.block_on(self.soak(world, &progress, &court)).unwrap()
    }

    async fn soak(&self, world: World, progress: &Progress, court: &Court) -> Result<Found> {
        let seed = self.plan.seed;
        let world = Arc::new(world);
        self.furnish(&world).await?;
        let factory = self.factory(&world).await?;
        let watched = watch(&factory, &world)?;
        let audience = {
            let informers = watched.iter().map(|watched| watched.informer.clone()).collect();
            let rng = Rng::of(seed, "audience", 0);
            Audience::new(informers, self.informers.handle().clone(), rng, progress.clone(), court.clone())
        };
        factory.start();
        factory.synced(SOON).await?;

        let operations = Arc::new(writers::Tally::default());
        let mut writing = JoinSet::new();
        for number in 0..WRITERS {
            let rng = Rng::of(seed, "writer", number);
            let (world, progress, tally) = (Arc::clone(&world), progress.clone(), Arc::clone(&operations));
            writing.spawn(Writer { world, rng, progress, tally }.run());
        }
        let faults = Tally::default();
        let mut troubling = JoinSet::new();
        for (number, target) in watched.iter().flat_map(Watched::targets).enumerate() {
            let rng = Rng::of(seed, "director", number as u64);
            let (world, progress, tally) = (Arc::clone(&world), progress.clone(), faults.clone());
            troubling.spawn(Director { world, target, rng, progress, tally }.run());
        }
        let disaster = {
            let rng = Rng::of(seed, "disaster", 0);
            let (world, progress, tally) = (Arc::clone(&world), progress.clone(), faults.clone());
            tokio::spawn(Disaster { world, rng, progress, tally }.run())
        };
        let audience = tokio::spawn(audience.run());

        let written = all(writing).await;
        progress.finish();
        let troubled = all(troubling).await;
        disaster.await?;
        let audience = audience.await?;
        written?;
        if let Err(error) = troubled {
            court.accuse(Rule::Works, format!("{error:#}"));
        }

        if court.is_quiet() {
            self.last_losses(&world, &watched).await?;
            if let Err(error) = self.catch_up(&world, &watched).await {
                court.accuse(Rule::Works, format!("{error:#}"));
            }
        }
        if court.is_quiet() {
            for watched in &watched {
                for difference in watched.differences(&world).await? {
                    court.accuse(Rule::CacheIsServer, difference);
                }
            }
            audience.settle().await;
        }

        let health = || watched.iter().map(|watched| watched.informer.health());
        let relists = health().map(|health| health.relists).collect();
        let encodings = health().map(|health| health.encoding).collect();
        let busy = factory.shutdown().await.busy;
        let heard = audience.end().await;
        drop((watched, factory));
        if !busy.is_empty() {
            court.accuse(Rule::NothingLeft, format!("busy after the shutdown: {busy:?}"));
        }
        self.nothing_left(&world, court).await;
        let_everything_go(&world).await?;
        if let Some(world) = Arc::into_inner(world) {
            world.close().await?;
        }
        let (violations, faults, idle_operations) = (court.found(), faults.counts(), operations.idle());
        Ok(Found { violations, heard, relists, encodings, faults, idle_operations })
    }

    /// What there is before anybody looks.
    async fn furnish(&self, world: &World) -> Result<()> {
        let mut rng = Rng::of(self.plan.seed, "furniture", 0);
        for _ in 0..100 {
            let place = world.some(&mut rng);
            let manifest = world.manifest(&place, &mut rng);
            // Some are there already.
            world.endpoint.post(&place.collection(), &manifest).await?;
        }
        Ok(())
    }

    /// A factory in the runtime of the informers, impatient enough for a test.
    async fn factory(&self, world: &World) -> Result<Factory> {
        let config = Config::new(world.proxy.url().parse()?);
        let timings = Timings::default()
            .patience(Duration::from_secs(2))
            .watch(Duration::from_secs(2))
            .overdue(Duration::from_secs(1))
            .bookmarks(Duration::from_secs(1))
            .waits(Duration::from_millis(10), Duration::from_millis(200))
            .slow(Duration::from_millis(100));
        let made = self.informers.spawn(async { Factory::from_config(config).await }).await?;
        Ok(made?.timings(timings))
    }

    /// Objects go, and are made anew, while nobody can see it; and the server has forgotten that, too.
    async fn last_losses(&self, world: &World, watched: &[Watched]) -> Result<()> {
        let mut rng = Rng::of(self.plan.seed, "losses", 0);
        world.proxy.heal();
        let_everything_go(world).await?;
        let mut losses = Vec::new();
        for (kind, namespace) in everywhere(world) {
            for name in ["lost", "made-anew"] {
                let place = Place { kind, namespace: namespace.clone(), name: name.to_owned() };
                let mut manifest = world.manifest(&place, &mut rng);
                manifest["metadata"]["labels"]["color"] = "red".into();
                world.endpoint.post(&place.collection(), &manifest).await?.success()?;
                losses.push((place, manifest));
            }
        }
        // Everybody has something to lose.
        self.catch_up(world, watched).await?;
        world.proxy.go_down().await;
        for (place, manifest) in losses {
            world.endpoint.delete(&place.path()).await?.success()?;
            if place.name == "made-anew" {
                world.endpoint.post(&place.collection(), &manifest).await?.success()?;
            }
        }
        if let Some(server) = &world.server {
            server.compact();
        }
        let targets: Vec<_> = watched.iter().flat_map(Watched::targets).collect();
        let relisted = targets.iter().map(|target| target.relist(world));
        let (relisted, ()) =
            tokio::join!(futures_util::future::join_all(relisted), world.proxy.accept_connections());
        relisted.into_iter().collect()
    }

    /// Writes something that everybody sees, and waits until they do. Twice at most.
    async fn catch_up(&self, world: &World, watched: &[Watched]) -> Result<()> {
        for (kind, namespace) in everywhere(world) {
            let place = Place { kind, namespace, name: "marker".to_owned() };
            let mut marker = world.manifest(&place, &mut Rng::of(self.plan.seed, "marker", 0));
            marker["metadata"]["labels"]["color"] = "red".into();
            let answer = world.endpoint.post(&place.collection(), &marker).await?;
            let written: Value = if answer.status == http::StatusCode::CONFLICT {
                let patch = json!({ "metadata": { "labels": { "color": "blue" } } });
                world.endpoint.merge_patch(&place.path(), &patch).await?.success()?.json()?
            } else {
                answer.success()?.json()?
            };
            let version = written["metadata"]["resourceVersion"].as_str().context("no version")?;
            for watched in watched.iter().filter(|watched| watched.sees(&place)) {
                let written = Written::new(watched.informer.resource().clone(), &*place.namespace, version);
                watched.informer.caught_up(&written, SOON).await?;
            }
        }
        Ok(())
    }

    /// No task, no connection, no thread.
    async fn nothing_left(&self, world: &World, court: &Court) {
        let metrics = self.informers.metrics();
        eventually("no task is left", SOON, async || (metrics.num_alive_tasks() == 0).then_some(())).await;
        if !world.proxy.wait_connections(0, SOON).await {
            court.accuse(Rule::NothingLeft, format!("{} connections", world.proxy.connections()));
        }
        eventually("no thread is left", SOON, async || (threads() == 0).then_some(())).await;
    }
}

/// Waits for all; the first error, if there is one.
async fn all(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    let mut outcome = Ok(());
    while let Some(done) = tasks.join_next().await {
        outcome = outcome.and(done?);
    }
    outcome
}

fn everywhere(world: &World) -> Vec<(Kind, String)> {
    let each = |kind| world.namespaces.iter().map(move |namespace| (kind, namespace.clone()));
    Kind::ALL.into_iter().flat_map(each).collect()
}

/// What is held would outlive its namespace.
async fn let_everything_go(world: &World) -> Result<()> {
    for (kind, namespace) in everywhere(world) {
        for object in world.list(&kind.collection(Some(&namespace)), None).await? {
            if object["metadata"]["finalizers"].is_array() {
                let name =
                    object["metadata"]["name"].as_str().context("an object without a name")?.to_owned();
                writers::let_go(world, &Place { kind, namespace: namespace.clone(), name }.path()).await?;
            }
        }
    }
    Ok(())
}

/// How long changes may wait for others, where they may.
const GATHER: Duration = Duration::from_millis(20);

/// All objects, some namespaces, what a selector selects; changes of some wait for others.
fn watch(factory: &Factory, world: &World) -> Result<Vec<Watched>> {
    let all = world.selector();
    let colored = all.iter().map(String::as_str).chain([SELECTED]).collect::<Vec<_>>().join(",");
    let two = world.namespaces[1..].to_vec();
    let gadgets = || Resource {
        group: "load.kube-informer.dev".to_owned(),
        version: "v1".to_owned(),
        plural: "gadgets".to_owned(),
        kind: "Gadget".to_owned(),
        namespaced: true,
    };
    let scope = |namespaces: &[String]| match namespaces {
        [] => Scope::All,
        some => Scope::namespaces(some),
    };
    let mut watched = Vec::new();
    let wishes: [(Kind, Vec<String>, Option<String>, Duration); 5] = [
        (Kind::ConfigMap, Vec::new(), all.clone(), GATHER),
        (Kind::ConfigMap, Vec::new(), Some(colored.clone()), Duration::ZERO),
        (Kind::Deployment, two, None, GATHER),
        (Kind::Gadget, Vec::new(), all, Duration::ZERO),
        (Kind::Gadget, Vec::new(), Some(colored), GATHER),
    ];
    for (kind, namespaces, selector, gather) in wishes {
        let scope = scope(&namespaces);
        let builder = match kind {
            Kind::ConfigMap => factory.configure::<ConfigMap>(scope).cast(),
            Kind::Deployment => factory.configure::<Deployment>(scope).cast(),
            Kind::Gadget => factory.configure_resource(gadgets(), scope),
        };
        let builder = match &selector {
            Some(selector) => builder.labels(selector)?,
            None => builder,
        };
        let informer: Informer = builder.gather(gather).informer();
        watched.push(Watched { informer, kind, namespaces, selector });
    }
    Ok(watched)
}

impl Watched {
    fn sees(&self, place: &Place) -> bool {
        self.kind == place.kind && (self.namespaces.is_empty() || self.namespaces.contains(&place.namespace))
    }
}

/// The names of threads that call closures, and of those that watch asynchronous handlers.
const NAMES: [&str; 2] = ["informer-calls", "informer-relay"];

/// Threads of handlers. Where they cannot be counted, none are.
fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| NAMES.contains(&name.trim_end())).count()
}
