//! The views of one version of one object: a short list, one cell for each type that was ever asked for.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use arc_swap::{ArcSwapOption, Guard};

use super::ViewStats;

/// The place for the views of one version of one object. Two words while there are none.
#[derive(Default)]
pub(crate) struct Slot {
    first: OnceLock<Arc<Cell>>,
}

/// One view of one type; filled, emptied and filled again during the object's life.
pub(super) struct Cell {
    kind: TypeId,
    /// Read since the ring last looked.
    used: AtomicBool,
    /// There was a view once.
    decoded: AtomicBool,
    /// A view that stays as long as the cell does, and its weight. It is lent as it is.
    pinned: OnceLock<(View, usize)>,
    /// A view that is kept for a while. It is read without a lock, and changed only where the one below is held. Where it is
    /// there, none is `lent`.
    kept: ArcSwapOption<Kept>,
    /// A view that is not kept, as long as others hold it.
    lent: Mutex<Option<Weak<dyn Any + Send + Sync>>>,
    next: OnceLock<Arc<Cell>>,
    counters: Arc<Counters>,
}

/// A view of any type.
type View = Arc<dyn Any + Send + Sync>;

pub(super) struct Kept {
    view: View,
    weight: usize,
}

/// A view that is held, and not counted: it does not go as long as this is there.
pub(crate) struct Held<T> {
    /// Never without a view, and always of this type.
    kept: Guard<Option<Arc<Kept>>>,
    view: PhantomData<fn() -> T>,
}

impl<T: 'static> Held<T> {
    fn of(kept: Guard<Option<Arc<Kept>>>) -> Option<Self> {
        kept.as_ref()?.view.is::<T>().then_some(Self { kept, view: PhantomData })
    }
}

impl<T: 'static> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let view = self.kept.as_ref().and_then(|kept| kept.view.downcast_ref());
        view.unwrap_or_else(|| unreachable!("it was looked at when this was made"))
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { kept: Guard::from_inner(Option::clone(&self.kept)), view: PhantomData }
    }
}

/// Numbers that all cells of one `Views` share.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Spread by thread, so that readers do not meet here.
    hits: [Padded; 16],
    decodes: AtomicU64,
    /// Grows only under the ring's lock (or without limit); may shrink at any time.
    kept_bytes: AtomicUsize,
    kept_views: AtomicUsize,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded(AtomicU64);

thread_local! {
    /// Where this thread counts.
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// What became of a view that had to go.
pub(super) enum Released {
    /// It was the last reference: to be dropped outside of locks.
    Gone(Arc<dyn Any + Send + Sync>),
    /// Others hold it.
    Lent(Arc<dyn Any + Send + Sync>),
    /// There was none.
    Nothing,
}

/// A view weighs what it says, and what it costs to keep: so nothing weighs nothing.
pub(super) fn whole_weight(weight: usize) -> usize {
    weight.saturating_add(size_of::<Cell>() + size_of::<Kept>() + 2 * size_of::<Arc<Cell>>())
}

impl Slot {
    /// The cell for views of this type, if one was ever asked for.
    pub(super) fn find<T: 'static>(&self) -> Option<&Cell> {
        let kind = TypeId::of::<T>();
        let mut cells = std::iter::successors(self.first.get(), |cell| cell.next.get());
        cells.find(|cell| cell.kind == kind).map(|cell| &**cell)
    }

    /// Looks at the first view's cell, if there is one.
    pub(crate) fn touch(&self) -> bool {
        self.first.get().is_some_and(|cell| cell.used.load(Ordering::Relaxed))
    }

    /// The cell for views of this type.
    pub(super) fn cell<T: 'static>(&self, counters: &Arc<Counters>) -> &Arc<Cell> {
        let kind = TypeId::of::<T>();
        let mut place = &self.first;
        loop {
            let cell = place.get_or_init(|| Arc::new(Cell::new(kind, Arc::clone(counters))));
            if cell.kind == kind {
                return cell;
            }
            place = &cell.next;
        }
    }
}

#[cfg(test)]
impl Slot {
    /// Whether any cell refers to a view, alive or not.
    pub(super) fn pins_memory(&self) -> bool {
        std::iter::successors(self.first.get(), |cell| cell.next.get())
            .any(|cell| cell.pinned.get().is_some() || cell.keeps() || cell.lock().is_some())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut next = self.first.get();
        while let Some(cell) = next {
            cell.release();
            next = cell.next.get();
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Cell {
    fn new(kind: TypeId, counters: Arc<Counters>) -> Self {
        Self {
            kind,
            used: AtomicBool::new(false),
            decoded: AtomicBool::new(false),
            pinned: OnceLock::new(),
            kept: ArcSwapOption::empty(),
            lent: Mutex::default(),
            next: OnceLock::new(),
            counters,
        }
    }

    /// The view, if it is kept or someone holds it.
    pub(super) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        if let Some((view, _)) = self.pinned.get() {
            return Arc::clone(view).downcast().ok();
        }
        if let Some(kept) = &*self.kept.load() {
            self.note_use();
            return Arc::clone(&kept.view).downcast().ok();
        }
        let lent = self.lock();
        // It may have become one that is kept.
        let view = match &*self.kept.load() {
            Some(kept) => Some(Arc::clone(&kept.view)),
            None => lent.as_ref().and_then(Weak::upgrade),
        };
        drop(lent);
        self.note_use();
        view?.downcast().ok()
    }

    /// The view, if it is kept for a while.
    pub(super) fn held<T: 'static>(&self) -> Option<Held<T>> {
        let held = Held::of(self.kept.load())?;
        self.note_use();
        Some(held)
    }

    /// Mostly it is noted already, and then nothing is written that others read.
    fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// The view, if it is kept for good.
    pub(super) fn pinned<T: 'static>(&self) -> Option<&T> {
        self.pinned.get()?.0.downcast_ref()
    }

    /// Keeps the view for good; or gives the one that is there.
    pub(super) fn pin<T: Send + Sync + 'static>(&self, view: Arc<T>, weight: usize) -> Arc<T> {
        let mut is_new = false;
        let (there, _) = self.pinned.get_or_init(|| {
            is_new = true;
            (Arc::clone(&view) as View, weight)
        });
        if is_new {
            self.counters.kept_bytes.fetch_add(weight, Ordering::Relaxed);
            self.counters.kept_views.fetch_add(1, Ordering::Relaxed);
        }
        Arc::clone(there).downcast().unwrap_or(view)
    }

    /// Keeps the view; or gives the one that is there.
    pub(super) fn keep_or_get<T: Send + Sync + 'static>(&self, view: Arc<T>, weight: usize) -> Arc<T> {
        let mut lent = self.lock();
        let there = match &*self.kept.load() {
            Some(kept) => Some(Arc::clone(&kept.view)),
            None => lent.as_ref().and_then(Weak::upgrade),
        };
        if let Some(there) = there.and_then(|there| there.downcast().ok()) {
            drop(lent);
            return there;
        }
        *lent = None;
        self.kept.store(Some(Arc::new(Kept { view: Arc::clone(&view) as _, weight })));
        self.used.store(false, Ordering::Relaxed);
        self.counters.kept_bytes.fetch_add(weight, Ordering::Relaxed);
        self.counters.kept_views.fetch_add(1, Ordering::Relaxed);
        view
    }

    /// Remembers the view for as long as others hold it.
    pub(super) fn lend<T: Send + Sync + 'static>(&self, view: &Arc<T>) {
        let view: View = Arc::clone(view) as _;
        *self.lock() = Some(Arc::downgrade(&view));
    }

    /// Keeps the view no longer.
    pub(super) fn release(&self) -> Released {
        if let Some((_, weight)) = self.pinned.get() {
            // Its slot goes, and the cell with it.
            self.counters.kept_bytes.fetch_sub(*weight, Ordering::Relaxed);
            self.counters.kept_views.fetch_sub(1, Ordering::Relaxed);
            return Released::Nothing;
        }
        let mut lent = self.lock();
        let Some(kept) = self.kept.swap(None) else {
            *lent = None;
            return Released::Nothing;
        };
        self.counters.kept_bytes.fetch_sub(kept.weight, Ordering::Relaxed);
        self.counters.kept_views.fetch_sub(1, Ordering::Relaxed);
        // Whoever took it from here has been counted by now, and nobody does any more: new references come from those who
        // have one already, or under this lock.
        match Arc::try_unwrap(kept) {
            Ok(Kept { view, .. }) if Arc::strong_count(&view) == 1 => Released::Gone(view),
            Ok(Kept { view, .. }) => {
                *lent = Some(Arc::downgrade(&view));
                Released::Lent(view)
            }
            Err(held) => {
                *lent = Some(Arc::downgrade(&held.view));
                Released::Lent(Arc::clone(&held.view))
            }
        }
    }

    /// Forgets a lent view that nobody holds any more. Says whether someone still does.
    pub(super) fn is_lent(&self) -> bool {
        let mut lent = self.lock();
        let is_held = lent.as_ref().is_some_and(|view| view.strong_count() > 0);
        if !is_held {
            *lent = None;
        }
        is_held
    }

    /// Whether there was a view before the one that was decoded now.
    pub(super) fn is_decoded_again(&self) -> bool {
        self.decoded.swap(true, Ordering::Relaxed)
    }

    /// Whether it keeps a view.
    pub(super) fn keeps(&self) -> bool {
        self.kept.load().is_some()
    }

    /// Whether it was read since the last such question.
    pub(super) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Nothing that could panic is done with the lock held.
    fn lock(&self) -> MutexGuard<'_, Option<Weak<dyn Any + Send + Sync>>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    pub(super) fn hit(&self) {
        if let Some(hits) = self.hits.get(SHARD.with(|shard| *shard) % self.hits.len()) {
            hits.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn decoded(&self) {
        self.decodes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn stats(&self) -> ViewStats {
        ViewStats {
            hits: self.hits.iter().map(|hits| hits.0.load(Ordering::Relaxed)).sum(),
            decodes: self.decodes.load(Ordering::Relaxed),
            kept_views: self.kept_views.load(Ordering::Relaxed),
            kept_bytes: self.kept_bytes(),
        }
    }
}
