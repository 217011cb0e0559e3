//! Where an object says how many replicas it is to have, how many it has, and which pods are its own.
//!
//! Kubernetes' own workloads and Argo's Rollouts are known. Of any other kind, its definition says it: the paths of its scale
//! subresource. Only what stands there is read of an object; the rest is not decoded.

use kube_informer::encoding::Pointer;
use kube_informer::resource::Resource;
use serde::Deserialize;

/// Where to look in the objects of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    pub(super) spec_replicas: Pointer,
    pub(super) status_replicas: Pointer,
    /// The first that is there counts.
    pub(super) selectors: Vec<Pointer>,
    /// Where another object may be named that has the selector.
    pub(super) reference: Option<Pointer>,
}

/// What is needed of a CustomResourceDefinition.
#[derive(Debug, Deserialize)]
pub(super) struct Definition {
    spec: DefinitionSpec,
}

#[derive(Debug, Deserialize)]
struct DefinitionSpec {
    #[serde(default)]
    versions: Vec<DefinitionVersion>,
}

#[derive(Debug, Deserialize)]
struct DefinitionVersion {
    name: String,
    #[serde(default)]
    subresources: Option<Subresources>,
}

#[derive(Debug, Deserialize)]
struct Subresources {
    #[serde(default)]
    scale: Option<Paths>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paths {
    spec_replicas_path: String,
    status_replicas_path: String,
    #[serde(default)]
    label_selector_path: Option<String>,
}

/// The group of Argo's Rollouts.
const ARGO: &str = "argoproj.io";

impl Shape {
    /// The shape of a resource that is known.
    pub(super) fn known(resource: &Resource) -> Option<Self> {
        let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
        match (group, plural) {
            ("apps", "deployments" | "statefulsets" | "replicasets") | ("", "replicationcontrollers") => {
                Self::usual(&["spec.selector"]).ok()
            }
            // Where a Rollout names a workload, the selector is that one's, and Argo writes it into the status.
            (ARGO, "rollouts") => {
                let usual = Self::usual(&["spec.selector", "status.selector"]).ok()?;
                Some(Self { reference: Some(dotted("workloadRef", "spec.workloadRef").ok()?), ..usual })
            }
            _ => None,
        }
    }

    /// The shape that most have, of a resource that has no definition.
    pub(super) fn conventional() -> Result<Self, String> {
        Self::usual(&["status.selector", "spec.selector"])
    }

    /// The shape that a definition declares for a version.
    pub(super) fn declared(definition: &Definition, version: &str) -> Result<Self, String> {
        let found = definition.spec.versions.iter().find(|each| each.name == version);
        let scale = found.and_then(|found| found.subresources.as_ref()?.scale.as_ref());
        let Some(paths) = scale else {
            return Err(format!("its definition declares no scale subresource for {version}"));
        };
        let selectors = match paths.label_selector_path.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => vec![dotted("labelSelectorPath", path)?],
            // Not declared; where most have one, it may be all the same.
            None => Self::conventional()?.selectors,
        };
        Ok(Self {
            spec_replicas: dotted("specReplicasPath", &paths.spec_replicas_path)?,
            status_replicas: dotted("statusReplicasPath", &paths.status_replicas_path)?,
            selectors,
            reference: None,
        })
    }

    fn usual(selectors: &[&str]) -> Result<Self, String> {
        Ok(Self {
            spec_replicas: dotted("specReplicasPath", "spec.replicas")?,
            status_replicas: dotted("statusReplicasPath", "status.replicas")?,
            selectors: selectors.iter().map(|path| dotted("selector", path)).collect::<Result<_, _>>()?,
            reference: None,
        })
    }
}

/// `.spec.replicas` as a pointer. The server accepts such paths only: names led by dots.
fn dotted(field: &str, path: &str) -> Result<Pointer, String> {
    let mut pointer = String::with_capacity(path.len() + 1);
    for name in path.strip_prefix('.').unwrap_or(path).split('.') {
        if name.is_empty() || name.contains(['[', ']', '*', '\'', '"']) {
            return Err(format!(
                "its definition has {path:?} as {field}, which is no path of names led by dots"
            ));
        }
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    Pointer::parse(&pointer).map_err(|error| format!("its definition has {path:?} as {field}: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(group: &str, plural: &str) -> Resource {
        Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            kind: String::new(),
            namespaced: true,
        }
    }

    fn texts(shape: &Shape) -> Vec<String> {
        let first = [&shape.spec_replicas, &shape.status_replicas];
        first.into_iter().chain(&shape.selectors).chain(&shape.reference).map(ToString::to_string).collect()
    }

    #[test]
    fn workloads_that_everybody_has_need_no_definition() {
        for (group, plural) in [
            ("apps", "deployments"),
            ("apps", "statefulsets"),
            ("apps", "replicasets"),
            ("", "replicationcontrollers"),
        ] {
            let shape = Shape::known(&resource(group, plural)).unwrap();
            assert_eq!(texts(&shape), ["/spec/replicas", "/status/replicas", "/spec/selector"]);
        }
        let rollout = Shape::known(&resource("argoproj.io", "rollouts")).unwrap();
        assert_eq!(
            texts(&rollout),
            ["/spec/replicas", "/status/replicas", "/spec/selector", "/status/selector", "/spec/workloadRef"]
        );
        for (group, plural) in [("apps", "daemonsets"), ("example.com", "deployments"), ("", "pods")] {
            assert_eq!(Shape::known(&resource(group, plural)), None);
        }
    }

    fn definition(scale: &serde_json::Value) -> Definition {
        let versions = json!([
            { "name": "v1", "subresources": { "status": {}, "scale": scale }, "schema": { "anything": [1] } },
            { "name": "v2", "subresources": { "status": {} } },
            { "name": "v3" },
        ]);
        serde_json::from_value(json!({ "spec": { "group": "example.com", "versions": versions } })).unwrap()
    }

    #[test]
    fn a_definition_says_where_to_look() {
        let odd = definition(&json!({
            "specReplicasPath": ".spec.size.of~it/all", "statusReplicasPath": ".status.current",
            "labelSelectorPath": ".status.selectorText",
        }));
        let shape = Shape::declared(&odd, "v1").unwrap();
        assert_eq!(texts(&shape), ["/spec/size/of~0it~1all", "/status/current", "/status/selectorText"]);
        for version in ["v2", "v3", "v4"] {
            let why = Shape::declared(&odd, version).unwrap_err();
            assert!(why.contains("no scale subresource") && why.contains(version), "{why}");
        }
        let bare =
            definition(&json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.n" }));
        let shape = Shape::declared(&bare, "v1").unwrap();
        assert_eq!(texts(&shape), ["/spec/replicas", "/status/n", "/status/selector", "/spec/selector"]);
    }

    #[test]
    fn a_path_that_is_none_is_named() {
        for path in ["", ".", ".spec.", ".spec[0].n", ".spec..n", ".spec.*"] {
            let odd = definition(&json!({ "specReplicasPath": path, "statusReplicasPath": ".status.n" }));
            let why = Shape::declared(&odd, "v1").unwrap_err();
            assert!(why.contains("specReplicasPath") && why.contains(&format!("{path:?}")), "{why}");
        }
    }
}
