//! Everything of the demo that runs, from the first address to the last task.
//!
//! One embedded API server with the simulator and its story; over HTTP, as any other client: one factory whose informers are
//! read by the controller of Deployments, by the feed and by the stage; the ElastiService operator with a factory of its own,
//! as in a process of its own; and the play. The end takes them down in order, and leaves no file, no port and no task.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube_informer::connect::Source;
use kube_informer::factory::Factory;
use kube_informer::informer::{Event, Informer, Scope};
use kube_informer_apiserver::Server;
use kube_informer_elasti::run::Running;
use kube_informer_elasti::settings::{Flags, Settings};
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_feed::hub::{Hub, Publisher};
use kube_informer_feed::server::Server as Feed;
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::play::{Api, ELASTI, NAMESPACE, Play, RESOLVER, SERVICE};
use super::resolver::{Before, Resolver};
use super::stage::Stage;
use crate::apiserver::Pace;
use crate::cluster::AGENT;
use crate::naming;
use crate::output::Lines;
use crate::style::Style;
use crate::vitals;

/// What is followed beside Deployments, which the controller tells of.
const FOLLOWED: [&str; 7] = [
    "statefulsets.apps",
    "jobs.batch",
    "pods",
    "services",
    "endpointslices.discovery.k8s.io",
    "configmaps",
    "elastiservices.elasti.truefoundry.com",
];

/// How long the first list may take.
const FIRST_LIST: Duration = Duration::from_secs(30);

/// How long those who are connected, and those who are busy, have at the end.
const GOODBYE: Duration = Duration::from_secs(3);

/// What runs.
pub(super) struct House {
    server: Server,
    kubeconfig: Kubeconfig,
    factory: Factory,
    hub: Hub,
    feed: Feed,
    operator: Running,
    resolver: Resolver,
    controller: DeploymentController,
    publisher: Publisher,
    speed: f64,
}

/// What runs, and is seen.
pub(super) struct Lively {
    server: Server,
    kubeconfig: Kubeconfig,
    factory: Factory,
    feed: Feed,
    /// Dropped, the controller and the operator are to end.
    stop: [oneshot::Sender<()>; 2],
    work: JoinSet<()>,
    /// Those who are not waited for.
    play: JoinSet<()>,
    pub(super) stage: Stage,
}

/// What there was to see, in numbers.
pub(super) struct Numbers {
    /// Objects in the cluster.
    pub(super) objects: usize,
    /// Objects that the informers hold, and what is kept of them, in bytes.
    pub(super) held: (usize, u64),
}

impl House {
    /// Starts everything but the play.
    pub(super) async fn start(pace: &Pace) -> anyhow::Result<Self> {
        let simulation = pace.simulation().with_story(true);
        let server = Server::builder().seed(pace.seed).simulate(simulation).start().await;
        let server = server.context("the embedded API server did not start")?;
        let kubeconfig = Kubeconfig::write(&server)?;
        let source = Source::file(&kubeconfig.0).user_agent(AGENT);
        let factory = Factory::from_source(source.clone()).await.context("cannot connect to it")?;
        Api { factory: factory.clone() }.define().await?;

        let controller = DeploymentController::new(&factory, Scope::All);
        let catalog = factory.catalog().await?;
        let mut hub = Hub::builder(factory.clone()).any_resource(true);
        for name in FOLLOWED {
            hub = hub.known_resource(catalog.resolve(name)?);
        }
        let hub = hub.start().await?;
        let publisher = hub.publisher(controller.informer());
        let controller = controller.begin_with(&publisher);
        let mut registry = Registry::default();
        vitals::register(&mut registry);
        let feed = Feed::builder(hub.clone()).registry(registry).start().await?;

        let operator = Running::start(settings(source)?).await?;
        let resolver = Resolver::listen().await?;
        let speed = pace.speed;
        Ok(Self { server, kubeconfig, factory, hub, feed, operator, resolver, controller, publisher, speed })
    }

    /// What somebody reads first: what this is, what to try, and what the signs mean.
    pub(super) fn intro(&self) -> String {
        let file = naming::quoted(&self.kubeconfig.0);
        format!(
            "Kubernetes API on {} (in memory, nothing to install), with simulated workloads;\n\
             on its informers: a controller of Deployments, the ElastiService operator, and a feed over WebSocket\n\n\
             try, in another terminal:\n  \
             kubectl --kubeconfig {file} get pods -A\n  \
             {} watch deployments -A -o diff --kubeconfig {file}\n  \
             websocat {}\n  \
             curl http://{}/   (wakes {NAMESPACE}/{SERVICE}, when it sleeps)\n\n\
             what the informers see:  = is there  + came  ~ changed, old→new  - went  ▸ what the demo plays\n",
            self.server.url(),
            naming::to_type(),
            self.feed.url(),
            self.resolver.address(),
        )
    }

    /// Lets everything work, and shows it.
    pub(super) fn run(self, lines: Lines, style: Style) -> Lively {
        let Self { server, kubeconfig, factory, hub, feed, operator, resolver, controller, publisher, speed } =
            self;
        let stage = Stage::new(lines, style);
        let deployments = controller.informer().clone();
        let elastis = hub.informers().into_iter().find(|each| each.resource().plural == "elastiservices");
        for informer in hub.informers() {
            // The controller tells of these.
            if informer.resource() != deployments.resource() {
                show(&informer, &stage);
            }
        }

        let (mut work, mut play) = (JoinSet::new(), JoinSet::new());
        let (stop_controller, stopped) = oneshot::channel();
        let told = stage.clone();
        let sink = move |Reported { change, old, new }: Reported| {
            let shown = |object: &Option<_>| object.as_ref().map(kube_informer::object::Object::cast);
            told.tell(shown(&old), shown(&new));
            publisher.publish(change, old.as_ref(), new.as_ref());
        };
        work.spawn(async move {
            let _ended = controller.run(sink, ended(stopped)).await;
        });
        let (stop_operator, stopped) = oneshot::channel();
        let before = Before {
            namespace: NAMESPACE,
            service: SERVICE,
            operator: operator.wake_address(),
            stage: stage.clone(),
            deployments: deployments.clone(),
            elastis: elastis.clone(),
        };
        let told = stage.clone();
        work.spawn(async move {
            if let Err(error) = operator.run(ended(stopped)).await {
                told.narrate(&format!("the operator has ended: {error}"));
            }
        });

        let address = resolver.address();
        play.spawn(resolver.run(before));
        play.spawn(stage.clone().run());
        play.spawn(open(factory.clone(), deployments.clone(), stage.clone()));
        if let Some(elastis) = elastis {
            let api = Api { factory: factory.clone() };
            let (stage, resolver) = (stage.clone(), address);
            play.spawn(Play { api, stage, deployments, elastis, resolver, speed }.run());
        }
        let stop = [stop_controller, stop_operator];
        Lively { server, kubeconfig, factory, feed, stop, work, play, stage }
    }
}

/// Resolves when the sender speaks, or is gone.
async fn ended(stopped: oneshot::Receiver<()>) {
    let _: Result<(), _> = stopped.await;
}

/// Shows what an informer sees, but for what was there before.
fn show(informer: &Informer, stage: &Stage) {
    let stage = stage.clone();
    // A closure that is told goes on until its informer ends.
    drop(informer.subscribe().name("demo").on(move |event| match event {
        Event::Added { new, initial: false } => stage.tell(None, Some(new)),
        Event::Updated { old, new, resync: false } => stage.tell(Some(old), Some(new)),
        Event::Deleted { last, .. } => stage.tell(Some(last), None),
        _ => {}
    }));
}

/// Shows the Deployments that there are, once everything was read.
async fn open(factory: Factory, deployments: Informer<Deployment>, stage: Stage) {
    if let Err(error) = factory.synced(FIRST_LIST).await {
        stage.narrate(&format!("the first list does not come: {error}"));
        return;
    }
    for deployment in deployments.list().iter() {
        stage.is_there(&deployment.cast());
    }
    let objects: usize = factory.stats().iter().map(|stats| stats.cache.objects).sum();
    stage.narrate(&format!("{objects} objects were in the first lists; from now on, what changes"));
}

/// How the operator runs: as in a cluster, without variables of whoever started this, and on loopback addresses alone.
fn settings(source: Source) -> anyhow::Result<Settings> {
    let (service, port) = RESOLVER;
    let flags = Flags {
        operator_namespace: Some(ELASTI.to_owned()),
        resolver_namespace: Some(ELASTI.to_owned()),
        resolver_service: Some(service.to_owned()),
        resolver_proxy_port: Some(port),
        wake: Some("127.0.0.1:0".parse().map_err(anyhow::Error::msg)?),
    };
    let mut settings = Settings::read(flags, |_| None)?;
    (settings.metrics, settings.probes, settings.source) = (None, None, source);
    Ok(settings)
}

impl Lively {
    /// What there was to see.
    pub(super) fn numbers(&self) -> Numbers {
        let stats = self.factory.stats();
        let held = stats.iter().fold((0, 0), |(objects, bytes), each| {
            (objects + each.cache.objects, bytes + each.cache.kept_bytes)
        });
        Numbers { objects: self.server.stats().objects, held }
    }

    /// Takes everything down.
    pub(super) async fn end(self) {
        let Self { server, kubeconfig, factory, feed, stop, mut work, mut play, stage: _ } = self;
        play.shutdown().await;
        drop(stop);
        let finished = async { while work.join_next().await.is_some() {} };
        let (_, _) = tokio::join!(tokio::time::timeout(GOODBYE, finished), feed.shutdown(GOODBYE));
        // Who is busy still is cut off: there is nobody to whom it would matter.
        work.shutdown().await;
        factory.shutdown_within(GOODBYE).await;
        server.shutdown().await;
        drop(kubeconfig);
    }
}

/// A kubeconfig that goes away with the demo.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn write(server: &Server) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("kube-informer-demo-{}.yaml", std::process::id()));
        server.write_kubeconfig(&path).map_err(|error| {
            let why = std::error::Error::source(&error).map(|why| format!(": {why}")).unwrap_or_default();
            anyhow::anyhow!("{error}{why}; set TMPDIR to a folder that is there and yours")
        })?;
        Ok(Self(path))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Nothing can be done about a file that somebody else took away.
        let _: std::io::Result<()> = std::fs::remove_file(&self.0);
    }
}
