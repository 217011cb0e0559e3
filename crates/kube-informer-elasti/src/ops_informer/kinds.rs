//! From what a spec calls a kind to what the server calls it, and where its objects say how many they are.
//!
//! `Deployment`, `deployments` and `DEPLOYMENT` are one: nobody's spec is changed for that. What the server said is
//! remembered for some minutes, and that it has no such kind for some seconds: many ElastiServices name the same kinds. One
//! question at a time is asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::ACCEPT;
use kube_client::Error;
use kube_informer::connect::ResolveError;
use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::error::FollowError;
use super::paths::{Definition, Shape};
use crate::api::ScaleTargetRef;
use crate::scale::{chain, segment};

/// A kind whose objects can be scaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) resource: Resource,
    pub(super) shape: Shape,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    kinds: Memory<Arc<Kind>>,
    /// What the server calls them: enough for those who only scale.
    resources: Memory<Resource>,
    /// Held by the one who asks.
    asking: tokio::sync::Mutex<()>,
}

/// The API version, and the kind in small letters.
type Key = (String, String);

/// What the server said, for a while.
#[derive(Debug)]
struct Memory<T> {
    known: Mutex<HashMap<Key, Known<T>>>,
}

#[derive(Debug)]
struct Known<T> {
    until: Instant,
    said: Result<T, FollowError>,
}

/// How long it is remembered what a kind is. Definitions change, if seldom.
const REMEMBERED: Duration = Duration::from_secs(300);

/// How long it is remembered that there is no such kind: somebody may be about to install it. So long is also not asked again
/// of one that is known, where the server cannot be asked.
const MISSED: Duration = Duration::from_secs(5);

/// So many names of kinds are remembered.
const MOST: usize = 256;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);

impl Kinds {
    /// What a spec names.
    pub(super) async fn resolve(
        &self,
        factory: &Factory,
        reference: &ScaleTargetRef,
    ) -> Result<Arc<Kind>, FollowError> {
        kubectl_name(reference)?;
        let key = key(reference);
        if let Some(kind) = self.kinds.get(&key) {
            return kind;
        }
        let _one = self.asking.lock().await;
        // Whoever asked before may have asked the same.
        if let Some(kind) = self.kinds.get(&key) {
            return kind;
        }
        let kind = async {
            let resource = self.look_up(factory, reference).await?;
            let shape = shape(factory, reference, &resource).await?;
            Ok(Arc::new(Kind { resource, shape }))
        };
        self.kinds.keep(key, kind.await)
    }

    /// What the server calls what a spec names.
    pub(super) async fn resource(
        &self,
        factory: &Factory,
        reference: &ScaleTargetRef,
    ) -> Result<Resource, FollowError> {
        if let Some(resource) = self.resources.get(&key(reference)) {
            return resource;
        }
        let _one = self.asking.lock().await;
        self.look_up(factory, reference).await
    }

    /// In one's turn to ask.
    async fn look_up(&self, factory: &Factory, reference: &ScaleTargetRef) -> Result<Resource, FollowError> {
        let key = key(reference);
        match self.resources.get(&key) {
            Some(resource) => resource,
            None => self.resources.keep(key, look_up(factory, reference).await),
        }
    }

    /// Asks anew when it is asked for the next time.
    pub(super) fn forget(&self, reference: &ScaleTargetRef) {
        let key = key(reference);
        self.kinds.lock().remove(&key);
        self.resources.lock().remove(&key);
    }
}

impl<T: Clone> Memory<T> {
    fn get(&self, key: &Key) -> Option<Result<T, FollowError>> {
        let known = self.lock();
        known.get(key).filter(|found| found.until > Instant::now()).map(|found| found.said.clone())
    }

    /// Remembers what the server said. What counts then is what was known before, where it said nothing.
    fn keep(&self, key: Key, mut said: Result<T, FollowError>) -> Result<T, FollowError> {
        let is_answer =
            matches!(said, Ok(_) | Err(FollowError::UnknownKind { .. } | FollowError::NotScalable { .. }));
        let mut known = self.lock();
        if !is_answer {
            // What was known stays so until the server says otherwise.
            let Some(Known { said: Ok(before), .. }) = known.remove(&key) else { return said };
            said = Ok(before);
        }
        let kept = if is_answer && said.is_ok() { REMEMBERED } else { MISSED };
        let now = Instant::now();
        if known.len() >= MOST {
            known.retain(|_, found| found.until > now);
        }
        if known.len() < MOST {
            known.insert(key, Known { until: now + kept, said: said.clone() });
        }
        said
    }
}

impl<T> Memory<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Known<T>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

fn key(reference: &ScaleTargetRef) -> Key {
    (reference.api_version.clone(), reference.kind.to_lowercase())
}

/// `Deployment.v1.apps`.
fn kubectl_name(reference: &ScaleTargetRef) -> Result<String, FollowError> {
    let wrong = |why: String| Err(FollowError::Reference { why });
    let ScaleTargetRef { api_version, kind, name } = reference;
    for (field, text) in [("apiVersion", api_version), ("kind", kind), ("name", name)] {
        if text.trim().is_empty() {
            return wrong(format!("{field} is empty"));
        }
    }
    let (group, version) = reference.group_and_version();
    if version.is_empty()
        || version.contains(['.', '/'])
        || group.contains('/')
        || api_version.starts_with('/')
    {
        return wrong(format!("{api_version:?} is no apiVersion; apps/v1 would be one"));
    }
    if kind.contains(['.', '/']) {
        return wrong(format!("{kind:?} is no kind; Deployment would be one"));
    }
    Ok(format!("{kind}.{version}.{group}"))
}

async fn look_up(factory: &Factory, reference: &ScaleTargetRef) -> Result<Resource, FollowError> {
    let name = kubectl_name(reference)?;
    let unknown = |why: String| FollowError::UnknownKind { reference: reference.to_string(), why };
    let unreachable = |why: String| FollowError::Unreachable { tried: format!("look up {reference}"), why };
    let resource = factory.resolve(&name).await.map_err(|error| match error {
        ResolveError::Discovery { reason, .. } => unreachable(reason),
        ResolveError::NotFound(missing) => match unread(&missing.unreadable, &reference.api_version) {
            // It may be there.
            Some(why) => unreachable(format!("what the server has there cannot be read: {why}")),
            None => unknown(missing.to_string()),
        },
        other => unknown(other.to_string()),
    })?;
    // A group may be written as its beginning for people; a spec says it in whole.
    if (resource.group.as_str(), resource.version.as_str()) != reference.group_and_version() {
        return Err(unknown(format!(
            "the server has {resource}, and no such kind in {}",
            reference.api_version
        )));
    }
    Ok(resource)
}

/// What could not be read of a group and version, among all that could not be.
fn unread<'a>(unreadable: &'a [String], api_version: &str) -> Option<&'a str> {
    let root = if api_version.contains('/') { "/apis" } else { "/api" };
    let is_about = |text: &&String| {
        text.split_once(": ").is_some_and(|(place, _)| place == api_version || place == root)
    };
    unreadable.iter().find(is_about).map(String::as_str)
}

async fn shape(
    factory: &Factory,
    reference: &ScaleTargetRef,
    resource: &Resource,
) -> Result<Shape, FollowError> {
    let not_scalable = |why: String| FollowError::NotScalable {
        reference: reference.to_string(),
        resource: resource.to_string(),
        why,
    };
    if !resource.namespaced {
        return Err(not_scalable("it is in no namespace".to_owned()));
    }
    if let Some(shape) = Shape::known(resource) {
        return Ok(shape);
    }
    let definition = format!("{}.{}", resource.plural, resource.group);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", segment(&definition));
    match get::<Definition>(factory, &path).await {
        Ok(definition) => Shape::declared(&definition, &resource.version).map_err(not_scalable),
        Err(Missed::NotFound(_)) if has_scale(factory, resource).await? => {
            Shape::conventional().map_err(not_scalable)
        }
        Err(Missed::Forbidden(why)) if has_scale(factory, resource).await? => Err(FollowError::Forbidden {
            tried: format!("read the paths of replicas from the definition {definition}"),
            why,
            advice: "allow the operator to get customresourcedefinitions in apiextensions.k8s.io".to_owned(),
        }),
        Err(Missed::NotFound(_) | Missed::Forbidden(_)) => {
            Err(not_scalable("the server has no scale subresource of it".to_owned()))
        }
        Err(Missed::Failed(why)) => {
            Err(FollowError::Unreachable { tried: format!("read the definition {definition}"), why })
        }
    }
}

/// Whether the server says that a resource has a scale subresource.
async fn has_scale(factory: &Factory, resource: &Resource) -> Result<bool, FollowError> {
    #[derive(Deserialize)]
    struct Served {
        #[serde(default)]
        resources: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let root = resource.root();
    match get::<Served>(factory, &root).await {
        Ok(served) => {
            let scale = format!("{}/scale", resource.plural);
            Ok(served.resources.iter().any(|each| each.name == scale))
        }
        Err(Missed::NotFound(why) | Missed::Forbidden(why) | Missed::Failed(why)) => {
            Err(FollowError::Unreachable { tried: format!("read what is served at {root}"), why })
        }
    }
}

/// Why there is no document.
enum Missed {
    NotFound(String),
    Forbidden(String),
    Failed(String),
}

async fn get<T: DeserializeOwned>(factory: &Factory, path: &str) -> Result<T, Missed> {
    let request = http::Request::get(path).header(ACCEPT, "application/json").body(Vec::new());
    let request = request.map_err(|error| Missed::Failed(error.to_string()))?;
    match tokio::time::timeout(PATIENCE, factory.client().request::<T>(request)).await {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(Error::Api(status))) if status.code == 404 => Err(Missed::NotFound(status.message.clone())),
        Ok(Err(Error::Api(status))) if matches!(status.code, 401 | 403) => {
            Err(Missed::Forbidden(status.message.clone()))
        }
        Ok(Err(error)) => Err(Missed::Failed(chain(&error))),
        Err(_) => Err(Missed::Failed(format!("no answer within {PATIENCE:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(api_version: &str, kind: &str, name: &str) -> ScaleTargetRef {
        ScaleTargetRef { api_version: api_version.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_kind_is_asked_for_with_its_version_and_group() {
        for (api_version, kind, asked) in [
            ("apps/v1", "Deployment", "Deployment.v1.apps"),
            ("apps/v1", "deployments", "deployments.v1.apps"),
            ("argoproj.io/v1alpha1", "rollouts", "rollouts.v1alpha1.argoproj.io"),
            ("v1", "ReplicationController", "ReplicationController.v1."),
        ] {
            assert_eq!(kubectl_name(&reference(api_version, kind, "web")).unwrap(), asked);
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_missing() {
        let unreadable = ["apps/v1: 503: away", "metrics.k8s.io/v1beta1: 503: away"].map(str::to_owned);
        assert_eq!(unread(&unreadable, "apps/v1"), Some("apps/v1: 503: away"));
        for other in ["apps/v2", "v1", "example.com/v1"] {
            assert_eq!(unread(&unreadable, other), None, "{other}");
        }
        let roots = ["/apis: 503: away".to_owned()];
        assert!(unread(&roots, "apps/v1").is_some() && unread(&roots, "v1").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_said_is_remembered_for_a_while() {
        let memory = Memory::<u32>::default();
        let key = || ("apps/v1".to_owned(), "deployment".to_owned());
        let away = || Err(FollowError::Unreachable { tried: String::new(), why: "away".to_owned() });
        assert!(memory.keep(key(), away()).is_err());
        assert_eq!(memory.get(&key()), None, "nothing was said");
        assert_eq!(memory.keep(key(), Ok(1)), Ok(1));
        assert_eq!(memory.get(&key()), Some(Ok(1)));
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(memory.get(&key()), None);
        assert_eq!(memory.keep(key(), away()), Ok(1), "what was known stays so");
        tokio::time::advance(MISSED).await;
        assert_eq!(memory.get(&key()), None, "and is asked for again soon");
    }

    #[test]
    fn a_reference_that_is_none_says_what_is_wrong() {
        for (api_version, kind, name, why) in [
            ("", "Deployment", "web", "apiVersion is empty"),
            ("apps/v1", " ", "web", "kind is empty"),
            ("apps/v1", "Deployment", "", "name is empty"),
            ("apps/", "Deployment", "web", "no apiVersion"),
            ("/v1", "Deployment", "web", "no apiVersion"),
            ("apps/v1/x", "Deployment", "web", "no apiVersion"),
            ("apps/v1", "Deployment.apps", "web", "no kind"),
        ] {
            let error = kubectl_name(&reference(api_version, kind, name)).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!((error.reason(), error.is_permanent()), ("InvalidTargetRef", true));
        }
    }
}
