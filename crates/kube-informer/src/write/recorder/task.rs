//! Writes events, one after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Counts;
use super::correlate::{Correlator, Report, Say};
use crate::connect::cause;

/// How often, and how far apart, it is tried to write an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tries {
    pub(super) times: u32,
    pub(super) apart: Duration,
}

impl Default for Tries {
    fn default() -> Self {
        Self { times: 12, apart: Duration::from_secs(10) }
    }
}

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long what is queued may take, after all handles are gone: long enough for a second try.
const GRACE: Duration = Duration::from_secs(30);

pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) correlator: Correlator,
    pub(super) counts: Arc<Counts>,
    pub(super) tries: Tries,
}

/// How a request went.
enum Outcome {
    Done,
    /// It is not there (any more).
    Missing,
    /// It will not be better the next time.
    Refused(String),
    Failed(String),
}

impl Writer {
    pub(super) async fn run(
        mut self,
        mut queue: mpsc::Receiver<Report>,
        end: watch::Receiver<Option<Instant>>,
        ended: watch::Sender<bool>,
    ) {
        let over = over(end.clone());
        let write = async {
            while let Some(report) = next(&mut queue, &end).await {
                match self.correlator.say(report, Instant::now(), Timestamp::now()) {
                    Say::Nothing => _ = self.counts.limited.fetch_add(1, Ordering::Relaxed),
                    Say::Create(event) => self.write(&event, None).await,
                    Say::Count { event, count, last } => self.write(&event, Some((count, last))).await,
                }
            }
        };
        tokio::select! {
            () = write => {}
            () = over => {}
        }
        queue.close();
        let mut left = 0;
        while queue.try_recv().is_ok() {
            left += 1;
        }
        if left > 0 {
            tracing::warn!(events = left, "events were dropped: they could not be written before the end");
        }
        self.counts.dropped.fetch_add(left, Ordering::Relaxed);
        ended.send_replace(true);
    }

    /// Writes an event, or counts it on.
    async fn write(&self, event: &Event, series: Option<(i32, Timestamp)>) {
        let events: Api<Event> =
            Api::namespaced(self.client.clone(), event.metadata.namespace.as_deref().unwrap_or("default"));
        let mut why = String::new();
        for time in 0..self.tries.times {
            if time > 0 {
                sleep(self.tries.apart).await;
            }
            let outcome = match series {
                None => self.create(&events, event).await,
                Some((count, last)) => match self.count(&events, event, count, last).await {
                    // Events are kept for an hour or so.
                    Outcome::Missing => self.create(&events, event).await,
                    outcome => outcome,
                },
            };
            match outcome {
                Outcome::Done => return,
                Outcome::Missing => {
                    why = "its namespace is not there".to_owned();
                    break;
                }
                Outcome::Refused(text) => {
                    why = text;
                    break;
                }
                Outcome::Failed(text) => {
                    tracing::debug!(error = text, time, "an event cannot be written, and is tried again");
                    why = text;
                }
            }
        }
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let about = event.regarding.as_ref().and_then(|about| about.name.as_deref()).unwrap_or_default();
        tracing::warn!(about, reason = event.reason.as_deref(), why, "an event was given up");
    }

    async fn create(&self, events: &Api<Event>, event: &Event) -> Outcome {
        let outcome = outcome(timeout(PATIENCE, events.create(&PostParams::default(), event)).await);
        if matches!(outcome, Outcome::Done) {
            self.counts.created.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    async fn count(&self, events: &Api<Event>, event: &Event, count: i32, last: Timestamp) -> Outcome {
        let patch = json!({ "series": { "count": count, "lastObservedTime": MicroTime(last) } });
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        let outcome = outcome(timeout(PATIENCE, events.patch(name, &how, &patch)).await);
        if matches!(outcome, Outcome::Done) {
            self.counts.counted.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

/// What to make of an answer, or of none.
fn outcome(answer: Result<Result<Event, Error>, tokio::time::error::Elapsed>) -> Outcome {
    match answer {
        Ok(Ok(_)) => Outcome::Done,
        Ok(Err(error)) => match &error {
            // Names are not given twice: it is this one, and the answer was lost.
            Error::Api(status) if status.is_already_exists() => Outcome::Done,
            Error::Api(status) if status.code == 404 => Outcome::Missing,
            Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 => {
                Outcome::Refused(cause::of_request(&error))
            }
            _ => Outcome::Failed(cause::of_request(&error)),
        },
        Err(_) => Outcome::Failed(format!("no answer within {PATIENCE:?}")),
    }
}

/// The next one that is queued; `None` where all handles are gone, or it is to end, and none is left.
async fn next(queue: &mut mpsc::Receiver<Report>, end: &watch::Receiver<Option<Instant>>) -> Option<Report> {
    let mut end = end.clone();
    tokio::select! {
        biased;
        report = queue.recv() => report,
        // Also where the other side is gone: then the queue is closed as well.
        _ = end.wait_for(Option::is_some) => None,
    }
}

/// Resolves when it must have ended.
async fn over(mut end: watch::Receiver<Option<Instant>>) {
    let at = match end.wait_for(Option::is_some).await {
        Ok(at) => *at,
        Err(_) => None,
    };
    sleep_until(at.unwrap_or_else(|| Instant::now() + GRACE)).await;
}
