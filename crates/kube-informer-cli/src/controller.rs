//! `kube-informer controller`: controllers that come with it.
//!
//! What they find is printed, and told to everyone who is connected over WebSocket. The first SIGTERM lets them tell what they
//! have read, with exit code 0, and so does the first Ctrl-C, with 130; the second of either ends them at once, with 130.
//!
//! A cluster that is away is waited for, and it is said that it is. Who may not read is told so, with exit code 1, when that
//! turns out before everything was read once.

use std::time::Duration;

use kube_informer::controller::Metrics;
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_feed::hub::Hub;
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;

use crate::cluster::ClusterArgs;
use crate::door::Door;
use crate::interrupt::{Ended, Interrupt, Wish};
use crate::logging;
use crate::output::Output;
use crate::reading::{held_up, not_allowed};
use crate::scope::ScopeArgs;
use crate::style::{Style, Tone, When};
use crate::vitals;

/// Run a controller.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    controller: Controller,
}

#[derive(Debug, clap::Subcommand)]
enum Controller {
    /// Say what changes about Deployments: replicas, images of every container, who came and went
    Deployments(Deployments),
}

#[derive(Debug, clap::Args)]
struct Deployments {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Deployments that are told of at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = workers)]
    workers: usize,
    /// Print every change, also those of the status, conditions and labels
    #[arg(long)]
    all: bool,
    /// Colours: on terminals, unless NO_COLOR is set; or always, or never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,
    #[command(flatten)]
    door: Door,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  # What changes about the Deployments of all namespaces
  kube-informer controller deployments

  # Those of one namespace, every change, and always on the same port
  kube-informer controller deployments -n shop --all --listen 127.0.0.1:8080";

/// How long clients have to hear that it is over.
const GOODBYE: Duration = Duration::from_secs(2);

pub(crate) fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(workers @ 1..=1000) => Ok(workers),
        _ => Err("must be a whole number from 1 to 1000".to_owned()),
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    match args.controller {
        Controller::Deployments(args) => deployments(args).await,
    }
}

async fn deployments(args: Deployments) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    args.door.check()?;
    let mut refusals = Some(logging::says_refusals());
    let factory = tokio::select! {
        factory = args.cluster.factory() => factory?,
        wish = interrupt.wish() => return Ok(wish.of_a_daemon()),
    };
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    vitals::register(&mut registry);
    let controller =
        DeploymentController::new(&factory, args.scope.scope()).workers(args.workers).metrics(&metrics);

    let hub = Hub::builder(factory.clone()).start().await?;
    let publisher = hub.publisher(controller.informer());
    let server = args.door.open(hub, registry).await?;
    let hint = args.door.hint(server.address());
    let intro = format!("changes of Deployments on {}\n{hint}Ctrl-C ends it\n", server.url());
    let (mut output, mut prints) = (Output::start()?, true);
    output.lines().offer(intro);

    let (lines, all, style) = (output.lines(), args.all, Style::stdout(args.color));
    let informer = controller.informer().clone();
    let controller = controller.begin_with(&publisher);
    let sink = move |reported: Reported| {
        if all || reported.is_tracked() {
            lines.offer_painted(line(&reported, style));
        }
        publisher.publish(reported.change, reported.old.as_ref(), reported.new.as_ref());
    };
    let (stop, stopped) = oneshot::channel();
    let run = controller.run(sink, async move {
        // Dropped, it is to stop as well.
        let _: Result<(), _> = stopped.await;
    });
    let mut run = std::pin::pin!(run);
    let mut stop = Some(stop);
    // That nothing is said shall mean that nothing changes.
    let mut synced = std::pin::pin!(informer.synced(Duration::MAX));
    let mut not_allowed = std::pin::pin!(not_allowed(&informer));
    let mut held_up = std::pin::pin!(held_up(&informer));
    let (mut is_quiet, mut is_held_up) = (true, false);
    let (mut refused, mut wanted) = (None, None);
    loop {
        tokio::select! {
            synced = &mut synced, if is_quiet => {
                is_quiet = false;
                refusals.take();
                if synced.is_ok() {
                    let count = informer.list().count();
                    output.lines().offer(format!("Deployments that are there: {count}; what changes follows\n"));
                }
            }
            // Later, rights that were taken away may be given back.
            why = &mut not_allowed, if is_quiet => {
                (is_quiet, refused) = (false, Some(why));
                stop.take();
            }
            why = &mut held_up, if is_quiet && !is_held_up => {
                is_held_up = true;
                output.lines().offer(format!("waiting until Deployments can be read: {why}\n"));
            }
            ended = &mut run => {
                tracing::info!(?ended, "the controller has ended");
                break;
            }
            closed = output.closed(), if prints => {
                prints = false;
                // Those who are connected are told all the same.
                if let Err(error) = closed {
                    tracing::error!("changes are not printed any more: {error:#}");
                }
            }
            wish = interrupt.wish() => match stop.take() {
                Some(stop) => {
                    wanted = Some(wish);
                    // Fails only if it has ended by itself.
                    let _ = stop.send(());
                }
                None => return refused.map_or(Ok(Ended::Interrupted), Err),
            },
        }
    }
    let end = async {
        server.shutdown(GOODBYE).await;
        factory.shutdown().await;
        if prints { output.end().await.map(drop) } else { Ok(()) }
    };
    let ended = ended(refused, wanted);
    tokio::select! {
        printed = end => {
            if let Err(error) = printed {
                tracing::error!("changes were not printed: {error:#}");
            }
            ended
        }
        // Why it ends is said all the same.
        () = interrupt.wait() => ended.map(|_| Ended::Interrupted),
    }
}

/// How it ends that was refused, or that somebody wanted to end.
fn ended(refused: Option<anyhow::Error>, wanted: Option<Wish>) -> anyhow::Result<Ended> {
    match (refused, wanted) {
        (Some(why), _) => Err(why),
        (None, Some(wish)) => Ok(wish.of_a_daemon()),
        (None, None) => {
            Err(anyhow::anyhow!("the controller has ended, and nobody wanted it to: start it again"))
        }
    }
}

/// `07:31:05Z ~ Deployment shop/web replicas 3→5 (kubectl)`.
fn line(reported: &Reported, style: Style) -> String {
    let change = &reported.change;
    let by = change.actor.as_ref().map(|actor| format!(" ({})", actor.manager)).unwrap_or_default();
    let line = format!("{} {change}{by}", change.time.strftime("%H:%M:%SZ"));
    format!("{}\n", style.paint(Tone::of(change.what), &line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_wanted_is_an_error() {
        assert!(ended(None, None).is_err());
        assert_eq!(ended(None, Some(Wish::Supervisor)).unwrap(), Ended::Done);
        assert_eq!(ended(None, Some(Wish::Person)).unwrap(), Ended::Interrupted);
        let refused = ended(Some(anyhow::anyhow!("forbidden")), Some(Wish::Supervisor));
        assert_eq!(refused.unwrap_err().to_string(), "forbidden");
    }

    #[test]
    fn there_is_at_least_one_worker_and_not_too_many() {
        assert_eq!(workers("3"), Ok(3));
        for wrong in ["0", "-1", "x", "100000"] {
            assert!(workers(wrong).is_err(), "{wrong}");
        }
    }
}
