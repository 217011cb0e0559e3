//! What clients ask first: which groups, versions and resources there are.
//!
//! Pure functions from the served resources to documents, as kube-apiserver gives them: the legacy ones
//! (`APIGroupList`, `APIGroup`, `APIResourceList`), the aggregated one (v2), `/version` and `/`. Built-in
//! groups come in the order of [`crate::kinds::builtin`], custom ones after them by name; versions of a
//! custom group by priority (v2, v1, v1beta1, v1alpha1, then others by name).
//!
//! Not the same as on the real server: groups that are not served are missing, and `/` lists only what
//! this server answers.

#[cfg(test)]
pub(crate) mod tests;

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::kinds::{Resource, Subresource};

/// `/api`. The address is what clients reach this server by.
pub(crate) fn api_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// `/apis`.
pub(crate) fn group_list(resources: &[Arc<Resource>]) -> Value {
    let groups: Vec<Value> =
        groups(resources).into_iter().filter(|g| !g.name.is_empty()).map(|g| g.summary()).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/{group}`.
pub(crate) fn group(resources: &[Arc<Resource>], name: &str) -> Option<Value> {
    let group = groups(resources).into_iter().find(|g| g.name == name && !name.is_empty())?;
    let mut summary = group.summary();
    summary["kind"] = "APIGroup".into();
    summary["apiVersion"] = "v1".into();
    Some(summary)
}

/// `/api/v1` and `/apis/{group}/{version}`.
pub(crate) fn resource_list(resources: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let of_version: Vec<&Arc<Resource>> =
        resources.iter().filter(|r| r.group == group && r.version == version).collect();
    let first = of_version.first()?;
    let mut entries = Vec::new();
    for resource in &of_version {
        entries.push(resource_entry(resource));
        entries.extend(resource.subresources.iter().map(|s| subresource_entry(resource, s)));
    }
    let mut list =
        json!({ "kind": "APIResourceList", "groupVersion": first.api_version(), "resources": entries });
    // The core group's list has none on the real server either.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// Aggregated discovery v2: of the core group for `/api`, of all others for `/apis`.
pub(crate) fn aggregated(resources: &[Arc<Resource>], core: bool) -> Value {
    let items: Vec<Value> = groups(resources)
        .into_iter()
        .filter(|g| g.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = resources
                        .iter()
                        .filter(|r| r.group == group.name && r.version == *version)
                        .map(|r| resource_discovery(r))
                        .collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({ "name": group.name }) };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

/// `/version`. The suffix tells people what they are talking to. It is build metadata: with a dash it
/// would be a pre-release, which constraints like `>=1.25.0` do not take.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": "v1.37.1+kube-informer",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/`: the paths there are.
pub(crate) fn root_paths(resources: &[Arc<Resource>]) -> Value {
    let mut paths: Vec<String> = [
        "/api",
        "/apis",
        "/apis/",
        "/healthz",
        "/livez",
        "/openapi/v3",
        "/openapi/v3/",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for group in groups(resources) {
        if group.name.is_empty() {
            paths.extend(group.versions.iter().map(|v| format!("/api/{v}")));
        } else {
            paths.push(format!("/apis/{}", group.name));
            paths.extend(group.versions.iter().map(|v| format!("/apis/{}/{v}", group.name)));
        }
    }
    paths.sort();
    json!({ "paths": paths })
}

struct Group<'a> {
    name: &'a str,
    /// The preferred one first.
    versions: Vec<&'a str>,
}

impl Group<'_> {
    fn summary(&self) -> Value {
        let version = |v: &&str| json!({ "groupVersion": format!("{}/{v}", self.name), "version": v });
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        json!({ "name": self.name, "versions": versions, "preferredVersion": versions.first() })
    }
}

/// The groups in discovery's order.
fn groups(resources: &[Arc<Resource>]) -> Vec<Group<'_>> {
    let mut out: Vec<Group<'_>> = Vec::new();
    let custom = |r: &&Arc<Resource>| r.custom.is_some();
    let mut later: Vec<&Arc<Resource>> = resources.iter().filter(custom).collect();
    later.sort_by_key(|r| (&r.group, priority(&r.version)));
    for resource in resources.iter().filter(|r| !custom(r)).chain(later) {
        match out.iter_mut().find(|g| g.name == resource.group) {
            Some(group) if group.versions.contains(&resource.version.as_str()) => {}
            Some(group) => group.versions.push(&resource.version),
            None => out.push(Group { name: &resource.group, versions: vec![&resource.version] }),
        }
    }
    out
}

/// A sort key that puts the version that clients should prefer first.
pub(crate) fn priority(version: &str) -> impl Ord + use<> {
    let parsed = parse(version).unwrap_or_default();
    // Not of this form: after all that are, by name.
    let other = (parsed.0 == 0).then(|| version.to_owned());
    (Reverse(parsed), other)
}

/// `v2beta1` as (3 for stable, 2 for beta, 1 for alpha; 2; 1).
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (major, rest) = rest.split_at(digits);
    let number = |text: &str| match text.bytes().next() {
        Some(b'1'..=b'9') if text.bytes().all(|b| b.is_ascii_digit()) => text.parse::<u64>().ok(),
        _ => None,
    };
    let major = number(major)?;
    if rest.is_empty() {
        return Some((3, major, 0));
    }
    if let Some(minor) = rest.strip_prefix("beta") {
        return Some((2, major, number(minor)?));
    }
    Some((1, major, number(rest.strip_prefix("alpha")?)?))
}

/// Puts a list in, unless it is empty.
fn put(out: &mut Map<String, Value>, key: &str, list: &[String]) {
    if !list.is_empty() {
        out.insert(key.to_owned(), list.into());
    }
}

fn resource_entry(resource: &Resource) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), resource.plural.clone().into());
    out.insert("singularName".into(), resource.singular.clone().into());
    out.insert("namespaced".into(), resource.namespaced.into());
    out.insert("kind".into(), resource.kind.clone().into());
    out.insert("verbs".into(), resource.verbs.clone().into());
    put(&mut out, "shortNames", &resource.short_names);
    put(&mut out, "categories", &resource.categories);
    let hash = resource.storage_version_hash();
    if !hash.is_empty() {
        out.insert("storageVersionHash".into(), hash.into());
    }
    Value::Object(out)
}

/// Whether a subresource speaks another group's kind, so that clients have to be told.
fn foreign(resource: &Resource, subresource: &Subresource) -> bool {
    (&subresource.group, &subresource.version) != (&resource.group, &resource.version)
}

fn subresource_entry(resource: &Resource, subresource: &Subresource) -> Value {
    let mut out = json!({
        "name": format!("{}/{}", resource.plural, subresource.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": subresource.verbs,
    });
    if foreign(resource, subresource) {
        out["group"] = subresource.group.clone().into();
        out["version"] = subresource.version.clone().into();
    }
    out
}

fn resource_discovery(resource: &Resource) -> Value {
    // Built-in kinds leave their own group and version out, custom ones say them.
    let own = |told: bool, group: &str, version: &str, kind: &str| {
        let (group, version) = if told { (group, version) } else { ("", "") };
        json!({ "group": group, "version": version, "kind": kind })
    };
    let custom = resource.custom.is_some();
    let mut out = Map::new();
    out.insert("resource".into(), resource.plural.clone().into());
    out.insert("responseKind".into(), own(custom, &resource.group, &resource.version, &resource.kind));
    out.insert("scope".into(), if resource.namespaced { "Namespaced" } else { "Cluster" }.into());
    out.insert("singularResource".into(), resource.singular.clone().into());
    out.insert("verbs".into(), resource.verbs.clone().into());
    put(&mut out, "shortNames", &resource.short_names);
    put(&mut out, "categories", &resource.categories);
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|s| {
            let told = custom || foreign(resource, s);
            json!({
                "subresource": s.name,
                "responseKind": own(told, &s.group, &s.version, &s.kind),
                "verbs": s.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        out.insert("subresources".into(), subresources.into());
    }
    Value::Object(out)
}
