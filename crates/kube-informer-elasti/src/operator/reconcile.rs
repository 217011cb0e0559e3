//! One look at one ElastiService, and what is missing is done.
//!
//! In this order: the finalizer; the claim to its Service; the watches of Service and target; the private Service; the
//! slices, where requests are redirected, by each port and address family where nobody answers; then what is not wanted any
//! more is deleted, unless somebody still needs it; then the status. Each step can fail, and is tried again with all before
//! it: a step that is done costs nothing. A former target that cannot be woken now, or a sleep that somebody began and that
//! cannot be settled, stands in nobody's way: it is said, and tried again, and what is to be looked at sooner is.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_informer::controller::{Action, BoxError, Context, Reconciler, Request};
use kube_informer::object::Object;
use kube_informer::write::Finalizer;

use super::desired::{self, Owner, Way};
use super::finalize::LOOK;
use super::holds::{Done, Redirect};
use super::letting_go::Kept;
use super::next::Next;
use super::report::{READY, REDIRECTED, Report};
use super::saying::status_of;
use super::world::{self, WorldError};
use super::{Inner, NAME, Operator};
use crate::api::{ElastiService, ElastiServiceSpec, FINALIZER, Mode};
use crate::directory::Standing;
use crate::names;
use crate::ops_informer::TargetState;
use crate::scale::ScaleError;

impl Reconciler<ElastiService> for Operator {
    async fn reconcile(&self, context: Context<ElastiService>) -> Result<Action, BoxError> {
        let request = context.request();
        let Some(object) = context.object() else {
            self.forget(request).await;
            return Ok(Action::done());
        };
        if object.deletion().is_some() {
            return match self.finalize(&context, &object).await {
                Ok(action) => Ok(action),
                Err(error) => self.complain(&context, &object, error).await,
            };
        }
        match self.finalizer().add(&object).await {
            Ok(written) => _ = world::wrote(&context, written),
            Err(error) if error.is_gone() => return Ok(Action::done()),
            Err(error) => return self.complain(&context, &object, error.into()).await,
        }
        let mut report = Report::default();
        let view = object.view();
        let next = match self.settle(&object, view.as_ref().ok().map(|elasti| &elasti.spec)).await {
            Ok(again) => Next::from(again),
            Err(error) => self.unsettled(request, &error, &mut report),
        };
        let mut aside = Aside::default();
        let held = self.inner.holds.is_held(request);
        let outcome = match view {
            Ok(elasti) => {
                let one = One { operator: self, context: &context, object: &object, elasti, held };
                one.act(&mut report, &mut aside).await
            }
            Err(error) => {
                self.inner.directory.remove(request);
                let words =
                    format!("it cannot be read: {error}; write it as the definition of ElastiServices says");
                report.wrong(READY, "Unreadable", words);
                Ok(Some(Next::CHANGE))
            }
        };
        let outcome = match outcome {
            Ok(Some(then)) => Ok(next.and(then).action()),
            // Nothing is known yet, so nothing is said. Who knows it tells.
            Ok(None) => return Ok(next.action()),
            Err(error) => {
                report.mode = None;
                report.wrong(READY, error.reason(), error.words());
                // Where only somebody else can help, it is no use to try again at once, and none to wait ever longer.
                match error.is_for_people() {
                    true => Ok(next.and(Next::after(self.inner.settings.retry)).action()),
                    false => Err(error.into()),
                }
            }
        };
        if let Some(error) = aside.trouble {
            report.wrong(READY, error.reason(), error.words());
        }
        if held {
            let told = match (report.against_redirect(), aside.redirected) {
                (Some(why), _) => Redirect::Refused(why),
                (None, Some(done)) => Redirect::Done(done),
                (None, None) => Redirect::Refused("nothing can be done for it".to_owned()),
            };
            self.inner.holds.tell(request, told);
        }
        self.say(&context, &object, report).await?;
        outcome
    }
}

/// What comes of a look beside what is to be done next.
#[derive(Debug, Default)]
struct Aside {
    /// What does not stand in the way of the rest, and is tried again.
    trouble: Option<WorldError>,
    /// What leads to the resolver for the sake of a hold.
    redirected: Option<Done>,
}

/// One ElastiService that is looked at.
pub(super) struct One<'a> {
    pub(super) operator: &'a Operator,
    pub(super) context: &'a Context<ElastiService>,
    pub(super) object: &'a Object<ElastiService>,
    pub(super) elasti: Arc<ElastiService>,
    /// Whether it is to be redirected whatever its pods say. Asked once, so that one reconcile does one thing.
    held: bool,
}

impl One<'_> {
    pub(super) fn inner(&self) -> &Inner {
        &self.operator.inner
    }

    pub(super) fn request(&self) -> &Request {
        self.context.request()
    }

    pub(super) fn spec(&self) -> &ElastiServiceSpec {
        &self.elasti.spec
    }

    fn owner(&self) -> Owner {
        Owner {
            namespace: self.object.namespace().to_owned(),
            name: self.object.name().to_owned(),
            uid: self.object.uid().to_string(),
        }
    }

    /// Does what is missing. `None` where too little is known to do anything, or to say anything.
    async fn act(&self, report: &mut Report, aside: &mut Aside) -> Result<Option<Next>, WorldError> {
        let Inner { directory, ops, world, settings, leaving, lingering, .. } = self.inner();
        let retry = Next::after(settings.retry);
        report.not_acted_on(self.spec());
        if let Some((reason, words)) = world::problem(self.spec()) {
            report.wrong(READY, reason, words);
            directory.remove(self.request());
            return self.let_go(None).await.map(Some);
        }

        // Who it is for: wakes come from here from now on, whatever else fails.
        let known = ops.resource(self.request()).filter(|_| self.is_same_target());
        let standing = directory.set(self.request(), &self.elasti, known.as_ref());
        if let Some(older) = self.older(standing) {
            report.wrong(
                READY,
                "Conflict",
                format!(
                    "the ElastiService {older} is older and names the same Service {}: delete one of them, or name another \
                     Service",
                    self.spec().service
                ),
            );
            return self.let_go(Some(&older)).await.map(Some);
        }
        leaving.over(self.request());
        lingering.over(self.request());

        let public = self.public_service(report).await;
        let target = self.target(report).await;
        if let Some(target) = &target {
            directory.set(self.request(), &self.elasti, Some(target));
        }
        let state = ops.state(self.request());
        if let Some(state) = state.as_ref().filter(|_| target.is_some()) {
            self.say_target(state, report);
        }
        let (Some(public), Some(target)) = (&public, &target) else {
            // What is there stays: it is either still right, or nobody is there who could be asked.
            let is_awake = state.and_then(|state| state.target).is_none_or(|target| target.spec_replicas > 0);
            return Ok(Some(self.keep_up(public.as_deref(), is_awake, report).await?.and(retry)));
        };
        let Some(state) = state else { return Ok(None) };

        let former = self.wake_former_targets(target).await;
        aside.trouble = former.trouble;
        let private = desired::private_service(&self.owner(), public, desired::target_notes(&former.notes));
        let private_name = names::private_service(&self.spec().service);
        let cached = world.privates.get(self.object.namespace(), &private_name);
        world::wrote(self.context, world.put(cached.as_ref(), &private).await?);
        // Nothing goes that somebody still needs.
        let mut kept = self.part(report).await?;
        kept.services.extend(former.needed);
        kept.services.push(private_name);

        let wanted = self.wanted(public);
        let mode = self.mode(&state, &wanted);
        let misled = desired::misled(public, settings.resolver_proxy_port);
        let next = match (mode, misled) {
            (Mode::Proxy, Some(words)) => {
                self.leave_alone(&kept, words, report).await?;
                Next::CHANGE
            }
            (Mode::Serve, _) => {
                let next = self.serve(&state, public, &wanted, &kept, report).await?;
                report.mode = Some(mode);
                next
            }
            (Mode::Proxy, None) => {
                let next = self.redirect(&state, public, wanted, &kept, report, aside).await?;
                report.mode = Some(mode);
                next
            }
        };
        // What nothing was switched by may be new by then.
        let live = if world.is_live() { Next::CHANGE } else { retry };
        Ok(Some(next.and(kept.again).and(former.again).and(live)))
    }

    /// Whether the target that is followed is the one that the spec names.
    fn is_same_target(&self) -> bool {
        let entry = self.inner().directory.lookup(self.object.namespace(), &self.spec().service);
        entry.is_some_and(|entry| {
            entry.elasti == *self.request() && entry.spec.scale_target_ref == self.spec().scale_target_ref
        })
    }

    /// The one to which it yields. After a start, the directory may not know all of them yet; the cache does.
    fn older(&self, standing: Standing) -> Option<Request> {
        match standing {
            Standing::Yields { to } => Some(to),
            Standing::Owns { .. } => {
                let all = self.inner().world.naming(self.object.namespace(), &self.spec().service);
                let oldest = all.first().map(Request::from)?;
                (oldest != *self.request()).then_some(oldest)
            }
        }
    }

    /// The slices that lead to the resolver, where all requests are to.
    fn wanted(&self, public: &Service) -> Vec<EndpointSlice> {
        let Inner { world, settings, .. } = self.inner();
        desired::slices(&self.owner(), public, &world.resolver(), settings.resolver_proxy_port)
    }

    /// Who is to answer.
    fn mode(&self, state: &TargetState, wanted: &[EndpointSlice]) -> Mode {
        let Inner { world, settings, half_answered, .. } = self.inner();
        let (namespace, service) = (self.object.namespace(), &self.spec().service);
        // Where there is no target, whoever answers all the same goes on: it may be a name that is mistyped.
        if self.held || state.decision == Mode::Proxy && state.target.is_some() {
            return Mode::Proxy;
        }
        // By what may be old, nothing is switched.
        if !world.is_live() {
            return if world.redirects(namespace, service).is_empty() { Mode::Serve } else { Mode::Proxy };
        }
        // A redirect is not begun for a port that nobody answers at while others are answered: it may never have been. One
        // that there is ends when whoever comes by it finds a pod, or when none came for a while.
        let (answered, redirected) =
            (world.answered(namespace, service), world.redirected(namespace, service));
        let ways = desired::ways(wanted);
        let is_open = redirected.iter().any(|way| ways.contains(way) && !answered.contains(way));
        let is_over = half_answered.is_over(self.request(), settings.endpoints_patience);
        if answered.is_empty() || is_open && !is_over { Mode::Proxy } else { Mode::Serve }
    }

    /// Nobody is redirected: it would help nobody.
    async fn leave_alone(&self, kept: &Kept, words: String, report: &mut Report) -> Result<(), WorldError> {
        self.nobody_is_missed();
        self.end_redirect(kept).await?;
        report.wrong(REDIRECTED, "Headless", words);
        // Where requests went to the resolver before, they do no more.
        let was_proxy = status_of(self.object).mode.as_deref() == Some(Mode::Proxy.as_str());
        report.mode = was_proxy.then_some(Mode::Serve);
        Ok(())
    }

    /// Nothing leads to the resolver any more.
    async fn end_redirect(&self, kept: &Kept) -> Result<(), WorldError> {
        let world = &self.inner().world;
        // Those that an operator before us has left, too, which nobody owns.
        for slice in world.redirects(self.object.namespace(), &self.spec().service) {
            world.remove_cached(&slice).await?;
        }
        world.sweep(self.object, &kept.services, &kept.slices).await
    }

    /// Endpoints are not waited for.
    fn nobody_is_missed(&self) {
        let Inner { unanswered, half_answered, .. } = self.inner();
        unanswered.over(self.request());
        half_answered.over(self.request());
    }

    /// That pods do not answer by some ways.
    fn not_answered(&self, state: &TargetState, ways: &BTreeSet<Way>) -> String {
        format!(
            "{}, but none of them answers for the Service {} at {}: its targetPort must be a port of the target's pods, and \
             they must have addresses of that family",
            state.why,
            self.spec().service,
            desired::named_ways(ways)
        )
    }

    /// The pods answer.
    async fn serve(
        &self,
        state: &TargetState,
        public: &Service,
        wanted: &[EndpointSlice],
        kept: &Kept,
        report: &mut Report,
    ) -> Result<Next, WorldError> {
        let Inner { world, unanswered, half_answered, settings, .. } = self.inner();
        let request = self.request();
        unanswered.over(request);
        self.end_redirect(kept).await?;
        let answered = world.answered(self.object.namespace(), &self.spec().service);
        let dead: BTreeSet<Way> = desired::ways(wanted).difference(&answered).cloned().collect();
        let is_half = state.target.is_some() && world.is_live() && !dead.is_empty();
        // One family may be a moment behind the other.
        let left = match is_half {
            true => half_answered.left(request, settings.endpoints_patience),
            false => {
                half_answered.over(request);
                None
            }
        };
        match state.target {
            Some(_) if is_half && left.is_none() => {
                let words = format!("{}; requests there are not kept", self.not_answered(state, &dead));
                report.wrong(REDIRECTED, "PortsNotAnswered", words);
            }
            Some(_) => {
                let resolver = world.resolver();
                // What holds while the resolver is away holds for all, and is said when it matters.
                let deaf = || desired::unheard(public, &resolver).filter(|_| resolver.hears(public));
                let words = match desired::misled(public, settings.resolver_proxy_port).or_else(deaf) {
                    Some(words) => format!("{}; the target cannot be put to sleep: {words}", state.why),
                    None => state.why.clone(),
                };
                report.neutral(REDIRECTED, false, "PodsReady", words);
            }
            None => {
                report.neutral(
                    REDIRECTED,
                    false,
                    "PodsAnswer",
                    "its Service is answered by pods all the same",
                );
            }
        }
        Ok(left.into())
    }

    /// The resolver answers.
    async fn redirect(
        &self,
        state: &TargetState,
        public: &Service,
        mut wanted: Vec<EndpointSlice>,
        kept: &Kept,
        report: &mut Report,
        aside: &mut Aside,
    ) -> Result<Next, WorldError> {
        let Inner { world, settings, unanswered, half_answered, .. } = self.inner();
        let resolver = world.resolver();
        let answered = world.answered(self.object.namespace(), &self.spec().service);
        let is_waking = state.decision == Mode::Serve && !self.held;
        // Where pods answer without a target, they go on.
        let is_partial = is_waking || state.target.is_none() && !self.held;
        if is_partial && world.is_live() {
            wanted = desired::without(wanted, &answered);
        }
        let (mut names, mut written) = (Vec::new(), Vec::new());
        for slice in &wanted {
            let name = slice.metadata.name.clone().unwrap_or_default();
            let cached = world.slice(self.object.namespace(), &name);
            written.extend(world::wrote(self.context, world.put(cached.as_ref(), slice).await?));
            names.push(name);
        }
        let slices: Vec<_> = names.iter().chain(&kept.slices).cloned().collect();
        world.sweep(self.object, &kept.services, &slices).await?;

        let left_out = desired::left_out(public);
        let left_out = match left_out.is_empty() {
            true => String::new(),
            false => format!("; requests to {} cannot be kept and are not redirected", left_out.join(", ")),
        };
        if !resolver.hears(public) {
            let (namespace, service) = (&settings.resolver_namespace, &settings.resolver_service);
            let why = if resolver.is_empty() { "ready" } else { "of the address family of this Service" };
            report.wrong(
                REDIRECTED,
                "ResolverUnavailable",
                format!(
                    "no endpoint of the resolver's Service {namespace}/{service} is {why}, so requests are lost: see that the \
                     resolver runs"
                ),
            );
            self.nobody_is_missed();
            return Ok(Next::CHANGE);
        }
        if let Some(words) = desired::unheard(public, &resolver).filter(|_| !is_waking) {
            // It does what it can, and nothing is put to sleep for it.
            self.nobody_is_missed();
            report.wrong_though(REDIRECTED, "FamilyNotRedirected", format!("{words}{left_out}"));
            return Ok(Next::CHANGE);
        }
        if self.held {
            aside.redirected = Some(Done { slices: names, written });
        }
        if !is_waking {
            self.nobody_is_missed();
            let why = if self.held { "it is about to sleep" } else { state.why.as_str() };
            report.neutral(REDIRECTED, true, "TargetNotReady", format!("{why}{left_out}"));
            return Ok(Next::CHANGE);
        }
        let service = &self.spec().service;
        let (patience, other, reason, words) = match answered.is_empty() {
            true => (
                unanswered,
                half_answered,
                "SelectorMatchesNothing",
                format!(
                    "{}, but the Service {service} leads to none of them: its selector must match the labels of the target's \
                     pods{left_out}",
                    state.why
                ),
            ),
            false => (
                half_answered,
                unanswered,
                "PortsNotAnswered",
                format!("{}{left_out}", self.not_answered(state, &desired::ways(&wanted))),
            ),
        };
        other.over(self.request());
        match patience.left(self.request(), settings.endpoints_patience) {
            // They become ready first, and endpoints after that.
            Some(left) => {
                report.neutral(
                    REDIRECTED,
                    true,
                    "WaitingForEndpoints",
                    format!("{}, and are about to answer", state.why),
                );
                Ok(Next::after(left))
            }
            None => {
                report.wrong_though(REDIRECTED, reason, words);
                // Where some answer, the redirect of the others ends at the next look.
                Ok(if answered.is_empty() { Next::CHANGE } else { Next::after(LOOK) })
            }
        }
    }
}

impl Operator {
    pub(super) fn finalizer(&self) -> Finalizer {
        Finalizer::of::<ElastiService>(self.inner.factory.client(), FINALIZER).manager(NAME)
    }

    /// A sleep that somebody began is not settled: that is said, and tried again.
    fn unsettled(&self, request: &Request, error: &BoxError, report: &mut Report) -> Next {
        let Inner { settings, interrupted, .. } = &*self.inner;
        let (reason, words, is_for_people) = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(error), _) => (WorldError::reason(error), error.words(), error.is_for_people()),
            (_, Some(error)) => (ScaleError::reason(error), format!("{error}; it is tried again"), false),
            (None, None) => ("Unreadable", error.to_string(), true),
        };
        report.wrong(READY, reason, words);
        let is_soon = !is_for_people && !interrupted.is_over(request, settings.in_flight);
        Next::after(if is_soon { settings.retry.min(LOOK) } else { settings.retry })
    }
}
