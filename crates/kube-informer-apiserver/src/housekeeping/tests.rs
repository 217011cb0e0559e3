use serde_json::json;

use super::*;

/// A server without sockets or tasks: the housekeeper works when it is told to.
struct House {
    keeper: Housekeeper,
    position: u64,
}

impl House {
    fn new(window: usize) -> Self {
        let house = Self {
            keeper: Housekeeper { api: Arc::new(Api::new(window, 1)), waiting: BTreeMap::new() },
            position: 0,
        };
        house.create("", "namespaces", json!({ "metadata": { "name": "work" } }));
        house
    }

    fn api(&self) -> &Api {
        &self.keeper.api
    }

    fn create(&self, group: &str, plural: &str, object: Value) -> Arc<Stored> {
        let resource = self.api().resource(group, plural).unwrap();
        let namespace = if resource.namespaced { "work" } else { "" };
        self.api().create(&resource, namespace, object, &WriteOptions::default()).unwrap()
    }

    /// A ConfigMap that names these as its owners.
    fn map(&self, name: &str, owners: &[&Arc<Stored>]) -> Arc<Stored> {
        self.create(
            "",
            "configmaps",
            json!({ "metadata": { "name": name, "ownerReferences": references(owners) } }),
        )
    }

    fn own(&self, name: &str, owners: &[&Arc<Stored>]) {
        let maps = self.api().resource("", "configmaps").unwrap();
        let change = |old: Option<&Value>| {
            let mut new = old.cloned().unwrap_or_default();
            new["metadata"]["ownerReferences"] = references(owners);
            Ok(new)
        };
        self.api().update(&maps, "work", name, Part::Whole, &WriteOptions::default(), change).unwrap();
    }

    fn delete(&self, group: &str, plural: &str, name: &str, policy: &str) {
        let resource = self.api().resource(group, plural).unwrap();
        let namespace = if resource.namespaced { "work" } else { "" };
        self.api().delete(&resource, namespace, name, &DeleteOptions::propagating(policy)).unwrap();
    }

    /// Until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..100 {
            let reached = self.keeper.catch_up(self.position);
            if reached == self.position && self.api().store.revision() == reached {
                return;
            }
            self.position = reached;
        }
        panic!("never at rest");
    }

    fn maps(&self) -> Vec<String> {
        let maps = self.api().resource("", "configmaps").unwrap();
        self.api().list(&maps, "work").objects.iter().map(|o| o.name.clone()).collect()
    }

    fn get(&self, group: &str, plural: &str, key: &str) -> Option<Value> {
        self.api().store.get(&(group.to_owned(), plural.to_owned()), key).map(|o| o.value())
    }
}

fn references(owners: &[&Arc<Stored>]) -> Value {
    let reference = |o: &&Arc<Stored>| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": o.name, "uid": o.uid, "blockOwnerDeletion": true });
    owners.iter().map(reference).collect()
}

#[test]
fn dependents_follow_their_owner_unless_another_one_lives() {
    let mut house = House::new(1000);
    let (a, b) = (house.map("a", &[]), house.map("b", &[]));
    let child = house.map("child-of-a", &[&a]);
    house.map("grandchild-of-a", &[&child]);
    house.map("child-of-both", &[&a, &b]);
    house.settle();
    house.delete("", "configmaps", "a", "Background");
    house.settle();
    assert_eq!(house.maps(), ["b", "child-of-both"]);
    let left = house.get("", "configmaps", "work/child-of-both").unwrap();
    assert_eq!(left["metadata"]["ownerReferences"], references(&[&b]));
}

#[test]
fn an_owner_that_is_deleted_in_the_foreground_goes_last() {
    let mut house = House::new(1000);
    let a = house.map("a", &[]);
    let child = house.map("child", &[&a]);
    let held = json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold"], "ownerReferences": references(&[&child]) } });
    house.create("", "configmaps", held);
    house.settle();
    house.delete("", "configmaps", "a", "Foreground");
    house.settle();
    assert_eq!(house.maps(), ["a", "child", "held"], "all wait for the one that is held");
    let maps = house.api().resource("", "configmaps").unwrap();
    let stored = house.api().get(&maps, "work", "held").unwrap();
    house.api().remove_finalizer(&maps, &stored, Part::Whole, "example.com/hold");
    house.settle();
    assert!(house.maps().is_empty(), "{:?}", house.maps());
}

#[test]
fn a_ring_of_owners_does_not_wait_for_itself() {
    let mut house = House::new(1000);
    let a = house.map("a", &[]);
    let b = house.map("b", &[&a]);
    house.own("a", &[&b]);
    house.settle();
    house.delete("", "configmaps", "a", "Foreground");
    house.settle();
    assert!(house.maps().is_empty(), "{:?}", house.maps());
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let mut house = House::new(1000);
    let a = house.map("a", &[]);
    house.map("child", &[&a]);
    house.delete("", "configmaps", "a", "Orphan");
    house.settle();
    assert_eq!(house.maps(), ["child"]);
    let child = house.get("", "configmaps", "work/child").unwrap();
    assert!(child["metadata"].get("ownerReferences").is_none(), "{child}");
}

#[test]
fn what_names_an_owner_that_never_was_is_collected() {
    let mut house = House::new(1000);
    let a = house.map("a", &[]);
    house.delete("", "configmaps", "a", "Background");
    house.map("late", &[&a]);
    house.settle();
    assert!(house.maps().is_empty());
}

#[test]
fn a_namespace_goes_with_the_last_of_its_content() {
    let mut house = House::new(1000);
    house.map("plain", &[]);
    house.create(
        "",
        "configmaps",
        json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold"] } }),
    );
    house.delete("", "namespaces", "work", "Background");
    house.settle();
    assert_eq!(house.maps(), ["held"]);
    assert_eq!(house.get("", "namespaces", "work").unwrap()["status"]["phase"], "Terminating");
    let maps = house.api().resource("", "configmaps").unwrap();
    let stored = house.api().get(&maps, "work", "held").unwrap();
    house.api().remove_finalizer(&maps, &stored, Part::Whole, "example.com/hold");
    house.settle();
    assert_eq!(house.get("", "namespaces", "work"), None);
}

#[test]
fn volumes_and_claims_are_not_held_by_a_protection_that_nobody_lifts() {
    let mut house = House::new(1000);
    let claim = json!({ "metadata": { "name": "c" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } });
    house.create("", "persistentvolumeclaims", claim);
    house.delete("", "persistentvolumeclaims", "c", "Background");
    house.settle();
    assert_eq!(house.get("", "persistentvolumeclaims", "work/c"), None);
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    })
}

#[test]
fn a_deleted_definition_takes_its_objects_along() {
    let mut house = House::new(1000);
    house.create("apiextensions.k8s.io", "customresourcedefinitions", definition("foos", "Foo"));
    house.settle();
    house.create(
        "example.com",
        "foos",
        json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": "a" } }),
    );
    house.delete("apiextensions.k8s.io", "customresourcedefinitions", "foos.example.com", "Background");
    house.settle();
    assert_eq!(house.get("apiextensions.k8s.io", "customresourcedefinitions", "foos.example.com"), None);
    assert!(house.api().resource("example.com", "foos").is_err(), "it is no longer served");
}

#[test]
fn a_name_that_becomes_free_is_given_to_the_one_that_waits() {
    let mut house = House::new(1000);
    let crds = ("apiextensions.k8s.io", "customresourcedefinitions");
    house.create(crds.0, crds.1, definition("foos", "Foo"));
    house.settle();
    house.create(crds.0, crds.1, definition("others", "Foo"));
    house.settle();
    assert!(house.api().resource("example.com", "others").is_err(), "the kind is taken");
    house.delete(crds.0, crds.1, "foos.example.com", "Background");
    house.settle();
    assert!(house.api().resource("example.com", "others").is_ok(), "the kind is free");
}

#[test]
fn who_has_missed_changes_looks_at_everything() {
    let mut house = House::new(1);
    let a = house.map("a", &[]);
    house.map("child", &[&a]);
    house.delete("", "configmaps", "a", "Background");
    for name in ["x", "y", "z"] {
        house.map(name, &[]);
    }
    house.settle();
    assert_eq!(house.maps(), ["x", "y", "z"]);
}
