//! One look at one ElastiService, and what is missing is done.
//!
//! In this order: the finalizer; the claim to its Service; the watches of Service and target; the private Service; the
//! slices, where requests are redirected; then what is not wanted any more is deleted; then the status. Each step can fail,
//! and is tried again with all before it: a step that is done costs nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use kube_informer::controller::{Action, BoxError, Context, Reconciler, Request};
use kube_informer::object::Object;
use kube_informer::write::Finalizer;

use super::desired::{self, Owner};
use super::holds::Redirect;
use super::report::{READY, REDIRECTED, Report};
use super::world::{self, WorldError};
use super::{Inner, NAME, Operator};
use crate::api::{ElastiService, ElastiServiceSpec, FINALIZER, Mode};
use crate::directory::Standing;
use crate::names;
use crate::ops_informer::TargetState;

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
        let held = self.inner.holds.is_held(request);
        let outcome = match object.view() {
            Ok(elasti) => {
                let one = One { operator: self, context: &context, object: &object, elasti, held };
                one.act(&mut report).await
            }
            Err(error) => {
                self.inner.directory.remove(request);
                let words =
                    format!("it cannot be read: {error}; write it as the definition of ElastiServices says");
                report.wrong(READY, "Unreadable", words);
                Ok(Some(Action::done()))
            }
        };
        let outcome = match outcome {
            Ok(Some(action)) => Ok(action),
            // Nothing is known yet, so nothing is said. Who knows it tells.
            Ok(None) => return Ok(Action::done()),
            Err(error) => {
                report.mode = None;
                report.wrong(READY, error.reason(), error.words());
                // Where only somebody else can help, it is no use to try again at once, and none to wait ever longer.
                match error.is_for_people() {
                    true => Ok(Action::requeue_after(self.inner.settings.retry)),
                    false => Err(error.into()),
                }
            }
        };
        if held && (report.is_wrong() || report.mode != Some(Mode::Proxy)) {
            let why = report.first_wrong().unwrap_or_else(|| "nothing can be done for it".to_owned());
            self.inner.holds.tell(request, Redirect::Refused(why));
        }
        self.say(&context, &object, report).await?;
        outcome
    }
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
    async fn act(&self, report: &mut Report) -> Result<Option<Action>, WorldError> {
        let Inner { directory, ops, world, settings, leaving, lingering, .. } = self.inner();
        let retry = Action::requeue_after(settings.retry);
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
        let (Some(public), Some(target)) = (public, target) else {
            // What is there stays: it is either still right, or nobody is there who could be asked.
            let is_awake = state.and_then(|state| state.target).is_none_or(|target| target.spec_replicas > 0);
            return self.keep_up(is_awake, report).await.map(|action| Some(action.unwrap_or(retry)));
        };
        let Some(state) = state else { return Ok(None) };
        self.say_target(&state, report);

        let note = desired::target_note(&target, &self.spec().scale_target_ref.name);
        self.wake_former_target(&note).await?;
        let private = desired::private_service(&self.owner(), &public, note);
        let private_name = names::private_service(&self.spec().service);
        let cached = world.privates.get(self.object.namespace(), &private_name);
        world::wrote(self.context, world.put(cached.as_ref(), &private).await?);

        let mode = self.mode(&state);
        let action = match mode {
            Mode::Serve => self.serve(&state, &private_name, report).await?,
            Mode::Proxy => self.redirect(&state, &public, &private_name, report).await?,
        };
        report.mode = Some(mode);
        // What nothing was switched by may be new by then.
        Ok(Some(if world.is_live() { action } else { retry }))
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

    /// Who is to answer.
    fn mode(&self, state: &TargetState) -> Mode {
        let world = &self.inner().world;
        let (namespace, service) = (self.object.namespace(), &self.spec().service);
        // Where there is no target, whoever answers all the same goes on: it may be a name that is mistyped.
        if self.held || state.decision == Mode::Proxy && state.target.is_some() {
            return Mode::Proxy;
        }
        // By what may be old, nothing is switched.
        let answered = match world.is_live() {
            true => world.is_answered(namespace, service),
            false => world.redirects(namespace, service).is_empty(),
        };
        if answered { Mode::Serve } else { Mode::Proxy }
    }

    /// The pods answer.
    async fn serve(
        &self,
        state: &TargetState,
        private: &str,
        report: &mut Report,
    ) -> Result<Action, WorldError> {
        let Inner { world, unanswered, .. } = self.inner();
        unanswered.over(self.request());
        // Those that an operator before us has left, too, which nobody owns.
        for slice in world.redirects(self.object.namespace(), &self.spec().service) {
            world.remove_cached(&slice).await?;
        }
        world.sweep(self.object, Some(private), &[]).await?;
        match state.target {
            Some(_) => report.neutral(REDIRECTED, false, "PodsReady", state.why.clone()),
            None => {
                report.neutral(
                    REDIRECTED,
                    false,
                    "PodsAnswer",
                    "its Service is answered by pods all the same",
                );
            }
        }
        Ok(Action::done())
    }

    /// The resolver answers.
    async fn redirect(
        &self,
        state: &TargetState,
        public: &Service,
        private: &str,
        report: &mut Report,
    ) -> Result<Action, WorldError> {
        let Inner { world, settings, unanswered, holds, .. } = self.inner();
        let resolver = world.resolver();
        let wanted = desired::slices(&self.owner(), public, &resolver, settings.resolver_proxy_port);
        let (mut names, mut written) = (Vec::new(), Vec::new());
        for slice in &wanted {
            let name = slice.metadata.name.clone().unwrap_or_default();
            let cached = world.slice(self.object.namespace(), &name);
            written.extend(world::wrote(self.context, world.put(cached.as_ref(), slice).await?));
            names.push(name);
        }
        world.sweep(self.object, Some(private), &names).await?;

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
            unanswered.over(self.request());
            return Ok(Action::done());
        }
        let port = settings.resolver_proxy_port;
        if let Some((reason, words)) = desired::unheard(public, &resolver, port) {
            // It does what it can, and nothing is put to sleep for it.
            unanswered.over(self.request());
            report.wrong_though(REDIRECTED, reason, format!("{words}{left_out}"));
            return Ok(Action::done());
        }
        if self.held {
            holds.tell(self.request(), Redirect::Done(written));
        }
        if state.decision == Mode::Proxy || self.held {
            unanswered.over(self.request());
            let why = if self.held { "it is about to sleep" } else { state.why.as_str() };
            report.neutral(REDIRECTED, true, "TargetNotReady", format!("{why}{left_out}"));
            return Ok(Action::done());
        }
        let service = &self.spec().service;
        let words = format!(
            "{}, but the Service {service} leads to none of them: its selector must match the labels of the target's pods{left_out}",
            state.why
        );
        match unanswered.left(self.request(), settings.endpoints_patience) {
            // They become ready first, and endpoints after that.
            Some(left) => {
                report.neutral(
                    REDIRECTED,
                    true,
                    "WaitingForEndpoints",
                    format!("{}, and are about to answer", state.why),
                );
                Ok(Action::requeue_after(left))
            }
            None => {
                report.wrong_though(REDIRECTED, "SelectorMatchesNothing", words);
                Ok(Action::done())
            }
        }
    }
}

impl Operator {
    pub(super) fn finalizer(&self) -> Finalizer {
        Finalizer::of::<ElastiService>(self.inner.factory.client(), FINALIZER).manager(NAME)
    }
}
