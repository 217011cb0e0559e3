//! What is logged to stderr, and how much.
//!
//! A command that ends where it may not read says so in one line. [`says_refusals`] leaves out the log line that says the same,
//! unless somebody asks for what is logged, by `-v` or `RUST_LOG`.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use crate::style::{Style, When};

/// Whether a command says itself that it may not read.
static SAYS_REFUSALS: AtomicBool = AtomicBool::new(false);

/// So much more than a command logs by itself; where nobody asks for more, `RUST_LOG` counts.
pub(crate) fn to_stderr(chattiness: u8, more: u8) {
    let level = match chattiness.saturating_add(more) {
        0 => "error",
        // That something is wrong is said, and so is that it is over.
        1 => "warn,kube_informer::informer::health=info",
        2 => "info",
        3 => "debug",
        _ => "trace",
    };
    // One that is empty would be one that shows errors alone.
    let is_set = std::env::var_os(EnvFilter::DEFAULT_ENV).is_some_and(|value| !value.is_empty());
    let asked = EnvFilter::try_from_default_env().ok().filter(|_| more == 0 && is_set);
    let is_asked_for = more > 0 || asked.is_some();
    tracing_subscriber::fmt()
        .with_env_filter(asked.unwrap_or_else(|| EnvFilter::new(level)))
        .with_ansi(Style::stderr(When::Auto).has_colours())
        .with_writer(std::io::stderr)
        // Where nobody reads stderr, that would be said there, and is a panic.
        .log_internal_errors(false)
        .finish()
        .with((!is_asked_for).then_some(Once))
        .init();
}

/// Refusals are said otherwise, until this is dropped.
#[derive(Debug)]
pub(crate) struct Refusals(());

/// A command ends where it may not read, and says so: nobody has to log it.
pub(crate) fn says_refusals() -> Refusals {
    SAYS_REFUSALS.store(true, Ordering::Relaxed);
    Refusals(())
}

impl Drop for Refusals {
    fn drop(&mut self) {
        SAYS_REFUSALS.store(false, Ordering::Relaxed);
    }
}

/// Leaves out what is said otherwise.
struct Once;

impl<S: Subscriber> Layer<S> for Once {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let mut refusal = Refusal(false);
        if SAYS_REFUSALS.load(Ordering::Relaxed) {
            event.record(&mut refusal);
        }
        !refusal.0
    }
}

/// Whether an event is that something may not be read.
struct Refusal(bool);

impl Visit for Refusal {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 |= field.name() == "cause" && matches!(value, "unauthorized" | "forbidden");
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
