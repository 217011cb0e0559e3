//! What one registration is told, replayed, and checked event by event.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_informer::informer::{Event, Informer};
use kube_informer::object::Object;
use serde_json::Value;
use tokio::sync::watch;

use crate::progress::Progress;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Only what a view does not have is added to it.
    AddedIsNew,
    /// What there was at the beginning is told before what changed of it.
    InitialIsFirst,
    /// The old object of an update is what was told last.
    OldIsKnown,
    /// An update is of one object: it has one UID.
    SameObject,
    /// What there is after a gap follows it, as a whole, before anything else.
    NowFollowsGap,
    /// Only what a view has is deleted from it.
    DeletedIsKnown,
    /// What is said again is what was told last.
    AgainIsKnown,
    /// A handler finds the cache at its event's version, or later.
    CacheIsNotBehind,
    /// Of what has ended, nothing is heard.
    EndIsEnd,
    /// In the end a view is what its cache is.
    ViewIsCache,
    /// In the end a cache is what the server has.
    CacheIsServer,
    /// Something took too long, or went wrong by itself.
    Works,
    /// Nothing is left.
    NothingLeft,
}

/// A rule that was broken.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    text: String,
}

/// All violations. A clone is the same.
#[derive(Debug, Clone)]
pub(crate) struct Court {
    found: Arc<Mutex<Vec<Violation>>>,
    progress: Progress,
}

/// More would not help.
const MOST: usize = 20;

/// What a registration has been told. A clone is the same.
#[derive(Debug, Clone)]
pub(crate) struct View {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    informer: Informer,
    court: Court,
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<Key, Version>,
    /// Objects of which a change was told since the beginning, or the last gap.
    changed: BTreeSet<Key>,
    /// What a gap has said that there is, and was not told yet.
    due: BTreeMap<Key, Version>,
    has_ended: bool,
    heard: Heard,
}

/// Namespace and name.
type Key = (String, String);

/// An object, and which version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    uid: String,
    version: String,
}

/// What has happened to views.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Heard {
    pub(crate) events: u64,
    pub(crate) gaps: u64,
    pub(crate) again: u64,
    pub(crate) found_missing: u64,
}

impl View {
    pub(crate) fn new(name: String, informer: Informer, court: Court) -> Self {
        let (state, changes) = (Mutex::default(), watch::Sender::new(()));
        Self { inner: Arc::new(Inner { name, informer, court, state, changes }) }
    }

    /// Takes an event.
    pub(crate) fn tell(&self, event: &Event) {
        self.check_cache(event);
        let mut state = self.lock();
        if let Err((rule, text)) = state.tell(event) {
            drop(state);
            self.inner.court.accuse(rule, format!("{}: {text}: {}", self.inner.name, shown(event)));
        }
        self.inner.changes.send_replace(());
    }

    /// The cache may be ahead of what is told, and not behind it.
    fn check_cache(&self, event: &Event) {
        let Some(object) = event.object() else { return };
        let Some(held) = self.inner.informer.get(object.namespace(), object.name()) else { return };
        if held.uid() == object.uid() && held.version() < object.version() {
            let text = format!("{}: the cache has {}: {}", self.inner.name, held.version(), shown(event));
            self.inner.court.accuse(Rule::CacheIsNotBehind, text);
        }
    }

    /// Nothing may be told from now on.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
    }

    pub(crate) fn heard(&self) -> Heard {
        self.lock().heard
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Waits until it is what the cache is. Without a deadline of its own.
    pub(crate) async fn settled(&self) {
        let mut changes = self.inner.changes.subscribe();
        while self.difference().is_some() && changes.changed().await.is_ok() {}
    }

    /// The first object that is not the same in the cache.
    pub(crate) fn difference(&self) -> Option<String> {
        let cached: BTreeMap<_, _> = self
            .inner
            .informer
            .list()
            .into_iter()
            .map(|object| (key(&object), Version::of(&object)))
            .collect();
        let state = self.lock();
        let differs = |key: &&Key| state.objects.get(*key) != cached.get(*key);
        let key = state.objects.keys().chain(cached.keys()).find(differs)?;
        Some(format!("{key:?}: told {:?}, cached {:?}", state.objects.get(key), cached.get(key)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, event: &Event) -> Result<(), (Rule, String)> {
        let wrong = |rule, text: &str| Err((rule, text.to_owned()));
        self.heard.events += 1;
        if self.has_ended {
            return wrong(Rule::EndIsEnd, "told after its end");
        }
        let is_initial = matches!(event, Event::Added { initial: true, .. });
        if let Some(object) = event.object().filter(|_| !is_initial) {
            self.changed.insert(key(object));
        }
        if !self.due.is_empty() {
            let next = event.object().filter(|_| is_initial);
            if next.and_then(|next| self.due.remove(&key(next))) != next.map(Version::of) || next.is_none() {
                return wrong(Rule::NowFollowsGap, "not what the gap said");
            }
        }
        match event {
            Event::Added { new, .. } => {
                if is_initial && self.changed.contains(&key(new)) {
                    return wrong(Rule::InitialIsFirst, "a change of it was told before");
                }
                if let Some(known) = self.objects.insert(key(new), Version::of(new)) {
                    return Err((Rule::AddedIsNew, format!("there was {known:?}")));
                }
            }
            Event::Updated { new, resync: true, .. } => {
                self.heard.again += 1;
                let known = self.objects.get(&key(new));
                if known != Some(&Version::of(new)) {
                    return Err((Rule::AgainIsKnown, format!("there was {known:?}")));
                }
            }
            Event::Updated { old, new, .. } => {
                let known = self.objects.insert(key(new), Version::of(new));
                if known.as_ref() != Some(&Version::of(old)) {
                    return Err((Rule::OldIsKnown, format!("there was {known:?}")));
                }
                if old.uid() != new.uid() || old.key() != new.key() {
                    return wrong(Rule::SameObject, "another object");
                }
            }
            Event::Deleted { last, certain } => {
                self.heard.found_missing += u64::from(!certain);
                let known = self.objects.remove(&key(last));
                if known.as_ref().is_none_or(|known| known.uid != last.uid().to_string()) {
                    return Err((Rule::DeletedIsKnown, format!("there was {known:?}")));
                }
            }
            Event::Gap { now, .. } => {
                self.heard.gaps += 1;
                self.objects.clear();
                self.changed.clear();
                self.due =
                    now.list().into_iter().map(|object| (key(&object), Version::of(&object))).collect();
            }
            _ => return wrong(Rule::Works, "an event that nobody knows"),
        }
        Ok(())
    }
}

fn key(object: &Object<Value>) -> Key {
    (object.namespace().to_owned(), object.name().to_owned())
}

impl Version {
    fn of(object: &Object<Value>) -> Self {
        Self { uid: object.uid().to_string(), version: object.version().to_string() }
    }
}

fn shown(event: &Event) -> String {
    let version = |object: &Object<Value>| format!("{} {:?}", object.key(), Version::of(object));
    match event {
        Event::Added { new, initial } => format!("added {} initial {initial}", version(new)),
        Event::Updated { old, new, resync } => {
            format!("updated {} from {} resync {resync}", version(new), version(old))
        }
        Event::Deleted { last, certain } => format!("deleted {} certain {certain}", version(last)),
        other => format!("{other:?}"),
    }
}

impl Court {
    pub(crate) fn new(progress: Progress) -> Self {
        Self { found: Arc::default(), progress }
    }

    /// A rule was broken: nothing more needs to be done.
    pub(crate) fn accuse(&self, rule: Rule, text: String) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < MOST {
            found.push(Violation { rule, text });
        }
        drop(found);
        self.progress.finish();
    }

    pub(crate) fn found(&self) -> Vec<Violation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.found().is_empty()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.text)
    }
}

impl Heard {
    pub(crate) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.gaps += other.gaps;
        self.again += other.again;
        self.found_missing += other.found_missing;
    }
}
