//! The machine by script, and many of them over one store with everything that can go wrong.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::machine::{Action, Event, Machine, Trouble};
use super::metrics::Counted;
use super::record::Record;
use super::settings::Settings;
use super::{Metrics, handle};

mod property;

/// The lease as a server has it.
struct Shelf {
    record: Option<Record>,
    version: u64,
}

impl Shelf {
    fn new() -> Self {
        Self { record: None, version: 0 }
    }

    fn read(&self) -> Result<Option<Record>, Trouble> {
        Ok(self.record.clone())
    }

    fn create(&mut self, record: Record) -> Result<Record, Trouble> {
        if self.record.is_some() {
            return Err(Trouble::Conflict);
        }
        assert_eq!(record.0.metadata.resource_version, None, "what is created has no version");
        Ok(self.put(record))
    }

    fn update(&mut self, record: Record) -> Result<Record, Trouble> {
        let Some(there) = &self.record else { return Err(Trouble::Missing) };
        if record.0.metadata.resource_version != there.0.metadata.resource_version {
            return Err(Trouble::Conflict);
        }
        Ok(self.put(record))
    }

    fn put(&mut self, mut record: Record) -> Record {
        self.version += 1;
        record.0.metadata.resource_version = Some(self.version.to_string());
        self.record = Some(record.clone());
        record
    }
}

fn settings(identity: &str) -> Settings {
    Settings { identity: identity.to_owned(), ..Settings::default() }
}

fn blank() -> Record {
    Record::new("default", "lease")
}

/// One candidate, and a clock that only goes when it is told to.
struct Play {
    machine: Machine,
    begun: Instant,
    now: Duration,
    counted: Counted,
}

impl Play {
    fn new(identity: &str) -> Self {
        let counted = Counted::default();
        let machine = Machine::new(settings(identity), blank(), counted.clone());
        Self { machine, begun: Instant::now(), now: Duration::ZERO, counted }
    }

    fn now(&self) -> Instant {
        self.begun + self.now
    }

    fn after(&mut self, seconds: f64) -> &mut Self {
        self.now += Duration::from_secs_f64(seconds);
        self
    }

    fn step(&mut self, event: Event) -> Action {
        let wall = Timestamp::from_second(1_700_000_000).unwrap() + self.now;
        self.machine.step(self.now(), wall, event)
    }

    fn leads(&self) -> bool {
        self.machine.until().is_some_and(|until| self.now() < until)
    }

    /// Goes on with what is answered at once, up to the next wait, which it returns in seconds from now.
    fn settle(&mut self, event: Event, shelf: &mut Shelf) -> f64 {
        let mut action = self.step(event);
        loop {
            let sent = self.now();
            let event = match action {
                Action::Wait(at) => return at.saturating_duration_since(self.now()).as_secs_f64(),
                Action::Read { .. } => Event::Read(shelf.read()),
                Action::Create { record, .. } => Event::Wrote { sent, result: shelf.create(*record) },
                Action::Update { record, .. } => Event::Wrote { sent, result: shelf.update(*record) },
            };
            action = self.step(event);
        }
    }

    fn wake(&mut self, shelf: &mut Shelf) -> f64 {
        self.settle(Event::Woken, shelf)
    }
}

fn failed() -> Trouble {
    Trouble::Failed("no answer".to_owned())
}

fn spec(shelf: &Shelf) -> serde_json::Value {
    shelf.record.as_ref().unwrap().0.data["spec"].clone()
}

#[test]
fn promise_19_the_first_one_leads_and_renews() {
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    assert_eq!(a.wake(&mut shelf), 2.0);
    assert!(a.leads());
    let stamp = "2023-11-14T22:13:20.000000Z";
    let first = json!({ "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": stamp, "renewTime": stamp });
    assert_eq!(spec(&shelf), first);
    // The last version is written to, without reading it first.
    let Action::Update { record, before } = a.after(2.0).step(Event::Woken) else { panic!("no renewal") };
    assert_eq!(before, a.now() + Duration::from_secs(5));
    let sent = a.now();
    let result = shelf.update(*record);
    a.step(Event::Wrote { sent, result });
    assert_eq!(spec(&shelf)["renewTime"], "2023-11-14T22:13:22.000000Z");
    assert_eq!(spec(&shelf)["acquireTime"], stamp);
    assert_eq!(a.machine.until(), Some(sent + Duration::from_secs(10)));
}

#[test]
fn promise_19_a_leader_stops_before_another_one_may_begin() {
    let (mut shelf, mut a, mut b) = (Shelf::new(), Play::new("a"), Play::new("b"));
    b.begun = a.begun;
    a.wake(&mut shelf);
    b.wake(&mut shelf);
    // Nothing that a does succeeds from here on.
    let mut at = a.after(2.0).step(Event::Woken);
    while a.leads() {
        at = match at {
            Action::Wait(until) => {
                a.now = until - a.begun;
                a.step(Event::Woken)
            }
            Action::Read { before } => {
                assert!(
                    before <= a.begun + Duration::from_secs(10),
                    "a request has no more time than is left"
                );
                a.now = before - a.begun;
                a.step(Event::Read(Err(failed())))
            }
            Action::Update { before, .. } => {
                assert!(
                    before <= a.begun + Duration::from_secs(10),
                    "a request has no more time than is left"
                );
                let sent = a.now();
                a.now = before - a.begun;
                a.step(Event::Wrote { sent, result: Err(failed()) })
            }
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(a.now, Duration::from_secs(10));
    while !b.leads() {
        let wait = b.wake(&mut shelf);
        b.after(if b.leads() { 0.0 } else { wait });
    }
    assert_eq!(b.now, Duration::from_secs(15), "as soon as it lapses");
    assert_eq!(spec(&shelf)["leaseTransitions"], 1);
}

#[test]
fn promise_19_a_process_that_was_stopped_leads_no_more_when_it_goes_on() {
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    a.wake(&mut shelf);
    // The answer was there in time; it is looked at too late.
    let Action::Update { record, .. } = a.after(2.0).step(Event::Woken) else { panic!("no renewal") };
    let sent = a.now();
    let result = shelf.update(*record);
    a.after(30.0);
    assert!(!a.leads());
    let action = a.step(Event::Wrote { sent, result });
    assert!(!a.leads() && matches!(action, Action::Read { .. }), "{action:?}");
    // Nobody else took it, and so it is still good.
    a.settle(Event::Read(shelf.read()), &mut shelf);
    assert!(a.leads());
    assert_eq!(spec(&shelf)["leaseTransitions"], 0);
}

#[test]
fn promise_19_the_clock_of_another_one_counts_for_nothing() {
    let (mut shelf, mut b) = (Shelf::new(), Play::new("b"));
    // Renewed in the year 2000, or in the year 2100: it was seen now.
    for year in ["2000-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z"] {
        let mut record = blank();
        record.0.data = json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15,
            "renewTime": year, "acquireTime": year } });
        shelf.put(record);
        b.wake(&mut shelf);
        b.after(14.9).wake(&mut shelf);
        assert!(!b.leads(), "{year}");
    }
    b.after(0.2).wake(&mut shelf);
    assert!(b.leads());
}

#[test]
fn a_lost_answer_is_found_out_by_reading() {
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    let Action::Read { .. } = a.step(Event::Woken) else { panic!() };
    let Action::Create { record, .. } = a.step(Event::Read(Ok(None))) else { panic!() };
    shelf.create(*record).unwrap();
    let sent = a.now();
    let Action::Wait(_) = a.after(5.0).step(Event::Wrote { sent, result: Err(failed()) }) else { panic!() };
    assert!(!a.leads());
    a.after(3.0).wake(&mut shelf);
    assert!(a.leads());
    assert_eq!(
        a.machine.until(),
        Some(a.now() + Duration::from_secs(10)),
        "from the write that was answered"
    );
    assert_eq!(spec(&shelf)["leaseTransitions"], 0);
}

#[test]
fn whoever_was_slower_reads_again_and_waits() {
    let (mut shelf, mut a, mut b) = (Shelf::new(), Play::new("a"), Play::new("b"));
    let Action::Read { .. } = b.step(Event::Woken) else { panic!() };
    let Action::Create { record, .. } = b.step(Event::Read(Ok(None))) else { panic!() };
    a.wake(&mut shelf);
    let sent = b.now();
    let result = shelf.create(*record);
    let wait = b.settle(Event::Wrote { sent, result }, &mut shelf);
    assert!(!b.leads() && (2.0..=4.4).contains(&wait), "{wait}");
    assert_eq!(b.machine.holder().map(|(holder, _)| holder), Some("a"));
}

#[test]
fn a_leader_whose_lease_was_touched_by_another_hand_goes_on() {
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    a.wake(&mut shelf);
    let mut record = shelf.record.clone().unwrap();
    record.0.metadata.labels = Some([("kept".to_owned(), "yes".to_owned())].into());
    record.0.data["spec"]["unknownField"] = json!({ "kept": true });
    shelf.put(record);
    a.after(2.0).wake(&mut shelf);
    assert!(a.leads());
    assert_eq!(shelf.record.as_ref().unwrap().0.metadata.labels.as_ref().unwrap()["kept"], "yes");
    assert_eq!(spec(&shelf)["unknownField"], json!({ "kept": true }));
    assert_eq!(a.machine.until(), Some(a.now() + Duration::from_secs(10)));
}

#[test]
fn a_leader_whose_lease_is_another_s_stops_at_once() {
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    a.wake(&mut shelf);
    let mut record = shelf.record.clone().unwrap();
    record.0.data["spec"]["holderIdentity"] = json!("b");
    shelf.put(record);
    let wait = a.after(2.0).wake(&mut shelf);
    assert!(!a.leads() && wait > 0.0);
}

#[test]
fn a_lease_that_was_deleted_is_not_free_sooner() {
    let (mut shelf, mut a, mut b) = (Shelf::new(), Play::new("a"), Play::new("b"));
    a.wake(&mut shelf);
    b.wake(&mut shelf);
    shelf.record = None;
    b.after(14.0).wake(&mut shelf);
    assert!(!b.leads() && shelf.record.is_none());
    // Its holder makes it again.
    a.after(2.0).wake(&mut shelf);
    assert!(a.leads());
    assert_eq!(spec(&shelf)["holderIdentity"], "a");
    shelf.record = None;
    b.after(14.9).wake(&mut shelf);
    assert!(b.leads(), "it lapsed for who never saw it again");
}

#[test]
fn a_lease_in_the_name_of_one_s_own_is_another_s_until_it_was_taken_here() {
    let (mut shelf, mut a, mut again) = (Shelf::new(), Play::new("a"), Play::new("a"));
    a.wake(&mut shelf);
    again.after(0.5).wake(&mut shelf);
    assert!(a.leads() && !again.leads());
    again.after(15.0).wake(&mut shelf);
    assert!(again.leads());
    a.after(2.0).wake(&mut shelf);
    assert!(!a.leads(), "the other one took it");
}

#[test]
fn failures_are_tried_again_more_and_more_seldom() {
    let mut a = Play::new("a");
    for seconds in [2.0, 4.0, 8.0, 15.0, 15.0] {
        let Action::Read { before } = a.step(Event::Woken) else { panic!() };
        assert_eq!(before, a.now() + Duration::from_secs(5));
        let Action::Wait(at) = a.step(Event::Read(Err(failed()))) else { panic!() };
        let wait = (at - a.now()).as_secs_f64();
        assert!((seconds..=seconds * 1.2).contains(&wait), "{wait} for {seconds}");
        a.after(wait);
    }
}

#[test]
fn refusals_without_end_are_no_busy_loop() {
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    shelf.put(blank());
    let mut action = a.step(Event::Woken);
    let mut requests = 0;
    while !matches!(action, Action::Wait(_)) {
        requests += 1;
        let sent = a.now();
        action = match action {
            Action::Read { .. } => a.step(Event::Read(shelf.read())),
            _ => a.step(Event::Wrote { sent, result: Err(Trouble::Conflict) }),
        };
    }
    assert_eq!(requests, 4, "read, write, read, write");
}

#[test]
fn what_is_given_back_is_free_at_once() {
    let (mut shelf, mut a, mut b) = (Shelf::new(), Play::new("a"), Play::new("b"));
    a.wake(&mut shelf);
    b.wake(&mut shelf);
    assert!(b.machine.release(shelf.record.clone(), b.now(), Timestamp::UNIX_EPOCH).is_none(), "not its own");
    let record = a.machine.release(shelf.record.clone(), a.now(), Timestamp::UNIX_EPOCH).unwrap();
    assert!(!a.leads());
    shelf.update(*record).unwrap();
    assert_eq!(
        (&spec(&shelf)["holderIdentity"], &spec(&shelf)["leaseDurationSeconds"]),
        (&json!(""), &json!(1))
    );
    b.wake(&mut shelf);
    assert!(b.leads());
    assert_eq!(spec(&shelf)["leaseTransitions"], 1);
}

#[test]
fn a_lease_that_says_nonsense_is_read_all_the_same() {
    for spec in [
        json!(null),
        json!([]),
        json!({ "holderIdentity": 7, "leaseDurationSeconds": "x", "leaseTransitions": 1e300 }),
        json!({ "holderIdentity": "x", "leaseDurationSeconds": -5, "leaseTransitions": 2_147_483_647 }),
    ] {
        let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
        let mut record = blank();
        record.0.data = json!({ "spec": spec });
        shelf.put(record);
        a.wake(&mut shelf);
        a.after(15.0).wake(&mut shelf);
        assert!(a.leads(), "{spec}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused_with_what_they_should_be() {
    let seconds = Duration::from_secs;
    let base = || settings("a");
    for (settings, says) in [
        (Settings { identity: String::new(), ..base() }, "the identity is empty, but it must tell"),
        (Settings { lease: Duration::from_millis(900), ..base() }, "lease is 900ms, but it must be from 1 s"),
        (Settings { lease: seconds(100_000), ..base() }, "lease is 100000s"),
        (Settings { renew: seconds(15), ..base() }, "renew is 15s, but it must be shorter than lease (15s)"),
        (Settings { retry: Duration::ZERO, ..base() }, "retry is 0ns"),
        (Settings { retry: Duration::MAX, ..base() }, "but it must be shorter than renew (10s)"),
        (
            Settings { retry: seconds(9), ..base() },
            "renew is 10s, but it must be longer than 1.2 times retry",
        ),
    ] {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(Settings { lease: Duration::from_millis(1_500), ..base() }.lease_seconds(), 2, "never less");
    for name in ["", "a/b", "A", "..%2f"] {
        assert_eq!(super::settings::check_name("name", name).is_err(), name != "..");
    }
    let (one, two) = (Settings::default().identity, Settings::default().identity);
    assert_ne!(one, two);
    assert!(one.contains('_'));
}

#[tokio::test(start_paused = true)]
async fn promise_19_who_asks_is_told_by_the_clock() {
    let (leadership, board) = handle::pair("a".into(), &Counted::default());
    assert!(!leadership.is_leader() && leadership.leader().is_none());
    leadership.lost().await;
    let until = Instant::now() + Duration::from_secs(10);
    board.show(Some(until), 1, Some(("a", until + Duration::from_secs(5))));
    leadership.acquired().await;
    assert_eq!(leadership.leader().as_deref(), Some("a"));
    assert!(*leadership.changes().borrow() && leadership.term() == Some(1));
    // Nobody says that it is over.
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!leadership.is_leader() && leadership.until().is_none() && leadership.term().is_none());
    leadership.lost().await;
    assert_eq!(leadership.leader().as_deref(), Some("a"), "not free yet");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(leadership.leader(), None);
    assert!(!format!("{leadership:?}").is_empty());
}

#[tokio::test(start_paused = true)]
async fn promise_19_no_step_of_guarded_work_is_made_after_the_end() {
    let (leadership, board) = handle::pair("a".into(), &Counted::default());
    assert!(leadership.guard(async {}).await.is_err());
    board.show(Some(Instant::now() + Duration::from_secs(10)), 1, None);
    assert_eq!(leadership.guard(async { 7 }).await, Ok(7));
    let mut steps = 0;
    let work = async {
        loop {
            steps += 1;
            // tidy: allow-sleep this is the work, on a paused clock
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    };
    assert_eq!(leadership.guard(work).await, Err::<(), _>(handle::Lost));
    assert_eq!(steps, 4, "at 0, 3, 6 and 9 s");
    // Both are ready at once: work, and the end.
    board.show(Some(Instant::now() + Duration::from_secs(10)), 1, None);
    let (mut frozen, mut after) = (false, false);
    let work = async {
        frozen = true;
        tokio::time::advance(Duration::from_secs(60)).await;
        after = true;
    };
    let result = leadership.guard(work).await;
    assert!(frozen && result.is_err() && !after);
    // It was lost and won again before the work had its turn.
    board.show(Some(Instant::now() + Duration::from_secs(10)), 2, None);
    let mut after = false;
    let work = async {
        board.show(Some(Instant::now() + Duration::from_secs(10)), 3, None);
        tokio::task::yield_now().await;
        after = true;
    };
    assert!(leadership.guard(work).await.is_err() && !after && leadership.is_leader());
}

#[tokio::test(start_paused = true)]
async fn metrics_tell_who_leads_now() {
    let metrics = Metrics::default();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let scrape = || {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        page
    };
    let counted = metrics.series("mine");
    let (_leadership, board) = handle::pair("a".into(), &counted);
    board.show(Some(Instant::now() + Duration::from_secs(10)), 1, None);
    counted.slow_path();
    assert!(scrape().contains("leader_election_master_status{name=\"mine\"} 1\n"), "{}", scrape());
    assert!(scrape().contains("leader_election_slowpath_total{name=\"mine\"} 1\n"), "{}", scrape());
    // A second one of that name is not a second line.
    let other = metrics.series("mine");
    other.slow_path();
    assert_eq!(scrape().matches("name=\"mine\"").count(), 2, "{}", scrape());
    assert!(scrape().contains("leader_election_slowpath_total{name=\"mine\"} 2\n"));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(scrape().contains("leader_election_master_status{name=\"mine\"} 0\n"));
    drop((board, counted, other));
    assert!(!scrape().contains("mine"));
}

#[test]
fn the_slow_path_is_counted_once_for_each_renewal_that_failed() {
    let metrics = Metrics::default();
    let (mut shelf, mut a) = (Shelf::new(), Play::new("a"));
    a.counted = metrics.series("x");
    a.machine = Machine::new(settings("a"), blank(), a.counted.clone());
    a.wake(&mut shelf);
    let sent = a.now();
    a.after(2.0).step(Event::Wrote { sent, result: Err(failed()) });
    a.step(Event::Read(Err(failed())));
    a.after(2.0).wake(&mut shelf);
    assert!(a.leads());
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    assert!(page.contains("leader_election_slowpath_total{name=\"x\"} 1\n"), "{page}");
}
