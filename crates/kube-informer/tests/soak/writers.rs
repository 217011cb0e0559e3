//! What happens on the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use http::StatusCode;
use kube_informer_testbed::http::Response;
use kube_informer_testbed::load::Rng;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::world::{COLORS, FINALIZER, GROUPS, Place, World};

/// One of several writers. They know nothing of each other.
pub(crate) struct Writer {
    pub(crate) world: Arc<World>,
    pub(crate) rng: Rng,
    pub(crate) progress: Progress,
    pub(crate) tally: Arc<Tally>,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Patch,
    Put,
    /// Objects enter and leave selections.
    Label,
    Delete,
    /// Deletes and makes it again, at once.
    Remake,
    /// Deletes what has one label in one namespace.
    DeleteSome,
    /// It cannot go until it is let go.
    Hold,
    LetGo,
}

const OPERATIONS: [Operation; 9] = [
    Operation::Create,
    Operation::Patch,
    Operation::Put,
    Operation::Label,
    Operation::Delete,
    Operation::Remake,
    Operation::DeleteSome,
    Operation::Hold,
    Operation::LetGo,
];

/// Of a hundred; the rest creates.
const WEIGHTS: [u64; 9] = [28, 22, 8, 14, 9, 10, 1, 3, 5];

/// How often each operation has changed something.
#[derive(Debug, Default)]
pub(crate) struct Tally([AtomicU64; OPERATIONS.len()]);

impl Writer {
    /// Operates until nothing is left to do.
    pub(crate) async fn run(mut self) -> Result<()> {
        while self.progress.claim() {
            let place = self.world.some(&mut self.rng);
            let (at, operation) = self.pick();
            if self.operate(operation, &place).await? {
                self.tally.0[at].fetch_add(1, Ordering::Relaxed);
            }
            self.progress.step();
        }
        Ok(())
    }

    fn pick(&mut self) -> (usize, Operation) {
        let mut drawn = self.rng.below(100);
        for (at, weight) in WEIGHTS.iter().enumerate() {
            if drawn < *weight {
                return (at, OPERATIONS[at]);
            }
            drawn -= weight;
        }
        (0, Operation::Create)
    }

    /// Whether something has changed.
    async fn operate(&mut self, operation: Operation, place: &Place) -> Result<bool> {
        let (endpoint, rng, path) = (&self.world.endpoint, &mut self.rng, place.path());
        match operation {
            Operation::Create => self.create(place).await,
            Operation::Patch => {
                let mut patch = json!({});
                place.kind.change(&mut patch, rng);
                took_place(endpoint.merge_patch(&path, &patch).await?)
            }
            Operation::Put => {
                let read = endpoint.get(&path).await?;
                if read.status == StatusCode::NOT_FOUND {
                    return Ok(false);
                }
                let mut object: Value = read.success()?.json()?;
                place.kind.change(&mut object, rng);
                took_place(endpoint.put(&path, &object).await?)
            }
            Operation::Label => {
                let labels = json!({ "color": rng.pick(&COLORS), "group": rng.pick(&GROUPS) });
                took_place(endpoint.merge_patch(&path, &json!({ "metadata": { "labels": labels } })).await?)
            }
            Operation::Delete => took_place(endpoint.delete(&path).await?),
            Operation::Remake => {
                let deleted = took_place(endpoint.delete(&path).await?)?;
                Ok(self.create(place).await? && deleted)
            }
            Operation::DeleteSome => {
                let some = format!("{}?labelSelector=group%3D{}", place.collection(), rng.pick(&GROUPS));
                took_place(endpoint.delete(&some).await?)
            }
            Operation::Hold => {
                let patch = json!({ "metadata": { "finalizers": [FINALIZER] } });
                let answer = endpoint.merge_patch(&path, &patch).await?;
                // Something that is going cannot be held.
                if answer.status == StatusCode::UNPROCESSABLE_ENTITY { Ok(false) } else { took_place(answer) }
            }
            Operation::LetGo => let_go(&self.world, &path).await,
        }
    }

    async fn create(&mut self, place: &Place) -> Result<bool> {
        let manifest = self.world.manifest(place, &mut self.rng);
        took_place(self.world.endpoint.post(&place.collection(), &manifest).await?)
    }
}

/// Takes off what holds an object.
pub(crate) async fn let_go(world: &World, path: &str) -> Result<bool> {
    let patch = json!({ "metadata": { "finalizers": null } });
    took_place(world.endpoint.merge_patch(path, &patch).await?)
}

/// Somebody else may have been faster: then there is nothing to change, or something to create it over.
fn took_place(answer: Response) -> Result<bool> {
    match answer.status {
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => Ok(false),
        _ => answer.success().map(|_| true),
    }
}

impl Tally {
    /// Operations that never changed anything.
    pub(crate) fn idle(&self) -> Vec<String> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        counts
            .zip(OPERATIONS)
            .filter(|(count, _)| *count == 0)
            .map(|(_, operation)| format!("{operation:?}"))
            .collect()
    }
}
