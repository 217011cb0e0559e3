//! The views of one version of one object: a short list, one place for each type that was ever asked for.
//!
//! What a place has goes with its slot. What a cell has may go before, and the ring knows the cell: so a view that is to stay
//! is moved from its cell to its place. From then on the cell is empty, and the ring forgets it as it forgets all such.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};

use arc_swap::Guard;

use super::ViewStats;
use crate::sync::{ArcSwapOption, AtomicBool, AtomicU8, AtomicUsize, Mutex, MutexGuard, OnceLock};

/// The views of one version of one object. Five words while there are none.
#[derive(Default)]
pub(crate) struct Slot {
    /// The view that was pinned first: what is looked at most is one step away. Its place has it, too.
    near: OnceLock<View>,
    first: OnceLock<Box<Place>>,
}

/// Every object has one. In tests, what it is made of may be a scheduler's, and takes more.
#[cfg(not(test))]
const _: () = assert!(size_of::<Slot>() <= 5 * size_of::<usize>(), "a slot is five words");

/// Where the views of one type are found. What is read most stands together.
#[repr(C)]
pub(super) struct Place {
    kind: TypeId,
    /// A view that stays as long as the slot does. It is lent as it is.
    pinned: OnceLock<Kept>,
    /// Where a view is kept for a while, or not at all. There is none where all are kept.
    cell: OnceLock<Arc<Cell>>,
    next: OnceLock<Box<Place>>,
    counters: Arc<Counters>,
}

/// One view of one type; filled, emptied and filled again during the object's life.
pub(super) struct Cell {
    /// Read since the ring last looked.
    used: AtomicBool,
    /// There was a view once.
    decoded: AtomicBool,
    /// How often the view was looked at; not more than [`OFTEN`], and a few may be missed.
    looks: AtomicU8,
    /// A view that is kept for a while. It is read without a lock, and changed only where the one below is held. Where it is
    /// there, none is `lent`.
    kept: ArcSwapOption<Kept>,
    /// A view that is not kept, as long as others hold it.
    lent: Mutex<Option<Weak<dyn Any + Send + Sync>>>,
    counters: Arc<Counters>,
}

/// A view that was looked at so many times is one to be pinned. Those who are told of an object look at it a few times each:
/// mostly that is all, and not worth a lock.
pub(super) const OFTEN: u8 = 32;

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
    /// What the view weighs.
    pub(super) fn weight(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.weight)
    }

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
    hits: [Padded<AtomicU64>; 16],
    decodes: AtomicU64,
    /// Grows only under the ring's lock (or without limit); may shrink at any time.
    kept_bytes: AtomicUsize,
    kept_views: AtomicUsize,
    /// What those weigh of the kept ones that do not go before their slots. Grows and shrinks likewise.
    /// Asked by those who look at what could be pinned: apart from what is written with each decode.
    pinned_bytes: Padded<AtomicUsize>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded<T>(T);

thread_local! {
    /// Where this thread counts.
    static SHARD: usize = {
        // It outlives all schedules of a test.
        use std::sync::atomic::AtomicUsize;
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
    weight.saturating_add(
        size_of::<Place>() + size_of::<Cell>() + size_of::<Kept>() + 2 * size_of::<Arc<Cell>>(),
    )
}

impl Slot {
    /// The view of the object, if it is kept as long as the slot is.
    #[inline]
    pub(crate) fn pinned<T: 'static>(&self) -> Option<&T> {
        let near = self.near.get().and_then(|view| view.downcast_ref());
        near.or_else(|| self.find::<T>()?.pinned.get()?.view.downcast_ref())
    }

    /// Has the view that was pinned at a place of its own within reach, if it is the first.
    pub(super) fn bring_near(&self, place: &Place) {
        if let Some(pinned) = place.pinned.get() {
            self.near.get_or_init(|| Arc::clone(&pinned.view));
        }
    }

    /// The place of views of this type, if one was ever asked for.
    #[inline]
    pub(super) fn find<T: 'static>(&self) -> Option<&Place> {
        let kind = TypeId::of::<T>();
        self.places().find(|place| place.kind == kind)
    }

    /// Looks whether a view was pinned, and where none is, at the cell of the one that was asked for first, if there is one.
    ///
    /// What was pinned is not looked at itself. Which part of it will be read is not known here, and its beginning, where it is
    /// counted, mostly is not: that would be one more line of memory to wait for, for each object.
    pub(crate) fn touch(&self) -> Option<bool> {
        if self.near.get().is_some() {
            return Some(true);
        }
        let place = self.first.get()?;
        place.cell.get().map(|cell| cell.used.load(Ordering::Relaxed))
    }

    /// The place of views of this type.
    pub(super) fn place<T: 'static>(&self, counters: &Arc<Counters>) -> &Place {
        let kind = TypeId::of::<T>();
        let mut next = &self.first;
        loop {
            let place = next.get_or_init(|| Box::new(Place::new(kind, Arc::clone(counters))));
            if place.kind == kind {
                return place;
            }
            next = &place.next;
        }
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::successors(self.first.get(), |place| place.next.get()).map(|place| &**place)
    }
}

#[cfg(test)]
impl Slot {
    /// Whether anything refers to a view, alive or not.
    pub(super) fn pins_memory(&self) -> bool {
        self.places().any(|place| {
            place.pinned.get().is_some() || place.cell().keeps() || place.cell().lock().is_some()
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.places().for_each(Place::release);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Place {
    fn new(kind: TypeId, counters: Arc<Counters>) -> Self {
        let (pinned, cell, next) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { kind, pinned, cell, next, counters }
    }

    pub(super) fn cell(&self) -> &Arc<Cell> {
        self.cell.get_or_init(|| Arc::new(Cell::new(Arc::clone(&self.counters))))
    }

    /// The view, if it is kept or someone holds it.
    pub(super) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let pinned = || self.pinned.get().map(|pinned| Arc::clone(&pinned.view));
        // It may have been moved while the cell was looked at.
        let view = pinned().or_else(|| self.cell.get()?.get()).or_else(pinned);
        view?.downcast().ok()
    }

    /// The view, if it is kept for a while.
    pub(super) fn held<T: 'static>(&self) -> Option<Held<T>> {
        self.cell.get()?.held()
    }

    /// Whether its view is looked at again and again.
    pub(super) fn is_looked_at_often(&self) -> bool {
        self.cell.get().is_some_and(|cell| cell.looks.load(Ordering::Relaxed) >= OFTEN)
    }

    /// Keeps the view for good; or gives the one that is there.
    pub(super) fn pin<T: Send + Sync + 'static>(&self, view: Arc<T>, weight: usize) -> Arc<T> {
        let mut is_new = false;
        let there = self.pinned.get_or_init(|| {
            is_new = true;
            Kept { view: Arc::clone(&view) as View, weight }
        });
        if is_new {
            self.counters.keeps(weight);
            self.counters.pinned_bytes.0.fetch_add(weight, Ordering::Relaxed);
        }
        Arc::clone(&there.view).downcast().unwrap_or(view)
    }

    /// Keeps for good what is kept for a while, where it weighs no more than `room`. Under the ring's lock, as all that
    /// empties or fills a cell while its slot is there.
    pub(super) fn promote(&self, room: usize) {
        let Some(cell) = self.cell.get() else { return };
        let Some(kept) = cell.kept.load_full().filter(|kept| kept.weight <= room) else { return };
        // First here, then no longer there: whoever looks finds it.
        if self.pinned.set(Kept { view: Arc::clone(&kept.view), weight: kept.weight }).is_ok() {
            self.counters.pinned_bytes.0.fetch_add(kept.weight, Ordering::Relaxed);
            let _lent = cell.lock();
            cell.kept.store(None);
        }
    }

    /// Keeps nothing any longer: its slot goes, and all that it has with it.
    fn release(&self) {
        if let Some(pinned) = self.pinned.get() {
            // In this order: what is no longer pinned is no longer kept, for whoever reads both.
            self.counters.keeps_no_longer(pinned.weight);
            self.counters.pinned_bytes.0.fetch_sub(pinned.weight, Ordering::Release);
        }
        if let Some(cell) = self.cell.get() {
            cell.release();
        }
    }
}

impl Cell {
    fn new(counters: Arc<Counters>) -> Self {
        Self {
            used: AtomicBool::new(false),
            decoded: AtomicBool::new(false),
            looks: AtomicU8::new(0),
            kept: ArcSwapOption::empty(),
            lent: Mutex::default(),
            counters,
        }
    }

    fn get(&self) -> Option<View> {
        if let Some(kept) = &*self.kept.load() {
            self.note_use();
            return Some(Arc::clone(&kept.view));
        }
        let lent = self.lock();
        // It may have become one that is kept.
        let view = match &*self.kept.load() {
            Some(kept) => Some(Arc::clone(&kept.view)),
            None => lent.as_ref().and_then(Weak::upgrade),
        };
        drop(lent);
        self.note_use();
        view
    }

    fn held<T: 'static>(&self) -> Option<Held<T>> {
        let held = Held::of(self.kept.load())?;
        self.note_use();
        self.note_look();
        Some(held)
    }

    /// Once they were enough, nothing is written that others read.
    fn note_look(&self) {
        let looks = self.looks.load(Ordering::Relaxed);
        if looks < OFTEN {
            self.looks.store(looks + 1, Ordering::Relaxed);
        }
    }

    /// Mostly it is noted already, and then nothing is written that others read.
    fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
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
        self.looks.store(0, Ordering::Relaxed);
        self.counters.keeps(weight);
        view
    }

    /// Remembers the view for as long as others hold it.
    pub(super) fn lend<T: Send + Sync + 'static>(&self, view: &Arc<T>) {
        let view: View = Arc::clone(view) as _;
        *self.lock() = Some(Arc::downgrade(&view));
    }

    /// Keeps the view no longer.
    pub(super) fn release(&self) -> Released {
        let mut lent = self.lock();
        let Some(kept) = self.kept.swap(None) else {
            *lent = None;
            return Released::Nothing;
        };
        self.counters.keeps_no_longer(kept.weight);
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

    pub(super) fn pinned_bytes(&self) -> usize {
        self.pinned_bytes.0.load(Ordering::Acquire)
    }

    fn keeps(&self, weight: usize) {
        self.kept_bytes.fetch_add(weight, Ordering::Relaxed);
        self.kept_views.fetch_add(1, Ordering::Relaxed);
    }

    fn keeps_no_longer(&self, weight: usize) {
        self.kept_bytes.fetch_sub(weight, Ordering::Relaxed);
        self.kept_views.fetch_sub(1, Ordering::Relaxed);
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
