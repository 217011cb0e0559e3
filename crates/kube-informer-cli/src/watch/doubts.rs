//! What is told as deleted where objects are chosen: it is gone, or it has only left the selection.
//!
//! The server is [asked](Asker) until it answers, while everything else goes on. An object is asked for once at a time;
//! whoever waits for answers hears only of those that are gone.

use std::collections::BTreeMap;

use kube_informer::object::{Object, ObjectKey};
use kube_informer::resource::Resource;
use tokio::task::JoinSet;

use crate::existence::Asker;

/// An object: of which reading, what it is called, and its UID.
type Id = (usize, ObjectKey, String);

/// See the module. Dropped, nothing is asked any more.
pub(super) struct Doubts {
    asker: Asker,
    open: BTreeMap<Id, Doubt>,
    questions: JoinSet<(Id, bool)>,
}

struct Doubt {
    resource: Resource,
    /// As it was last.
    last: Object,
    /// It was told as deleted once more: an answer to the question before says nothing about that.
    again: bool,
}

impl Doubts {
    pub(super) fn new(asker: Asker) -> Self {
        Self { asker, open: BTreeMap::new(), questions: JoinSet::new() }
    }

    /// An object of a reading is told as deleted.
    pub(super) fn raise(&mut self, at: usize, resource: &Resource, last: &Object) {
        let id = (at, last.key().to_key(), last.uid().to_string());
        if let Some(doubt) = self.open.get_mut(&id) {
            doubt.again = true;
            doubt.last = last.clone();
            return;
        }
        self.ask(id.clone(), resource.clone());
        self.open.insert(id, Doubt { resource: resource.clone(), last: last.clone(), again: false });
    }

    /// Waits for the next object that is gone; for ever where there is no doubt. Nothing is lost where it is dropped.
    pub(super) async fn gone(&mut self) -> Object {
        loop {
            let Some(answer) = self.questions.join_next().await else { std::future::pending().await };
            // One that could not be asked to its end was dropped, and so is all of this.
            let Ok((id, is_there)) = answer else { continue };
            let Some(doubt) = self.open.remove(&id) else { continue };
            if !is_there {
                return doubt.last;
            }
            if doubt.again {
                self.ask(id.clone(), doubt.resource.clone());
                self.open.insert(id, Doubt { again: false, ..doubt });
            }
        }
    }

    fn ask(&mut self, id: Id, resource: Resource) {
        let asker = self.asker.clone();
        self.questions.spawn(async move {
            let (_, key, uid) = &id;
            let is_there = asker.is_there(&resource, key, uid).await;
            (id, is_there)
        });
    }
}
