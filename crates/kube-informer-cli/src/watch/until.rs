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
            false => bail!("--until {condition} was not met within {time:?}; last seen: {seen}"),
        }
    }
}

/// `Pod shop/web`.
fn name(object: &Object) -> String {
    format!("{} {}", object.kind(), object.key())
}
