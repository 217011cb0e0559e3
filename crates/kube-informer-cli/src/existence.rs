//! Whether an object that is not chosen any more is still there: leaving a selection is no deletion.

use std::time::Duration;

use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use serde_json::Value;

use crate::reading::served::escaped;

/// How often it is asked again.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the object of this name and UID is there; nothing where there is no answer.
pub(crate) async fn is_there(
    factory: &Factory,
    resource: &Resource,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Option<bool> {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let uri = format!("{}?fieldSelector={}", resource.path(namespace), escaped(&named(name)));
    let request = http::Request::get(uri).body(Vec::new()).ok()?;
    let client = factory.client();
    let answer = tokio::time::timeout(PATIENCE, client.request_text(request)).await.ok()?.ok()?;
    let list: Value = serde_json::from_str(&answer).ok()?;
    let items = list.get("items")?.as_array()?;
    let found = items.first().and_then(|item| item.pointer("/metadata/uid")).and_then(Value::as_str);
    Some(found == Some(uid))
}

/// A selector of a name, in which all may be that names of some kinds have.
pub(crate) fn named(name: &str) -> String {
    let escape = |mut selector: String, c: char| {
        if matches!(c, '\\' | ',' | '=') {
            selector.push('\\');
        }
        selector.push(c);
        selector
    };
    name.chars().fold("metadata.name=".to_owned(), escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_selectors_and_as_queries_are() {
        assert_eq!(escaped(&named("web-1")), "metadata.name%3Dweb-1");
        assert_eq!(escaped(&named("a b&c")), "metadata.name%3Da%20b%26c");
        assert_eq!(named("a,b=c\\d"), "metadata.name=a\\,b\\=c\\\\d");
    }
}
