use std::collections::BTreeMap;

use futures_util::StreamExt;
use futures_util::future::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::*;
use crate::api::ScaleTargetRef;

fn elasti(name: &str, service: &str, created: i64) -> (Request, ElastiService) {
    let mut object = ElastiService::default();
    object.metadata.namespace = Some("shop".to_owned());
    object.metadata.name = Some(name.to_owned());
    object.metadata.uid = Some(format!("uid-of-{name}"));
    object.metadata.creation_timestamp = Timestamp::from_second(created).ok().map(Time);
    object.spec.service = service.to_owned();
    object.spec.scale_target_ref = ScaleTargetRef {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: format!("target-of-{name}"),
    };
    (Request::new("shop", name), object)
}

fn set(directory: &Directory, name: &str, service: &str, created: i64) -> Standing {
    let (key, object) = elasti(name, service, created);
    directory.set(&key, &object, None)
}

fn key(name: &str) -> Request {
    Request::new("shop", name)
}

#[test]
fn a_service_is_found_by_its_namespace_and_name() {
    let directory = Directory::new();
    assert!(directory.is_empty() && directory.lookup("shop", "web").is_none());
    let (request, object) = elasti("one", "web", 1);
    let deployments = Resource {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        plural: "deployments".to_owned(),
        kind: "Deployment".to_owned(),
        namespaced: true,
    };
    assert_eq!(directory.set(&request, &object, Some(&deployments)), Standing::Owns { others: vec![] });
    let entry = directory.clone().lookup("shop", "web").unwrap();
    assert_eq!((&entry.elasti, entry.uid.as_str()), (&request, "uid-of-one"));
    assert_eq!((&entry.spec, entry.target.as_ref()), (&object.spec, Some(&deployments)));
    assert!(directory.lookup("other", "web").is_none() && directory.lookup("shop", "one").is_none());
    assert_eq!((directory.len(), directory.all()), (1, vec![request.clone()]));
    assert!(directory.remove(&request) && !directory.remove(&request));
    assert!(directory.is_empty() && directory.lookup("shop", "web").is_none());
}

#[test]
fn the_same_again_changes_nothing() {
    let directory = Directory::new();
    set(&directory, "one", "web", 1);
    let before = directory.lookup("shop", "web").unwrap();
    set(&directory, "one", "web", 1);
    assert!(Arc::ptr_eq(&before, &directory.lookup("shop", "web").unwrap()));
    let (request, mut object) = elasti("one", "web", 1);
    object.spec.min_target_replicas = Some(3);
    directory.set(&request, &object, None);
    assert_eq!(directory.lookup("shop", "web").unwrap().spec.wake_to(), 3);
    assert_eq!(before.spec.wake_to(), 1, "who has an entry keeps it as it was");
}

#[tokio::test]
async fn the_older_one_owns_and_the_other_is_told() {
    let directory = Directory::new();
    let mut changes = Box::pin(directory.changes());
    assert_eq!(set(&directory, "young", "web", 20), Standing::Owns { others: vec![] });
    assert!(changes.next().now_or_never().is_none(), "nobody is told what it did itself");
    // The older one is seen later: it takes over, and the other one is told.
    assert_eq!(set(&directory, "old", "web", 10), Standing::Owns { others: vec![key("young")] });
    assert_eq!(changes.next().now_or_never(), Some(Some(key("young"))));
    assert_eq!(directory.standing(&key("young")), Some(Standing::Yields { to: key("old") }));
    let entry = directory.lookup("shop", "web").unwrap();
    assert_eq!((&entry.elasti, &entry.claimed_by_others), (&key("old"), &vec![key("young")]));
    // Equally old: by name.
    assert_eq!(set(&directory, "also", "web", 10), Standing::Owns { others: vec![key("old"), key("young")] });
    assert_eq!(set(&directory, "zeta", "web", 10), Standing::Yields { to: key("also") });
    while changes.next().now_or_never().is_some() {}
    // When it goes, the next one owns it, and all are told.
    directory.remove(&key("also"));
    assert_eq!(directory.lookup("shop", "web").unwrap().elasti, key("old"));
    let told: BTreeSet<_> = std::iter::from_fn(|| changes.next().now_or_never().flatten()).collect();
    assert_eq!(told, BTreeSet::from([key("old"), key("young"), key("zeta")]));
    assert_eq!(directory.standing(&key("also")), None);
}

#[test]
fn another_service_leaves_nothing_of_the_old_one() {
    let directory = Directory::new();
    set(&directory, "one", "web", 1);
    set(&directory, "two", "web", 2);
    set(&directory, "one", "api", 1);
    assert_eq!(directory.lookup("shop", "web").unwrap().elasti, key("two"));
    assert!(directory.lookup("shop", "web").unwrap().claimed_by_others.is_empty());
    assert_eq!(directory.lookup("shop", "api").unwrap().elasti, key("one"));
    set(&directory, "two", "api", 2);
    assert!(directory.lookup("shop", "web").is_none());
    assert_eq!(directory.len(), 1);
}

#[test]
fn one_that_was_made_again_has_its_new_age() {
    let directory = Directory::new();
    set(&directory, "one", "web", 1);
    set(&directory, "two", "web", 2);
    assert_eq!(set(&directory, "one", "web", 3), Standing::Yields { to: key("two") });
    assert_eq!(directory.lookup("shop", "web").unwrap().elasti, key("two"));
}

#[test]
fn a_lookup_never_finds_a_service_half_moved() {
    let directory = Directory::new();
    set(&directory, "one", "a", 1);
    let reader = {
        let directory = directory.clone();
        std::thread::spawn(move || {
            for _ in 0..20_000 {
                // Both at once would need one lock; but each has a whole entry of that one, or none.
                for service in ["a", "b"] {
                    let entry = directory.lookup("shop", service);
                    assert!(
                        entry.is_none_or(|entry| entry.spec.service == service && entry.elasti == key("one"))
                    );
                }
                assert_eq!(directory.len(), 1, "never none, never two");
            }
        })
    };
    for turn in 0.. {
        set(&directory, "one", if turn % 2 == 0 { "b" } else { "a" }, 1);
        if reader.is_finished() {
            break;
        }
    }
    reader.join().unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Set { name: u8, service: u8, created: Option<u8>, replicas: u8 },
    Remove { name: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6u8, 0..3u8, proptest::option::of(0..4u8), 0..3u8)
            .prop_map(|(name, service, created, replicas)| Step::Set { name, service, created, replicas }),
        1 => (0..6u8).prop_map(|name| Step::Remove { name }),
    ]
}

proptest! {
    #[test]
    fn it_is_what_a_plain_list_of_claims_says(steps in proptest::collection::vec(step(), 1..60)) {
        let directory = Directory::new();
        let mut changes = Box::pin(directory.changes());
        // By name: what was set last.
        let mut model: BTreeMap<String, (Option<i64>, ElastiService)> = BTreeMap::new();
        for step in steps {
            let standings: BTreeMap<Request, Option<Standing>> =
                model.keys().map(|name| (key(name), directory.standing(&key(name)))).collect();
            let actor = match step {
                Step::Set { name, service, created, replicas } => {
                    let name = format!("e{name}");
                    let (request, mut object) =
                        elasti(&name, &format!("s{service}"), i64::from(created.unwrap_or_default()));
                    if created.is_none() {
                        object.metadata.creation_timestamp = None;
                    }
                    object.spec.min_target_replicas = Some(i32::from(replicas));
                    directory.set(&request, &object, None);
                    model.insert(name, (created.map(i64::from), object));
                    request
                }
                Step::Remove { name } => {
                    let name = format!("e{name}");
                    let was_there = model.remove(&name).is_some();
                    prop_assert_eq!(directory.remove(&key(&name)), was_there);
                    key(&name)
                }
            };
            for service in ["s0", "s1", "s2"] {
                let mut claims: Vec<_> =
                    model.iter().filter(|(_, (_, object))| object.spec.service == service).collect();
                claims.sort_by_key(|(name, (created, _))| (created.is_none(), *created, (*name).clone()));
                let names: Vec<Request> = claims.iter().map(|(name, _)| key(name)).collect();
                let entry = directory.lookup("shop", service);
                match (claims.first(), entry) {
                    (None, entry) => prop_assert!(entry.is_none()),
                    (Some(_), None) => prop_assert!(false, "{} is missing", service),
                    (Some((name, (_, object))), Some(entry)) => {
                        prop_assert_eq!(&entry.elasti, &key(name));
                        prop_assert_eq!(&entry.spec, &object.spec);
                        prop_assert_eq!(&entry.claimed_by_others[..], &names[1..]);
                    }
                }
            }
            prop_assert_eq!(directory.all(), model.keys().map(|name| key(name)).collect::<Vec<_>>());
            // Whoever stands otherwise now, and did not do it, was told.
            let told: BTreeSet<Request> =
                std::iter::from_fn(|| changes.next().now_or_never().flatten()).collect();
            prop_assert!(!told.contains(&actor));
            for (request, before) in standings {
                let after = directory.standing(&request);
                if request != actor && before != after {
                    prop_assert!(told.contains(&request), "{} was not told", request);
                }
            }
        }
    }
}
