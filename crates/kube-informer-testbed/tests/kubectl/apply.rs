//! `apply`, `diff`, `replace`: objects from files.

use kube_informer_testbed::require;

use crate::harness::{Kubectl, tidy};

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: 'nginx:1', ports: [{containerPort: 80}]}
";

#[tokio::test]
async fn an_applied_file_is_created_then_updated_then_unchanged() {
    let k = require!(Kubectl::new().await);
    k.file("web.yaml", WEB);
    assert_eq!(k.ok("apply -f web.yaml").await, "deployment.apps/web created\n");
    assert_eq!(k.ok("apply -f web.yaml").await, "deployment.apps/web unchanged\n");
    // What others set stays; what the file drops goes.
    k.ok("annotate deployment web by=hand").await;
    k.ok("scale deployment web --replicas=5").await;
    k.file("web.yaml", &WEB.replace("  replicas: 2\n", "").replace("nginx:1", "nginx:2"));
    assert_eq!(k.ok("apply -f web.yaml").await, "deployment.apps/web configured\n");
    let state = "get deployment web -o jsonpath={.spec.replicas}:{.spec.template.spec.containers[*].image}:{.metadata.annotations.by}";
    assert_eq!(k.ok(state).await, "1:nginx:2:hand");
    let managers = k
        .ok("get deployment web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}")
        .await;
    assert!(managers.contains("kubectl-client-side-apply"), "{managers}");
    let applied = k.ok("apply view-last-applied deployment web").await;
    assert!(applied.contains("image: nginx:2"), "{applied}");
}

#[tokio::test]
async fn a_difference_is_shown_and_not_made() {
    let k = require!(Kubectl::new().await);
    k.file("web.yaml", WEB);
    k.ok("apply -f web.yaml").await;
    assert_eq!(k.ok("diff -f web.yaml").await, "");
    k.file("web.yaml", &WEB.replace("nginx:1", "nginx:2"));
    let output = k.command("diff -f web.yaml").output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "a difference");
    let difference = tidy(&String::from_utf8(output.stdout).unwrap());
    assert!(difference.contains("\n- - image: nginx:1\n+ - image: nginx:2\n"), "{difference}");
    assert_eq!(k.ok("get deployment web -o jsonpath={.metadata.generation}").await, "1");
}

#[tokio::test]
async fn replacing_keeps_the_object_and_forcing_makes_a_new_one() {
    let k = require!(Kubectl::new().await);
    k.file("web.yaml", WEB);
    k.ok("create -f web.yaml").await;
    let identity = "get deployment web -o jsonpath={.metadata.uid}";
    let before = k.ok(identity).await;
    k.file("web.yaml", &WEB.replace("replicas: 2", "replicas: 3"));
    assert_eq!(k.ok("replace -f web.yaml").await, "deployment.apps/web replaced\n");
    assert_eq!(k.ok(identity).await, before);
    assert_eq!(k.ok("get deployment web -o jsonpath={.spec.replicas}").await, "3");
    let forced = k.tidy("replace --force -f web.yaml").await;
    assert_eq!(forced, "deployment.apps \"web\" deleted\ndeployment.apps/web replaced");
    assert_ne!(k.ok(identity).await, before);
}

#[tokio::test]
async fn several_objects_are_applied_and_deleted_as_one_file() {
    let k = require!(Kubectl::new().await);
    let both = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n{}",
        WEB.replace("name: web,", "name: web, namespace: shop,")
    );
    k.file("both.yaml", &both);
    assert_eq!(k.ok("apply -f both.yaml").await, "namespace/shop created\ndeployment.apps/web created\n");
    assert_eq!(k.ok("get -f both.yaml -o name").await, "namespace/shop\ndeployment.apps/web\n");
    // The namespace may have taken the deployment with it by the time that kubectl gets there.
    let deleted = k.tidy("delete -f both.yaml --ignore-not-found").await;
    assert!(deleted.starts_with("namespace \"shop\" deleted"), "{deleted}");
    assert_eq!(k.ok("get -f both.yaml -o name --ignore-not-found").await, "");
}
