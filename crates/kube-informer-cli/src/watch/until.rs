//! What ends a watch: one of the objects meets a condition.

use std::time::Duration;

use anyhow::bail;
use kube_informer::object::Object;

use super::story::Told;
use crate::condition::{Condition, Outcome};
use crate::show;

/// What is waited for, and what was seen of it.
#[derive(Debug)]
pub(super) struct Until {
    condition: Option<Condition>,
    /// What was seen last, in words.
    seen: Option<String>,
    /// The same, of the object that met it.
    met: Option<String>,
}

impl Until {
    pub(super) fn new(condition: Option<Condition>) -> Self {
        Self { condition, seen: None, met: None }
    }

    pub(super) fn is_met(&self) -> bool {
        self.met.is_some()
    }

    /// Whether the end of an object would meet it.
    pub(super) fn waits_for_deletion(&self) -> bool {
        self.met.is_none() && self.condition.as_ref().is_some_and(|condition| condition.check(None).is_met())
    }

    /// Which object met it, in words.
    pub(super) fn met(&self) -> Option<&str> {
        self.met.as_deref()
    }

    /// An object is there, in some state.
    ///
    /// # Errors
    ///
    /// Where the condition is none that objects can meet.
    pub(super) fn there(&mut self, object: &Object) -> anyhow::Result<()> {
        let (Some(condition), None) = (&self.condition, &self.met) else { return Ok(()) };
        let verdict = condition.check(Some(&show::document(object)?));
        let seen = format!("{} {}", name(object), verdict.seen);
        match verdict.outcome {
            Outcome::Met => self.met = Some(format!("{}: {condition} is met", name(object))),
            Outcome::NotYet => self.seen = Some(seen),
            Outcome::Never => bail!("--until {condition} can never be met: {seen}"),
        }
        Ok(())
    }

    /// An object that was named is not there.
    pub(super) fn missing(&mut self) {
        if let Some(condition) = &self.condition
            && condition.check(None).is_met()
        {
            self.met.get_or_insert_with(|| format!("{condition} is met: it is not there"));
        }
    }

    /// Something is told.
    ///
    /// # Errors
    ///
    /// As [`there`](Self::there).
    pub(super) fn told(&mut self, told: &Told) -> anyhow::Result<()> {
        match told {
            Told::Added(new) | Told::Modified { new, .. } => self.there(new),
            Told::Deleted { last, .. } => {
                if let Some(condition) = &self.condition
                    && condition.check(None).is_met()
                {
                    self.met = Some(format!("{}: {condition} is met", name(last)));
                }
                Ok(())
            }
            Told::Gap { .. } => Ok(()),
        }
    }

    /// The time is over.
    ///
    /// # Errors
    ///
    /// Where something was waited for.
    pub(super) fn late(&self, time: Duration) -> anyhow::Result<()> {
        let Some(condition) = &self.condition else { return Ok(()) };
        let seen = self.seen.as_deref().unwrap_or("no object was there");
        match time.is_zero() {
            true => bail!("--until {condition} is not met; seen: {seen}"),
            false => bail!(
                "--until {condition} was not met within {time:?}; last seen: {seen}; give it longer with --timeout"
            ),
        }
    }
}

/// `Pod shop/web`.
fn name(object: &Object) -> String {
    format!("{} {}", object.kind(), object.key())
}

#[cfg(test)]
mod tests {
    use kube_informer::encoding::{Codec, Encoding, Rules};
    use kube_informer::object::Intake;

    use super::*;

    /// A pod that is ready, or is not.
    fn pod(name: &str, ready: &str) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let text = format!(
            r#"{{"metadata":{{"namespace":"a","name":"{name}","uid":"1","resourceVersion":"1"}},
                 "status":{{"conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
        );
        Intake::new(codec).object(text.as_bytes()).unwrap()
    }

    fn waiting(condition: &str) -> Until {
        Until::new(Some(condition.parse().unwrap()))
    }

    fn added(name: &str, ready: &str) -> Told {
        Told::Added(pod(name, ready))
    }

    fn deleted(name: &str) -> Told {
        Told::Deleted { last: pod(name, "True"), certain: true }
    }

    #[test]
    fn where_nothing_is_waited_for_nothing_ends_it() {
        let mut until = Until::new(None);
        until.missing();
        until.there(&pod("x", "True")).unwrap();
        for told in [added("x", "True"), deleted("x"), Told::Gap { missed: 1 }] {
            until.told(&told).unwrap();
        }
        assert!(!until.is_met() && !until.waits_for_deletion());
        until.late(Duration::from_secs(1)).unwrap();
        until.late(Duration::ZERO).unwrap();
    }

    #[test]
    fn the_first_object_that_meets_it_is_the_one_that_is_named() {
        let mut until = waiting("condition=Ready");
        until.missing();
        until.there(&pod("x", "False")).unwrap();
        for told in [added("y", "False"), deleted("y"), Told::Gap { missed: 1 }] {
            until.told(&told).unwrap();
            assert_eq!(until.met(), None, "{told:?}");
        }
        let (old, new) = (pod("x", "False"), pod("x", "True"));
        until.told(&Told::Modified { old, new }).unwrap();
        until.told(&added("z", "True")).unwrap();
        assert_eq!(until.met(), Some("Pod a/x: condition=Ready is met"));
        // What is there at the beginning counts as well.
        let mut until = waiting("condition=Ready=False");
        until.there(&pod("x", "False")).unwrap();
        assert!(until.is_met());
    }

    #[test]
    fn create_is_met_by_what_is_there_or_comes() {
        let mut until = waiting("create");
        until.missing();
        until.told(&deleted("x")).unwrap();
        assert!(!until.is_met() && !until.waits_for_deletion());
        until.told(&added("x", "False")).unwrap();
        assert_eq!(until.met(), Some("Pod a/x: create is met"));
    }

    #[test]
    fn delete_is_met_by_what_goes_or_is_not_there() {
        let mut goes = waiting("delete");
        goes.there(&pod("x", "True")).unwrap();
        assert!(!goes.is_met() && goes.waits_for_deletion());
        goes.told(&deleted("x")).unwrap();
        assert_eq!(goes.met(), Some("Pod a/x: delete is met"));
        assert!(!goes.waits_for_deletion(), "it is over");
        let mut missing = waiting("delete");
        missing.missing();
        assert_eq!(missing.met(), Some("delete is met: it is not there"));
    }

    #[test]
    fn who_waited_in_vain_is_told_what_was_seen_last() {
        let mut until = waiting("condition=Ready");
        let said = |until: &Until, seconds| until.late(Duration::from_secs(seconds)).unwrap_err().to_string();
        assert_eq!(said(&until, 0), "--until condition=Ready is not met; seen: no object was there");
        until.told(&added("x", "False")).unwrap();
        assert_eq!(said(&until, 0), "--until condition=Ready is not met; seen: Pod a/x Ready is False");
        let late = "--until condition=Ready was not met within 30s; last seen: Pod a/x Ready is False; give it longer \
                    with --timeout";
        assert_eq!(said(&until, 30), late);
    }

    #[test]
    fn what_no_object_can_meet_is_an_error_at_once() {
        let said = waiting("jsonpath={.metadata}=x").there(&pod("x", "True")).unwrap_err().to_string();
        assert!(said.starts_with("--until jsonpath={.metadata}=x can never be met: Pod a/x "), "{said}");
    }
}
