//! What can be seen without a server.

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::encoding::{Codec, Encoding, Rules};
use crate::object::{Intake, Object};

fn config_map() -> Object<ConfigMap> {
    let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default()).unwrap();
    let bytes = br#"{"metadata":{"name":"a","namespace":"d","uid":"u","resourceVersion":"7"}}"#;
    Intake::new(codec).object(bytes).unwrap().cast()
}

#[test]
fn errors_say_what_was_tried_and_what_to_do() {
    let contended = WriteError::Contended { tried: "put x on pods d/a".to_owned(), times: 5 };
    assert_eq!(
        contended.to_string(),
        "put x on pods d/a: the object was changed by others in the meantime, 5 times; try again"
    );
    let gone = WriteError::Gone { tried: "x".to_owned(), hint: "" };
    assert!(gone.is_gone() && !contended.is_gone());
}

#[test]
fn helpers_can_be_used_in_tasks_that_move_between_threads() {
    fn sent<T: Send>(_: &T) {}
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Finalizer>();
    shared::<Status>();
    shared::<Recorder>();
    // Never run: that it compiles is what counts.
    let _ = async |finalizer: Finalizer, status: Status| {
        let object = config_map();
        let reconcile = finalizer.reconcile(&object, async || Ok::<_, WriteError>(1), async || Ok(()));
        sent(&reconcile);
        drop(reconcile.await);
        let value = serde_json::json!({});
        let patch = status.patch(&object, &value);
        sent(&patch);
        drop(patch.await);
    };
}

#[test]
fn an_event_is_about_one_version_of_one_object() {
    let about = About::from(&config_map());
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    map.metadata.namespace = Some("d".to_owned());
    map.metadata.uid = Some("u".to_owned());
    assert_eq!(format!("{about:?}").matches("Some").count(), 6);
    assert_ne!(about, About::object(&map), "another version");
    map.metadata.resource_version = Some("7".to_owned());
    assert_eq!(about, About::object(&map));
}
