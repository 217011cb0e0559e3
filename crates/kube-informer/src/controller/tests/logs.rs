//! What is said when something goes wrong: who, which key, why, and how often.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;

/// Writes down warnings and errors, with the fields of the spans that they are in.
#[derive(Clone, Default)]
struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    spans: AtomicU64,
    fields: Mutex<std::collections::BTreeMap<u64, String>>,
    entered: Mutex<Vec<u64>>,
    lines: Mutex<Vec<String>>,
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().contains("controller")
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
        if *event.metadata().level() > Level::WARN {
            return;
        }
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

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_is_said_with_controller_key_reason_and_how_often() {
    let lines = Lines::default();
    // Where there is only one, what is said first in another thread, which has none, is taken for what nobody wants to hear.
    let _second = tracing::Dispatch::new(Lines::default());
    let _said = tracing::subscriber::set_default(lines.clone());
    let mut pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = tell(async |context: Context<Value>| match context.request().name() {
        "fails" if context.failures() < 3 => Err("the disk is full".into()),
        "panics" if context.failures() == 0 => panic!("out of range"),
        "hangs" if context.failures() == 0 => std::future::pending().await,
        "odd" => Err(terminal("no such class").into()),
        _ => Ok(Action::done()),
    });
    let running = run(controller(&pods).name("web").workers(4).timeout(Duration::from_secs(100)), reconciler);
    pods.list(&[("fails", 1), ("hangs", 1), ("odd", 1), ("panics", 1)], 1);
    heard.some(9).await;
    heard.nothing().await;
    running.stop().await.unwrap();
    let lines = lines.0.lines.lock().unwrap().clone();
    for parts in [
        &["controller=web key=d/fails", "error=\"the disk is full\"", "failures=1", "again=5ms"][..],
        &["controller=web key=d/fails", "error=\"the disk is full\"", "failures=3", "again=20ms"],
        &["controller=web key=d/panics", "it panicked: out of range", "failures=1"],
        &["controller=web key=d/hangs", "takes more than 60s"],
        &["controller=web key=d/hangs", "it took longer than 100s and was dropped", "failures=1"],
        &["controller=web key=d/odd", "terminal error: no such class", "not tried again"],
    ] {
        let said = lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(said, "nothing says {parts:?}: {lines:#?}");
    }
    assert_eq!(lines.len(), 7, "{lines:#?}");
}
