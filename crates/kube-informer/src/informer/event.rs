//! What happened, as handlers are told.

use crate::cache::{Applied, Snapshot};
use crate::object::Object;

/// What happened to an object.
#[non_exhaustive]
#[derive(Debug, Clone)]
pub enum Event<K = serde_json::Value> {
    /// It is new.
    Added {
        /// The object.
        new: Object<K>,
        /// Whether it was there when the registration, or the informer, began.
        initial: bool,
    },
    /// It has changed.
    Updated {
        /// What the handler was told last.
        old: Object<K>,
        /// What there is now.
        new: Object<K>,
        /// Whether nothing has changed, and it is only said again: see
        /// [`Subscription::resync`](super::Subscription::resync).
        resync: bool,
    },
    /// It is gone, or no longer meets the informer's [labels](crate::factory::InformerBuilder::labels) or
    /// [fields](crate::factory::InformerBuilder::fields): servers say the same of both. With such a selector, the object may
    /// still exist, also where this is `certain`.
    Deleted {
        /// Its last state, as far as it is known.
        last: Object<K>,
        /// Whether the server said so. If not, it was found missing, and may have changed before it went.
        certain: bool,
    },
    /// Changes were missed: more came than there was room for. What there is now follows, each object as
    /// [`Added`](Self::Added) with `initial`, whether it was told before or not; whatever is not in `now` is gone. Only with
    /// [`Delivery::Every`](super::Delivery::Every).
    Gap {
        /// How many changes.
        missed: u64,
        /// What there is now, and is about to be told.
        now: Snapshot<K>,
    },
}

impl<K> Event<K> {
    /// The object as it is now, or was last; `None` for a [`Gap`](Self::Gap).
    #[must_use]
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => Some(new),
            Self::Deleted { last, .. } => Some(last),
            Self::Gap { .. } => None,
        }
    }

    /// The same event, its objects seen as another type.
    #[must_use]
    pub fn cast<T>(self) -> Event<T> {
        match self {
            Self::Added { new, initial } => Event::Added { new: new.into_cast(), initial },
            Self::Updated { old, new, resync } => {
                Event::Updated { old: old.into_cast(), new: new.into_cast(), resync }
            }
            Self::Deleted { last, certain } => Event::Deleted { last: last.into_cast(), certain },
            Self::Gap { missed, now } => Event::Gap { missed, now: now.cast() },
        }
    }

    /// What the cache told, as an event.
    pub(super) fn of(applied: Applied, initial: bool) -> Event {
        match applied {
            Applied::Added { new } => Event::Added { new, initial },
            Applied::Updated { old, new } => Event::Updated { old, new, resync: false },
            Applied::Deleted { last, certain } => Event::Deleted { last, certain },
        }
    }
}
