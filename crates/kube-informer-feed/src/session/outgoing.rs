//! What is sent next. It is written by whoever sends, beside what is put in meanwhile.

use bytes::Bytes;
use kube_informer::object::Object;

use super::outbox::Pending;
use crate::change::Subject;
use crate::hub::describe;
use crate::hub::news::{self, Tale};
use crate::message::{Bookmark, Message, Mode};

/// See the module.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// As it is.
    Text(Bytes),
    /// A change, or a gap.
    News(Pending),
    /// An object of a snapshot.
    Item {
        /// Of which subscription.
        sub: String,
        /// The object.
        object: Object,
        /// How much of it.
        mode: Mode,
    },
}

impl Outgoing {
    /// One message.
    pub(crate) fn text(self) -> Bytes {
        match self {
            Self::Text(text) => text,
            Self::News(pending) => pending.text().into(),
            Self::Item { sub, object, mode } => item(&sub, &object, mode).into(),
        }
    }
}

impl Pending {
    fn text(&self) -> String {
        let cursor = self.news.cursor;
        match (&self.news.tale, &self.merged) {
            (Tale::Gap { from, reason }, _) => {
                // It was written here.
                let subs = serde_json::from_str(&self.label).unwrap_or_default();
                news::gap(cursor, subs, *from, reason)
            }
            // It is told to nobody.
            (Tale::Begun, _) => Message::Bookmark(Bookmark { cursor }).text(),
            (Tale::Change(told), None) => {
                news::message(cursor, &self.label, &told.body(&self.form, self.mode, self.seen))
            }
            (Tale::Change(_), Some(merged)) => {
                let object = match &merged.last.tale {
                    Tale::Change(told) => told.object(),
                    Tale::Gap { .. } | Tale::Begun => None,
                };
                news::message(cursor, &self.label, &news::write(&merged.change, self.mode, object))
            }
        }
    }
}

fn item(sub: &str, object: &Object, mode: Mode) -> String {
    // Texts and what a change is about can always be written.
    let sub = serde_json::to_string(sub).unwrap_or_default();
    let about = serde_json::to_string(&Subject::of(object)).unwrap_or_default();
    match mode {
        Mode::Notify => format!(r#"{{"op":"snap.item","sub":{sub},"obj":{about}}}"#),
        Mode::Diff | Mode::Full => {
            let whole = describe::whole(object);
            format!(r#"{{"op":"snap.item","sub":{sub},"obj":{about},"object":{whole}}}"#)
        }
    }
}
