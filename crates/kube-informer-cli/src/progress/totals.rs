//! How many objects there are to read. A streaming list does not say it, so it is asked for beside the reading: a page of one
//! object, of its metadata alone, after which the server says how many remain.
//!
//! - It is asked once, for each resource and namespace.
//! - It is not asked where objects are chosen: of those, servers do not say how many remain. Nor where they are named.
//! - Nobody waits for an answer, and no answer is as good as none: who may not ask, and who is not answered in time, has no total.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::AsyncReadExt as _;
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::cluster::Cluster;

/// What is asked for. A server that has no such form sends the whole object.
const FORM: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// After this, an answer comes too late to be of use.
const LATE: Duration = Duration::from_secs(10);

/// No page of one object is longer: whoever sends more sends everything.
const LONGEST: u64 = 2 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Totals {
    /// Who can be asked, until that was done.
    server: Option<(Factory, Duration)>,
    /// By the places of informers. Dropped, nobody waits for answers any more.
    questions: JoinSet<(usize, Option<u64>)>,
    known: BTreeMap<usize, u64>,
}

impl Totals {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let server = cluster.selectors().is_empty().then(|| (cluster.factory.clone(), cluster.patience));
        Self { server, questions: JoinSet::new(), known: BTreeMap::new() }
    }

    /// Asks for what these are to read; the second time, it does nothing.
    pub(super) fn ask_once(&mut self, informers: &[&Informer]) {
        let Some((factory, patience)) = self.server.take() else { return };
        for (at, informer) in informers.iter().enumerate().filter(|(_, informer)| !informer.is_synced()) {
            let Some(paths) = paths(informer) else { continue };
            let factory = factory.clone();
            self.questions.spawn(async move {
                let count = count(&factory, &paths);
                (at, tokio::time::timeout(patience.min(LATE), count).await.ok().flatten())
            });
        }
    }

    /// How many objects the informer at this place is to read, as soon as that is known.
    pub(super) fn of(&mut self, at: usize) -> Option<u64> {
        while let Some(answer) = self.questions.try_join_next() {
            if let Ok((at, Some(total))) = answer {
                self.known.insert(at, total);
            }
        }
        self.known.get(&at).copied()
    }

    /// Nobody wants to know any more.
    pub(super) fn end(&mut self) {
        self.server = None;
        self.questions.abort_all();
    }
}

/// The lists of which an informer reads everything.
fn paths(informer: &Informer) -> Option<Vec<String>> {
    let resource = informer.resource();
    match informer.scope() {
        Scope::All => Some(vec![resource.path(None)]),
        Scope::Namespaces(names) => Some(names.iter().map(|name| resource.path(Some(name))).collect()),
        _ => None,
    }
}

async fn count(factory: &Factory, paths: &[String]) -> Option<u64> {
    let mut count: u64 = 0;
    for path in paths {
        // Without a version: of any version, servers send all there is.
        let request = http::Request::get(format!("{path}?limit=1"));
        let request = request.header(http::header::ACCEPT, FORM).body(Vec::new()).ok()?;
        let body = factory.client().request_stream(request).await.ok()?;
        let (mut body, mut page) = (pin!(body.take(LONGEST)), Vec::new());
        body.read_to_end(&mut page).await.ok()?;
        count = count.checked_add(total(&serde_json::from_slice(&page).ok()?)?)?;
    }
    Some(count)
}

/// How many there are, by the first page.
fn total(page: &Value) -> Option<u64> {
    let here = match page.get("items")? {
        // As servers write an empty list of this form.
        Value::Null => 0,
        items => u64::try_from(items.as_array()?.len()).ok()?,
    };
    let meta = |key: &str| page.get("metadata").and_then(|meta| meta.get(key));
    match meta("continue").and_then(Value::as_str).unwrap_or_default() {
        "" => Some(here),
        _ => meta("remainingItemCount")?.as_u64()?.checked_add(here),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_says_how_many_there_are_or_nothing() {
        for (metadata, items, expected) in [
            (json!({ "continue": "x", "remainingItemCount": 41 }), json!([{}]), Some(42)),
            // All of it.
            (json!({}), json!([{}]), Some(1)),
            (json!({ "continue": "" }), json!([]), Some(0)),
            (json!({}), json!(null), Some(0)),
            // Some servers take no limit.
            (json!({ "resourceVersion": "1" }), json!([{}, {}, {}]), Some(3)),
            // Some do not count, and some count in other ways.
            (json!({ "continue": "x" }), json!([{}]), None),
            (json!({ "continue": "x", "remainingItemCount": -1 }), json!([{}]), None),
            (json!({ "continue": "x", "remainingItemCount": u64::MAX }), json!([{}]), None),
            (json!({}), json!({}), None),
        ] {
            assert_eq!(total(&json!({ "metadata": metadata, "items": items })), expected, "{metadata}");
        }
        for odd in [json!(null), json!([]), json!({ "kind": "Status" })] {
            assert_eq!(total(&odd), None, "{odd}");
        }
        assert_eq!(total(&json!({ "items": [] })), Some(0));
    }
}
