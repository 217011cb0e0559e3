//! What is followed for one owner, and what is made of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_informer::cache::Selector;
use kube_informer::controller::Request;
use kube_informer::informer::{Cause, Informer};
use kube_informer::manager::{KeyParams, Manager, Owner, RequestWatch, Watch, WatchState};
use kube_informer::object::Object;
use kube_informer::resource::Resource;
use tokio::time::Instant;

use super::TargetState;
use super::decision::{Facts, decide};
use super::error::FollowError;
use super::kinds::Kind;
use super::pods::Pods;
use super::scale_target::{Reading, ScaleTarget, referenced_selector};
use super::selectors::Selectors;
use crate::api::{KIND, Mode, ScaleTargetRef};

/// A target that is followed.
pub(super) struct Followed {
    /// As the spec names it.
    pub(super) reference: ScaleTargetRef,
    pub(super) kind: Arc<Kind>,
    pub(super) watch: Watched,
    /// What the target names for its selector.
    pub(super) named: Option<Named>,
    /// What it is to name, as far as is known.
    wanted: Option<ScaleTargetRef>,
    /// Whether somebody is about to watch what it names.
    pub(super) referring: bool,
    /// By which its pods are found.
    selector: Option<Selector>,
    /// Whether the target was there before.
    was_there: bool,
    /// The last that was told.
    pub(super) state: Option<TargetState>,
    /// Since when what is known may be old.
    stale_since: Option<Instant>,
    /// Whether that is so for long enough to be told.
    pub(super) stale_lasts: bool,
}

/// An object that has the selector of another one.
pub(super) struct Named {
    pub(super) reference: ScaleTargetRef,
    pub(super) watch: Option<Watched>,
    /// Why it is not watched.
    pub(super) problem: Option<String>,
}

/// A watch of a single object.
pub(super) struct Watched {
    watch: Watch,
    /// Whether it was known once whether the object is there.
    known: AtomicBool,
}

/// What came of a look.
pub(super) struct Looked {
    /// Whether there is something to tell.
    pub(super) news: bool,
    /// Whether everything is known, and is what the server has.
    pub(super) settled: bool,
    /// Whether another object is to be watched for its selector.
    pub(super) reference: bool,
}

impl Looked {
    pub(super) fn nothing() -> Self {
        Self { news: false, settled: true, reference: false }
    }

    fn unsettled(reference: bool) -> Self {
        Self { news: false, settled: false, reference }
    }
}

impl Followed {
    pub(super) fn new(reference: ScaleTargetRef, kind: Arc<Kind>, watch: Watched) -> Self {
        Self {
            reference,
            kind,
            watch,
            named: None,
            wanted: None,
            referring: false,
            selector: None,
            was_there: false,
            state: None,
            stale_since: None,
            stale_lasts: false,
        }
    }

    /// What is known may be old, or is what the server has. Whether that is to be told.
    pub(super) fn note_stale(&mut self, is_stale: bool, lasting: Duration) -> bool {
        let since = is_stale.then(|| self.stale_since.unwrap_or_else(Instant::now));
        self.stale_since = since;
        let lasts = since.is_some_and(|since| since.elapsed() >= lasting);
        std::mem::replace(&mut self.stale_lasts, lasts) != lasts
    }

    /// Where another object is to be watched than is: that one, if any, and the one that was. Whoever asks sees to it.
    pub(super) fn wanted_reference(&mut self) -> Option<(Option<ScaleTargetRef>, Option<Watched>)> {
        let now = self.named.as_ref().map(|named| &named.reference);
        let is_failed = self.named.as_ref().is_some_and(|named| named.problem.is_some());
        if now == self.wanted.as_ref() && !is_failed {
            self.referring = false;
            return None;
        }
        self.referring = true;
        Some((self.wanted.clone(), self.named.take().and_then(|named| named.watch)))
    }

    /// Looks at what is known, and keeps what follows from it.
    pub(super) fn look(&mut self, owner: &Request, pods: &mut Pods, selectors: &mut Selectors) -> Looked {
        let object = self.watch.get();
        let reading = object.as_ref().map(|object| Reading::of(object, &self.kind.shape)).transpose();
        let reading = match reading {
            Ok(Some(Reading { mut target, reference })) => {
                self.wanted.clone_from(&reference);
                let now = self.named.as_ref().map(|named| &named.reference);
                if now != reference.as_ref() {
                    // What it names is not known: nothing can be said until it is.
                    let is_new = !std::mem::replace(&mut self.referring, true);
                    return Looked::unsettled(is_new);
                }
                match self.named_selector() {
                    Err(Unknown) => return Looked::unsettled(false),
                    Ok(Some(selector)) => target.selector = Some(selector),
                    // Argo may have written it into the status.
                    Ok(None) => {}
                }
                Ok(Some(target))
            }
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        let selector = reading.as_ref().ok().and_then(|target| target.as_ref()?.selector.as_ref());
        if selector != self.selector.as_ref() {
            match selector {
                Some(selector) => {
                    pods.expect(selector);
                    // From now on, changes of these pods are told.
                    selectors.set(owner, selector.clone());
                }
                None => selectors.remove(owner),
            }
            self.selector = selector.cloned();
        }
        self.conclude(reading, pods)
    }

    fn conclude(&mut self, target: Result<Option<ScaleTarget>, String>, pods: &Pods) -> Looked {
        let (is_live, pods_are_live) = (self.watch.stale().is_none(), pods.stale().is_none());
        let settled = is_live && pods_are_live;
        let found = target.as_ref().map(Option::as_ref).map_err(String::as_str);
        // Of what is not served, there is nothing: that it is gone is not old.
        let target_is_live = is_live || matches!(found, Ok(None)) && self.watch.is_not_served();
        let selector = found.ok().flatten().and_then(|target| target.selector.as_ref());
        let ready_pods = selector.map_or(0, |selector| pods.ready(selector));
        let facts = Facts {
            target: found,
            target_is_live,
            ready_pods,
            pods_are_live,
            was_there: self.was_there,
            before: self.state.as_ref().map(|state| state.decision),
        };
        let Some((decision, why)) = decide(&facts) else {
            return Looked { news: false, settled, reference: false };
        };
        self.was_there |= matches!(found, Ok(Some(_)));
        let state = TargetState {
            target: target.ok().flatten(),
            ready_pods,
            decision,
            why,
            stale: None,
            stale_lasts: false,
        };
        let news = self.state.as_ref().is_none_or(|before| is_news(before, &state));
        self.state = Some(state);
        Looked { news, settled, reference: false }
    }

    /// The selector of the object that the target names.
    fn named_selector(&self) -> Result<Option<Selector>, Unknown> {
        let Some(Named { watch: Some(watch), .. }) = &self.named else { return Ok(None) };
        if !watch.is_known() {
            return Err(Unknown);
        }
        Ok(watch.get().and_then(|object| referenced_selector(&object).unwrap_or(None)))
    }
}

/// It is not known yet.
struct Unknown;

/// Whether those are to be told who act on it: how many pods are ready is none of their concern, only whether one is.
fn is_news(before: &TargetState, now: &TargetState) -> bool {
    let essence = |state: &TargetState| -> (Mode, bool) { (state.decision, state.ready_pods > 0) };
    before.target != now.target || essence(before) != essence(now)
}

impl Watched {
    /// Watches an object for an owner, whether it is there or not. Whenever something is new about it, it is said.
    pub(super) async fn open(
        manager: &Manager,
        owner: &Request,
        resource: &Resource,
        name: &str,
        deadline: Duration,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, FollowError> {
        let watch =
            RequestWatch::new(Owner::from(owner).kind(KIND), resource.clone(), owner.namespace(), name)
                .wait_for_target()
                .within(deadline)
                .on(move |_| {
                    changed();
                    std::future::ready(Ok::<_, std::convert::Infallible>(()))
                });
        let watch = manager.add(watch).await.map_err(|source| FollowError::Watch { source })?;
        Ok(Self { watch, known: AtomicBool::new(false) })
    }

    pub(super) fn key(&self) -> &KeyParams {
        self.watch.key()
    }

    /// Where it is read.
    pub(super) fn informer(&self) -> Option<Informer> {
        self.watch.informer()
    }

    /// The object, as far as is known.
    fn get(&self) -> Option<Object> {
        self.watch.get()
    }

    /// Whether it was known once whether the object is there.
    pub(super) fn is_known(&self) -> bool {
        if self.known.load(Ordering::Relaxed) {
            return true;
        }
        let known = match self.watch.state() {
            WatchState::Live | WatchState::Missing => true,
            _ => self.watch.get().is_some(),
        };
        self.known.fetch_or(known, Ordering::Relaxed);
        known
    }

    /// Whether the server does not serve the resource any more.
    pub(super) fn is_not_served(&self) -> bool {
        matches!(self.watch.state(), WatchState::Stale { why, .. } if why.cause == Cause::NotServed)
    }

    /// What stands in the way of what is known being what the server has.
    pub(super) fn stale(&self) -> Option<WatchState> {
        match self.watch.state() {
            WatchState::Live | WatchState::Missing => None,
            state => Some(state),
        }
    }
}
