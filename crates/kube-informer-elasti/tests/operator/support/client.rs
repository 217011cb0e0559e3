//! Clients that send throughout, and are routed by the EndpointSlices of a Service as kube-proxy would: to any endpoint that
//! is ready; where none is, to one that still serves while it ends. Nothing is tried again: what fails is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube_informer_testbed::http::Endpoint;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::follow::{Told, follow};
use super::kubelet::text;
use super::network::Network;

/// The slices of a Service by name, when they are known.
type Slices = Option<BTreeMap<String, Value>>;

/// Where a Service leads, now. A clone is the same.
#[derive(Clone)]
pub(crate) struct Routes {
    slices: watch::Receiver<Slices>,
    turn: Arc<AtomicUsize>,
}

impl Routes {
    pub(crate) fn follow(endpoint: &Endpoint, namespace: &str, service: &str) -> Self {
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        );
        let mut told = follow(endpoint.clone(), path);
        let (tell, slices) = watch::channel(None);
        tokio::spawn(async move {
            while let Some(told) = told.recv().await {
                if tell.is_closed() {
                    return;
                }
                tell.send_modify(|slices| {
                    let slices = slices.get_or_insert_with(BTreeMap::new);
                    match told {
                        Told::Anew(all) => {
                            *slices = all
                                .into_iter()
                                .map(|slice| (text(&slice["metadata"]["name"]), slice))
                                .collect();
                        }
                        Told::Put(slice) => _ = slices.insert(text(&slice["metadata"]["name"]), slice),
                        Told::Gone(slice) => _ = slices.remove(&text(&slice["metadata"]["name"])),
                    }
                });
            }
        });
        Self { slices, turn: Arc::default() }
    }

    /// An endpoint that is ready.
    pub(crate) async fn ready(&self) -> Option<String> {
        self.known().await;
        self.pick(is_ready)
    }

    /// Where a request goes.
    pub(crate) async fn route(&self) -> Option<String> {
        let ending = |conditions: &Value| conditions["serving"] == true && conditions["terminating"] == true;
        match self.ready().await {
            Some(address) => Some(address),
            None => self.pick(ending),
        }
    }

    /// Waits until an endpoint is ready, or until none is.
    pub(crate) async fn until_ready(&self, somebody: bool) {
        let is_it = |slices: &Slices| slices.is_some() && addresses(slices, is_ready).is_empty() != somebody;
        self.slices.clone().wait_for(is_it).await.expect("it is followed for as long as this is there");
    }

    async fn known(&self) {
        drop(self.slices.clone().wait_for(Option::is_some).await);
    }

    /// One after the other.
    fn pick(&self, is: impl Fn(&Value) -> bool) -> Option<String> {
        let all = addresses(&self.slices.borrow(), is);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        all.get(turn % all.len().max(1)).cloned()
    }
}

fn is_ready(conditions: &Value) -> bool {
    conditions["ready"] != false
}

/// The endpoints whose conditions are like that.
fn addresses(slices: &Slices, is: impl Fn(&Value) -> bool) -> Vec<String> {
    let slices = slices.iter().flatten();
    let endpoints = slices.flat_map(|(_, slice)| slice["endpoints"].as_array().into_iter().flatten());
    endpoints.filter(|each| is(&each["conditions"])).map(|each| text(&each["addresses"][0])).collect()
}

/// Clients of one Service, until they are told to stop.
pub(crate) struct Clients {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    service: String,
    network: Network,
    routes: Routes,
    stop: AtomicBool,
    answered: AtomicU64,
    lost: Mutex<Vec<String>>,
}

impl Clients {
    pub(crate) fn start(endpoint: &Endpoint, namespace: &str, service: &str, network: &Network) -> Self {
        let shared = Arc::new(Shared {
            service: service.to_owned(),
            network: network.clone(),
            routes: Routes::follow(endpoint, namespace, service),
            stop: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            lost: Mutex::default(),
        });
        let task = |_| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move { shared.run().await })
        };
        let tasks = (0..3).map(task).collect();
        Self { shared, tasks }
    }

    /// How many requests were answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Sends nothing more, waits for all answers, and tells what was lost and how many were answered.
    pub(crate) async fn stop(self) -> (u64, Vec<String>) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        let lost = std::mem::take(&mut *self.shared.lost.lock().unwrap());
        (self.shared.answered.load(Ordering::Relaxed), lost)
    }
}

impl Shared {
    async fn run(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let outcome = match self.routes.route().await {
                Some(address) => {
                    self.network.ask(&address, &self.service, "/").await.map_err(|error| format!("{error:#}"))
                }
                None => Err("no endpoint".to_owned()),
            };
            match outcome {
                Ok(answer) if answer.status == 200 => _ = self.answered.fetch_add(1, Ordering::Relaxed),
                Ok(answer) => self.lost.lock().unwrap().push(format!("{answer:?}")),
                Err(why) => self.lost.lock().unwrap().push(why),
            }
            // tidy: allow-sleep a client that sends from time to time
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
