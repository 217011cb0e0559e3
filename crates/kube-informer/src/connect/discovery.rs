//! What the server serves: groups in the order of their priority, versions, resources.
//!
//! Everything at once where the server does that (aggregated discovery), else group by group. A group that cannot be
//! read, as of an aggregated server that is down, is missing with a reason and harms no other.

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Deserializer};

use super::Connection;
use crate::reflector::fault::Fault;

/// A large cluster has thousands of resources, of some hundred bytes each.
const LIMIT: usize = 64 << 20;

/// How many groups are read at a time.
const AT_ONCE: usize = 8;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
pub(super) const JSON: &str = "application/json";

/// What is served.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    /// In the order of their priority, the core group first.
    pub(super) groups: Vec<Group>,
    /// What could not be read, and why.
    pub(super) unreadable: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    /// Empty for the core group.
    pub(super) name: String,
    /// The preferred one first.
    pub(super) versions: Vec<Version>,
}

#[derive(Debug, Default)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) resources: Vec<Served>,
}

/// A resource that is served.
#[derive(Debug, Default)]
pub(super) struct Served {
    pub(super) plural: String,
    /// Lower case; made of the kind where the server does not say it.
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) short_names: Vec<String>,
    pub(super) verbs: Vec<String>,
}

impl Connection {
    /// What is served now.
    ///
    /// # Errors
    ///
    /// Where nothing at all can be read.
    pub(super) async fn discover(&self) -> Result<Discovery, Fault> {
        let mut discovery = Discovery::default();
        let mut failed = None;
        for root in ["/api", "/apis"] {
            match self.document(root, AGGREGATED, LIMIT).await.and_then(|body| Document::read(root, &body)) {
                Ok(document) => self.add(&mut discovery, root, document).await,
                // A server of one group alone has no core group.
                Err(Fault::Status(status)) if status.code == 404 && root == "/api" => {}
                Err(fault) => {
                    discovery.unreadable.push(format!("{root}: {fault}"));
                    failed.get_or_insert(fault);
                }
            }
        }
        match failed {
            Some(fault) if discovery.groups.is_empty() => Err(fault),
            _ => Ok(discovery),
        }
    }

    async fn add(&self, discovery: &mut Discovery, root: &str, document: Document) {
        for group in document.items {
            discovery.add_aggregated(group);
        }
        let core = (!document.versions.is_empty()).then(|| ListedGroup {
            name: String::new(),
            versions: document.versions,
            preferred: None,
        });
        let listed = document.groups.into_iter().chain(core).map(ListedGroup::ordered);
        let read = listed.map(|(name, versions)| async move {
            let mut group = Group { name, versions: Vec::new() };
            let mut unreadable = Vec::new();
            for version in versions {
                match self.resources(root, &group.name, &version).await {
                    Ok(resources) => group.versions.push(Version { name: version, resources }),
                    Err(fault) => unreadable.push(format!("{}: {fault}", joined(&group.name, &version))),
                }
            }
            (group, unreadable)
        });
        // In their order, whichever comes first.
        let mut read = stream::iter(read).buffered(AT_ONCE);
        while let Some((group, unreadable)) = read.next().await {
            discovery.groups.push(group);
            discovery.unreadable.extend(unreadable);
        }
    }

    async fn resources(&self, root: &str, group: &str, version: &str) -> Result<Vec<Served>, Fault> {
        let path = format!("{root}/{}", joined(group, version));
        let document = Document::read(&path, &self.document(&path, JSON, LIMIT).await?)?;
        Ok(document.resources.into_iter().filter_map(Served::listed).collect())
    }
}

impl Discovery {
    fn add_aggregated(&mut self, group: AggregatedGroup) {
        let name = group.metadata.name;
        let mut versions = Vec::new();
        for version in group.versions {
            // What the server remembers of a group that it could not ask is not what there is.
            if version.freshness == "Stale" {
                self.unreadable
                    .push(format!("{}: its server does not answer", joined(&name, &version.version)));
            }
            let resources = version.resources.into_iter().filter_map(Served::aggregated).collect();
            versions.push(Version { name: version.version, resources });
        }
        self.groups.push(Group { name, versions });
    }
}

impl Served {
    fn aggregated(resource: AggregatedResource) -> Option<Self> {
        let kind = resource.response_kind?.kind;
        Some(Self {
            namespaced: resource.scope == "Namespaced",
            singular: singular(resource.singular_resource, &kind),
            plural: resource.resource,
            kind,
            short_names: resource.short_names,
            verbs: resource.verbs,
        })
    }

    fn listed(resource: ListedResource) -> Option<Self> {
        // A subresource.
        if resource.name.contains('/') {
            return None;
        }
        Some(Self {
            singular: singular(resource.singular_name, &resource.kind),
            plural: resource.name,
            kind: resource.kind,
            namespaced: resource.namespaced,
            short_names: resource.short_names,
            verbs: resource.verbs,
        })
    }

    /// Whether it can be kept up to date.
    pub(super) fn is_watchable(&self) -> bool {
        ["list", "watch"].iter().all(|wanted| self.verbs.iter().any(|verb| verb == wanted))
    }
}

fn singular(said: String, kind: &str) -> String {
    if said.is_empty() { kind.to_lowercase() } else { said }
}

/// `v1`, `apps/v1`.
fn joined(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Any document of discovery: they are told by their kind, and differ in the members that they have.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Document {
    pub(super) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) group_version: String,
    /// Of an `APIGroupDiscoveryList`.
    #[serde(deserialize_with = "or_default")]
    items: Vec<AggregatedGroup>,
    /// Of an `APIGroupList`.
    #[serde(deserialize_with = "or_default")]
    pub(super) groups: Vec<ListedGroup>,
    /// Of `APIVersions`.
    #[serde(deserialize_with = "or_default")]
    versions: Vec<GroupVersion>,
    /// Of an `APIResourceList`.
    #[serde(deserialize_with = "or_default")]
    pub(super) resources: Vec<ListedResource>,
}

impl Document {
    pub(super) fn read(path: &str, body: &[u8]) -> Result<Self, Fault> {
        let wrong = |what: &dyn std::fmt::Display| {
            Fault::Connection(format!("{path}: not a document of discovery: {what}"))
        };
        let document: Self = serde_json::from_slice(body).map_err(|error| wrong(&error))?;
        match document.kind.as_str() {
            "APIGroupDiscoveryList" | "APIGroupList" | "APIVersions" | "APIResourceList" => Ok(document),
            "" => Err(wrong(&"it has no kind")),
            // Whatever this is, it may be long.
            kind => Err(wrong(&format_args!("its kind is {kind:.60}"))),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AggregatedGroup {
    metadata: Named,
    #[serde(deserialize_with = "or_default")]
    versions: Vec<AggregatedVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AggregatedVersion {
    version: String,
    #[serde(deserialize_with = "or_default")]
    resources: Vec<AggregatedResource>,
    freshness: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregatedResource {
    resource: String,
    response_kind: Option<Kind>,
    scope: String,
    singular_resource: String,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    short_names: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListedGroup {
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) versions: Vec<GroupVersion>,
    #[serde(rename = "preferredVersion")]
    preferred: Option<GroupVersion>,
}

impl ListedGroup {
    /// Its name and its versions, the preferred one first.
    fn ordered(self) -> (String, Vec<String>) {
        let mut versions: Vec<String> = self.versions.into_iter().map(|version| version.0).collect();
        let preferred = self.preferred.map(|version| version.0);
        // The others stay in their order.
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        (self.name, versions)
    }
}

/// A version of a group; of the core group, it is written without more.
#[derive(Debug, Default)]
pub(super) struct GroupVersion(pub(super) String);

impl<'de> Deserialize<'de> for GroupVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Object { version: String },
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(version) | Form::Object { version } => Self(version),
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListedResource {
    pub(super) name: String,
    singular_name: String,
    kind: String,
    namespaced: bool,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    short_names: Vec<String>,
}

/// Go writes an empty slice as `null`.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
impl Discovery {
    /// As if it had been read.
    pub(super) fn of(documents: &[&str]) -> Self {
        let mut discovery = Self::default();
        for text in documents {
            let document = Document::read("test", text.as_bytes()).unwrap();
            document.items.into_iter().for_each(|group| discovery.add_aggregated(group));
        }
        discovery
    }
}
