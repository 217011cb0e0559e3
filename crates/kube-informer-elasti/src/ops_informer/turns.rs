//! One after the other, for each key by itself: those who set something up and take it down for one key wait for each other,
//! and for nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Turns {
    all: Mutex<HashMap<Box<str>, Weak<AsyncMutex<()>>>>,
}

impl Turns {
    /// Waits for one's turn. It is over when what is returned is dropped.
    pub(super) async fn take(&self, key: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            match all.get(key).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    all.retain(|_, turn| turn.strong_count() > 0);
                    let turn = Arc::new(AsyncMutex::new(()));
                    all.insert(key.into(), Arc::downgrade(&turn));
                    turn
                }
            }
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_waits_for_those_of_the_same_key_alone() {
        let turns = Turns::default();
        let first = turns.take("a").await;
        assert!(turns.take("a").now_or_never().is_none());
        assert!(turns.take("b").now_or_never().is_some());
        drop(first);
        assert!(turns.take("a").now_or_never().is_some());
        drop(turns.take("c").await);
        assert_eq!(turns.all.lock().unwrap().len(), 1, "nothing is kept of those that are over");
    }
}
