//! Where it is written down how an informer is: what reflectors report and what becomes of it, scope by scope.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::{Cause, Health, Relists, State, Why};
use crate::encoding::Encoding;
use crate::reflector::fault::{Fault, Remedy};
use crate::reflector::{Report, Why as Reason};
use crate::sync::{Mutex, MutexGuard};

/// See the module.
#[derive(Debug)]
pub(in crate::informer) struct Board {
    notes: Mutex<Notes>,
    /// Changes when a state does.
    pub(in crate::informer) changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Notes {
    scopes: Vec<Scope>,
    last_event: Option<Timestamp>,
    last_bookmark: Option<Timestamp>,
    relists: Relists,
    watches: u64,
    unreadable: u64,
    last_unreadable: Option<Why>,
    encoding: Option<Encoding>,
}

#[derive(Debug)]
struct Scope {
    namespace: Option<Arc<str>>,
    request: String,
    state: State,
    /// How many lists of it were on their way to the cache.
    listed: u64,
    /// How many of those are there. That may be known before they are known to be on their way.
    replaced: u64,
    /// Whether its watch is open.
    is_watching: bool,
    /// What is known of a resource that is not served.
    not_served: Option<String>,
}

impl Board {
    /// Scopes, each with what is asked for.
    pub(in crate::informer) fn new(scopes: impl IntoIterator<Item = (Option<Arc<str>>, String)>) -> Self {
        let scope = |(namespace, request)| Scope {
            namespace,
            request,
            state: State::Starting,
            listed: 0,
            replaced: 0,
            is_watching: false,
            not_served: None,
        };
        let mut scopes: Vec<Scope> = scopes.into_iter().map(scope).collect();
        if scopes.is_empty() {
            // Nothing is asked for, and somebody must be told why.
            scopes.push(scope((None, "watch".to_owned())));
        }
        let notes = Notes { scopes, ..Notes::default() };
        Self { notes: Mutex::new(notes), changes: watch::Sender::new(0) }
    }

    pub(in crate::informer) fn health(&self) -> Health {
        let notes = self.lock();
        let states = notes.scopes.iter().map(|scope| &scope.state);
        let state = states.max_by_key(|state| state.severity()).cloned().unwrap_or_default();
        Health {
            state,
            scopes: notes.scopes.iter().map(|scope| (scope.namespace.clone(), scope.state.clone())).collect(),
            last_event: notes.last_event,
            last_bookmark: notes.last_bookmark,
            relists: notes.relists,
            watches: notes.watches,
            unreadable: notes.unreadable,
            last_unreadable: notes.last_unreadable.clone(),
            encoding: notes.encoding,
        }
    }

    /// Hears what a reflector says.
    pub(in crate::informer) fn report(&self, scope: usize, report: &Report) {
        let mut notes = self.lock();
        match report {
            Report::Listing(reason) => {
                let relists = &mut notes.relists;
                let count = match reason {
                    Reason::First => &mut relists.first,
                    Reason::Expired => &mut relists.expired,
                    Reason::Failure => &mut relists.failure,
                    Reason::WentBack => &mut relists.went_back,
                    Reason::Unreadable => &mut relists.unreadable,
                    Reason::Encoding => &mut relists.encoding,
                };
                *count += 1;
                tracing::debug!(?reason, "everything is being listed");
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.is_watching = false;
                match &scope.state {
                    State::Starting => scope.state = State::Syncing,
                    State::Live => {
                        scope.stale(
                            scope.why(Cause::Relisting, format!("everything is read again: {reason:?}")),
                        );
                    }
                    // What went wrong is over only when it works again.
                    State::Syncing | State::Stale { .. } | State::Stopped => {}
                }
            }
            Report::Listed { objects, encoding, streaming, version } => {
                notes.encoding = Some(*encoding);
                if let Some(scope) = notes.scopes.get_mut(scope) {
                    scope.listed += 1;
                }
                let encoding = encoding.as_str();
                tracing::debug!(objects, %version, encoding, streaming, "everything was listed");
                return;
            }
            Report::Received(_) => return,
            Report::Watching { encoding } => {
                notes.watches += 1;
                notes.encoding = Some(*encoding);
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.is_watching = true;
                scope.not_served = None;
                scope.settle(None);
            }
            // Another way is taken at once.
            Report::Failing { remedy: Remedy::PlainList | Remedy::Newest, again: Duration::ZERO, .. } => {
                return;
            }
            Report::Failing { request, fault, remedy, again } => {
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.is_watching = false;
                let cause = cause(fault, *remedy);
                let (request, message) = (request.clone(), fault.to_string());
                let mut why = Why { cause, request, message, again: *again };
                tracing::warn!(
                    request = %why.request, cause = cause.as_str(), error = %fault, ?again,
                    "watching does not work; {}", why.advice().unwrap_or("it is tried again")
                );
                if let Some(more) = scope.not_served.as_ref().filter(|_| cause == Cause::NotServed) {
                    why.message = format!("{}; {more}", why.message);
                }
                scope.stale(why);
            }
            Report::Unreadable { request, what, error } => {
                notes.unreadable += 1;
                let cause = Cause::Unreadable;
                tracing::warn!(
                    %request, object = %what, %error,
                    "it cannot be read, and what was known is kept; {}", cause.advice()
                );
                let what = what.to_string();
                // Most errors say themselves whose they are.
                let message =
                    if error.starts_with(&what) { error.clone() } else { format!("{what}: {error}") };
                let request = request.clone();
                notes.last_unreadable = Some(Why { cause, request, message, again: Duration::ZERO });
            }
            Report::Absent => {
                tracing::warn!("the resource is gone, and so are its objects");
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                // That there is nothing is a list, too.
                scope.listed += 1;
                scope.not_served = Some("the resource is gone, and its objects with it".to_owned());
            }
            Report::NotProvenAbsent { why } => {
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.not_served = Some(format!("its objects are kept: {why}"));
            }
            Report::TurnedToJson { error } => {
                tracing::warn!(%error, "protobuf is not understood; JSON is asked for from now on");
                notes.encoding = Some(Encoding::Json);
            }
        }
        drop(notes);
        self.changed();
    }

    /// What was asked for cannot be.
    pub(in crate::informer) fn misconfigured(&self, message: &str) {
        self.each(|scope| scope.stale(scope.why(Cause::Misconfigured, message.to_owned())));
    }

    /// Nothing works any more, whatever is heard later of what does.
    pub(in crate::informer) fn broken(&self, message: &str) {
        self.each(|scope| scope.stale(scope.why(Cause::Broken, message.to_owned())));
    }

    /// A list of a scope is in the cache.
    pub(in crate::informer) fn replaced(&self, scope: usize) {
        let mut notes = self.lock();
        let Some(scope) = notes.scopes.get_mut(scope) else { return };
        scope.replaced += 1;
        // Whoever puts lists into the cache does so for all scopes, and what is said there names none.
        let namespace = scope.namespace.clone();
        scope.settle(namespace.as_deref());
        drop(notes);
        self.changed();
    }

    /// Something was heard.
    pub(in crate::informer) fn heard(&self, event: bool, bookmark: bool) {
        let now = Timestamp::now();
        let mut notes = self.lock();
        if event {
            notes.last_event = Some(now);
        }
        if bookmark {
            notes.last_bookmark = Some(now);
        }
    }

    pub(in crate::informer) fn encoding(&self, encoding: Encoding) {
        self.lock().encoding = Some(encoding);
    }

    pub(in crate::informer) fn started(&self) {
        self.each(|scope| {
            if scope.state == State::Starting {
                scope.state = State::Syncing;
            }
        });
    }

    pub(in crate::informer) fn stopped(&self) {
        self.each(|scope| scope.state = State::Stopped);
    }

    fn each(&self, act: impl FnMut(&mut Scope)) {
        self.lock().scopes.iter_mut().for_each(act);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scope {
    /// Why it is stale where nothing was asked for.
    fn why(&self, cause: Cause, message: String) -> Why {
        Why { cause, request: self.request.clone(), message, again: Duration::ZERO }
    }

    /// It is current, if it is. What is said of that names a namespace where nothing around it does.
    fn settle(&mut self, namespace: Option<&str>) {
        let is_current = self.replaced > 0 && self.replaced >= self.listed;
        if !is_current || !self.is_watching || self.is_over() {
            return;
        }
        if let State::Stale { since, why } = &self.state
            && why.cause != Cause::Relisting
        {
            tracing::info!(namespace, %since, "watching works again");
        }
        self.state = State::Live;
    }

    fn stale(&mut self, why: Why) {
        if self.is_over() {
            return;
        }
        let since = match &self.state {
            State::Stale { since, .. } => *since,
            _ => Timestamp::now(),
        };
        self.state = State::Stale { since, why };
    }

    /// Whether nothing changes it any more: it was stopped, or a part of it is gone and the others do not know yet.
    fn is_over(&self) -> bool {
        match &self.state {
            State::Stopped => true,
            State::Stale { why, .. } => why.cause == Cause::Broken,
            State::Starting | State::Syncing | State::Live => false,
        }
    }
}

/// In one word, what went wrong.
fn cause(fault: &Fault, remedy: Remedy) -> Cause {
    match (remedy, fault) {
        (Remedy::Credentials, _) => Cause::Unauthorized,
        (Remedy::Forbidden, _) => Cause::Forbidden,
        (Remedy::NotServed, _) => Cause::NotServed,
        (_, Fault::Refused(_)) => Cause::Refused,
        (_, Fault::Connection(_) | Fault::Untrusted(_) | Fault::Short(_)) => Cause::Connection,
        (_, Fault::Status(status)) => match status.code {
            429 => Cause::Throttled,
            400 | 405 | 406 | 414 | 415 | 422 => Cause::Rejected,
            _ => Cause::Server,
        },
        (_, Fault::Body(_)) => Cause::NotAnApi,
        (_, Fault::Stalled(_)) => Cause::Stalled,
        (_, Fault::Unreadable(_)) => Cause::Unreadable,
    }
}
