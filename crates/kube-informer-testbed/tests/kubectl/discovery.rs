//! What the server says that it has.

use kube_informer_testbed::require;

use crate::harness::Kubectl;

#[tokio::test]
async fn resources_and_versions_are_listed() {
    let k = require!(Kubectl::new().await);
    let versions = k.ok("api-versions").await;
    for version in ["apps/v1", "batch/v1", "apiextensions.k8s.io/v1", "networking.k8s.io/v1", "v1"] {
        assert!(versions.lines().any(|line| line == version), "{version} not in\n{versions}");
    }
    let resources = k.tidy("api-resources --api-group=apps").await;
    let expected = "\
NAME SHORTNAMES APIVERSION NAMESPACED KIND
controllerrevisions apps/v1 true ControllerRevision
daemonsets ds apps/v1 true DaemonSet
deployments deploy apps/v1 true Deployment
replicasets rs apps/v1 true ReplicaSet
statefulsets sts apps/v1 true StatefulSet";
    assert_eq!(resources, expected);
    let wide = k.tidy("api-resources --api-group=authorization.k8s.io -o wide").await;
    assert!(
        wide.contains(
            "\nselfsubjectaccessreviews authorization.k8s.io/v1 false SelfSubjectAccessReview create"
        )
    );
    let cluster =
        k.ok("api-resources --namespaced=false --api-group=rbac.authorization.k8s.io -o name").await;
    assert_eq!(
        cluster,
        "clusterrolebindings.rbac.authorization.k8s.io\nclusterroles.rbac.authorization.k8s.io\n"
    );
}

#[tokio::test]
async fn fields_are_explained() {
    let k = require!(Kubectl::new().await);
    let explained = k.tidy("explain deployment.spec.replicas").await;
    assert!(explained.starts_with("GROUP: apps\nKIND: Deployment\nVERSION: v1\n"), "{explained}");
    assert!(explained.contains("FIELD: replicas <integer>"), "{explained}");
    let explained = k.tidy("explain pod.spec --recursive").await;
    assert!(explained.contains("\ncontainers <[]Container> -required-\n"), "{explained}");
    assert!(explained.contains("\nnodeSelector <map[string]string>"), "{explained}");
    let refused = k.fails("explain pod.spec.nope").await;
    assert_eq!(refused, "error: field \"nope\" does not exist");
}

#[tokio::test]
async fn the_server_has_a_version_and_an_address() {
    let k = require!(Kubectl::new().await);
    let (version, _) = k.warned("version").await;
    assert!(version.contains("Server Version: v1.37.1"), "{version}");
    let info = k.ok("cluster-info").await;
    assert!(info.contains("Kubernetes control plane"), "{info}");
    assert!(info.contains("http://127.0.0.1:"), "{info}");
}
