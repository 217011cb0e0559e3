//! What is said about an ElastiService: its status, with conditions, and events where something changed.
//!
//! A status says what was done, never what was tried: it is made after the objects are as it says. It is the same, byte by
//! byte, where nothing changed, and then it is not written: `lastReconciledTime` is when the mode was last switched.
//!
//! | condition | says |
//! |---|---|
//! | `Ready` | whether everything that is wanted is done; if not, why not and what to do |
//! | `TargetFound` | whether the scale target is there and can be read; `Unknown` where what is known of it may be old |
//! | `ServiceFound` | whether the Service is there, and something can be done for it |
//! | `Redirected` | whether requests go to the resolver now, and why |
//! | `NotActedOn` | what the spec asks for that this version does not do; absent where it does everything |
//!
//! An event is recorded when a condition changes its status or reason for the worse, and when the mode is switched.

use jiff::Timestamp;
use kube_informer::write::conditions::{self, Proposal};

use crate::api::{Autoscaler, ElastiServiceSpec, ElastiServiceStatus, Mode};

pub(super) const READY: &str = "Ready";
pub(super) const TARGET_FOUND: &str = "TargetFound";
pub(super) const SERVICE_FOUND: &str = "ServiceFound";
pub(super) const REDIRECTED: &str = "Redirected";
pub(super) const NOT_ACTED_ON: &str = "NotActedOn";

/// The words of a condition are cut there; the server takes 32 KiB.
const MOST_WORDS: usize = 1024;

/// What was found and done in one reconcile.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Report {
    /// Who answers now; nothing, where it was left as it was.
    pub(super) mode: Option<Mode>,
    /// How many replicas the target is to have.
    pub(super) replicas: Replicas,
    said: Vec<Said>,
}

/// How many replicas a target is to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Replicas {
    /// It is not known: what was said stays.
    #[default]
    Unknown,
    /// There is no target.
    NoTarget,
    Are(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    about: &'static str,
    is: Option<bool>,
    reason: &'static str,
    words: String,
    /// What is wrong makes it not ready, and is told to people.
    wrong: bool,
}

/// Something to tell people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct News {
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) action: &'static str,
    pub(super) words: String,
}

impl Report {
    /// All is well with that.
    pub(super) fn good(&mut self, about: &'static str, reason: &'static str, words: impl Into<String>) {
        self.say(about, Some(true), reason, words, false);
    }

    /// Something is wrong: it is not ready for that reason, and people are told.
    pub(super) fn wrong(&mut self, about: &'static str, reason: &'static str, words: impl Into<String>) {
        self.say(about, Some(false), reason, words, true);
    }

    /// Neither good nor bad.
    pub(super) fn neutral(
        &mut self,
        about: &'static str,
        is: impl Into<Option<bool>>,
        reason: &'static str,
        words: impl Into<String>,
    ) {
        self.say(about, is.into(), reason, words, false);
    }

    /// It is so, and that is wrong.
    pub(super) fn wrong_though(
        &mut self,
        about: &'static str,
        reason: &'static str,
        words: impl Into<String>,
    ) {
        self.say(about, Some(true), reason, words, true);
    }

    /// It is not known whether it is so, and that is wrong.
    pub(super) fn unsure(&mut self, about: &'static str, reason: &'static str, words: impl Into<String>) {
        self.say(about, None, reason, words, true);
    }

    /// Why its requests do not go to the resolver, if they do not: what else is wrong does not matter.
    pub(super) fn against_redirect(&self) -> Option<String> {
        let words = |said: &Said| said.words.clone();
        let mut wrong = self.said.iter().filter(|said| said.wrong);
        if self.mode != Some(Mode::Proxy) {
            let first = wrong.next().map(words);
            return Some(first.unwrap_or_else(|| "nothing can be done for it".to_owned()));
        }
        let is_against = |said: &&Said| match said.about {
            REDIRECTED => true,
            // What may be old can be redirected; what is not there cannot be put to sleep.
            TARGET_FOUND | SERVICE_FOUND => said.is == Some(false),
            _ => false,
        };
        wrong.find(is_against).map(words)
    }

    fn say(
        &mut self,
        about: &'static str,
        is: Option<bool>,
        reason: &'static str,
        words: impl Into<String>,
        wrong: bool,
    ) {
        let mut words = steady(&words.into());
        if words.len() > MOST_WORDS {
            let end = (0..=MOST_WORDS).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
            words.truncate(end);
        }
        self.said.retain(|said| said.about != about);
        self.said.push(Said { about, is, reason, words, wrong });
    }

    /// What the spec asks for that is not done.
    pub(super) fn not_acted_on(&mut self, spec: &ElastiServiceSpec) {
        let mut names = Vec::new();
        names.extend(spec.triggers.as_ref().filter(|all| !all.is_empty()).map(|_| "triggers"));
        names.extend(spec.autoscaler.as_ref().map(|_| "autoscaler"));
        names.extend(spec.enabled_period.as_ref().map(|_| "enabledPeriod"));
        if !names.is_empty() {
            let words = format!(
                "{} {} kept and not acted on by this version: the target is not put to sleep by itself. It is redirected when \
                 somebody scales it to zero, and woken when it is asked for",
                names.join(", "),
                if names.len() == 1 { "is" } else { "are" },
            );
            let keda = spec.autoscaler.as_ref().filter(|autoscaler| autoscaler.type_ == "keda");
            let words = match keda {
                // KubeElasti pauses it whenever it puts a target to sleep.
                Some(Autoscaler { name, .. }) => format!(
                    "{words}. A ScaledObject that is paused at 0 replicas scales it back at once: unpause {name}, by removing \
                     its annotations autoscaling.keda.sh/paused and autoscaling.keda.sh/paused-replicas"
                ),
                None => words,
            };
            self.neutral(NOT_ACTED_ON, true, "NotSupportedYet", words);
        }
    }

    /// The status that follows from it, and what is new to people.
    pub(super) fn follow(
        mut self,
        old: &ElastiServiceStatus,
        generation: i64,
        now: Timestamp,
    ) -> (ElastiServiceStatus, Vec<News>) {
        match self.said.iter().find(|said| said.wrong) {
            Some(Said { about, reason, words, .. }) => {
                // What is said of something else is told there.
                let (reason, words, wrong) = (*reason, words.clone(), *about == READY);
                self.say(READY, Some(false), reason, words, wrong);
            }
            None => {
                let words = match self.mode {
                    Some(Mode::Proxy) => "requests go to the resolver, which wakes the target",
                    Some(Mode::Serve) => "the target's own pods answer",
                    None => "nothing is to be done",
                };
                self.good(READY, "Reconciled", words);
            }
        }
        let mut status = old.clone();
        let mut all = status.conditions.take().unwrap_or_default();
        let mut news = Vec::new();
        for said in &self.said {
            let before =
                conditions::get(&all, said.about).map(|old| (old.status.clone(), old.reason.clone()));
            let mut proposal = Proposal::new(said.about, said.is, said.reason).message(&said.words);
            if generation > 0 {
                proposal = proposal.observed(generation);
            }
            conditions::set_at(&mut all, proposal, now);
            let after = conditions::get(&all, said.about).map(|new| (new.status.clone(), new.reason.clone()));
            if said.wrong && before != after {
                news.push(News {
                    warning: true,
                    reason: said.reason.to_owned(),
                    action: said.about,
                    words: said.words.clone(),
                });
            }
        }
        for known in [TARGET_FOUND, SERVICE_FOUND, REDIRECTED, NOT_ACTED_ON] {
            if !self.said.iter().any(|said| said.about == known) {
                conditions::remove(&mut all, known);
            }
        }
        status.conditions = Some(all);
        status.observed_generation = Some(generation).filter(|generation| *generation > 0);
        match self.replicas {
            Replicas::Unknown => {}
            Replicas::NoTarget => status.replicas = None,
            Replicas::Are(replicas) => status.replicas = Some(replicas),
        }
        if let Some(mode) = self.mode
            && status.mode.as_deref() != Some(mode.as_str())
        {
            status.mode = Some(mode.as_str().to_owned());
            status.last_reconciled_time = Some(Timestamp::from_second(now.as_second()).unwrap_or(now));
            let (reason, words) = match mode {
                Mode::Proxy => ("SwitchedToProxy", "requests go to the resolver from now on"),
                // Whether anybody answers is another matter.
                Mode::Serve if self.said.iter().any(|said| said.about == REDIRECTED && said.wrong) => {
                    ("SwitchedToServe", "requests do not go to the resolver any more")
                }
                Mode::Serve => ("SwitchedToServe", "requests go to the target's own pods from now on"),
            };
            news.push(News {
                warning: false,
                reason: reason.to_owned(),
                action: "SwitchMode",
                words: words.to_owned(),
            });
        }
        (status, news)
    }
}

/// Words without what differs each time that something is tried in vain: since when, and until when. Said again, they are
/// the same, and nothing is written.
fn steady(words: &str) -> String {
    let mut steady = words.to_owned();
    for (begin, end, instead) in [(" (tried again after ", ")", ""), ("stale since ", ": ", "stale: ")] {
        while let Some(at) = steady.find(begin)
            && let Some(length) = steady.get(at + begin.len()..).and_then(|rest| rest.find(end))
        {
            steady.replace_range(at..at + begin.len() + length + end.len(), instead);
        }
    }
    steady
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{EnabledPeriod, Trigger};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn serving() -> Report {
        let mut report = Report { mode: Some(Mode::Serve), replicas: Replicas::Are(2), ..Report::default() };
        report.good(TARGET_FOUND, "Found", "there");
        report.neutral(REDIRECTED, false, "PodsReady", "1 pod is ready");
        report
    }

    #[test]
    fn a_status_that_says_the_same_is_the_same() {
        let (first, news) = serving().follow(&ElastiServiceStatus::default(), 3, at(100));
        assert_eq!(first.mode.as_deref(), Some("serve"));
        assert_eq!((first.observed_generation, first.replicas), (Some(3), Some(2)));
        assert_eq!(first.last_reconciled_time, Some(at(100)));
        assert_eq!(news.iter().map(|each| &*each.reason).collect::<Vec<_>>(), ["SwitchedToServe"]);
        let (second, news) = serving().follow(&first, 3, at(200));
        assert_eq!(second, first);
        assert!(news.is_empty());
    }

    #[test]
    fn the_time_is_that_of_the_last_switch() {
        let (old, _) = serving().follow(&ElastiServiceStatus::default(), 1, at(100));
        let (same, _) = Report { mode: Some(Mode::Serve), ..Report::default() }.follow(&old, 2, at(200));
        assert_eq!(same.last_reconciled_time, Some(at(100)));
        let (switched, _) = Report { mode: Some(Mode::Proxy), ..Report::default() }.follow(&same, 2, at(300));
        assert_eq!(switched.last_reconciled_time, Some(at(300)));
        let (left, _) = Report::default().follow(&switched, 3, at(400));
        assert_eq!((left.mode, left.replicas), (Some("proxy".to_owned()), Some(2)), "left as it was");
        let gone = Report { replicas: Replicas::NoTarget, ..Report::default() };
        assert_eq!(gone.follow(&switched, 3, at(400)).0.replicas, None, "nobody has any");
    }

    #[test]
    fn nobody_is_said_to_answer_where_requests_are_not_redirected_though_they_should_be() {
        let (old, _) = Report { mode: Some(Mode::Proxy), ..Report::default() }.follow(
            &ElastiServiceStatus::default(),
            1,
            at(1),
        );
        let mut report = Report { mode: Some(Mode::Serve), ..Report::default() };
        report.wrong(REDIRECTED, "Headless", "name another Service");
        let (_, news) = report.follow(&old, 1, at(2));
        let switched = news.iter().find(|each| each.reason == "SwitchedToServe").unwrap();
        assert!(!switched.words.contains("own pods"), "{}", switched.words);
    }

    #[test]
    fn what_is_wrong_is_why_it_is_not_ready_and_is_told_once() {
        let mut wrong = Report::default();
        wrong.wrong(SERVICE_FOUND, "NoPorts", "give it ports");
        let (status, news) = wrong.clone().follow(&ElastiServiceStatus::default(), 1, at(1));
        let ready = conditions::get(status.conditions.as_deref().unwrap(), READY).unwrap().clone();
        assert_eq!((&*ready.status, &*ready.reason, &*ready.message), ("False", "NoPorts", "give it ports"));
        assert_eq!(ready.observed_generation, Some(1));
        let [told] = &news[..] else { panic!("{news:?}") };
        assert!(told.warning && told.reason == "NoPorts" && told.action == SERVICE_FOUND);
        let (again, news) = wrong.follow(&status, 1, at(2));
        assert_eq!((again, news), (status.clone(), Vec::new()));
        let (well, _) = serving().follow(&status, 1, at(3));
        let all = well.conditions.unwrap();
        assert!(conditions::is_true(&all, READY));
        assert!(conditions::get(&all, SERVICE_FOUND).is_none(), "what is not said any more is gone");
    }

    #[test]
    fn only_what_concerns_the_redirect_is_against_it() {
        let redirected = || {
            let mut report = Report { mode: Some(Mode::Proxy), ..Report::default() };
            report.good(TARGET_FOUND, "Found", "there");
            report.neutral(REDIRECTED, true, "TargetNotReady", "it is about to sleep");
            report
        };
        let mut report = redirected();
        assert_eq!(report.against_redirect(), None);
        report.wrong(READY, "WriteFailed", "another target may still sleep");
        report.unsure(TARGET_FOUND, "Stale", "it may be old");
        assert_eq!(report.against_redirect(), None);
        report.wrong(TARGET_FOUND, "NotFound", "it is not there");
        assert_eq!(report.against_redirect().as_deref(), Some("it is not there"));
        let mut report = redirected();
        report.wrong(READY, "WriteFailed", "another target may still sleep");
        report.wrong_though(REDIRECTED, "FamilyNotRedirected", "by IPv4 only");
        assert_eq!(report.against_redirect().as_deref(), Some("by IPv4 only"));
        assert_eq!(serving().against_redirect().as_deref(), Some("nothing can be done for it"));
        let mut report = Report::default();
        report.wrong(READY, "Conflict", "another one is older");
        assert_eq!(report.against_redirect().as_deref(), Some("another one is older"));
    }

    #[test]
    fn what_is_not_acted_on_is_named() {
        let mut report = serving();
        report.not_acted_on(&ElastiServiceSpec::default());
        let (status, _) = report.clone().follow(&ElastiServiceStatus::default(), 1, at(1));
        assert!(conditions::get(status.conditions.as_deref().unwrap(), NOT_ACTED_ON).is_none());
        let spec = ElastiServiceSpec {
            triggers: Some(vec![Trigger::default()]),
            autoscaler: Some(Autoscaler::default()),
            enabled_period: Some(EnabledPeriod::default()),
            ..ElastiServiceSpec::default()
        };
        report.not_acted_on(&spec);
        let (status, _) = report.follow(&ElastiServiceStatus::default(), 1, at(1));
        let all = status.conditions.unwrap();
        let said = conditions::get(&all, NOT_ACTED_ON).unwrap();
        assert!(said.message.starts_with("triggers, autoscaler, enabledPeriod are kept"), "{}", said.message);
        assert!(!said.message.contains("ScaledObject"), "{}", said.message);
        assert!(conditions::is_true(&all, READY), "it is done as far as it can be");
        // One that KubeElasti left paused would undo every wake.
        let keda = Autoscaler { type_: "keda".to_owned(), name: "web".to_owned() };
        let mut report = serving();
        report.not_acted_on(&ElastiServiceSpec { autoscaler: Some(keda), ..ElastiServiceSpec::default() });
        let all = report.follow(&ElastiServiceStatus::default(), 1, at(1)).0.conditions.unwrap();
        let said = conditions::get(&all, NOT_ACTED_ON).unwrap();
        assert!(said.message.contains("unpause web"), "{}", said.message);
    }

    #[test]
    fn words_do_not_say_when_it_is_tried_again() {
        let words = |since: &str, after: &str| {
            let words = format!(
                "pods are not known: stale since {since}: LIST /pods: forbidden (tried again after {after}); allow it"
            );
            let mut report = Report::default();
            report.wrong(TARGET_FOUND, "Forbidden", words);
            report.said[0].words.clone()
        };
        let said = words("2026-01-01T00:00:00Z", "1.3s");
        assert_eq!(said, "pods are not known: stale: LIST /pods: forbidden; allow it");
        assert_eq!(words("2026-01-01T00:00:07Z", "12.0s"), said);
        assert_eq!(steady("stale since ever"), "stale since ever");
    }

    #[test]
    fn long_words_are_cut() {
        let mut report = Report::default();
        report.wrong(TARGET_FOUND, "NotFound", "ü".repeat(2000));
        assert_eq!(report.said[0].words.len(), MOST_WORDS);
    }
}
