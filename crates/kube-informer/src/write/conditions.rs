//! Conditions: what can be said of an object in one word each, as `metav1.Condition` has it.
//!
//! ```
//! use kube_informer::write::conditions::{self, Proposal};
//!
//! let mut conditions = Vec::new();
//! let ready = Proposal::new("Ready", false, "Starting").message("1 of 3 are there").observed(7);
//! assert!(conditions::set(&mut conditions, ready.clone()));
//! assert!(!conditions::set(&mut conditions, ready), "nothing new");
//! assert!(!conditions::is_true(&conditions, "Ready"));
//! ```
//!
//! `lastTransitionTime` changes only when the status does; the order of the list stays, new ones come last: a status that
//! says the same is the same, byte by byte, and need not be written.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What is to be said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Proposal {
    name: String,
    status: &'static str,
    reason: String,
    message: String,
    observed: Option<i64>,
}

impl Proposal {
    /// A condition of that type is true or false (or, with `None`, it is unknown), for a reason in one word, which must not
    /// be empty.
    pub fn new(type_: impl Into<String>, is: impl Into<Option<bool>>, reason: impl Into<String>) -> Self {
        let status = match is.into() {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        Self { name: type_.into(), status, reason: reason.into(), message: String::new(), observed: None }
    }

    /// The same for people.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The generation of the object that it is said of.
    pub fn observed(mut self, generation: i64) -> Self {
        self.observed = Some(generation);
        self
    }
}

/// Says it: in the place of what was said of that type, or last. Returns whether anything changed.
pub fn set(conditions: &mut Vec<Condition>, proposal: Proposal) -> bool {
    set_at(conditions, proposal, Timestamp::now())
}

/// The same, at some time.
pub fn set_at(conditions: &mut Vec<Condition>, proposal: Proposal, now: Timestamp) -> bool {
    // With the precision that it is written with: what comes back from the server is equal.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let Proposal { name, status, reason, message, observed } = proposal;
    let mut new = Condition {
        type_: name,
        status: status.to_owned(),
        reason,
        message,
        observed_generation: observed,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone();
            }
            let changed = *old != new;
            *old = new;
            changed
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Takes back what was said of a type. Returns whether anything was.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

/// What is said of a type.
#[must_use]
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether it is said to be true. What is not said, or unknown, is not.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn since(conditions: &[Condition], type_: &str) -> i64 {
        get(conditions, type_).unwrap().last_transition_time.0.as_second()
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_its_status() {
        let mut all = Vec::new();
        let ready = |is: Option<bool>| Proposal::new("Ready", is, "Because").observed(1);
        assert!(set_at(&mut all, ready(Some(false)), at(10)));
        assert!(set_at(&mut all, ready(Some(false)).message("more"), at(20)), "the message is new");
        assert!(
            set_at(&mut all, ready(Some(false)).message("more").observed(2), at(30)),
            "and the generation"
        );
        assert_eq!(since(&all, "Ready"), 10);
        assert!(!set_at(&mut all, ready(Some(false)).message("more").observed(2), at(40)));
        assert!(set_at(&mut all, ready(Some(true)), at(50)));
        assert_eq!(since(&all, "Ready"), 50);
        assert!(is_true(&all, "Ready"));
        assert!(set_at(&mut all, ready(None), at(60)));
        assert!(!is_true(&all, "Ready") && !is_true(&all, "Other"));
        assert_eq!(get(&all, "Ready").unwrap().status, "Unknown");
    }

    #[test]
    fn the_order_stays() {
        let mut all = Vec::new();
        for name in ["b", "a", "c"] {
            set(&mut all, Proposal::new(name, true, "R"));
        }
        set(&mut all, Proposal::new("a", false, "R"));
        let names = |all: &[Condition]| all.iter().map(|one| one.type_.clone()).collect::<Vec<_>>();
        assert_eq!(names(&all), ["b", "a", "c"]);
        assert!(remove(&mut all, "b") && !remove(&mut all, "b"));
        assert_eq!(names(&all), ["a", "c"]);
    }

    #[test]
    fn what_comes_back_from_the_server_is_equal() {
        let mut all = Vec::new();
        set(&mut all, Proposal::new("Ready", true, "R"));
        let back: Vec<Condition> = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
        assert_eq!(back, all);
    }
}
