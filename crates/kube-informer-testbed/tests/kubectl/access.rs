//! Who one is, and whether one gets in.

use kube_informer_apiserver::Server;
use kube_informer_testbed::require;

use crate::harness::Kubectl;

#[tokio::test]
async fn over_tls_the_kubeconfig_brings_authority_and_token() {
    let server = Server::builder().tls(true).token("sesame", "jane", &["devs", "system:authenticated"]);
    let k = require!(Kubectl::on(server).await);
    let whoami = k.tidy("auth whoami").await;
    assert_eq!(whoami, "ATTRIBUTE VALUE\nUsername jane\nGroups [devs system:authenticated]");
    assert_eq!(k.ok("create configmap a").await, "configmap/a created\n");
    assert_eq!(k.ok("get configmaps -o name").await, "configmap/a\n");
    let refused = k.fails("get configmaps --token=wrong").await;
    assert_eq!(refused, "error: You must be logged in to the server (Unauthorized)");
}

#[tokio::test]
async fn everybody_may_do_everything() {
    let k = require!(Kubectl::new().await);
    assert_eq!(k.ok("auth can-i create pods").await, "yes\n");
    assert_eq!(k.ok("auth can-i * * --all-namespaces").await, "yes\n");
    let list = k.tidy("auth can-i --list").await;
    assert!(list.contains("\n*.* [] [] [*]"), "{list}");
    assert!(k.tidy("auth whoami").await.contains("\nGroups ["));
    assert_eq!(k.ok("get --raw /healthz").await, "ok");
}
