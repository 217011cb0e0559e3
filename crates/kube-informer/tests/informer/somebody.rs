//! People and accounts who may see what roles allow them: on the real server, as the embedded one has no roles.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kube_informer::connect::Source;
use kube_informer::factory::Factory;
use kube_informer_testbed::cluster::Cluster;
use serde_json::{Value, json};

use crate::harness::Place;
use crate::stage::short;

const RBAC: &str = "rbac.authorization.k8s.io";

/// A user.
pub(crate) struct Somebody {
    pub(crate) place: Place,
    pub(crate) name: String,
    kubeconfig: PathBuf,
}

impl Somebody {
    pub(crate) async fn on(cluster: Cluster, test: &str) -> Result<Self> {
        let place = Place::real(cluster.clone(), test).await?;
        let name = format!("user-{}", place.namespace);
        let kubeconfig = cluster.kubeconfig_for_user(&name, &[]).await?;
        Ok(Self { place, name, kubeconfig })
    }

    pub(crate) async fn factory(&self) -> Result<Factory> {
        Ok(Factory::from_source(Source::file(&self.kubeconfig)).await?.timings(short()))
    }

    /// May list and watch config maps in the test's namespace; all, or those of these names.
    pub(crate) async fn may_watch(&self, role: &str, names: &[&str]) -> Result<()> {
        may_watch(&self.place, role, names, user(&self.name)).await
    }
}

/// A user, as roles are given to.
pub(crate) fn user(name: &str) -> Value {
    json!({ "apiGroup": RBAC, "kind": "User", "name": name })
}

/// A service account of a namespace, as roles are given to.
pub(crate) fn account(place: &Place, name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "namespace": place.namespace, "name": name })
}

/// Allows somebody to list and watch config maps in the test's namespace; all, or those of these names.
pub(crate) async fn may_watch(place: &Place, role: &str, names: &[&str], who: Value) -> Result<()> {
    let mut rule =
        json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"] });
    if !names.is_empty() {
        rule["resourceNames"] = json!(names);
    }
    let object = json!({ "metadata": { "name": role }, "rules": [rule] });
    place.post(&place.path(&format!("{RBAC}/v1/roles")), &object).await?;
    let binding = json!({
        "metadata": { "name": role },
        "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": role },
        "subjects": [who],
    });
    place.post(&place.path(&format!("{RBAC}/v1/rolebindings")), &binding).await?;
    Ok(())
}

/// A token of a service account, which is made if there is none.
pub(crate) async fn token(place: &Place, account: &str) -> Result<String> {
    let made = place
        .endpoint
        .post(&place.path("serviceaccounts"), &json!({ "metadata": { "name": account } }))
        .await?;
    ensure!(made.status.is_success() || made.status == 409, "{made:?}");
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let answer = place.post(&place.path(&format!("serviceaccounts/{account}/token")), &request).await?;
    Ok(answer["status"]["token"].as_str().context("an answer without a token")?.to_owned())
}
