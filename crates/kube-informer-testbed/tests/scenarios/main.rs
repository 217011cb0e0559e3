//! One suite, two servers: every scenario runs on the embedded server and on kube-apiserver, and what it saw
//! there must be equal.
//!
//! A scenario is an async function over an [`Api`](harness::Api): a server, a namespace of its own, unique
//! names. Every answer goes into its transcript, from which what differs by nature (UIDs, versions, times,
//! allocated addresses) is taken out; the transcripts are compared path by path. What the embedded server
//! deliberately does otherwise is in [`harness::DIFFERENCES`], each with its reason.
//!
//! Without a real server the scenarios run on the embedded one alone, with the assertions they make
//! themselves, and the comparison is reported as left out.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

mod harness;

// The verbs.
mod create;
mod delete;
mod get;
mod list;
mod patch;
mod update;
mod watch;

// Kinds and parts of them.
mod crd;
mod definitions;
mod kinds;
mod pods;
mod services;
mod subresources;
mod workloads;

// Everything around them.
mod access;
mod discovery;
mod forms;
mod namespaces;
mod paths;
mod wrong;

// What only the embedded server is put through.
mod fuzz;

/// All scenarios, by name.
fn names() -> Vec<&'static str> {
    [
        create::NAMES,
        delete::NAMES,
        get::NAMES,
        list::NAMES,
        patch::NAMES,
        update::NAMES,
        watch::NAMES,
        crd::NAMES,
        definitions::NAMES,
        kinds::NAMES,
        pods::NAMES,
        services::NAMES,
        subresources::NAMES,
        workloads::NAMES,
        access::NAMES,
        discovery::NAMES,
        forms::NAMES,
        namespaces::NAMES,
        paths::NAMES,
        wrong::NAMES,
    ]
    .concat()
}

#[test]
fn every_scenario_has_a_name_of_its_own() {
    let mut all = names();
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(count >= 80, "{count} scenarios");
}

#[test]
fn every_difference_belongs_to_a_scenario_and_is_documented() {
    let document = include_str!("../../../kube-informer-apiserver/DIFFERENCES.md");
    let all = names();
    for difference in harness::DIFFERENCES {
        assert!(all.contains(&difference.scenario), "no scenario {}", difference.scenario);
        assert!(
            document.contains(difference.reason),
            "DIFFERENCES.md lacks the reason of {} {}: {}",
            difference.scenario,
            difference.path,
            difference.reason
        );
    }
}
