//! Whether an object that is not chosen any more is still there: leaving a selection is no deletion.
//!
//! The server is asked, again and again until it answers. A few questions are asked at a time; one that gets no answer gives
//! its turn to others before it is asked again. An answer has the time that one gives it, `--request-timeout`.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::factory::Factory;
use kube_informer::object::ObjectKey;
use kube_informer::resource::Resource;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::cluster::Cluster;
use crate::reading::served::escaped;

/// How often it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Questions at a time.
const QUESTIONS: usize = 8;

/// See the module. Those who have a clone take turns with each other.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    factory: Factory,
    /// How long an answer is waited for.
    patience: Duration,
    turns: Arc<Semaphore>,
}

impl Asker {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let turns = Arc::new(Semaphore::new(QUESTIONS));
        Self { factory: cluster.factory.clone(), patience: cluster.patience, turns }
    }

    /// Whether the object of this name and UID is there, as soon as there is an answer.
    pub(crate) async fn is_there(&self, resource: &Resource, key: &ObjectKey, uid: &str) -> bool {
        loop {
            // It is never closed. Between two questions, others have their turn.
            let turn = self.turns.acquire().await;
            let asked = self.ask(resource, key, uid).await;
            drop(turn);
            match asked {
                Some(is_there) => return is_there,
                None => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    /// The same; nothing where there is no answer.
    async fn ask(&self, resource: &Resource, key: &ObjectKey, uid: &str) -> Option<bool> {
        let namespace = Some(&*key.namespace).filter(|namespace| !namespace.is_empty());
        let uri = format!("{}?fieldSelector={}", resource.path(namespace), escaped(&named(&key.name)));
        let request = http::Request::get(uri).body(Vec::new()).ok()?;
        let client = self.factory.client();
        let answer = tokio::time::timeout(self.patience, client.request_text(request)).await.ok()?.ok()?;
        let list: Value = serde_json::from_str(&answer).ok()?;
        let items = list.get("items")?.as_array()?;
        let found = items.first().and_then(|item| item.pointer("/metadata/uid")).and_then(Value::as_str);
        Some(found == Some(uid))
    }
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
