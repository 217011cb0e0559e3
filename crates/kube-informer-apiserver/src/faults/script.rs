//! The installed faults and the exchanges they can reach.
//!
//! Both are behind one lock: a request that arrives while a fault is being
//! installed meets it once, as a coming one or as an open one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{Notify, mpsc};

use super::fault::{Reach, Rule};
use super::lock;
use super::matcher::Match;
use super::transcript::Request;

/// The installed faults and the exchanges in flight.
#[derive(Default)]
pub(crate) struct Script {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that act on requests that arrive, in the order of installation.
    rules: Vec<Arc<Rule>>,
    /// All that may still act somewhere.
    installed: Vec<Weak<Rule>>,
    open: BTreeMap<u64, Open>,
}

struct Open {
    request: Request,
    rules: mpsc::UnboundedSender<Arc<Rule>>,
    kill: Arc<Notify>,
}

/// An exchange in flight: faults installed later reach it through this.
/// Dropping it ends that.
pub(crate) struct Exchange {
    script: Arc<Script>,
    id: u64,
    /// Faults installed while the exchange is in flight.
    pub(crate) late: mpsc::UnboundedReceiver<Arc<Rule>>,
}

impl Script {
    /// A request has arrived: the faults that act on it, each with one of its
    /// times taken.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        request: Request,
        kill: Arc<Notify>,
    ) -> (Vec<Arc<Rule>>, Exchange) {
        let mut state = lock(&self.state);
        let meant = |rule: &&Arc<Rule>| rule.matcher.matches(&request);
        // Whoever takes the request for itself comes first: then nothing is
        // used up that would only act on the server's answer.
        let taker =
            state.rules.iter().filter(meant).filter(|rule| rule.is_exclusive()).find(|rule| rule.take());
        let mut rules: Vec<Arc<Rule>> = state
            .rules
            .iter()
            .filter(meant)
            .filter(|rule| !rule.is_exclusive() && (taker.is_none() || rule.is_early()) && rule.take())
            .cloned()
            .collect();
        rules.extend(taker.cloned());
        state.rules.retain(|rule| !rule.is_used_up());

        let (sender, late) = mpsc::unbounded_channel();
        let id = request.id;
        state.open.insert(id, Open { request, rules: sender, kill });
        (rules, Exchange { script: self.clone(), id, late })
    }

    pub(crate) fn install(&self, rule: Arc<Rule>, reach: Reach) {
        let mut state = lock(&self.state);
        state.installed.retain(|rule| rule.strong_count() > 0);
        state.installed.push(Arc::downgrade(&rule));
        if reach != Reach::Coming {
            for open in state.open.values() {
                if rule.matcher.matches(&open.request) && rule.take() {
                    // Fails only for an exchange that is ending right now.
                    let _ = open.rules.send(rule.clone());
                }
            }
        }
        if reach != Reach::Open {
            state.rules.push(rule);
        }
    }

    pub(crate) fn remove(&self, rule: &Arc<Rule>) {
        lock(&self.state).rules.retain(|other| !Arc::ptr_eq(other, rule));
    }

    /// Ends every fault that was ever installed, those that only reach open
    /// exchanges included.
    pub(crate) fn heal(&self) {
        let mut state = lock(&self.state);
        state.rules.clear();
        for rule in state.installed.drain(..).filter_map(|rule| rule.upgrade()) {
            rule.end();
        }
    }

    /// Calls back for each exchange in flight that is meant.
    pub(crate) fn each_open(&self, matcher: &Match, mut visit: impl FnMut(&Request, &Notify)) {
        for open in lock(&self.state).open.values().filter(|open| matcher.matches(&open.request)) {
            visit(&open.request, &open.kill);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        lock(&self.script.state).open.remove(&self.id);
    }
}
