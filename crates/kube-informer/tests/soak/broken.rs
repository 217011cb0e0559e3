//! The soak fails where a promise is broken, and for that reason.

use std::sync::PoisonError;

use kube_informer::sabotage::{self, Sabotage};

use crate::ONE;
use crate::plan::Plan;
use crate::run::Soak;
use crate::view::Rule;
use crate::world::World;

#[test]
fn without_the_difference_to_a_list_the_soak_fails() {
    fails_by(Sabotage::NoRelistDiff, &[Rule::CacheIsServer]);
}

#[test]
fn without_the_check_of_uids_the_soak_fails() {
    fails_by(Sabotage::NoUidCheck, &[Rule::SameObject]);
}

#[test]
fn without_the_gap_the_soak_fails() {
    // Whichever comes first after what was dropped.
    let rules =
        [Rule::OldIsKnown, Rule::AddedIsNew, Rule::DeletedIsKnown, Rule::AgainIsKnown, Rule::ViewIsCache];
    fails_by(Sabotage::NoGap, &rules);
}

/// Runs a short soak with something broken. It must be noticed, first by one of these.
fn fails_by(what: Sabotage, rules: &[Rule]) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let soak = Soak::new(Plan::of(3_000, 3_000));
    let plan = *soak.plan();
    let world = soak.block_on(World::embedded(&plan)).unwrap();
    let broken = Broken::new(what);
    let found = soak.run(world);
    drop(broken);
    let first = found.violations.first();
    let first = first.unwrap_or_else(|| panic!("{plan:?}: {what:?} was not noticed: {found:#?}"));
    assert!(rules.contains(&first.rule), "{plan:?}: {what:?} was noticed by something else: {first}");
}

/// Until it is dropped, however the test ends.
struct Broken;

impl Broken {
    fn new(what: Sabotage) -> Self {
        sabotage::set(Some(what));
        Self
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        sabotage::set(None);
    }
}
