//! Through which informers the objects of one resource and namespace are seen: one for each, or one for all.
//!
//! - Few objects are watched one by one, each by its name: of a large namespace, the server sends nothing else.
//! - From so many objects on, one informer of the whole namespace takes their place: one connection, and one watch for the
//!   server. It is given up when less than half as many are left, so that a number that goes up and down moves nothing.
//! - Where the whole namespace is refused, they are watched one by one, however many they are, until it is tried again.
//!
//! An object that has been seen goes on to be seen through the old informer until the new one knows as much. Pure: no clock,
//! no I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// An informer of the group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum FeedKey {
    /// Of all objects.
    Whole,
    /// Of one, by its name.
    One(Arc<str>),
}

/// Where an object is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Through this, so far.
    pub(super) from: Option<FeedKey>,
    /// Through this, as soon as it knows enough.
    pub(super) to: Option<FeedKey>,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Actions {
    pub(super) open: Vec<FeedKey>,
    pub(super) close: Vec<FeedKey>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Plan {
    share_from: usize,
    is_refused: bool,
    /// Whether one informer of all is wanted.
    sharing: bool,
    places: BTreeMap<Arc<str>, Place>,
    /// Those that have somewhere to go.
    moving: BTreeSet<Arc<str>>,
    /// How many use each informer.
    uses: HashMap<FeedKey, usize>,
    /// Informers whose number of users has changed, and whether they were open before.
    touched: BTreeMap<FeedKey, bool>,
}

impl Plan {
    pub(super) fn new(share_from: usize, is_refused: bool) -> Self {
        Self {
            share_from: share_from.max(1),
            is_refused,
            sharing: false,
            places: BTreeMap::new(),
            moving: BTreeSet::new(),
            uses: HashMap::new(),
            touched: BTreeMap::new(),
        }
    }

    /// One more object.
    pub(super) fn join(&mut self, name: &Arc<str>) -> Actions {
        self.places.entry(Arc::clone(name)).or_default();
        if !self.decide() {
            self.head(name);
        }
        self.actions()
    }

    /// One less.
    pub(super) fn leave(&mut self, name: &Arc<str>) -> Actions {
        if let Some(Place { from, to }) = self.places.remove(name) {
            self.moving.remove(name);
            from.into_iter().chain(to).for_each(|feed| self.unuse(feed));
            self.decide();
        }
        self.actions()
    }

    /// The informer that an object was to be seen through knows enough.
    pub(super) fn ready(&mut self, name: &Arc<str>, feed: &FeedKey) -> Actions {
        if let Some(place) = self.places.get_mut(name)
            && place.to.take_if(|to| to == feed).is_some()
        {
            // What it was going to use, it uses.
            let before = place.from.replace(feed.clone());
            self.moving.remove(name);
            before.into_iter().for_each(|feed| self.unuse(feed));
        }
        self.actions()
    }

    /// The server does not let us see the whole namespace.
    pub(super) fn refused(&mut self) -> Actions {
        self.is_refused = true;
        self.decide();
        self.actions()
    }

    /// That may be otherwise by now.
    pub(super) fn probe(&mut self) -> Actions {
        self.is_refused = false;
        self.decide();
        self.actions()
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    pub(super) fn place(&self, name: &str) -> Option<&Place> {
        self.places.get(name)
    }

    /// Those that have somewhere to go.
    pub(super) fn moving(&self) -> &BTreeSet<Arc<str>> {
        &self.moving
    }

    /// Those that are seen through an informer.
    pub(super) fn seen_through(&self, feed: &FeedKey) -> Vec<Arc<str>> {
        let is_seen = |place: &Place| place.from.as_ref() == Some(feed);
        match feed {
            FeedKey::One(name) => self
                .places
                .get(name)
                .filter(|place| is_seen(place))
                .map(|_| Arc::clone(name))
                .into_iter()
                .collect(),
            FeedKey::Whole => self
                .places
                .iter()
                .filter(|(_, place)| is_seen(place))
                .map(|(name, _)| Arc::clone(name))
                .collect(),
        }
    }

    /// Decides anew whether one informer is for all; whether everybody was told where to go.
    fn decide(&mut self) -> bool {
        let count = self.places.len();
        let sharing = if self.is_refused || count.saturating_mul(2) < self.share_from {
            false
        } else {
            self.sharing || count >= self.share_from
        };
        if sharing == self.sharing {
            return false;
        }
        self.sharing = sharing;
        let names: Vec<Arc<str>> = self.places.keys().cloned().collect();
        names.iter().for_each(|name| self.head(name));
        true
    }

    /// Says where an object is to go.
    fn head(&mut self, name: &Arc<str>) {
        let wanted = if self.sharing { FeedKey::Whole } else { FeedKey::One(Arc::clone(name)) };
        let Some(place) = self.places.get_mut(name) else { return };
        let to = (place.from.as_ref() != Some(&wanted)).then_some(wanted);
        if place.to == to {
            return;
        }
        let before = std::mem::replace(&mut place.to, to.clone());
        if to.is_some() {
            self.moving.insert(Arc::clone(name));
        } else {
            self.moving.remove(name);
        }
        to.into_iter().for_each(|feed| self.use_(feed));
        before.into_iter().for_each(|feed| self.unuse(feed));
    }

    fn use_(&mut self, feed: FeedKey) {
        let uses = self.uses.entry(feed.clone()).or_default();
        self.touched.entry(feed).or_insert(*uses > 0);
        *uses += 1;
    }

    fn unuse(&mut self, feed: FeedKey) {
        let Some(uses) = self.uses.get_mut(&feed) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.uses.remove(&feed);
        }
        self.touched.entry(feed).or_insert(true);
    }

    /// What has to be opened and closed since it was last asked.
    fn actions(&mut self) -> Actions {
        let mut actions = Actions::default();
        for (feed, was_open) in std::mem::take(&mut self.touched) {
            match (was_open, self.uses.contains_key(&feed)) {
                (false, true) => actions.open.push(feed),
                (true, false) => actions.close.push(feed),
                _ => {}
            }
        }
        actions
    }
}

#[cfg(test)]
mod tests;
