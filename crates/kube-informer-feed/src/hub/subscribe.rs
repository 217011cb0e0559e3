//! How a connection is told of a resource, and how that ends.

use std::sync::Arc;

use kube_informer::cache::Selector;

use super::news::{Filter, TopicId};
use super::resolve::Meant;
use super::{Hub, Link, follow};
use crate::journal::Cursor;
use crate::message::{ErrMessage, Message, Sub};
use crate::session::{Beginning, Subscription};

impl Hub {
    /// Subscribes a connection. What is to be said about that is put into its outbox.
    ///
    /// # Errors
    ///
    /// Where it cannot be: for the client to read. Nothing is subscribed then.
    pub(crate) async fn subscribe(&self, link: &Arc<Link>, sub: Sub, most: usize) -> Result<(), ErrMessage> {
        let refuse = |code, message: String| ErrMessage::new(Some(&sub.id), code, message);
        {
            let session = link.session();
            if session.has(&sub.id) {
                return Err(refuse(
                    409,
                    "there is a subscription with this id; end it with unsub, or take another id".to_owned(),
                ));
            }
            if session.len() >= most {
                return Err(refuse(
                    429,
                    format!("{most} subscriptions are allowed per connection; end one with unsub"),
                ));
            }
        }
        let selector: Selector =
            sub.labels.parse().map_err(|error| refuse(400, format!("labels: {error}")))?;
        let filter = Filter { namespaces: sub.ns.iter().cloned().collect(), selector };
        loop {
            let topic = match self.resolve(&sub.id, &sub.gvr).await? {
                Meant::Topic(topic) => topic,
                Meant::Resource(resource) => {
                    self.follow_other(resource).await.map_err(|message| refuse(429, message))?
                }
            };
            // It may have been given up in between.
            if self.enter(link, topic, &sub, &filter) {
                return Ok(());
            }
        }
    }

    /// Ends a subscription.
    ///
    /// # Errors
    ///
    /// Where there is none of that name.
    pub(crate) fn unsubscribe(&self, link: &Arc<Link>, id: &str) -> Result<(), ErrMessage> {
        let mut core = self.inner.core();
        let ended = link.with(|session| {
            let sub = session.unsubscribe(id)?;
            Some((sub.topic, session.follows(sub.topic)))
        });
        let Some((topic, follows)) = ended else {
            return Err(ErrMessage::new(Some(id), 404, "there is no subscription with this id"));
        };
        self.inner.metrics.unsubscribed(1);
        let mut idle = None;
        if let Some(topic) = core.topics.get_mut(&topic).filter(|_| !follows) {
            topic.links.retain(|each| each.id != link.id);
            idle = topic.links.is_empty().then_some(topic.id);
        }
        drop(core);
        idle.into_iter().for_each(|topic| follow::retire(&self.inner, topic));
        Ok(())
    }

    /// In one turn, what is known and the place in what is told. `false` where the topic is not there any more.
    fn enter(&self, link: &Arc<Link>, topic: TopicId, sub: &Sub, filter: &Filter) -> bool {
        let mut core = self.inner.core();
        let super::Core { journal, topics, .. } = &mut *core;
        let Some(topic) = topics.get_mut(&topic) else { return false };
        let head = journal.last();
        let wants_snapshot = sub.snapshot || sub.since.is_some();
        let subscription =
            Subscription::new(sub.id.clone(), topic.id, filter.clone(), sub.mode, sub.slow, wants_snapshot);
        topic.idle = None;
        if !topic.links.iter().any(|each| each.id == link.id) {
            topic.links.push(Arc::clone(link));
        }
        self.inner.metrics.subscribed();
        link.with(|session| {
            session.subscribe(subscription);
            session.status(topic.id, &topic.gvr, topic.state, topic.why.as_deref(), head);
        });
        let replay = sub.since.map(|since| {
            let from = topic.since.filter(|from| from.epoch != since.epoch || from.seq <= since.seq);
            let news = journal.since(since).map_err(|error| error.to_string())?;
            // What was told before it was followed, this time, is not known.
            from.ok_or_else(|| {
                "the cursor is too old: this resource was not followed all the time since".to_owned()
            })?;
            Ok::<Vec<_>, String>(news.filter(|news| news.topic == topic.id).cloned().collect())
        });
        let beginning = match replay {
            Some(Ok(news)) => Beginning::Replay(news),
            Some(Err(why)) => {
                let message = format!("cannot go on from {}: {why}; a snapshot follows", Since(sub.since));
                let err = Message::Err(ErrMessage::new(Some(&sub.id), 410, message));
                link.with(|session| session.outbox.push_text(err.text(), None, head));
                Beginning::Snapshot(topic.snapshot())
            }
            None if sub.snapshot => Beginning::Snapshot(topic.snapshot()),
            None => Beginning::Now,
        };
        if topic.since.is_some() {
            link.with(|session| session.begin(&sub.id, &topic.gvr, beginning, head));
        }
        true
    }
}

struct Since(Option<Cursor>);

impl std::fmt::Display for Since {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(cursor) => write!(f, "{cursor}"),
            None => f.write_str("nowhere"),
        }
    }
}
