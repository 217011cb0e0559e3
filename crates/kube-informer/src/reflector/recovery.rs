//! What to do when something failed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::fault::{Fault, Remedy};
use super::request::Freshness;
use super::transport::Transport;
use super::{Reflector, Report, Sink, State, Why};

impl<T: Transport, S: Sink> Reflector<T, S> {
    /// A list failed that was to be so fresh. `streaming`: it was a streaming list.
    pub(super) async fn list_failed(&mut self, fault: Fault, freshness: Freshness, streaming: bool) -> State {
        let remedy = fault.remedy(streaming);
        let again = |freshness, why| State::Begin { freshness, why };
        let next = match remedy {
            Remedy::PlainList => {
                self.server.no_streaming_lists.store(true, Ordering::Relaxed);
                self.sink.report(Report::Failing { fault, remedy, again: Duration::ZERO });
                return State::Listing { freshness, paged: true };
            }
            // Where even the newest is too old or too new, only time helps.
            Remedy::Newest if freshness != Freshness::Newest => {
                self.sink.report(Report::Failing { fault, remedy, again: Duration::ZERO });
                return again(Freshness::Newest, Why::Expired);
            }
            Remedy::Credentials if self.reload().await => return again(freshness, Why::Failure),
            _ => again(freshness, Why::Failure),
        };
        self.pause(fault, remedy, next)
    }

    /// A watch failed, to open or later.
    pub(super) async fn watch_failed(&mut self, fault: Fault) -> State {
        let remedy = fault.remedy(false);
        let next = match remedy {
            Remedy::Again => State::Connect,
            Remedy::Newest => {
                self.sink.report(Report::Failing { fault, remedy, again: Duration::ZERO });
                return State::Begin { freshness: self.not_older(), why: Why::Expired };
            }
            Remedy::Credentials if self.reload().await => return State::Connect,
            Remedy::Credentials => State::Connect,
            Remedy::Forbidden | Remedy::NotServed | Remedy::Everything | Remedy::PlainList => {
                State::Begin { freshness: self.not_older(), why: Why::Failure }
            }
        };
        self.pause(fault, remedy, next)
    }

    /// Waits before what is next.
    fn pause(&mut self, fault: Fault, remedy: Remedy, next: State) -> State {
        let mut wait = self.backoff.failed(fault.retry_after());
        if matches!(remedy, Remedy::Forbidden | Remedy::NotServed) {
            wait = wait.max(self.settings.slow);
        }
        self.sink.report(Report::Failing { fault, remedy, again: wait });
        State::Pause { until: Instant::now() + wait, next: Box::new(next) }
    }

    /// Reads the credentials anew, once until they are accepted again.
    async fn reload(&mut self) -> bool {
        if self.reloaded {
            return false;
        }
        self.reloaded = true;
        self.transport.reload_credentials().await;
        true
    }
}
