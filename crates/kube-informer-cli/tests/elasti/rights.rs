//! What the operator does with the rights of the manifests, and nobody else's: targets of all kinds, what KubeElasti has
//! left, both address families. For a kind that the manifests do not know, with one role more.

use kube_informer_elasti::names;
use kube_informer_testbed::cluster::OwnCluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};

use crate::support::{ACCOUNT, ELASTI, Operator, SOON, World, objects};

const ARGO: &str = "argoproj.io/v1alpha1";

const ODD: &str = "example.com/v1alpha1";

const SLICES: &str = "discovery.k8s.io/v1";

/// The server asks for a right to finalizers: without it, what the operator makes would be refused.
pub(crate) async fn finalizers_are_guarded(cluster: &OwnCluster, world: &World) {
    let namespace = world.namespace.as_str();
    let file = cluster.kubeconfig_for_service_account(namespace, "without").await.unwrap();
    let without = Endpoint::new(Access::read(&file).await.unwrap()).unwrap();
    let rules = json!([{ "apiGroups": [""], "resources": ["services"], "verbs": ["create"] }]);
    let rbac = "rbac.authorization.k8s.io/v1";
    world.create(rbac, "roles", &json!({ "metadata": { "name": "without" }, "rules": rules })).await;
    world.create(rbac, "rolebindings", &binding("without", "without", namespace)).await;
    world.create(ELASTI, "elastiservices", &objects::elasti("owner")).await;
    let owner = world.elasti("owner").await.unwrap();
    let mut service = objects::service("owned", "owned", 80);
    service["metadata"]["ownerReferences"] = json!([reference(&owner)]);
    let path = world.path("v1", "services");
    eventually("the role counts, and the owner is guarded", SOON, async || {
        let answer = without.post(&path, &service).await.unwrap();
        assert_eq!(answer.status, 403, "{answer:?}");
        answer.text().contains("blockOwnerDeletion").then_some(())
    })
    .await;
    world.delete_elasti("owner").await;
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": ELASTI,
        "kind": "ElastiService",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn binding(role: &str, account: &str, namespace: &str) -> Value {
    json!({
        "metadata": { "name": role },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
    })
}

/// What there is before the operator: kinds, and what KubeElasti has left of a service that sleeps and of one that does not.
pub(crate) async fn before(world: &World) {
    let scale = |replicas: &str, status: &str| {
        json!({
            "specReplicasPath": replicas,
            "statusReplicasPath": status,
            "labelSelectorPath": ".status.selector",
        })
    };
    let rollouts = objects::scalable(
        "argoproj.io",
        "rollouts",
        "Rollout",
        &scale(".spec.replicas", ".status.HPAReplicas"),
    );
    let oddities =
        objects::scalable("example.com", "oddities", "Oddity", &scale(".spec.size", ".status.size"));
    for (definition, version, plural) in [(rollouts, ARGO, "rollouts"), (oddities, ODD, "oddities")] {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        world.endpoint.post(definitions, &definition).await.unwrap().success().unwrap();
        let collection = world.path(version, plural);
        eventually("it is served", SOON, async || {
            world.endpoint.get(&collection).await.ok().filter(|answer| answer.status.is_success())
        })
        .await;
    }
    // As the README says of other kinds.
    let rules = json!([
        { "apiGroups": ["example.com"], "resources": ["oddities"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": ["example.com"], "resources": ["oddities/scale"], "verbs": ["get", "update"] },
    ]);
    let rbac = "rbac.authorization.k8s.io/v1";
    world.create(rbac, "roles", &json!({ "metadata": { "name": "oddities" }, "rules": rules })).await;
    world.create(rbac, "rolebindings", &binding("oddities", ACCOUNT, &world.namespace)).await;

    for (name, replicas) in [("left-asleep", 0), ("left-awake", 1)] {
        world.service(name, replicas).await;
        let elasti = world.elasti(name).await.unwrap();
        let slice = json!({
            "metadata": {
                "name": names::resolver_slice(name),
                "labels": { "kubernetes.io/service-name": name },
            },
            "addressType": "IPv4",
            "ports": [{ "name": "http", "port": 8012, "protocol": "TCP" }],
            "endpoints": [{ "addresses": ["10.66.0.9"] }],
        });
        world.create(SLICES, "endpointslices", &slice).await;
        let mut private = objects::service(&names::private_service(name), "old", 1);
        private["metadata"]["labels"] = json!({ "app": name });
        private["metadata"]["ownerReferences"] = json!([reference(&elasti)]);
        world.create("v1", "services", &private).await;
    }
}

pub(crate) async fn what_was_left_is_taken_over(world: &World) {
    world.sleeps("left-asleep").await;
    world.serves("left-awake").await;
    for name in ["left-asleep", "left-awake"] {
        let private = world.path("v1", &format!("services/{}", names::private_service(name)));
        let private = world.endpoint.get_json(&private).await.unwrap();
        assert_eq!(private["spec"]["selector"], json!({ "app": name }));
    }
    let slice = format!("endpointslices/{}", names::resolver_slice("left-asleep"));
    let slice = world.endpoint.get_json(&world.path(SLICES, &slice)).await.unwrap();
    assert_eq!(slice["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true, "{slice}");
}

/// Sleep from the beginning, are woken by the resolver's call, serve, and sleep again.
pub(crate) async fn all_kinds_sleep_and_wake(world: &World, operator: &Operator) {
    world.create("apps/v1", "statefulsets", &objects::stateful_set("set", 0)).await;
    // Argo is played: nobody else makes pods for Rollouts. One has a selector, the other one names who has it.
    world.create("apps/v1", "deployments", &objects::deployment("base", 0)).await;
    let base = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "base" });
    for (name, spec) in [
        ("roll", json!({ "replicas": 0, "selector": { "matchLabels": { "app": "roll" } } })),
        ("refers", json!({ "replicas": 0, "workloadRef": base })),
    ] {
        world
            .create(
                ARGO,
                "rollouts",
                &json!({ "apiVersion": ARGO, "kind": "Rollout",
            "metadata": { "name": name }, "spec": spec }),
            )
            .await;
    }
    // Of a kind that it has never heard of, the definition is read.
    let odd =
        json!({ "apiVersion": ODD, "kind": "Oddity", "metadata": { "name": "odd" }, "spec": { "size": 0 } });
    world.create(ODD, "oddities", &odd).await;
    for kind in kinds() {
        let Kind { name, app, version, .. } = kind;
        world.create("v1", "services", &objects::service(name, app, 80)).await;
        world.create(ELASTI, "elastiservices", &objects::elasti_of(name, (version, kind.called))).await;
        cycle(world, operator, &kind).await;
    }
}

/// A target of some kind, which is not a Deployment.
struct Kind {
    name: &'static str,
    /// The label of its pods.
    app: &'static str,
    version: &'static str,
    plural: &'static str,
    /// How the ElastiService calls it.
    called: &'static str,
    /// The field of its spec that says how many replicas it is to have.
    replicas: &'static str,
    /// What it says when it has one. Where nobody else makes pods for it, this is played.
    played: Option<Value>,
}

fn kinds() -> [Kind; 4] {
    let one = json!({ "status": { "replicas": 1 } });
    let odd = json!({ "status": { "size": 1, "selector": "app=odd" } });
    let rollout = Kind {
        name: "roll",
        app: "roll",
        version: ARGO,
        plural: "rollouts",
        called: "rollouts",
        replicas: "replicas",
        played: Some(one.clone()),
    };
    [
        Kind {
            name: "set",
            app: "set",
            version: "apps/v1",
            plural: "statefulsets",
            called: "StatefulSet",
            replicas: "replicas",
            played: None,
        },
        Kind { name: "refers", app: "base", called: "Rollout", played: Some(one), ..rollout },
        rollout,
        Kind {
            name: "odd",
            app: "odd",
            version: ODD,
            plural: "oddities",
            called: "Oddity",
            replicas: "size",
            played: Some(odd),
        },
    ]
}

impl Kind {
    fn path(&self) -> String {
        format!("{}/{}", self.plural, self.name)
    }

    async fn wanted(&self, world: &World) -> Value {
        let object = world.endpoint.get_json(&world.path(self.version, &self.path())).await.unwrap();
        object["spec"][self.replicas].clone()
    }
}

async fn cycle(world: &World, operator: &Operator, kind: &Kind) {
    let name = kind.name;
    world.sleeps(name).await;
    let woken = operator.call(&world.namespace, name).await;
    assert_eq!(woken.status, 200, "{woken:?}");
    assert_eq!(kind.wanted(world).await, 1, "200 means that it was scaled");
    if let Some(status) = &kind.played {
        world.create("v1", "pods", &objects::pod(name, kind.app)).await;
        world.edit(kind.version, &format!("{}/status", kind.path()), status).await;
    }
    world.serves(name).await;
    world.edit(kind.version, &kind.path(), &json!({ "spec": { kind.replicas: 0 } })).await;
    if kind.played.is_some() {
        world.delete("v1", &format!("pods/{name}")).await;
    }
    world.sleeps(name).await;
}

/// All of them end at once: what sleeps is woken, and nothing is left.
pub(crate) async fn all_are_given_back(world: &World) {
    let deployments = [("web", 1), ("both", 1), ("left-asleep", 1), ("left-awake", 1)];
    world.delete(ELASTI, "elastiservices").await;
    for kind in kinds() {
        eventually("it is woken", SOON, async || (kind.wanted(world).await == 1).then_some(())).await;
        if kind.played.is_some() {
            world.create("v1", "pods", &objects::pod(&format!("{}-again", kind.name), kind.app)).await;
        }
    }
    for kind in kinds() {
        world.forgotten(kind.name).await;
    }
    for (name, replicas) in deployments {
        world.forgotten(name).await;
        assert_eq!(world.replicas(name).await, replicas, "{name}");
    }
}

/// The resolver has an address of the other family, too.
pub(crate) async fn both_families_are_redirected(world: &World) {
    let slice = json!({
        "metadata": {
            "name": "resolver-v6",
            "labels": { "kubernetes.io/service-name": "elasti-resolver-service" },
        },
        "addressType": "IPv6",
        "ports": [{ "name": "http", "port": 8012, "protocol": "TCP" }],
        "endpoints": [{ "addresses": ["fd00:77::7"], "conditions": { "ready": true } }],
    });
    world.create(SLICES, "endpointslices", &slice).await;
    world.create("apps/v1", "deployments", &objects::deployment("both", 0)).await;
    let mut service = objects::service("both", "both", 80);
    service["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
    service["spec"]["ipFamilies"] = json!(["IPv6", "IPv4"]);
    world.create("v1", "services", &service).await;
    world.create(ELASTI, "elastiservices", &objects::elasti("both")).await;
    world.sleeps("both").await;
    let (to_resolver, _) = world.endpoints("both").await;
    assert!(to_resolver.contains(&"fd00:77::7".to_owned()), "{to_resolver:?}");
    let second = world.path(SLICES, &format!("endpointslices/{}-ipv6", names::resolver_slice("both")));
    // It is written anew, too.
    let other = json!({ "endpoints": [{ "addresses": ["fd00:77::8"], "conditions": { "ready": true } }] });
    world.edit(SLICES, "endpointslices/resolver-v6", &other).await;
    eventually("it follows", SOON, async || {
        let slice = world.endpoint.get_json(&second).await.unwrap();
        (slice["endpoints"][0]["addresses"][0] == "fd00:77::8").then_some(())
    })
    .await;
}
