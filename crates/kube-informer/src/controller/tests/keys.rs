//! Which keys are queued, and that none is lost.

use futures_util::FutureExt;

use super::*;
use crate::workqueue::Item;

/// Owner references as they are in metadata.
fn owned(kind: &str, name: &str, controller: bool) -> String {
    let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
    format!(
        r#""ownerReferences":[{{"apiVersion":"{api_version}","kind":"{kind}","name":"{name}","uid":"u","controller":{controller}}}]"#
    )
}

fn put(hand: &mut Hand, name: &str, version: u64, more: &str) {
    let object = hand.pod(name, version, more);
    hand.apply(Delta::Put(object));
}

#[tokio::test(start_paused = true)]
async fn the_old_and_the_new_owner_are_reconciled_when_an_object_changes_hands() {
    let (mut pods, mut children) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).owns_informer(&children.informer()), reconciler);
    pods.list(&[], 1);
    children.list(&[], 1);
    put(&mut children, "c", 2, &owned("Pod", "one", true));
    assert_eq!(heard.next().await, "one");
    put(&mut children, "c", 3, &owned("Pod", "two", true));
    assert_eq!(heard.some(2).await, ["one", "two"]);
    put(&mut children, "c", 4, r#""labels":{"owned":"by nobody"}"#);
    assert_eq!(heard.next().await, "two");
    put(&mut children, "c", 5, &owned("Pod", "one", true));
    assert_eq!(heard.next().await, "one");
    let last = children.pod("c", 6, &owned("Pod", "one", true));
    children.apply(Delta::Remove(last));
    assert_eq!(heard.next().await, "one");
    heard.nothing().await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_the_managing_owner_of_the_right_group_and_kind_counts() {
    let (mut pods, mut children) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).owns_informer(&children.informer()), reconciler);
    pods.list(&[], 1);
    children.list(&[], 1);
    put(&mut children, "other-kind", 2, &owned("ReplicaSet", "one", true));
    put(&mut children, "not-managing", 3, &owned("Pod", "one", false));
    let other_group = owned("Pod", "one", true).replace(r#""v1""#, r#""example.com/v1""#);
    put(&mut children, "other-group", 4, &other_group);
    heard.nothing().await;
    // Another version of the same group is the same owner.
    put(&mut children, "other-version", 5, &owned("Pod", "one", true).replace(r#""v1""#, r#""v2""#));
    assert_eq!(heard.next().await, "one");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_there_all_along_names_its_owner_too() {
    let (mut pods, mut children) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).owns_informer(&children.informer()), reconciler);
    pods.list(&[("one", 1)], 1);
    let child = children.pod("c", 1, &owned("Pod", "gone", true));
    children.replace(vec![child], 1);
    assert_eq!(heard.some(2).await, ["gone", "one@1"]);
    // Found missing, with another in its place.
    let other = children.pod("d", 3, &owned("Pod", "one", true));
    children.replace(vec![other], 3);
    assert_eq!(heard.some(2).await, ["gone", "one@1"]);
    heard.nothing().await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn functions_are_asked_for_the_old_and_the_new_object() {
    let (mut pods, mut maps) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let to_label = |object: &Object<Value>| {
        object.labels().iter().map(|(_, value)| Request::new("d", value)).collect::<Vec<_>>()
    };
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).watches_informer(&maps.informer(), to_label), reconciler);
    pods.list(&[], 1);
    maps.list(&[], 1);
    put(&mut maps, "m", 2, r#""labels":{"for":"one","and":"two"}"#);
    assert_eq!(heard.some(2).await, ["one", "two"]);
    put(&mut maps, "m", 3, r#""labels":{"for":"three"}"#);
    assert_eq!(heard.some(3).await, ["one", "three", "two"]);
    heard.nothing().await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn predicates_stop_changes_of_their_own_source() {
    let (mut pods, mut others) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let map = |object: &Object<Value>| vec![Request::new("d", &format!("for-{}", object.name()))];
    let controller = controller(&pods)
        .when(predicate::generation())
        .when(Predicate::new(|change| change.new.is_none_or(|new| new.name() != "hidden")))
        .watches_informer(&others.informer(), map)
        .when(predicate::labels().not());
    let (reconciler, mut heard) = done();
    let running = run(controller, reconciler);
    pods.list(&[], 1);
    others.list(&[], 1);
    put(&mut pods, "hidden", 2, r#""generation":1"#);
    put(&mut pods, "a", 3, r#""generation":1"#);
    assert_eq!(heard.next().await, "a@3");
    put(&mut pods, "a", 4, r#""generation":1,"labels":{"l":"m"}"#);
    put(&mut others, "o", 5, r#""generation":1"#);
    heard.nothing().await;
    put(&mut others, "o", 6, r#""generation":2"#);
    assert_eq!(heard.next().await, "for-o");
    put(&mut pods, "a", 7, r#""generation":2"#);
    assert_eq!(heard.next().await, "a@7");
    pods.remove("a", 8);
    assert_eq!(heard.next().await, "a");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_said_again_passes_only_where_a_predicate_says_so() {
    let (mut pods, minute) = (Hand::new(Scope::All), Duration::from_secs(60));
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).when(predicate::generation()).resync(minute), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    heard.nothing().await;
    running.stop().await.unwrap();

    let (reconciler, mut heard) = done();
    let again = predicate::generation().or(predicate::resync());
    let running = run(controller(&pods).when(again).resync(minute), reconciler);
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(heard.next().await, "a@1");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn functions_and_predicates_that_panic_are_counted_and_lose_no_other_key() {
    let (mut pods, mut maps, metrics) = (Hand::new(Scope::All), Hand::new(Scope::All), Metrics::default());
    let map = |object: &Object<Value>| {
        assert!(object.name() != "bad", "no");
        vec![Request::new("d", object.name())]
    };
    let controller = controller(&pods)
        .when(Predicate::new(|change| change.new.is_some_and(|new| panic!("of {}", new.name()))))
        .watches_informer(&maps.informer(), map)
        .metrics(&metrics);
    let (reconciler, mut heard) = done();
    let running = run(controller, reconciler);
    pods.list(&[("a", 1)], 1);
    maps.list(&[("bad", 1), ("good", 1)], 1);
    assert_eq!(heard.some(2).await, ["a@1", "good"]);
    has(&metrics, "kube_informer_controller_source_panics_total{controller=\"pod\"} 2");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn streams_bring_keys_from_elsewhere() {
    let mut pods = Hand::new(Scope::All);
    let (sender, receiver) = mpsc::unbounded_channel();
    let keys =
        futures_util::stream::unfold(receiver, async |mut receiver: mpsc::UnboundedReceiver<Request>| {
            Some((receiver.recv().await?, receiver))
        });
    let broken = futures_util::stream::poll_fn(|_| -> std::task::Poll<Option<Request>> { panic!("no") });
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).external(keys).external(broken), reconciler);
    sender.send(Request::new("d", "early")).unwrap();
    heard.nothing().await;
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.some(2).await, ["a@1", "early"]);
    sender.send(Request::new("d", "a")).unwrap();
    assert_eq!(heard.next().await, "a@1");
    drop(sender);
    pods.put("a", 2);
    assert_eq!(heard.next().await, "a@2", "the end of a stream is the end of nothing else");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_end_does_not_fill_the_memory() {
    let mut pods = Hand::new(Scope::All);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let keys = futures_util::stream::poll_fn(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::task::Poll::Ready(Some(Request::new("d", &number.to_string())))
    });
    let (reconciler, mut heard) = tell(async |_| std::future::pending().await);
    let metrics = Metrics::default();
    let (lead, leads) = watch::channel(false);
    let controller = controller(&pods).external(keys).metrics(&metrics);
    let runner = crate::runner::Runner::new(&factory()).controller(controller, reconciler).when(leads);
    let running = tokio::spawn(runner.run(std::future::pending()));
    let enough = || {
        let asked = asked.load(std::sync::atomic::Ordering::Relaxed);
        assert!((100_000..100_010).contains(&asked), "{asked}");
    };
    // Nobody takes any of them.
    pods.list(&[], 1);
    heard.nothing().await;
    enough();
    has(&metrics, "workqueue_depth{name=\"pod\"} 100000");
    has(&metrics, "kube_informer_controller_external_waits_total{controller=\"pod\"} 1");
    // Somebody takes one, and is busy.
    lead.send(true).unwrap();
    heard.next().await;
    heard.nothing().await;
    enough();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_falls_behind_loses_no_key() {
    let (mut pods, mut children, metrics) =
        (Hand::new(Scope::All), Hand::new(Scope::All), Metrics::default());
    let controller = controller(&pods).owns_informer(&children.informer()).capacity(3).metrics(&metrics);
    let (reconciler, mut heard) = done();
    let running = run(controller, reconciler);
    pods.list(&[("goes", 1), ("stays", 1)], 1);
    let mut all = Vec::new();
    for (name, owner) in [("a", "old"), ("b", "leaves"), ("c", "keeps")] {
        all.push(children.pod(name, 1, &owned("Pod", owner, true)));
    }
    children.replace(all, 1);
    assert_eq!(heard.some(5).await, ["goes@1", "keeps", "leaves", "old", "stays@1"]);
    heard.nothing().await;
    // More than there is room for, before anybody can read it.
    pods.remove("goes", 2);
    for version in 3..20 {
        pods.put("busy", version);
    }
    put(&mut children, "a", 2, &owned("Pod", "between", true));
    put(&mut children, "a", 3, &owned("Pod", "new", true));
    let last = children.pod("b", 4, &owned("Pod", "leaves", true));
    children.apply(Delta::Remove(last));
    for version in 5..20 {
        put(&mut children, "busy", version, &owned("Pod", "busy", true));
    }
    let told = ["busy@19", "goes", "keeps", "leaves", "new", "old", "stays@1"];
    assert_eq!(heard.some(told.len()).await, told);
    heard.nothing().await;
    has(&metrics, "kube_informer_controller_source_gaps_total{controller=\"pod\"} 2");
    // It goes on as if nothing had been.
    pods.put("stays", 30);
    assert_eq!(heard.next().await, "stays@30");
    running.stop().await.unwrap();
}

/// The keys that are queued, which are not any more then.
fn take(engine: &Engine) -> Vec<String> {
    let take = || tokio::task::unconstrained(engine.queue.get()).now_or_never().flatten();
    let mut keys: Vec<String> =
        std::iter::from_fn(take).map(|item: Item<Request>| item.key().name().to_owned()).collect();
    keys.sort();
    keys
}

#[tokio::test(start_paused = true)]
async fn what_was_told_since_the_last_pause_is_remembered_too() {
    let mut pods = Hand::new(Scope::All);
    let (engine, _) = controller(&pods).capacity(10_000).build();
    let source = engine.sources.first().unwrap();
    engine.open.send_replace(true);
    let mut follow = Box::pin(source.run(&engine, source.open("pod")));
    pods.list(&[], 1);
    assert!((&mut follow).now_or_never().is_none());
    // It is told much, and never pauses: whenever it is its turn, more has come than a turn is long.
    let mut version = 2;
    for round in 0..5 {
        for number in 0..1000 {
            pods.put(&format!("{round}-{number}"), version);
            version += 1;
        }
        for _ in 0..7 {
            assert!((&mut follow).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
    }
    let told = take(&engine);
    assert!(told.len() > 4000 && events_wait(source), "{}", told.len());
    // All are gone, and that is not told: there is a gap.
    pods.replace(Vec::new(), version);
    for number in 1..11_000 {
        pods.put("busy", version + number);
    }
    // Many turns, until it has nothing left to do.
    for _ in 0..300 {
        assert!((&mut follow).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.series.gaps.get(), 1);
    let again = take(&engine);
    assert!(again.contains(&"busy".to_owned()));
    let lost: Vec<_> = told.iter().filter(|key| again.binary_search(key).is_err()).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

fn events_wait(source: &Source) -> bool {
    source.informer.stats().handlers.iter().any(|(_, stats)| stats.backlog > 0)
}

#[tokio::test(start_paused = true)]
async fn what_was_reconciled_while_a_source_was_behind_is_reconciled_once_more_after_a_gap() {
    let mut pods = Hand::new(Scope::All);
    let (engine, _) = controller(&pods).capacity(3).build();
    let source = engine.sources.first().unwrap();
    engine.open.send_replace(true);
    let mut follow = Box::pin(source.run(&engine, source.open("pod")));
    pods.list(&[], 1);
    assert!((&mut follow).now_or_never().is_none());
    let (seen, unseen) = (Request::new("d", "seen"), Request::new("d", "unseen"));
    // Nobody is behind.
    source.reconciled(&engine, &unseen, source.gaps());
    // A reconcile sees it in the cache, and it is gone before the source hears of it.
    pods.put("seen", 2);
    source.reconciled(&engine, &seen, source.gaps());
    pods.remove("seen", 3);
    for version in 4..9 {
        pods.put("busy", version);
    }
    let before = source.gaps();
    assert!((&mut follow).now_or_never().is_none());
    assert_eq!(take(&engine), ["busy", "seen"]);
    // One that was at it all the while.
    source.reconciled(&engine, &unseen, before);
    assert_eq!(take(&engine), ["unseen"]);
    // Without a gap, nothing is done twice.
    pods.put("seen", 10);
    source.reconciled(&engine, &unseen, source.gaps());
    assert!((&mut follow).now_or_never().is_none());
    assert_eq!(take(&engine), ["seen"]);
}
