//! The classic: handlers for pods, a cache that is waited for, something that runs every ten seconds, and everything said
//! again every thirty. Flags, in seconds: `--resync 30 --run-every 10 --deadline 60`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{Zoned, tz::TimeZone};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::factory::Factory;
use kube_informer::informer::{Delivery, Event, Scope};

#[tokio::main]
async fn main() -> Result<()> {
    let flags = FLAGS.map(|(name, default)| format!("{name} {default}")).join(", ");
    let unknown = std::env::args().skip(1).step_by(2).find(|arg| FLAGS.iter().all(|(name, _)| arg != name));
    ensure!(unknown.is_none(), "there is no flag {}, only {flags}", unknown.unwrap_or_default());
    let [resync, run_every, deadline] = FLAGS;
    let factory = Factory::try_default().await?.resync(flag(resync)?);
    let pods = factory.informer::<Pod>(Scope::All);
    // Each update, not only the last of those that came at once.
    let registration = pods.subscribe().delivery(Delivery::Every(100_000)).on(|event| match event {
        Event::Added { new, .. } => log(&format!("handleAdd is called for Pod (key: {})", new.key())),
        Event::Updated { new, .. } => log(&format!("handleUpdate is called for Pod (key: {})", new.key())),
        Event::Deleted { last, .. } => log(&format!("handleDelete is called for Pod (key: {})", last.key())),
        Event::Gap { missed, .. } => log(&format!("{missed} changes were missed; all pods follow")),
        _ => {}
    });
    factory.start();

    let deadline = flag(deadline)?;
    match factory.synced(deadline).await {
        Ok(()) if registration.synced(deadline).await.is_ok() => log("cache is synced"),
        Ok(()) => log("cache is not synced: the handler is still busy"),
        Err(why) => log(&format!("cache is not synced: {why}")),
    }
    let mut every = tokio::time::interval(flag(run_every)?.max(Duration::from_millis(1)));
    loop {
        tokio::select! {
            _ = every.tick() => log("run"),
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    factory.shutdown().await;
    Ok(())
}

/// With what counts where they are not given.
const FLAGS: [(&str, u64); 3] = [("--resync", 30), ("--run-every", 10), ("--deadline", 60)];

fn log(text: &str) {
    println!("{} {text}", Zoned::now().with_time_zone(TimeZone::system()).strftime("%Y/%m/%d %H:%M:%S"));
}

fn flag((name, default): (&str, u64)) -> Result<Duration> {
    let value = std::env::args().skip_while(|arg| arg != name).nth(1).unwrap_or_else(|| default.to_string());
    let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.with_context(|| format!("{name} takes a number of seconds, not {value:?}"))
}
