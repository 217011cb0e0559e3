//! An informer whose cache is written by hand.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use k8s_openapi::api::core::v1::Pod;

use super::super::callers::Callers;
use super::super::core::Core;
use super::super::pump::{Applier, Item};
use super::super::spec::Spec;
use super::super::{Event, Events, Informer, Scope};
use crate::encoding::Encoding;
use crate::object::{Intake, Object, ViewBudget};
use crate::reflector::fault::Fault;
use crate::reflector::{Delta, Report, Why};
use crate::resource::Resource;
use crate::sync::unscheduled;

/// Writes pods of the namespace `d`.
pub(crate) struct Hand {
    core: Arc<Core>,
    applier: Arc<Applier>,
    intake: Intake,
    namespace: Option<Arc<str>>,
}

impl Hand {
    pub(crate) fn new(scope: Scope) -> Self {
        let namespace = (scope != Scope::All).then(|| Arc::from("d"));
        let spec = Spec::new(Resource::of::<Pod>(), scope);
        let intake = unscheduled(|| Intake::new(spec.codec(Encoding::Json).unwrap()));
        let core = Core::new(
            "pods".into(),
            spec,
            ViewBudget::default(),
            Duration::ZERO,
            Callers::new(tokio::runtime::Handle::current()),
        );
        let applier = core.take_applier().unwrap();
        Self { core, applier, intake, namespace }
    }

    /// Of an informer of pods that somebody else made, and nobody started; `None` if it has been taken in hand already.
    pub(crate) fn over(core: Arc<Core>) -> Option<Self> {
        let namespace = (core.spec().scope != Scope::All).then(|| Arc::from("d"));
        let intake = Intake::new(core.spec().codec(Encoding::Json).unwrap());
        let applier = core.take_applier()?;
        Some(Self { core, applier, intake, namespace })
    }

    /// What is written to, and with what.
    pub(in crate::informer) fn parts(&self) -> (Arc<Core>, Arc<Applier>) {
        (Arc::clone(&self.core), Arc::clone(&self.applier))
    }

    /// Watching does not work.
    pub(crate) fn fail(&self, fault: Fault) {
        let (request, again, remedy) = ("WATCH".to_owned(), Duration::from_secs(1), fault.remedy(false));
        self.core.board().report(0, &Report::Failing { request, fault, remedy, again });
    }

    /// It works.
    pub(crate) fn live(&self) {
        self.core.board().report(0, &Report::Watching { encoding: Encoding::Json });
    }

    /// What was missed is being read.
    pub(crate) fn list_again(&self) {
        self.core.board().report(0, &Report::Listing(Why::Expired));
    }

    pub(crate) fn informer(&self) -> Informer {
        let keeper: Arc<dyn Any + Send + Sync> = Arc::new(());
        Informer::new(Arc::clone(&self.core), keeper, None)
    }

    pub(crate) fn object(&mut self, name: &str, uid: &str, version: u64) -> Object {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"d","uid":"{uid}","resourceVersion":"{version}"}}}}"#
        );
        self.read(&text)
    }

    /// A pod with more metadata than its name and version.
    pub(crate) fn pod(&mut self, name: &str, version: u64, more: &str) -> Object {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"d","uid":"{name}","resourceVersion":"{version}",{more}}}}}"#
        );
        self.read(&text)
    }

    /// Where a scheduler runs the test, it is not about the views of an object.
    pub(crate) fn read(&mut self, text: &str) -> Object {
        unscheduled(|| self.intake.object(text.as_bytes()).unwrap())
    }

    pub(crate) fn list(&mut self, objects: &[(&str, u64)], version: u64) {
        let objects = objects.iter().map(|(name, version)| self.object(name, name, *version)).collect();
        self.replace(objects, version);
    }

    pub(crate) fn replace(&mut self, objects: Vec<Object>, version: u64) {
        let version = version.to_string().as_str().into();
        self.apply(Delta::Replace {
            objects,
            unreadable: Vec::new(),
            complete: true,
            version,
            went_back: false,
        });
    }

    pub(crate) fn put(&mut self, name: &str, version: u64) {
        let object = self.object(name, name, version);
        self.apply(Delta::Put(object));
    }

    pub(crate) fn remove(&mut self, name: &str, version: u64) {
        let object = self.object(name, name, version);
        self.apply(Delta::Remove(object));
    }

    pub(crate) fn progress(&mut self, version: u64) {
        self.apply(Delta::Progress(version.to_string().as_str().into()));
    }

    /// Nothing is told any more.
    pub(crate) fn stop(&self) {
        self.core.abandon();
    }

    pub(crate) fn apply(&mut self, delta: Delta) {
        self.applier.apply(&self.core, vec![Item::new(0, self.namespace.clone(), delta)]);
    }
}

/// What there is to be seen now, in short: `+` added (`!` initial), `~` updated, `=` said again, `-` deleted (`?` not
/// certain).
pub(crate) fn seen(events: &mut Events<serde_json::Value>) -> Vec<String> {
    std::iter::from_fn(|| one(events)).collect()
}

pub(crate) fn one(events: &mut Events<serde_json::Value>) -> Option<String> {
    next(events).map(|event| short(&event))
}

pub(crate) fn next(events: &mut Events<serde_json::Value>) -> Option<Event> {
    let mut cx = Context::from_waker(Waker::noop());
    match std::pin::Pin::new(events).poll_next(&mut cx) {
        Poll::Ready(event) => event,
        Poll::Pending => None,
    }
}

pub(crate) fn short(event: &Event) -> String {
    let mark = |is: bool, mark: &'static str| if is { mark } else { "" };
    match event {
        Event::Added { new, initial } => format!("+{}@{}{}", new.name(), new.version(), mark(*initial, "!")),
        Event::Updated { new, resync: true, .. } => format!("={}@{}", new.name(), new.version()),
        Event::Updated { old, new, .. } => format!("~{}@{}→{}", new.name(), old.version(), new.version()),
        Event::Deleted { last, certain } => {
            format!("-{}@{}{}", last.name(), last.version(), mark(!certain, "?"))
        }
        Event::Gap { missed, now } => format!("gap {missed}, {} now", now.len()),
    }
}
