//! From informers to messages, in one queue: what is seen, that everything was seen, how it goes.
//!
//! An informer's objects come before the word that all of them came. Each change is told; where more come than are taken,
//! a gap is, and then what there is.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube_informer::cache::Snapshot;
use kube_informer::informer::{Delivery, Handler, Health, Informer};
use kube_informer::object::{Object, ObjectKey};
use kube_informer::resource::Resource;
use serde_json::Value;
use tokio::sync::mpsc;

use super::tracker::Id;
use crate::existence::Asker;

/// Messages that wait; past that, informers do.
const WAITING: usize = 1024;
/// Changes of one informer that wait.
const CHANGES: usize = 4096;
/// For ever.
const LONG: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What an informer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// Which of all.
    pub(super) index: usize,
    /// The target that it was made for.
    pub(super) target: usize,
    /// The only object that it knows of.
    pub(super) only: Option<Id>,
}

/// What is told.
pub(super) enum Message {
    /// An object as it is now.
    Seen(Source, Object),
    /// An object that is gone, or not chosen any more, as it was last.
    Gone(Source, Object),
    /// What was not told is not known: what is not in here is gone.
    Gap(Source, Snapshot<Value>),
    /// Everything that there was at first was told.
    Complete(Source),
    /// How it goes.
    Health(Source, Box<Health>),
    /// Whether an object that is not chosen any more is still there, by its UID.
    Confirmed { id: Id, uid: String, is_there: bool },
}

impl Message {
    /// Who tells it.
    pub(super) fn source(&self) -> Option<&Source> {
        match self {
            Self::Seen(source, _)
            | Self::Gone(source, _)
            | Self::Gap(source, _)
            | Self::Complete(source)
            | Self::Health(source, _) => Some(source),
            Self::Confirmed { .. } => None,
        }
    }
}

/// Where messages come together.
pub(super) struct Messages {
    sender: mpsc::Sender<Message>,
    receiver: mpsc::Receiver<Message>,
    asker: Asker,
}

impl Messages {
    pub(super) fn new(asker: Asker) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self { sender, receiver, asker }
    }

    /// The next one. There is always somebody who may say something.
    pub(super) async fn next(&mut self) -> Message {
        match self.receiver.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    }

    /// Follows an informer, until the process ends.
    pub(super) fn follow(&self, informer: &Informer, source: Source) {
        let tell = Tell { source: source.clone(), sender: self.sender.clone() };
        let registration = informer.subscribe().delivery(Delivery::Every(CHANGES)).name("wait").handler(tell);
        let (synced, sender) = (source.clone(), self.sender.clone());
        tokio::spawn(async move {
            if registration.synced(LONG).await.is_ok() {
                // Nobody listens when it is over.
                let _ = sender.send(Message::Complete(synced)).await;
            }
        });
        let (mut health, sender) = (Box::pin(informer.health_changes()), self.sender.clone());
        tokio::spawn(async move {
            while let Some(health) = health.next().await {
                if sender.send(Message::Health(source.clone(), Box::new(health))).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Asks whether an object is still there that is not chosen any more. The answer is a message.
    pub(super) fn confirm(&self, resource: &Resource, id: Id, uid: String) {
        let (sender, asker, resource) = (self.sender.clone(), self.asker.clone(), resource.clone());
        tokio::spawn(async move {
            let key = ObjectKey { namespace: id.namespace.clone(), name: id.name.clone() };
            let is_there = asker.is_there(&resource, &key, &uid).await;
            // Nobody listens when it is over.
            let _ = sender.send(Message::Confirmed { id, uid, is_there }).await;
        });
    }
}

/// Tells what an informer tells.
struct Tell {
    source: Source,
    sender: mpsc::Sender<Message>,
}

impl Tell {
    async fn say(&self, message: impl FnOnce(Source) -> Message) {
        // Nobody listens when it is over.
        let _ = self.sender.send(message(self.source.clone())).await;
    }
}

impl Handler<Value> for Tell {
    async fn added(&mut self, new: Object, _initial: bool) {
        self.say(|source| Message::Seen(source, new)).await;
    }

    async fn updated(&mut self, _old: Object, new: Object, _resync: bool) {
        self.say(|source| Message::Seen(source, new)).await;
    }

    async fn deleted(&mut self, last: Object, _certain: bool) {
        self.say(|source| Message::Gone(source, last)).await;
    }

    async fn gap(&mut self, _missed: u64, now: Snapshot<Value>) {
        self.say(|source| Message::Gap(source, now)).await;
    }
}
