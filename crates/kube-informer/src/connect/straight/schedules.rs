//! The bell in every order that a scheduler thinks of: at each step of its state, it chooses who goes on. A schedule in
//! which the reader waits for ever is a failure, and is printed so that it can be played again.

use std::sync::Mutex;

use shuttle::sync::atomic::AtomicUsize;
use shuttle::{future::block_on, thread};

use super::*;
use crate::sync::in_many_schedules;

/// What comes over a wire, and who is woken by it.
#[derive(Default)]
struct Wire {
    pieces: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Wire {
    fn put(&self) {
        self.pieces.fetch_add(1, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// As sockets do it: whoever is to be woken is known before it is looked.
    fn look(&self, cx: &mut Context<'_>) -> usize {
        *self.waker.lock().unwrap() = Some(cx.waker().clone());
        self.pieces.load(Ordering::SeqCst)
    }
}

/// A connection that hands over what comes, and says so each time.
fn driven(wire: &Arc<Wire>, handed: &Arc<AtomicUsize>) -> Driven {
    let (wire, handed) = (Arc::clone(wire), Arc::clone(handed));
    let line = poll_fn(move |cx| {
        let come = wire.look(cx);
        if handed.swap(come, Ordering::SeqCst) < come {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    });
    let bell = Arc::<Bell>::default();
    let waker = Waker::from(bell.clone());
    Driven { line: Some(Box::pin(line)), bell, waker }
}

const WRITERS: usize = 2;
const PIECES: usize = 2;

#[test]
fn in_no_schedule_is_a_reader_left_asleep_although_something_came() {
    in_many_schedules(|| {
        let (wire, handed) = (Arc::<Wire>::default(), Arc::<AtomicUsize>::default());
        let mut line = driven(&wire, &handed);
        let writers = [(); WRITERS].map(|()| {
            let wire = Arc::clone(&wire);
            thread::spawn(move || (0..PIECES).for_each(|_| wire.put()))
        });
        for wanted in 1..=WRITERS * PIECES {
            let come = |_: &mut Context<'_>| match handed.load(Ordering::SeqCst) {
                come if come < wanted => Poll::Pending,
                _ => Poll::Ready(()),
            };
            block_on(poll_fn(|cx| line.poll(cx, come)));
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}
