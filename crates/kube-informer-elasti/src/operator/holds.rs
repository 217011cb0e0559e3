//! Services that are about to sleep: redirected first, whatever their pods say.
//!
//! Whoever puts a target to sleep holds its service: from then on the decision is to redirect it, and the reconciler says
//! when that is done, or why it cannot be. The hold ends with the guard, and the pods decide again.
//!
//! A wake goes before a sleep: it is noted on the hold, and whoever holds finds it before and after the scale-down.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_informer::controller::Request;
use kube_informer::write::Written;
use tokio::sync::watch;

use super::pokes::Pokes;

/// What there is to hold. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds {
    inner: Arc<Mutex<HashMap<Request, Held>>>,
}

#[derive(Debug)]
struct Held {
    redirect: watch::Sender<Redirect>,
    woken: bool,
}

/// How far the redirect is.
#[derive(Debug, Clone, Default)]
pub(super) enum Redirect {
    /// The reconciler has not looked yet.
    #[default]
    Pending,
    /// The slices to the resolver are there.
    Done(Done),
    /// It cannot be.
    Refused(String),
}

/// What leads to the resolver.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// By these names.
    pub(super) slices: Vec<String>,
    /// What was written for it.
    pub(super) written: Vec<Written>,
}

/// A service is held for as long as this is there.
#[derive(Debug)]
pub(super) struct Hold {
    holds: Holds,
    request: Request,
    pokes: Pokes,
    redirect: watch::Receiver<Redirect>,
}

impl Holds {
    /// Holds a service, and has it looked at. `None` where somebody holds it already: what is noted of a sleep is of one.
    pub(super) fn hold(&self, request: &Request, pokes: &Pokes) -> Option<Hold> {
        let redirect = match self.lock().entry(request.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => {
                let held = Held { redirect: watch::Sender::default(), woken: false };
                free.insert(held).redirect.subscribe()
            }
        };
        pokes.add(request.clone());
        Some(Hold { holds: self.clone(), request: request.clone(), pokes: pokes.clone(), redirect })
    }

    /// Whether a service is held.
    pub(super) fn is_held(&self, request: &Request) -> bool {
        self.lock().contains_key(request)
    }

    /// The reconciler says how far the redirect is.
    pub(super) fn tell(&self, request: &Request, redirect: Redirect) {
        if let Some(held) = self.lock().get(request) {
            held.redirect.send_replace(redirect);
        }
    }

    /// The target was woken meanwhile. Tells whether somebody holds it.
    pub(super) fn woken(&self, request: &Request) -> bool {
        match self.lock().get_mut(request) {
            Some(held) => {
                held.woken = true;
                true
            }
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Request, Held>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// Waits until the reconciler has redirected it, or says why it cannot.
    pub(super) async fn redirected(&mut self) -> Result<Done, String> {
        loop {
            match &*self.redirect.borrow_and_update() {
                Redirect::Pending => {}
                Redirect::Done(done) => return Ok(done.clone()),
                Redirect::Refused(why) => return Err(why.clone()),
            }
            if self.redirect.changed().await.is_err() {
                return Err("it is not held any more".to_owned());
            }
        }
    }

    /// Why it is not redirected any more, if the reconciler says so by now.
    pub(super) fn refused(&self) -> Option<String> {
        match &*self.redirect.borrow() {
            Redirect::Refused(why) => Some(why.clone()),
            Redirect::Pending | Redirect::Done(_) => None,
        }
    }

    /// Whether somebody woke it since it is held.
    pub(super) fn was_woken(&self) -> bool {
        self.holds.lock().get(&self.request).is_some_and(|held| held.woken)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.holds.lock().remove(&self.request);
        // The pods decide again.
        self.pokes.add(self.request.clone());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_service_is_held_by_one_until_it_lets_go() {
        let (holds, pokes) = (Holds::default(), Pokes::default());
        let web = Request::new("shop", "web");
        assert!(!holds.is_held(&web));
        let mut hold = holds.hold(&web, &pokes).unwrap();
        assert!(holds.hold(&web, &pokes).is_none(), "it is held");
        assert!(hold.redirected().now_or_never().is_none());
        holds.tell(&web, Redirect::Done(Done::default()));
        assert!(hold.redirected().await.is_ok());
        assert_eq!(hold.refused(), None);
        holds.tell(&web, Redirect::Refused("no resolver".to_owned()));
        assert_eq!(hold.refused().as_deref(), Some("no resolver"), "it was done before");
        assert_eq!(hold.redirected().await.unwrap_err(), "no resolver");
        assert!(holds.is_held(&web) && !hold.was_woken());
        assert!(holds.woken(&web) && hold.was_woken());
        drop(hold);
        assert!(!holds.is_held(&web) && !holds.woken(&web));
        assert!(!holds.hold(&web, &pokes).unwrap().was_woken(), "another hold");
    }
}
