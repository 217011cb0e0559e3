//! What is applied to a cluster for `serve`: the real server takes it, and the rights that it gives are enough and not more.

use std::path::{Path, PathBuf};

use kube_informer_testbed::binaries;
use kube_informer_testbed::cluster::{Cluster, OwnCluster};
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::client::File;
use crate::serve::Served;

const ACCOUNT: &str = "kube-informer";

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

async fn kubectl(binary: &Path, cluster: &OwnCluster, args: &[&str]) -> String {
    let mut command = Command::new(binary);
    command.arg("--kubeconfig").arg(cluster.admin_kubeconfig()).args(args).kill_on_drop(true);
    let output = command.env("KUBERC", "off").output().await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "kubectl {}: {out}{err}", args.join(" "));
    out.into_owned()
}

/// The arguments of the one container.
fn arguments(deployment: &Value) -> Vec<String> {
    let args = deployment.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    args.unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_of_serve_are_taken_and_their_rights_suffice() {
    let cluster = kube_informer_testbed::require!(Cluster::own(Options::new()).await);
    let binary = kube_informer_testbed::require!(binaries::kubectl().await);
    let endpoint = cluster.endpoint().clone();
    // Pods may have to be as safe as can be.
    let safe = json!({ "metadata": { "name": "kube-informer", "labels": {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }}});
    endpoint.post("/api/v1/namespaces", &safe).await.unwrap().success().unwrap();
    let folder = manifests();
    let apply = ["apply", "--server-side", "--warnings-as-errors", "-k", folder.to_str().unwrap()];
    let taken = kubectl(&binary, &cluster, &[&apply[..], &["--dry-run=server"]].concat()).await;
    for kind in ["serviceaccount", "clusterrole", "clusterrolebinding", "service", "deployment"] {
        assert!(taken.contains(kind), "{taken}\nlacks {kind}");
    }
    kubectl(&binary, &cluster, &apply).await;
    read_only(&endpoint).await;

    // The account, and nobody else: not the administrator.
    let file = cluster.kubeconfig_for_service_account("kube-informer", ACCOUNT).await.unwrap();
    let access = Access::read(&file).await.unwrap();
    let account = Endpoint::new(access.clone()).unwrap();
    for forbidden in ["/api/v1/secrets", "/api/v1/configmaps", "/api/v1/nodes"] {
        assert_eq!(account.get(forbidden).await.unwrap().status, 403, "{forbidden}");
    }
    // What the container is started with; only where it listens is another address here.
    let path = "/apis/apps/v1/namespaces/kube-informer/deployments/kube-informer";
    let deployment = endpoint.get_json(path).await.unwrap();
    let token = File::token("a-token-that-nobody-guesses");
    let args: Vec<String> = arguments(&deployment)
        .into_iter()
        .map(|arg| match arg.split_once('=') {
            Some(("--listen", _)) => "--listen=127.0.0.1:0".to_owned(),
            Some(("--token-file", _)) => format!("--token-file={}", token.path()),
            _ => arg.replace("$(NAMESPACE)", "kube-informer"),
        })
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(("serve", rest)) = args.split_first().map(|(first, rest)| (*first, rest)) else {
        panic!("{args:?} is not serve")
    };
    let kubeconfig = File::kubeconfig(&access);
    let served = Served::ready(kubeconfig.path(), rest);
    for probe in ["livenessProbe", "readinessProbe"] {
        let path = deployment.pointer(&format!("/spec/template/spec/containers/0/{probe}/httpGet/path"));
        let answer = served.http.get(path.and_then(Value::as_str).unwrap()).await.unwrap();
        assert_eq!(answer.status, 200, "{probe}");
    }
    assert_eq!(served.terminate().await, Some(0));
}

/// Nothing but reading, no wildcards, no secrets.
async fn read_only(endpoint: &Endpoint) {
    let role = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}");
    let role = endpoint.get_json(&role).await.unwrap();
    for rule in role["rules"].as_array().unwrap() {
        assert_eq!(rule["verbs"], json!(["list", "watch"]), "{rule}");
        for part in ["apiGroups", "resources"] {
            for word in rule[part].as_array().unwrap() {
                let word = word.as_str().unwrap();
                assert!(!word.contains('*') && word != "secrets", "{rule}");
            }
        }
    }
}
