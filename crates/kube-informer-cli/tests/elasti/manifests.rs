//! What is applied to a cluster: the real server takes it, and the rights that it gives are enough and not more.

use std::path::{Path, PathBuf};

use kube_informer_elasti::names;
use kube_informer_testbed::binaries::{self, Unavailable};
use kube_informer_testbed::cluster::{Cluster, OwnCluster};
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::Value;
use tokio::process::Command;

use crate::lifecycle::a_cycle;
use crate::rights;
use crate::support::{ACCOUNT, Operator, SOON, World, manifests};

/// A kubectl for a cluster.
struct Kubectl<'a> {
    binary: PathBuf,
    kubeconfig: PathBuf,
    folder: &'a Path,
}

impl Kubectl<'_> {
    async fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.binary);
        command.args(["--kubeconfig"]).arg(&self.kubeconfig).args(args).kill_on_drop(true);
        let cache = self.folder.join("cache");
        let output = command.env("KUBECACHEDIR", cache).env("KUBERC", "off").output().await.unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {out}{err}", args.join(" "));
        out.into_owned()
    }

    /// The manifests, in a namespace, as a file.
    async fn rendered(&self, namespace: &str) -> String {
        let base = self.folder.join("base");
        std::fs::create_dir_all(&base).unwrap();
        for file in std::fs::read_dir(manifests()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), base.join(file.file_name())).unwrap();
        }
        let overlay = self.folder.join(format!("overlay-{namespace}"));
        std::fs::create_dir_all(&overlay).unwrap();
        let text = format!("resources: [../base]\nnamespace: {namespace}\n");
        std::fs::write(overlay.join("kustomization.yaml"), text).unwrap();
        let rendered = self.run(&["kustomize", overlay.to_str().unwrap()]).await;
        let file = overlay.join("rendered.yaml");
        std::fs::write(&file, rendered).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

async fn kubectl<'a>(cluster: &OwnCluster, folder: &'a Path) -> Result<Kubectl<'a>, Unavailable> {
    Ok(Kubectl { binary: binaries::kubectl().await?, kubeconfig: cluster.admin_kubeconfig(), folder })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_are_taken_and_their_rights_suffice() {
    let options = Options::new()
        .controller_manager(true)
        // Who says that an object is to be deleted before its owner needs a right to the owner's finalizers.
        .apiserver_flag("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
        .apiserver_flag("--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112");
    let cluster = kube_informer_testbed::require!(Cluster::own(options).await);
    let mut world = World::unmanned(&cluster, "their_rights_suffice").await;
    // As in a cluster that has one operator.
    world.everywhere = true;
    let kubectl = kube_informer_testbed::require!(kubectl(&cluster, world.folder()).await);

    // As they are, and in another namespace; pods may have to be as safe as can be.
    let safe = serde_json::json!({ "metadata": { "name": "elasti", "labels": {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }}});
    world.endpoint.post("/api/v1/namespaces", &safe).await.unwrap().success().unwrap();
    let base = manifests();
    let dry = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--warnings-as-errors"];
    let taken = kubectl.run(&[&dry[..], &["-k", base.to_str().unwrap()]].concat()).await;
    for kind in [
        "customresourcedefinition",
        "serviceaccount",
        "clusterrolebinding",
        "rolebinding",
        "deployment",
        "service",
    ] {
        assert!(taken.contains(kind), "{taken}\nlacks {kind}");
    }
    let namespace = world.namespace.clone();
    let rendered = kubectl.rendered(&namespace).await;
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &rendered]).await;
    least_privilege(&world.endpoint).await;

    // The account, and nobody else: not the administrator.
    let file = cluster.kubeconfig_for_service_account(&namespace, ACCOUNT).await.unwrap();
    let access = Access::read(&file).await.unwrap();
    let account = Endpoint::new(access.clone()).unwrap();
    for forbidden in ["/api/v1/secrets", "/api/v1/nodes", "/apis/coordination.k8s.io/v1/leases"] {
        assert_eq!(account.get(forbidden).await.unwrap().status, 403, "{forbidden}");
    }
    rights::finalizers_are_guarded(&cluster, &world).await;
    rights::before(&world).await;
    let operator = Operator::as_somebody(&world, &access, &["--leader-elect"]).await;
    rights::what_was_left_is_taken_over(&world).await;
    a_cycle(&world, &operator).await;
    rights::all_kinds_sleep_and_wake(&world, &operator).await;
    world.scale("web", 0).await;
    world.sleeps("web").await;
    // What is there is changed, too: the resolver has more pods, the Service another port.
    world.scale("elasti-resolver", 3).await;
    eventually("the slices lead to three pods", SOON, async || {
        (world.endpoints("web").await.0.len() == 3).then_some(())
    })
    .await;
    let port =
        serde_json::json!({ "spec": { "ports": [{ "name": "http", "port": 85, "targetPort": 1111 }] } });
    let service = world.path("v1", "services/web");
    world.endpoint.merge_patch(&service, &port).await.unwrap().success().unwrap();
    let private = world.path("v1", &format!("services/{}", names::private_service("web")));
    eventually("the private Service has the port", SOON, async || {
        let private = world.endpoint.get_json(&private).await.unwrap();
        (private["spec"]["ports"][0]["port"] == 85).then_some(())
    })
    .await;
    rights::both_families_are_redirected(&world).await;
    rights::all_are_given_back(&world).await;
    let (status, said) = operator.stop().await;
    assert_eq!(status.code(), Some(0), "{said}");
    let events = world.endpoint.get_json(&world.path("events.k8s.io/v1", "events")).await.unwrap();
    let about = |event: &&Value| event["regarding"]["kind"] == "ElastiService";
    assert!(events["items"].as_array().unwrap().iter().any(|event| about(&event)), "{events}");
}

/// No wildcards, no secrets, nothing that gives more rights.
async fn least_privilege(endpoint: &Endpoint) {
    let role = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{ACCOUNT}");
    let role = endpoint.get_json(&role).await.unwrap();
    for rule in role["rules"].as_array().unwrap() {
        for part in ["apiGroups", "resources", "verbs"] {
            for word in rule[part].as_array().unwrap() {
                let word = word.as_str().unwrap();
                let is_much = word.contains('*')
                    || ["secrets", "escalate", "bind", "impersonate", "pods/exec"].contains(&word);
                assert!(!is_much, "{rule}");
            }
        }
    }
}
