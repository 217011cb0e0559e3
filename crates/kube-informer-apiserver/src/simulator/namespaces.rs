//! What every namespace gets: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

use std::sync::Arc;

use serde_json::json;

use super::Simulator;
use super::cluster::{Kind, Who};
use crate::object::Stored;

const ROOT_CA: &str = "kube-root-ca.crt";

impl Simulator {
    pub(super) fn furnish_namespace(&mut self, namespace: &Arc<Stored>) {
        if namespace.deleting {
            return;
        }
        let has = |kind: Kind, name: &str| {
            self.api.store.get(&kind.bucket(), &format!("{}/{name}", namespace.name)).is_some()
        };
        let (account, config) = (has(Kind::ServiceAccount, "default"), has(Kind::ConfigMap, ROOT_CA));
        let who = Who::ControllerManager;
        if !account {
            let object =
                json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default" } });
            let _: Result<_, _> = self.create(who, Kind::ServiceAccount, &namespace.name, object);
        }
        if !config {
            let object = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": ROOT_CA,
                    "annotations": {
                        "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
                    },
                },
                "data": { "ca.crt": "" },
            });
            let _: Result<_, _> = self.create(who, Kind::ConfigMap, &namespace.name, object);
        }
    }
}
