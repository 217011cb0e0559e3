//! When an ElastiService is looked at again though nothing changes: at the soonest of all times that something asks for.

use std::time::Duration;

use kube_informer::controller::Action;

/// See the [module](self).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub(super) struct Next(Option<Duration>);

impl Next {
    /// When something changes.
    pub(super) const CHANGE: Self = Self(None);

    /// After that time, too.
    pub(super) fn after(time: Duration) -> Self {
        Self(Some(time))
    }

    /// At the sooner one. What is to be done later is found out again then.
    pub(super) fn and(self, other: impl Into<Self>) -> Self {
        Self(self.0.into_iter().chain(other.into().0).min())
    }

    pub(super) fn action(self) -> Action {
        self.0.map_or_else(Action::done, Action::requeue_after)
    }
}

impl From<Option<Duration>> for Next {
    fn from(time: Option<Duration>) -> Self {
        Self(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_look_is_the_next() {
        let (one, ten) = (Duration::from_secs(1), Duration::from_secs(10));
        assert_eq!(Next::CHANGE.and(Some(ten)).and(None), Next::after(ten));
        for next in [Next::after(one).and(Some(ten)), Next::after(ten).and(Some(one))] {
            assert_eq!(next.action(), Action::requeue_after(one));
        }
        assert_eq!(Next::CHANGE.and(Next::CHANGE).action(), Action::done());
    }
}
