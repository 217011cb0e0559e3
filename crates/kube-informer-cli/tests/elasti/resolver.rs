//! The resolver comes and goes as workloads do: its Deployment is scaled, its slices and its Service are deleted and made
//! anew. Whatever is redirected follows it.

use kube_informer_elasti::names;
use kube_informer_testbed::eventually::eventually;
use serde_json::{Value, json};

use crate::support::{Operator, SOON, World, objects, on_both};

on_both!(a_redirect_follows_the_resolver_wherever_it_goes, a_resolver_of_another_namespace_is_another_one,);

const SERVICE: &str = "elasti-resolver-service";

/// Waits until the resolver has so many ready endpoints, and the service that sleeps leads to these.
async fn leads_to(world: &World, count: usize) -> Vec<String> {
    eventually(&format!("it leads to {count} of the resolver"), SOON, async || {
        let resolver = world.endpoints(SERVICE).await.1;
        (resolver.len() == count && world.endpoints("web").await.0 == resolver).then_some(resolver)
    })
    .await
}

async fn redirected(world: &World, status: &str, reason: &str) -> Value {
    let is_it =
        |each: &&Value| each["type"] == "Redirected" && each["status"] == status && each["reason"] == reason;
    eventually(&format!("Redirected is {status} for {reason}"), SOON, async || {
        let elasti = world.elasti("web").await?;
        elasti["status"]["conditions"].as_array().into_iter().flatten().find(is_it).cloned()
    })
    .await
}

async fn a_redirect_follows_the_resolver_wherever_it_goes(world: World) {
    world.service("web", 0).await;
    let operator = Operator::start(&world, &[]).await;
    world.sleeps("web").await;
    for count in [3, 1, 2] {
        world.scale("elasti-resolver", count).await;
        leads_to(&world, count as usize).await;
    }
    // All its pods are other ones.
    let before = leads_to(&world, 2).await;
    world.scale("elasti-resolver", 0).await;
    leads_to(&world, 0).await;
    redirected(&world, "False", "ResolverUnavailable").await;
    world.scale("elasti-resolver", 2).await;
    assert_ne!(leads_to(&world, 2).await, before);
    redirected(&world, "True", "TargetNotReady").await;

    // Somebody deletes its slices: whoever makes them makes them anew.
    let uids = async || {
        let slices = format!("endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{SERVICE}");
        let slices = world.endpoint.get_json(&world.path("discovery.k8s.io/v1", &slices)).await.unwrap();
        let each = slices["items"].as_array().unwrap().iter().map(|slice| slice["metadata"].clone());
        each.collect::<Vec<_>>()
    };
    let before = uids().await;
    for slice in &before {
        let name = slice["name"].as_str().unwrap();
        world.delete("discovery.k8s.io/v1", &format!("endpointslices/{name}")).await;
    }
    eventually("there are others", SOON, async || {
        let now = uids().await;
        (!now.is_empty() && now.iter().all(|slice| before.iter().all(|old| old["uid"] != slice["uid"])))
            .then_some(())
    })
    .await;
    leads_to(&world, 2).await;

    // Somebody deletes its Service: nobody is there, and that is said. The slice stays, and is filled when it is back.
    let slice =
        world.path("discovery.k8s.io/v1", &format!("endpointslices/{}", names::resolver_slice("web")));
    let uid = async || world.endpoint.get_json(&slice).await.unwrap()["metadata"]["uid"].clone();
    let before = uid().await;
    world.delete("v1", &format!("services/{SERVICE}")).await;
    leads_to(&world, 0).await;
    let said = redirected(&world, "False", "ResolverUnavailable").await;
    assert!(said["message"].as_str().unwrap().contains("see that the resolver runs"), "{said}");
    assert_eq!(uid().await, before);
    world.create("v1", "services", &objects::service(SERVICE, "elasti-resolver", 8012)).await;
    leads_to(&world, 2).await;
    redirected(&world, "True", "TargetNotReady").await;
    assert_eq!(uid().await, before);

    // It all works as before.
    assert_eq!(operator.call(&world.namespace, "web").await.status, 200);
    world.serves("web").await;
    assert_eq!(operator.stop().await.0.code(), Some(0));
}

/// Namespaces are looked after that have a Service of the resolver's name, with other endpoints.
async fn a_resolver_of_another_namespace_is_another_one(world: World) {
    let other = format!("{}-x", world.namespace);
    let namespace = json!({ "metadata": { "name": other } });
    world.endpoint.post("/api/v1/namespaces", &namespace).await.unwrap().success().unwrap();
    let service = json!({ "metadata": { "name": SERVICE }, "spec": { "ports": [{ "port": 8012 }] } });
    let services = format!("/api/v1/namespaces/{other}/services");
    world.endpoint.post(&services, &service).await.unwrap().success().unwrap();
    let slice = json!({
        "metadata": { "name": "theirs", "labels": { "kubernetes.io/service-name": SERVICE } },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 8012, "protocol": "TCP" }],
        "endpoints": [{ "addresses": ["10.66.0.1"], "conditions": { "ready": true } }],
    });
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{other}/endpointslices");
    world.endpoint.post(&slices, &slice).await.unwrap().success().unwrap();

    world.service("web", 0).await;
    // It has rights in both.
    let more = ["--watch-namespace", other.as_str()];
    let operator = Operator::as_somebody(&world, &world.admin(), &more).await;
    world.sleeps("web").await;
    assert!(!leads_to(&world, 2).await.contains(&"10.66.0.1".to_owned()));
    // What happens to theirs is nothing to this one; it has been seen when what comes after it has.
    let more = json!({ "endpoints": [{ "addresses": ["10.66.0.2"], "conditions": { "ready": true } }] });
    world.endpoint.merge_patch(&format!("{slices}/theirs"), &more).await.unwrap().success().unwrap();
    world.scale("elasti-resolver", 1).await;
    let one = leads_to(&world, 1).await;
    assert!(!one.iter().any(|address| address.starts_with("10.66.")), "{one:?}");
    world.sleeps("web").await;
    assert_eq!(operator.stop().await.0.code(), Some(0));
    world.endpoint.delete(&format!("/api/v1/namespaces/{other}")).await.unwrap().success().unwrap();
}
