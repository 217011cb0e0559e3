//! Jobs: pods that end, until enough have ended well or too many badly.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::cluster::{Kind, Who, count, int, set_count};
use super::condition::now;
use super::condition::{self, Condition};
use super::index::PodFacts;
use super::{Simulator, pod};
use crate::api::text;
use crate::object::Stored;

const COMPONENT: &str = "job-controller";
const STAMPS: &[&str] = &["lastProbeTime"];
/// The first and the longest pause after a failure, in seconds.
const BACK_OFF: (f64, f64) = (10.0, 600.0);

/// What the status has no precise time for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    /// How many pods had failed, and when that was noticed.
    failed: Option<(i64, Instant)>,
    finished: Option<Instant>,
}

/// How far a Job is.
struct Progress {
    active: i64,
    ready: i64,
    terminating: i64,
    succeeded: i64,
    failed: i64,
}

impl Simulator {
    pub(super) fn sync_job(&mut self, job: &Arc<Stored>) {
        let value = job.value();
        if job.deleting {
            return;
        }
        let old = value.get("status").cloned().unwrap_or_default();
        if condition::is_true(&old, "Complete") || condition::is_true(&old, "Failed") {
            return self.expire_job(job, &value);
        }
        let tally = self.index.tally(&job.uid);
        let progress = Progress {
            active: tally.active as i64,
            ready: tally.ready as i64,
            terminating: tally.terminating as i64,
            // A pod that has ended and is deleted still counts.
            succeeded: (tally.succeeded as i64).max(count(&old, "/succeeded")),
            failed: (tally.failed as i64).max(count(&old, "/failed")),
        };
        let suspended = value.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
        let mut status = old.clone();
        let end = if suspended { None } else { end_of(&value, &progress) };
        match end {
            Some(end) => self.end_job(job, &value, &mut status, &progress, end),
            None if suspended => self.suspend_job(job, &mut status),
            None => {
                if text(&status, "/startTime").is_empty() {
                    status["startTime"] = now().into();
                }
                if condition::is_true(&status, "Suspended") {
                    let resumed = Condition {
                        kind: "Suspended",
                        status: "False",
                        reason: "JobResumed",
                        message: "Job resumed",
                    };
                    condition::set(&mut status, resumed, STAMPS);
                }
                self.run_job(job, &value, &progress);
            }
        }
        set_count(&mut status, "active", self.index.tally(&job.uid).active as i64);
        set_count(&mut status, "succeeded", progress.succeeded);
        set_count(&mut status, "failed", progress.failed);
        status["ready"] = progress.ready.into();
        status["terminating"] = progress.terminating.into();
        status["uncountedTerminatedPods"] = serde_json::json!({});
        if status != old {
            self.set_status(Who::ControllerManager, Kind::Job, job, &status);
        }
    }

    /// As many pods at once as allowed, and no more than are still needed.
    fn run_job(&mut self, job: &Arc<Stored>, value: &Value, progress: &Progress) {
        let parallelism = int(value, "/spec/parallelism").unwrap_or(1);
        let wanted = match int(value, "/spec/completions") {
            Some(completions) => parallelism.min(completions - progress.succeeded),
            // Without a number, the first success ends the making of pods.
            None if progress.succeeded > 0 => progress.active.min(parallelism),
            None => parallelism,
        };
        if progress.active > wanted {
            let surplus = usize::try_from(progress.active - wanted).unwrap_or_default();
            self.stop_pods(job, surplus);
        } else if progress.active < wanted && self.may_retry(job, progress.failed) {
            let template = value.pointer("/spec/template").unwrap_or(&Value::Null);
            let mut pod = pod::from_template(template, &self.reference(Kind::Job, job));
            pod["metadata"]["generateName"] = pod::generate_name(&job.name).into();
            for _ in progress.active..wanted.min(progress.active + 100) {
                match self.make_pod(COMPONENT, Kind::Job, job, pod.clone()) {
                    Ok(made) => {
                        let message = format!("Created pod: {}", made.name);
                        self.say(job, COMPONENT, Kind::Job, "SuccessfulCreate", message);
                    }
                    Err(_) => return,
                }
            }
        }
    }

    /// After a failure the next pod waits, twice as long each time.
    fn may_retry(&mut self, job: &Stored, failed: i64) -> bool {
        if failed == 0 {
            return true;
        }
        let clock = self.jobs.entry(job.uid.clone()).or_default();
        let now = Instant::now();
        let since = match clock.failed {
            Some((known, since)) if known == failed => since,
            _ => now,
        };
        clock.failed = Some((failed, since));
        let doubled = BACK_OFF.0 * 2_f64.powi(i32::try_from(failed - 1).unwrap_or(16).min(16));
        let due = since + self.dice.real(doubled.min(BACK_OFF.1));
        if due > now {
            self.later(Kind::Job, &job.key, due);
        }
        due <= now
    }

    fn stop_pods(&mut self, job: &Arc<Stored>, most: usize) {
        let mut active: Vec<&PodFacts> = self.index.owned(&job.uid).filter(|pod| pod.is_active()).collect();
        active.sort_by_key(|pod| (pod.phase, pod.ready, std::cmp::Reverse(pod.born)));
        let pods: Vec<Arc<Stored>> =
            active.into_iter().take(most).map(|pod| Arc::clone(&pod.object)).collect();
        for pod in pods {
            if self.delete(Kind::Pod, &pod) {
                self.say(job, COMPONENT, Kind::Job, "SuccessfulDelete", format!("Deleted pod: {}", pod.name));
            }
        }
    }

    fn suspend_job(&mut self, job: &Arc<Stored>, status: &mut Value) {
        self.stop_pods(job, usize::MAX);
        let suspended =
            Condition { kind: "Suspended", status: "True", reason: "JobSuspended", message: "Job suspended" };
        condition::set(status, suspended, STAMPS);
    }

    fn end_job(
        &mut self,
        job: &Arc<Stored>,
        value: &Value,
        status: &mut Value,
        progress: &Progress,
        end: End,
    ) {
        self.stop_pods(job, usize::MAX);
        let (before, kind, reason, message) = end.says();
        condition::set(status, Condition { kind: before, status: "True", reason, message }, STAMPS);
        // The last word is only said when nothing runs any more.
        if progress.active > 0 || progress.terminating > 0 {
            return;
        }
        condition::set(status, Condition { kind, status: "True", reason, message }, STAMPS);
        if kind == "Complete" {
            status["completionTime"] = now().into();
            self.say(job, COMPONENT, Kind::Job, "Completed", "Job completed".to_owned());
        } else {
            self.warn(job, COMPONENT, Kind::Job, reason, message.to_owned());
        }
        self.jobs.entry(job.uid.clone()).or_default().finished = Some(Instant::now());
        self.expire_job(job, value);
    }

    /// A finished Job goes after its time to live.
    fn expire_job(&mut self, job: &Arc<Stored>, value: &Value) {
        let Some(seconds) = int(value, "/spec/ttlSecondsAfterFinished") else { return };
        let clock = self.jobs.entry(job.uid.clone()).or_default();
        let since = *clock.finished.get_or_insert_with(Instant::now);
        let wait: Duration = self.dice.real(seconds.max(0) as f64);
        if since + wait > Instant::now() {
            self.later(Kind::Job, &job.key, since + wait);
        } else if condition::is_true(value.get("status").unwrap_or(&Value::Null), "Complete")
            || condition::is_true(value.get("status").unwrap_or(&Value::Null), "Failed")
        {
            self.delete(Kind::Job, job);
        }
    }
}

/// How a Job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    TooManyFailures,
}

impl End {
    /// (the condition that announces it, the final one, reason, message)
    fn says(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Complete => {
                let message = "Reached expected number of succeeded pods";
                ("SuccessCriteriaMet", "Complete", "CompletionsReached", message)
            }
            Self::TooManyFailures => {
                let message = "Job has reached the specified backoff limit";
                ("FailureTarget", "Failed", "BackoffLimitExceeded", message)
            }
        }
    }
}

fn end_of(job: &Value, progress: &Progress) -> Option<End> {
    if progress.failed > int(job, "/spec/backoffLimit").unwrap_or(6) {
        return Some(End::TooManyFailures);
    }
    let done = match int(job, "/spec/completions") {
        Some(completions) => progress.succeeded >= completions,
        None => progress.succeeded > 0 && progress.active == 0,
    };
    done.then_some(End::Complete)
}
