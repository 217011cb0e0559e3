//! The soak: many random operations on a server, faults on the way from it, handlers that come and go.
//!
//! - Three resources in three namespaces, which five informers watch: all objects, some namespaces, what labels select.
//! - Several writers create, change, delete and make anew the same few objects, so that names meet again.
//! - Between the informers and the server stands a proxy that cuts, stalls, refuses, lies, loses and doubles.
//! - Ten registrations at a time, of both policies, quick and slow, replay what they are told, and check each event.
//!
//! In the end the caches are what the server has, every view is what its cache has, and after the shutdown nothing is
//! left: no task, no connection, no thread. And the soak fails where one of the promises that it is about is broken.
//!
//! What happens comes from a seed; when it happens does not. `KUBE_INFORMER_SOAK_SEED` sets another seed,
//! `KUBE_INFORMER_FULL=1` makes the run much longer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Mutex, PoisonError};

use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::require;

// How much, and how far it is.
mod plan;
mod progress;

// The server, and what happens to it.
mod world;
mod writers;

// What happens on the way.
mod faults;

// Who is told, and whether it is right.
mod audience;
mod view;

// The whole.
mod compare;
mod run;

use plan::Plan;
use run::Soak;
use world::World;

/// One at a time: they need both cores, count threads, and break the whole process.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn on_the_embedded_server_caches_and_views_end_as_the_server_and_nothing_is_left() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let soak = Soak::new(Plan::of(20_000, 200_000));
    let world = soak.block_on(World::embedded(soak.plan())).unwrap();
    soak.must_hold(world);
}

#[test]
fn on_the_real_server_caches_and_views_end_as_the_server_and_nothing_is_left() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // It takes some hundred operations per second from unoptimised writers, and more from others.
    let soak = Soak::new(Plan::of(5_000, if cfg!(debug_assertions) { 25_000 } else { 200_000 }));
    let cluster = require!(soak.block_on(Cluster::shared()));
    let world = soak.block_on(World::real(&cluster)).unwrap();
    soak.must_hold(world);
}

// Without debug assertions nothing can be broken.
#[cfg(debug_assertions)]
mod broken;
