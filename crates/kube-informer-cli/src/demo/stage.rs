//! What is shown of all that happens: lines that somebody can follow.
//!
//! - What is [said now](super::words::When) is a line at once. What is said soon waits for [`WINDOW`] at most, and is then said
//!   by its result, from the first state to the last; what came to nothing is not said. Pods of one workload that do the same
//!   are one line.
//! - Lines about one object are in order.
//! - What waits is bounded: where it is too much, it is said at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube_informer::object::{Object, ObjectKey};

use super::words::{self, When};
use crate::output::Lines;
use crate::style::{Style, Tone};

/// How long something may wait for what follows it.
pub(super) const WINDOW: Duration = Duration::from_millis(700);

/// How long a name may be: others are cut.
const WIDTH: usize = 28;

/// Objects that may wait.
const MOST: usize = 4096;

/// See the module. A clone is the same stage.
#[derive(Clone)]
pub(super) struct Stage {
    inner: Arc<Inner>,
}

struct Inner {
    lines: Lines,
    style: Style,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Key, Waiting>,
    tally: Tally,
}

/// What was shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Changes that came.
    pub(super) changes: u64,
    /// Lines that were made of them.
    pub(super) lines: u64,
}

/// Kind, namespace and name.
type Key = (String, ObjectKey);

/// From which state to which.
struct Waiting {
    old: Option<Object>,
    new: Option<Object>,
}

/// One line.
struct Line<'a> {
    sign: char,
    kind: &'a str,
    name: &'a str,
    text: &'a str,
}

impl Stage {
    pub(super) fn new(lines: Lines, style: Style) -> Self {
        Self { inner: Arc::new(Inner { lines, style, state: Mutex::default() }) }
    }

    /// An object came, changed or went.
    pub(super) fn tell(&self, old: Option<Object>, new: Option<Object>) {
        let mut state = self.lock();
        state.tally.changes += 1;
        let Some(object) = new.as_ref().or(old.as_ref()) else { return };
        let key = (object.kind().to_owned(), object.key().to_key());
        match words::words(old.as_ref(), new.as_ref()) {
            Some(said) if said.when == When::Now => {
                if let Some(waiting) = state.waiting.remove(&key) {
                    self.settle(&mut state, BTreeMap::from([(key, waiting)]));
                }
                let (kind, name) = (object.kind(), name(object));
                let line =
                    Line { sign: sign(old.as_ref(), new.as_ref()), kind, name: &name, text: &said.text };
                self.say(&mut state, &line);
            }
            Some(_) => self.wait(&mut state, key, old, new),
            // What waits is said by its last state.
            None => {
                if let Some(waiting) = state.waiting.get_mut(&key) {
                    waiting.new = new;
                }
            }
        }
        if state.waiting.len() > MOST {
            let all = std::mem::take(&mut state.waiting);
            self.settle(&mut state, all);
        }
    }

    /// Says what has waited.
    pub(super) fn settle_all(&self) {
        let mut state = self.lock();
        let all = std::mem::take(&mut state.waiting);
        self.settle(&mut state, all);
    }

    /// Says what waits, again and again.
    pub(super) async fn run(self) {
        loop {
            tokio::time::sleep(WINDOW).await;
            self.settle_all();
        }
    }

    /// An object is there at the beginning.
    pub(super) fn is_there(&self, object: &Object) {
        let text = words::state_of(object).unwrap_or_default();
        let line = Line { sign: '=', kind: object.kind(), name: &name(object), text: &text };
        self.inner.lines.offer_painted(line.written(self.inner.style));
    }

    /// What the demo itself does, so that something happens.
    pub(super) fn narrate(&self, text: &str) {
        let mut state = self.lock();
        let all = std::mem::take(&mut state.waiting);
        self.settle(&mut state, all);
        let played = self.inner.style.paint(Tone::Warning, &format!("▸ {text}"));
        self.inner.lines.offer_painted(format!("{} {played}\n", clock()));
    }

    pub(super) fn tally(&self) -> Tally {
        self.lock().tally
    }

    fn wait(&self, state: &mut State, key: Key, old: Option<Object>, new: Option<Object>) {
        let Some(waiting) = state.waiting.get_mut(&key) else {
            state.waiting.insert(key, Waiting { old, new });
            return;
        };
        match (&waiting.old, &waiting.new, &new) {
            // It came and went: nobody needs to know.
            (None, Some(_), None) => drop(state.waiting.remove(&key)),
            // Another one has its name now.
            (_, None, _) => {
                let before = std::mem::replace(waiting, Waiting { old, new });
                self.settle(state, BTreeMap::from([(key, before)]));
            }
            _ => waiting.new = new,
        }
    }

    fn settle(&self, state: &mut State, all: BTreeMap<Key, Waiting>) {
        // Pods that do the same: by namespace, workload, sign and words.
        let mut pods = BTreeMap::<(String, char, String), Vec<String>>::new();
        for (_, Waiting { old, new }) in all {
            let (old, new) = (old.as_ref(), new.as_ref());
            let (Some(object), Some(said)) = (new.or(old), words::words(old, new)) else { continue };
            // That one is about to go is said when it is gone.
            if said.text.ends_with("→Terminating") {
                continue;
            }
            let sign = sign(old, new);
            if object.kind() == "Pod" {
                let group = (workload(object), sign, said.text);
                pods.entry(group).or_default().push(name(object));
                continue;
            }
            let line = Line { sign, kind: object.kind(), name: &name(object), text: &said.text };
            self.say(state, &line);
        }
        for ((workload, sign, text), names) in pods {
            let line = match &names[..] {
                [name] => Line { sign, kind: "Pod", name, text: &text },
                many => {
                    let (kind, name) = (format!("{} Pods", many.len()), format!("{workload}-…"));
                    self.say(state, &Line { sign, kind: &kind, name: &name, text: &text });
                    continue;
                }
            };
            self.say(state, &line);
        }
    }

    fn say(&self, state: &mut State, line: &Line<'_>) {
        state.tally.lines += 1;
        self.inner.lines.offer_painted(line.written(self.inner.style));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line<'_> {
    /// `12:00:01Z ~ Deployment     shop/web                  replicas 3→5 (kubectl)`.
    fn written(&self, style: Style) -> String {
        let Self { sign, kind, name, text } = self;
        let tone = match sign {
            '+' => Tone::Added,
            '-' => Tone::Deleted,
            '~' => Tone::Changed,
            _ => Tone::None,
        };
        let name = shortened(name);
        let who = style.paint(tone, &format!("{sign} {kind:<14} {name:<WIDTH$}"));
        let text = style.paint(Tone::None, text);
        format!("{}\n", format!("{} {who} {text}", clock()).trim_end())
    }
}

fn sign(old: Option<&Object>, new: Option<&Object>) -> char {
    match (old, new) {
        (_, None) => '-',
        (None, _) => '+',
        _ => '~',
    }
}

/// `shop/web`.
fn name(object: &Object) -> String {
    match object.namespace() {
        "" => object.name().to_owned(),
        namespace => format!("{namespace}/{}", object.name()),
    }
}

/// A name that fits.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(WIDTH - 1) {
        Some((end, _)) if name.chars().count() > WIDTH => {
            format!("{}…", name.get(..end).unwrap_or_default())
        }
        _ => name.to_owned(),
    }
}

/// The workload that a pod belongs to: `shop/web`.
fn workload(pod: &Object) -> String {
    let owner = pod.controller().map_or(pod.name(), |owner| &owner.name);
    // The set of a Deployment is called as the Deployment and a hash.
    let is_set = pod.controller().is_some_and(|owner| &*owner.kind == "ReplicaSet");
    let owner = owner.rsplit_once('-').filter(|_| is_set).map_or(owner, |(name, _)| name);
    format!("{}/{owner}", pod.namespace())
}

/// `12:00:01Z`, now.
fn clock() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests;
