//! Says so where one call of a handler does not return for very long.
//!
//! A handler may take its time, and holds up nobody. But one that never returns is told nothing any more, and somebody should know:
//! it is said once, until that call returns. Nothing is noted where a handler is called, so this costs nothing with each event: now
//! and then it is looked who is busy, and has done nothing since the last look.
//!
//! Readers of streams are not meant: nobody calls them. Where asynchronous handlers block all threads of the runtime, nobody is left
//! to look.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::core::Core;
use super::mailbox::{Delivery, Mailbox};
use super::running::Running;

/// Calls that were not over, by the addresses of their mailboxes.
type Calls = HashMap<usize, Call>;

#[derive(Debug)]
struct Call {
    /// As long as it is here, no other one has its address.
    mailbox: Arc<Mailbox>,
    /// How many there were before it.
    handled: u64,
    /// When it was first seen.
    since: Instant,
    is_said: bool,
}

/// The shortest time between two looks, whatever is asked for.
const SHORTEST: Duration = Duration::from_millis(10);

/// Looks for calls that take longer than this, for ever.
pub(super) async fn run(core: &Core, long: Duration) {
    let mut calls = Calls::new();
    loop {
        let handlers = core.running();
        // Most informers of many have none, and are not looked at.
        if handlers.is_empty() {
            calls.clear();
            core.adopted().await;
            continue;
        }
        calls = look(calls, handlers, long);
        sleep((long / 3).max(SHORTEST)).await;
    }
}

/// Says what is to be said. What there is to compare with the next time.
fn look(mut last: Calls, handlers: Vec<Running>, long: Duration) -> Calls {
    let now = Instant::now();
    let busy = handlers.into_iter().filter(|handler| handler.mailbox.is_busy());
    busy.map(|Running { mailbox, task, .. }| {
        let (address, handled) =
            (Arc::as_ptr(&mailbox).addr(), mailbox.counters.handled.load(Ordering::Relaxed));
        let same = last.remove(&address).filter(|call| call.handled == handled);
        let mut call = same.unwrap_or(Call { mailbox, handled, since: now, is_said: false });
        if !call.is_said && now.duration_since(call.since) >= long {
            call.is_said = true;
            say(&call.mailbox, task.is_some(), long);
        }
        (address, call)
    })
    .collect()
}

fn say(mailbox: &Mailbox, is_async: bool, long: Duration) {
    let advice = if is_async {
        "an await that never ends, perhaps, which a deadline would end; what blocks its thread belongs into a closure"
    } else {
        "a lock, perhaps, or a request without a deadline"
    };
    let meanwhile = match mailbox.delivery() {
        Delivery::Latest => "several changes of an object become one".to_owned(),
        Delivery::Every(most) => format!("changes past {most} are dropped, and a gap is told"),
    };
    tracing::warn!(
        handler = %mailbox.name, waiting = mailbox.backlog().0,
        "a call of the handler has not returned for more than {long:?}: it is told nothing until it does, and nobody else is held up; \
         look what it waits for ({advice}); meanwhile, {meanwhile}"
    );
}
