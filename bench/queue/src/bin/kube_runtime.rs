//! kube-runtime's scheduler as a contestant: a stream of what is due, out of a stream of requests.
//!
//! It has no sign that a worker is done, so that it does less than the others; there is nothing to call for it.

use std::pin::pin;
use std::task::Poll;

use anyhow::Result;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer_bench_queue::{Case, Stopwatch, Tally, Task, delay, mixed, names};
use kube_runtime::reflector::ObjectRef;
use kube_runtime::scheduler::{ScheduleRequest, scheduler};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// As its controller has them.
type Key = ObjectRef<ConfigMap>;

#[tokio::main]
async fn main() -> Result<()> {
    let task = Task::from_arguments()?;
    let left_out = match task.case {
        Case::FillAndDrainByFour => Some("the scheduler is a stream, which one task polls"),
        Case::RateLimited | Case::Forget => Some("the scheduler has no rate limits"),
        _ => None,
    };
    let line = match left_out {
        Some(why) => task.left_out(why),
        None => {
            let (watch, got) = tokio::spawn(play(task)).await?;
            task.measured(&watch, Tally { got, ..Tally::default() })?
        }
    };
    println!("{line}");
    Ok(())
}

async fn play(task: Task) -> (Stopwatch, usize) {
    let keys: Vec<Key> =
        names(task.keys).map(|(namespace, name)| Key::new(&name).within(&namespace)).collect();
    let other_order = mixed(keys.clone());
    let (mut watch, mut got) = (Stopwatch::default(), 0);
    for _ in 0..task.times {
        let (keys, other_order) = (keys.clone(), other_order.clone());
        got += match task.case {
            Case::AddPending => add_pending(keys, other_order, &mut watch).await,
            Case::Steady => steady(keys, &mut watch).await,
            Case::Delayed => fill_and_drain(keys, |at| Instant::now() + delay(at), &mut watch).await,
            _ => fill_and_drain(keys, |_| Instant::now(), &mut watch).await,
        };
    }
    (watch, got)
}

/// The requests lie there, and nothing carries them to the scheduler.
async fn fill_and_drain(keys: Vec<Key>, run_at: impl Fn(usize) -> Instant, watch: &mut Stopwatch) -> usize {
    let count = keys.len();
    let lap = Stopwatch::start();
    let requests =
        keys.into_iter().enumerate().map(|(at, message)| ScheduleRequest { message, run_at: run_at(at) });
    let mut due = pin!(scheduler(stream::iter(requests).chain(stream::pending())));
    let mut got = 0;
    for _ in 0..count {
        got += usize::from(due.next().await.is_some());
    }
    watch.stop(lap);
    got
}

/// The scheduler takes all requests that there are before it gives anything: one poll adds all keys twice.
async fn add_pending(keys: Vec<Key>, other_order: Vec<Key>, watch: &mut Stopwatch) -> usize {
    let count = keys.len();
    let mut keys = keys.into_iter().chain(other_order).enumerate();
    let mut lap = None;
    let mut due = pin!(scheduler(stream::poll_fn(move |_| match keys.next() {
        Some((at, message)) => {
            if at == count {
                lap = Some(Stopwatch::start());
            }
            Poll::Ready(Some(ScheduleRequest { message, run_at: Instant::now() }))
        }
        None => {
            if let Some(lap) = lap.take() {
                watch.stop(lap);
            }
            Poll::Pending
        }
    })));
    usize::from(due.next().await.is_some())
}

async fn steady(keys: Vec<Key>, watch: &mut Stopwatch) -> usize {
    let count = keys.len();
    let (requests, mut sent) = mpsc::unbounded_channel();
    let request = |message| ScheduleRequest { message, run_at: Instant::now() };
    let add = |message| requests.send(request(message));
    let pending: Vec<_> = keys.into_iter().map(request).collect();
    let mut due =
        pin!(scheduler(stream::iter(pending).chain(stream::poll_fn(move |context| sent.poll_recv(context)))));
    // All of them are taken in before the first one is given.
    if let Some(first) = due.next().await {
        _ = add(first);
    }
    let lap = Stopwatch::start();
    let mut got = 0;
    for _ in 0..count {
        let Some(key) = due.next().await else { break };
        _ = add(key);
        got += 1;
    }
    watch.stop(lap);
    got
}
