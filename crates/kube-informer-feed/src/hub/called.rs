//! What the resources that a hub was started for are called, for those who may have nothing else.
//!
//! A name is compared with what these resources are called, and the cluster is never asked about it. What they are called is
//! learnt once, whichever name comes first. So neither what is said of a name nor how long that takes tells what else
//! there is, and names that are refused cost the cluster nothing.
//!
//! A name is read as `kubectl` reads it: plural, singular, short name or kind, in any case; with a group or its beginning, or
//! with version and group. Of several resources that it may mean, it is the first.

use std::collections::HashMap;

use http::{Request, StatusCode, header};
use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::names::MISSES;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Called {
    /// Held by the one who asks.
    learnt: Mutex<Learnt>,
}

#[derive(Debug, Default)]
struct Learnt {
    /// Singular and short names, in lower case. None of a resource that is not served: what it calls itself is known.
    words: HashMap<Resource, Vec<String>>,
    /// When the cluster did not say, last.
    failed: Option<Instant>,
}

/// The cluster did not say. Why is for its operators, in the log.
#[derive(Debug)]
pub(super) struct Unasked;

impl Called {
    /// Which of these resources a name means.
    pub(super) async fn find<'r>(
        &self,
        factory: &Factory,
        wanted: &'r [Resource],
        name: &str,
    ) -> Result<Option<&'r Resource>, Unasked> {
        if let Some(found) = find(wanted, name, calls_itself) {
            return Ok(Some(found));
        }
        let mut learnt = self.learnt.lock().await;
        learnt.learn(factory, wanted).await?;
        Ok(find(wanted, name, |resource, word| learnt.calls(resource, word)))
    }

    /// Asks the cluster what these resources are called, unless that is known.
    pub(super) async fn learn(&self, factory: &Factory, wanted: &[Resource]) -> Result<(), Unasked> {
        self.learnt.lock().await.learn(factory, wanted).await
    }
}

impl Learnt {
    async fn learn(&mut self, factory: &Factory, wanted: &[Resource]) -> Result<(), Unasked> {
        for resource in wanted {
            if self.words.contains_key(resource) {
                continue;
            }
            if self.failed.is_some_and(|at| at.elapsed() < MISSES) {
                return Err(Unasked);
            }
            let root = resource.root();
            let mut listed = ask(factory, &root).await.map_err(|error| {
                tracing::warn!(%error, "clients that name a resource are told to try again later");
                self.failed = Some(Instant::now());
                Unasked
            })?;
            // One answer has all of a group and version.
            for each in wanted.iter().filter(|each| each.root() == root) {
                self.words.insert(each.clone(), listed.remove(&each.plural).unwrap_or_default());
            }
        }
        Ok(())
    }

    fn calls(&self, resource: &Resource, word: &str) -> bool {
        self.words.get(resource).is_some_and(|words| words.iter().any(|each| each == word))
    }
}

/// Whether a resource has a name by itself.
fn calls_itself(resource: &Resource, word: &str) -> bool {
    resource.plural == word || resource.kind.eq_ignore_ascii_case(word)
}

fn find<'r>(
    wanted: &'r [Resource],
    name: &str,
    calls: impl Fn(&Resource, &str) -> bool,
) -> Option<&'r Resource> {
    let (word, rest) = match name.split_once('.') {
        Some((word, rest)) => (word.to_lowercase(), Some(rest)),
        None => (name.to_lowercase(), None),
    };
    // A name with two dots has a version, or a group of two words.
    let versioned = rest.and_then(|rest| rest.split_once('.'));
    let versioned = versioned.map(|(version, group)| (Some(version), Some(group)));
    versioned.into_iter().chain([(None, rest)]).find_map(|(version, group)| {
        let is_meant = |resource: &Resource| {
            version.is_none_or(|version| version == resource.version) && calls(resource, &word)
        };
        let in_group = |resource: &Resource| group.is_none_or(|group| group == resource.group);
        // What has no name has no beginning.
        let begins = |resource: &Resource| {
            group.is_some_and(|group| !group.is_empty() && resource.group.starts_with(group))
        };
        let exactly = wanted.iter().find(|resource| in_group(resource) && is_meant(resource));
        exactly.or_else(|| wanted.iter().find(|resource| begins(resource) && is_meant(resource)))
    })
}

/// How large a document may be. Those of the largest groups have some ten thousand bytes.
const LARGEST: usize = 8 << 20;

/// A document of discovery: what a group and version has.
#[derive(Deserialize)]
struct Listed {
    /// Go writes an empty list as `null`.
    resources: Option<Vec<ListedResource>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    short_names: Option<Vec<String>>,
}

/// What the resources of a group and version are called, by their plural names. Nothing where they are not served, or where the
/// hub may not know: it is not better known later.
async fn ask(factory: &Factory, root: &str) -> Result<HashMap<String, Vec<String>>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("GET {root}: {error}");
    let request = Request::get(root).header(header::ACCEPT, "application/json").body(Vec::new().into());
    let request = request.map_err(|error| failed(&error))?;
    let response = factory.client().send(request).await.map_err(|error| failed(&error))?;
    match response.status() {
        StatusCode::NOT_FOUND => return Ok(HashMap::new()),
        StatusCode::FORBIDDEN => {
            tracing::warn!(root, "the hub may not read what is served there: short names are not known");
            return Ok(HashMap::new());
        }
        status if !status.is_success() => return Err(failed(&status)),
        _ => {}
    }
    let body = axum::body::Body::new(response.into_body());
    let body = axum::body::to_bytes(body, LARGEST).await.map_err(|error| failed(&error))?;
    let listed: Listed = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
    let called = |resource: ListedResource| {
        let short = resource.short_names.unwrap_or_default();
        let words = short.iter().chain([&resource.singular_name]).map(|word| word.to_lowercase());
        (resource.name, words.collect())
    };
    Ok(listed.resources.unwrap_or_default().into_iter().map(called).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, version: &str, plural: &str, kind: &str) -> Resource {
        let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
        Resource { group, version, plural, kind, namespaced: true }
    }

    #[test]
    fn a_name_is_read_as_kubectl_reads_it_and_means_only_what_is_wanted() {
        let wanted = [
            resource("events.k8s.io", "v1", "events", "Event"),
            resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
            resource("apps", "v1", "deployments", "Deployment"),
            resource("example.com", "v1beta1", "deployments", "Deployment"),
        ];
        let short = |resource: &Resource, word: &str| match resource.kind.as_str() {
            "Event" => word == "ev",
            "HorizontalPodAutoscaler" => word == "hpa",
            _ => word == "deploy",
        };
        let meant = |name: &str| {
            let calls =
                |resource: &Resource, word: &str| calls_itself(resource, word) || short(resource, word);
            wanted.iter().position(|each| Some(each) == find(&wanted, name, calls))
        };
        for (name, place) in [
            ("events", Some(0)),
            ("Event", Some(0)),
            ("EV", Some(0)),
            ("ev.events.k8s.io", Some(0)),
            ("ev.v1.events.k8s.io", Some(0)),
            ("ev.events", Some(0)),
            ("hpa", Some(1)),
            ("hpa.v1.autoscaling", Some(1)),
            ("deploy", Some(2)),
            ("deploy.apps", Some(2)),
            ("deployment.example.com", Some(3)),
            ("Deployment.v1beta1.example.com", Some(3)),
            ("deployments.exam", Some(3)),
            // Another version, or another group, is another resource.
            ("hpa.v2.autoscaling", None),
            ("events.v1.", None),
            ("deploy.extensions", None),
            ("deploy.v1.example.com", None),
            ("secrets", None),
            ("", None),
        ] {
            assert_eq!(meant(name), place, "{name:?}");
        }
    }
}
