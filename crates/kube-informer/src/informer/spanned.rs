//! In which span the panic of a closure is said.
//!
//! Closures share threads, and have no task whose span they could be in. To enter one for each event would cost something
//! with each event; so it is entered where a call panics, and left when what was called for it is over. By then it has been
//! said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

use tokio::sync::watch;
use tracing::Span;

use super::callers::{Step, Work};
use super::event::Event;
use super::handler::Closure;
use super::inbox::Inbox;

struct Spanned<W> {
    work: W,
    place: Arc<Place>,
}

struct Place {
    span: Span,
    /// Whether the thread that calls is in it.
    entered: AtomicBool,
}

/// What a closure is called through, for those who call it.
pub(super) fn closure<K: 'static>(
    span: Span,
    inbox: Inbox,
    mut closure: impl FnMut(Event<K>) + Send + 'static,
    running: watch::Sender<()>,
) -> impl Work {
    let place = Arc::new(Place { span, entered: AtomicBool::new(false) });
    let here = Arc::clone(&place);
    let called = move |event| {
        let _panics = Panics(&here);
        closure(event);
    };
    Spanned { work: Closure::new(inbox, called, running), place }
}

impl<W: Work> Work for Spanned<W> {
    fn step(&mut self, context: &mut Context<'_>) -> Step {
        let step = self.work.step(context);
        self.place.leave();
        step
    }
}

impl Place {
    fn enter(&self) {
        self.span.with_subscriber(|(id, subscriber)| subscriber.enter(id));
        self.entered.store(true, Ordering::Relaxed);
    }

    fn leave(&self) {
        if self.entered.load(Ordering::Relaxed) {
            self.entered.store(false, Ordering::Relaxed);
            self.span.with_subscriber(|(id, subscriber)| subscriber.exit(id));
        }
    }
}

/// Enters the span where a call ends in a panic.
struct Panics<'a>(&'a Place);

impl Drop for Panics<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.enter();
        }
    }
}
