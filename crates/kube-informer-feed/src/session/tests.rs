use std::collections::BTreeMap;

use kube_informer::encoding::{Codec, Encoding, Rules};
use kube_informer::object::Intake;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::change::{Change, What};
use crate::hub::describe;
use crate::hub::news::Told;
use crate::journal::{Bounds, Journal};
use crate::message::{Bye, close};

// What there is, before what changes.
mod snapshots;

// Several subscriptions that see the same.
mod overlap;

const TOPIC: TopicId = TopicId(1);
const GVR: &str = "v1/configmaps";

/// What tells: objects, and a journal.
struct Teller {
    intake: Intake,
    journal: Journal<Arc<News>>,
    objects: BTreeMap<usize, Object>,
    version: u64,
}

impl Teller {
    fn new() -> Self {
        let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default()).unwrap();
        let journal = Journal::new(Bounds::default());
        Self { intake: Intake::new(codec), journal, objects: BTreeMap::new(), version: 0 }
    }

    fn object(&mut self, at: usize, app: &str, value: &str) -> Object {
        self.version += 1;
        let uid = match self.objects.get(&at) {
            Some(object) => object.uid().to_string(),
            None => format!("uid-{at}-{}", self.version),
        };
        let object = json!({
            "metadata": {
                "name": format!("m{at}"), "namespace": "test", "uid": uid,
                "resourceVersion": self.version.to_string(), "labels": { "app": app },
            },
            "data": { "key": value },
        });
        self.intake.object(object.to_string().as_bytes()).unwrap()
    }

    fn put(&mut self, at: usize, app: &str, value: &str) -> Arc<News> {
        let new = self.object(at, app, value);
        let old = self.objects.insert(at, new.clone());
        let change = match &old {
            Some(old) => describe::modified(old, &new),
            None => describe::added(&new),
        };
        self.tell(change, old, Some(new))
    }

    fn remove(&mut self, at: usize) -> Option<Arc<News>> {
        let last = self.objects.remove(&at)?;
        Some(self.tell(describe::deleted(&last, true), Some(last), None))
    }

    fn tell(&mut self, change: Change, old: Option<Object>, new: Option<Object>) -> Arc<News> {
        let mut made = None;
        self.journal.push(|cursor| {
            let tale = Tale::Change(Box::new(Told::new(change, old, new)));
            let news = Arc::new(News { cursor, topic: TOPIC, tale });
            made = Some(Arc::clone(&news));
            news
        });
        made.unwrap()
    }

    /// In the order of keys, as topics give them.
    fn snapshot(&self) -> Beginning {
        let mut objects: Vec<Object> = self.objects.values().cloned().collect();
        objects.sort_by(|one, two| one.key().cmp(&two.key()));
        Beginning::Snapshot(objects.into())
    }

    fn session(&self, budget: usize, beginning: Beginning, labels: &str, slow: Slow) -> Session {
        let mut session = Session::new(budget);
        let filter = Filter { selector: labels.parse().unwrap(), ..Filter::default() };
        session.subscribe(Subscription::new("s".to_owned(), TOPIC, filter, Mode::Full, slow, true));
        session.begin("s", GVR, beginning, self.journal.last());
        session
    }

    /// The value of each object that is selected, by UID.
    fn values(&self, labels: &str) -> BTreeMap<String, String> {
        let filter = Filter { selector: labels.parse().unwrap(), ..Filter::default() };
        let selected = self.objects.values().filter(|object| filter.meets(object));
        selected
            .map(|object| (object.uid().to_string(), object.pointer("/data/key").unwrap().unwrap()))
            .collect()
    }
}

/// What a client knows.
#[derive(Debug, Default)]
struct Replay {
    values: BTreeMap<String, String>,
    cursor: Option<Cursor>,
    bye: Option<Bye>,
    gaps: usize,
    coalesced: u32,
    /// Changes may be told a second time.
    again: bool,
}

impl Replay {
    fn read(&mut self, session: &mut Session, most: usize) {
        for _ in 0..most {
            let Some(outgoing) = session.pop() else { return };
            let text = outgoing.text();
            self.take(serde_json::from_slice(&text).unwrap());
        }
    }

    fn take(&mut self, message: Message) {
        assert!(self.bye.is_none(), "after the goodbye: {message:?}");
        let value =
            |object: &Option<Value>| object.as_ref().unwrap()["data"]["key"].as_str().unwrap().to_owned();
        match message {
            Message::SnapBegin(_) => self.values.clear(),
            Message::SnapItem(item) => {
                assert_eq!(self.values.insert(item.obj.uid, value(&item.object)), None);
            }
            Message::SnapEnd(end) => {
                assert_eq!(end.count, self.values.len());
                (self.cursor, self.again) = (Some(end.cursor), false);
            }
            Message::Change(message) => {
                assert!(
                    self.again || self.cursor.is_some_and(|before| before.seq < message.cursor.seq),
                    "{message:?}"
                );
                self.cursor = Some(message.cursor);
                self.coalesced = self.coalesced.max(message.change.coalesced);
                let uid = message.change.obj.uid.clone();
                let known = match message.change.what {
                    What::Deleted => self.values.remove(&uid),
                    What::Added | What::Modified => self.values.insert(uid, value(&message.object)),
                };
                assert!(self.again || known.is_some() == (message.change.what != What::Added), "{message:?}");
            }
            Message::Bookmark(bookmark) => self.cursor = Some(bookmark.cursor),
            Message::Gap(_) => self.gaps += 1,
            Message::Bye(bye) => self.bye = Some(bye),
            other => panic!("{other:?}"),
        }
    }
}

fn fold(session: &mut Session) -> u64 {
    match session.take_fold() {
        Some(fold) => session.put_fold(fold.run()),
        None => 0,
    }
}

#[test]
fn changes_of_one_object_become_one_above_half_of_the_budget() {
    let mut teller = Teller::new();
    teller.put(0, "web", "0");
    let mut session = teller.session(20_000, teller.snapshot(), "", Slow::Coalesce);
    let mut replay = Replay::default();
    replay.read(&mut session, 100);
    let mut folded = 0;
    for value in 1..=500 {
        let news = teller.put(0, "web", &value.to_string());
        session.news(&news);
        folded += fold(&mut session);
        assert!(session.outbox.bytes() <= 20_000 && session.outbox.closing().is_none());
    }
    assert!(folded > 400, "{folded}");
    replay.read(&mut session, 1_000);
    assert_eq!(replay.values, teller.values(""));
    assert!(replay.coalesced > 10 && replay.gaps == 0);
}

#[test]
fn what_could_not_be_folded_once_does_not_keep_others_from_it() {
    const BUDGET: usize = 40_000;
    let mut teller = Teller::new();
    let mut session = teller.session(BUDGET, teller.snapshot(), "", Slow::Coalesce);
    let mut replay = Replay::default();
    replay.read(&mut session, 100);
    // Each is another object.
    let mut at = 0;
    while session.outbox.bytes() < BUDGET / 8 * 7 {
        at += 1;
        let news = teller.put(at, "web", "0");
        session.news(&news);
        assert_eq!(fold(&mut session), 0);
    }
    replay.read(&mut session, usize::MAX);
    // All of one object: they fold as soon as it is half.
    let before = teller.put(0, "web", "0");
    session.news(&before);
    let mut value = 0;
    while session.outbox.bytes() <= BUDGET / 2 {
        value += 1;
        let news = teller.put(0, "web", &value.to_string());
        session.news(&news);
    }
    assert!(fold(&mut session) > 0);
    replay.read(&mut session, usize::MAX);
    assert_eq!(replay.values, teller.values(""));
}

#[test]
fn below_half_of_the_budget_every_change_is_told() {
    let mut teller = Teller::new();
    let mut session = teller.session(1 << 20, teller.snapshot(), "", Slow::Coalesce);
    for value in 0..50 {
        let news = teller.put(0, "web", &value.to_string());
        session.news(&news);
        assert_eq!(fold(&mut session), 0);
    }
}

#[test]
fn a_full_outbox_ends_with_a_gap_and_a_goodbye_that_says_where_to_go_on() {
    let mut teller = Teller::new();
    teller.put(0, "web", "0");
    let mut session = teller.session(8_000, teller.snapshot(), "", Slow::Close);
    let mut replay = Replay::default();
    replay.read(&mut session, 100);
    let news = teller.put(0, "web", "1");
    session.news(&news);
    replay.read(&mut session, 100);
    let last = replay.cursor;
    for value in 2..=100 {
        let news = teller.put(0, "web", &value.to_string());
        session.news(&news);
        assert_eq!(fold(&mut session), 0, "the subscription does not allow it");
    }
    assert_eq!(session.outbox.closing().map(|closing| closing.code), Some(close::SLOW));
    replay.read(&mut session, 100);
    let bye = replay.bye.clone().unwrap();
    assert_eq!((bye.code, bye.resume, replay.gaps), (close::SLOW, last, 1));

    // From there on, everything is told.
    let missed: Vec<_> = teller.journal.since(bye.resume.unwrap()).unwrap().cloned().collect();
    let mut session = teller.session(8_000, Beginning::Replay(missed), "", Slow::Close);
    replay.bye = None;
    replay.read(&mut session, 1_000);
    assert_eq!((&replay.values, replay.cursor), (&teller.values(""), Some(teller.journal.last())));
}

#[test]
fn a_whole_object_is_written_once_for_all_who_wait_and_not_kept_after_that() {
    let mut teller = Teller::new();
    let mut sessions = [0, 1].map(|_| teller.session(1 << 20, Beginning::Now, "", Slow::Coalesce));
    let news = teller.put(0, "web", "0");
    let Tale::Change(told) = &news.tale else { panic!("{news:?}") };
    for session in &mut sessions {
        while session.pop().is_some() {}
        session.news(&news);
    }
    let body = |pending: &Outgoing| match pending {
        Outgoing::News(pending) => told.body(&pending.form, pending.mode, pending.seen),
        other => panic!("{other:?}"),
    };
    let sent = sessions.each_mut().map(|session| session.pop().unwrap());
    let bodies = sent.each_ref().map(body);
    // The same bytes, and not others like them.
    assert_eq!(bodies[0].as_ptr(), bodies[1].as_ptr());
    let [mine, other] = bodies;
    drop((sent, other));
    assert!(mine.is_unique(), "nobody else has it");
}

#[test]
fn what_waits_for_an_ended_subscription_is_dropped() {
    let mut teller = Teller::new();
    let mut session = teller.session(1 << 20, teller.snapshot(), "", Slow::Close);
    Replay::default().read(&mut session, 10);
    let news = teller.put(0, "web", "0");
    session.news(&news);
    assert!(session.unsubscribe("s").is_some() && session.pop().is_none());
    assert_eq!(session.outbox.bytes(), 0);
}

#[test]
fn subscriptions_that_see_the_same_get_one_message() {
    let mut teller = Teller::new();
    let mut session = teller.session(1 << 20, Beginning::Now, "", Slow::Coalesce);
    for (id, mode, labels) in [("t", Mode::Full, ""), ("u", Mode::Notify, ""), ("v", Mode::Full, "app=api")] {
        let filter = Filter { selector: labels.parse().unwrap(), ..Filter::default() };
        session.subscribe(Subscription::new(id.to_owned(), TOPIC, filter, mode, Slow::Coalesce, false));
        session.begin(id, GVR, Beginning::Now, teller.journal.last());
    }
    while session.pop().is_some() {}
    let news = teller.put(0, "web", "0");
    session.news(&news);
    let mut said = Vec::new();
    while let Some(outgoing) = session.pop() {
        let message: Message = serde_json::from_slice(&outgoing.text()).unwrap();
        let Message::Change(change) = message else { panic!("{message:?}") };
        said.push((change.subs, change.object.is_some()));
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(said, [(names(&["s", "t"]), true), (names(&["u"]), false)]);
}

#[test]
fn a_change_of_which_one_of_two_messages_was_sent_is_told_again() {
    let mut teller = Teller::new();
    let mut session = teller.session(1 << 20, Beginning::Now, "", Slow::Coalesce);
    let filter = Filter::default();
    session.subscribe(Subscription::new("t".to_owned(), TOPIC, filter, Mode::Notify, Slow::Coalesce, false));
    session.begin("t", GVR, Beginning::Now, teller.journal.last());
    let begun = teller.journal.last();
    while session.pop().is_some() {}
    let news = teller.put(0, "web", "0");
    session.news(&news);
    assert!(session.pop().is_some());
    session.outbox.close(close::GOING_AWAY, "the server ends", None);
    let bye: Message = serde_json::from_slice(&session.pop().unwrap().text()).unwrap();
    let Message::Bye(bye) = bye else { panic!("{bye:?}") };
    assert_eq!(bye.resume, Some(begun));
}

/// What happens, in some order.
#[derive(Debug, Clone)]
enum Act {
    Put(usize, bool, u8),
    Remove(usize),
    Read(usize),
    Fold,
    /// Something is told while what waits is being folded.
    FoldAround(usize, u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0usize..6, any::<bool>(), any::<u8>()).prop_map(|(at, web, value)| Act::Put(at, web, value)),
        1 => (0usize..6).prop_map(Act::Remove),
        3 => (0usize..6).prop_map(Act::Read),
        2 => Just(Act::Fold),
        1 => (0usize..6, any::<u8>()).prop_map(|(at, value)| Act::FoldAround(at, value)),
    ];
    prop::collection::vec(act, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// For any order of changes and reads, what the client knows is what there is; or it was told of a gap, and is after it
    /// has come again from where it was told to.
    #[test]
    fn what_a_client_knows_is_what_there_is_or_it_was_told_of_a_gap(
        acts in acts(), budget in 1_500usize..30_000, selects in any::<bool>(), allows in any::<bool>()
    ) {
        let labels = if selects { "app=web" } else { "" };
        let slow = if allows { Slow::Coalesce } else { Slow::Close };
        let app = |web: bool| if web { "web" } else { "api" };
        let mut teller = Teller::new();
        (0..3).for_each(|at| _ = teller.put(at, app(at == 1), "first"));
        let mut session = teller.session(budget, teller.snapshot(), labels, slow);
        let mut replay = Replay::default();
        for act in acts {
            match act {
                Act::Put(at, web, value) => {
                    let news = teller.put(at, app(web), &value.to_string());
                    session.news(&news);
                }
                Act::Remove(at) => {
                    if let Some(news) = teller.remove(at) {
                        session.news(&news);
                    }
                }
                Act::Read(most) => replay.read(&mut session, most),
                Act::Fold => _ = fold(&mut session),
                Act::FoldAround(at, value) => {
                    let taken = session.take_fold();
                    let news = teller.put(at, "web", &value.to_string());
                    session.news(&news);
                    if let Some(taken) = taken {
                        session.put_fold(taken.run());
                    }
                }
            }
            prop_assert!(session.outbox.closing().is_some() || session.outbox.bytes() <= 4 * budget);
        }
        replay.read(&mut session, usize::MAX);
        if let Some(bye) = replay.bye.take() {
            prop_assert_eq!((bye.code, replay.gaps), (close::SLOW, 1));
            let beginning = match bye.resume {
                Some(cursor) => Beginning::Replay(teller.journal.since(cursor).unwrap().cloned().collect()),
                None => teller.snapshot(),
            };
            replay.again = true;
            let mut session = teller.session(budget, beginning, labels, slow);
            replay.read(&mut session, usize::MAX);
        } else {
            prop_assert_eq!(replay.gaps, 0);
        }
        prop_assert_eq!(replay.values, teller.values(labels));
    }
}
