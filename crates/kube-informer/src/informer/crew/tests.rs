use std::collections::HashSet;
use std::sync::mpsc;

use tokio::task::{Id, try_id};

use super::super::mailbox::Delivery;
use super::*;

const SOON: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(3600);

fn mailbox(name: &str) -> Arc<Mailbox> {
    Arc::new(Mailbox::new(Arc::from(name), Delivery::default()))
}

/// What a handler does whenever it is told to.
fn add(crew: &Crew, name: &str, mut act: impl FnMut() + Send + 'static) -> (Arc<Member>, Bell) {
    let (ring, mut rings) = tokio::sync::mpsc::unbounded_channel::<()>();
    let run = async move {
        while rings.recv().await.is_some() {
            act();
        }
    };
    (crew.add(mailbox(name), run), ring)
}

type Bell = tokio::sync::mpsc::UnboundedSender<()>;

async fn is_empty(crew: &Crew) {
    while crew.0.lock().is_driven || crew.0.lock().watcher.is_some() {
        tokio::task::yield_now().await;
    }
    assert!(crew.0.lock().members.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_share_a_task_and_each_is_told_everything() {
    let crew = Crew::within(Limits { slow: LONG, stuck: LONG }, Handle::current());
    let (told, hear) = mpsc::channel::<(usize, Option<Id>)>();
    let one = |number| {
        let told = told.clone();
        add(&crew, "one", move || told.send((number, try_id())).unwrap()).1
    };
    let bells: Vec<Bell> = (0..10).map(one).collect();
    let mut tasks = HashSet::new();
    for _ in 0..100 {
        bells.iter().for_each(|bell| bell.send(()).unwrap());
        let heard: Vec<_> = hear.iter().take(bells.len()).collect();
        assert_eq!(heard.iter().map(|(number, _)| number).collect::<HashSet<_>>().len(), bells.len());
        tasks.extend(heard.into_iter().map(|(_, task)| task));
    }
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    drop(bells);
    is_empty(&crew).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn promise_10_a_handler_that_blocks_its_thread_holds_up_no_other() {
    let crew = Crew::new(Handle::current());
    let (go, gate) = mpsc::channel::<()>();
    let (told, hear) = mpsc::channel();
    let (blocked, blocks) = add(&crew, "blocks", move || gate.recv().unwrap());
    let others: Vec<_> = (0..3)
        .map(|_| {
            let told = told.clone();
            add(&crew, "other", move || told.send(()).unwrap())
        })
        .collect();
    // All are ready before it is driven, and nobody is told anything after that.
    let bells: Vec<_> =
        std::iter::once(&blocks).chain(others.iter().map(|(_, bell)| bell)).cloned().collect();
    let (_, first) = add(&crew, "first", move || bells.iter().for_each(|bell| bell.send(()).unwrap()));
    first.send(()).unwrap();
    for _ in &others {
        hear.recv_timeout(SOON).unwrap();
    }
    assert!(blocked.run.try_lock().is_err(), "it is in its turn");
    go.send(()).unwrap();
    drop((blocks, others, first));
    is_empty(&crew).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_long_has_tasks_of_its_own_until_it_does_not() {
    // Whether it took long is said by hand.
    let crew = Crew::within(Limits { slow: LONG, stuck: LONG }, Handle::current());
    let (told, hear) = mpsc::channel();
    let (member, bell) = add(&crew, "long", move || told.send(try_id()).unwrap());
    let driver = async || {
        bell.send(()).unwrap();
        let task = hear.recv_timeout(SOON).unwrap();
        // What comes while its turn lasts is part of it.
        while member.run.try_lock().is_err() {
            tokio::task::yield_now().await;
        }
        task
    };
    let shared = driver().await;
    (0..20).for_each(|_| member.turns.took(LONG * 10));
    assert_ne!(driver().await, shared);
    (0..200).for_each(|_| member.turns.took(Duration::ZERO));
    assert!(!member.is_slow());
    assert_eq!(driver().await, shared);
    drop(bell);
    is_empty(&crew).await;
}

#[test]
fn promise_12_handlers_are_dropped_with_their_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let crew = Crew::new(runtime.handle().clone());
    let (kept, is_kept) = mpsc::channel::<()>();
    for _ in 0..2 {
        let kept = kept.clone();
        crew.add(mailbox("kept"), async move {
            std::future::pending::<()>().await;
            drop(kept);
        });
    }
    drop((kept, runtime));
    assert_eq!(is_kept.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
    // Whoever comes later is dropped at once.
    let (kept, is_kept) = mpsc::channel::<()>();
    crew.add(mailbox("late"), async move {
        std::future::pending::<()>().await;
        drop(kept);
    });
    assert_eq!(is_kept.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
    assert!(crew.0.lock().ready.is_empty());
}

/// What wakes one that yields is with the thread that the other one blocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn promise_10_one_that_has_yielded_goes_on_where_another_blocks() {
    let crew = Crew::new(Handle::current());
    let (go, gate) = mpsc::channel::<()>();
    let (told, hear) = mpsc::channel();
    let (_, blocks) = add(&crew, "blocks", move || gate.recv().unwrap());
    let bell = blocks.clone();
    crew.add(mailbox("yields"), async move {
        bell.send(()).unwrap();
        tokio::task::yield_now().await;
        told.send(()).unwrap();
    });
    hear.recv_timeout(SOON).unwrap();
    go.send(()).unwrap();
    drop(blocks);
    is_empty(&crew).await;
}

#[tokio::test]
async fn one_that_wakes_itself_by_hand_lets_other_tasks_have_their_turn() {
    let crew = Crew::within(Limits { slow: LONG, stuck: LONG }, Handle::current());
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    let restless = std::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        if seen.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    });
    crew.add(mailbox("restless"), restless);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    over.store(true, Ordering::SeqCst);
    is_empty(&crew).await;
}

#[tokio::test]
async fn one_that_never_waits_lets_other_tasks_have_their_turn() {
    let crew = Crew::new(Handle::current());
    let busy = async {
        loop {
            tokio::task::coop::consume_budget().await;
        }
    };
    let member = crew.add(mailbox("busy"), busy);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    member.end();
    is_empty(&crew).await;
}
