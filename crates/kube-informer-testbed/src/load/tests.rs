use std::collections::{HashMap, HashSet};

use super::*;

#[test]
fn the_same_seed_gives_the_same_objects_and_another_seed_others() {
    assert!(pods(7, 50).eq(pods(7, 50)));
    assert!(custom_resources(7, 50).eq(custom_resources(7, 50)));
    assert!(pods(7, 50).zip(pods(8, 50)).all(|(one, other)| one.name() != other.name()));
    assert!(custom_resources(7, 50).zip(custom_resources(8, 50)).all(|(one, other)| one != other));
}

#[test]
fn an_object_does_not_depend_on_how_many_are_made() {
    assert_eq!(pods(7, 12).last(), pods(7, 1000).nth(11));
    assert_eq!(custom_resources(7, 12).last(), custom_resources(7, 1000).nth(11));
}

/// What a seed gives is part of the contract: numbers measured on one machine
/// mean the same load on another.
#[test]
fn a_seed_means_the_same_load_for_ever() {
    assert_eq!(Rng::new(1).next(), 0x910a_2dec_8902_5cc1);
    let names: Vec<String> = pods(1, 2).chain(custom_resources(1, 1)).map(|object| object.name).collect();
    assert_eq!(names, ["sessions-n6sn-gdsfcld70-c4b0", "sessions-n6sn-gdsfcld70-9291", "gadget-9bmcrp-0"]);
    let pod = pods(1, 1).next().unwrap();
    assert_eq!(pod.steps[1].patch["status"]["podIP"], "10.119.130.26");
}

#[test]
fn names_are_valid_and_never_given_twice() {
    let mut seen = HashSet::new();
    for object in pods(1, 2000).chain(custom_resources(1, 2000)) {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(object.name().len() <= 63 && object.name().chars().all(valid), "{}", object.name());
        assert!(seen.insert((object.kind(), object.name().to_owned())), "{} twice", object.name());
    }
}

#[test]
fn five_pods_share_a_replica_set_with_its_labels() {
    let mut sets: HashMap<String, Vec<Object>> = HashMap::new();
    for pod in pods(3, 500) {
        let owner = pod.manifest()["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap().to_owned();
        sets.entry(owner).or_default().push(pod);
    }
    assert_eq!(sets.len(), 100);
    for pods in sets.values() {
        assert_eq!(pods.len(), 5);
        let labels = |pod: &Object| pod.manifest()["metadata"]["labels"].clone();
        assert!(pods.iter().all(|pod| labels(pod) == labels(&pods[0])));
    }
}

#[test]
fn random_numbers_fill_their_range_evenly() {
    let mut rng = Rng::new(5);
    let mut counts = [0u32; 10];
    for _ in 0..10_000 {
        counts[rng.below(10) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    assert_eq!(rng.below(1), 0);
}
