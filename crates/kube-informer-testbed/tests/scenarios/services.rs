//! Services: addresses and ports, types and their changes.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, scenarios, service, variants};

scenarios![
    services_of_every_type_get_addresses,
    services_are_validated,
    a_service_changes_its_type,
    ingresses_and_their_classes,
];

async fn services_of_every_type_get_addresses(api: &Api) -> Result<()> {
    api.post("services", &service("cluster")).await?.code(201)?;
    let with = |name: &str, changes: Value| {
        let mut object = service(name);
        object["spec"].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        object
    };
    api.post("services", &with("port", json!({ "type": "NodePort" }))).await?.code(201)?;
    api.post("services", &with("balanced", json!({ "type": "LoadBalancer" }))).await?.code(201)?;
    api.post("services", &with("local", json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" })))
        .await?
        .code(201)?;
    api.post("services", &with("headless", json!({ "clusterIP": "None" }))).await?.code(201)?;
    api.post("services", &json!({ "metadata": { "name": "external" }, "spec": { "type": "ExternalName", "externalName": "example.com" } })).await?.code(201)?;
    api.post("services", &with("affine", json!({ "sessionAffinity": "ClientIP" }))).await?.code(201)?;
    api.post("services", &with("named", json!({ "ports": [{ "name": "a", "port": 80, "targetPort": "http" }, { "name": "b", "port": 81, "protocol": "UDP" }] }))).await?.code(201)?;
    api.get("services").await?.code(200)?;
    Ok(())
}

async fn services_are_validated(api: &Api) -> Result<()> {
    variants(
        api,
        "services",
        &service("a"),
        &[
            ("/metadata/name", json!("9starts-with-digit")),
            ("/metadata/name", json!("has.dot")),
            ("/spec/ports", json!([])),
            ("/spec/ports", json!([{ "port": 0 }])),
            ("/spec/ports", json!([{ "port": 80 }, { "port": 81 }])),
            ("/spec/ports", json!([{ "name": "a", "port": 80 }, { "name": "a", "port": 81 }])),
            ("/spec/ports", json!([{ "name": "a", "port": 80 }, { "name": "b", "port": 80 }])),
            ("/spec/ports", json!([{ "port": 80, "protocol": "HTTP" }])),
            ("/spec/ports", json!([{ "port": 80, "nodePort": 31000 }])),
            ("/spec/type", json!("Nonsense")),
            ("/spec/type", json!("ExternalName")),
            ("/spec/clusterIP", json!("not an address")),
            ("/spec/clusterIP", json!("1.2.3.4")),
            ("/spec/sessionAffinity", json!("Nonsense")),
            ("/spec/externalTrafficPolicy", json!("Local")),
            ("/spec/internalTrafficPolicy", json!("Nonsense")),
            ("/spec/selector", json!({ "bad key": "x" })),
            ("/spec/externalIPs", json!(["x"])),
            ("/spec/loadBalancerSourceRanges", json!(["x"])),
        ],
    )
    .await
}

async fn a_service_changes_its_type(api: &Api) -> Result<()> {
    api.post("services", &service("a")).await?.code(201)?;
    for kind in ["NodePort", "LoadBalancer", "ClusterIP"] {
        api.merge("services/a", &json!({ "spec": { "type": kind } })).await?.code(200)?;
    }
    api.merge("services/a", &json!({ "spec": { "type": "ExternalName", "externalName": "example.com" } }))
        .await?;
    api.merge("services/a", &json!({ "spec": { "type": "ExternalName", "externalName": "example.com", "clusterIP": null, "clusterIPs": null } })).await?;
    api.merge("services/a", &json!({ "spec": { "type": "ClusterIP", "externalName": null } })).await?;
    Ok(())
}

async fn ingresses_and_their_classes(api: &Api) -> Result<()> {
    let rule = json!({ "host": "x.example.com", "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": { "service": { "name": "a", "port": { "number": 80 } } } }] } });
    let ingress = json!({ "metadata": { "name": "a" }, "spec": { "rules": [rule], "tls": [{ "hosts": ["x.example.com"], "secretName": "s" }] } });
    api.post("networking.k8s.io/v1:ingresses", &ingress).await?.code(201)?;
    variants(
        api,
        "networking.k8s.io/v1:ingresses",
        &ingress,
        &[
            ("/spec/rules", Value::Null),
            ("/spec/rules", json!([])),
            ("/spec/rules/0/host", json!("1.2.3.4")),
            ("/spec/rules/0/http/paths/0/pathType", Value::Null),
            ("/spec/rules/0/http/paths/0/path", json!("x")),
            ("/spec/rules/0/http/paths/0/backend", json!({})),
        ],
    )
    .await?;
    api.post(
        "/apis/networking.k8s.io/v1/ingressclasses",
        &json!({ "metadata": { "name": api.name("c") }, "spec": { "controller": "example.com/c" } }),
    )
    .await?
    .code(201)?;
    Ok(())
}
