//! Which changes matter.
//!
//! A source without predicates lets everything pass. With several, each must let a change pass. What a predicate stops is
//! not queued by that source; another source, or the next change, may queue the same key.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::controller::predicate::{self, Predicate};
//!
//! // The spec or the labels have changed, or everything is said again.
//! let spec: Predicate<Pod> = predicate::generation().or(predicate::labels()).or(predicate::resync());
//! // Pods that move from node to node.
//! let moved: Predicate<Pod> = Predicate::new(|change| {
//!     let node = |pod: &kube_informer::object::Object<Pod>| pod.pointer::<String>("/spec/nodeName").ok().flatten();
//!     change.old.and_then(node) != change.new.and_then(node)
//! });
//! # let _ = (spec, moved);
//! ```

use std::fmt;

use crate::object::Object;

/// What happened to an object: an old one alone is gone, a new one alone is new.
#[derive(Debug)]
#[non_exhaustive]
pub struct Change<'a, K> {
    /// What was there before, or last.
    pub old: Option<&'a Object<K>>,
    /// What is there now.
    pub new: Option<&'a Object<K>>,
    /// Whether it was there when all began.
    pub initial: bool,
    /// Whether nothing has changed, and it is only said again.
    pub resync: bool,
}

/// Says of a change whether it matters.
pub struct Predicate<K>(Box<Says<K>>);

type Says<K> = dyn Fn(&Change<'_, K>) -> bool + Send + Sync;

impl<K: 'static> Predicate<K> {
    /// A closure over the old and the new object. It must not block. One that panics lets the change pass.
    pub fn new(says: impl Fn(&Change<'_, K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Box::new(says))
    }

    /// Whether the change matters.
    #[must_use]
    pub fn passes(&self, change: &Change<'_, K>) -> bool {
        (self.0)(change)
    }

    /// Both must let it pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |change| self.passes(change) && other.passes(change))
    }

    /// One of them must let it pass.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |change| self.passes(change) || other.passes(change))
    }

    /// What it stops passes, and the other way round.
    #[expect(clippy::should_implement_trait, reason = "it reads as its siblings do")]
    #[must_use]
    pub fn not(self) -> Self {
        Self::new(move |change| !self.passes(change))
    }
}

/// The generation has changed: of most kinds, that is the spec and not the status. New and gone objects pass; what is only
/// said again does not. Kinds without a generation (config maps, secrets, service accounts) never pass an update.
#[must_use]
pub fn generation<K: 'static>() -> Predicate<K> {
    changed(|old, new| old.generation() != new.generation())
}

/// The version has changed: all but what is only said again.
#[must_use]
pub fn version<K: 'static>() -> Predicate<K> {
    changed(|old, new| old.version() != new.version() || old.uid() != new.uid())
}

/// Labels have changed. New and gone objects pass.
#[must_use]
pub fn labels<K: 'static>() -> Predicate<K> {
    changed(|old, new| old.labels() != new.labels())
}

/// Annotations have changed. New and gone objects pass.
#[must_use]
pub fn annotations<K: 'static>() -> Predicate<K> {
    // Where they cannot be read, it is better to look.
    changed(|old, new| match (old.annotations(), new.annotations()) {
        (Ok(old), Ok(new)) => old != new,
        _ => true,
    })
}

/// What is only said again passes, and nothing else.
#[must_use]
pub fn resync<K: 'static>() -> Predicate<K> {
    Predicate::new(|change| change.resync)
}

fn changed<K: 'static>(
    differs: impl Fn(&Object<K>, &Object<K>) -> bool + Send + Sync + 'static,
) -> Predicate<K> {
    Predicate::new(move |change| match (change.old, change.new) {
        (Some(old), Some(new)) => differs(old, new),
        _ => true,
    })
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Codec, Encoding, Rules};
    use crate::object::Intake;

    fn object(metadata: &str) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let text = format!(r#"{{"metadata":{{"name":"a","namespace":"d",{metadata}}}}}"#);
        Intake::new(codec).object(text.as_bytes()).unwrap()
    }

    fn says(predicate: &Predicate<serde_json::Value>, old: Option<&Object>, new: Option<&Object>) -> bool {
        predicate.passes(&Change { old, new, initial: false, resync: false })
    }

    #[test]
    fn each_predicate_looks_at_its_own_and_new_and_gone_objects_pass() {
        let base =
            object(r#""resourceVersion":"1","generation":1,"labels":{"a":"b"},"annotations":{"x":"y"}"#);
        let status =
            object(r#""resourceVersion":"2","generation":1,"labels":{"a":"b"},"annotations":{"x":"y"}"#);
        let spec =
            object(r#""resourceVersion":"2","generation":2,"labels":{"a":"b"},"annotations":{"x":"y"}"#);
        let labels_ =
            object(r#""resourceVersion":"2","generation":1,"labels":{"a":"c"},"annotations":{"x":"y"}"#);
        let notes =
            object(r#""resourceVersion":"2","generation":1,"labels":{"a":"b"},"annotations":{"x":"z"}"#);
        for (what, predicate, passes) in [
            ("generation", generation(), [false, true, false, false]),
            ("version", version(), [true, true, true, true]),
            ("labels", labels(), [false, false, true, false]),
            ("annotations", annotations(), [false, false, false, true]),
        ] {
            let seen = [&status, &spec, &labels_, &notes].map(|new| says(&predicate, Some(&base), Some(new)));
            assert_eq!(seen, passes, "{what}");
            assert!(says(&predicate, None, Some(&base)) && says(&predicate, Some(&base), None), "{what}");
            assert!(!says(&predicate, Some(&base), Some(&base)), "{what}: nothing has changed");
        }
    }

    #[test]
    fn predicates_are_put_together() {
        let base = object(r#""generation":1,"labels":{"a":"b"}"#);
        let both = object(r#""generation":2,"labels":{"a":"c"}"#);
        let spec = object(r#""generation":2,"labels":{"a":"b"}"#);
        let and = generation().and(labels());
        assert!(says(&and, Some(&base), Some(&both)) && !says(&and, Some(&base), Some(&spec)));
        let or = labels().or(generation());
        assert!(says(&or, Some(&base), Some(&spec)));
        assert!(!says(&or.not(), Some(&base), Some(&spec)));
        let again = Change { old: Some(&base), new: Some(&base), initial: false, resync: true };
        assert!(!generation().passes(&again) && generation().or(resync()).passes(&again));
    }
}
