//! Whose pods these are: many selectors, asked with the labels of one pod.
//!
//! Most selectors ask for one value of some label. They are found by it, so that a pod is compared with those few selectors
//! that it may meet, however many there are. What asks for no such value is compared with every pod.

use std::collections::{BTreeSet, HashMap};

use kube_informer::cache::Selector;
use kube_informer::controller::Request;
use kube_informer::object::Labels;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    /// By the key and the value of a label that they ask for.
    exact: HashMap<Box<str>, HashMap<Box<str>, Vec<Held>>>,
    /// Those that ask for no value in particular.
    other: Vec<Held>,
    /// Who is here, and by which label.
    places: HashMap<Request, Place>,
}

#[derive(Debug)]
struct Held {
    owner: Request,
    selector: Selector,
}

#[derive(Debug)]
enum Place {
    Exact(Box<str>, Box<str>),
    Other,
}

impl Selectors {
    /// Puts an owner's selector in, in place of the one that it had.
    pub(super) fn set(&mut self, owner: &Request, selector: Selector) {
        self.remove(owner);
        let exact = selector.requirements().iter().filter_map(|each| Some((each.key(), each.exact()?)));
        // Some labels are on everything. Those that few ask for tell more.
        let best = exact.min_by_key(|(key, value)| self.at(key, value).len());
        let best = best.map(|(key, value)| (Box::<str>::from(key), Box::<str>::from(value)));
        let held = Held { owner: owner.clone(), selector };
        let place = match best {
            Some((key, value)) => {
                let values = self.exact.entry(key.clone()).or_default();
                values.entry(value.clone()).or_default().push(held);
                Place::Exact(key, value)
            }
            None => {
                self.other.push(held);
                Place::Other
            }
        };
        self.places.insert(owner.clone(), place);
    }

    /// Takes an owner's selector out.
    pub(super) fn remove(&mut self, owner: &Request) {
        let is_others = |held: &Held| held.owner != *owner;
        match self.places.remove(owner) {
            None => {}
            Some(Place::Other) => self.other.retain(is_others),
            Some(Place::Exact(key, value)) => {
                let Some(values) = self.exact.get_mut(&key) else { return };
                if let Some(held) = values.get_mut(&value) {
                    held.retain(is_others);
                    if held.is_empty() {
                        values.remove(&value);
                    }
                }
                if values.is_empty() {
                    self.exact.remove(&key);
                }
            }
        }
    }

    /// Adds the owners whose selectors these labels meet.
    pub(super) fn matching(&self, labels: &Labels, owners: &mut BTreeSet<Request>) {
        let found = labels.iter().flat_map(|(key, value)| self.at(key, value));
        for held in found.chain(&self.other) {
            if held.selector.matches(labels) && !owners.contains(&held.owner) {
                owners.insert(held.owner.clone());
            }
        }
    }

    fn at(&self, key: &str, value: &str) -> &[Held] {
        self.exact.get(key).and_then(|values| values.get(value)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube_informer::encoding::{Codec, Encoding, Rules};
    use kube_informer::object::{Intake, Object};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod(labels: &BTreeMap<String, String>) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let pod = json!({ "metadata": { "name": "p", "namespace": "shop", "labels": labels } });
        Intake::new(codec).object(pod.to_string().as_bytes()).unwrap()
    }

    fn selector() -> impl Strategy<Value = String> {
        let requirement = prop_oneof![
            4 => (0..3u8, 0..3u8).prop_map(|(key, value)| format!("k{key}=v{value}")),
            1 => (0..3u8).prop_map(|key| format!("k{key} in (v0,v1)")),
            1 => (0..3u8).prop_map(|key| format!("k{key} in (v2)")),
            1 => (0..3u8).prop_map(|key| format!("!k{key}")),
            1 => (0..3u8, 0..3u8).prop_map(|(key, value)| format!("k{key}!=v{value}")),
        ];
        proptest::collection::vec(requirement, 0..3).prop_map(|all| all.join(","))
    }

    fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
        proptest::collection::btree_map(
            (0..4u8).prop_map(|key| format!("k{key}")),
            (0..3u8).prop_map(|value| format!("v{value}")),
            0..4,
        )
    }

    proptest! {
        #[test]
        fn it_finds_what_asking_each_one_finds(
            steps in proptest::collection::vec((0..8u8, proptest::option::of(selector())), 1..40),
            pods in proptest::collection::vec(labels(), 1..8),
        ) {
            let mut selectors = Selectors::default();
            let mut model: BTreeMap<Request, Selector> = BTreeMap::new();
            let pods: Vec<Object> = pods.iter().map(pod).collect();
            for (owner, selector) in steps {
                let owner = Request::new("shop", &format!("o{owner}"));
                match selector {
                    Some(text) => {
                        let selector: Selector = text.parse().unwrap();
                        selectors.set(&owner, selector.clone());
                        model.insert(owner, selector);
                    }
                    None => {
                        selectors.remove(&owner);
                        model.remove(&owner);
                    }
                }
                for pod in &pods {
                    let mut found = BTreeSet::new();
                    selectors.matching(pod.labels(), &mut found);
                    let meets = |selector: &Selector| selector.matches(pod.labels());
                    let expected: BTreeSet<_> =
                        model.iter().filter(|(_, selector)| meets(selector)).map(|(owner, _)| owner.clone()).collect();
                    prop_assert_eq!(found, expected);
                }
            }
            for owner in model.keys() {
                selectors.remove(owner);
            }
            prop_assert!(selectors.exact.is_empty() && selectors.other.is_empty() && selectors.places.is_empty());
        }
    }

    #[test]
    fn a_label_that_everything_has_is_not_what_is_looked_for() {
        let mut selectors = Selectors::default();
        for number in 0..100 {
            let selector = format!("app=a{number},part-of=shop").parse().unwrap();
            selectors.set(&Request::new("shop", &format!("o{number}")), selector);
        }
        let everywhere = selectors.at("part-of", "shop").len();
        assert!(everywhere <= 1, "{everywhere} are compared with every pod");
    }
}
