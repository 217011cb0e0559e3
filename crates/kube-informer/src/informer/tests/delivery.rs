//! What a registration is told that does not take everything at once.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::hand::{Hand, next, one, seen, short};
use super::*;
use crate::reflector::Delta;

#[tokio::test]
async fn promise_10_latest_leads_from_the_oldest_old_to_the_newest_new() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().events();
    hand.list(&[("a", 1), ("b", 2), ("c", 3)], 3);
    assert_eq!(seen(&mut events).len(), 3);
    hand.put("a", 4);
    hand.put("b", 5);
    hand.put("a", 6);
    hand.put("a", 7);
    hand.put("b", 8);
    hand.remove("b", 9);
    assert_eq!(seen(&mut events), ["~a@1→7", "-b@9"]);
}

#[tokio::test]
async fn promise_10_latest_never_joins_across_a_deletion() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().events();
    hand.list(&[("a", 1)], 3);
    assert_eq!(seen(&mut events), ["+a@1!"]);
    hand.put("a", 4);
    hand.remove("a", 5);
    hand.put("a", 6);
    hand.put("a", 7);
    assert_eq!(seen(&mut events), ["-a@5", "+a@7"]);
    // Made again under the same name, and seen only as that.
    let again = hand.object("a", "another", 9);
    hand.apply(Delta::Put(again));
    assert_eq!(seen(&mut events), ["-a@7?", "+a@9"]);
    // One event of the two was taken when it goes on, and on.
    let (ninth, tenth) = (hand.object("a", "ninth", 10), hand.object("a", "ninth", 11));
    hand.apply(Delta::Put(ninth));
    assert_eq!(one(&mut events).as_deref(), Some("-a@9?"));
    hand.apply(Delta::Put(tenth.clone()));
    assert_eq!(one(&mut events).as_deref(), Some("+a@11"));
    hand.apply(Delta::Remove(tenth));
    assert_eq!(seen(&mut events), ["-a@11"]);
}

#[tokio::test]
async fn promise_10_latest_keeps_few_versions_of_what_is_large() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().events();
    hand.list(&[("a", 1)], 3);
    assert_eq!(seen(&mut events), ["+a@1!"]);
    let mut random = fastrand::Rng::with_seed(7);
    let mut most = 0;
    for version in 10..70 {
        let noise: String = (0..1 << 20).map(|_| random.alphanumeric()).collect();
        let large = hand.pod("a", version, &format!(r#""annotations":{{"noise":"{noise}"}}"#));
        hand.apply(Delta::Put(large));
        most = most.max(events.stats().backlog);
    }
    assert!(most < 20, "{most} versions of one object waited");
    assert_eq!(seen(&mut events), ["~a@1→69"]);
}

#[tokio::test]
async fn promise_10_latest_says_nothing_of_what_came_and_went() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let mut events = informer.events();
    hand.list(&[], 3);
    let reads = tokio::spawn(async move { events.next().await.map(|event| short(&event)) });
    for round in 0..10 {
        // The reader has its turn: it waits, or was woken for what is over already.
        tokio::task::yield_now().await;
        assert!(!reads.is_finished());
        for version in round * 1_000..(round + 1) * 1_000 {
            hand.put("short", 10 + 2 * version);
            hand.remove("short", 11 + 2 * version);
        }
        let backlog = informer.stats().handlers[0].1.backlog;
        assert!((1..=1025).contains(&backlog), "{backlog}");
    }
    tokio::task::yield_now().await;
    hand.put("stays", 100_000);
    assert_eq!(timeout(SOON, reads).await.unwrap().unwrap().as_deref(), Some("+stays@100000"));
}

#[tokio::test]
async fn promise_10_every_tells_each_change_up_to_its_capacity() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(3)).events();
    hand.list(&[("a", 1), ("b", 2)], 3);
    assert_eq!(seen(&mut events), ["+a@1!", "+b@2!"]);
    hand.put("a", 4);
    hand.put("a", 5);
    hand.remove("a", 6);
    assert_eq!(seen(&mut events), ["~a@1→4", "~a@4→5", "-a@6"]);
    hand.put("c", 7);
    hand.put("c", 8);
    assert_eq!(one(&mut events).as_deref(), Some("+c@7"));
    hand.put("c", 9);
    hand.put("c", 10);
    hand.put("c", 11);
    hand.put("d", 12);
    // What there is, after what was missed; and from then on each change again.
    assert_eq!(seen(&mut events), ["gap 5, 3 now", "+b@2!", "+c@11!", "+d@12!"]);
    hand.put("d", 13);
    assert_eq!(seen(&mut events), ["~d@12→13"]);
    assert_eq!((events.stats().gaps, events.stats().missed, events.stats().backlog), (1, 5, 0));
}

#[tokio::test]
async fn promise_10_what_is_told_from_the_beginning_is_told_to_its_end() {
    let mut hand = Hand::new(Scope::All);
    let names: Vec<String> = (0..50).map(|number| format!("{number:02}")).collect();
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    hand.list(&objects, 1);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(3)).events();
    // More changes between two events than it has room for, always: it is told everything all the same, and is synced.
    let mut told = std::collections::BTreeSet::new();
    for version in 2..150 {
        for more in 0..5 {
            hand.put("00", 10 * version + more);
        }
        let Some(event) = next(&mut events) else { break };
        told.extend(event.object().map(|object| object.name().to_owned()));
    }
    assert_eq!(told.len(), 50);
    assert!(events.is_synced());
    assert!(events.stats().gaps > 0, "{:?}", events.stats());
}

#[tokio::test]
async fn promise_10_changes_that_were_made_together_are_no_gap_for_one_who_keeps_up() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(1)).events();
    hand.list(&[("a", 1), ("b", 2), ("c", 3)], 3);
    assert_eq!(seen(&mut events).len(), 3);
    hand.list(&[("a", 4), ("b", 5), ("c", 6)], 7);
    assert_eq!(seen(&mut events), ["~a@1→4", "~b@2→5", "~c@3→6"]);
}

#[tokio::test]
async fn promise_10_the_initial_list_is_no_gap_however_small_the_capacity() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(1)).events();
    assert_eq!(seen(&mut events).len(), 0);
    hand.list(&[("a", 1), ("b", 2), ("c", 3)], 3);
    assert_eq!(seen(&mut events), ["+a@1!", "+b@2!", "+c@3!"]);
    assert!(events.is_synced());
}

#[tokio::test]
async fn promise_09_initial_objects_that_are_gone_before_they_are_told_are_not_waited_for() {
    for (delivery, all, one) in [
        (Delivery::Latest, vec![], vec!["+b@2!"]),
        (Delivery::Every(10), vec!["+a@1!", "-a@4"], vec!["+a@1!", "+b@2!", "-a@4"]),
    ] {
        for (objects, told) in [([("a", 1)].as_slice(), all), ([("a", 1), ("b", 2)].as_slice(), one)] {
            let mut hand = Hand::new(Scope::All);
            let mut events = hand.informer().subscribe().delivery(delivery).events();
            // It has begun, with nothing: the list comes as something that happens.
            assert_eq!(seen(&mut events), [""; 0]);
            hand.list(objects, 3);
            assert!(!events.is_synced());
            hand.remove("a", 4);
            assert_eq!(seen(&mut events), told, "{delivery:?}");
            assert!(events.is_synced(), "{delivery:?}");
        }
    }
}

#[tokio::test]
async fn a_relist_is_told_as_what_it_changed_deletes_first() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(100)).events();
    hand.list(&[("a", 1), ("b", 2), ("c", 3)], 3);
    assert_eq!(seen(&mut events).len(), 3);
    hand.list(&[("d", 9), ("b", 2), ("a", 8)], 10);
    assert_eq!(seen(&mut events), ["-c@3?", "+d@9", "~a@1→8"]);
}

/// What one who is told has made of it.
struct Replica {
    events: Events<serde_json::Value>,
    is_latest: bool,
    /// Name to UID and version.
    view: BTreeMap<String, (String, u64)>,
}

impl Replica {
    fn take(&mut self, most: usize) -> Result<(), TestCaseError> {
        for _ in 0..most {
            let Some(event) = next(&mut self.events) else { break };
            let version = |object: &Object| object.version().to_string().parse::<u64>().unwrap();
            let place = |object: &Object| (object.uid().to_string(), version(object));
            match &event {
                Event::Added { new, .. } => {
                    let before = self.view.insert(new.name().to_owned(), place(new));
                    prop_assert_eq!(before, None, "added twice: {:?}", event);
                }
                Event::Updated { old, new, resync } => {
                    let before = self.view.insert(new.name().to_owned(), place(new));
                    prop_assert_eq!(before, Some(place(old)), "not what was told last: {:?}", event);
                    prop_assert!(*resync || version(old) != version(new));
                }
                Event::Deleted { last, .. } => {
                    let before = self.view.remove(last.name());
                    prop_assert_eq!(before.map(|(uid, _)| uid), Some(last.uid().to_string()), "{:?}", event);
                }
                Event::Gap { .. } => self.view.clear(),
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Remove(u8),
    /// A list with those whose bit is set.
    Relist(u8),
    /// One who is told takes so many.
    Take(u8, u8),
    /// A new one comes.
    Come(u8),
    Go(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..6_u8, 0..2_u8).prop_map(|(name, uid)| Step::Put(name, uid)),
        2 => (0..6_u8).prop_map(Step::Remove),
        1 => any::<u8>().prop_map(Step::Relist),
        4 => (0..6_u8, 0..9_u8).prop_map(|(who, most)| Step::Take(who, most)),
        1 => (0..12_u8).prop_map(Step::Come),
        1 => (0..6_u8).prop_map(Step::Go),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    /// Whatever happens, whoever takes whenever: each update leads on from what was told before it, and in the end
    /// everyone knows what the cache has.
    ///
    /// Some come before the first list, and take before it: they are told it as those of whom it is the beginning.
    #[test]
    fn promise_09_what_is_told_adds_up_to_the_cache(first in 0..12_usize, steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut hand = Hand::new(Scope::All);
            let informer = hand.informer();
            let mut replicas: Vec<Replica> = Vec::new();
            let mut version = 0;
            let mut is_listed = false;
            for (number, step) in steps.into_iter().chain([Step::Take(0, 0)]).enumerate() {
                version += 2;
                if !is_listed && (number >= first || matches!(step, Step::Put(..) | Step::Remove(_))) {
                    hand.list(&[("0", 1), ("1", 1), ("2", 1)], 1);
                    is_listed = true;
                }
                match step {
                    Step::Put(name, uid) => {
                        let object = hand.object(&name.to_string(), &format!("{name}-{uid}"), version);
                        hand.apply(Delta::Put(object));
                    }
                    Step::Remove(name) => {
                        let name = name.to_string();
                        let uid = informer.get("d", &name).map(|held| held.uid().to_string());
                        let object = hand.object(&name, &uid.unwrap_or_default(), version);
                        hand.apply(Delta::Remove(object));
                    }
                    Step::Relist(bits) => {
                        let names = (0..6_u8).filter(|name| bits & 1 << name != 0);
                        let uid = |name| format!("{name}-{}", bits >> 7);
                        let objects = names.map(|name| hand.object(&name.to_string(), &uid(name), version));
                        let objects = objects.collect();
                        hand.replace(objects, version + 1);
                    }
                    Step::Take(who, most) => {
                        if let Some(replica) = replicas.get_mut(who as usize) {
                            replica.take(most.into())?;
                        }
                    }
                    Step::Come(capacity) => {
                        let delivery = if capacity < 6 { Delivery::Latest } else { Delivery::Every(capacity.into()) };
                        let events = informer.subscribe().delivery(delivery).events();
                        let is_latest = delivery == Delivery::Latest;
                        replicas.push(Replica { events, is_latest, view: BTreeMap::new() });
                    }
                    Step::Go(who) => {
                        if (who as usize) < replicas.len() {
                            replicas.swap_remove(who as usize);
                        }
                    }
                }
                // As many as wait before they are folded, and one list.
                for replica in replicas.iter().filter(|replica| replica.is_latest) {
                    prop_assert!(replica.events.stats().backlog <= 1024 + 12);
                }
            }
            if !is_listed {
                hand.list(&[("0", 1), ("1", 1), ("2", 1)], 1);
            }
            let all = informer.list().into_iter();
            let cache: BTreeMap<_, _> = all
                .map(|object| {
                    let version = object.version().to_string().parse::<u64>().unwrap();
                    (object.name().to_owned(), (object.uid().to_string(), version))
                })
                .collect();
            for mut replica in replicas {
                replica.take(usize::MAX)?;
                prop_assert_eq!(&replica.view, &cache);
                prop_assert!(replica.events.is_synced());
            }
            Ok(())
        })?;
    }
}
