//! A controller of which several run, and one works: start it several times, and stop (Ctrl-C), freeze (Ctrl-Z) or kill the
//! one that does.
//!
//! `standby [NAMESPACE [NAME [LEASE RENEW RETRY]]]`, the last three in seconds. It reconciles the config maps of the
//! namespace again and again, in small steps, and prints when it made each, by a clock that all processes of a machine share.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::controller::{Action, BoxError, Context, Controller};
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer::leader::LeaderElection;
use kube_informer::runner::Runner;
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let namespace = arguments.next().unwrap_or_else(|| "default".to_owned());
    let name = arguments.next().unwrap_or_else(|| "standby-example".to_owned());
    let factory = Factory::try_default().await?;
    let mut election = LeaderElection::new(factory.client(), &namespace, name);
    let times: Vec<f64> = arguments.map(|seconds| seconds.parse()).collect::<Result<_, _>>()?;
    if let [lease, renew, retry] = times[..] {
        let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_secs_f64);
        election = election.lease(lease).renew(renew).retry(retry);
    }
    let leadership = election.start()?;
    println!("{} stands for election", leadership.identity());

    let maps =
        Controller::new(&factory).for_kind::<ConfigMap>().scope(Scope::namespace(namespace)).workers(2);
    let runner = Runner::new(&factory).controller(maps, reconcile).when(&leadership);
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = async { tokio::select!(_ = interrupt.recv() => {}, _ = terminate.recv() => {}) };
    let ended = runner.run(stop).await;
    // Nothing runs any more: another one may begin.
    println!("ends: {:?}", leadership.shutdown(Duration::from_secs(5)).await);
    // Whoever lost leadership begins anew, with a process of its own.
    ended?;
    Ok(())
}

/// Reconciles, to tell their steps apart.
static NUMBER: AtomicU64 = AtomicU64::new(1);

async fn reconcile(context: Context<ConfigMap>) -> Result<Action, BoxError> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    for _ in 0..20 {
        // Read first: what is printed later was still done then.
        let now = now();
        println!("step {number} {now} {}", context.request());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("done {number}");
    Ok(Action::requeue_after(Duration::from_nanos(1)))
}

/// Nanoseconds of the machine's clock, which nobody sets.
fn now() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
