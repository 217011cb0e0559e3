//! What is said while a test runs: warnings and errors.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes down warnings and errors of one thread, with the fields of the spans that they are in. Listens to nothing else, as most
/// do: spans of a lower level are not there.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Shared>);

struct Shared {
    /// A part of the targets that are meant.
    target: &'static str,
    spans: AtomicU64,
    fields: Mutex<BTreeMap<u64, String>>,
    entered: Mutex<Vec<u64>>,
    lines: Mutex<Vec<String>>,
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Lines {
    /// From now on, what modules say whose paths contain this.
    pub(crate) fn of(target: &'static str) -> (Self, DefaultGuard) {
        let lines = || {
            let (spans, fields, entered, lines) = Default::default();
            Self(Arc::new(Shared { target, spans, fields, entered, lines }))
        };
        // Where there is only one, what is said first in another thread, which has none, is taken for what nobody wants to hear.
        std::mem::forget(tracing::Dispatch::new(lines()));
        let lines = lines();
        (lines.clone(), tracing::subscriber::set_default(lines))
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lines.lock().unwrap().clone()
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().contains(self.0.target) && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.spans.fetch_add(1, Ordering::SeqCst) + 1;
        let mut text = String::new();
        span.record(&mut Text(&mut text));
        self.0.fields.lock().unwrap().insert(id, text);
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        for id in &*self.0.entered.lock().unwrap() {
            text.push_str(&self.0.fields.lock().unwrap()[id]);
        }
        event.record(&mut Text(&mut text));
        self.0.lines.lock().unwrap().push(text);
    }

    fn enter(&self, span: &Id) {
        self.0.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut entered = self.0.entered.lock().unwrap();
        let at = entered.iter().rposition(|id| *id == span.into_u64());
        at.map(|at| entered.remove(at));
    }
}
