//! Those who wait for something in the cache, the one who puts it there, and the one who stops it, in every order that a scheduler
//! thinks of: at each state that is taken or published and at each lock, it chooses who goes on. A schedule in which somebody
//! waits for ever is a failure, and is printed so that it can be played again.

use k8s_openapi::api::core::v1::Pod;
use shuttle::{future::block_on, thread};

use super::*;
use crate::informer::tests::hand::Hand;
use crate::sync::in_many_schedules;

/// Nobody waits so long: the clock stands still.
const LONG: Duration = Duration::from_secs(60);

fn written(version: &str) -> Written {
    Written::new(Resource::of::<Pod>(), "d", version)
}

/// Waits for a version, and says whether it came.
fn wait(core: &Arc<Core>, version: &'static str) -> thread::JoinHandle<Result<(), CaughtUpError>> {
    let core = Arc::clone(core);
    thread::spawn(move || {
        let reached = block_on(caught_up(&core, &written(version)));
        if reached.is_ok() {
            assert_eq!(has(&core, &written(version)), Some(true), "whoever is told finds it");
        }
        reached
    })
}

/// Waits until all is listed, and says whether it is.
fn wait_until_synced(core: &Arc<Core>) -> thread::JoinHandle<Result<(), NotSynced>> {
    let core = Arc::clone(core);
    thread::spawn(move || {
        let is_synced = block_on(synced(&[&core], LONG));
        if is_synced.is_ok() {
            assert!(core.hub().is_synced() && core.cache().snapshot().is_synced());
        }
        is_synced
    })
}

#[test]
fn in_no_schedule_is_one_forgotten_who_waits_for_what_comes() {
    in_many_schedules(|| {
        let mut hand = Hand::new(Scope::All);
        let (core, _) = hand.parts();
        // By a list, by a change, by word that nothing else happened.
        let waits = ["2", "3", "4"].map(|version| wait(&core, version));
        let synced = wait_until_synced(&core);
        let writes = thread::spawn(move || {
            hand.list(&[("a", 1)], 2);
            hand.put("a", 3);
            hand.progress(4);
        });
        waits.into_iter().for_each(|wait| assert_eq!(wait.join().unwrap(), Ok(())));
        assert_eq!(synced.join().unwrap(), Ok(()));
        writes.join().unwrap();
    });
}

#[test]
fn in_no_schedule_is_one_forgotten_who_waits_for_what_never_comes() {
    in_many_schedules(|| {
        let mut hand = Hand::new(Scope::namespaces(["d", "e"]));
        let (core, _) = hand.parts();
        let (comes, never, synced) = (wait(&core, "2"), wait(&core, "3"), wait_until_synced(&core));
        let stops = thread::spawn(move || {
            // The other namespace is never listed.
            hand.list(&[("a", 1)], 2);
            hand.stop();
        });
        stops.join().unwrap();
        // It came before the end, and whoever looks afterwards finds it.
        assert_eq!(comes.join().unwrap(), Ok(()));
        assert!(matches!(never.join().unwrap(), Err(CaughtUpError::Stopped { .. })));
        assert_eq!(synced.join().unwrap().unwrap_err().missing.len(), 1);
    });
}
