//! How many replicas each ReplicaSet may have next. Numbers in, numbers out.
//!
//! Never more than `replicas + maxSurge` pods, never fewer than `replicas - maxUnavailable` available ones.

use std::cmp::Reverse;

use serde_json::Value;

use super::replica_sets::{DESIRED, MAX, Set};
use crate::api::text;
use crate::simulator::cluster::int;
use crate::simulator::pod;

/// What a Deployment wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) replicas: i64,
    pub(super) recreate: bool,
    pub(super) surge: i64,
    pub(super) unavailable: i64,
}

impl Plan {
    pub(super) fn of(deployment: &Value) -> Self {
        let replicas = int(deployment, "/spec/replicas").unwrap_or(1).max(0);
        if text(deployment, "/spec/strategy/type") == "Recreate" {
            return Self { replicas, recreate: true, surge: 0, unavailable: 0 };
        }
        let rolling = |field| deployment.pointer("/spec/strategy/rollingUpdate").and_then(|r| r.get(field));
        let surge = amount(rolling("maxSurge"), replicas, true).unwrap_or(0);
        let unavailable = amount(rolling("maxUnavailable"), replicas, false).unwrap_or(0);
        // Both 0 (rounding) would allow no step at all.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, recreate: false, surge, unavailable: unavailable.min(replicas) }
    }

    /// The most pods there may be.
    pub(super) fn most(&self) -> i64 {
        self.replicas.saturating_add(self.surge)
    }

    fn fewest_available(&self) -> i64 {
        self.replicas - self.unavailable
    }

    /// The size that the new set may grow to when all sets together want `total` replicas.
    pub(super) fn room_for_new(&self, total: i64, new: i64) -> i64 {
        let room = (self.most() - total).max(0);
        new + room.min(self.replicas - new).max(0)
    }

    /// Notes on a ReplicaSet what is wanted of all of them together.
    pub(super) fn annotate(&self, set: &mut Value) {
        pod::set_meta(set, "annotations", DESIRED, &self.replicas.to_string());
        pod::set_meta(set, "annotations", MAX, &self.most().to_string());
    }
}

/// A number, or a share of `total`.
pub(in crate::simulator) fn amount(value: Option<&Value>, total: i64, round_up: bool) -> Option<i64> {
    let value = value?;
    if let Some(number) = value.as_i64() {
        return Some(number.max(0));
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let hundredths = total.saturating_mul(percent.max(0));
    Some(if round_up { hundredths.saturating_add(99) / 100 } else { hundredths / 100 })
}

/// The sizes to which the old sets may shrink: first by what is not available anyway, then as far as
/// enough stay available.
pub(super) fn shrink_old(plan: &Plan, sets: &[Set]) -> Vec<(usize, i64)> {
    let total: i64 = sets.iter().map(|s| s.replicas).sum();
    let new_missing: i64 = sets.iter().filter(|s| s.is_new).map(|s| s.replicas - s.available).sum();
    let mut spare = total - plan.fewest_available() - new_missing;
    let mut sizes: Vec<i64> = sets.iter().map(|s| s.replicas).collect();
    if spare <= 0 {
        return Vec::new();
    }
    let old: Vec<usize> = (0..sets.len()).filter(|at| !sets[*at].is_new).collect();
    for at in &old {
        let ill = (sizes[*at] - sets[*at].available).clamp(0, spare.max(0));
        sizes[*at] -= ill;
        spare -= ill;
    }
    let available: i64 = sets.iter().map(|s| s.available).sum();
    let mut spare = available - plan.fewest_available();
    for at in &old {
        let fewer = sizes[*at].clamp(0, spare.max(0));
        sizes[*at] -= fewer;
        spare -= fewer;
    }
    old.into_iter().filter(|at| sizes[*at] != sets[*at].replicas).map(|at| (at, sizes[at])).collect()
}

/// The sizes after a change of `replicas`: (which, to, even if that is its size).
pub(super) fn scale(plan: &Plan, sets: &[Set]) -> Vec<(usize, i64, bool)> {
    let active: Vec<usize> = (0..sets.len()).filter(|at| sets[*at].replicas > 0).collect();
    let only = match active.as_slice() {
        [] => sets.iter().position(|s| s.is_new).or_else(|| sets.len().checked_sub(1)),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(only) = only {
        // The annotations are brought up to date too: they are what tells that scaling is done.
        return vec![(only, plan.replicas, true)];
    }
    let saturated = sets.iter().any(|s| {
        s.is_new
            && s.replicas == plan.replicas
            && s.desired == Some(plan.replicas)
            && s.available == plan.replicas
    });
    if saturated {
        return active.into_iter().filter(|at| !sets[*at].is_new).map(|at| (at, 0, true)).collect();
    }
    if plan.recreate {
        return active.into_iter().map(|at| (at, sets[at].replicas, true)).collect();
    }
    proportionally(plan, sets, active)
}

/// All sets grow or shrink by their share, so that a change of size does not hasten the rollout.
fn proportionally(plan: &Plan, sets: &[Set], mut active: Vec<usize>) -> Vec<(usize, i64, bool)> {
    let total: i64 = active.iter().map(|at| sets[*at].replicas).sum();
    let allowed = if plan.replicas > 0 { plan.most() } else { 0 };
    let to_add = allowed - total;
    // Of sets of one size, the newer grow first and the older shrink first.
    active.sort_by_key(|at| {
        let age = *at as i64;
        (Reverse(sets[*at].replicas), if to_add > 0 { -age } else { age })
    });
    let mut added = 0;
    let mut sizes = Vec::new();
    for at in active {
        let set = &sets[at];
        let left = to_add - added;
        let before = set.max.filter(|max| *max > 0).unwrap_or(plan.replicas.max(1));
        // Rounded half away from zero, as the real controller does.
        let size = if plan.replicas == 0 { 0.0 } else { (set.replicas * plan.most()) as f64 / before as f64 };
        let wanted = size.round() as i64 - set.replicas;
        let share = if to_add > 0 { wanted.clamp(0, left.max(0)) } else { wanted.clamp(left.min(0), 0) };
        added += share;
        sizes.push((at, set.replicas + share, true));
    }
    if let Some(largest) = sizes.first_mut() {
        largest.1 = (largest.1 + to_add - added).max(0);
    }
    sizes
}
