//! The proof that a resource is gone, and all its objects with it.
//!
//! That a list is answered with 404 proves nothing: the version may not be served for a while, another server may answer,
//! or a proxy. It is proven where both hold:
//!
//! 1. discovery works and does not list the resource: the list of its group and version is there without it, or the
//!    list of all groups is there without that group or version;
//! 2. its CustomResourceDefinition is asked for by name, and the API server says, of that name, that it is not found.
//!
//! Never of a built-in group: its objects outlive the version. Nor where the definition is there, be it one whose
//! deletion has begun: as long as it is there, its objects may be. Objects of an aggregated API count as gone when the
//! API is not registered any more.

use serde::Deserialize;

use super::Connection;
use super::discovery::{Document, JSON};
use crate::encoding::schema;
use crate::reflector::fault::Fault;
use crate::reflector::transport::Absence;
use crate::resource::Resource;

const LIMIT: usize = 64 << 20;
const EXTENSIONS: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

impl Connection {
    pub(super) async fn prove_absence(&self, resource: &Resource) -> Absence {
        match self.find_trace(resource).await {
            Ok(None) => Absence::Proven,
            Ok(Some(trace)) => Absence::NotProven(trace),
            Err(fault) => Absence::NotProven(fault.to_string()),
        }
    }

    /// What speaks against it that a resource is gone.
    async fn find_trace(&self, resource: &Resource) -> Result<Option<String>, Fault> {
        if is_built_in(&resource.group) {
            return Ok(Some("the group is built in: its objects do not go with it".to_owned()));
        }
        if let Some(trace) = self.trace_in_discovery(resource).await? {
            return Ok(Some(trace));
        }
        self.trace_of_definition(resource).await
    }

    async fn trace_in_discovery(&self, resource: &Resource) -> Result<Option<String>, Fault> {
        let path = resource.root();
        match self.document(&path, JSON, LIMIT).await {
            Ok(body) => {
                let document = Document::read(&path, &body)?;
                Ok(
                    if document.kind != "APIResourceList" || document.group_version != resource.api_version()
                    {
                        Some(format!("{path} answers with another document"))
                    } else if document.resources.iter().any(|listed| listed.name == resource.plural) {
                        Some(format!("{path} lists it"))
                    } else {
                        None
                    },
                )
            }
            Err(Fault::Status(status)) if status.code == 404 => self.trace_in_groups(resource).await,
            Err(fault) => Err(fault),
        }
    }

    async fn trace_in_groups(&self, resource: &Resource) -> Result<Option<String>, Fault> {
        let document = Document::read("/apis", &self.document("/apis", JSON, LIMIT).await?)?;
        if document.kind != "APIGroupList" {
            return Ok(Some("/apis answers with another document".to_owned()));
        }
        // Without that group, a definition that is not found proves nothing.
        if !document.groups.iter().any(|group| group.name == EXTENSIONS) {
            return Ok(Some(format!("/apis does not list {EXTENSIONS}")));
        }
        let listed = document.groups.iter().any(|group| {
            group.name == resource.group && group.versions.iter().any(|version| version.0 == resource.version)
        });
        Ok(listed.then(|| format!("/apis lists {}", resource.api_version())))
    }

    async fn trace_of_definition(&self, resource: &Resource) -> Result<Option<String>, Fault> {
        let name = format!("{}.{}", resource.plural, resource.group);
        let path = format!("/apis/{EXTENSIONS}/v1/{DEFINITIONS}/{name}");
        let fetched = self.fetch(&path, JSON, LIMIT).await?;
        Ok(match fetched.status {
            200 => Some(format!("its definition {name} is there")),
            404 if fetched.json && is_not_found(&fetched.body, &name) => None,
            404 => Some(format!("{path} is not answered by the API server")),
            _ => return Err(fetched.fault()),
        })
    }
}

/// Whether the API server itself says that it has no definition of this name.
fn is_not_found(body: &[u8], name: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        kind: String,
        api_version: String,
        status: String,
        reason: String,
        code: u16,
        details: Details,
    }
    #[derive(Deserialize)]
    struct Details {
        name: String,
        group: String,
        kind: String,
    }
    serde_json::from_slice::<Status>(body).is_ok_and(|status| {
        let Details { name: of, group, kind } = &status.details;
        (status.kind.as_str(), status.api_version.as_str()) == ("Status", "v1")
            && (status.status.as_str(), status.reason.as_str(), status.code) == ("Failure", "NotFound", 404)
            && (of.as_str(), group.as_str(), kind.as_str()) == (name, EXTENSIONS, DEFINITIONS)
    })
}

/// Whether a group is Kubernetes' own. Groups of definitions have a dot in their name.
fn is_built_in(group: &str) -> bool {
    !group.contains('.')
        || schema::roots()
            .iter()
            .any(|root| root.api_version().split_once('/').is_some_and(|(known, _)| known == group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_groups_are_known() {
        for group in ["", "apps", "events.k8s.io", "apiextensions.k8s.io", "rbac.authorization.k8s.io"] {
            assert!(is_built_in(group), "{group}");
        }
        assert!(!is_built_in("example.com"));
        // Of definitions, though by the project.
        assert!(!is_built_in("gateway.networking.k8s.io"));
    }

    #[test]
    fn only_the_servers_own_word_about_the_name_is_believed() {
        let status = |name: &str, more: &str| {
            format!(
                r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"m","reason":"NotFound","code":404,
                "details":{{"name":"{name}","group":"apiextensions.k8s.io","kind":"customresourcedefinitions"}}{more}}}"#
            )
        };
        let believed = |body: &str| is_not_found(body.as_bytes(), "widgets.example.com");
        assert!(believed(&status("widgets.example.com", "")));
        assert!(!believed(&status("gadgets.example.com", "")));
        assert!(!believed(&status("widgets.example.com", "").replace("\"Status\"", "\"Error\"")));
        assert!(!believed(&status("widgets.example.com", "").replace("apiextensions.k8s.io", "example.com")));
        assert!(!believed(&status("widgets.example.com", "").replace("NotFound", "Gone")));
        // As of a path that is not served.
        assert!(!believed(
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{}}"#
        ));
        assert!(!believed("404 page not found"));
        assert!(!believed(r#"{"error":"not found"}"#));
    }
}
