//! Each number under its own name.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::*;
use crate::cache::Stats;
use crate::encoding::Encoding;
use crate::informer::{Durations, Health, Relists, State};

/// Informers that there are not.
#[derive(Debug)]
struct Given(Vec<InformerStats>);

impl Collector for Given {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        Page { encoder, informers: &self.0 }.write()
    }
}

/// What is exposed of an informer, without what tells it from others.
fn exposed(informer: InformerStats) -> Vec<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Given(vec![informer])));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let own = r#"informer="pods-2",resource="pods.v1",scope="all",selector="a=b""#;
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("kube_informer_").unwrap().split_once(own).unwrap();
        format!("{name}{}", rest.strip_prefix(',').unwrap_or(rest))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

/// So many calls of each length: from such that are within the first bound to such that are beyond the last.
fn durations() -> Durations {
    let lengths = [10, 11, 1_000, 1_001, 100_000, 1_000_000, 10_000_000, 10_000_001];
    let calls = (1..).zip(lengths).flat_map(|(count, micros)| vec![Duration::from_micros(micros); count]);
    Durations::of(calls)
}

/// A different number in every field.
fn stats() -> InformerStats {
    let health = Health {
        state: State::Live,
        scopes: vec![(None, State::Live)],
        last_event: Some(Timestamp::from_second(31).unwrap()),
        last_bookmark: Some(Timestamp::from_second(32).unwrap()),
        relists: Relists { first: 15, expired: 16, failure: 17, went_back: 18, unreadable: 19, encoding: 20 },
        watches: 21,
        unreadable: 22,
        last_unreadable: None,
        encoding: Some(Encoding::Protobuf),
    };
    let handler = RegistrationStats {
        handled: 101,
        panics: 37,
        gaps: 38,
        missed: 39,
        backlog: 35,
        behind: Some(Duration::from_millis(36_500)),
        busy: Duration::from_millis(40_250),
        durations: durations(),
    };
    // It is read, and not called.
    let stream = RegistrationStats {
        handled: 102,
        panics: 43,
        gaps: 44,
        missed: 45,
        backlog: 41,
        behind: None,
        busy: Duration::ZERO,
        durations: Durations::default(),
    };
    InformerStats {
        name: "pods-2".into(),
        resource: "pods.v1".to_owned(),
        scope: "all".to_owned(),
        selector: "a=b".to_owned(),
        cache: Stats {
            objects: 1,
            kept_bytes: 2,
            plain_bytes: 3,
            indexes: 103,
            index_entries: 104,
            index_faults: 23,
            ignored_stale: 8,
            ignored_out_of_scope: 105,
        },
        health,
        versions: vec![("d".to_owned(), "33".to_owned()), ("e".to_owned(), "34".to_owned())],
        added: 4,
        updated: 5,
        deleted: 6,
        bookmarks: 7,
        received_bytes: 9,
        received_objects: 106,
        begun_anew: 107,
        gather: Duration::from_millis(10_500),
        gathered: 11,
        queue_length: 12,
        queue_bytes: 13,
        handlers: vec![("handler".into(), handler), ("stream".into(), stream)],
    }
}

const PAGE: &str = r#"
objects{} 1.0
kept_bytes{} 2.0
plain_bytes{} 3.0
events_total{type="added"} 4.0
events_total{type="updated"} 5.0
events_total{type="deleted"} 6.0
events_total{type="bookmark"} 7.0
stale_events_total{} 8.0
received_bytes_total{} 9.0
gather_seconds{} 10.5
gathered_total{} 11.0
queue_length{} 12.0
queue_bytes{} 13.0
relists_total{reason="first"} 15.0
relists_total{reason="expired"} 16.0
relists_total{reason="failure"} 17.0
relists_total{reason="went_back"} 18.0
relists_total{reason="unreadable"} 19.0
relists_total{reason="encoding"} 20.0
watches_total{} 21.0
unreadable_total{} 22.0
index_faults_total{} 23.0
encoding{encoding="protobuf"} 1.0
health{state="starting"} 0.0
health{state="syncing"} 0.0
health{state="live"} 1.0
health{state="stale"} 0.0
health{state="stopped"} 0.0
last_version{namespace="d"} 33.0
last_version{namespace="e"} 34.0
last_event_timestamp_seconds{} 31.0
last_bookmark_timestamp_seconds{} 32.0
handler_backlog{handler="handler"} 35.0
handler_backlog{handler="stream"} 41.0
handler_behind_seconds{handler="handler"} 36.5
handler_behind_seconds{handler="stream"} 0.0
handler_panics_total{handler="handler"} 37.0
handler_panics_total{handler="stream"} 43.0
handler_gaps_total{handler="handler"} 38.0
handler_gaps_total{handler="stream"} 44.0
handler_missed_total{handler="handler"} 39.0
handler_missed_total{handler="stream"} 45.0
handler_duration_seconds_sum{handler="handler"} 40.25
handler_duration_seconds_count{handler="handler"} 36
handler_duration_seconds_bucket{le="0.00001",handler="handler"} 1
handler_duration_seconds_bucket{le="0.0001",handler="handler"} 3
handler_duration_seconds_bucket{le="0.001",handler="handler"} 6
handler_duration_seconds_bucket{le="0.01",handler="handler"} 10
handler_duration_seconds_bucket{le="0.1",handler="handler"} 15
handler_duration_seconds_bucket{le="1.0",handler="handler"} 21
handler_duration_seconds_bucket{le="10.0",handler="handler"} 28
handler_duration_seconds_bucket{le="+Inf",handler="handler"} 36
"#;

#[test]
fn promise_15_each_number_is_told_under_its_own_name() {
    let expected: Vec<&str> = PAGE.trim().lines().collect();
    assert_eq!(exposed(stats()), expected);
}

#[test]
fn promise_15_the_state_that_it_is_in_is_the_one_that_is_told() {
    let why = crate::informer::Why {
        cause: crate::informer::Cause::Refused,
        request: String::new(),
        message: String::new(),
        again: Duration::ZERO,
    };
    let stale = State::Stale { since: Timestamp::UNIX_EPOCH, why };
    for state in [State::Starting, State::Syncing, State::Live, stale, State::Stopped] {
        let mut stats = stats();
        let name = state.as_str();
        stats.health.state = state;
        let told: Vec<String> =
            exposed(stats).into_iter().filter(|line| line.starts_with("health{")).collect();
        assert_eq!(told.len(), 5);
        for line in told {
            assert_eq!(line.ends_with(" 1.0"), line.contains(&format!("\"{name}\"")), "{name}: {line}");
        }
    }
}
