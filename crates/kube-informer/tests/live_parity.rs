//! Both encodings on the real server: whatever it serves in protobuf is read as what it serves in JSON.
//!
//! Objects of every kind that can be created are there in many forms, and so is what the server makes itself.
//! They are read alone, in lists and in watches, whole and as metadata; and what was read is written back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "live_parity/answers.rs"]
mod answers;
#[path = "live_parity/compare.rs"]
mod compare;
#[path = "live_parity/odd.rs"]
mod odd;
#[path = "live_parity/read.rs"]
mod read;
#[path = "live_parity/world.rs"]
mod world;

use std::collections::BTreeSet;

use bytes::Bytes;
use compare::{difference, differences, without_types_of_templates};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kube_informer::encoding::{Codec, Encoding, ManagedFields, Rules};
use kube_informer_testbed::http::{Endpoint, Response};
use kube_informer_testbed::require;
use read::{Form, get_lasting, initial_events, lasting, list, value, version};
use serde_json::Value;
use world::{Resource, World};

/// What is served but cannot be created and read again, and why.
const NOT_CREATABLE: [(&str, &str, &str); 8] = [
    ("v1", "Binding", "it is a command to bind a pod"),
    ("v1", "ComponentStatus", "the server makes it when it is read"),
    ("authentication.k8s.io/v1", "SelfSubjectReview", "it is a question"),
    ("authentication.k8s.io/v1", "TokenReview", "it is a question"),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview", "it is a question"),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview", "it is a question"),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview", "it is a question"),
    ("authorization.k8s.io/v1", "SubjectAccessReview", "it is a question"),
];

/// How often something is read again that another has changed between two reads.
const ATTEMPTS: usize = 20;

fn assert_none(wrong: &[String], compared: usize) {
    assert!(wrong.is_empty(), "{} differences in {compared}:\n{}", wrong.len(), wrong.join("\n"));
    println!("{compared} compared");
}

/// How many objects are there as long as the server is.
fn lasting_objects(world: &World) -> usize {
    world.objects().filter(|(_, object)| read::lasts(&object.path)).count()
}

fn type_of(resource: &Resource, form: Form) -> (&str, &str) {
    match form {
        Form::Whole => (&resource.api_version, &resource.kind),
        Form::Metadata => ("meta.k8s.io/v1", "PartialObjectMetadata"),
    }
}

#[tokio::test]
async fn every_kind_that_is_served_is_on_the_server_or_named_with_a_reason() {
    let world = require!(World::shared().await);
    let name = |resource: &Resource| (resource.api_version.clone(), resource.kind.clone());
    let served: BTreeSet<_> = world.resources.iter().map(name).collect();
    let creatable: BTreeSet<_> = world.creatable().map(name).collect();
    let created: BTreeSet<_> = world.objects().map(|(resource, _)| name(resource)).collect();
    assert_eq!(creatable, created);
    let excepted: BTreeSet<_> =
        NOT_CREATABLE.iter().map(|(version, kind, _)| ((*version).to_owned(), (*kind).to_owned())).collect();
    assert_eq!(served.difference(&creatable).cloned().collect::<BTreeSet<_>>(), excepted);
    println!("{} kinds, {} objects", created.len(), world.objects.len());
    assert!(created.len() >= 92, "{}", created.len());
}

/// One object in both encodings and the same version; `None` where the server itself has collected it.
async fn both(endpoint: &Endpoint, path: &str, form: Form) -> Option<[Bytes; 2]> {
    for _ in 0..ATTEMPTS {
        let protobuf = get_lasting(endpoint, Encoding::Protobuf, path, form).await?;
        let json = get_lasting(endpoint, Encoding::Json, path, form).await?;
        if version(&value(Encoding::Protobuf, &protobuf)) == version(&value(Encoding::Json, &json)) {
            return Some([protobuf, json]);
        }
    }
    panic!("{path} changes all the time");
}

#[tokio::test]
async fn an_object_is_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let mut wrong = Vec::new();
    for (resource, object) in world.objects() {
        for form in [Form::Whole, Form::Metadata] {
            let Some([protobuf, json]) = both(&endpoint, &object.path, form).await else { continue };
            wrong.extend(differences(type_of(resource, form), &object.path, &protobuf, &json));
        }
    }
    assert_none(&wrong, world.objects.len());
}

#[tokio::test]
async fn an_item_of_a_list_is_the_same_in_both_encodings_and_so_is_the_list() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for resource in world.creatable() {
        for form in [Form::Whole, Form::Metadata] {
            let (_, _, end) = list(&endpoint, Encoding::Json, &resource.path, form).await;
            // What there was then, whatever has happened since.
            let exact = format!(
                "{}?resourceVersion={}&resourceVersionMatch=Exact",
                resource.path, end.resource_version
            );
            let (protobuf, items, end) = list(&endpoint, Encoding::Protobuf, &exact, form).await;
            let (json, json_items, json_end) = list(&endpoint, Encoding::Json, &exact, form).await;
            assert_eq!(end, json_end, "{}", resource.path);
            assert_eq!(items.len(), json_items.len(), "{}", resource.path);
            let mut whole = value(Encoding::Json, &json);
            for item in whole["items"].as_array_mut().unwrap() {
                without_types_of_templates(item);
            }
            let at = difference("", &value(Encoding::Protobuf, &protobuf), &whole);
            wrong.extend(at.map(|at| format!("{} as a whole: {at}", resource.path)));
            for (item, json) in items.iter().zip(&json_items) {
                let what = format!("{} {}", resource.path, version(&value(Encoding::Json, json)));
                wrong.extend(differences(type_of(resource, form), &what, item, json));
                compared += 1;
            }
        }
    }
    assert!(compared >= 2 * lasting_objects(world), "{compared}");
    assert_none(&wrong, compared);
}

#[tokio::test]
async fn an_object_in_a_watch_is_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for resource in world.creatable() {
        for form in [Form::Whole, Form::Metadata] {
            let mut attempts = 0;
            let (protobuf, json) = loop {
                let (protobuf, bookmark) =
                    initial_events(&endpoint, Encoding::Protobuf, &resource.path, form).await;
                let (json, json_bookmark) =
                    initial_events(&endpoint, Encoding::Json, &resource.path, form).await;
                let bookmarks = [(Encoding::Protobuf, bookmark), (Encoding::Json, json_bookmark)];
                let bookmarks = bookmarks.map(|(encoding, bookmark)| {
                    let mut bookmark = value(encoding, &bookmark);
                    assert!(bookmark["metadata"]["resourceVersion"].take().is_string());
                    bookmark
                });
                let at = difference("", &bookmarks[0], &bookmarks[1]);
                wrong.extend(at.map(|at| format!("the bookmark of {}: {at}", resource.path)));
                if protobuf.keys().eq(json.keys()) {
                    break (protobuf, json);
                }
                attempts += 1;
                assert!(attempts < ATTEMPTS, "{} changes all the time", resource.path);
            };
            for ((version, protobuf), json) in protobuf.iter().zip(json.values()) {
                let what = format!("{} {version}", resource.path);
                wrong.extend(differences(type_of(resource, form), &what, protobuf, json));
                compared += 1;
            }
        }
    }
    assert!(compared >= 2 * lasting_objects(world), "{compared}");
    assert_none(&wrong, compared);
}

/// Reads an object, writes back what `view` makes of it, and returns that and the answer; `None` where the server
/// itself has collected the object.
async fn write_back(
    endpoint: &Endpoint,
    path: &str,
    encoding: Encoding,
    view: impl Fn(&[u8]) -> Bytes,
) -> Option<(Bytes, Response)> {
    for _ in 0..ATTEMPTS {
        let view = view(&get_lasting(endpoint, encoding, path, Form::Whole).await?);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let answer = endpoint.request(Method::PUT, path, headers, view.clone()).await.unwrap();
        let answer = lasting(path, answer)?;
        // Another was faster.
        if answer.status != StatusCode::CONFLICT {
            return Some((view, answer));
        }
    }
    panic!("{path} changes all the time");
}

#[tokio::test]
async fn what_was_read_in_protobuf_and_written_back_in_json_changes_nothing() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let mut wrong = Vec::new();
    for (resource, object) in world.objects() {
        assert!(resource.verbs.iter().any(|verb| verb == "update"), "{}", resource.path);
        let rules = Rules::default().managed_fields(ManagedFields::Keep);
        let codec = Codec::new(Encoding::Protobuf, &resource.api_version, &resource.kind, rules).unwrap();
        // Some nulls are stored in a way that even the server's own JSON does not bring back, once.
        let same = |json: &[u8]| serde_json::to_vec(&value(Encoding::Json, json)).unwrap().into();
        let Some((_, settled)) = write_back(&endpoint, &object.path, Encoding::Json, same).await else {
            continue;
        };
        settled.success().unwrap();
        let view = |protobuf: &[u8]| {
            let mut stored = Vec::new();
            codec.ingest(protobuf, &mut stored).unwrap();
            serde_json::to_vec(&codec.view::<Value>(&stored).unwrap()).unwrap().into()
        };
        let Some((written, answer)) = write_back(&endpoint, &object.path, Encoding::Protobuf, view).await
        else {
            continue;
        };
        let view = value(Encoding::Json, &written);
        match answer.success() {
            Err(error) => wrong.push(error.to_string()),
            Ok(answer) => {
                let mut answer = answer.json().unwrap();
                without_types_of_templates(&mut answer);
                wrong.extend(difference("", &view, &answer).map(|at| format!("{}: {at}", object.path)));
            }
        }
    }
    assert_none(&wrong, world.objects.len());
}
