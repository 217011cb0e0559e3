//! `kube-informer demo`: a living cluster in one process, and what changes in it.
//!
//! The embedded server with simulated workloads and a story. What is printed comes from watches over the
//! server's own HTTP API, as any client would see it.

mod describe;
mod feed;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
use kube_informer_apiserver::Server;
use tokio::sync::{mpsc, oneshot};

use crate::apiserver::Pace;
use crate::interrupt::{Ended, Interrupt};

/// What the demo watches: (path, how it is called).
const WATCHED: [(&str, &str); 8] = [
    ("/apis/apps/v1/deployments", "deployment"),
    ("/apis/apps/v1/statefulsets", "statefulset"),
    ("/apis/apps/v1/replicasets", "replicaset"),
    ("/apis/batch/v1/jobs", "job"),
    ("/api/v1/pods", "pod"),
    ("/api/v1/services", "service"),
    ("/apis/discovery.k8s.io/v1/endpointslices", "endpointslice"),
    ("/api/v1/configmaps", "configmap"),
];
/// Lines that wait for a slow terminal; past that the watches wait, not the memory.
const LINES: usize = 1024;

/// Run the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End by itself after this time, such as 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    pace: Pace,
}

/// `90`, `90s`, `2m`, `1h`, `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "must be a time such as 30s, 2m or 1h".to_owned())?;
    let millis = match unit {
        "ms" => Some(number),
        "" | "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => return Err(format!("{unit:?} is no unit of time: use ms, s, m or h")),
    };
    millis.map(Duration::from_millis).ok_or_else(|| "is too long".to_owned())
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Ended> {
    let mut interrupt = Interrupt::install()?;
    let simulation = args.pace.simulation().with_story(true);
    let server = Server::builder().seed(args.pace.seed).simulate(simulation).start().await;
    let server = server.context("the embedded API server did not start")?;
    let kubeconfig = Kubeconfig::write(&server)?;
    let intro = format!(
        "Kubernetes API on {} (in memory, nothing to install)\n\
         try, in another terminal:\n  kubectl --kubeconfig {} get pods -A\n\n\
         what changes, as a client's watches see it:\n",
        server.url(),
        kubeconfig.0.display(),
    );
    let colours =
        std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let (lines, incoming) = mpsc::channel(LINES);
    let watches: Vec<_> = WATCHED
        .iter()
        .map(|(path, kind)| tokio::spawn(feed::follow(server.service(), path, kind, lines.clone())))
        .collect();
    drop(lines);
    let over = async {
        match args.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let shown = show(intro, incoming, colours)?;
    let ended = tokio::select! {
        () = over => Ok(Ended::Done),
        () = interrupt.wait() => Ok(Ended::Interrupted),
        shown = shown => match shown {
            // `demo | head`: the reader has seen enough.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Ended::Done),
            Ok(Err(error)) => Err(error).context("cannot write to stdout"),
            Ok(Ok(())) => Err(anyhow::anyhow!("the server ended all watches")),
            Err(_) => Err(anyhow::anyhow!("nothing is shown any more")),
        },
    };
    for watch in watches {
        watch.abort();
    }
    server.shutdown().await;
    ended
}

/// Prints all changes, and says how that ended. In a thread of its own, which nobody waits for: a terminal that was
/// stopped, or a pager, lets a write wait for ever, and Ctrl-C has to end the demo all the same.
fn show(
    intro: String,
    mut changes: mpsc::Receiver<feed::Change>,
    colours: bool,
) -> anyhow::Result<oneshot::Receiver<std::io::Result<()>>> {
    let (ended, shown) = oneshot::channel();
    let mut print = move || {
        let mut out = std::io::stdout();
        out.write_all(intro.as_bytes())?;
        while let Some(change) = changes.blocking_recv() {
            writeln!(out, "{}", describe::line(&change, colours))?;
        }
        out.flush()
    };
    let printer = std::thread::Builder::new().name("printer".to_owned());
    printer.spawn(move || ended.send(print())).context("cannot start a thread")?;
    Ok(shown)
}

/// A kubeconfig that goes away with the demo.
struct Kubeconfig(std::path::PathBuf);

impl Kubeconfig {
    fn write(server: &Server) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("kube-informer-demo-{}.yaml", std::process::id()));
        server.write_kubeconfig(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Nothing can be done about a file that somebody else took away.
        let _: std::io::Result<()> = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "2 m", "2d", "-1s", "99999999999999999999h", "9999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
