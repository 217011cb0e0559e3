//! The views of one version of one object: a short list, one cell for each type that was ever asked for.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

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
    /// A view that stays as long as the cell does, and its weight. It is lent without a lock.
    pinned: OnceLock<(View, usize)>,
    state: Mutex<State>,
    next: OnceLock<Arc<Cell>>,
    counters: Arc<Counters>,
}

/// A view of any type.
type View = Arc<dyn Any + Send + Sync>;

enum State {
    // ## Empty => (Kept | Lent)
    Empty,
    // ## Kept => (Empty | Lent, if someone holds it)
    Kept { view: Arc<dyn Any + Send + Sync>, weight: usize },
    // ## Lent => (Empty | Kept, when nobody holds it any more)
    Lent(Weak<dyn Any + Send + Sync>),
}

/// Numbers that all cells of one `Views` share.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Spread by cell, so that readers of different objects do not meet here.
    hits: [Padded; 16],
    decodes: AtomicU64,
    /// Grows only under the ring's lock (or without limit); may shrink at any time.
    kept_bytes: AtomicUsize,
    kept_views: AtomicUsize,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded(AtomicU64);

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
    weight.saturating_add(size_of::<Cell>() + 2 * size_of::<Arc<Cell>>())
}

impl Slot {
    /// The view of this type, if it stays as long as the slot does.
    pub(super) fn pinned<T: 'static>(&self) -> Option<&T> {
        let kind = TypeId::of::<T>();
        let mut cells = std::iter::successors(self.first.get(), |cell| cell.next.get());
        cells.find(|cell| cell.kind == kind)?.pinned()
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
            .any(|cell| cell.pinned.get().is_some() || !matches!(*cell.lock(), State::Empty))
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
            pinned: OnceLock::new(),
            state: Mutex::new(State::Empty),
            next: OnceLock::new(),
            counters,
        }
    }

    /// The view, if it is kept or someone holds it.
    pub(super) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        if let Some((view, _)) = self.pinned.get() {
            return Arc::clone(view).downcast().ok();
        }
        let view = match &*self.lock() {
            State::Empty => return None,
            State::Kept { view, .. } => Arc::clone(view),
            State::Lent(view) => view.upgrade()?,
        };
        // Mostly it is set already, and then nothing is written that others read.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        view.downcast().ok()
    }

    fn pinned<T: 'static>(&self) -> Option<&T> {
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
        let mut state = self.lock();
        let there: Option<Arc<dyn Any + Send + Sync>> = match &*state {
            State::Empty => None,
            State::Kept { view, .. } => Some(Arc::clone(view)),
            State::Lent(view) => view.upgrade(),
        };
        if let Some(there) = there.and_then(|there| there.downcast().ok()) {
            drop(state);
            return there;
        }
        *state = State::Kept { view: Arc::clone(&view) as _, weight };
        self.used.store(false, Ordering::Relaxed);
        self.counters.kept_bytes.fetch_add(weight, Ordering::Relaxed);
        self.counters.kept_views.fetch_add(1, Ordering::Relaxed);
        view
    }

    /// Remembers the view for as long as others hold it.
    pub(super) fn lend<T: Send + Sync + 'static>(&self, view: &Arc<T>) {
        let view: Arc<dyn Any + Send + Sync> = Arc::clone(view) as _;
        *self.lock() = State::Lent(Arc::downgrade(&view));
    }

    /// Keeps the view no longer.
    pub(super) fn release(&self) -> Released {
        if let Some((_, weight)) = self.pinned.get() {
            // Its slot goes, and the cell with it.
            self.counters.kept_bytes.fetch_sub(*weight, Ordering::Relaxed);
            self.counters.kept_views.fetch_sub(1, Ordering::Relaxed);
            return Released::Nothing;
        }
        let mut state = self.lock();
        let State::Kept { view, weight } = std::mem::replace(&mut *state, State::Empty) else {
            return Released::Nothing;
        };
        self.counters.kept_bytes.fetch_sub(weight, Ordering::Relaxed);
        self.counters.kept_views.fetch_sub(1, Ordering::Relaxed);
        // New references come from here only, under this lock, or from those who have one already.
        if Arc::strong_count(&view) == 1 {
            return Released::Gone(view);
        }
        *state = State::Lent(Arc::downgrade(&view));
        Released::Lent(view)
    }

    /// Forgets a lent view that nobody holds any more. Says whether someone still does.
    pub(super) fn is_lent(&self) -> bool {
        let mut state = self.lock();
        match &*state {
            State::Lent(view) if view.strong_count() > 0 => true,
            State::Lent(_) => {
                *state = State::Empty;
                false
            }
            State::Empty | State::Kept { .. } => false,
        }
    }

    /// Whether it keeps a view.
    pub(super) fn keeps(&self) -> bool {
        matches!(*self.lock(), State::Kept { .. })
    }

    /// Whether it was read since the last such question.
    pub(super) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Nothing that could panic is done with the lock held.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    pub(super) fn hit(&self, cell: &Arc<Cell>) {
        let at = (Arc::as_ptr(cell).addr() / align_of::<Padded>()) % self.hits.len();
        if let Some(hits) = self.hits.get(at) {
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
