//! A small shop, and what people do with it: something to look at.
//!
//! The namespace `shop` with three Deployments, a StatefulSet, their Services and a ConfigMap. Every few
//! (simulated) seconds the next scene is played, for ever. What is missing from the cast is made again.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{Kind, Who, count};
use super::index::Phase;
use super::{Item, Simulator, pod};
use crate::api::{Part, text};
use crate::object::{Stored, key};

const SHOP: &str = "shop";
/// How long (in simulated seconds) a scene lasts.
const PAUSE: (f64, f64) = (3.0, 8.0);
const IMAGES: &str = "registry.example.com/shop";

/// How far the story is.
#[derive(Debug, Default)]
pub(super) struct Story {
    scene: u64,
}

/// What happens in a scene; they follow each other in this order.
const SCENES: [fn(&mut Simulator, u64); 8] = [
    |s, scene| s.scale_deployment("web", 2 + s.choice("web", scene, 5)),
    |s, scene| s.roll_out("api", &format!("{IMAGES}/api:1.{scene}")),
    |s, scene| s.edit_settings(scene),
    |s, scene| s.delete_a_pod("web", scene),
    |s, scene| s.crash_a_pod("worker", scene),
    |s, scene| s.run_report(scene),
    |s, scene| s.scale_deployment("worker", 1 + s.choice("worker", scene, 4)),
    |s, scene| s.roll_out("web", &format!("{IMAGES}/web:2.{scene}")),
];

impl Simulator {
    pub(super) fn next_scene(&mut self) {
        let scene = self.story.scene;
        self.story.scene += 1;
        self.assemble();
        if let Some(number) = scene.checked_sub(1) {
            let at = number % SCENES.len() as u64;
            SCENES[at as usize](self, scene);
        }
        let pause = self.dice.between(PAUSE, "scene", SHOP, scene);
        self.timers.at(Item::Scene, Instant::now() + pause);
    }

    fn choice(&self, about: &str, scene: u64, of: u64) -> u64 {
        self.dice.roll("choice", about, scene) % of.max(1)
    }

    /// Makes who and what is missing.
    fn assemble(&mut self) {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SHOP } });
        self.provide(Kind::Namespace, "", namespace);
        let settings = json!({ "banner": "Welcome", "currency": "EUR", "edition": "0" });
        self.provide(
            Kind::ConfigMap,
            SHOP,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" }, "data": settings,
            }),
        );
        for (name, replicas, port) in [("web", 3, 8080), ("api", 2, 9090), ("worker", 2, 9100)] {
            self.provide(Kind::Deployment, SHOP, workload("Deployment", name, replicas, port));
        }
        self.provide(Kind::StatefulSet, SHOP, workload("StatefulSet", "db", 2, 5432));
        for (name, port) in [("web", 80), ("api", 80), ("db", 5432)] {
            let mut spec = json!({
                "selector": { "app": name },
                "ports": [{ "name": "main", "port": port, "targetPort": "main" }],
            });
            if name == "db" {
                spec["clusterIP"] = "None".into();
            }
            self.provide(
                Kind::Service,
                SHOP,
                json!({
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": { "name": name, "labels": { "app": name } },
                    "spec": spec,
                }),
            );
        }
    }

    fn provide(&mut self, kind: Kind, namespace: &str, object: Value) {
        let name = text(&object, "/metadata/name");
        if self.api.store.get(&kind.bucket(), &key(namespace, name)).is_none() {
            let _: Result<_, _> = self.create(Who::Human, kind, namespace, object);
        }
    }

    fn player(&self, kind: Kind, name: &str) -> Option<Arc<Stored>> {
        self.api.store.get(&kind.bucket(), &key(SHOP, name))
    }

    fn scale_deployment(&mut self, name: &str, to: u64) {
        let Some(deployment) = self.player(Kind::Deployment, name) else { return };
        self.edit(Who::Human, Kind::Deployment, &deployment, Part::Whole, |value| {
            // The same number again would be no scene.
            let to = i64::try_from(to).unwrap_or(1);
            let now = count(value, "/spec/replicas");
            value["spec"]["replicas"] = (if to == now { to + 1 } else { to }).into();
        });
    }

    fn roll_out(&mut self, name: &str, image: &str) {
        let Some(deployment) = self.player(Kind::Deployment, name) else { return };
        self.edit(Who::Human, Kind::Deployment, &deployment, Part::Whole, |value| {
            if let Some(own) = value.pointer_mut("/spec/template/spec/containers/0/image") {
                *own = image.into();
            }
            pod::set_meta(value, "annotations", "kubernetes.io/change-cause", &format!("image {image}"));
        });
    }

    fn edit_settings(&mut self, scene: u64) {
        const BANNERS: [&str; 4] = ["Welcome", "Sale", "Open all night", "Back in five minutes"];
        let Some(settings) = self.player(Kind::ConfigMap, "settings") else { return };
        let banner = BANNERS[self.choice("banner", scene, BANNERS.len() as u64) as usize];
        self.edit(Who::Human, Kind::ConfigMap, &settings, Part::Whole, |value| {
            value["data"]["banner"] = banner.into();
            value["data"]["edition"] = scene.to_string().into();
        });
    }

    fn delete_a_pod(&mut self, app: &str, scene: u64) {
        if let Some(pod) = self.pod_of(app, scene) {
            self.delete(Kind::Pod, &pod);
        }
    }

    fn crash_a_pod(&mut self, app: &str, scene: u64) {
        if let Some(pod) = self.pod_of(app, scene) {
            self.doom(&pod);
        }
    }

    /// One of the ready pods of an application.
    fn pod_of(&self, app: &str, scene: u64) -> Option<Arc<Stored>> {
        let deployment = self.player(Kind::Deployment, app)?;
        let sets = self.controlled(Kind::ReplicaSet, &deployment.uid);
        let pods = sets.iter().flat_map(|(set, _)| self.index.owned(&set.uid));
        let ready: Vec<&Arc<Stored>> = pods
            .filter(|pod| pod.is_active() && pod.ready && pod.phase == Phase::Running)
            .map(|pod| &pod.object)
            .collect();
        let at = self.choice(app, scene, ready.len() as u64) as usize;
        ready.get(at).map(|pod| Arc::clone(pod))
    }

    fn run_report(&mut self, scene: u64) {
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": format!("report-{scene}"), "labels": { "app": "report" } },
            "spec": {
                "completions": 2,
                "parallelism": 1,
                "ttlSecondsAfterFinished": 60,
                "template": {
                    "metadata": { "labels": { "app": "report" } },
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{ "name": "report", "image": format!("{IMAGES}/report:1.0") }],
                    },
                },
            },
        });
        let _: Result<_, _> = self.create(Who::Human, Kind::Job, SHOP, job);
    }
}

fn workload(kind: &str, name: &str, replicas: u64, port: u64) -> Value {
    let labels = json!({ "app": name });
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{
                        "name": name,
                        "image": format!("{IMAGES}/{name}:1.0"),
                        "ports": [{ "name": "main", "containerPort": port }],
                        "envFrom": [{ "configMapRef": { "name": "settings" } }],
                        "resources": {
                            "requests": { "cpu": "100m", "memory": "64Mi" },
                            "limits": { "memory": "128Mi" },
                        },
                    }],
                },
            },
        },
    });
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = name.into();
    }
    object
}
