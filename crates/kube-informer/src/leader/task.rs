//! Does what the machine says, and tells what came of it.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::handle::{Board, Ended};
use super::machine::{Action, Event, Machine, Trouble};
use super::store::Store;

pub(super) fn spawn(machine: Machine, store: Store, board: Board, span: tracing::Span) {
    tokio::spawn(run(machine, store, board).instrument(span));
}

async fn run(mut machine: Machine, store: Store, mut board: Board) {
    let mut event = Event::Woken;
    let by = loop {
        let action = machine.step(Instant::now(), Timestamp::now(), event);
        board.show(machine.until(), machine.terms(), machine.holder());
        event = tokio::select! {
            biased;
            by = board.end() => break by,
            event = perform(action, &store) => event,
        };
    };
    machine.abdicate();
    board.show(None, machine.terms(), machine.holder());
    let ended = match by {
        // Nobody is there any more who could say that the work has ended.
        None => Ended::Kept,
        Some(_) if !machine.settings().release => Ended::Kept,
        Some(by) => release(&mut machine, &store, by).await,
    };
    match &ended {
        Ended::Failed(why) => tracing::warn!(why, "the lease was not given back: it lapses"),
        ended => tracing::info!(?ended, "the candidacy has ended"),
    }
    board.show(None, machine.terms(), machine.holder());
    board.ended(ended);
}

async fn perform(action: Action, store: &Store) -> Event {
    // Before the request is sent, whenever that is.
    let sent = Instant::now();
    match action {
        Action::Wait(at) => {
            sleep_until(at).await;
            Event::Woken
        }
        Action::Read { before } => Event::Read(store.read(before).await),
        Action::Create { record, before } => {
            Event::Wrote { sent, result: store.create(&record, before).await }
        }
        Action::Update { record, before } => {
            Event::Wrote { sent, result: store.update(&record, before).await }
        }
    }
}

/// How soon after a failure it is tried again to give the lease back.
const AGAIN: Duration = Duration::from_millis(250);

/// Gives the lease back, if it is ours. It is read first: a write may be on its way whose answer nobody waits for.
async fn release(machine: &mut Machine, store: &Store, by: Instant) -> Ended {
    loop {
        let before = by.min(Instant::now() + machine.settings().request());
        let trouble = match store.read(before).await {
            Ok(found) => match machine.release(found, Instant::now(), Timestamp::now()) {
                None => return Ended::NotHeld,
                Some(record) => match store.update(&record, before).await {
                    Ok(_) => return Ended::Released,
                    Err(trouble) => trouble,
                },
            },
            Err(trouble) => trouble,
        };
        let again = Instant::now() + AGAIN;
        if again >= by {
            return Ended::Failed(match trouble {
                Trouble::Failed(why) => why,
                Trouble::Conflict | Trouble::Missing => "others write to it all the time".to_owned(),
            });
        }
        sleep_until(again).await;
    }
}
