//! Records what the benchmarks read, from a real kube-apiserver: the bodies of watches that begin with every object, of
//! five resources, in each encoding that the resource has. `cargo run -p kube-informer-bench --example record`
//!
//! The objects are made from a seed; what the server adds (UIDs, versions, times) differs between runs.

use std::path::Path;

use anyhow::{Context, Result};
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::load::{self, Kind, Rng};
use serde_json::{Value, json};

/// Of each kind; the first half is for the training of dictionaries.
const COUNT: usize = 256;
const SEED: u64 = 7;

/// Fewer of what does not shrink, for the repository's sake.
const SECRETS: u64 = 64;

/// A watch ends by itself after so long; by then everything was sent.
const SECONDS: u32 = 3;

const APPS: [&str; 8] =
    ["catalog", "checkout", "frontend", "ledger", "mailer", "orders", "payments", "search"];

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("bench").await?;
    let endpoint = cluster.endpoint();
    load::install_custom_resources(endpoint).await?;
    load::write_all(endpoint, namespace.name(), load::pods(SEED, COUNT), 8).await?;
    load::write_all(endpoint, namespace.name(), load::custom_resources(SEED, COUNT), 8).await?;
    let path = |group: &str, plural: &str| format!("{group}/namespaces/{}/{plural}", namespace.name());
    let deployments = path("/apis/apps/v1", "deployments");
    let config_maps = path("/api/v1", "configmaps");
    let secrets = path("/api/v1", "secrets");
    for index in 0..COUNT as u64 {
        let (deployment, status) = deployment(index);
        let name = create(endpoint, &deployments, "helm", &deployment).await?;
        let status_path = format!("{deployments}/{name}/status?fieldManager=kube-controller-manager");
        endpoint.merge_patch(&status_path, &status).await?.success()?;
        create(endpoint, &config_maps, "helm", &config_map(index)).await?;
    }
    for index in 0..SECRETS {
        create(endpoint, &secrets, "cert-manager-certificates-issuing", &secret(index)).await?;
    }

    let pods = Kind::Pod.path(namespace.name());
    for (name, path) in
        [("pods", &pods), ("deployments", &deployments), ("configmaps", &config_maps), ("secrets", &secrets)]
    {
        record(endpoint, path, "application/json", &format!("{name}.json")).await?;
        record(endpoint, path, "application/vnd.kubernetes.protobuf;stream=watch", &format!("{name}.pb"))
            .await?;
    }
    record(endpoint, &Kind::Gadget.path(namespace.name()), "application/json", "gadgets.json").await?;
    namespace.close().await
}

async fn create(endpoint: &Endpoint, path: &str, manager: &str, object: &Value) -> Result<String> {
    endpoint.post(&format!("{path}?fieldManager={manager}"), object).await?.success()?;
    Ok(object["metadata"]["name"].as_str().context("an object without a name")?.to_owned())
}

async fn record(endpoint: &Endpoint, path: &str, accept: &'static str, file: &str) -> Result<()> {
    let query = format!(
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds={SECONDS}"
    );
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
    let answer = endpoint.request(Method::GET, &format!("{path}?{query}"), headers, "").await?.success()?;
    anyhow::ensure!(answer.status == StatusCode::OK, "{path}: {}", answer.status);
    let packed = zstd::bulk::compress(&answer.body, 19)?;
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(format!("{file}.zst"));
    std::fs::write(&to, &packed).with_context(|| format!("cannot write {}", to.display()))?;
    println!("{file}: {} bytes, {} packed", answer.body.len(), packed.len());
    Ok(())
}

struct Release {
    app: &'static str,
    name: String,
    version: String,
}

impl Release {
    fn new(rng: &mut Rng, index: u64) -> Self {
        let app = *rng.pick(&APPS);
        let version = format!("{}.{}.{}", rng.below(9), rng.below(30), rng.below(10));
        Self { app, name: format!("{app}-{}{index:x}", rng.name(4)), version }
    }

    fn metadata(&self, suffix: &str) -> Value {
        json!({
            "name": format!("{}{suffix}", self.name),
            "labels": {
                "app.kubernetes.io/instance": self.name,
                "app.kubernetes.io/managed-by": "Helm",
                "app.kubernetes.io/name": self.app,
                "app.kubernetes.io/version": self.version,
                "helm.sh/chart": format!("{}-{}", self.app, self.version),
            },
            "annotations": {
                "meta.helm.sh/release-name": self.name,
                "meta.helm.sh/release-namespace": "production",
            },
        })
    }
}

fn deployment(index: u64) -> (Value, Value) {
    let mut rng = Rng::of(SEED, "deployment", index);
    let release = Release::new(&mut rng, index);
    let selector =
        json!({ "app.kubernetes.io/instance": release.name, "app.kubernetes.io/name": release.app });
    let replicas = 1 + rng.below(12);
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 10 });
    let env: Vec<Value> = ["LOG_LEVEL", "CACHE_DIR", "MAX_CONNECTIONS", "READ_TIMEOUT", "WRITE_TIMEOUT"]
        .iter()
        .map(|name| json!({ "name": name, "value": rng.below(1000).to_string() }))
        .collect();
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": release.metadata(""),
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": selector },
            "template": {
                "metadata": { "labels": selector, "annotations": { "checksum/config": rng.hex(64) } },
                "spec": {
                    "serviceAccountName": release.name,
                    "securityContext": { "fsGroup": 2000, "runAsNonRoot": true },
                    "containers": [{
                        "name": release.app,
                        "image": format!("registry.internal/{}:{}", release.app, release.version),
                        "env": env,
                        "envFrom": [{ "configMapRef": { "name": format!("{}-config", release.name) } }],
                        "ports": [{ "name": "http", "containerPort": 8080 }, { "name": "metrics", "containerPort": 9102 }],
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/ready"),
                        "resources": {
                            "requests": { "cpu": format!("{}m", 50 * (1 + rng.below(20))), "memory": "256Mi" },
                            "limits": { "memory": "512Mi" },
                        },
                        "volumeMounts": [{ "name": "config", "mountPath": "/etc/service", "readOnly": true }],
                    }],
                    "volumes": [{ "name": "config", "configMap": { "name": format!("{}-config", release.name) } }],
                },
            },
        },
    });
    let time = rng.time();
    let condition = |kind: &str, reason: &str, message: String| json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": time, "lastTransitionTime": time });
    let set = format!("{}-{}", release.name, rng.name(9));
    let status = json!({ "status": {
        "observedGeneration": 1,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [
            condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability.".to_owned()),
            condition("Progressing", "NewReplicaSetAvailable", format!("ReplicaSet \"{set}\" has successfully progressed.")),
        ],
    } });
    (deployment, status)
}

fn config_map(index: u64) -> Value {
    let mut rng = Rng::of(SEED, "config map", index);
    let release = Release::new(&mut rng, index);
    let config = format!(
        "server:\n  listen: :8080\n  readTimeout: {}s\n  writeTimeout: {}s\nlog:\n  level: {}\n  format: json\n\
         database:\n  host: postgres-{}.internal\n  port: 5432\n  name: {}\n  poolSize: {}\n\
         cache:\n  directory: /var/cache/service\n  maxBytes: {}\ntracing:\n  ratio: 0.0{}\n  endpoint: otel-collector:4317\n\
         features:\n  - {}\n  - {}\n",
        rng.below(60),
        rng.below(60),
        rng.pick(&["debug", "info", "warn"]),
        rng.below(40),
        release.app,
        rng.below(100),
        rng.below(1 << 30),
        rng.below(10),
        rng.name(7),
        rng.name(9),
    );
    let metadata = release.metadata("-config");
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": { "config.yaml": config, "LOG_LEVEL": "info", "REGION": rng.pick(&["eu-central-1", "us-east-1"]) },
    })
}

/// Certificates: what a secret holds does not shrink.
fn secret(index: u64) -> Value {
    let mut rng = Rng::of(SEED, "secret", index);
    let release = Release::new(&mut rng, index);
    let mut pem = |kind: &str, bytes: usize| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut body = String::new();
        for at in 0..bytes * 4 / 3 {
            if at % 64 == 0 {
                body.push('\n');
            }
            body.push(char::from(*rng.pick(alphabet)));
        }
        format!("-----BEGIN {kind}-----{body}\n-----END {kind}-----\n")
    };
    let (certificate, key) = (pem("CERTIFICATE", 800), pem("PRIVATE KEY", 240));
    let mut metadata = release.metadata("-tls");
    metadata["annotations"] = json!({
        "cert-manager.io/certificate-name": release.name,
        "cert-manager.io/common-name": format!("{}.example.com", release.name),
        "cert-manager.io/issuer-kind": "ClusterIssuer",
        "cert-manager.io/issuer-name": "internal",
    });
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": metadata,
        "stringData": { "tls.crt": certificate, "tls.key": key },
    })
}
