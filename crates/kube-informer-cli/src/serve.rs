//! `kube-informer serve`: what changes of any resources, told to WebSocket clients.
//!
//! - **The beginning:** what keeps it from starting is one line and exit code 1: no kubeconfig, a server that does not answer,
//!   a resource that is not there, a port that is taken. So is a resource that may not be read, when that turns out before
//!   everything was read once; afterwards, rights that are taken away may be given back, and it goes on.
//! - **Readiness:** `/readyz` is 503 until everything that was asked for has been read, and whenever one of these resources is
//!   stale; 200 again when it is not. Clients stay connected, and are told.
//! - **The end:** SIGTERM lets it say goodbye to its clients, with exit code 0; Ctrl-C the same, with 130. The second one ends
//!   it at once.

use std::time::Duration;

use anyhow::Context as _;
use kube_informer::factory::{Factory, LONGEST_GATHER};
use kube_informer::informer::{Informer, Scope};
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use crate::cluster::{ClusterArgs, SelectArgs};
use crate::door::Door;
use crate::interrupt::{Ended, Interrupt};
use crate::logging;
use crate::output::Output;
use crate::reading::not_allowed;
use crate::scope::ScopeArgs;
use crate::target::look_up;
use crate::time::duration;
use crate::usage::Usage;
use crate::vitals;

/// Tell WebSocket clients what changes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to tell of, as kubectl names it: pods, deploy,svc, deployments.v1.apps
    #[arg(value_name = "TYPE", required_unless_present = "any_resource", value_delimiter = ',', value_parser = kind)]
    types: Vec<String>,
    /// Clients may ask for any other resource as well: whatever these credentials may list and watch
    #[arg(long)]
    any_resource: bool,
    /// How long changes may wait for others, at most 50ms: on a busy cluster this costs the processor less
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = gather)]
    gather: Duration,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    door: Door,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Pods and Deployments of all namespaces, on a free port of this machine
  kube-informer serve pods,deploy

  # For other machines, whose clients must know a token
  kube-informer serve pods -n shop --listen 0.0.0.0:8080 --token-file token --allow-host feed.example.com";

/// How long clients have to hear that it is over.
const GOODBYE: Duration = Duration::from_secs(5);

fn kind(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    match text {
        "" => Err("a type is missing: write TYPE, or TYPE1,TYPE2".to_owned()),
        text if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err("is no type of objects: write it as pods, deploy or deployments.v1.apps".to_owned()),
    }
}

fn gather(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time > LONGEST_GATHER {
        return Err(format!("is too long: at most {LONGEST_GATHER:?}, such as 20ms"));
    }
    if !time.is_zero() && time < Duration::from_millis(1) {
        return Err("is too short: at least 1ms, or 0".to_owned());
    }
    Ok(time)
}

/// What runs.
struct Serving {
    factory: Factory,
    hub: Hub,
    server: Server,
}

impl Serving {
    async fn start(args: &Args) -> anyhow::Result<Self> {
        let cluster = args.cluster.connect(&SelectArgs::default()).await?;
        let (factory, scope) = (cluster.factory, args.scope.scope());
        let hub = Hub::builder(factory.clone()).any_resource(args.any_resource);
        let mut hub = hub.scope(scope.clone()).gather(args.gather);
        for name in &args.types {
            let resource = look_up(&cluster.catalog, name)?;
            if !resource.namespaced && scope != Scope::All {
                let why = format!("{resource} are in no namespace: leave out -n, or them");
                return Err(Usage::new(why).into());
            }
            hub = hub.known_resource(resource);
        }
        let hub = hub.start().await?;
        let mut registry = Registry::default();
        vitals::register(&mut registry);
        let server = args.door.open(hub.clone(), registry).await?;
        factory.start();
        Ok(Self { factory, hub, server })
    }

    fn intro(&self, args: &Args) -> String {
        let (address, place) = (self.server.address(), args.scope.describe());
        let names: Vec<String> = self.hub.topics().into_iter().map(|topic| topic.gvr).collect();
        let mut what = names.join(", ");
        if args.any_resource {
            what = if what.is_empty() {
                "any resource".to_owned()
            } else {
                format!("{what} and any other resource")
            };
        }
        format!(
            "changes of {what} {place} on {}\n{}\
             how it goes on http://{address}/readyz, http://{address}/healthz and http://{address}/metrics\n\
             Ctrl-C ends it\n",
            self.server.url(),
            args.door.hint(address),
        )
    }

    /// Clients are told that it is over, and nothing runs any more.
    async fn end(self) {
        self.server.shutdown(GOODBYE).await;
        self.factory.shutdown_within(GOODBYE).await;
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    args.door.check()?;
    let mut refusals = Some(logging::says_refusals());
    let serving = tokio::select! {
        serving = Serving::start(&args) => serving?,
        wish = interrupt.wish() => return Ok(wish.of_a_daemon()),
    };
    let (mut output, mut prints) = (Output::start()?, true);
    output.lines().offer(serving.intro(&args));
    let mut read = std::pin::pin!(everything_is_read(serving.hub.clone()));
    let mut is_read = false;
    let ended = loop {
        tokio::select! {
            counted = &mut read, if !is_read => {
                is_read = true;
                match counted {
                    Ok(objects) => output.lines().offer(format!("ready: {objects} objects are read\n")),
                    Err(error) => break Err(error),
                }
                // Later, it goes on.
                refusals.take();
            }
            // The daemon is wanted, its words are not.
            closed = output.closed(), if prints => {
                prints = false;
                if let Err(error) = closed {
                    tracing::error!("{error:#}");
                }
            }
            wish = interrupt.wish() => break Ok(wish.of_a_daemon()),
        }
    };
    output.lines().offer("ending: clients are told from where to go on\n".to_owned());
    let end = async {
        serving.end().await;
        if prints { output.end().await.map(drop) } else { Ok(()) }
    };
    tokio::select! {
        printed = end => {
            if let Err(error) = printed {
                tracing::error!("{error:#}");
            }
            ended
        }
        // Why it ends is said all the same.
        _ = interrupt.wish() => ended.map(|_| Ended::Interrupted),
    }
}

/// Waits until every informer has listed everything once, and `/readyz` says so; says how much that is.
///
/// # Errors
///
/// Where one of them is not allowed to.
async fn everything_is_read(hub: Hub) -> anyhow::Result<usize> {
    let mut reads = JoinSet::new();
    for informer in hub.informers() {
        reads.spawn(read(informer));
    }
    let mut objects = 0;
    while let Some(read) = reads.join_next().await {
        objects += read.context("nobody looks whether everything is read")??;
    }
    // What the informers have, the hub is about to have.
    hub.ready().await;
    Ok(objects)
}

async fn read(informer: Informer) -> anyhow::Result<usize> {
    tokio::select! {
        // Longer than anyone runs: it fails where it can never be.
        synced = informer.synced(Duration::MAX) => {
            synced?;
            Ok(informer.list().count())
        }
        why = not_allowed(&informer) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn parsed(args: &[&str]) -> Result<Args, clap::Error> {
        let command = Args::augment_args(clap::Command::new("serve").no_binary_name(true));
        Args::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn types_are_written_as_for_kubectl() {
        assert_eq!(
            parsed(&["pods,deploy", "services.v1."]).unwrap().types,
            ["pods", "deploy", "services.v1."]
        );
        for wrong in ["", "pods,,deploy", "pods/web", "apps v1"] {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn something_is_to_be_told_of() {
        assert!(parsed(&[]).unwrap_err().to_string().contains("<TYPE>"));
        assert!(parsed(&["--any-resource"]).unwrap().types.is_empty());
    }
}
