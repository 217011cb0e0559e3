//! Candidates in one process, with connections of their own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::select_all;
use kube_client::Client;
use kube_informer::leader::{Ended, LeaderElection, Leadership, Metrics};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{Place, SOON, on_both, soon, through};

on_both! {
    promise_19_one_of_three_leads,
    promise_19_a_clean_end_hands_over_at_once,
    promise_19_a_leader_that_is_cut_off_stops_before_another_one_begins,
    promise_19_a_lease_that_cannot_be_written_makes_no_leader,
    a_lease_of_another_s_is_changed_only_where_it_must_be,
    a_dropped_candidate_ends_and_keeps_its_lease,
}

const LEASE: &str = "coordination.k8s.io/v1/leases/the-lease";

/// A candidate with short times.
fn candidate(client: Client, place: &Place, identity: &str) -> LeaderElection {
    LeaderElection::new(client, &place.namespace, "the-lease")
        .identity(identity)
        .lease(Duration::from_secs(4))
        .renew(Duration::from_secs(3))
        .retry(Duration::from_millis(400))
}

/// One whose lease does not lapse before the test has failed, however busy the machine is.
fn lasting(client: Client, place: &Place, identity: &str) -> LeaderElection {
    candidate(client, place, identity)
        .lease(Duration::from_secs(600))
        .renew(Duration::from_secs(500))
        .retry(Duration::from_millis(100))
}

/// When the first and the last work of each term was done.
type Terms = Arc<Mutex<Vec<(Instant, Instant)>>>;

/// Does work while a candidate leads, and writes down when.
struct Worker {
    leadership: Leadership,
    terms: Terms,
    task: tokio::task::JoinHandle<()>,
}

async fn lead(leadership: Leadership, terms: Terms) {
    loop {
        leadership.acquired().await;
        let _ = leadership.guard(work(&leadership, &terms)).await;
    }
}

async fn work(leadership: &Leadership, terms: &Terms) {
    let mut place = None;
    loop {
        let now = Instant::now();
        if !leadership.is_leader() {
            return;
        }
        {
            let mut terms = terms.lock().unwrap();
            let place = *place.get_or_insert(terms.len());
            match terms.get_mut(place) {
                Some(term) => term.1 = now,
                None => terms.push((now, now)),
            }
        }
        // tidy: allow-sleep this is the work
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

impl Worker {
    fn new(leadership: Leadership) -> Self {
        let terms = Terms::default();
        let task = tokio::spawn(lead(leadership.clone(), Arc::clone(&terms)));
        Self { leadership, terms, task }
    }

    fn terms(&self) -> Vec<(Instant, Instant)> {
        self.terms.lock().unwrap().clone()
    }

    /// Waits for a piece of work that is done from now on.
    async fn works(&self) {
        let begun = Instant::now();
        let what = format!("{} works", self.leadership.identity());
        let since = async || self.terms().last().is_some_and(|term| term.1 > begun).then_some(());
        eventually(&what, SOON, since).await;
    }

    async fn end(&self) -> Ended {
        self.task.abort();
        self.leadership.shutdown(SOON).await
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// No term of one has a moment in common with a term of another.
fn assert_apart(workers: &[&Worker]) {
    let mut all: Vec<_> = workers
        .iter()
        .flat_map(|worker| worker.terms().into_iter().map(move |term| (term, worker)))
        .collect();
    all.sort_by_key(|(term, _)| term.0);
    for pair in all.windows(2) {
        let [(one, first), (two, second)] = pair else { continue };
        let who = (first.leadership.identity(), second.leadership.identity());
        assert!(one.1 < two.0, "{who:?}: {:?} of overlap", one.1 - two.0);
    }
}

async fn promise_19_one_of_three_leads(place: Place) -> Result<()> {
    let mut workers = Vec::new();
    for identity in ["one", "two", "three"] {
        workers.push(Worker::new(lasting(place.client().await?, &place, identity).start()?));
    }
    let (_, first, _) =
        soon("one leads", select_all(workers.iter().map(|worker| Box::pin(worker.works())))).await;
    let leader = workers[first].leadership.identity().to_owned();
    // All know who it is, and nobody else is.
    for worker in &workers {
        let known = async || (worker.leadership.leader().as_deref() == Some(&leader)).then_some(());
        eventually("all know who leads", SOON, known).await;
    }
    assert_eq!(workers.iter().filter(|worker| worker.leadership.is_leader()).count(), 1);
    let lease = place.get(&place.path(LEASE)).await?;
    assert_eq!(lease["spec"]["holderIdentity"], leader);
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 600);
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
    let renewed = async || {
        let now = place.get(&place.path(LEASE)).await.ok()?;
        assert_eq!(now["spec"]["acquireTime"], lease["spec"]["acquireTime"]);
        (now["spec"]["renewTime"].as_str() > lease["spec"]["renewTime"].as_str()).then_some(())
    };
    eventually("the lease is renewed", SOON, renewed).await;
    for worker in &workers {
        worker.end().await;
    }
    assert_apart(&workers.iter().collect::<Vec<_>>());
    Ok(())
}

async fn promise_19_a_clean_end_hands_over_at_once(place: Place) -> Result<()> {
    let one = Worker::new(lasting(place.client().await?, &place, "one").start()?);
    one.works().await;
    let two = Worker::new(lasting(place.client().await?, &place, "two").start()?);
    let known = async || (two.leadership.leader().as_deref() == Some("one")).then_some(());
    eventually("the second one knows the first one", SOON, known).await;
    let mut changes = one.leadership.changes();
    assert!(*changes.borrow_and_update());
    assert_eq!(one.end().await, Ended::Released);
    assert!(!one.leadership.is_leader() && !*changes.borrow_and_update());
    two.works().await;
    assert_eq!(one.leadership.shutdown(SOON).await, Ended::Released, "it says so to all who ask");
    let spec = place.get(&place.path(LEASE)).await?["spec"].clone();
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("two"), &json!(1)));
    // Who does not lead has nothing to give back, and takes nothing away.
    let three = lasting(place.client().await?, &place, "three").start()?;
    assert_eq!(three.shutdown(SOON).await, Ended::NotHeld);
    assert!(two.leadership.is_leader());
    assert_apart(&[&one, &two]);
    two.end().await;
    Ok(())
}

async fn promise_19_a_leader_that_is_cut_off_stops_before_another_one_begins(place: Place) -> Result<()> {
    let proxy = place.proxy().await?;
    let metrics = Metrics::default();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let election = candidate(through(&proxy).await?, &place, "behind").metrics(&metrics);
    let behind = Worker::new(election.start()?);
    behind.works().await;
    let direct = Worker::new(candidate(place.client().await?, &place, "direct").start()?);
    // Nothing gets through any more, and no connection is closed.
    let hole = proxy.on_all(Match::any()).stall();
    soon("it stops", behind.leadership.lost()).await;
    assert!(!behind.leadership.is_leader());
    direct.works().await;
    assert_apart(&[&behind, &direct]);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry)?;
    assert!(page.contains("leader_election_master_status{name=\"the-lease\"} 0\n"), "{page}");
    // It comes back, and what it sent long ago with it.
    hole.remove();
    let known = async || (behind.leadership.leader().as_deref() == Some("direct")).then_some(());
    eventually("it knows who leads", SOON, known).await;
    direct.works().await;
    direct.end().await;
    behind.works().await;
    assert_apart(&[&behind, &direct]);
    behind.end().await;
    Ok(())
}

async fn promise_19_a_lease_that_cannot_be_written_makes_no_leader(place: Place) -> Result<()> {
    let proxy = place.proxy().await?;
    for answer in [Answer::forbidden(), Answer::internal_error(), Answer::html(503)] {
        let fault = proxy.on(Match::write()).answer(answer);
        let leadership = candidate(through(&proxy).await?, &place, "hopeful").start()?;
        fault.wait_applied(2).await;
        assert!(!leadership.is_leader() && leadership.leader().is_none());
        fault.remove();
        soon("it leads as soon as it can", leadership.acquired()).await;
        // The same while it leads: it stops, and does not take its word for it.
        let fault = proxy.on(Match::write()).answer(Answer::internal_error());
        soon("it stops", leadership.lost()).await;
        assert!(!*leadership.changes().borrow() || !leadership.is_leader());
        fault.remove();
        soon("it leads again", leadership.acquired()).await;
        assert_eq!(leadership.shutdown(SOON).await, Ended::Released);
    }
    // Nobody is there at all.
    proxy.go_down().await;
    let leadership = candidate(through(&proxy).await?, &place, "alone").start()?;
    let ended = leadership.shutdown(Duration::from_millis(300)).await;
    assert!(matches!(&ended, Ended::Failed(why) if !why.is_empty()), "{ended:?}");
    Ok(())
}

async fn a_lease_of_another_s_is_changed_only_where_it_must_be(place: Place) -> Result<()> {
    let lease = json!({
        "metadata": { "name": "the-lease", "labels": { "kept": "yes" }, "annotations": { "kept": "yes" } },
        "spec": { "holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 7,
            "acquireTime": "2000-01-01T00:00:00.000000Z", "renewTime": "2100-01-01T00:00:00.000000Z" },
    });
    place.post(&place.path("coordination.k8s.io/v1/leases"), &lease).await?;
    let leadership = lasting(place.client().await?, &place, "heir").start()?;
    soon("it leads", leadership.acquired()).await;
    let label = json!({ "metadata": { "labels": { "more": "yes" } } });
    place.merge(&place.path(LEASE), &label).await?;
    let begun = place.get(&place.path(LEASE)).await?;
    let renewed = async || {
        let now = place.get(&place.path(LEASE)).await.ok()?;
        (now["spec"]["renewTime"] != begun["spec"]["renewTime"]).then_some(now)
    };
    let now = eventually("the lease is renewed", SOON, renewed).await;
    assert_eq!(now["metadata"]["labels"], json!({ "kept": "yes", "more": "yes" }));
    assert_eq!(now["metadata"]["annotations"]["kept"], "yes");
    assert_eq!(
        (&now["spec"]["holderIdentity"], &now["spec"]["leaseTransitions"]),
        (&json!("heir"), &json!(8))
    );
    assert!(leadership.is_leader());
    // Deleted by somebody: its holder makes it again.
    place.delete(&place.path(LEASE)).await?;
    eventually("it is there again", SOON, async || place.get(&place.path(LEASE)).await.ok()).await;
    leadership.shutdown(SOON).await;
    Ok(())
}

async fn a_dropped_candidate_ends_and_keeps_its_lease(place: Place) -> Result<()> {
    let leadership = candidate(place.client().await?, &place, "dropped").start()?;
    soon("it leads", leadership.acquired()).await;
    let mut changes = leadership.changes();
    drop(leadership);
    soon("it leads no more", changes.wait_for(|leads| !leads)).await?;
    while soon("the task ends", changes.changed()).await.is_ok() {}
    assert_eq!(place.get(&place.path(LEASE)).await?["spec"]["holderIdentity"], "dropped");
    let kept = candidate(place.client().await?, &place, "kept").release(false).start()?;
    soon("it lapses", kept.acquired()).await;
    assert_eq!(kept.shutdown(SOON).await, Ended::Kept);
    assert_eq!(place.get(&place.path(LEASE)).await?["spec"]["holderIdentity"], "kept");
    Ok(())
}
