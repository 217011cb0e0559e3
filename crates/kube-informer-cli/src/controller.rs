//! `kube-informer controller`: controllers that come with it.
//!
//! What they find is printed, and told to everyone who is connected over WebSocket. The first Ctrl-C or SIGTERM lets them
//! tell what they have read; the second ends them at once.

mod printer;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use kube_informer::connect::Source;
use kube_informer::controller::Metrics;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;

use crate::interrupt::{Ended, Interrupt};
use printer::Printer;

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
    /// Address for WebSocket clients; port 0 takes a free one. Other addresses than loopback ones need a token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Only in this namespace; can be given several times. Without, in all of them
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_parser = namespace)]
    namespaces: Vec<String>,
    /// Clients must know the token in this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A name by which clients may call this server, beside localhost and addresses; can be given several times
    #[arg(long = "allow-host", value_name = "NAME", value_parser = host)]
    allow_hosts: Vec<String>,
    /// A site whose pages may connect, with its scheme: `https://dash.example.com`; can be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = origin)]
    allow_origins: Vec<String>,
    /// The kubeconfig to use, instead of the one that kubectl takes
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Deployments that are told of at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = workers)]
    workers: usize,
    /// Print every change, also those of the status, conditions and labels
    #[arg(long)]
    all: bool,
}

/// How long clients have to hear that it is over.
const GOODBYE: Duration = Duration::from_secs(2);

fn namespace(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err("is no name of a namespace: small letters, digits and - only".to_owned()),
    }
}

fn host(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err("is no name of a host: give it alone, as feed.example.com".to_owned()),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let is_site =
        |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    match text.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && is_site(rest) => Ok(text.to_owned()),
        _ => {
            Err("is no origin: give scheme and host, without a path, as https://dash.example.com".to_owned())
        }
    }
}

/// What to connect to, where the address that is listened on is none to connect to.
fn hint(address: SocketAddr, hosts: &[String]) -> Option<String> {
    let ip = address.ip();
    let names = match hosts {
        [] => "; to call it by a name, give --allow-host NAME".to_owned(),
        hosts => format!(", or to {}", hosts.join(", ")),
    };
    ip.is_unspecified()
        .then(|| format!("{ip} is every address of this machine: connect to one of them{names}\n"))
}

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
    let factory = Factory::from_source(source(args.kubeconfig, args.context))
        .await
        .context("cannot connect to a cluster; give --kubeconfig FILE, or set KUBECONFIG")?;
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    let controller =
        DeploymentController::new(&factory, scope(args.namespaces)).workers(args.workers).metrics(&metrics);

    let hub = Hub::builder(factory.clone()).start().await?;
    let publisher = hub.publisher(controller.informer());
    let mut server = Server::builder(hub).listen(args.listen).registry(registry);
    if let Some(file) = args.token_file {
        server = server.token_file(file);
    }
    for host in &args.allow_hosts {
        server = server.allow_host(host);
    }
    for origin in args.allow_origins {
        server = server.allow_origin(origin);
    }
    let server = server.start().await?;
    let hint = hint(server.address(), &args.allow_hosts).unwrap_or_default();
    let intro = format!("changes of Deployments on {}\n{hint}Ctrl-C ends it\n", server.url());
    let printer = Printer::start(intro)?;

    let (lines, all) = (printer.lines(), args.all);
    let informer = controller.informer().clone();
    let controller = controller.begin_with(&publisher);
    let sink = move |reported: Reported| {
        if all || reported.is_tracked() {
            lines.say(line(&reported));
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
    let mut is_quiet = true;
    loop {
        tokio::select! {
            synced = &mut synced, if is_quiet => {
                is_quiet = false;
                if synced.is_ok() {
                    let count = informer.list().count();
                    printer.lines().say(format!("Deployments that are there: {count}; what changes follows\n"));
                }
            }
            ended = &mut run => {
                tracing::info!(?ended, "the controller has ended");
                break;
            }
            () = interrupt.wait() => match stop.take() {
                // Fails only if it has ended by itself.
                Some(stop) => drop(stop.send(())),
                None => return Ok(Ended::Interrupted),
            },
        }
    }
    let end = async {
        server.shutdown(GOODBYE).await;
        factory.shutdown().await;
        printer.end().await;
    };
    tokio::select! {
        () = end => {}
        () = interrupt.wait() => {}
    }
    Ok(Ended::Interrupted)
}

fn source(kubeconfig: Option<PathBuf>, context: Option<String>) -> Source {
    let source = kubeconfig.map_or_else(Source::default, Source::file);
    match context {
        Some(context) => source.context(context),
        None => source,
    }
}

fn scope(namespaces: Vec<String>) -> Scope {
    let namespaces: BTreeSet<String> = namespaces.into_iter().collect();
    if namespaces.is_empty() { Scope::All } else { Scope::namespaces(namespaces) }
}

/// `07:31:05Z ~ shop/web replicas 3→5 (kubectl)`.
fn line(reported: &Reported) -> String {
    let change = &reported.change;
    let by = change.actor.as_ref().map(|actor| format!(" ({})", actor.manager)).unwrap_or_default();
    format!("{} {change}{by}\n", change.time.strftime("%H:%M:%SZ"))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    #[test]
    fn namespaces_are_checked() {
        assert_eq!(namespace("kube-system").as_deref(), Ok("kube-system"));
        for wrong in ["", "a b", "A", "a/b", "ä"] {
            assert!(namespace(wrong).is_err(), "{wrong}");
        }
        assert_eq!(scope(Vec::new()), Scope::All);
        assert_eq!(scope(vec!["b".to_owned(), "a".to_owned()]), Scope::namespaces(["a", "b"]));
    }

    fn parsed(args: &[&str]) -> Result<Deployments, clap::Error> {
        let command = Deployments::augment_args(clap::Command::new("deployments").no_binary_name(true));
        Deployments::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn names_and_sites_can_be_allowed_several_times() {
        let args = parsed(&[
            "--allow-host",
            "feed.example.com",
            "--allow-host=feed:8080",
            "--allow-origin",
            "https://dash.example.com",
            "--allow-origin=http://localhost:3000",
        ]);
        let args = args.unwrap();
        assert_eq!(args.allow_hosts, ["feed.example.com", "feed:8080"]);
        assert_eq!(args.allow_origins, ["https://dash.example.com", "http://localhost:3000"]);
        for wrong in ["", "https://feed", "a/b", "a b"] {
            assert!(parsed(&["--allow-host", wrong]).is_err(), "{wrong}");
        }
        for wrong in ["", "dash.example.com", "https://", "https://a/b", "://a"] {
            assert!(parsed(&["--allow-origin", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_listens_everywhere_is_told_what_to_connect_to() {
        let said = |address: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            hint(address.parse().unwrap(), &hosts)
        };
        assert_eq!(said("127.0.0.1:80", &[]), None);
        assert!(said("0.0.0.0:80", &[]).unwrap().contains("--allow-host"));
        let named = said("[::]:80", &["feed.example.com"]).unwrap();
        assert!(named.starts_with(":: is every address") && named.contains("feed.example.com"), "{named}");
    }

    #[test]
    fn there_is_at_least_one_worker_and_not_too_many() {
        assert_eq!(workers("3"), Ok(3));
        for wrong in ["0", "-1", "x", "100000"] {
            assert!(workers(wrong).is_err(), "{wrong}");
        }
    }
}
