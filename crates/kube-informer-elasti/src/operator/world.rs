//! What the operator sees, and what it writes.
//!
//! It sees ElastiServices, the private Services that it made, and *all* EndpointSlices: those of the Services that it
//! redirects, those of the resolver, and those that an operator before it has left behind. One watch is cheaper than one for
//! each namespace, and what is kept of a slice is small.
//!
//! Writes are compared with what is there, and made only where something differs. A write of what was read says which
//! version that was: where others were faster, it is read again. Deletions name the UID: another object of the same name is
//! left alone.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube_client::core::Resource as KubeResource;
use kube_informer::cache::Index;
use kube_informer::controller::{Context, Request};
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope, State, Written};
use kube_informer::object::Object;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::desired::{self, Amended, MANAGED_BY, MANAGER, Resolver, SERVICE_NAME, Way};
use super::{NAME, OperatorSettings};
use crate::api::{self, ElastiService, ElastiServiceSpec};
use crate::scale::ScaleError;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What it has to be allowed for what it makes.
const OBJECTS: &str = "get, list, watch, create, update and delete services and endpointslices";

/// What it has to be allowed for what it notes.
const NOTES: &str = "get, list, watch and patch elastiservices";

/// How often something is read again that others change at the same time.
const TRIES: usize = 4;

/// See the [module](self).
pub(super) struct World {
    factory: Factory,
    resolver: (String, String),
    pub(super) elastis: Informer<ElastiService>,
    pub(super) slices: Informer<EndpointSlice>,
    pub(super) privates: Informer<Service>,
    /// Slices that were deleted, by UID, for as long as the cache still has them.
    removed: Mutex<HashMap<String, (String, String)>>,
}

/// Something could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorldError {
    #[error("{tried}: {why}")]
    Failed {
        tried: String,
        why: String,
        /// What the operator has to be allowed for it.
        needs: &'static str,
        #[source]
        source: Box<kube_client::Error>,
    },
    #[error("{tried}: no answer within {PATIENCE:?}; whether it was done is unknown")]
    Silent { tried: String },
    #[error("{tried}: others changed it whenever it was to be written")]
    Contended { tried: String },
    #[error("{tried}: it belongs to somebody else; rename or delete it, so that it can be made")]
    Taken { tried: String },
    #[error("{name} is not the target any more, and may still sleep: {source}")]
    Asleep {
        name: String,
        #[source]
        source: ScaleError,
    },
    #[error("{tried}: the cached object cannot be read")]
    View {
        tried: String,
        #[source]
        source: kube_informer::encoding::ViewError,
    },
}

/// An object that the operator makes.
pub(super) trait Made:
    KubeResource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    fn amended(there: &Self, wanted: &Self) -> Amended<Self>;
}

impl Made for Service {
    fn amended(there: &Self, wanted: &Self) -> Amended<Self> {
        desired::amended_service(there, wanted)
    }
}

impl Made for EndpointSlice {
    fn amended(there: &Self, wanted: &Self) -> Amended<Self> {
        desired::amended_slice(there, wanted)
    }
}

impl World {
    pub(super) fn new(factory: &Factory, settings: &OperatorSettings) -> Self {
        let scope = settings.scope.clone();
        let privates = factory.configure::<Service>(scope.clone());
        let privates = match privates.labels(&format!("{MANAGED_BY}={MANAGER}")) {
            Ok(privates) => privates.informer(),
            // There is no way to get here: the text is a selector.
            Err(_) => factory.informer(scope.clone()),
        };
        let slices = factory.informer::<EndpointSlice>(with(&scope, &settings.resolver_namespace));
        let elastis = factory.informer::<ElastiService>(scope);
        for index in [Index::label(SERVICE_NAME), Index::controller()] {
            // Where somebody else has added the same, it is there.
            drop(slices.add_index(index));
        }
        drop(privates.add_index(Index::controller()));
        if let Ok(index) = Index::pointer("/spec/service") {
            drop(elastis.add_index(index));
        }
        let resolver = (settings.resolver_namespace.clone(), settings.resolver_service.clone());
        Self { factory: factory.clone(), resolver, elastis, slices, privates, removed: Mutex::default() }
    }

    /// Where the resolver can be reached now.
    pub(super) fn resolver(&self) -> Resolver {
        let (namespace, service) = &self.resolver;
        let slices: Vec<_> =
            self.slices_of(namespace, service).filter_map(|slice| slice.view().ok()).collect();
        Resolver::of(slices.iter().map(|slice| &**slice))
    }

    /// Whether a slice is one of the resolver's.
    pub(super) fn is_of_resolver(&self, slice: &Object<EndpointSlice>) -> bool {
        let (namespace, service) = &self.resolver;
        slice.namespace() == namespace && slice.labels().get(SERVICE_NAME) == Some(service)
    }

    /// All slices of a Service, whoever made them.
    pub(super) fn slices_of(
        &self,
        namespace: &str,
        service: &str,
    ) -> impl Iterator<Item = Object<EndpointSlice>> + use<> {
        let all = self.slices.list().namespace(namespace).index(&format!("label:{SERVICE_NAME}"), service);
        all.ok().into_iter().flatten()
    }

    /// The ways by which a Service leads to pods of its own that take requests.
    pub(super) fn answered(&self, namespace: &str, service: &str) -> BTreeSet<Way> {
        let own = self.slices_of(namespace, service).filter(|slice| {
            !desired::is_to_resolver(slice.name(), service) && slice.deletion().is_none() && !is_ours(slice)
        });
        let own: Vec<_> = own.filter_map(|slice| slice.view().ok()).collect();
        desired::answered(own.iter().map(|slice| &**slice))
    }

    /// The ways by which a Service leads to the resolver.
    pub(super) fn redirected(&self, namespace: &str, service: &str) -> BTreeSet<Way> {
        let names = desired::slice_names(service);
        let slices = names.iter().filter_map(|name| self.slice(namespace, name)?.view().ok());
        let slices: Vec<_> = slices.collect();
        desired::ways(slices.iter().map(|slice| &**slice))
    }

    /// Whether pods of its own take requests to a Service, whichever way they come that leads to the resolver now. Where the
    /// Service is known, ways that it does not have any more do not count.
    pub(super) fn is_answered(&self, namespace: &str, service: &str, public: Option<&Service>) -> bool {
        let answered = self.answered(namespace, service);
        let mut redirected = self.redirected(namespace, service);
        if let Some(public) = public {
            let there = desired::ways_of(public);
            redirected.retain(|way| there.contains(way));
        }
        !answered.is_empty() && redirected.is_subset(&answered)
    }

    /// Whether what is known of slices is what the server has.
    pub(super) fn is_live(&self) -> bool {
        self.slices.health().state == State::Live
    }

    /// The slices that lead from a Service to the resolver, whoever made them.
    pub(super) fn redirects(&self, namespace: &str, service: &str) -> Vec<Object<EndpointSlice>> {
        let names = desired::slice_names(service);
        names.iter().filter_map(|name| self.slices.get(namespace, name)).collect()
    }

    /// A slice of the cache. One that was deleted from here is not there, whatever the cache still says.
    pub(super) fn slice(&self, namespace: &str, name: &str) -> Option<Object<EndpointSlice>> {
        let removed = self.removed();
        self.slices.get(namespace, name).filter(|slice| !removed.contains_key(&slice.uid().to_string()))
    }

    /// It was deleted. What the cache has lost since then is forgotten: no more is kept than it has.
    fn note_removed(&self, namespace: &str, name: &str, uid: &str) {
        let mut removed = self.removed();
        removed.insert(uid.to_owned(), (namespace.to_owned(), name.to_owned()));
        removed.retain(|uid, (namespace, name)| {
            self.slices.get(namespace, name).is_some_and(|slice| slice.uid().to_string() == *uid)
        });
    }

    fn removed(&self) -> MutexGuard<'_, HashMap<String, (String, String)>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An API of a namespace.
    pub(super) fn api<T: KubeResource<DynamicType = (), Scope = NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<T> {
        Api::namespaced(self.factory.client(), namespace)
    }

    /// An object as the server has it.
    pub(super) async fn read<T>(&self, namespace: &str, name: &str) -> Result<Option<T>, WorldError>
    where
        T: KubeResource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let tried = format!("read the {} {namespace}/{name}", T::kind(&()));
        timely(&tried, self.api::<T>(namespace).get_opt(name)).await
    }

    /// Writes an annotation of an ElastiService, or takes it away, if it is the one that is meant.
    pub(super) async fn annotate(
        &self,
        elasti: &Request,
        uid: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), WorldError> {
        let tried = format!("note on the ElastiService {elasti} what is done with it");
        let patch = json!({ "metadata": { "uid": uid, "annotations": { key: value } } });
        let api = self.api::<ElastiService>(elasti.namespace());
        let params = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(&patch);
        let noted = timely(&tried, api.patch_metadata(elasti.name(), &params, &patch)).await;
        noted.map(drop).map_err(|error| match error {
            WorldError::Failed { tried, why, source, .. } => {
                WorldError::Failed { tried, why, needs: NOTES, source }
            }
            other => other,
        })
    }

    /// Sees to it that an object is there as it is wanted. Tells what was written, if anything was.
    pub(super) async fn put<T: Made>(
        &self,
        cached: Option<&Object<T>>,
        wanted: &T,
    ) -> Result<Option<Written>, WorldError> {
        let meta = wanted.meta();
        let (namespace, name) =
            (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
        let tried = format!("write the {} {namespace}/{name}", T::kind(&()));
        let api = self.api::<T>(&namespace);
        let mut there = match cached {
            Some(object) => {
                let view =
                    object.view().map_err(|source| WorldError::View { tried: tried.clone(), source })?;
                Some(T::clone(&view))
            }
            None => None,
        };
        for _ in 0..TRIES {
            let sent = match &there {
                None => timely(&tried, api.create(&PostParams::default(), wanted)).await,
                Some(known) if !desired::is_free(known.meta()) => return Err(WorldError::Taken { tried }),
                Some(known) => match T::amended(known, wanted) {
                    Amended::Same => return Ok(None),
                    Amended::Changed(new) => {
                        timely(&tried, api.replace(&name, &PostParams::default(), &new)).await
                    }
                    Amended::Anew => {
                        self.remove::<T>(&namespace, &name, known.meta().uid.as_deref()).await?;
                        there = None;
                        continue;
                    }
                },
            };
            match sent {
                Ok(written) => return Ok(Some(Written::of(&written))),
                // It is there already, is another version, or is gone.
                Err(WorldError::Failed { source, .. })
                    if is_code(&source, 409) || there.is_some() && is_code(&source, 404) =>
                {
                    there = timely(&tried, api.get_opt(&name)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(WorldError::Contended { tried })
    }

    /// Deletes an object, if it is the one that is meant. Gone is fine.
    pub(super) async fn remove<T: Made>(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<(), WorldError> {
        let tried = format!("delete the {} {namespace}/{name}", T::kind(&()));
        let preconditions = Preconditions { uid: uid.map(ToOwned::to_owned), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        match timely(&tried, self.api::<T>(namespace).delete(name, &params)).await {
            Ok(_) => Ok(()),
            // Gone, or another one by now.
            Err(WorldError::Failed { source, .. }) if is_code(&source, 404) || is_code(&source, 409) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an object of a cache, unless it goes already.
    pub(super) async fn remove_cached<T: Made>(&self, object: &Object<T>) -> Result<(), WorldError> {
        if object.deletion().is_some() {
            return Ok(());
        }
        let uid = object.uid().to_string();
        self.remove::<T>(object.namespace(), object.name(), Some(&uid)).await?;
        self.note_removed(object.namespace(), object.name(), &uid);
        Ok(())
    }

    /// Deletes everything that an ElastiService owns but these, by name.
    pub(super) async fn sweep(
        &self,
        elasti: &Object<ElastiService>,
        but_services: &[String],
        but_slices: &[String],
    ) -> Result<(), WorldError> {
        let namespace = elasti.namespace();
        for slice in self.slices.list().namespace(namespace).controlled_by(elasti) {
            if !but_slices.iter().any(|name| name == slice.name()) {
                self.remove_cached(&slice).await?;
            }
        }
        for service in self.privates.list().namespace(namespace).controlled_by(elasti) {
            if !but_services.iter().any(|name| name == service.name()) {
                self.remove_cached(&service).await?;
            }
        }
        Ok(())
    }

    /// Whether an ElastiService owns anything.
    pub(super) fn owns(&self, elasti: &Object<ElastiService>) -> bool {
        let namespace = elasti.namespace();
        !self.slices.list().namespace(namespace).controlled_by(elasti).is_empty()
            || !self.privates.list().namespace(namespace).controlled_by(elasti).is_empty()
    }

    /// The ElastiServices that name a Service, and stay, the oldest first. Those that cannot be read, or lack something, do
    /// not count: nothing is done for them.
    pub(super) fn naming(&self, namespace: &str, service: &str) -> Vec<Object<ElastiService>> {
        let all = self.elastis.list().namespace(namespace).index("/spec/service", service);
        let counts = |object: &Object<ElastiService>| {
            object.deletion().is_none() && object.view().is_ok_and(|elasti| problem(&elasti.spec).is_none())
        };
        let mut all: Vec<_> = all.into_iter().flatten().filter(counts).collect();
        all.sort_by(|a, b| (a.created(), a.name()).cmp(&(b.created(), b.name())));
        all
    }
}

/// What is wrong with a spec, whatever there is in the cluster: in one word, and in more.
pub(super) fn problem(spec: &ElastiServiceSpec) -> Option<(&'static str, String)> {
    let target = &spec.scale_target_ref;
    let named = [
        ("spec.service", &spec.service),
        ("spec.scaleTargetRef.apiVersion", &target.api_version),
        ("spec.scaleTargetRef.kind", &target.kind),
        ("spec.scaleTargetRef.name", &target.name),
    ];
    if let Some((field, _)) = named.iter().find(|(_, value)| value.is_empty()) {
        return Some(("Incomplete", format!("{field} is missing: write it")));
    }
    // It becomes a part of paths and of other names.
    let is_name = |text: &str| text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    (!is_name(&spec.service)).then(|| {
        let words = format!("spec.service is {:?}, which no Service can be called: correct it", spec.service);
        ("InvalidServiceName", words)
    })
}

/// Whom a slice is to be looked at for: the ElastiService that owns it.
pub(super) fn owner_of(slice: &Object<EndpointSlice>) -> Option<Request> {
    is_ours(slice)
        .then(|| slice.controller().map(|owner| Request::new(slice.namespace(), &owner.name)))
        .flatten()
}

fn is_ours(slice: &Object<EndpointSlice>) -> bool {
    slice.controller().is_some_and(|owner| {
        *owner.kind == *api::KIND
            && owner.api_version.split_once('/').is_some_and(|(group, _)| group == api::GROUP)
    })
}

/// What a reconcile wrote is waited for.
pub(super) fn wrote(context: &Context<ElastiService>, written: Option<Written>) -> Option<Written> {
    if let Some(written) = &written {
        context.wrote(written);
    }
    written
}

/// A scope, with one namespace more.
fn with(scope: &Scope, namespace: &str) -> Scope {
    match scope {
        Scope::Namespaces(namespaces) => {
            Scope::namespaces(namespaces.iter().cloned().chain([namespace.to_owned()]))
        }
        _ => Scope::All,
    }
}

async fn timely<T>(
    tried: &str,
    request: impl Future<Output = Result<T, kube_client::Error>>,
) -> Result<T, WorldError> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(WorldError::Failed {
            tried: tried.to_owned(),
            why: describe(&error),
            needs: OBJECTS,
            source: Box::new(error),
        }),
        Err(_) => Err(WorldError::Silent { tried: tried.to_owned() }),
    }
}

fn describe(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn is_code(error: &kube_client::Error, code: u16) -> bool {
    matches!(error, kube_client::Error::Api(status) if status.code == code)
}

impl WorldError {
    /// In one word.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Failed { source, .. } if is_code(source, 403) => "Forbidden",
            Self::Failed { source, .. } if is_code(source, 400) || is_code(source, 422) => "Rejected",
            Self::Taken { .. } => "NameTaken",
            Self::Asleep { source, .. } if !source.is_transient() => source.reason(),
            Self::Failed { .. }
            | Self::Silent { .. }
            | Self::Contended { .. }
            | Self::Asleep { .. }
            | Self::View { .. } => "WriteFailed",
        }
    }

    /// Whether what it was about is not there any more, or is another one by now.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Failed { source, .. } if is_code(source, 404) || is_code(source, 409))
    }

    /// Whether somebody has to do something about it.
    pub(super) fn is_for_people(&self) -> bool {
        matches!(self.reason(), "Forbidden" | "Rejected" | "NameTaken")
    }

    /// What is said to people, with what to do.
    pub(super) fn words(&self) -> String {
        match (self, self.reason()) {
            (Self::Failed { needs, .. }, "Forbidden") => {
                format!("{self}; allow the operator's ServiceAccount to {needs}")
            }
            (Self::Asleep { .. }, _) => format!("{self}; it is tried again"),
            (_, "Rejected") => {
                format!("{self}; look at what checks writes to it: its definition, quotas, webhooks")
            }
            (_, "WriteFailed") => format!("{self}; it is tried again"),
            _ => self.to_string(),
        }
    }
}
