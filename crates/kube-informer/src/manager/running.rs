//! How a manager begins, what it does from time to time, and how it ends.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::sync::watch as channel;
use tokio::time::{MissedTickBehavior, timeout};

use super::entry::Life;
use super::joining::wait_for;
use super::key::KeyParams;
use super::state::Phase;
use super::{Inner, Shutdown, Tasks};
use crate::workqueue::rate_limit::Exponential;
use crate::workqueue::{self, WorkQueue};

/// How long it may take to drop a task that is told to end.
const TO_DROP: Duration = Duration::from_secs(1);

impl Inner {
    pub(super) fn start(self: &Arc<Self>) {
        let settings = self.settings();
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return;
        }
        state.phase = Phase::Started;
        let (first, longest) = settings.retries;
        let mut queue = workqueue::Settings::default().limiter(Exponential::new(first, longest));
        if let Some(metrics) = &settings.metrics {
            queue = queue.metrics(metrics.queues(), &*settings.name);
        }
        // The phase says that there is none.
        let _ = self.queue.set(WorkQueue::new(queue));
        for entry in state.entries.values() {
            self.queue_up(entry);
        }
        let runtime = self.factory.runtime();
        let mut tasks = self.tasks();
        for _ in 0..settings.workers {
            let work = Arc::clone(self).work(self.stopped.subscribe());
            tasks.workers.spawn_on(work, runtime);
        }
        tasks.workers.spawn_on(keep_house(self.this.clone(), self.stopped.subscribe()), runtime);
    }

    pub(super) async fn shutdown(&self, deadline: Duration) -> Shutdown {
        let _one = self.ending.lock().await;
        let (stopped, endings, closing) = {
            let mut state = self.lock();
            state.phase = Phase::Stopped;
            let (stopped, endings) = self.take_all(&mut state);
            (stopped, endings, state.closing.clone())
        };
        self.tell_the_end();
        let mut busy = Vec::new();
        if timeout(deadline, self.join()).await.is_err() {
            for entry in endings.iter().filter_map(|ending| ending.entry.upgrade()) {
                busy.extend(entry.is_busy().then(|| KeyParams::clone(&entry.key)));
                entry.turn(&Life::Stopped, Life::Cut);
            }
            busy.sort();
            let mut tasks = std::mem::take(&mut *self.tasks());
            for set in [&mut tasks.workers, &mut tasks.aside] {
                set.abort_all();
                let _ = timeout(TO_DROP, async { while set.join_next().await.is_some() {} }).await;
                // What blocks its thread cannot be waited for.
                set.detach_all();
            }
        }
        for feed in closing {
            wait_for(feed).await;
        }
        self.lock().sweep();
        Shutdown { stopped, busy }
    }

    /// Waits for the ends of all workers, and then of the calls that they have set aside. Whoever stops waiting leaves the
    /// tasks to the next one.
    async fn join(&self) {
        poll_fn(|cx| {
            let Tasks { workers, aside } = &mut *self.tasks();
            while ready!(workers.poll_join_next(cx)).is_some() {}
            while ready!(aside.poll_join_next(cx)).is_some() {}
            Poll::Ready(())
        })
        .await;
    }

    /// Everything is told to end, and nothing waited for.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.phase = Phase::Stopped;
        let stopped = self.take_all(&mut state);
        drop(state);
        self.tell_the_end();
        let mut tasks = self.tasks();
        tasks.workers.abort_all();
        tasks.aside.abort_all();
        drop(tasks);
        drop(stopped);
    }

    fn tell_the_end(&self) {
        self.stopped.send_replace(true);
        if let Some(queue) = self.queue.get() {
            queue.shut_down();
        }
        self.requests.close();
    }
}

/// Does from time to time what has to be done.
async fn keep_house(inner: Weak<Inner>, mut stopped: channel::Receiver<bool>) {
    let Some(period) = inner.upgrade().map(|inner| inner.settings().health_check) else { return };
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        inner.keep_house();
    }
}
