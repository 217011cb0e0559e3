//! `kube-informer elasti`: the ElastiService operator.
//!
//! Flags and variables are those of KubeElasti. The first SIGTERM lets it end in order, with exit code 0, and so does the first
//! Ctrl-C, with 130; the second of either ends it at once.

use std::path::PathBuf;
use std::time::Duration;

use kube_informer::connect::Source;
use kube_informer_elasti::run::Running;
use kube_informer_elasti::settings::{self, Address, Election, Flags, Settings};
use tokio::sync::oneshot;

use crate::interrupt::{Ended, Interrupt, Wish};
use crate::output::first_words;
use crate::time::duration;

/// Run the ElastiService operator.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look after the ElastiServices of this namespace only; several with commas between. Without, of all of them
    #[arg(long = "watch-namespace", value_name = "NAMESPACE", value_delimiter = ',', value_parser = maybe_name)]
    watch_namespaces: Vec<String>,
    /// Work only while no other one does: stand for election over a lease
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long others wait for a leader that is gone
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,
    /// How long a leader leads that cannot renew its lease
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    leader_elect_renew_deadline: Duration,
    /// How often a leader renews its lease
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    leader_elect_retry_period: Duration,
    /// Where metrics are read; 0 is nowhere
    #[arg(long, value_name = "ADDR", default_value = ":8080", value_parser = maybe_address)]
    metrics_bind_address: Where,
    /// Where it is asked how it goes (/healthz, /readyz); 0 is nowhere
    #[arg(long, value_name = "ADDR", default_value = ":8081", value_parser = maybe_address)]
    health_probe_bind_address: Where,
    /// Where the resolver calls; without, the port of ELASTI_OPERATOR_PORT, or :8013
    #[arg(long, value_name = "ADDR", value_parser = |text: &str| text.parse::<Address>())]
    wake_bind_address: Option<Address>,
    /// The namespace of the operator and its lease; without, ELASTI_OPERATOR_NAMESPACE, or the one it runs in
    #[arg(long, value_name = "NAMESPACE", value_parser = settings::name)]
    operator_namespace: Option<String>,
    /// The resolver's namespace; without, ELASTI_RESOLVER_NAMESPACE, or the operator's
    #[arg(long, value_name = "NAMESPACE", value_parser = settings::name)]
    resolver_namespace: Option<String>,
    /// The resolver's Service; without, ELASTI_RESOLVER_SERVICE_NAME, or elasti-resolver-service
    #[arg(long, value_name = "NAME", value_parser = settings::name)]
    resolver_service: Option<String>,
    /// The resolver's port for requests; without, ELASTI_RESOLVER_PROXY_PORT, or 8012
    #[arg(long, value_name = "PORT", value_parser = settings::port)]
    resolver_proxy_port: Option<u16>,
    /// The kubeconfig to use, instead of the cluster that it runs in or the one that kubectl takes
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// ElastiServices that are looked after at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = crate::controller::workers)]
    workers: usize,
    /// How long what the resolver keeps can still go on after the redirect of a Service has ended for good
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    linger: Duration,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  # For all namespaces; the resolver is in the namespace elasti
  kube-informer elasti --operator-namespace elasti

  # One of several, for two namespaces
  kube-informer elasti --leader-elect --watch-namespace shop,web";

/// An address, or nowhere.
#[derive(Debug, Clone)]
struct Where(Option<Address>);

fn maybe_address(text: &str) -> Result<Where, String> {
    match text {
        "" | "0" => Ok(Where(None)),
        text => Ok(Where(Some(text.parse()?))),
    }
}

/// A namespace, or nothing, as charts write it where they mean all of them.
fn maybe_name(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { settings::name(text) }
}

fn settings(args: Args) -> anyhow::Result<Settings> {
    let flags = Flags {
        operator_namespace: args.operator_namespace,
        resolver_namespace: args.resolver_namespace,
        resolver_service: args.resolver_service,
        resolver_proxy_port: args.resolver_proxy_port,
        wake: args.wake_bind_address,
    };
    let mut settings = Settings::from_env(flags)?;
    settings.watch_namespaces = args.watch_namespaces.into_iter().filter(|name| !name.is_empty()).collect();
    settings.leader_elect = args.leader_elect;
    settings.election = Election {
        lease: args.leader_elect_lease_duration,
        renew: args.leader_elect_renew_deadline,
        retry: args.leader_elect_retry_period,
    };
    settings.metrics = args.metrics_bind_address.0;
    settings.probes = args.health_probe_bind_address.0;
    settings.workers = args.workers;
    settings.linger = args.linger;
    let source = args.kubeconfig.map_or_else(Source::in_cluster_first, Source::file);
    settings.source = match args.context {
        Some(context) => source.context(context),
        None => source,
    };
    Ok(settings)
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    let settings = settings(args)?;
    let running = tokio::select! {
        running = Running::start(settings) => running?,
        wish = interrupt.wish() => return Ok(wish.of_a_daemon()),
    };
    let mut words = std::pin::pin!(first_words(intro(&running)));
    let (mut is_said, mut unsaid) = (false, Ok(()));
    let (stop, stopped) = oneshot::channel::<()>();
    let mut run = std::pin::pin!(running.run(async move {
        // Dropped, it is to stop as well.
        let _ = stopped.await;
    }));
    let (mut stop, mut wanted) = (Some(stop), None);
    loop {
        tokio::select! {
            ended = &mut run => {
                ended?;
                return unsaid.map(|()| wanted.map_or(Ended::Done, Wish::of_a_daemon));
            }
            // Beside its work: nobody may read them. Where they cannot be written, it ends in order.
            said = &mut words, if !is_said => {
                (is_said, unsaid) = (true, said);
                if unsaid.is_err() {
                    drop(stop.take());
                }
            }
            wish = interrupt.wish() => {
                if wanted.replace(wish).is_some() {
                    return unsaid.map(|()| Ended::Interrupted);
                }
                drop(stop.take());
            }
        }
    }
}

/// Where it can be reached.
fn intro(running: &Running) -> String {
    let mut intro =
        format!("the resolver calls http://{}/informer/incoming-request\n", running.wake_address());
    if let Some(address) = running.metrics_address() {
        intro.push_str(&format!("metrics on http://{address}/metrics\n"));
    }
    if let Some(address) = running.probe_address() {
        intro.push_str(&format!("probes on http://{address}/healthz and http://{address}/readyz\n"));
    }
    intro
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn parsed(args: &[&str]) -> Result<Args, clap::Error> {
        let command = Args::augment_args(clap::Command::new("elasti").no_binary_name(true));
        Args::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn the_flags_of_kubeelasti_are_taken_as_its_chart_writes_them() {
        let args = parsed(&[
            "--metrics-bind-address=:8080",
            "--health-probe-bind-address=127.0.0.1:8081",
            "--leader-elect=true",
            "--watch-namespace=",
        ])
        .unwrap();
        let settings = settings(args).unwrap();
        assert!(settings.leader_elect && settings.watch_namespaces.is_empty());
        assert_eq!(settings.linger, Duration::from_secs(10));
        assert_eq!(settings.metrics.unwrap().to_string(), ":8080");
        assert_eq!(settings.probes.unwrap().to_string(), "127.0.0.1:8081");
    }

    #[test]
    fn leading_is_for_who_asks_for_it() {
        assert!(!parsed(&[]).unwrap().leader_elect);
        assert!(parsed(&["--leader-elect"]).unwrap().leader_elect);
        assert!(!parsed(&["--leader-elect=false"]).unwrap().leader_elect);
    }

    #[test]
    fn several_namespaces_and_none_of_the_addresses() {
        let args = parsed(&["--watch-namespace", "a,b", "--metrics-bind-address=0"]).unwrap();
        let settings = settings(args).unwrap();
        assert_eq!(settings.watch_namespaces.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(settings.metrics, None);
    }
}
