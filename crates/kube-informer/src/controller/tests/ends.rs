//! Ends: asked for, forced, and of leadership.

use super::*;
use crate::runner::Runner;

/// A reconciler that waits until it may go on, and tells when it has.
fn patient(go: watch::Receiver<bool>) -> (impl Reconciler<Value>, Heard, mpsc::UnboundedReceiver<String>) {
    let (finished, ends) = mpsc::unbounded_channel();
    let (reconciler, heard) = tell(move |context: Context<Value>| {
        let (mut go, finished) = (go.clone(), finished.clone());
        async move {
            go.wait_for(|go| *go).await?;
            let _ = finished.send(context.request().name().to_owned());
            Ok(Action::done())
        }
    });
    (reconciler, heard, ends)
}

#[tokio::test(start_paused = true)]
async fn promise_18_a_shutdown_finishes_what_is_busy_and_takes_no_other_key() {
    let mut pods = Hand::new(Scope::All);
    let (go, may) = watch::channel(false);
    let (reconciler, mut heard, mut ends) = patient(may);
    let running = run(controller(&pods).workers(2).drain(10 * HOUR), reconciler);
    pods.list(&[("a", 1), ("b", 1), ("c", 1)], 1);
    assert_eq!(heard.some(2).await, ["a@1", "b@1"]);
    let _ = running.stop.send(());
    pods.put("d", 2);
    heard.nothing().await;
    go.send(true).unwrap();
    assert_eq!(running.task.await.unwrap().unwrap().busy, []);
    let mut ends: Vec<String> = std::iter::from_fn(|| ends.try_recv().ok()).collect();
    ends.sort();
    assert_eq!(ends, ["a", "b"]);
    assert!(heard.0.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn promise_18_what_is_busy_at_the_deadline_is_cut_off_and_named() {
    let mut pods = Hand::new(Scope::All);
    let (_go, may) = watch::channel(false);
    let (reconciler, mut heard, mut ends) = patient(may);
    let running = run(controller(&pods).drain(Duration::from_secs(3)), reconciler);
    pods.list(&[("a", 1), ("b", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    let begun = Instant::now();
    assert_eq!(running.stop().await.unwrap().busy, [Request::new("d", "a")]);
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert!(ends.recv().await.is_none(), "nothing of it is left");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_never_began_can_be_stopped() {
    let pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods), reconciler);
    heard.nothing().await;
    assert_eq!(running.stop().await.unwrap().busy, []);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_controller_that_is_dropped() {
    let mut pods = Hand::new(Scope::All);
    let (_go, may) = watch::channel(false);
    let (reconciler, mut heard, mut ends) = patient(may);
    let running = run(controller(&pods).workers(3), reconciler);
    pods.list(&[("a", 1), ("b", 1)], 1);
    assert_eq!(heard.some(2).await, ["a@1", "b@1"]);
    running.task.abort();
    assert!(ends.recv().await.is_none());
    assert!(heard.0.recv().await.is_none());
    assert_eq!(pods.informer().stats().handlers, [], "nobody is told any more");
}

#[tokio::test(start_paused = true)]
async fn a_required_source_that_is_stopped_ends_the_controller() {
    let (mut pods, factory) = (Hand::new(Scope::All), factory());
    let others = factory.informer::<k8s_openapi::api::core::v1::Pod>(Scope::All);
    let (reconciler, mut heard) = done();
    let running = run(controller(&pods).owns_informer(&others).optional(), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    // One that is optional may go.
    factory.stop(&others, HOUR).await;
    heard.nothing().await;
    pods.stop();
    let error = running.end().await;
    assert_eq!(error.to_string(), "controller \"pod\": the informer of pods (all) was stopped");
}

#[tokio::test(start_paused = true)]
async fn a_required_source_that_is_stopped_ends_the_controller_on_standby_too() {
    let mut pods = Hand::new(Scope::All);
    let (_lead, leads) = watch::channel(false);
    let (reconciler, mut heard) = done();
    let runner = Runner::new(&factory()).controller(controller(&pods), reconciler).when(leads);
    let running = tokio::spawn(runner.run(std::future::pending()));
    pods.list(&[("a", 1)], 1);
    heard.nothing().await;
    pods.stop();
    let error = timeout(AGES, running).await.expect("it ends").unwrap().unwrap_err();
    assert!(matches!(error, RunError::SourceStopped { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn workers_run_only_while_this_one_leads_and_informers_are_warm_before() {
    let mut pods = Hand::new(Scope::All);
    let (_go, may) = watch::channel(false);
    let (reconciler, mut heard, mut ends) = patient(may);
    let (lead, leads) = watch::channel(false);
    let (other, mut everywhere) = done();
    let runner = Runner::new(&factory())
        .controller(controller(&pods).name("leader").drain(10 * HOUR), reconciler)
        .controller(controller(&pods).name("everywhere").everywhere(), other)
        .when(leads);
    let probes = runner.probes();
    assert_eq!(probes.readiness().to_string(), "not ok\nleader: not started\neverywhere: not started");
    let running = tokio::spawn(runner.run(std::future::pending()));
    tokio::task::yield_now().await;
    assert!(!probes.readiness().ok);
    pods.list(&[("a", 1), ("b", 1)], 1);
    assert_eq!(everywhere.some(2).await, ["a@1", "b@1"]);
    heard.nothing().await;
    assert_eq!(probes.readiness().to_string(), "ok\nleader: on standby: another one leads");
    lead.send(true).unwrap();
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(probes.readiness().to_string(), "ok");
    let begun = Instant::now();
    lead.send(false).unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error, RunError::LeadershipLost { controller: "leader".to_owned() });
    assert!(error.to_string().contains("leadership lost"));
    assert_eq!(begun.elapsed(), Duration::ZERO, "what is busy is dropped at once");
    assert!(ends.recv().await.is_none());
    assert_eq!(probes.liveness().to_string(), "not ok\nleader: stopped\neverywhere: stopped");
}

#[tokio::test(start_paused = true)]
async fn leadership_that_is_lost_while_it_ends_drops_what_is_busy_at_once() {
    let mut pods = Hand::new(Scope::All);
    let (_go, may) = watch::channel(false);
    let (reconciler, mut heard, mut ends) = patient(may);
    let (lead, leads) = watch::channel(true);
    let runner =
        Runner::new(&factory()).controller(controller(&pods).drain(10 * HOUR), reconciler).when(leads);
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = tokio::spawn(runner.run(async { drop(stopped.await) }));
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    stop.send(()).unwrap();
    assert!(timeout(A_WHILE, &mut running).await.is_err(), "what is busy may finish");
    let begun = Instant::now();
    lead.send(false).unwrap();
    let report = running.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(report.busy().collect::<Vec<_>>(), ["pod d/a"]);
    assert!(ends.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn on_standby_what_comes_and_goes_leaves_nothing_in_the_queue_and_what_there_is_comes_at_takeover() {
    let mut pods = Hand::new(Scope::All);
    let (lead, leads) = watch::channel(false);
    let (engine, external) = controller(&pods).build();
    let (reconciler, mut heard) = done();
    let gate = Some(leads.into());
    let running =
        tokio::spawn(Arc::clone(&engine).run::<Value, _>(external, reconciler, std::future::pending(), gate));
    pods.list(&[("gone", 1), ("kept", 1), ("new", 1)], 1);
    for version in (2..20_002).step_by(2) {
        let name = format!("churn-{version}");
        pods.put(&name, version);
        pods.remove(&name, version + 1);
        tokio::task::yield_now().await;
    }
    pods.remove("gone", 30_000);
    pods.put("new", 30_001);
    heard.nothing().await;
    assert_eq!(engine.queue.len(), 0);
    lead.send(true).unwrap();
    assert_eq!(heard.some(2).await, ["kept@1", "new@30001"]);
    heard.nothing().await;
    pods.put("kept", 30_002);
    assert_eq!(heard.next().await, "kept@30002");
    pods.remove("new", 30_003);
    assert_eq!(heard.next().await, "new");
    lead.send(false).unwrap();
    running.await.unwrap().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn while_a_required_source_is_waited_for_nothing_is_queued_and_nothing_is_lost() {
    let (mut pods, mut late) = (Hand::new(Scope::All), Hand::new(Scope::All));
    // So few that the source falls behind, too.
    let controller = controller(&pods).capacity(3).owns_informer(&late.informer());
    let (engine, external) = controller.build();
    let (reconciler, mut heard) = done();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let running = tokio::spawn(Arc::clone(&engine).run::<Value, _>(external, reconciler, shutdown, None));
    pods.list(&[("a", 1), ("b", 1)], 1);
    for version in 2..1000 {
        let name = format!("churn-{version}");
        pods.put(&name, version);
        if version % 7 == 0 {
            tokio::task::yield_now().await;
        }
        pods.remove(&name, version);
    }
    heard.nothing().await;
    assert_eq!(engine.queue.len(), 0);
    // Just when it opens, and after.
    late.list(&[], 1);
    pods.put("b", 2000);
    tokio::task::yield_now().await;
    pods.put("c", 2001);
    let mut left = std::collections::BTreeSet::from(["a@1", "b@2000", "c@2001"].map(str::to_owned));
    while !left.is_empty() {
        left.remove(&heard.next().await);
    }
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn promise_19_after_a_freeze_no_step_of_a_reconcile_is_made_whoever_has_its_turn_first() {
    let mut pods = Hand::new(Scope::All);
    let (go, may) = watch::channel(false);
    let (reconciler, mut heard, mut ends) = patient(may);
    let (leadership, _nothing_more) = crate::leader::leads_until(Instant::now() + Duration::from_secs(10));
    let runner = Runner::new(&factory()).controller(controller(&pods), reconciler).when(&leadership);
    let running = tokio::spawn(runner.run(std::future::pending()));
    pods.list(&[("a", 1), ("b", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    // The reconcile is the first to have its turn after the freeze, and could go on.
    go.send(true).unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::LeadershipLost { .. }), "{error}");
    assert!(ends.recv().await.is_none(), "no step is made");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_lost_leadership_takes_no_other_key_and_counts_no_time() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let (_go, may) = watch::channel(false);
    let (reconciler, mut heard, _ends) = patient(may);
    let (leadership, _nothing_more) = crate::leader::leads_until(Instant::now() + Duration::from_secs(10));
    let mut gate = crate::runner::Gate::from(&leadership);
    gate.opened().await.unwrap();
    let (engine, _) = controller(&pods).name("web").metrics(&metrics).build();
    pods.list(&[("a", 1), ("b", 1), ("c", 1)], 1);
    ["a", "b", "c"].iter().for_each(|name| engine.queue.add(Request::new("d", name)));
    let worker = worker::Worker {
        engine: Arc::clone(&engine),
        informer: pods.informer(),
        reconciler: Arc::new(reconciler),
        number: 0,
        gate: Some(gate),
        hold: crate::controller::writes::channel().0,
    };
    // Nobody tells it to stop.
    let (_stop, stopped) = watch::channel(false);
    let working = tokio::spawn(worker.run(stopped));
    assert_eq!(heard.next().await, "a@1");
    timeout(AGES, working).await.expect("it ends").unwrap();
    assert!(heard.0.recv().await.is_none(), "no other key is taken");
    assert_eq!(engine.queue.len(), 2);
    has(&metrics, "controller_runtime_reconcile_time_seconds_count{controller=\"web\"} 0");
}

#[tokio::test(start_paused = true)]
async fn leadership_that_is_lost_is_left_to_others_while_those_that_do_not_need_it_are_busy() {
    let mut pods = Hand::new(Scope::All);
    let (_go, may) = watch::channel(false);
    let ((one, mut heard, _), (two, mut also, _)) = (patient(may.clone()), patient(may));
    let (leadership, mut teller) = crate::leader::leads_until(Instant::now() + Duration::from_secs(10));
    let runner = Runner::new(&factory())
        .controller(controller(&pods).name("leads").drain(10 * HOUR), one)
        .controller(controller(&pods).name("everywhere").everywhere().drain(HOUR), two)
        .when(&leadership);
    let mut running = tokio::spawn(runner.run(std::future::pending()));
    pods.list(&[("a", 1)], 1);
    assert_eq!((heard.next().await, also.next().await), ("a@1".to_owned(), "a@1".to_owned()));
    let begun = Instant::now();
    // Lost, and won again at once.
    teller.leads(begun + HOUR, 2);
    timeout(AGES, teller.end()).await.expect("the candidacy is to end").unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(timeout(Duration::from_secs(60), &mut running).await.is_err(), "the other one is busy");
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::LeadershipLost { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_gate_opens_for_a_new_term_though_nobody_told_that_the_last_one_was_over() {
    let (leadership, teller) = crate::leader::leads_until(Instant::now() + Duration::from_secs(10));
    // By the clock it is over; what is watched says that it leads, before and after.
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(*leadership.changes().borrow());
    let mut gate = crate::runner::Gate::from(&leadership);
    {
        let mut opened = std::pin::pin!(gate.opened());
        assert!(timeout(HOUR, &mut opened).await.is_err(), "it does not lead");
        teller.leads(Instant::now() + HOUR, 2);
        assert_eq!(timeout(HOUR, opened).await, Ok(Ok(())));
    }
    assert_eq!(gate.guard(async { 1 }).await, Ok(1));
    teller.leads(Instant::now() + HOUR, 3);
    assert_eq!(timeout(HOUR, gate.closed()).await, Ok(()));
    assert!(gate.guard(async { 1 }).await.is_err(), "it opened for another term");
}

#[tokio::test(start_paused = true)]
async fn leadership_whose_keeper_is_gone_is_lost() {
    for leading in [false, true] {
        let mut pods = Hand::new(Scope::All);
        let (lead, leads) = watch::channel(leading);
        let (reconciler, _heard) = done();
        let runner = Runner::new(&factory()).controller(controller(&pods), reconciler).when(leads);
        let running = tokio::spawn(runner.run(std::future::pending()));
        pods.list(&[], 1);
        tokio::task::yield_now().await;
        drop(lead);
        let error = running.await.unwrap().unwrap_err();
        assert!(matches!(error, RunError::LeadershipLost { .. }), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_controllers_end_together() {
    let (mut pods, mut others) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let (_go, may) = watch::channel(false);
    let ((one, mut heard, _ends), (two, mut also)) = (patient(may), done());
    let drain = Duration::from_secs(3);
    let runner = Runner::new(&factory())
        .controller(controller(&others).name("two"), two)
        .controller(controller(&pods).name("one").drain(drain), one);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(runner.run(async { drop(stopped.await) }));
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    others.list(&[("b", 1)], 1);
    assert_eq!(also.next().await, "b@1");
    stop.send(()).unwrap();
    let report = running.await.unwrap().unwrap();
    assert_eq!(report.busy().collect::<Vec<_>>(), ["one d/a"]);
    assert_eq!(report.controllers.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_fails_ends_the_others_too() {
    let (mut pods, never) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let ((one, mut heard), (two, _also)) = (done(), done());
    let runner = Runner::new(&factory())
        .controller(controller(&pods).name("one"), one)
        .controller(controller(&never).name("two").sync_deadline(HOUR), two);
    let probes = runner.probes();
    let running = tokio::spawn(runner.run(std::future::pending()));
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(probes.readiness().to_string(), "not ok\ntwo: pods (all): not started");
    assert!(probes.liveness().ok);
    let error = running.await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("controller \"two\" cannot start"), "{error}");
    assert!(heard.0.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_refused() {
    let pods = Hand::new(Scope::All);
    let ((one, _), (two, _)) = (done(), done());
    let runner =
        Runner::new(&factory()).controller(controller(&pods), one).controller(controller(&pods), two);
    let error = runner.run(std::future::pending()).await.unwrap_err();
    assert_eq!(error.to_string(), "two controllers have the name \"pod\": give one of them another name");
}

#[tokio::test(start_paused = true)]
async fn a_runner_of_nothing_runs_until_it_is_asked_to_end() {
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(Runner::new(&factory()).run(async { drop(stopped.await) }));
    assert!(timeout(HOUR, async { running.is_finished() }).await.is_ok_and(|finished| !finished));
    stop.send(()).unwrap();
    assert_eq!(running.await.unwrap().unwrap().controllers, []);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_blocks_its_thread_is_a_reason_to_restart() {
    let pods = Hand::new(Scope::All);
    let (engine, _) = controller(&pods).timeout(HOUR).build();
    let busy = engine::Busy { request: Request::new("d", "a"), since: Instant::now() };
    engine.lock_busy().insert(0, busy);
    tokio::time::advance(HOUR).await;
    assert!(engine.broken().is_empty(), "it is about to be dropped");
    tokio::time::advance(HOUR).await;
    assert_eq!(engine.broken(), ["the reconcile of d/a blocks its thread for 7200s"]);
}
