//! Whether something is said for the first time, again, or too often. No I/O, no clock of its own.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tokio::time::Instant;

use super::text;

/// What somebody wants to be said.
#[derive(Debug, Clone)]
pub(super) struct Report {
    kind: &'static str,
    about: ObjectReference,
    reason: String,
    action: String,
    note: String,
}

impl Report {
    pub(super) fn new(
        kind: &'static str,
        about: ObjectReference,
        reason: &str,
        action: &str,
        note: String,
    ) -> Self {
        let (reason, action) = (text::word(reason), text::word(action));
        Self { kind, about, reason, action, note: text::note(note) }
    }
}

/// What is to be written.
#[derive(Debug, Clone)]
pub(super) enum Say {
    /// This event is new.
    Create(Box<Event>),
    /// This event has been so many times by now, last at that time.
    Count { event: Box<Event>, count: i32, last: Timestamp },
    /// Nothing: too much is said of this object.
    Nothing,
}

pub(super) struct Correlator {
    controller: String,
    instance: String,
    /// How much may be said of an object.
    tokens: Bounded<Subject, Tokens>,
    /// What was said of an object for one reason.
    similar: Bounded<Topic, Similar>,
    /// What was said.
    said: Bounded<(Topic, String), Said>,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// What all that is alike has in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Topic {
    subject: Subject,
    kind: &'static str,
    reason: String,
    action: String,
}

struct Tokens {
    left: f64,
    since: Instant,
}

#[derive(Default)]
struct Similar {
    notes: BTreeSet<String>,
}

struct Said {
    event: Box<Event>,
    count: i32,
}

/// As client-go: of so many objects, topics and events it is known what was said.
const KNOWN: usize = 4096;

/// So many about one object at once, then one in that time.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);

/// More than so many that are alike are one.
const ALIKE: usize = 10;

/// What was not said for so long is said as for the first time.
const WHILE: Duration = Duration::from_secs(600);

impl Correlator {
    pub(super) fn new(controller: String, instance: String) -> Self {
        let (tokens, similar, said) = (Bounded::new(KNOWN), Bounded::new(KNOWN), Bounded::new(KNOWN));
        Self { controller, instance, tokens, similar, said }
    }

    /// What is to be written, now that somebody wants something said.
    pub(super) fn say(&mut self, report: Report, now: Instant, wall: Timestamp) -> Say {
        let subject = Subject {
            kind: report.about.kind.clone(),
            namespace: report.about.namespace.clone(),
            name: report.about.name.clone(),
            uid: report.about.uid.clone(),
        };
        // It is as full as ever after that time: then nothing need be known.
        let all = REFILL.mul_f64(BURST);
        let tokens = self.tokens.entry(&subject, now, all, || Tokens { left: BURST, since: now });
        let more = now.saturating_duration_since(tokens.since).as_secs_f64() / REFILL.as_secs_f64();
        (tokens.left, tokens.since) = ((tokens.left + more).min(BURST), now);
        if tokens.left < 1.0 {
            return Say::Nothing;
        }
        tokens.left -= 1.0;

        let Report { kind, about, reason, action, mut note } = report;
        let topic = Topic { subject, kind, reason: reason.clone(), action: action.clone() };
        let similar = self.similar.entry(&topic, now, WHILE, Similar::default);
        if similar.notes.len() <= ALIKE {
            similar.notes.insert(note.clone());
        }
        let is_combined = similar.notes.len() > ALIKE;
        if is_combined {
            note = text::note(format!("(combined from similar events): {note}"));
        }
        let key = if is_combined { String::new() } else { note.clone() };

        let (controller, instance) = (&self.controller, &self.instance);
        let mut is_new = false;
        let said = self.said.entry(&(topic, key), now, WHILE, || {
            is_new = true;
            let event = Box::new(event(about, kind, reason, action, note, controller, instance, wall));
            Said { event, count: 0 }
        });
        said.count = said.count.saturating_add(1);
        match is_new {
            true => Say::Create(said.event.clone()),
            false => Say::Count { event: said.event.clone(), count: said.count, last: wall },
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "the fields of one event")]
fn event(
    about: ObjectReference,
    kind: &str,
    reason: String,
    action: String,
    note: String,
    controller: &str,
    instance: &str,
    wall: Timestamp,
) -> Event {
    let name = text::name(about.name.as_deref().unwrap_or_default(), wall.as_nanosecond(), fastrand::u32(..));
    // The server wants events about objects without a namespace there.
    let namespace = about.namespace.clone().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
        event_time: Some(MicroTime(wall)),
        reporting_controller: Some(controller.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        action: Some(action),
        reason: Some(reason),
        note: Some(note),
        type_: Some(kind.to_owned()),
        regarding: Some(about),
        ..Event::default()
    }
}

/// A map of so many entries; for a new one, the one that was not used for longest goes.
struct Bounded<K, V> {
    most: usize,
    entries: HashMap<K, (Instant, V)>,
}

impl<K: Hash + Eq + Clone, V> Bounded<K, V> {
    fn new(most: usize) -> Self {
        Self { most, entries: HashMap::new() }
    }

    /// The entry of a key; a new one, where there is none, or it was not used for so long.
    fn entry(&mut self, key: &K, now: Instant, lasts: Duration, new: impl FnOnce() -> V) -> &mut V {
        let is_old = |used: &Instant| now.saturating_duration_since(*used) >= lasts;
        if self.entries.get(key).is_some_and(|(used, _)| is_old(used)) {
            self.entries.remove(key);
        }
        if !self.entries.contains_key(key) && self.entries.len() >= self.most {
            self.entries.retain(|_, (used, _)| !is_old(used));
            // All at once, so that a stream of new ones does not look at all of them each time.
            if self.entries.len() >= self.most {
                let mut times: Vec<Instant> = self.entries.values().map(|(used, _)| *used).collect();
                times.sort_unstable();
                let median = times.get(times.len() / 2).copied().unwrap_or(now);
                self.entries.retain(|_, (used, _)| *used > median);
            }
        }
        let (used, value) = self.entries.entry(key.clone()).or_insert_with(|| (now, new()));
        *used = now;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Play {
        correlator: Correlator,
        now: Instant,
    }

    impl Play {
        fn new() -> Self {
            Self { correlator: Correlator::new("c".to_owned(), "i".to_owned()), now: Instant::now() }
        }

        fn say(&mut self, name: &str, note: &str) -> Say {
            let about = ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() };
            let report = Report::new("Normal", about, "Reason", "Action", note.to_owned());
            self.correlator.say(report, self.now, Timestamp::UNIX_EPOCH)
        }

        fn after(&mut self, seconds: u64) {
            self.now += Duration::from_secs(seconds);
        }
    }

    #[test]
    fn what_is_said_again_is_counted() {
        let mut play = Play::new();
        let Say::Create(first) = play.say("web", "hello") else { panic!() };
        for expected in 2..5 {
            let Say::Count { event, count, .. } = play.say("web", "hello") else { panic!() };
            assert_eq!((event.metadata.name, count), (first.metadata.name.clone(), expected));
        }
        assert!(matches!(play.say("web", "other words"), Say::Create(_)));
        assert!(matches!(play.say("other", "hello"), Say::Create(_)));
        play.after(600);
        assert!(matches!(play.say("web", "hello"), Say::Create(_)), "that was long ago");
    }

    #[test]
    fn many_that_are_alike_are_one() {
        let mut play = Play::new();
        for at in 0..10 {
            assert!(matches!(play.say("web", &format!("try {at}")), Say::Create(_)));
        }
        let Say::Create(combined) = play.say("web", "try 10") else { panic!() };
        assert_eq!(combined.note.as_deref(), Some("(combined from similar events): try 10"));
        let Say::Count { count: 2, .. } = play.say("web", "try 11") else { panic!() };
        let Say::Count { count: 3, .. } = play.say("web", "try 0") else { panic!() };
    }

    #[test]
    fn no_object_is_flooded() {
        let mut play = Play::new();
        let said = (0..40).filter(|_| !matches!(play.say("web", "hello"), Say::Nothing)).count();
        assert_eq!(said, 25);
        assert!(!matches!(play.say("other", "hello"), Say::Nothing));
        play.after(299);
        assert!(matches!(play.say("web", "hello"), Say::Nothing));
        play.after(1);
        assert!(!matches!(play.say("web", "hello"), Say::Nothing));
        assert!(matches!(play.say("web", "hello"), Say::Nothing));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut play = Play::new();
        for at in 0..20_000 {
            play.now += Duration::from_millis(1);
            play.say(&format!("object-{at}"), "hello");
        }
        let Correlator { tokens, similar, said, .. } = &play.correlator;
        for length in [tokens.entries.len(), similar.entries.len(), said.entries.len()] {
            assert!((1_000..=KNOWN).contains(&length), "{length}");
        }
        assert!(matches!(play.say("object-19999", "hello"), Say::Count { .. }), "the last ones are known");
    }

    #[test]
    fn events_about_what_has_no_namespace_are_in_default() {
        let mut play = Play::new();
        let Say::Create(event) = play.say("node-1", "hello") else { panic!() };
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.regarding.unwrap().namespace, None);
    }
}
