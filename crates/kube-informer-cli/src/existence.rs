//! Whether an object that is not chosen any more is still there: leaving a selection is no deletion.

use std::time::Duration;

use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use serde_json::Value;

/// How often it is asked again.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

/// Whether the object of this name and UID is there; nothing where there is no answer.
pub(crate) async fn is_there(
    factory: &Factory,
    resource: &Resource,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Option<bool> {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let uri = format!("{}?fieldSelector=metadata.name%3D{name}", resource.path(namespace));
    let request = http::Request::get(uri).body(Vec::new()).ok()?;
    let answer = factory.client().request_text(request).await.ok()?;
    let list: Value = serde_json::from_str(&answer).ok()?;
    let items = list.get("items")?.as_array()?;
    let found = items.first().and_then(|item| item.pointer("/metadata/uid")).and_then(Value::as_str);
    Some(found == Some(uid))
}
