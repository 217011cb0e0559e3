use std::future::poll_fn;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;

use super::super::mailbox::Delivery;
use super::*;

mod schedules;

/// Counts how often a task is woken.
#[derive(Default)]
pub(in crate::informer) struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    pub(in crate::informer) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A task that is polled by hand.
pub(in crate::informer) struct Task {
    pub(in crate::informer) keeper: Keeper,
    pub(in crate::informer) done: watch::Receiver<()>,
    pub(in crate::informer) woken: Arc<Count>,
}

impl Task {
    pub(in crate::informer) fn new(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let (running, done) = watch::channel(());
        let mailbox = Arc::new(Mailbox::new("one".into(), Delivery::Latest));
        Self { keeper: take(&mailbox, future, running), done, woken: Arc::default() }
    }

    pub(in crate::informer) fn poll(&mut self) -> Poll<()> {
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(&mut self.keeper).poll(&mut Context::from_waker(&waker))
    }

    pub(in crate::informer) fn seat(&self) -> Arc<Seat> {
        Arc::clone(&self.keeper.seat)
    }
}

/// Says so when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn what_it_waits_for_wakes_its_task_also_where_somebody_else_polled_it() {
    let (said, hear) = mpsc::channel();
    let mut task = Task::new(poll_fn(move |context| {
        said.send(context.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    assert!(task.poll().is_pending());
    hear.recv().unwrap().wake();
    assert_eq!(task.woken.get(), 1);
    assert!(task.poll().is_pending());
    // As one that leads a line does.
    assert!(task.seat().is_ready_now());
    assert_eq!(task.seat().poll(), Turn::Over);
    let last = hear.iter().take(2).last().unwrap();
    assert_eq!(task.woken.get(), 1);
    last.wake_by_ref();
    last.wake();
    assert_eq!(task.woken.get(), 2);
}

#[test]
fn one_that_is_woken_during_its_turn_has_another() {
    let mut turns = 0;
    let mut task = Task::new(poll_fn(move |context| {
        turns += 1;
        context.waker().wake_by_ref();
        if turns < 3 { Poll::Pending } else { Poll::Ready(()) }
    }));
    assert_eq!(task.seat().poll(), Turn::Again);
    assert!(task.poll().is_pending());
    assert_eq!(task.woken.get(), 1);
    assert!(task.poll().is_ready());
}

#[test]
fn where_its_future_ends_with_somebody_else_its_task_ends_and_only_then_it_has_ended() {
    let mut is_first = true;
    let mut task =
        Task::new(poll_fn(
            move |_| {
                if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
            },
        ));
    assert!(task.poll().is_pending());
    assert!(task.seat().is_ready_now());
    assert_eq!(task.seat().poll(), Turn::Over);
    assert_eq!(task.woken.get(), 1);
    assert!(task.poll().is_ready());
    assert!(task.done.has_changed().is_ok());
    drop(task.keeper);
    assert!(task.done.has_changed().is_err());
}

#[test]
fn dropping_its_task_drops_what_is_in_it_wherever_it_stands() {
    for polls in 0..2 {
        let (said, hear) = mpsc::channel();
        let held = Dropped(said);
        let mut task = Task::new(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        (0..polls).for_each(|_| assert!(task.poll().is_pending()));
        // In a line, perhaps.
        let seat = task.seat();
        seat.is_ready_now();
        drop(task.keeper);
        hear.try_recv().unwrap();
        assert_eq!(seat.poll(), Turn::Over);
    }
}

#[test]
fn where_its_task_is_dropped_while_somebody_polls_it_nobody_waits_and_it_is_dropped_after_that() {
    let (said, hear) = mpsc::channel();
    let (entered, is_in) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let (held, running) = (Dropped(said), watch::channel(()));
    let called = running.0.clone();
    let mailbox = Arc::new(Mailbox::new("one".into(), Delivery::Latest));
    let run = poll_fn(move |_| {
        let _all = (&held, &called);
        entered.send(()).unwrap();
        gate.recv().unwrap();
        Poll::<()>::Pending
    });
    let keeper = take(&mailbox, run, running.0);
    let seat = Arc::clone(&keeper.seat);
    let helper = std::thread::spawn(move || seat.poll());
    is_in.recv().unwrap();
    drop(keeper);
    assert!(hear.try_recv().is_err() && running.1.has_changed().is_ok(), "it is being polled");
    go.send(()).unwrap();
    assert_eq!(helper.join().unwrap(), Turn::Over);
    hear.try_recv().unwrap();
    assert!(running.1.has_changed().is_err());
}

#[test]
fn a_panic_that_nobody_caught_ends_it_and_its_task() {
    struct Nervous;
    impl Drop for Nervous {
        fn drop(&mut self) {
            panic!("while it is dropped");
        }
    }
    let nervous = Nervous;
    let mut task = Task::new(poll_fn(move |_| {
        let _held = &nervous;
        panic!("in a poll")
    }));
    assert_eq!(task.seat().poll(), Turn::Over);
    assert!(task.poll().is_ready());
}
