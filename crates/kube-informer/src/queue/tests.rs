use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

/// Polls once.
fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_batch_is_everything_that_there_is_in_order() {
    let (sender, mut receiver) = queue(100);
    for item in 0..5 {
        assert_eq!(poll(sender.send(item, 10)), Poll::Ready(Ok(())));
    }
    assert_eq!((sender.gauge().length(), sender.gauge().bytes()), (5, 50));
    assert_eq!(poll(receiver.batch(3)), Poll::Ready(vec![0, 1, 2]));
    assert_eq!(poll(receiver.batch(100)), Poll::Ready(vec![3, 4]));
    assert_eq!((sender.gauge().length(), sender.gauge().bytes()), (0, 0));
    assert!(poll(receiver.batch(100)).is_pending());
}

#[test]
fn a_full_queue_makes_senders_wait_in_their_order() {
    let (sender, mut receiver) = queue(100);
    assert!(poll(sender.send("a", 90)).is_ready());
    let (mut heavy, mut light) = (Box::pin(sender.send("heavy", 50)), Box::pin(sender.send("light", 5)));
    assert!(poll(heavy.as_mut()).is_pending());
    // There would be room for it, but it came later.
    assert!(poll(light.as_mut()).is_pending());
    assert_eq!(poll(receiver.batch(9)), Poll::Ready(vec!["a"]));
    assert!(poll(heavy).is_ready() && poll(light).is_ready());
    assert_eq!(poll(receiver.batch(9)), Poll::Ready(vec!["heavy", "light"]));
}

#[test]
fn what_is_heavier_than_the_queue_goes_alone() {
    let (sender, mut receiver) = queue(100);
    assert!(poll(sender.send("a", 1)).is_ready());
    let mut huge = Box::pin(sender.send("huge", 1 << 40));
    assert!(poll(huge.as_mut()).is_pending());
    assert!(poll(receiver.batch(9)).is_ready());
    assert!(poll(huge).is_ready());
    assert!(poll(sender.send("b", 1)).is_pending());
    assert_eq!(poll(receiver.batch(9)), Poll::Ready(vec!["huge"]));
}

#[test]
fn the_rest_is_taken_when_the_senders_are_gone_and_senders_hear_when_the_receiver_is() {
    let (sender, mut receiver) = queue(100);
    assert!(poll(sender.clone().send(1, 1)).is_ready());
    drop(sender);
    assert_eq!(poll(receiver.batch(9)), Poll::Ready(vec![1]));
    assert_eq!(poll(receiver.batch(9)), Poll::Ready(vec![]));

    let (sender, receiver) = queue(10);
    assert!(poll(sender.send(1, 10)).is_ready());
    let mut waiting = Box::pin(sender.send(2, 10));
    assert!(poll(waiting.as_mut()).is_pending());
    drop(receiver);
    assert_eq!(poll(waiting), Poll::Ready(Err(Closed)));
    assert_eq!(poll(sender.send(3, 0)), Poll::Ready(Err(Closed)));
}

proptest! {
    /// Against a list of what was put in: each item once, in order, and never more bytes than the limit.
    #[test]
    fn it_is_a_bounded_fifo(steps in proptest::collection::vec((0_usize..40, 0_usize..4), 1..200)) {
        let (sender, mut receiver) = queue(100);
        let (mut model, mut held) = (VecDeque::new(), 0);
        for (number, (bytes, take)) in steps.into_iter().enumerate() {
            let sent = poll(sender.send(number, bytes)).is_ready();
            prop_assert_eq!(sent, held + bytes <= 100);
            if sent {
                model.push_back((number, bytes));
                held += bytes;
            }
            if take > 0 {
                let batch = match poll(receiver.batch(take)) {
                    Poll::Ready(batch) => batch,
                    Poll::Pending => Vec::new(),
                };
                let expected: Vec<_> = model.drain(..take.min(model.len())).collect();
                held -= expected.iter().map(|(_, bytes)| bytes).sum::<usize>();
                prop_assert_eq!(batch, expected.iter().map(|(number, _)| *number).collect::<Vec<_>>());
            }
            prop_assert_eq!((sender.gauge().length(), sender.gauge().bytes()), (model.len(), held));
        }
    }
}
