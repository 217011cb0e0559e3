//! What is kept: the objects, their order of change, one version for all.
//!
//! One writer at a time, many readers. Every change gets the next revision of the whole store and goes
//! into the log of its bucket (one bucket per stored resource), where watchers read it at their own pace:
//! there is no queue per watcher. The log is a window of a settable number of changes. Who asks for what
//! has left it is told so ([`TooOld`]), and starts again, as with etcd's compaction.
//!
//! Older states are not kept: a read at an older revision undoes the changes in the log since then.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::object::{Serialised, Stored};

/// Which bucket: storage group and plural name.
pub(crate) type BucketId = (String, String);

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One change of one object.
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: ChangeKind,
    pub(crate) old: Option<Arc<Stored>>,
    /// The new state; of a deletion the last state, at the deletion's revision.
    pub(crate) new: Arc<Stored>,
    /// The watch frames made of it so far, shared by all watchers.
    pub(crate) frames: crate::watch::Frames,
}

/// A change and the bucket that it happened in.
pub(crate) type Placed = (BucketId, Arc<Change>);

/// The asked-for revision has left the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision that can still be resumed from.
    pub(crate) oldest: u64,
}

/// Why a write did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Exists,
    /// The object is gone, or has another version than the caller saw.
    Changed,
}

/// A consistent list of objects.
pub(crate) struct Listing {
    pub(crate) revision: u64,
    /// Sorted by key.
    pub(crate) objects: Vec<Arc<Stored>>,
}

/// Which part of a list.
pub(crate) struct Ask<'a> {
    /// Of the keys: empty, or a namespace with its slash.
    pub(crate) prefix: &'a str,
    /// The key to start with.
    pub(crate) from: &'a str,
    /// As of when; `None`: now.
    pub(crate) revision: Option<u64>,
    /// At most so many.
    pub(crate) limit: usize,
    /// Which ones; `None`: all.
    pub(crate) selects: Option<&'a dyn Fn(&Stored) -> bool>,
}

struct Bucket {
    objects: BTreeMap<String, Arc<Stored>>,
    log: VecDeque<Arc<Change>>,
    /// The newest change that is no longer in the log; 0 if none has left it.
    lost: u64,
    /// Older versions than this are too old to start from. Never below `lost`; above it after a
    /// compaction, which does not disturb who had seen everything by then.
    floor: u64,
    /// Tells watchers that the log has grown, or (value: `None`) that the resource is gone.
    grown: watch::Sender<Option<u64>>,
}

struct State {
    revision: u64,
    /// The revision of the last compaction.
    compacted: u64,
    /// Sorted, so that who goes through all of them does so in the same order every time.
    buckets: BTreeMap<BucketId, Bucket>,
    /// Dependents by the UID of their owner.
    dependents: HashMap<String, BTreeSet<(BucketId, String)>>,
    uids: HashMap<String, (BucketId, String)>,
}

/// The store.
pub(crate) struct Store {
    state: RwLock<State>,
    window: usize,
    serialised: Arc<Serialised>,
    /// The newest revision, for those that follow everything.
    newest: watch::Sender<u64>,
}

impl Store {
    /// A store that remembers `window` changes per resource.
    pub(crate) fn new(window: usize) -> Self {
        let state = State {
            revision: 1,
            compacted: 0,
            buckets: BTreeMap::new(),
            dependents: HashMap::new(),
            uids: HashMap::new(),
        };
        let (newest, _) = watch::channel(1);
        Self { state: RwLock::new(state), window: window.max(1), serialised: Arc::default(), newest }
    }

    pub(crate) fn serialised(&self) -> &Arc<Serialised> {
        &self.serialised
    }

    pub(crate) fn revision(&self) -> u64 {
        self.read().revision
    }

    /// Follows the newest revision of the whole store.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    pub(crate) fn get(&self, bucket: &BucketId, key: &str) -> Option<Arc<Stored>> {
        self.read().buckets.get(bucket)?.objects.get(key).cloned()
    }

    /// The objects whose keys start with `prefix` as of now.
    pub(crate) fn list(&self, bucket: &BucketId, prefix: &str) -> Listing {
        let state = self.read();
        let found = state.buckets.get(bucket).into_iter();
        let all = found.flat_map(|b| range(&b.objects, prefix, prefix));
        let objects = all.map(|(_, object)| Arc::clone(object)).collect();
        Listing { revision: state.revision, objects }
    }

    /// A part of a list, and how many objects come after it: exactly where nothing is selected, else 1 for
    /// "some". Costs what the part is long, and a walk over the keys of the rest.
    pub(crate) fn page(&self, bucket: &BucketId, ask: &Ask<'_>) -> Result<(Listing, usize), TooOld> {
        let state = self.read();
        let revision = ask.revision.unwrap_or(state.revision);
        if ask.revision.is_some() {
            state.check_start(bucket, revision)?;
        }
        let Some(found) = state.buckets.get(bucket) else {
            return Ok((Listing { revision, objects: Vec::new() }, 0));
        };
        let from = ask.from.max(ask.prefix);
        // What the objects that changed since then were; the oldest change after `revision` says it.
        let mut before: BTreeMap<&str, Option<&Arc<Stored>>> = BTreeMap::new();
        for change in found.log.iter().rev().take_while(|c| c.revision > revision) {
            let key = change.new.key.as_str();
            if key >= from && key.starts_with(ask.prefix) {
                before.insert(key, change.old.as_ref());
            }
        }
        let mut changed = before.iter().peekable();
        let mut now = range(&found.objects, from, ask.prefix).peekable();
        let mut next = || loop {
            let gone = match (now.peek(), changed.peek()) {
                (Some((key, _)), Some((other, _))) => **other <= key.as_str(),
                (_, other) => other.is_some(),
            };
            if !gone {
                return now.next().map(|(_, object)| object);
            }
            let (key, old) = changed.next()?;
            now.next_if(|(other, _)| other.as_str() == *key);
            if let Some(old) = old {
                return Some(*old);
            }
        };
        let mut objects = Vec::new();
        let selected = |object: &Stored| ask.selects.is_none_or(|selects| selects(object));
        while objects.len() < ask.limit {
            let Some(object) = next() else { return Ok((Listing { revision, objects }, 0)) };
            if selected(object) {
                objects.push(Arc::clone(object));
            }
        }
        let left = match (ask.selects, objects.last()) {
            (None, Some(last)) => {
                // The objects of today, less those that were not yet there, and those that still were.
                let after = (Bound::Excluded(last.key.as_str()), Bound::Unbounded);
                let today = range(&found.objects, &last.key, ask.prefix).count()
                    - usize::from(found.objects.contains_key(&last.key));
                let differs = before.range::<str, _>(after);
                differs.fold(today, |left, (key, old)| {
                    left + usize::from(old.is_some()) - usize::from(found.objects.contains_key(*key))
                })
            }
            _ => usize::from(std::iter::from_fn(next).any(|object| selected(object))),
        };
        Ok((Listing { revision, objects }, left))
    }

    /// How many objects a bucket holds.
    pub(crate) fn count(&self, bucket: &BucketId) -> usize {
        self.read().buckets.get(bucket).map_or(0, |bucket| bucket.objects.len())
    }

    /// Number of objects per bucket.
    pub(crate) fn sizes(&self) -> Vec<(BucketId, usize)> {
        self.read().buckets.iter().map(|(id, b)| (id.clone(), b.objects.len())).collect()
    }

    /// Every object whose key starts with `prefix`, of every resource.
    pub(crate) fn everything(&self, prefix: &str) -> Vec<(BucketId, Arc<Stored>)> {
        let state = self.read();
        let all = state.buckets.iter();
        all.flat_map(|(id, b)| range(&b.objects, prefix, prefix).map(|(_, o)| (id.clone(), Arc::clone(o))))
            .collect()
    }

    /// The object with this UID.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(BucketId, Arc<Stored>)> {
        let state = self.read();
        let (bucket, key) = state.uids.get(uid)?;
        let object = state.buckets.get(bucket)?.objects.get(key)?;
        Some((bucket.clone(), Arc::clone(object)))
    }

    /// The objects that name `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(BucketId, Arc<Stored>)> {
        let state = self.read();
        let ids = state.dependents.get(uid).into_iter().flatten();
        ids.filter_map(|(bucket, key)| {
            let object = state.buckets.get(bucket)?.objects.get(key)?;
            Some((bucket.clone(), Arc::clone(object)))
        })
        .collect()
    }

    /// Whether a watch may start after `revision`.
    pub(crate) fn check_start(&self, bucket: &BucketId, revision: u64) -> Result<(), TooOld> {
        self.read().check_start(bucket, revision)
    }

    /// The changes after `revision`, oldest first, at most `most`; and the revision that they reach:
    /// everything up to it has been given.
    pub(crate) fn changes(
        &self,
        bucket: &BucketId,
        revision: u64,
        most: usize,
    ) -> Result<(Vec<Arc<Change>>, u64), TooOld> {
        let state = self.read();
        let Some(found) = state.buckets.get(bucket) else { return Ok((Vec::new(), state.revision)) };
        if revision < found.lost {
            return Err(TooOld { oldest: found.floor });
        }
        let from = found.log.partition_point(|c| c.revision <= revision);
        let batch: Vec<_> = found.log.range(from..).take(most).cloned().collect();
        let reached = if from + batch.len() == found.log.len() {
            state.revision
        } else {
            batch.last().map_or(revision, |c| c.revision)
        };
        Ok((batch, reached))
    }

    /// The changes of all buckets after `revision`, in order, and the revision that they reach: for the
    /// server's own housekeeping and simulator.
    pub(crate) fn all_changes(&self, revision: u64) -> Result<(Vec<Placed>, u64), TooOld> {
        let state = self.read();
        let mut all = Vec::new();
        for (id, bucket) in &state.buckets {
            if revision < bucket.lost {
                return Err(TooOld { oldest: bucket.floor });
            }
            let from = bucket.log.partition_point(|c| c.revision <= revision);
            all.extend(bucket.log.range(from..).map(|c| (id.clone(), Arc::clone(c))));
        }
        all.sort_by_key(|(_, change)| change.revision);
        Ok((all, state.revision))
    }

    /// Follows the log of a bucket: the value changes when it grows, and is `None` once the resource is
    /// gone.
    pub(crate) fn follow(&self, bucket: &BucketId) -> watch::Receiver<Option<u64>> {
        if let Some(found) = self.read().buckets.get(bucket) {
            return found.grown.subscribe();
        }
        self.write().bucket(bucket).grown.subscribe()
    }

    /// Adds an object; `make` is given its revision.
    pub(crate) fn insert(
        &self,
        bucket: &BucketId,
        key: &str,
        make: impl FnOnce(u64) -> Stored,
    ) -> Result<Arc<Stored>, Refused> {
        let mut state = self.write();
        if state.bucket(bucket).objects.contains_key(key) {
            return Err(Refused::Exists);
        }
        Ok(self.commit(&mut state, bucket, ChangeKind::Added, None, make))
    }

    /// Replaces an object that is still at the version the caller saw.
    pub(crate) fn replace(
        &self,
        bucket: &BucketId,
        seen: &Arc<Stored>,
        make: impl FnOnce(u64) -> Stored,
    ) -> Result<Arc<Stored>, Refused> {
        self.commit_over(bucket, seen, ChangeKind::Modified, make)
    }

    /// Removes an object that is still at the version the caller saw; `make` gives its last state.
    pub(crate) fn remove(
        &self,
        bucket: &BucketId,
        seen: &Arc<Stored>,
        make: impl FnOnce(u64) -> Stored,
    ) -> Result<Arc<Stored>, Refused> {
        self.commit_over(bucket, seen, ChangeKind::Deleted, make)
    }

    /// Ends a bucket: its watchers get what is left in the log and end. Whoever starts later, when there may
    /// be another resource of that name, knows nothing of what was before.
    pub(crate) fn drop_bucket(&self, bucket: &BucketId) {
        let mut state = self.write();
        let revision = state.revision;
        let Some(found) = state.buckets.get_mut(bucket) else { return };
        let objects = std::mem::take(&mut found.objects);
        found.floor = revision;
        let (next, _) = watch::channel(Some(revision));
        std::mem::replace(&mut found.grown, next).send_replace(None);
        for object in objects.values() {
            state.unlink(bucket, object);
        }
    }

    /// Forgets all logged changes: every older version is now too old.
    pub(crate) fn compact(&self) {
        let mut state = self.write();
        let revision = state.revision;
        state.compacted = revision;
        for bucket in state.buckets.values_mut() {
            bucket.lost = bucket.log.back().map_or(bucket.lost, |last| last.revision);
            bucket.log.clear();
            bucket.floor = revision;
        }
    }

    fn commit_over(
        &self,
        bucket: &BucketId,
        seen: &Arc<Stored>,
        kind: ChangeKind,
        make: impl FnOnce(u64) -> Stored,
    ) -> Result<Arc<Stored>, Refused> {
        let mut state = self.write();
        let old = state.unchanged(bucket, seen)?;
        Ok(self.commit(&mut state, bucket, kind, Some(old), make))
    }

    fn commit(
        &self,
        state: &mut State,
        id: &BucketId,
        kind: ChangeKind,
        old: Option<Arc<Stored>>,
        make: impl FnOnce(u64) -> Stored,
    ) -> Arc<Stored> {
        state.revision += 1;
        let revision = state.revision;
        let new = Arc::new(make(revision));
        if let Some(old) = &old {
            state.unlink(id, old);
        }
        if kind != ChangeKind::Deleted {
            state.link(id, &new);
        }
        let window = self.window;
        let bucket = state.bucket(id);
        if kind == ChangeKind::Deleted {
            bucket.objects.remove(&new.key);
        } else {
            bucket.objects.insert(new.key.clone(), Arc::clone(&new));
        }
        let frames = crate::watch::Frames::default();
        bucket.log.push_back(Arc::new(Change { revision, kind, old, new: Arc::clone(&new), frames }));
        while bucket.log.len() > window {
            if let Some(left) = bucket.log.pop_front() {
                bucket.lost = left.revision;
                bucket.floor = bucket.floor.max(left.revision);
            }
        }
        bucket.grown.send_replace(Some(revision));
        self.newest.send_replace(revision);
        new
    }

    // A panic while writing can only come from a bug in serialising; the state is then as before the
    // write or complete, never in between that a reader could not bear. So poison is ignored.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn bucket(&mut self, id: &BucketId) -> &mut Bucket {
        if !self.buckets.contains_key(id) {
            let (grown, _) = watch::channel(Some(self.revision));
            let floor = self.floor(id);
            let bucket = Bucket { objects: BTreeMap::new(), log: VecDeque::new(), lost: 0, floor, grown };
            self.buckets.insert(id.clone(), bucket);
        }
        self.buckets.get_mut(id).expect("inserted above")
    }

    /// The oldest version that can be started from. A bucket that does not exist has had no changes.
    fn floor(&self, bucket: &BucketId) -> u64 {
        self.buckets.get(bucket).map_or(self.compacted, |found| found.floor)
    }

    fn check_start(&self, bucket: &BucketId, revision: u64) -> Result<(), TooOld> {
        let oldest = self.floor(bucket);
        if revision < oldest { Err(TooOld { oldest }) } else { Ok(()) }
    }

    fn unchanged(&self, bucket: &BucketId, seen: &Arc<Stored>) -> Result<Arc<Stored>, Refused> {
        let now = self.buckets.get(bucket).and_then(|b| b.objects.get(&seen.key));
        now.filter(|now| now.revision == seen.revision).cloned().ok_or(Refused::Changed)
    }

    fn link(&mut self, bucket: &BucketId, object: &Stored) {
        self.uids.insert(object.uid.clone(), (bucket.clone(), object.key.clone()));
        for owner in &object.owners {
            let dependents = self.dependents.entry(owner.clone()).or_default();
            dependents.insert((bucket.clone(), object.key.clone()));
        }
    }

    fn unlink(&mut self, bucket: &BucketId, object: &Stored) {
        let id = (bucket.clone(), object.key.clone());
        self.uids.remove(&object.uid);
        for owner in &object.owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(&id);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }
}

/// The objects from a key on whose keys start with `prefix`: empty, or a namespace with its slash.
fn range<'o>(
    objects: &'o BTreeMap<String, Arc<Stored>>,
    from: &str,
    prefix: &str,
) -> impl Iterator<Item = (&'o String, &'o Arc<Stored>)> + use<'o> {
    // The first key after all that start with it; found once, so that walking looks at no key.
    match prefix.strip_suffix('/').map(|namespace| format!("{namespace}0")) {
        Some(end) => {
            let from = from.min(&end);
            objects.range::<str, _>((Bound::Included(from), Bound::Excluded(end.as_str())))
        }
        None => objects.range::<str, _>((Bound::Included(from), Bound::Unbounded)),
    }
}

#[cfg(test)]
mod tests;
