use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::mpsc;
use std::task::Poll;

use kube_informer_testbed::eventually::eventually;
use tokio::task::coop::consume_budget;

use super::super::seat::tests::Task;
use super::*;

const SOON: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(3600);
const PATIENT: Limits = Limits { slice: LONG, turns: usize::MAX, stuck: LONG, idle: u32::MAX };

/// Tasks that wait, and say with which task they are polled.
fn waiting(count: usize, said: &mpsc::Sender<(usize, Option<tokio::task::Id>)>) -> Vec<Task> {
    let one = |number| {
        let said = said.clone();
        let mut task = Task::new(poll_fn(move |_| {
            let _ = said.send((number, tokio::task::try_id()));
            Poll::Pending
        }));
        assert!(task.poll().is_pending());
        task
    };
    (0..count).map(one).collect()
}

fn seats(tasks: &[Task]) -> Vec<Arc<Seat>> {
    tasks.iter().map(Task::seat).collect()
}

fn wakes(tasks: &[Task]) -> usize {
    tasks.iter().map(|task| task.woken.get()).sum()
}

#[tokio::test]
async fn ten_are_called_by_one_task_in_their_order_and_their_own_tasks_sleep_on() {
    let relay = Relay::within(PATIENT, Handle::current());
    let (said, hear) = mpsc::channel();
    let tasks = waiting(10, &said);
    assert_eq!(hear.try_iter().count(), 10);
    for _ in 0..3 {
        relay.wake(seats(&tasks));
        // They stand there already.
        relay.wake(seats(&tasks));
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
        yield_now().await;
        let (numbers, by): (Vec<_>, BTreeSet<_>) = hear.try_iter().unzip();
        assert_eq!(numbers, Vec::from_iter(0..10));
        assert_eq!(by.len(), 1);
        assert_eq!(wakes(&tasks), 0);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    }
}

#[tokio::test]
async fn a_single_one_is_called_by_its_own_task_and_nobody_watches() {
    let relay = Relay::within(PATIENT, Handle::current());
    let tasks = waiting(1, &mpsc::channel().0);
    relay.wake(seats(&tasks));
    assert_eq!((wakes(&tasks), Handle::current().metrics().num_alive_tasks()), (1, 0));
    assert!(!relay.shared.lock().is_watched);
}

#[tokio::test]
async fn one_that_leads_lets_other_tasks_have_their_turn() {
    for limits in [Limits { turns: 2, ..PATIENT }, Limits { slice: Duration::ZERO, ..PATIENT }] {
        let relay = Relay::within(limits, Handle::current());
        let (said, hear) = mpsc::channel();
        let tasks = waiting(5, &said);
        hear.try_iter().for_each(drop);
        relay.wake(seats(&tasks));
        let mut at_once = 0;
        while hear.try_iter().count() > 0 || at_once == 0 {
            at_once += 1;
            yield_now().await;
            assert!(at_once < 20);
        }
        assert!(at_once > 2, "{limits:?}");
        assert_eq!(wakes(&tasks), 0);
    }
}

#[tokio::test]
async fn one_that_has_more_to_do_than_a_task_may_do_at_a_time_goes_on_in_its_own_and_nobody_else() {
    let relay = Relay::within(PATIENT, Handle::current());
    let (said, hear) = mpsc::channel();
    let tasks = [1000, 2, 2].map(|events| {
        let (said, mut is_first) = (said.clone(), true);
        let mut task = Task::new(async move {
            poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
            for _ in 0..events {
                consume_budget().await;
                said.send(events).unwrap();
            }
            std::future::pending::<()>().await;
        });
        assert!(task.poll().is_pending());
        task
    });
    relay.wake(seats(&tasks));
    let metrics = Handle::current().metrics();
    eventually("nobody leads", SOON, async || (metrics.num_alive_tasks() == 0).then_some(())).await;
    let (few, many): (Vec<_>, Vec<_>) = hear.try_iter().partition(|events| *events == 2);
    assert!(few.len() == 4 && many.len() < 1000, "{} {}", few.len(), many.len());
    assert_eq!(tasks.map(|task| task.woken.get()), [1, 0, 0]);
}

#[tokio::test]
async fn those_in_a_line_that_does_not_move_are_called_by_their_own_tasks() {
    let relay = Relay::within(Limits { stuck: Duration::from_millis(1), ..PATIENT }, Handle::current());
    let (said, hear) = mpsc::channel();
    let mut tasks = waiting(3, &said);
    hear.try_iter().for_each(drop);
    relay.wake(seats(&tasks));
    // The one that leads has no thread: this has it.
    let begun = Instant::now();
    while wakes(&tasks) < 3 {
        assert!(begun.elapsed() < SOON, "nobody sees that they are stuck");
        std::thread::yield_now();
    }
    tasks.iter_mut().for_each(|task| assert!(task.poll().is_pending()));
    assert_eq!(hear.try_iter().count(), 3);
    let metrics = Handle::current().metrics();
    eventually("nobody leads", SOON, async || (metrics.num_alive_tasks() == 0).then_some(())).await;
    assert_eq!(hear.try_iter().count(), 0);
}

#[tokio::test]
async fn one_that_is_woken_during_its_turn_is_called_again_after_the_others_or_by_its_own_task() {
    let relay = Relay::within(PATIENT, Handle::current());
    for is_last in [false, true] {
        let (said, hear) = mpsc::channel();
        let (mut polls, said_too) = (0, said.clone());
        let mut again = Task::new(poll_fn(move |context| {
            polls += 1;
            if polls == 2 {
                context.waker().wake_by_ref();
            }
            let _ = said_too.send((9, None));
            Poll::Pending
        }));
        assert!(again.poll().is_pending());
        let others = waiting(2, &said);
        hear.try_iter().for_each(drop);
        let mut line = seats(&others);
        line.insert(if is_last { 2 } else { 0 }, again.seat());
        relay.wake(line);
        yield_now().await;
        let called: Vec<_> = hear.try_iter().map(|(number, _)| number).collect();
        let (expected, woken): (&[usize], _) = if is_last { (&[0, 1, 9], 1) } else { (&[9, 0, 1, 9], 0) };
        assert_eq!((called.as_slice(), again.woken.get()), (expected, woken));
    }
}

#[tokio::test]
async fn one_that_panics_does_not_keep_others_from_being_called() {
    let relay = Relay::within(PATIENT, Handle::current());
    let mut is_first = true;
    let mut nervous = Task::new(poll_fn(move |_| {
        assert!(std::mem::take(&mut is_first), "not the first time");
        Poll::Pending
    }));
    assert!(nervous.poll().is_pending());
    let (said, hear) = mpsc::channel();
    let others = waiting(2, &said);
    hear.try_iter().for_each(drop);
    for _ in 0..2 {
        relay.wake([vec![nervous.seat()], seats(&others)].concat());
        yield_now().await;
        assert_eq!(hear.try_iter().count(), 2);
    }
    assert!(nervous.poll().is_ready());
}

#[tokio::test]
async fn when_it_is_over_nobody_stands_in_a_line_and_no_thread_is_left() {
    let relay = Relay::within(PATIENT, Handle::current());
    let tasks = waiting(3, &mpsc::channel().0);
    relay.wake(seats(&tasks));
    assert!(relay.shared.lock().is_watched);
    relay.close();
    assert_eq!((wakes(&tasks), relay.shared.lock().waiting.len()), (3, 0));
    let shared = Arc::downgrade(&relay.shared);
    drop(relay);
    eventually("nobody has it", SOON, async || shared.upgrade().is_none().then_some(())).await;
}

#[tokio::test]
async fn nobody_watches_where_there_are_no_lines_for_a_while_and_again_where_there_are() {
    // Long enough that those in the line have had their turn by then.
    let limits = Limits { stuck: Duration::from_millis(200), idle: 1, ..PATIENT };
    let relay = Relay::within(limits, Handle::current());
    let (said, hear) = mpsc::channel();
    let mut tasks = waiting(3, &said);
    for _ in 0..3 {
        hear.try_iter().for_each(drop);
        relay.wake(seats(&tasks));
        assert!(relay.shared.lock().is_watched);
        yield_now().await;
        let gone = async || (!relay.shared.lock().is_watched).then_some(());
        eventually("nobody watches", SOON, gone).await;
        // Whoever was not called in the line has been called by then.
        for task in &mut tasks {
            let _ = task.poll();
        }
    }
}
