//! What is said about objects: what they are called, what is wrong, and what was seen of them when the time is up, or nobody
//! wants to wait any longer.

use std::time::Duration;

use kube_informer::informer::Why;

use super::follow::Source;
use super::tracker::Id;
use super::{End, Wait};
use crate::interrupt::Ended;

/// Objects that are told of when the time is up.
const TOLD: usize = 20;

impl Wait<'_> {
    /// The time is up.
    pub(super) fn late(&self, limit: Duration) -> End {
        let begin = match limit.is_zero() {
            true => "not met".to_owned(),
            false => format!("timed out after {limit:?}"),
        };
        End { ended: Ended::Late, words: self.report(&begin) }
    }

    /// Somebody does not want to wait any longer. Before everything was seen, there is nothing to say.
    pub(super) fn interrupted(&self) -> End {
        let words = if self.is_complete() { self.report("interrupted") } else { String::new() };
        End { ended: Ended::Interrupted, words }
    }

    /// What was waited for, and what was last seen of each object.
    fn report(&self, begin: &str) -> String {
        let rules = self.tracker.rules();
        let (count, open) = self.tracker.report();
        let mut words = match (count, open.len()) {
            _ if !self.is_complete() => {
                format!("error: {begin} waiting for {rules}: what there is could not be read\n")
            }
            (0, _) => {
                let place = self.cluster.describe_place();
                let types: Vec<String> =
                    self.targets.iter().map(|target| target.resource.to_string()).collect();
                format!(
                    "error: {begin} waiting for {rules}: there are no such {} {place}\n",
                    types.join(", ")
                )
            }
            (count, open) => {
                format!("error: {begin} waiting for {rules}: {open} of {count} objects have not met it\n")
            }
        };
        for (id, seen) in open.iter().take(TOLD) {
            words.push_str(&format!("  {}: {seen}\n", self.full_name(id)));
        }
        if let Some(more) = open.len().checked_sub(TOLD).filter(|more| *more > 0) {
            words.push_str(&format!("  … and {more} more\n"));
        }
        if let Some(cause) = self.troubles.values().next() {
            words.push_str(&format!("  what was seen may be old; {}\n", cause.advice()));
        }
        words
    }

    /// `pod/web`, `deployment.apps/web`: as kubectl calls it.
    pub(super) fn name(&self, id: &Id) -> String {
        let Some(resource) = self.resource(id) else { return id.name.clone() };
        let kind = resource.kind.to_lowercase();
        match resource.group.as_str() {
            "" => format!("{kind}/{}", id.name),
            group => format!("{kind}.{group}/{}", id.name),
        }
    }

    /// With the namespace, where there are several.
    pub(super) fn full_name(&self, id: &Id) -> String {
        let shows_namespace =
            self.resource(id).is_some_and(|resource| self.cluster.shows_namespaces(resource));
        let name = self.name(id);
        if shows_namespace { format!("{name} in {}", id.namespace) } else { name }
    }

    pub(super) fn what(&self, source: &Source) -> String {
        match &source.only {
            Some(id) => self.full_name(id),
            None => {
                self.targets.get(source.target).map(|target| target.resource.to_string()).unwrap_or_default()
            }
        }
    }
}

/// What went wrong, and what to do.
pub(super) fn trouble(why: &Why) -> String {
    format!("{}: {}", why.request, why.explained())
}
