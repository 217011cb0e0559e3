//! How a manager begins, what it does from time to time, and how it ends.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch as channel;
use tokio::time::{MissedTickBehavior, timeout};

use super::entry::Life;
use super::joining::ended;
use super::key::KeyParams;
use super::state::Phase;
use super::{Inner, Shutdown};
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
        let (stopped, closed) = {
            let mut state = self.lock();
            state.phase = Phase::Stopped;
            self.take_all(&mut state)
        };
        self.tell_the_end();
        let mut tasks = std::mem::take(&mut *self.tasks());
        let all = async {
            while tasks.workers.join_next().await.is_some() {}
            // Workers set calls aside until they end.
            let more = std::mem::take(&mut self.tasks().aside);
            for mut aside in [std::mem::take(&mut tasks.aside), more] {
                while aside.join_next().await.is_some() {}
            }
        };
        let mut busy = Vec::new();
        if timeout(deadline, all).await.is_err() {
            let is_busy = stopped.iter().filter(|entry| *entry.busy.borrow());
            busy = is_busy.map(|entry| KeyParams::clone(&entry.key)).collect();
            for entry in &stopped {
                entry.turn(&Life::Stopped, Life::Cut);
            }
            let mut rest = std::mem::take(&mut *self.tasks());
            for set in [&mut tasks.workers, &mut tasks.aside, &mut rest.workers, &mut rest.aside] {
                set.abort_all();
                let _ = timeout(TO_DROP, async { while set.join_next().await.is_some() {} }).await;
                // What blocks its thread cannot be waited for.
                set.detach_all();
            }
        }
        ended(closed).await;
        Shutdown { stopped: stopped.len(), busy }
    }

    /// Everything is told to end, and nothing waited for.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.phase = Phase::Stopped;
        let (stopped, closed) = self.take_all(&mut state);
        drop(state);
        self.tell_the_end();
        let mut tasks = self.tasks();
        tasks.workers.abort_all();
        tasks.aside.abort_all();
        drop((stopped, closed));
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
