//! Changes to what is there: `edit`, `patch`, `scale`, `set`, `label`, `annotate`.

use kube_informer_testbed::require;

use crate::harness::{Kubectl, ok};

#[tokio::test]
async fn an_editor_changes_an_object() {
    let k = require!(Kubectl::new().await);
    k.ok("create configmap conf --from-literal=colour=red").await;
    let edit = |editor: &str| {
        let mut command = k.command("edit configmap conf");
        command.env("KUBE_EDITOR", editor);
        ok("edit configmap conf", command)
    };
    assert_eq!(edit("sed -i s/red/green/").await, "configmap/conf edited\n");
    assert_eq!(k.ok("get configmap conf -o jsonpath={.data.colour}").await, "green");
    // To stderr, as there is no result.
    assert_eq!(edit("true").await, "");
}

#[tokio::test]
async fn patches_of_three_kinds_are_applied() {
    let k = require!(Kubectl::new().await);
    k.ok("create deployment web --image=nginx:1").await;
    let strategic = r#"patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}"#;
    assert_eq!(k.ok(strategic).await, "deployment.apps/web patched\n");
    let images = "get deployment web -o jsonpath={.spec.template.spec.containers[*].image}";
    assert_eq!(k.ok(images).await, "busybox nginx:1");
    let json =
        r#"patch deployment web --type=json -p [{"op":"remove","path":"/spec/template/spec/containers/0"}]"#;
    assert_eq!(k.ok(json).await, "deployment.apps/web patched\n");
    assert_eq!(k.ok(images).await, "nginx:1");
    let merge = r#"patch deployment web --type=merge -p {"spec":{"replicas":4,"paused":null}}"#;
    assert_eq!(k.ok(merge).await, "deployment.apps/web patched\n");
    assert_eq!(k.ok(merge).await, "deployment.apps/web patched (no change)\n");
    let status = r#"patch deployment web --subresource=status --type=merge -p {"status":{"replicas":3},"spec":{"replicas":9}}"#;
    assert_eq!(k.ok(status).await, "deployment.apps/web patched\n");
    assert_eq!(k.ok("get deployment web -o jsonpath={.spec.replicas}/{.status.replicas}").await, "4/3");
}

#[tokio::test]
async fn deployments_are_scaled() {
    let k = require!(Kubectl::new().await);
    k.ok("create deployment web --image=nginx").await;
    assert_eq!(k.ok("scale deployment web --replicas=3").await, "deployment.apps/web scaled\n");
    assert_eq!(
        k.tidy("get deployment web --subresource=scale").await,
        "NAME DESIRED AVAILABLE AGE\nweb 3 0 AGE"
    );
    let refused = k.fails("scale deployment web --replicas=5 --current-replicas=9").await;
    assert_eq!(refused, "error: Expected replicas to be 9, was 3");
}

#[tokio::test]
async fn parts_of_a_workload_are_set() {
    let k = require!(Kubectl::new().await);
    k.ok("create deployment web --image=nginx:1").await;
    assert_eq!(k.ok("set image deployment/web nginx=nginx:2").await, "deployment.apps/web image updated\n");
    assert_eq!(k.ok("set env deployment/web A=1 B=2").await, "deployment.apps/web env updated\n");
    assert_eq!(k.ok("set env deployment/web A-").await, "deployment.apps/web env updated\n");
    assert_eq!(k.ok("set env deployment/web --list").await, "# Deployment web, container nginx\nB=2\n");
    assert_eq!(
        k.ok("set resources deployment web --limits=cpu=200m,memory=512Mi").await,
        "deployment.apps/web resource requirements updated\n"
    );
    assert_eq!(
        k.ok("set serviceaccount deployment web robot").await,
        "deployment.apps/web serviceaccount updated\n"
    );
    let container = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}:{.spec.template.spec.containers[0].resources.limits.cpu}:{.spec.template.spec.serviceAccountName}:{.metadata.generation}";
    assert_eq!(k.ok(container).await, "nginx:2:200m:robot:6");
}

#[tokio::test]
async fn labels_and_annotations_come_and_go() {
    let k = require!(Kubectl::new().await);
    k.ok("create configmap a").await;
    k.ok("create configmap b").await;
    assert_eq!(k.ok("label configmap a x=y").await, "configmap/a labeled\n");
    let refused = k.fails("label configmap a x=z").await;
    assert_eq!(refused, "error: 'x' already has a value (y), and --overwrite is false");
    assert_eq!(k.ok("label configmap a x=z --overwrite").await, "configmap/a labeled\n");
    assert_eq!(k.ok("label configmap --all tier=back").await, "configmap/a labeled\nconfigmap/b labeled\n");
    assert_eq!(k.ok("annotate configmap -l x=z note=hello").await, "configmap/a annotated\n");
    assert_eq!(k.ok("get cm -o jsonpath={.items[*].metadata.annotations.note}").await, "hello");
    assert_eq!(k.ok("label configmap a x-").await, "configmap/a unlabeled\n");
    assert_eq!(
        k.ok("get cm a --show-labels --no-headers").await.split_whitespace().last(),
        Some("tier=back")
    );
}

#[tokio::test]
async fn nodes_are_cordoned_and_tainted() {
    let k = require!(Kubectl::new().await);
    k.feed("apiVersion: v1\nkind: Node\nmetadata: {name: n1}", "create -f -").await;
    assert_eq!(k.ok("cordon n1").await, "node/n1 cordoned\n");
    assert_eq!(
        k.tidy("get nodes").await,
        "NAME STATUS ROLES AGE VERSION\nn1 Unknown,SchedulingDisabled <none> AGE"
    );
    assert_eq!(k.ok("taint node n1 a=b:NoSchedule").await, "node/n1 tainted\n");
    assert_eq!(k.ok("uncordon n1").await, "node/n1 uncordoned\n");
    assert!(k.ok("get node n1 -o jsonpath={.spec.taints[*].key}").await.split(' ').any(|key| key == "a"));
}
