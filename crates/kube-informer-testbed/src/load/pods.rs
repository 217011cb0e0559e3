//! Pods as a web service's deployment makes them.

use serde_json::{Value, json};

use super::rng::Rng;
use super::{Kind, Object, Step};

/// How many pods share one ReplicaSet.
const REPLICAS: u64 = 5;

const APPS: &[&str] = &[
    "catalog",
    "checkout",
    "frontend",
    "inventory",
    "ledger",
    "mailer",
    "orders",
    "payments",
    "search",
    "sessions",
];
const TIERS: &[&str] = &["backend", "edge", "batch", "internal"];
const ZONES: &[&str] = &["eu-central-1a", "eu-central-1b", "eu-central-1c"];

/// What the pods of one ReplicaSet have in common.
struct Template {
    app: &'static str,
    tier: &'static str,
    release: String,
    hash: String,
    owner: String,
    version: String,
    digests: [String; 2],
}

pub(super) fn pod(seed: u64, index: u64) -> Object {
    let template = Template::new(seed, index / REPLICAS);
    let mut rng = Rng::of(seed, "pod", index);
    // The index makes the name one of its kind; the rest makes it look like others.
    let name = format!("{}-{}-{}{index:x}", template.release, template.hash, rng.name(3));
    let node = format!("node-{:03}.{}.example.internal", rng.below(200), rng.pick(ZONES));
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template.metadata(&name),
        "spec": template.spec(&node),
    });
    let scheduled = rng.time();
    let steps = vec![
        Step {
            manager: "kube-scheduler",
            patch: json!({ "status": { "conditions": [condition("PodScheduled", &scheduled)] } }),
        },
        Step { manager: "kubelet", patch: json!({ "status": template.status(&mut rng, &scheduled) }) },
    ];
    Object { kind: Kind::Pod, name, manager: "kube-controller-manager", manifest, steps }
}

/// The kubelet finds a pod ready or not.
pub(super) fn update(number: u64, rng: &mut Rng) -> Step {
    let ready = rng.below(2) == 0;
    let mut conditions = Vec::new();
    for kind in ["Ready", "ContainersReady"] {
        let mut condition = condition(kind, &rng.time());
        if !ready {
            condition["status"] = "False".into();
            condition["reason"] = "ContainersNotReady".into();
        }
        condition["message"] = format!("update {number}").into();
        conditions.push(condition);
    }
    for kind in ["PodReadyToStartContainers", "Initialized", "PodScheduled"] {
        conditions.push(condition(kind, "2026-03-01T00:00:00Z"));
    }
    Step { manager: "kubelet", patch: json!({ "status": { "conditions": conditions } }) }
}

impl Template {
    fn new(seed: u64, index: u64) -> Self {
        let mut rng = Rng::of(seed, "replica set", index);
        let app = *rng.pick(APPS);
        Self {
            app,
            tier: *rng.pick(TIERS),
            release: format!("{app}-{}", rng.name(4)),
            hash: format!("{}{index:x}", rng.name(8)),
            owner: rng.uuid(),
            version: format!("{}.{}.{}", rng.below(9), rng.below(30), rng.below(10)),
            digests: [rng.hex(64), rng.hex(64)],
        }
    }

    fn labels(&self) -> Value {
        json!({
            "app": self.app,
            "app.kubernetes.io/component": self.tier,
            "app.kubernetes.io/instance": self.release,
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/name": self.app,
            "app.kubernetes.io/version": self.version,
            "pod-template-hash": self.hash,
        })
    }

    fn metadata(&self, name: &str) -> Value {
        let set = format!("{}-{}", self.release, self.hash);
        json!({
            "name": name,
            "generateName": format!("{set}-"),
            "labels": self.labels(),
            "annotations": {
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": "9102",
                "prometheus.io/scrape": "true",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": set,
                "uid": self.owner,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        })
    }

    fn spec(&self, node: &str) -> Value {
        let seconds = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
        json!({
            "nodeName": node,
            "serviceAccountName": "default",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 45,
            "securityContext": { "fsGroup": 2000, "runAsNonRoot": true, "runAsUser": 1000 },
            "tolerations": [seconds("node.kubernetes.io/not-ready"), seconds("node.kubernetes.io/unreachable")],
            "containers": [self.app_container(), self.proxy_container()],
            "volumes": [
                { "name": "config", "configMap": { "name": format!("{}-config", self.release), "defaultMode": 420 } },
                { "name": "credentials", "secret": { "secretName": format!("{}-credentials", self.release), "defaultMode": 256 } },
                { "name": "cache", "emptyDir": { "sizeLimit": "256Mi" } },
                { "name": "proxy-state", "emptyDir": { "medium": "Memory" } },
            ],
        })
    }

    fn app_container(&self) -> Value {
        json!({
            "name": self.app,
            "image": self.image(0),
            "imagePullPolicy": "IfNotPresent",
            "args": ["serve", "--config=/etc/service/config.yaml", "--listen=:8080"],
            "ports": [
                { "name": "http", "containerPort": 8080, "protocol": "TCP" },
                { "name": "grpc", "containerPort": 8081, "protocol": "TCP" },
                { "name": "admin", "containerPort": 8082, "protocol": "TCP" },
                { "name": "metrics", "containerPort": 9102, "protocol": "TCP" },
            ],
            "env": [
                { "name": "POD_NAME", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } },
                { "name": "SERVICE_NAME", "value": self.release },
                { "name": "LOG_LEVEL", "value": "info" },
                { "name": "TIER", "value": self.tier },
                { "name": "CACHE_DIR", "value": "/var/cache/service" },
                { "name": "MAX_CONNECTIONS", "value": "200" },
                { "name": "QUEUE_LENGTH", "value": "64" },
                { "name": "READ_TIMEOUT", "value": "5s" },
                { "name": "WRITE_TIMEOUT", "value": "10s" },
                { "name": "SHUTDOWN_GRACE", "value": "30s" },
                { "name": "TRACE_RATIO", "value": "0.01" },
                { "name": "FEATURE_FLAGS", "value": "a,b" },
                { "name": "DATABASE_PASSWORD", "valueFrom": { "secretKeyRef": {
                    "name": format!("{}-credentials", self.release), "key": "password",
                } } },
            ],
            "resources": {
                "requests": { "cpu": "250m", "memory": "256Mi" },
                "limits": { "cpu": "1", "memory": "512Mi" },
            },
            "startupProbe": probe("/healthz", "http", 2, 60),
            "livenessProbe": probe("/healthz", "http", 10, 3),
            "readinessProbe": probe("/ready", "http", 5, 3),
            "volumeMounts": [
                { "name": "config", "mountPath": "/etc/service", "readOnly": true },
                { "name": "credentials", "mountPath": "/etc/credentials", "readOnly": true },
                { "name": "cache", "mountPath": "/var/cache/service" },
            ],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        })
    }

    fn proxy_container(&self) -> Value {
        json!({
            "name": "proxy",
            "image": self.image(1),
            "imagePullPolicy": "IfNotPresent",
            "args": ["proxy", "--inbound=:15006", "--outbound=:15001"],
            "ports": [
                { "name": "inbound", "containerPort": 15006, "protocol": "TCP" },
                { "name": "outbound", "containerPort": 15001, "protocol": "TCP" },
                { "name": "proxy-admin", "containerPort": 15020, "protocol": "TCP" },
                { "name": "proxy-metrics", "containerPort": 15090, "protocol": "TCP" },
            ],
            "env": [
                { "name": "PROXY_CLUSTER", "value": "production" },
                { "name": "PROXY_SERVICE", "value": format!("{}.{}", self.release, self.tier) },
                { "name": "PROXY_CONCURRENCY", "value": "2" },
                { "name": "PROXY_LOG_LEVEL", "value": "warn" },
                { "name": "PROXY_RETRIES", "value": "3" },
                { "name": "PROXY_DRAIN", "value": "20s" },
            ],
            "resources": {
                "requests": { "cpu": "50m", "memory": "64Mi" },
                "limits": { "cpu": "500m", "memory": "128Mi" },
            },
            "readinessProbe": probe("/ready", "proxy-admin", 5, 3),
            "volumeMounts": [{ "name": "proxy-state", "mountPath": "/var/lib/proxy" }],
        })
    }

    fn image(&self, container: usize) -> String {
        format!("registry.internal/{}:{}", self.images()[container], self.version)
    }

    fn images(&self) -> [&'static str; 2] {
        [self.app, "mesh-proxy"]
    }

    fn status(&self, rng: &mut Rng, scheduled: &str) -> Value {
        let started = rng.time();
        let conditions: Vec<Value> = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"]
            .iter()
            .map(|kind| condition(kind, &started))
            .chain([condition("PodScheduled", scheduled)])
            .collect();
        let containers: Vec<Value> = [self.app, "proxy"]
            .iter()
            .enumerate()
            .map(|(at, name)| {
                json!({
                    "name": name,
                    "image": self.image(at),
                    "imageID": format!("registry.internal/{}@sha256:{}", self.images()[at], self.digests[at]),
                    "containerID": format!("containerd://{}", rng.hex(64)),
                    "ready": true,
                    "started": true,
                    "restartCount": rng.below(3),
                    "state": { "running": { "startedAt": started } },
                    "lastState": {},
                })
            })
            .collect();
        let host = format!("10.0.{}.{}", rng.below(250), 1 + rng.below(250));
        let pod = format!("10.{}.{}.{}", 64 + rng.below(64), rng.below(250), 1 + rng.below(250));
        json!({
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": containers,
            "hostIP": host,
            "hostIPs": [{ "ip": host }],
            "podIP": pod,
            "podIPs": [{ "ip": pod }],
            "startTime": scheduled,
        })
    }
}

fn condition(kind: &str, since: &str) -> Value {
    json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": since })
}

fn probe(path: &str, port: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": port, "scheme": "HTTP" },
        "periodSeconds": period,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": failures,
    })
}
