//! `delete` and `wait`.

use std::process::Stdio;

use kube_informer_testbed::require;

use crate::harness::Kubectl;

#[tokio::test]
async fn objects_are_deleted_by_name_by_label_and_all() {
    let k = require!(Kubectl::new().await);
    for name in ["a", "b", "c", "d"] {
        k.ok(&format!("create configmap {name}")).await;
    }
    k.ok("label configmap b c x=y").await;
    assert_eq!(k.tidy("delete configmap a").await, "configmap \"a\" deleted");
    assert_eq!(k.tidy("delete configmap -l x=y").await, "configmap \"b\" deleted\nconfigmap \"c\" deleted");
    assert_eq!(k.tidy("delete configmap --all").await, "configmap \"d\" deleted");
    let (out, err) = k.warned("delete configmap --all").await;
    assert_eq!((out.as_str(), err.as_str()), ("No resources found", ""));
    assert_eq!(k.ok("delete configmap a --ignore-not-found").await, "");
    assert_eq!(
        k.fails("delete configmap a").await,
        "Error from server (NotFound): configmaps \"a\" not found"
    );
}

#[tokio::test]
async fn a_pod_that_nobody_ends_is_deleted_by_force() {
    let k = require!(Kubectl::new().await);
    k.feed("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}", "create -f -").await;
    assert_eq!(k.tidy("delete pod p --wait=false").await, "pod \"p\" deleted");
    assert_eq!(k.tidy("get pods").await, "NAME READY STATUS RESTARTS AGE\np 0/1 Terminating 0 AGE");
    let (out, err) = k.warned("delete pod p --grace-period=0 --force").await;
    assert!(out.starts_with("pod \"p\" force deleted"), "{out}");
    assert!(err.starts_with("Warning: Immediate deletion does not wait for confirmation"), "{err}");
    assert_eq!(k.ok("get pods -o name").await, "");
}

#[tokio::test]
async fn dependents_are_deleted_or_orphaned_as_asked() {
    let k = require!(Kubectl::new().await);
    for cascade in ["background", "foreground", "orphan"] {
        k.ok("create cronjob c --image=busybox --schedule=@hourly").await;
        k.ok(&format!("create job {cascade} --from=cronjob/c")).await;
        assert_eq!(
            k.tidy(&format!("delete cronjob c --cascade={cascade}")).await,
            "cronjob.batch \"c\" deleted"
        );
        if cascade != "orphan" {
            k.ok(&format!("wait --for=delete job/{cascade} --timeout=60s")).await;
        }
    }
    assert_eq!(k.ok("get jobs -o name").await, "job.batch/orphan\n");
    assert_eq!(k.ok("get job orphan -o jsonpath={.metadata.ownerReferences}").await, "");
}

#[tokio::test]
async fn a_deletion_waits_for_finalizers() {
    let k = require!(Kubectl::new().await);
    k.feed(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, finalizers: [example.com/keep]}",
        "create -f -",
    )
    .await;
    let delete = k.command("delete configmap a").stdout(Stdio::piped()).spawn().unwrap();
    k.ok("wait configmap a --for=jsonpath={.metadata.deletionTimestamp} --timeout=60s").await;
    k.ok(r#"patch configmap a --type=merge -p {"metadata":{"finalizers":null}}"#).await;
    let output = delete.wait_with_output().await.unwrap();
    assert!(output.status.success());
    assert_eq!(k.ok("get configmaps -o name").await, "");
}

#[tokio::test]
async fn conditions_and_values_are_waited_for() {
    let k = require!(Kubectl::new().await);
    k.ok("run p --image=nginx").await;
    let wait = |what: &str| k.command(&format!("wait pod/p --for={what} --timeout=60s")).spawn().unwrap();
    let (ready, phase, gone) =
        (wait("condition=Ready"), wait("jsonpath={.status.phase}=Running"), wait("delete"));
    k.ok(r#"patch pod p --subresource=status --type=merge -p {"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#).await;
    for waiting in [ready, phase] {
        let output = waiting.wait_with_output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "pod/p condition met\n");
    }
    k.ok("delete pod p --force --grace-period=0").await;
    assert!(gone.wait_with_output().await.unwrap().status.success());
    let late = k.fails("wait ns/default --for=jsonpath={.status.phase}=Gone --timeout=0s").await;
    assert!(late.contains("condition not met") || late.contains("timed out"), "{late}");
}

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let k = require!(Kubectl::new().await);
    k.ok("create namespace shop").await;
    k.ok("-n shop create configmap a").await;
    k.ok("-n shop create deployment web --image=nginx").await;
    assert_eq!(k.tidy("delete namespace shop").await, "namespace \"shop\" deleted");
    assert_eq!(
        k.fails("get namespace shop").await,
        "Error from server (NotFound): namespaces \"shop\" not found"
    );
    assert_eq!(k.ok("-n shop get configmaps,deployments -o name").await, "");
}
