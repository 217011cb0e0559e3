//! What an informer says about itself.

use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use super::SOON;
use super::hand::Hand;
use crate::encoding::Encoding;
use crate::object::Version;
use crate::reflector::fault::{Fault, Remedy};
use crate::reflector::transport::CLOSED;
use crate::reflector::{Report, Why as Reason};
use crate::wire::Status;

#[tokio::test]
async fn promise_15_health_says_where_it_stands_and_why() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let state = || informer.health().state.as_str();
    let report = |report| informer.core().board().report(0, &report);
    assert_eq!(state(), "starting");
    report(Report::Listing(Reason::First));
    assert_eq!(state(), "syncing");
    let refused = Fault::Refused("nobody is there".to_owned());
    let (request, again) = ("LIST /api/v1/pods?limit=500".to_owned(), Duration::from_secs(1));
    report(Report::Failing { request, fault: refused, remedy: Remedy::Again, again });
    let State::Stale { since, why } = informer.health().state else { panic!("{:?}", informer.health()) };
    assert_eq!(why.cause, Cause::Refused);
    let text = State::Stale { since, why: why.clone() }.to_string();
    for part in ["LIST /api/v1/pods?limit=500: ", "nobody is there", "1.0s", Cause::Refused.advice()] {
        assert!(text.contains(part), "{text}");
    }
    let body = br#"{"code":400,"reason":"BadRequest","message":"field label not supported: spec.x"}"#;
    let fault = Fault::Status(Box::new(Status::read(Encoding::Json, body)));
    report(Report::Failing {
        request: String::new(),
        fault,
        remedy: Remedy::Everything,
        again: Duration::ZERO,
    });
    let State::Stale { why, .. } = informer.health().state else { panic!("{:?}", informer.health()) };
    assert_eq!(why.cause, Cause::Rejected);
    assert!(why.to_string().contains("spec.x"), "{why}");
    // It is over only when everything works.
    report(Report::Listing(Reason::Failure));
    assert_eq!(state(), "stale");
    let listed = |version: &str| {
        let (objects, encoding, version) = (1, Encoding::Json, Version::from(version));
        Report::Listed { objects, encoding, streaming: true, version }
    };
    hand.list(&[("a", 1)], 3);
    report(listed("3"));
    assert_eq!(state(), "stale");
    report(Report::Watching { encoding: Encoding::Json });
    assert_eq!(state(), "live");
    report(Report::Listing(Reason::Expired));
    let State::Stale { why, .. } = informer.health().state else { panic!("{:?}", informer.health()) };
    assert_eq!(why.cause, Cause::Relisting);
    // What was listed is on its way to the cache, and not there: what is in the cache is still old.
    report(listed("9"));
    report(Report::Watching { encoding: Encoding::Json });
    assert_eq!(state(), "stale");
    hand.list(&[("a", 1)], 9);
    let health = informer.health();
    assert_eq!((state(), health.watches, health.relists.first, health.relists.expired), ("live", 2, 1, 1));
}

#[tokio::test]
async fn promise_15_what_is_broken_stays_so_whatever_still_works() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let report = |report| informer.core().board().report(0, &report);
    hand.list(&[("a", 1)], 3);
    report(Report::Watching { encoding: Encoding::Json });
    assert_eq!(informer.health().state, State::Live);
    informer.core().board().broken("a panic");
    let broken = informer.health().state;
    // Its reflector does not know yet.
    report(Report::Watching { encoding: Encoding::Json });
    let (request, fault) = ("WATCH /api/v1/pods".to_owned(), Fault::Connection("cut".to_owned()));
    report(Report::Failing { request, fault, remedy: Remedy::Again, again: Duration::ZERO });
    informer.core().board().replaced(0);
    assert_eq!(informer.health().state, broken);
    let State::Stale { why, .. } = broken else { panic!("{broken}") };
    assert_eq!((why.cause, &*why.message), (Cause::Broken, "a panic"));
    informer.core().board().stopped();
    assert_eq!(informer.health().state, State::Stopped);
}

#[tokio::test]
async fn a_watch_that_is_closed_needs_no_advice_and_a_list_does() {
    let hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let said = |request: &str| {
        let (request, fault) = (request.to_owned(), Fault::Connection(CLOSED.to_owned()));
        let report = Report::Failing { request, fault, remedy: Remedy::Again, again: Duration::ZERO };
        informer.core().board().report(0, &report);
        informer.health().state.to_string()
    };
    let advice = Cause::Connection.advice();
    assert!(!said("WATCH /api/v1/pods?watch=1").contains(advice));
    assert!(said("LIST /api/v1/pods?limit=500").contains(advice));
}

#[tokio::test]
async fn promise_15_health_says_when_something_was_last_heard() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let heard = || {
        let health = informer.health();
        (health.last_event, health.last_bookmark)
    };
    assert_eq!(heard(), (None, None));
    let began = Timestamp::now();
    hand.list(&[("a", 1)], 1);
    let (listed, bookmark) = heard();
    assert!(listed >= Some(began) && bookmark.is_none(), "{listed:?} {bookmark:?}");
    hand.progress(2);
    let (same, bookmark) = heard();
    assert!(same == listed && bookmark >= listed, "{same:?} {bookmark:?}");
    hand.put("a", 3);
    let (changed, same) = heard();
    assert!(changed >= bookmark && same == bookmark, "{changed:?} {same:?}");
}

#[tokio::test]
async fn promise_15_health_is_a_stream_too() {
    use futures_util::StreamExt;
    let hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let mut changes = Box::pin(informer.health_changes());
    assert_eq!(changes.next().await.unwrap().state, State::Starting);
    informer.core().board().report(0, &Report::Listing(Reason::First));
    assert_eq!(changes.next().await.unwrap().state, State::Syncing);
    informer.core().stop(SOON).await;
    assert_eq!(changes.next().await.unwrap().state, State::Stopped);
    assert!(changes.next().await.is_none());
}

#[test]
fn a_connection_that_was_closed_needs_no_advice_and_one_that_cannot_be_made_does() {
    let why = |message: &str| Why {
        cause: Cause::Connection,
        request: "WATCH /api/v1/pods".to_owned(),
        message: message.to_owned(),
        again: Duration::ZERO,
    };
    let closed = why("the server has closed the connection");
    assert_eq!(closed.explained(), "the server has closed the connection");
    assert_eq!(closed.to_string(), "WATCH /api/v1/pods: the server has closed the connection");
    assert!(why("no route to host").explained().ends_with(Cause::Connection.advice()));
}

#[tokio::test]
async fn promise_15_of_several_namespaces_the_worst_counts_and_what_is_missing_is_named() {
    let mut hand = Hand::new(Scope::namespaces(["d", "e"]));
    let informer = hand.informer();
    hand.list(&[("a", 1)], 3);
    informer.core().board().report(0, &Report::Watching { encoding: Encoding::Json });
    let fault = Fault::Connection("cut".to_owned());
    let request = "WATCH /api/v1/namespaces/e/pods".to_owned();
    let failing = Report::Failing { request, fault, remedy: Remedy::Everything, again: Duration::ZERO };
    informer.core().board().report(1, &failing);
    assert_eq!(informer.health().state.as_str(), "stale");
    assert!(!informer.is_synced());
    let error = informer.synced(Duration::from_millis(1)).await.unwrap_err();
    assert_eq!(error.missing.len(), 1);
    assert_eq!(error.missing[0].namespace.as_deref(), Some("e"));
    assert!(error.to_string().contains("namespaces/e/pods"), "{error}");
}

#[tokio::test]
async fn promise_15_each_relist_is_counted_under_its_reason() {
    let hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let reasons = [
        (Reason::First, "first"),
        (Reason::Expired, "expired"),
        (Reason::Failure, "failure"),
        (Reason::WentBack, "went_back"),
        (Reason::Unreadable, "unreadable"),
        (Reason::Encoding, "encoding"),
    ];
    let mut expected = reasons.map(|(_, name)| (name, 0));
    assert_eq!(informer.health().relists.by_reason(), expected);
    for (number, (reason, _)) in (0..).zip(reasons) {
        // Each more often than the one before.
        for _ in 0..=number {
            informer.core().board().report(0, &Report::Listing(reason));
        }
        expected[number].1 = number as u64 + 1;
        assert_eq!(informer.health().relists.by_reason(), expected, "{reason:?}");
    }
    let relists = Relists { first: 1, expired: 2, failure: 3, went_back: 4, unreadable: 5, encoding: 6 };
    assert_eq!(informer.health().relists, relists);
}

#[tokio::test]
async fn promise_15_that_json_is_asked_for_instead_is_said_before_the_list_and_counted_with_it() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let report = |report| informer.core().board().report(0, &report);
    report(Report::Listing(Reason::First));
    hand.list(&[("a", 1)], 3);
    report(Report::Watching { encoding: Encoding::Protobuf });
    let now = || (informer.health().encoding, informer.health().relists.encoding);
    assert_eq!(now(), (Some(Encoding::Protobuf), 0));
    // As the reflector says it.
    report(Report::TurnedToJson { error: "unknown field 99 of Pod".to_owned() });
    assert_eq!(now(), (Some(Encoding::Json), 0));
    report(Report::Listing(Reason::Encoding));
    assert_eq!(now(), (Some(Encoding::Json), 1));
    let State::Stale { why, .. } = informer.health().state else { panic!("{:?}", informer.health()) };
    assert_eq!(why.cause, Cause::Relisting);
}
