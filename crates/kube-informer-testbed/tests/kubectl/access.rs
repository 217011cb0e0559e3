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
async fn over_tls_kubectl_asks_for_no_password_where_none_is_wanted() {
    let k = require!(Kubectl::on(Server::builder().tls(true)).await);
    assert_eq!(k.ok("create configmap a").await, "configmap/a created\n");
}

#[tokio::test]
async fn who_may_do_everything_may_be_somebody_else() {
    let k = require!(Kubectl::new().await);
    let whoami = k.tidy("auth whoami --as jane --as-group devs --as-uid 7").await;
    assert_eq!(whoami, "ATTRIBUTE VALUE\nUsername jane\nUID 7\nGroups [devs system:authenticated]");
    let k = require!(Kubectl::on(Server::builder().tls(true).token("sesame", "jane", &["devs"])).await);
    let refused = k.fails("get --raw /api/v1/namespaces/default/configmaps --as bob").await;
    assert!(
        refused.contains("forbidden") && refused.contains("User \"jane\" cannot impersonate"),
        "{refused}"
    );
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
