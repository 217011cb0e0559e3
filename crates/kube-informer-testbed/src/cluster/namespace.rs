//! A namespace for one test.
//!
//! On a control plane without kube-controller-manager nobody empties a namespace that is being deleted, and it
//! stays for ever. There the work of the namespace controller is done here: delete all that lies in it, then
//! remove the finalizer. Not done: objects whose own finalizers nobody removes stay, as they would anywhere.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use super::{Cluster, unique};
use crate::http::Endpoint;

/// Room for `-` and eight characters in the 63 that a name may have.
const NAME_LENGTH: usize = 63 - 9;

/// How long dropping a namespace may hold up a test.
const DROP_DEADLINE: Duration = Duration::from_secs(20);

/// A namespace, deleted when it is closed or dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    endpoint: Endpoint,
    /// Nobody else ends it.
    without_controller: bool,
    closed: bool,
}

impl Namespace {
    pub(super) async fn create(cluster: &Cluster, test_name: &str) -> Result<Self> {
        let name = unique(&dns_label(test_name))?;
        let endpoint = cluster.endpoint().clone();
        let labels = json!({ "kube-informer.dev/test": "true" });
        let body = json!({ "metadata": { "name": name, "labels": labels } });
        endpoint.post("/api/v1/namespaces", &body).await?.success()?;
        let namespace =
            Self { name, endpoint, without_controller: !cluster.has_controller_manager(), closed: false };
        if cluster.has_controller_manager() {
            namespace.usable().await?;
        }
        Ok(namespace)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Deletes it. Without a controller manager it is gone afterwards, with one it goes in its own time.
    pub async fn close(mut self) -> Result<()> {
        self.closed = true;
        delete(&self.endpoint, &self.name, self.without_controller).await
    }

    /// Pods are refused until the namespace has its service account.
    async fn usable(&self) -> Result<()> {
        let account = format!("/api/v1/namespaces/{}/serviceaccounts/default", self.name);
        let appeared = async {
            while self.endpoint.get(&account).await?.status != StatusCode::OK {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        tokio::time::timeout(Duration::from_secs(60), appeared)
            .await
            .unwrap_or_else(|_| bail!("the namespace {} got no service account within 60 s", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let (access, name) = (self.endpoint.access().clone(), self.name.clone());
        let without_controller = self.without_controller;
        // A runtime of its own: the test's may be on its way out, and cannot be blocked on from within.
        let deletion = move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let deleted = async {
                delete(&Endpoint::new(access)?.with_timeout(DROP_DEADLINE), &name, without_controller).await
            };
            runtime.block_on(async { tokio::time::timeout(DROP_DEADLINE, deleted).await })?
        };
        match std::thread::spawn(deletion).join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("the namespace {} was not deleted: {error:#}", self.name),
            Err(_) => eprintln!("the namespace {} was not deleted: a panic", self.name),
        }
    }
}

async fn delete(endpoint: &Endpoint, name: &str, without_controller: bool) -> Result<()> {
    let path = format!("/api/v1/namespaces/{name}");
    let deleted = endpoint.delete(&path).await?;
    if deleted.status == StatusCode::NOT_FOUND {
        return Ok(());
    }
    deleted.success()?;
    if !without_controller {
        return Ok(());
    }
    // From here on the API server lets nobody create anything in it.
    let collections = collections(endpoint, name).await?;
    let mut emptied = stream::iter(collections)
        .map(|collection| async move {
            let all = format!("{collection}?gracePeriodSeconds=0&propagationPolicy=Background");
            endpoint.delete(&all).await
        })
        .buffer_unordered(8);
    while let Some(answer) = emptied.next().await {
        let answer = answer?;
        // A resource may disappear in between: another test's CRD.
        if answer.status != StatusCode::NOT_FOUND {
            answer.success()?;
        }
    }
    drop(emptied);

    let mut namespace = endpoint.get_json(&path).await?;
    namespace["spec"]["finalizers"] = json!([]);
    endpoint.put(&format!("{path}/finalize"), &namespace).await?.success()?;
    Ok(())
}

/// The paths of everything that can lie in the namespace and be deleted.
async fn collections(endpoint: &Endpoint, namespace: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for root in ["/api", "/apis"] {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let discovery = endpoint.request(Method::GET, root, headers, "").await?.success()?.json()?;
        let groups = discovery["items"].as_array().context("discovery without groups")?;
        for group in groups {
            collections_of_group(root, group, namespace, &mut paths);
        }
    }
    Ok(paths)
}

fn collections_of_group(root: &str, group: &Value, namespace: &str, paths: &mut Vec<String>) {
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let mut seen = Vec::new();
    // The first version is the preferred one; a resource is the same object in all of them.
    for version in list(&group["versions"]) {
        let prefix = match text(&group["metadata"]["name"]).as_str() {
            "" => format!("{root}/{}", text(&version["version"])),
            name => format!("{root}/{name}/{}", text(&version["version"])),
        };
        for resource in list(&version["resources"]) {
            let name = text(&resource["resource"]);
            let deletable = list(&resource["verbs"]).contains(&json!("deletecollection"));
            if resource["scope"] == "Namespaced" && deletable && !seen.contains(&name) {
                paths.push(format!("{prefix}/namespaces/{namespace}/{name}"));
                seen.push(name);
            }
        }
    }
}

/// The end of a test's name, which says most, as a part of a namespace's name.
fn dns_label(test_name: &str) -> String {
    let label: String = test_name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let start = label.len().saturating_sub(NAME_LENGTH);
    let label = label[start..].trim_matches('-');
    if label.is_empty() { "test".to_owned() } else { label.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_test_name_makes_a_namespace_name() {
        assert_eq!(dns_label("tests::A_restart ends"), "tests--a-restart-ends");
        assert_eq!(dns_label("::"), "test");
        let long = unique(&dns_label(&"x".repeat(100))).unwrap();
        assert_eq!(long.len(), 63);
    }

    #[test]
    fn a_resource_served_in_two_versions_is_emptied_once() {
        let resource = |name, scope, verb| json!({ "resource": name, "scope": scope, "verbs": [verb] });
        let group = json!({
            "metadata": { "name": "g" },
            "versions": [
                { "version": "v1", "resources": [
                    resource("a", "Namespaced", "deletecollection"),
                    resource("nodes", "Cluster", "deletecollection"),
                    resource("reviews", "Namespaced", "create"),
                ]},
                { "version": "v1beta1", "resources": [
                    resource("a", "Namespaced", "deletecollection"),
                    resource("b", "Namespaced", "deletecollection"),
                ]},
            ],
        });
        let mut paths = Vec::new();
        collections_of_group("/apis", &group, "n", &mut paths);
        assert_eq!(paths, ["/apis/g/v1/namespaces/n/a", "/apis/g/v1beta1/namespaces/n/b"]);
    }
}
