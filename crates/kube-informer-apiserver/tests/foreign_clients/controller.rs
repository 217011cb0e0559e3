//! kube-runtime's `Controller` runs its loop: children, status, finalizers, events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as Note;
use kube_client::{Api, Client};
use kube_core::params::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube_core::{ObjectMeta, Resource, ResourceExt};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use kube_runtime::finalizer::{self, finalizer};
use kube_runtime::wait::{await_condition, conditions};
use kube_runtime::watcher;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::widget::{self, Widget};
use crate::{WAYS, Way, soon, start};

const FINALIZER: &str = "example.com/tidy";

type Failure = finalizer::Error<kube_client::Error>;

struct Context {
    client: Client,
    recorder: Recorder,
    /// Something outside of the cluster that must be tidied up.
    outside: Mutex<BTreeMap<String, i64>>,
    /// Watches that failed; the loop goes on.
    interruptions: AtomicUsize,
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, Failure> {
    let widgets: Api<Widget> = Api::default_namespaced(context.client.clone());
    finalizer(&widgets, FINALIZER, widget, |event| async {
        match event {
            finalizer::Event::Apply(widget) => apply(&widget, &context).await,
            finalizer::Event::Cleanup(widget) => {
                context.outside.lock().unwrap().remove(&widget.name_any());
                Ok(Action::await_change())
            }
        }
    })
    .await
}

async fn apply(widget: &Widget, context: &Context) -> Result<Action, kube_client::Error> {
    let name = widget.name_any();
    context.outside.lock().unwrap().insert(name.clone(), widget.spec.size);
    let children: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    let data: BTreeMap<String, String> = [("size".to_owned(), widget.spec.size.to_string())].into();
    match children.get_opt(&name).await? {
        None => {
            let metadata = ObjectMeta {
                name: Some(name.clone()),
                owner_references: widget.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..Default::default()
            };
            let child = ConfigMap { metadata, data: Some(data), ..Default::default() };
            children.create(&PostParams::default(), &child).await?;
            let event = Event {
                type_: EventType::Normal,
                reason: "Created".into(),
                note: Some(format!("made {name}")),
                action: "Create".into(),
                secondary: None,
            };
            context.recorder.publish(&event, &widget.object_ref(&())).await?;
        }
        Some(child) if child.data.as_ref() != Some(&data) => {
            let patch = Patch::Merge(json!({ "data": data }));
            children.patch(&name, &PatchParams::default(), &patch).await?;
        }
        Some(_) => {}
    }
    let status = json!({ "status": {
        "observedGeneration": widget.metadata.generation, "phase": "Ready",
    } });
    let widgets: Api<Widget> = Api::default_namespaced(context.client.clone());
    widgets.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(Action::await_change())
}

struct Running {
    context: Arc<Context>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Runs the controller; a failed reconcile is retried.
fn run(client: &Client, config: watcher::Config) -> Running {
    let reporter = Reporter { controller: "widgets".into(), instance: None };
    let context = Arc::new(Context {
        client: client.clone(),
        recorder: Recorder::new(client.clone(), reporter),
        outside: Mutex::default(),
        interruptions: AtomicUsize::new(0),
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let results = Controller::new(Api::<Widget>::default_namespaced(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::default_namespaced(client.clone()), config)
        .graceful_shutdown_on(async {
            stopped.await.ok();
        })
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::clone(&context));
    let seen = Arc::clone(&context);
    let task = tokio::spawn(results.for_each(move |result| {
        if let Err(kube_runtime::controller::Error::QueueError(_)) = result {
            seen.interruptions.fetch_add(1, Ordering::Relaxed);
        }
        std::future::ready(())
    }));
    Running { context, stop, task }
}

impl Running {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        soon("the controller stops", self.task).await.unwrap();
    }
}

fn ready(generation: i64) -> impl Fn(Option<&Widget>) -> bool {
    move |widget| {
        let status = widget.and_then(|widget| widget.status.as_ref());
        status.is_some_and(|s| s.phase == "Ready" && s.observed_generation == generation)
    }
}

fn sized(size: &str, not: Option<String>) -> impl Fn(Option<&ConfigMap>) -> bool {
    move |child| {
        child.is_some_and(|child| {
            child.uid() != not
                && child.data.as_ref().and_then(|data| data.get("size")).map(String::as_str) == Some(size)
        })
    }
}

async fn the_loop(way: Way, config: watcher::Config) {
    let (server, client) = start(way).await;
    let widgets = widget::define(&client).await;
    let children: Api<ConfigMap> = Api::default_namespaced(client.clone());
    // One exists before the controller starts, one comes later.
    widgets.create(&PostParams::default(), &Widget::new("early", 1)).await.unwrap();
    let running = run(&client, config);
    widgets.create(&PostParams::default(), &Widget::new("late", 2)).await.unwrap();
    for name in ["early", "late"] {
        soon("ready", await_condition(widgets.clone(), name, ready(1))).await.unwrap();
    }
    let widget = widgets.get("late").await.unwrap();
    assert_eq!(widget.finalizers(), [FINALIZER], "{way:?}");

    // The child follows the spec; the status follows the generation, which status writes leave alone.
    let patch = Patch::Merge(json!({ "spec": { "size": 3 } }));
    let patched = widgets.patch("late", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    soon("resized", await_condition(children.clone(), "late", sized("3", None))).await.unwrap();
    soon("observed", await_condition(widgets.clone(), "late", ready(2))).await.unwrap();

    // A deleted child comes back as another object.
    let child = children.get("late").await.unwrap();
    assert_eq!(child.owner_references()[0].uid, widget.uid().unwrap());
    children.delete("late", &DeleteParams::default()).await.unwrap();
    let again = soon("recreated", await_condition(children.clone(), "late", sized("3", child.uid()))).await;
    let child = again.unwrap().unwrap();

    // The owner waits for its cleanup, and takes the child with it.
    let deleted = widgets.delete("late", &DeleteParams::background()).await.unwrap();
    assert!(deleted.left().is_some_and(|widget| widget.metadata.deletion_timestamp.is_some()));
    let uid = widget.uid().unwrap();
    soon("owner gone", await_condition(widgets.clone(), "late", conditions::is_deleted(&uid))).await.unwrap();
    assert_eq!(running.context.outside.lock().unwrap().keys().collect::<Vec<_>>(), ["early"]);
    let uid = child.uid().unwrap();
    soon("child gone", await_condition(children.clone(), "late", conditions::is_deleted(&uid)))
        .await
        .unwrap();
    assert!(children.get("early").await.is_ok());

    let notes: Api<Note> = Api::default_namespaced(client.clone());
    let notes = notes.list(&ListParams::default()).await.unwrap().items;
    assert!(notes.iter().any(|note| note.note.as_deref() == Some("made early")), "{way:?}: {notes:?}");
    assert_eq!(running.context.interruptions.load(Ordering::Relaxed), 0, "{way:?}");
    running.stop().await;
    soon("the server stops", server.shutdown()).await;
}

#[tokio::test]
async fn a_foreign_controller_runs_its_loop_in_process() {
    the_loop(Way::InProcess, watcher::Config::default()).await;
}

#[tokio::test]
async fn a_foreign_controller_runs_its_loop_over_http() {
    the_loop(Way::Http, watcher::Config::default()).await;
}

#[tokio::test]
async fn a_foreign_controller_runs_its_loop_over_https_with_a_token() {
    the_loop(Way::HttpsWithToken, watcher::Config::default()).await;
}

#[tokio::test]
async fn a_foreign_controller_with_streaming_lists_runs_its_loop_every_way() {
    for way in WAYS {
        the_loop(way, watcher::Config::default().streaming_lists()).await;
    }
}

#[tokio::test]
async fn a_foreign_controller_survives_a_server_that_forgets_the_past_and_cuts_connections() {
    let (server, client) = start(Way::Http).await;
    let widgets = widget::define(&client).await;
    let running = run(&client, watcher::Config::default());
    widgets.create(&PostParams::default(), &Widget::new("one", 1)).await.unwrap();
    soon("ready", await_condition(widgets.clone(), "one", ready(1))).await.unwrap();
    server.compact();
    server.refuse_connections().await;
    server.accept_connections().await;
    widgets.create(&PostParams::default(), &Widget::new("two", 1)).await.unwrap();
    soon("ready again", await_condition(widgets.clone(), "two", ready(1))).await.unwrap();
    assert!(running.context.interruptions.load(Ordering::Relaxed) > 0);
    running.stop().await;
}
