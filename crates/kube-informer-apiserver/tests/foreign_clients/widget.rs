//! A small custom resource, written by hand.

use std::borrow::Cow;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{Api, Client};
use kube_core::params::PostParams;
use kube_core::{NamespaceResourceScope, ObjectMeta, Resource};
use kube_runtime::wait::{await_condition, conditions};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::soon;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Widget {
    api_version: String,
    kind: String,
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: WidgetSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<WidgetStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WidgetSpec {
    pub(crate) size: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetStatus {
    pub(crate) observed_generation: i64,
    pub(crate) phase: String,
}

impl Widget {
    pub(crate) fn new(name: &str, size: i64) -> Self {
        Self {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            metadata: ObjectMeta { name: Some(name.into()), ..Default::default() },
            spec: WidgetSpec { size },
            status: None,
        }
    }
}

impl Resource for Widget {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Widget".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "example.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "widgets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn definition() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["size"],
                            "properties": { "size": { "type": "integer", "minimum": 0 } },
                        },
                        "status": {
                            "type": "object",
                            "properties": {
                                "observedGeneration": { "type": "integer" },
                                "phase": { "type": "string" },
                            },
                        },
                    },
                } },
            }],
        },
    }))
    .unwrap()
}

/// Defines widgets and waits until they are served.
pub(crate) async fn define(client: &Client) -> Api<Widget> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition()).await.unwrap();
    let established = await_condition(definitions, "widgets.example.com", conditions::is_crd_established());
    soon("established", established).await.unwrap();
    Api::default_namespaced(client.clone())
}
