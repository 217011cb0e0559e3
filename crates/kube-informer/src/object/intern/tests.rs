use std::borrow::Cow;
use std::sync::Arc;

use super::{Interners, Labels, OwnerRef};
use crate::encoding::metadata::Owner;

type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

fn pairs<'a>(pairs: &[(&'a str, &'a str)]) -> Pairs<'a> {
    pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

fn labels(from: &[(&str, &str)]) -> Arc<Labels> {
    Interners::default().labels(&pairs(from))
}

fn owner<'a>(name: &'a str, uid: &'a str) -> Owner<'a> {
    Owner {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: name.into(),
        uid: uid.into(),
        controller: true,
        block_owner_deletion: false,
    }
}

fn owned(owner: &Owner<'_>) -> OwnerRef {
    Interners::default().owners(std::slice::from_ref(owner))[0].clone()
}

#[test]
fn equal_namespaces_are_one() {
    let mut interners = Interners::default();
    let a = interners.namespace("default");
    assert!(Arc::ptr_eq(&a, &interners.namespace("default")));
    assert!(!Arc::ptr_eq(&a, &interners.namespace("other")));
    assert_eq!(&*interners.namespace(""), "");
    assert_eq!(interners.stats().namespaces, 3);
}

#[test]
fn equal_label_sets_are_one_in_whatever_order_they_come() {
    let mut interners = Interners::default();
    let a = interners.labels(&pairs(&[("app", "web"), ("tier", "edge")]));
    let b = interners.labels(&pairs(&[("tier", "edge"), ("app", "web")]));
    assert!(Arc::ptr_eq(&a, &b));
    assert_eq!(interners.stats().labels, 1);
}

#[test]
fn label_sets_that_run_together_the_same_way_are_not_one() {
    let mut interners = Interners::default();
    let a = interners.labels(&pairs(&[("ab", "c")]));
    for other in [&[("a", "bc")][..], &[("ab", "c"), ("d", "")], &[("", "abc")], &[]] {
        let other = interners.labels(&pairs(other));
        assert_ne!(a, other);
    }
}

#[test]
fn a_candidate_is_the_label_set_with_the_same_pairs_and_no_other() {
    let candidate = pairs(&[("app", "web"), ("tier", "edge")]);
    let mut order = Vec::new();
    let candidate = super::labels::Sorted::new(&candidate, &mut order);
    assert!(candidate.is(&labels(&[("tier", "edge"), ("app", "web")])));
    for other in
        [&[("app", "web"), ("tier", "core")][..], &[("app", "web"), ("tie", "redge")], &[("app", "web")]]
    {
        assert!(!candidate.is(&labels(other)));
    }
}

#[test]
fn labels_are_sorted_and_found_by_key() {
    let set = labels(&[("tier", "edge"), ("app", "web"), ("zone", ""), ("ähnlich", "日本")]);
    let expected = [("app", "web"), ("tier", "edge"), ("zone", ""), ("ähnlich", "日本")];
    assert_eq!(set.iter().collect::<Vec<_>>(), expected);
    assert!(set.iter().rev().eq(expected.into_iter().rev()));
    for (key, value) in expected {
        assert_eq!(set.get(key), Some(value));
    }
    for key in ["", "a", "apple", "tie", "zzz"] {
        assert_eq!(set.get(key), None, "{key}");
    }
    assert!(set.contains_key("zone") && !set.contains_key("zon"));
    assert_eq!((set.len(), set.is_empty()), (4, false));
    assert_eq!(format!("{set:?}"), r#"{"app": "web", "tier": "edge", "zone": "", "ähnlich": "日本"}"#);
}

#[test]
fn no_labels_are_a_label_set_too() {
    let set = labels(&[]);
    assert_eq!((set.len(), set.is_empty(), set.get("app")), (0, true, None));
    assert_eq!(*set, Labels::default());
}

#[test]
fn of_a_label_key_that_stands_twice_the_last_one_counts() {
    let set = labels(&[("b", "1"), ("a", "1"), ("b", "2"), ("b", "3")]);
    assert_eq!(set.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "3")]);
    assert_eq!(set, labels(&[("a", "1"), ("b", "3")]));
    assert_eq!(labels(&[("a", "1"), ("a", "2")]), labels(&[("a", "2")]));
}

#[test]
fn equal_owner_lists_are_one_and_order_counts() {
    let mut interners = Interners::default();
    let (one, two) = (owner("web", "u-1"), owner("web", "u-2"));
    let a = interners.owners(&[one.clone(), two.clone()]);
    assert!(Arc::ptr_eq(&a, &interners.owners(&[one.clone(), two.clone()])));
    assert!(!Arc::ptr_eq(&a, &interners.owners(&[two, one.clone()])));
    assert!(!Arc::ptr_eq(&a, &interners.owners(std::slice::from_ref(&one))));
    assert!(interners.owners(&[]).is_empty());
    assert_eq!(interners.stats().owners, 4);
    assert_eq!(a[0], one);
    assert!(Arc::ptr_eq(&a[0].kind, &a[1].kind), "kinds are stored once");
}

#[test]
fn every_field_of_an_owner_tells_it_apart() {
    let known = owned(&owner("web", "u-1"));
    assert_eq!(known, owner("web", "u-1"));
    let with = |change: fn(&mut Owner<'_>)| {
        let mut other = owner("web", "u-1");
        change(&mut other);
        other
    };
    for other in [
        with(|owner| owner.api_version = "v1".into()),
        with(|owner| owner.kind = "Job".into()),
        with(|owner| owner.name = "x".into()),
        with(|owner| owner.uid = "x".into()),
        with(|owner| owner.controller = false),
        with(|owner| owner.block_owner_deletion = true),
    ] {
        assert_ne!(known, other);
        assert_ne!(known, owned(&other));
    }
}

#[test]
fn what_nobody_holds_goes_and_what_someone_holds_stays_the_same() {
    let mut interners = Interners::default();
    let held = interners.labels(&pairs(&[("app", "held")]));
    for at in 0..10_000 {
        let value = at.to_string();
        interners.labels(&pairs(&[("app", &value)]));
        interners.namespace(&value);
        interners.owners(&[owner("web", &value)]);
    }
    let stats = interners.stats();
    assert!(stats.labels <= 130 && stats.namespaces <= 130 && stats.owners <= 130, "{stats:?}");
    assert!(Arc::ptr_eq(&held, &interners.labels(&pairs(&[("app", "held")]))));
}
