//! Views and objects that are lent, not shared: no reference is counted, and no lock waited for, to get one.
//!
//! For those who read everything all the time: to count references costs more than to read, where the objects are too
//! many for the processor's caches.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Object;
use super::views::Held;
use crate::encoding::ViewError;

/// A view, lent where it is [kept](super::ViewBudget), and shared otherwise.
///
/// It is to be looked at, and let go: one that is held for long is better [shared](Object::view).
pub struct View<'a, K>(Kept<'a, K>);

enum Kept<'a, K> {
    ByItsObject(&'a K),
    ForAWhile(Held<K>),
    Here(Arc<K>),
}

impl<K> Clone for View<'_, K> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Kept::ByItsObject(view) => Kept::ByItsObject(view),
            Kept::ForAWhile(view) => Kept::ForAWhile(view.clone()),
            Kept::Here(view) => Kept::Here(Arc::clone(view)),
        })
    }
}

impl<K: 'static> Deref for View<'_, K> {
    type Target = K;

    #[inline]
    fn deref(&self) -> &K {
        match &self.0 {
            Kept::ByItsObject(view) => view,
            Kept::ForAWhile(view) => view,
            Kept::Here(view) => view,
        }
    }
}

impl<K: fmt::Debug + 'static> fmt::Debug for View<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("View").field(&**self).finish()
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Object<K> {
    /// The object as a `K`, as [`view`](Self::view) gives it, for as long as the object is borrowed.
    ///
    /// # Errors
    ///
    /// Where the object does not fit the type.
    #[inline]
    pub fn look(&self) -> Result<View<'_, K>, ViewError> {
        self.look_as()
    }
}

impl<K> Object<K> {
    /// What is looked at most is found here, and as a part of whoever looks: to hand it over takes as long as to find it.
    #[inline]
    fn look_as<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<View<'_, T>, ViewError> {
        match self.inner.slot.pinned() {
            Some(view) => Ok(View(Kept::ByItsObject(view))),
            None => self.look_further(),
        }
    }

    #[inline(never)]
    fn look_further<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<View<'_, T>, ViewError> {
        match self.inner.shared.views.lend(&self.inner.slot) {
            Some(view) => Ok(View(Kept::ForAWhile(view))),
            None => self.view_as().map(|view| View(Kept::Here(view))),
        }
    }
}

/// An object that a [`Query`](crate::cache::Query) lends, seen as a `K`. Its metadata is what it dereferences to.
pub struct Borrowed<'a, K> {
    object: &'a Object,
    view: PhantomData<fn() -> K>,
}

impl<'a, K> Borrowed<'a, K> {
    pub(crate) fn new(object: &'a Object) -> Self {
        Self { object, view: PhantomData }
    }

    /// The object itself, to be kept.
    #[must_use]
    pub fn to_object(self) -> Object<K> {
        self.object.cast()
    }
}

impl<'a, K: DeserializeOwned + Send + Sync + 'static> Borrowed<'a, K> {
    /// The object as a `K`.
    ///
    /// # Errors
    ///
    /// Where the object does not fit the type.
    #[inline]
    pub fn look(self) -> Result<View<'a, K>, ViewError> {
        self.object.look_as()
    }
}

impl<K> Deref for Borrowed<'_, K> {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.object
    }
}

impl<K> Clone for Borrowed<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Borrowed<'_, K> {}

impl<K> fmt::Debug for Borrowed<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
