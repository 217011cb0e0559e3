//! Who has met what, so far. No I/O, no clock.
//!
//! - Conditions are met one after the other, as in `kubectl wait`: each at some version of the object, the next at the
//!   same one or a later one. `create` comes first, wherever it was written. What was met stays met.
//! - An object is told apart by its UID: one that was deleted and made again under its name was deleted.
//! - Objects that were named are waited for until they are there. Objects that are chosen count while they are chosen:
//!   those that come later, too, unless their deletion is waited for, which counts for those that were there at first.
//! - An object that has met everything is not looked at again.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::condition::{Condition, Outcome};

/// What is to be met, and by whom.
#[derive(Debug)]
pub(super) struct Rules {
    /// One after the other.
    pub(super) conditions: Vec<Condition>,
    /// One condition is enough.
    pub(super) any_condition: bool,
    /// One object is enough.
    pub(super) any_object: bool,
    /// What no object may meet.
    pub(super) fail_on: Vec<Condition>,
}

/// An object by its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    /// Which of the targets it belongs to.
    pub(super) target: usize,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// An object as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) uid: &'a str,
    pub(super) json: &'a Value,
}

/// What came of looking at an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// It has met a condition.
    Met(Id),
    /// It has met what it must not: this condition, as was seen.
    Failed { id: Id, condition: String, seen: String },
    /// A condition can never be met.
    Never { id: Id, condition: String, seen: String },
    /// It is gone, and is not waited for any more.
    Dropped(Id),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Tracker {
    rules: Rules,
    objects: BTreeMap<Id, Tracked>,
    /// Whether everything that there was at first has been seen.
    is_complete: bool,
}

#[derive(Debug, Default)]
struct Tracked {
    /// Whether it was asked for by name.
    is_named: bool,
    /// Of the object that was seen first, or last.
    uid: Option<String>,
    /// How many conditions it has met.
    met: usize,
    is_done: bool,
    /// What was seen last of what it has not met.
    seen: String,
}

impl Rules {
    /// `create` comes first, wherever it was written.
    pub(super) fn new(mut conditions: Vec<Condition>, fail_on: Vec<Condition>) -> Self {
        conditions.sort_by_key(|condition| !condition.is_create());
        Self { conditions, any_condition: false, any_object: false, fail_on }
    }

    /// Whether a deletion counts, of any kind: then it must be certain.
    pub(super) fn look_at_deletions(&self) -> bool {
        self.conditions.iter().chain(&self.fail_on).any(Condition::is_delete)
    }

    fn waits_for_deletion(&self) -> bool {
        self.conditions.iter().any(Condition::is_delete)
    }

    fn begins_with_deletion(&self) -> bool {
        if self.any_condition {
            self.waits_for_deletion()
        } else {
            self.conditions.first().is_some_and(Condition::is_delete)
        }
    }
}

impl Tracker {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, objects: BTreeMap::new(), is_complete: false }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// An object that was asked for by name.
    pub(super) fn expect(&mut self, id: Id) {
        let seen = "is not there".to_owned();
        self.objects.insert(id, Tracked { is_named: true, seen, ..Tracked::default() });
    }

    /// An object was seen, or seen to be gone.
    pub(super) fn see(&mut self, id: &Id, sight: Option<Sight<'_>>) -> Vec<Step> {
        if !self.objects.contains_key(id) {
            // Whoever waits for deletions waits for those that were there.
            if sight.is_none() || (self.is_complete && self.rules.waits_for_deletion()) {
                return Vec::new();
            }
            self.objects.insert(id.clone(), Tracked::default());
        }
        let Some(tracked) = self.objects.get_mut(id).filter(|tracked| !tracked.is_done) else {
            return Vec::new();
        };
        let was_there = tracked.uid.is_some();
        // An object that is not there at first is seen when everything has been.
        if sight.is_none() && !was_there && !self.is_complete {
            return Vec::new();
        }
        let is_another = |uid: &str| tracked.uid.as_deref().is_some_and(|known| known != uid);
        let replaced = sight.is_some_and(|sight| is_another(sight.uid));
        let mut steps = Vec::new();
        if replaced {
            // First it went, then there was another one.
            tracked.look(&self.rules, id, None, was_there, &mut steps);
        }
        if let Some(sight) = sight {
            tracked.uid = Some(sight.uid.to_owned());
        }
        if !tracked.is_done {
            tracked.look(&self.rules, id, sight.map(|sight| sight.json), was_there, &mut steps);
        }
        if sight.is_none() && !tracked.is_done && !tracked.is_named {
            self.objects.remove(id);
            steps.push(Step::Dropped(id.clone()));
        }
        steps
    }

    /// Everything that there was at first has been seen: what has not been is not there.
    pub(super) fn complete(&mut self) -> Vec<Step> {
        self.is_complete = true;
        let unseen = self.objects.iter().filter(|(_, tracked)| tracked.uid.is_none());
        let unseen: Vec<Id> = unseen.map(|(id, _)| id.clone()).collect();
        unseen.iter().flat_map(|id| self.see(id, None)).collect()
    }

    /// The objects of a target that are waited for.
    pub(super) fn waiting(&self, target: usize) -> Vec<Id> {
        let of_it = self.objects.iter().filter(|(id, tracked)| id.target == target && !tracked.is_done);
        of_it.map(|(id, _)| id.clone()).collect()
    }

    /// The UID of an object that is waited for.
    pub(super) fn uid(&self, id: &Id) -> Option<&str> {
        self.objects.get(id).filter(|tracked| !tracked.is_done)?.uid.as_deref()
    }

    /// Notes what was found out about an object otherwise.
    pub(super) fn note(&mut self, id: &Id, seen: &str) {
        if let Some(tracked) = self.objects.get_mut(id) {
            seen.clone_into(&mut tracked.seen);
        }
    }

    /// Whether there is nothing more to wait for.
    pub(super) fn is_done(&self) -> bool {
        if !self.is_complete {
            return false;
        }
        let mut done = self.objects.values().map(|tracked| tracked.is_done);
        match self.objects.is_empty() {
            true => self.rules.begins_with_deletion(),
            false if self.rules.any_object => done.any(|done| done),
            false => done.all(|done| done),
        }
    }

    /// How many objects there are, and those that are not done, each with what was seen last.
    pub(super) fn report(&self) -> (usize, Vec<(&Id, &str)>) {
        let open = self.objects.iter().filter(|(_, tracked)| !tracked.is_done);
        (self.objects.len(), open.map(|(id, tracked)| (id, tracked.seen.as_str())).collect())
    }
}

impl Tracked {
    fn look(
        &mut self,
        rules: &Rules,
        id: &Id,
        object: Option<&Value>,
        was_there: bool,
        steps: &mut Vec<Step>,
    ) {
        let never = |condition: &Condition, seen: String| Step::Never {
            id: id.clone(),
            condition: condition.to_string(),
            seen,
        };
        if rules.any_condition {
            let mut all = Vec::new();
            for condition in &rules.conditions {
                let verdict = condition.check(object);
                match verdict.outcome {
                    Outcome::Met => {
                        self.is_done = true;
                        return steps.push(Step::Met(id.clone()));
                    }
                    Outcome::Never => return steps.push(never(condition, verdict.seen)),
                    Outcome::NotYet if !all.contains(&verdict.seen) => all.push(verdict.seen),
                    Outcome::NotYet => {}
                }
            }
            self.seen = all.join("; ");
        } else {
            while let Some(condition) = rules.conditions.get(self.met) {
                let verdict = condition.check(object);
                match verdict.outcome {
                    Outcome::Met => {
                        self.met += 1;
                        steps.push(Step::Met(id.clone()));
                    }
                    Outcome::Never => return steps.push(never(condition, verdict.seen)),
                    Outcome::NotYet => {
                        self.seen = verdict.seen;
                        break;
                    }
                }
            }
            self.is_done = self.met >= rules.conditions.len();
        }
        if self.is_done {
            return;
        }
        // What never was there was not deleted.
        let candidates = rules.fail_on.iter().filter(|condition| !condition.is_delete() || was_there);
        for condition in candidates {
            let verdict = condition.check(object);
            match verdict.outcome {
                Outcome::Met => {
                    let (condition, seen) = (condition.to_string(), verdict.seen);
                    return steps.push(Step::Failed { id: id.clone(), condition, seen });
                }
                Outcome::Never => return steps.push(never(condition, verdict.seen)),
                Outcome::NotYet => {}
            }
        }
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.any_condition { " or " } else { " and " };
        for (index, condition) in self.conditions.iter().enumerate() {
            write!(f, "{}{condition}", if index == 0 { "" } else { between })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
