//! Our work queue as a contestant.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kube_informer::workqueue::rate_limit::Exponential;
use kube_informer::workqueue::{Settings, WorkQueue};
use kube_informer_bench_queue::{Case, Stopwatch, Tally, Task, WORKERS, delay, mixed, names};

/// Namespace and name in one shared text, as controllers have them: a clone is a pointer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    text: Arc<str>,
    /// Where the name begins.
    split: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let task = Task::from_arguments()?;
    // Not on the main thread, but where workers run.
    let (watch, tally) = tokio::spawn(play(task)).await?;
    println!("{}", task.measured(&watch, tally)?);
    Ok(())
}

async fn play(task: Task) -> (Stopwatch, Tally) {
    let keys: Vec<Key> = names(task.keys)
        .map(|(namespace, name)| Key { text: (namespace.clone() + &name).into(), split: namespace.len() })
        .collect();
    let other_order = mixed(keys.clone());
    let mut watch = Stopwatch::default();
    let (mut got, mut left, mut failing) = (0, 0, 0);
    for _ in 0..task.times {
        // Client-go's limiter remembers all keys, however many they are.
        let limiter = Exponential::default().failing_keys(task.keys);
        let queue = WorkQueue::new(Settings::default().limiter(limiter));
        got += once(task.case, &queue, keys.clone(), other_order.clone(), &mut watch).await;
        left += queue.len();
        failing += keys.iter().map(|key| queue.failures(key) as usize).sum::<usize>();
    }
    (watch, Tally { got, left: Some(left), failing: Some(failing) })
}

/// Plays it; how many keys workers got.
async fn once(
    case: Case,
    queue: &WorkQueue<Key>,
    keys: Vec<Key>,
    other_order: Vec<Key>,
    watch: &mut Stopwatch,
) -> usize {
    let count = keys.len();
    let mut got = 0;
    match case {
        Case::FillAndDrain => {
            let lap = Stopwatch::start();
            add(queue, keys);
            got = drain(queue, count).await;
            watch.stop(lap);
        }
        Case::FillAndDrainByFour => {
            let lap = Stopwatch::start();
            add(queue, keys);
            queue.shut_down();
            let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(worker(queue.clone()))).collect();
            for worker in workers {
                // A worker that panics has nothing to say; the others do its work.
                got += worker.await.unwrap_or_default();
            }
            watch.stop(lap);
        }
        Case::AddPending => {
            add(queue, keys);
            let lap = Stopwatch::start();
            add(queue, other_order);
            watch.stop(lap);
        }
        Case::Steady => {
            add(queue, keys);
            let lap = Stopwatch::start();
            for _ in 0..count {
                let Some(item) = queue.get().await else { break };
                let key = item.key().clone();
                drop(item);
                queue.add(key);
                got += 1;
            }
            watch.stop(lap);
        }
        Case::Delayed => {
            let lap = Stopwatch::start();
            for (at, key) in keys.into_iter().enumerate() {
                queue.add_after(key, delay(at));
            }
            got = drain(queue, count).await;
            watch.stop(lap);
        }
        Case::RateLimited => {
            let lap = Stopwatch::start();
            fail(queue, keys);
            for _ in 0..count {
                let Some(item) = queue.get().await else { break };
                item.forget();
                got += 1;
            }
            watch.stop(lap);
        }
        Case::Forget => {
            fail(queue, keys);
            got = drain(queue, count).await;
            let lap = Stopwatch::start();
            for key in &other_order {
                queue.forget(key);
            }
            watch.stop(lap);
        }
    }
    got
}

fn add(queue: &WorkQueue<Key>, keys: Vec<Key>) {
    for key in keys {
        queue.add(key);
    }
}

fn fail(queue: &WorkQueue<Key>, keys: Vec<Key>) {
    for key in keys {
        let _: Duration = queue.add_rate_limited(key);
    }
}

async fn drain(queue: &WorkQueue<Key>, count: usize) -> usize {
    let mut got = 0;
    for _ in 0..count {
        got += usize::from(queue.get().await.is_some());
    }
    got
}

async fn worker(queue: WorkQueue<Key>) -> usize {
    let mut got = 0;
    while let Some(item) = queue.get().await {
        drop(item);
        got += 1;
    }
    got
}
