//! What kube-controller-manager's garbage collector and namespace controller do, as far as deletion needs
//! it.
//!
//! One task follows all changes. Dependents of a deleted owner go (or lose only that reference, if another
//! owner still lives); foreground deletion waits for blocking dependents; orphaning takes the references
//! off; a terminating namespace is emptied and then goes; a deleted definition takes its objects with it.
//! Level-triggered: what waits is looked at again after every change, and if the task falls behind the
//! window, it looks at everything once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::admission::{OWN_MANAGER, is_definition};
use crate::api::{Api, DeleteOptions, Part, WriteOptions, text};
use crate::crd;
use crate::kinds::Resource;
use crate::object::{Stored, metadata_mut};
use crate::registry::bucket_of;
use crate::store::{BucketId, ChangeKind};

/// What holds volumes and claims back while they are in use.
const PROTECTIONS: [&str; 3] =
    ["kubernetes.io/pv-protection", "kubernetes.io/pvc-protection", "kubernetes.io/vac-protection"];

/// Follows all changes until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    let mut stopping = api.stopping();
    let mut newest = api.store.newest();
    let mut keeper = Housekeeper { api, waiting: BTreeMap::new() };
    let mut position = 0;
    while !*stopping.borrow() {
        newest.borrow_and_update();
        position = keeper.catch_up(position);
        tokio::select! {
            _ = stopping.changed() => {}
            changed = newest.changed() => if changed.is_err() { return },
        }
    }
}

struct Housekeeper {
    api: Arc<Api>,
    /// Objects whose deletion waits for something that is ours to do, by UID.
    waiting: BTreeMap<String, (BucketId, String)>,
}

impl Housekeeper {
    /// Handles what has changed since `position`; returns how far it got.
    fn catch_up(&mut self, position: u64) -> u64 {
        let reached = match self.api.store.all_changes(position) {
            Ok((changes, reached)) => {
                let mut groups = BTreeSet::new();
                for (bucket, change) in &changes {
                    match change.kind {
                        ChangeKind::Deleted => {
                            self.waiting.remove(&change.new.uid);
                            self.owner_gone(&change.new.uid);
                        }
                        _ => self.look(bucket, &change.new),
                    }
                    if bucket.1 == "customresourcedefinitions" && bucket.0 == "apiextensions.k8s.io" {
                        // Its name is plural.group.
                        let group = change.new.name.split_once('.').map_or("", |(_, group)| group);
                        groups.insert((bucket.clone(), group.to_owned()));
                    }
                    if *self.api.stopping().borrow() {
                        return reached;
                    }
                }
                for (bucket, group) in &groups {
                    self.settle_names(bucket, group);
                }
                reached
            }
            Err(_) => {
                let revision = self.api.store.revision();
                for (bucket, object) in self.api.store.everything("") {
                    self.look(&bucket, &object);
                }
                revision
            }
        };
        let waiting: Vec<_> = self.waiting.iter().map(|(uid, at)| (uid.clone(), at.clone())).collect();
        for (uid, (bucket, key)) in waiting {
            if *self.api.stopping().borrow() {
                break;
            }
            // Not another object that took the name meanwhile.
            match self.api.store.get(&bucket, &key).filter(|object| object.uid == uid && object.deleting) {
                Some(object) => self.advance(&bucket, &object),
                None => drop(self.waiting.remove(&uid)),
            }
        }
        reached
    }

    /// Remembers what waits for us; collects what has lost all its owners.
    fn look(&mut self, bucket: &BucketId, object: &Arc<Stored>) {
        if object.deleting {
            // A pod that only waits for its kubelet is none of our business: looking at thousands of them
            // after every change would cost more than all else.
            if is_ours(bucket, object) {
                self.waiting.insert(object.uid.clone(), (bucket.clone(), object.key.clone()));
            } else {
                self.waiting.remove(&object.uid);
            }
        } else if !object.owners.is_empty()
            && object.owners.iter().all(|uid| self.api.store.by_uid(uid).is_none())
        {
            self.delete(bucket, object, background());
        }
    }

    /// An owner has gone: its dependents follow, or lose the reference.
    fn owner_gone(&self, uid: &str) {
        for (bucket, dependent) in self.api.store.dependents(uid) {
            let other_owner = dependent.owners.iter().any(|o| o != uid && self.api.store.by_uid(o).is_some());
            if other_owner {
                self.drop_reference(&bucket, &dependent, uid);
            } else {
                self.delete(&bucket, &dependent, background());
            }
        }
    }

    /// One step further with an object that is being deleted.
    fn advance(&self, bucket: &BucketId, object: &Arc<Stored>) {
        let Some(resource) = self.api.registry.stored_in(bucket) else { return };
        let value = object.value();
        if has_finalizer(&value, "orphan") {
            for (bucket, dependent) in self.api.store.dependents(&object.uid) {
                self.drop_reference(&bucket, &dependent, &object.uid);
            }
            self.api.remove_finalizer(&resource, object, Part::Whole, "orphan");
        } else if has_finalizer(&value, "foregroundDeletion") {
            let mut blocked = false;
            for (bucket, dependent) in self.api.store.dependents(&object.uid) {
                // A ring of objects that all wait for each other is cut, or none would ever go.
                blocked |= blocks(&dependent.value(), &object.uid) && !self.owns(&dependent.uid, &object.uid);
                if !dependent.deleting {
                    self.delete(&bucket, &dependent, DeleteOptions::propagating("Foreground"));
                }
            }
            if !blocked {
                self.api.remove_finalizer(&resource, object, Part::Whole, "foregroundDeletion");
            }
        } else if let Some(protection) = PROTECTIONS.iter().find(|name| has_finalizer(&value, name)) {
            // Nothing is ever mounted here.
            self.api.remove_finalizer(&resource, object, Part::Whole, protection);
        } else if resource.is("", "namespaces") {
            self.empty_namespace(&resource, object);
        } else if is_definition(&resource) {
            self.empty_definition(&resource, object, &value);
        }
    }

    /// Whether `owner` is, by way of others, an owner of `object`.
    fn owns(&self, owner: &str, object: &str) -> bool {
        let mut seen = BTreeSet::from([owner.to_owned()]);
        let mut open = vec![owner.to_owned()];
        while let Some(uid) = open.pop() {
            for (_, dependent) in self.api.store.dependents(&uid) {
                if dependent.uid == object {
                    return true;
                }
                if seen.insert(dependent.uid.clone()) {
                    open.push(dependent.uid.clone());
                }
            }
        }
        false
    }

    fn empty_namespace(&self, resource: &Arc<Resource>, namespace: &Stored) {
        let content = self.api.store.everything(&format!("{}/", namespace.name));
        for (bucket, object) in content.iter().filter(|(_, o)| !o.deleting) {
            self.delete(bucket, object, background().at_once());
        }
        if content.is_empty() {
            self.api.remove_finalizer(resource, namespace, Part::Finalize, "kubernetes");
        }
    }

    fn empty_definition(&self, resource: &Arc<Resource>, definition: &Arc<Stored>, value: &Value) {
        let bucket = (text(value, "/spec/group").to_owned(), text(value, "/spec/names/plural").to_owned());
        let now = crate::api::seconds(jiff::Timestamp::now());
        let objects = self.api.store.list(&bucket, "").objects;
        if objects.is_empty() {
            self.api.amend(resource, definition, |crd| crd::mark_instances_deleted(crd, &now));
            return;
        }
        self.api.amend(resource, definition, |crd| crd::mark_deleting_instances(crd, &now));
        for object in objects.iter().filter(|o| !o.deleting) {
            self.delete(&bucket, object, background());
        }
    }

    /// A definition has come, changed or gone: names of its group may be free for others, or taken.
    fn settle_names(&self, bucket: &BucketId, group: &str) {
        let Some(resource) = self.api.registry.stored_in(bucket) else { return };
        let now = crate::api::seconds(jiff::Timestamp::now());
        let mut all = self.api.store.list(bucket, "").objects;
        all.retain(|definition| definition.name.split_once('.').is_some_and(|(_, own)| own == group));
        let values: Vec<Value> = all.iter().map(|definition| definition.value()).collect();
        for (at, definition) in all.iter().enumerate() {
            let others: Vec<Value> =
                values.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, v)| v.clone()).collect();
            self.api.amend(&resource, definition, |crd| {
                let status = crd::status(crd, &others, &now);
                crd["status"] = status;
            });
        }
    }

    fn delete(&self, bucket: &BucketId, object: &Stored, options: DeleteOptions) {
        let Some(resource) = self.api.registry.stored_in(bucket) else { return };
        // Not another object that took the name meanwhile.
        let options = DeleteOptions { uid: Some(object.uid.clone()), ..options };
        if let Err(error) = self.api.delete(&resource, &object.namespace, &object.name, &options) {
            tracing::debug!(object = %object.key, message = %error.message, "not collected");
        }
    }

    fn drop_reference(&self, bucket: &BucketId, object: &Stored, owner: &str) {
        let Some(resource) = self.api.registry.stored_in(bucket) else { return };
        debug_assert_eq!(bucket_of(&resource), *bucket);
        let options = WriteOptions { manager: OWN_MANAGER.into(), ..Default::default() };
        let result =
            self.api.update(&resource, &object.namespace, &object.name, Part::Whole, &options, |current| {
                let mut new = current.cloned().unwrap_or_default();
                let meta = metadata_mut(&mut new);
                if let Some(Value::Array(owners)) = meta.get_mut("ownerReferences") {
                    owners.retain(|o| text(o, "/uid") != owner);
                }
                Ok(new)
            });
        if let Err(error) = result {
            tracing::debug!(object = %object.key, message = %error.message, "reference stays");
        }
    }
}

fn background() -> DeleteOptions {
    DeleteOptions::propagating("Background")
}

/// Whether the end of a deletion depends on us.
fn is_ours(bucket: &BucketId, object: &Stored) -> bool {
    if matches!(bucket.1.as_str(), "namespaces" | "customresourcedefinitions") {
        return true;
    }
    let value = object.value();
    let ours = ["orphan", "foregroundDeletion"].iter().chain(&PROTECTIONS);
    ours.into_iter().any(|finalizer| has_finalizer(&value, finalizer))
}

fn has_finalizer(object: &Value, name: &str) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|all| all.iter().any(|f| f.as_str() == Some(name)))
}

/// The dependent must be gone before its owner may go.
fn blocks(dependent: &Value, owner: &str) -> bool {
    let references = dependent.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| {
        text(reference, "/uid") == owner && reference["blockOwnerDeletion"].as_bool().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests;
