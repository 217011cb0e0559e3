//! One of several works: start it several times, and stop (Ctrl-C), freeze (Ctrl-Z) or kill the one that does.
//!
//! `leader_election [NAMESPACE [NAME [LEASE RENEW RETRY]]]`, the last three in seconds.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube_informer::leader::{LeaderElection, Leadership};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let namespace = arguments.next().unwrap_or_else(|| "default".to_owned());
    let name = arguments.next().unwrap_or_else(|| "leader-election-example".to_owned());
    let client = kube_client::Client::try_default().await?;
    let mut election = LeaderElection::new(client, namespace, name);
    let times: Vec<f64> = arguments.map(|seconds| seconds.parse()).collect::<Result<_, _>>()?;
    if let [lease, renew, retry] = times[..] {
        let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_secs_f64);
        election = election.lease(lease).renew(renew).retry(retry);
    }
    let leadership = election.start()?;
    println!("{} stands for election", leadership.identity());

    let (stop, stopped) = watch::channel(false);
    let leading = tokio::spawn(lead(leadership.clone(), stopped));
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    // First the work ends, then another one may begin.
    stop.send_replace(true);
    leading.await?;
    println!("ends: {:?}", leadership.shutdown(Duration::from_secs(5)).await);
    Ok(())
}

async fn lead(leadership: Leadership, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = leadership.acquired() => {}
        }
        let Some(term) = leadership.term() else { continue };
        println!("leads, for the {term}. time");
        // Work that blocks has a thread. What does not is best put under `leadership.guard(…)`.
        let (worker, stopped) = (leadership.clone(), stopped.clone());
        let _ = tokio::task::spawn_blocking(move || work(&worker, term, &stopped)).await;
        println!("leads no more");
    }
}

/// Work comes in small pieces, and each is preceded by a question.
fn work(leadership: &Leadership, term: u64, stopped: &watch::Receiver<bool>) {
    while !*stopped.borrow() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if leadership.term() != Some(term) {
            return;
        }
        println!("work {term} {}", now.as_micros());
        std::thread::park_timeout(Duration::from_millis(1));
    }
}
