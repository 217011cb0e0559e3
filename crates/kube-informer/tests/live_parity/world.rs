//! A real server that serves every API it has, and on it an object of every kind.
//!
//! It is a server of its own: what is created here (webhooks, quotas, flow schemas, API services) would be in
//! the way of other tests, and not every API is served unless asked for.

use std::collections::BTreeMap;

use http::StatusCode;
use kube_informer_testbed::binaries::Unavailable;
use kube_informer_testbed::cluster::{Cluster, OwnCluster};
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::http::{Endpoint, Response};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

mod objects;

use objects::{LIMITS, NAMESPACE, Planned};

/// The server, what it serves, and what was put there.
#[derive(Debug)]
pub(crate) struct World {
    cluster: OwnCluster,
    /// Everything that the server lists, but subresources.
    pub(crate) resources: Vec<Resource>,
    /// What was created.
    pub(crate) objects: Vec<Object>,
}

/// A resource, as discovery shows it.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The path of the resource in all namespaces.
    pub(crate) path: String,
    plural: String,
    namespaced: bool,
    pub(crate) verbs: Vec<String>,
    has_status: bool,
}

/// An object that is on the server.
#[derive(Debug)]
pub(crate) struct Object {
    /// In [`World::resources`].
    resource: usize,
    pub(crate) path: String,
}

impl World {
    /// The world of this process, made by the first who asks.
    pub(crate) async fn shared() -> Result<&'static Self, Unavailable> {
        static WORLD: OnceCell<Result<World, Unavailable>> = OnceCell::const_new();
        WORLD.get_or_init(Self::make).await.as_ref().map_err(Clone::clone)
    }

    async fn make() -> Result<Self, Unavailable> {
        let options = Options::new()
            .apiserver_flag("--runtime-config=api/all=true")
            .apiserver_flag("--feature-gates=AllAlpha=true,AllBeta=true");
        let cluster = Cluster::own(options).await?;
        // Before anything is created: an API service without a server is in the way of discovery.
        let resources = discover(cluster.endpoint()).await;
        let mut world = Self { cluster, resources, objects: Vec::new() };
        world.populate().await.map_err(|error| Unavailable::broken(&error))?;
        Ok(world)
    }

    /// A client of this test's own.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.cluster.admin().clone()).unwrap()
    }

    /// The resources of which objects can be created and read again.
    pub(crate) fn creatable(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter().filter(|resource| resource.is_creatable())
    }

    /// What was created, with its resource.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&Resource, &Object)> {
        self.objects.iter().map(|object| (&self.resources[object.resource], object))
    }

    async fn populate(&mut self) -> anyhow::Result<()> {
        let endpoint = self.endpoint();
        for namespace in [NAMESPACE, LIMITS] {
            let body = json!({ "metadata": { "name": namespace } });
            endpoint.post("/api/v1/namespaces", &body).await?.success()?;
        }
        let (mut counts, mut refused) = (BTreeMap::new(), Vec::new());
        for planned in objects::planned() {
            let kind = objects::kind_of(&planned.object);
            let Some(resource) = self.resources.iter().position(|resource| resource.is(&kind)) else {
                refused.push(format!("{kind:?} is not served"));
                continue;
            };
            // Versions of a resource share their names.
            let count = counts.entry(self.resources[resource].plural.clone()).or_insert(0);
            *count += 1;
            match create(&endpoint, &self.resources[resource], planned, *count).await {
                Ok(path) => self.objects.push(Object { resource, path }),
                Err(error) => refused.push(format!("{kind:?} number {count}: {error:#}")),
            }
        }
        anyhow::ensure!(
            refused.is_empty(),
            "{} objects are not possible:\n{}",
            refused.len(),
            refused.join("\n")
        );
        Ok(())
    }
}

impl Resource {
    fn is(&self, (api_version, kind): &(String, String)) -> bool {
        self.api_version == *api_version && self.kind == *kind
    }

    fn is_creatable(&self) -> bool {
        ["create", "get", "list"].iter().all(|verb| self.verbs.iter().any(|served| served == verb))
    }

    /// The path of the resource in a namespace, if it has namespaces.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        if !self.namespaced {
            return self.path.clone();
        }
        let group = self.path.strip_suffix(&self.plural).unwrap();
        format!("{group}namespaces/{namespace}/{}", self.plural)
    }
}

async fn discover(endpoint: &Endpoint) -> Vec<Resource> {
    let groups = endpoint.get_json("/apis").await.unwrap();
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    for group in groups["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let name = version["groupVersion"].as_str().unwrap().to_owned();
            versions.push((name.clone(), format!("/apis/{name}")));
        }
    }
    let mut resources = Vec::new();
    for (api_version, path) in versions {
        let list = endpoint.get_json(&path).await.unwrap();
        let listed = list["resources"].as_array().unwrap();
        let names: Vec<&str> = listed.iter().map(|resource| resource["name"].as_str().unwrap()).collect();
        for (resource, plural) in listed.iter().zip(&names).filter(|(_, name)| !name.contains('/')) {
            let verbs =
                resource["verbs"].as_array().unwrap().iter().map(|verb| verb.as_str().unwrap().to_owned());
            resources.push(Resource {
                api_version: api_version.clone(),
                kind: resource["kind"].as_str().unwrap().to_owned(),
                path: format!("{path}/{plural}"),
                plural: (*plural).to_owned(),
                namespaced: resource["namespaced"].as_bool().unwrap(),
                verbs: verbs.collect(),
                has_status: names.contains(&&*format!("{plural}/status")),
            });
        }
    }
    resources
}

/// Puts an object on the server; returns where it is.
async fn create(
    endpoint: &Endpoint,
    resource: &Resource,
    planned: Planned,
    count: usize,
) -> anyhow::Result<String> {
    let Planned { mut object, deleted } = planned;
    let metadata = &mut object["metadata"];
    if !metadata["name"].is_string() {
        metadata["name"] = Value::from(format!("{}-{count}", resource.plural));
    }
    let namespace = metadata["namespace"].as_str().unwrap_or(NAMESPACE);
    let collection = resource.collection(namespace);
    let path = format!("{collection}/{}", metadata["name"].as_str().unwrap_or_default());
    endpoint.post(&collection, &object).await?.success()?;
    let status = object.get("status").filter(|_| resource.has_status);
    if let Some(status) = status {
        let written: Response =
            endpoint.merge_patch(&format!("{path}/status"), &json!({ "status": status })).await?;
        written.success()?;
    }
    if deleted {
        let answer = endpoint.delete(&format!("{path}?gracePeriodSeconds=0")).await?.success()?;
        assert!(answer.status == StatusCode::OK || answer.status == StatusCode::ACCEPTED);
    }
    Ok(path)
}
