//! The operator's account, with the rights that the manifests give it.

use std::path::{Path, PathBuf};

use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;

use super::{ELASTI, SOON, World};

/// The ServiceAccount of the manifests, and its ClusterRole.
pub(crate) const ACCOUNT: &str = "elasti-operator-controller-manager";

const RBAC: &str = "rbac.authorization.k8s.io/v1";

const ELECTION: &str = "elasti-operator-leader-election";

/// The folder of the manifests.
pub(crate) fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kube-informer-elasti/manifests")
}

/// A manifest, for another namespace than the one that it is written for.
fn manifest(file: &str, namespace: &str) -> String {
    let text = std::fs::read_to_string(manifests().join(file)).unwrap();
    text.replace("namespace: elasti\n", &format!("namespace: {namespace}\n"))
}

impl World {
    /// Gives the operator the account of the manifests. What it may do everywhere by them, it may do in this namespace, so
    /// that it can do nothing to those of other tests.
    pub(super) async fn manned(mut self, cluster: &Cluster) -> Self {
        let role = format!("/apis/{RBAC}/clusterroles/{ACCOUNT}");
        let roles = [
            (role, "clusterrole.yaml"),
            (self.path(RBAC, &format!("roles/{ELECTION}")), "role.yaml"),
            (self.path(RBAC, &format!("rolebindings/{ELECTION}")), "rolebinding.yaml"),
        ];
        for (path, file) in roles {
            self.apply(&path, &manifest(file, &self.namespace)).await.success().unwrap();
        }
        let binding = json!({
            "metadata": { "name": ACCOUNT },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT },
            "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace }],
        });
        self.create(RBAC, "rolebindings", &binding).await;
        let file = cluster.kubeconfig_for_service_account(&self.namespace, ACCOUNT).await.unwrap();
        let access = Access::read(&file).await.unwrap();
        // The server hears of its rights in its own time.
        let account = Endpoint::new(access.clone()).unwrap();
        let lease = self.path("coordination.k8s.io/v1", "leases/acf50383.truefoundry.io");
        for path in [self.path(ELASTI, "elastiservices"), lease] {
            eventually("the account has its rights", SOON, async || {
                let answer = account.get(&path).await.unwrap();
                (answer.status != 403).then_some(())
            })
            .await;
        }
        self.account = Some(access);
        self
    }
}
