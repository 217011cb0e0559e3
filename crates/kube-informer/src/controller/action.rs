//! What a reconcile comes to: done, once more, or an error.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::workqueue::Priority;

/// Any error. What a reconciler returns is retried, unless there is a [`terminal`] one in its chain.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What is to be done after a reconcile that did not fail.
///
/// ```
/// # use std::time::Duration;
/// use kube_informer::controller::Action;
/// use kube_informer::workqueue::Priority;
///
/// let nothing = Action::done();                                     // until something changes
/// let later = Action::requeue_after(Duration::from_secs(60));       // or earlier, if something changes
/// let urgent = Action::requeue_with(Priority::High);                // as soon as the rate limiter allows it
/// # let _ = (nothing, later, urgent);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "it is what a reconcile returns"]
pub struct Action {
    pub(super) then: Then,
    pub(super) priority: Option<Priority>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Then {
    #[default]
    Done,
    /// When the limiter says.
    Requeue,
    RequeueAfter(Duration),
}

impl Action {
    /// Nothing, until something changes. Failures are forgotten.
    pub fn done() -> Self {
        Self::default()
    }

    /// Once more after that time, or earlier if something changes. Failures are forgotten. Without a delay it is the rate
    /// limiter that says when: a key that enqueues itself without end does not keep others from running.
    pub fn requeue_after(delay: Duration) -> Self {
        let then = if delay.is_zero() { Then::Requeue } else { Then::RequeueAfter(delay) };
        Self { then, priority: None }
    }

    /// Once more with that priority, when the rate limiter says: each time later, until it is [done](Self::done).
    pub fn requeue_with(priority: Priority) -> Self {
        Self { then: Then::Requeue, priority: Some(priority) }
    }

    /// With another priority than the one that it ran with.
    pub fn at(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }
}

/// An error that trying again does not help against, such as a spec that makes no sense: it is logged and counted, and
/// tried again only when something changes. It may stand anywhere in the chain of the error that is returned.
///
/// ```
/// use kube_informer::controller::{Action, BoxError, terminal};
///
/// fn check(replicas: i32) -> Result<Action, BoxError> {
///     if replicas < 0 {
///         return Err(terminal(format!("{replicas} replicas are less than none")).into());
///     }
///     Ok(Action::done())
/// }
/// let error = check(-1).unwrap_err();
/// assert_eq!(error.to_string(), "terminal error: -1 replicas are less than none");
/// ```
#[must_use]
pub fn terminal(error: impl Into<BoxError>) -> Terminal {
    Terminal(Mark(error.into()))
}

/// See [`terminal`].
#[derive(Debug)]
pub struct Terminal(Mark);

/// What is found in the chain of an error even if what stands before it was wrapped by someone who hides its type.
#[derive(Debug)]
struct Mark(BoxError);

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "terminal error: {}", self.0)
    }
}

impl Error for Terminal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Mark {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Chains of errors are followed so far.
const DEPTH: usize = 64;

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source()).take(DEPTH)
}

/// Whether trying again does not help.
pub(super) fn is_terminal(error: &BoxError) -> bool {
    chain(&**error).any(|each| each.is::<Terminal>() || each.is::<Mark>())
}

/// An error with those that it came from, as far as it does not tell of them itself.
pub(crate) fn describe(error: &BoxError) -> String {
    let mut text = error.to_string();
    for cause in chain(&**error).skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_terminal_error_is_found_wherever_it_stands() {
        let plain: BoxError = "no".into();
        assert!(!is_terminal(&plain));
        assert!(is_terminal(&terminal("no").into()));
        let wrapped = anyhow::Error::from(terminal("no"));
        assert!(is_terminal(&wrapped.into()), "however it is wrapped");
        let deep = Err::<(), _>(terminal("no")).context("the spec").unwrap_err();
        assert!(is_terminal(&deep.into()));
        assert!(!is_terminal(&anyhow::anyhow!("no").context("the spec").into()));
    }

    #[test]
    fn an_error_tells_what_it_came_from_once() {
        let error = anyhow::anyhow!("the disk is full").context("writing").context("the backup");
        assert_eq!(describe(&error.into()), "the backup: writing: the disk is full");
        assert_eq!(describe(&terminal("no such class").into()), "terminal error: no such class");
    }

    #[test]
    fn no_delay_leaves_it_to_the_limiter() {
        assert_eq!(Action::requeue_after(Duration::ZERO).then, Then::Requeue);
        assert_eq!(Action::requeue_with(Priority::High).priority, Some(Priority::High));
    }
}
