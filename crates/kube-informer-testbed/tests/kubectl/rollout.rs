//! Rollouts, on a simulated cluster.

use kube_informer_apiserver::{Server, Simulation};
use kube_informer_testbed::require;

use crate::harness::Kubectl;

#[tokio::test]
async fn a_deployment_is_rolled_out_back_and_again() {
    let server = Server::builder().simulate(Simulation::default().with_speed(50.0).with_seed(1));
    let k = require!(Kubectl::on(server).await);
    let wait = "rollout status deployment web --timeout=100s";
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}";
    k.ok("create deployment web --image=nginx:1 --replicas=2").await;
    assert!(k.ok(wait).await.ends_with("deployment \"web\" successfully rolled out\n"));
    assert_eq!(k.tidy("get deployment web").await, "NAME READY UP-TO-DATE AVAILABLE AGE\nweb 2/2 2 2 AGE");
    k.ok("set image deployment/web nginx=nginx:2").await;
    assert!(k.ok(wait).await.ends_with("successfully rolled out\n"));
    assert_eq!(
        k.tidy("rollout history deployment web").await,
        "deployment.apps/web\nREVISION CHANGE-CAUSE\n1 <none>\n2 <none>\n"
    );
    let first = k.tidy("rollout history deployment web --revision=1").await;
    assert!(
        first.starts_with("deployment.apps/web with revision #1\nPod Template:\nLabels: app=web\n"),
        "{first}"
    );
    assert!(first.contains("\nImage: nginx:1\n"), "{first}");
    assert_eq!(k.ok("rollout undo deployment web").await, "deployment.apps/web rolled back\n");
    assert!(k.ok(wait).await.ends_with("successfully rolled out\n"));
    assert_eq!(k.ok(image).await, "nginx:1");
    assert_eq!(
        k.ok("rollout undo deployment web --to-revision=2").await,
        "deployment.apps/web rolled back\n"
    );
    assert!(k.ok(wait).await.ends_with("successfully rolled out\n"));
    assert_eq!(k.ok(image).await, "nginx:2");
    assert_eq!(k.ok("rollout restart deployment web").await, "deployment.apps/web restarted\n");
    assert!(k.ok(wait).await.ends_with("successfully rolled out\n"));
    let history = k.tidy("rollout history deployment web").await;
    assert_eq!(history, "deployment.apps/web\nREVISION CHANGE-CAUSE\n3 <none>\n4 <none>\n5 <none>\n");
}

#[tokio::test]
async fn a_paused_deployment_waits_to_be_resumed() {
    let server = Server::builder().simulate(Simulation::default().with_speed(50.0).with_seed(2));
    let k = require!(Kubectl::on(server).await);
    k.ok("create deployment web --image=nginx:1").await;
    k.ok("wait deployment web --for=condition=Available --timeout=100s").await;
    assert_eq!(k.ok("rollout pause deployment web").await, "deployment.apps/web paused\n");
    k.ok("set image deployment/web nginx=nginx:2").await;
    let generation = k.ok("get deployment web -o jsonpath={.metadata.generation}").await;
    let observed = format!("jsonpath={{.status.observedGeneration}}={generation}");
    k.ok(&format!("wait deployment web --for={observed} --timeout=100s")).await;
    assert_eq!(
        k.ok("get replicasets -o jsonpath={.items[*].spec.template.spec.containers[*].image}").await,
        "nginx:1"
    );
    assert_eq!(k.ok("rollout resume deployment web").await, "deployment.apps/web resumed\n");
    assert!(
        k.ok("rollout status deployment web --timeout=100s").await.ends_with("successfully rolled out\n")
    );
    let described = k.tidy("describe deployment web").await;
    assert!(
        described.contains("\nReplicas: 1 desired | 1 updated | 1 total | 1 available | 0 unavailable\n"),
        "{described}"
    );
    assert!(described.contains("\nProgressing True NewReplicaSetAvailable"), "{described}");
    assert!(described.contains("deployment-controller Scaled up replica set web-"), "{described}");
}

#[tokio::test]
async fn the_simulated_cluster_can_be_looked_at_and_drained() {
    let server =
        Server::builder().simulate(Simulation::default().with_speed(50.0).with_seed(3).with_nodes(2));
    let k = require!(Kubectl::on(server).await);
    k.ok("create deployment web --image=nginx --replicas=2").await;
    k.ok("rollout status deployment web --timeout=100s").await;
    let nodes = k.tidy("get nodes").await;
    assert_eq!(
        nodes,
        "NAME STATUS ROLES AGE VERSION\nnode-1 Ready <none> AGE v1.37.1\nnode-2 Ready <none> AGE v1.37.1"
    );
    assert_eq!(k.ok("get pods -o jsonpath={.items[*].status.phase}").await, "Running Running");
    let events = k.ok("events --for deployment/web").await;
    assert!(events.contains("Scaled up replica set"), "{events}");
    let drained = k.ok("drain node-1 --timeout=100s").await;
    assert!(drained.ends_with("node/node-1 drained\n"), "{drained}");
    k.ok("rollout status deployment web --timeout=100s").await;
    assert_eq!(k.ok("get pods --field-selector spec.nodeName=node-1 -o name").await, "");
}
