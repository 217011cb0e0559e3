//! ControllerRevisions: the templates that a StatefulSet or DaemonSet has had.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Kind, Who, count, int};
use super::{Simulator, dice, pod};
use crate::api::Part;
use crate::object::Stored;

/// The label that tells which template a pod was made from.
pub(super) const HASH: &str = "controller-revision-hash";

/// One template.
#[derive(Debug, Clone)]
pub(super) struct Revision {
    pub(super) name: String,
    pub(super) template: Value,
}

impl Simulator {
    /// All revisions of an owner, oldest first; the last is that of its present template. `None` if it
    /// could not be written now.
    pub(super) fn revisions(
        &mut self,
        kind: Kind,
        owner: &Arc<Stored>,
        value: &Value,
    ) -> Option<Vec<Revision>> {
        let template = value.pointer("/spec/template").cloned().unwrap_or_default();
        let data = json!({ "spec": { "template": with_replace(&template) } });
        let mut known = self.controlled(Kind::ControllerRevision, &owner.uid);
        known.sort_by_key(|(object, value)| (count(value, "/revision"), object.name.clone()));
        let newest = known.last().map_or(0, |(_, value)| count(value, "/revision"));
        let equal = known.iter().rposition(|(_, value)| value.get("data") == Some(&data));
        match equal {
            Some(at) if at + 1 == known.len() => {}
            Some(at) => {
                let found = known.remove(at);
                let bumped = self.edit(
                    Who::ControllerManager,
                    Kind::ControllerRevision,
                    &found.0,
                    Part::Whole,
                    |r| {
                        r["revision"] = (newest + 1).into();
                    },
                )?;
                let value = bumped.value();
                known.push((bumped, value));
            }
            None => {
                let made = self.make_revision(kind, owner, value, &template, data, newest + 1)?;
                let value = made.value();
                known.push((made, value));
            }
        }
        let read = |(object, value): &(Arc<Stored>, Value)| Revision {
            name: object.name.clone(),
            template: value.pointer("/data/spec/template").map(without_replace).unwrap_or_default(),
        };
        Some(known.iter().map(read).collect())
    }

    fn make_revision(
        &mut self,
        kind: Kind,
        owner: &Arc<Stored>,
        value: &Value,
        template: &Value,
        data: Value,
        number: i64,
    ) -> Option<Arc<Stored>> {
        let hash = dice::short_hash(&template.to_string(), count(value, "/status/collisionCount"));
        let mut object = json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": format!("{}-{hash}", owner.name),
                "ownerReferences": [self.reference(kind, owner)],
            },
            "data": data,
            "revision": number,
        });
        let labels = template.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        for (key, label) in labels {
            pod::set_meta(&mut object, "labels", key, label.as_str().unwrap_or_default());
        }
        pod::set_meta(&mut object, "labels", HASH, &hash);
        self.create(Who::ControllerManager, Kind::ControllerRevision, &owner.namespace, object).ok()
    }

    /// Drops the oldest revisions that nobody uses, beyond the owner's limit.
    pub(super) fn drop_revisions(
        &mut self,
        owner: &Stored,
        value: &Value,
        revisions: &[Revision],
        in_use: &[&str],
    ) {
        let limit =
            int(value, "/spec/revisionHistoryLimit").and_then(|l| usize::try_from(l).ok()).unwrap_or(10);
        let idle: Vec<&Revision> =
            revisions.iter().rev().skip(1).rev().filter(|r| !in_use.contains(&r.name.as_str())).collect();
        let surplus = idle.len().saturating_sub(limit);
        for revision in idle.into_iter().take(surplus) {
            let key = crate::object::key(&owner.namespace, &revision.name);
            if let Some(object) = self.api.store.get(&Kind::ControllerRevision.bucket(), &key) {
                self.delete(Kind::ControllerRevision, &object);
            }
        }
    }
}

impl Revision {
    /// The part of the name that labels pods of a DaemonSet.
    pub(super) fn hash(&self) -> &str {
        self.name.rsplit('-').next().unwrap_or_default()
    }
}

/// `kubectl rollout undo` applies the data as a patch, which has to replace the whole template.
fn with_replace(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(map) = template.as_object_mut() {
        map.insert("$patch".into(), "replace".into());
    }
    template
}

fn without_replace(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(map) = template.as_object_mut() {
        map.remove("$patch");
    }
    template
}
