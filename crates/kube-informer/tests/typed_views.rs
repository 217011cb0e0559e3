//! Typed views: a type of `k8s_openapi` reads the same from protobuf as from JSON, for every kind that it has.
//!
//! Once from the test data of `k8s.io/api`, where every field is filled, and once from the real server, where
//! the objects are as odd as it lets them be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "live_parity/world.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method};
use k8s_openapi::Resource;
use kube_informer::encoding::{Codec, Encoding, ManagedFields, Rules, decode_protobuf};
use kube_informer_testbed::binaries::go_module;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::require;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use world::World;

/// How often an object is read again that another has changed between two reads.
const ATTEMPTS: usize = 20;

/// API version and kind.
type Kind = (&'static str, &'static str);

/// Reads an object in protobuf and in JSON as one type. Returns what the type shows of it, as JSON (nothing
/// where the type cannot hold the object, whatever encoding it comes in), or what is different.
type Compare = fn(&[u8], &[u8]) -> Result<Option<Value>, String>;

macro_rules! kinds {
    ($($($module:ident)::+: [$($kind:ident),+],)+) => {
        /// Every kind that there is a type for.
        fn kinds() -> BTreeMap<Kind, Compare> {
            let mut kinds: BTreeMap<Kind, Compare> = BTreeMap::new();
            $({
                use k8s_openapi::$($module)::+ as module;
                kinds.extend([$(kind::<module::$kind>()),+]);
            })+
            kinds
        }
    };
}

kinds! {
    api::admissionregistration::v1: [MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration],
    api::admissionregistration::v1alpha1: [MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding],
    api::admissionregistration::v1beta1: [MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding],
    api::apiserverinternal::v1alpha1: [StorageVersion],
    api::apps::v1: [ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet],
    api::authentication::v1: [SelfSubjectReview, TokenRequest, TokenReview],
    api::authorization::v1: [LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview],
    api::autoscaling::v1: [HorizontalPodAutoscaler, Scale],
    api::autoscaling::v2: [HorizontalPodAutoscaler],
    api::batch::v1: [CronJob, Job],
    api::certificates::v1: [CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest],
    api::certificates::v1beta1: [ClusterTrustBundle, PodCertificateRequest],
    api::coordination::v1: [Lease],
    api::coordination::v1alpha2: [LeaseCandidate],
    api::coordination::v1beta1: [LeaseCandidate],
    api::core::v1: [Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount],
    api::discovery::v1: [EndpointSlice],
    api::events::v1: [Event],
    api::flowcontrol::v1: [FlowSchema, PriorityLevelConfiguration],
    api::lifecycle::v1alpha1: [Eviction, EvictionRequest],
    api::networking::v1: [IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR],
    api::node::v1: [RuntimeClass],
    api::policy::v1: [Eviction, PodDisruptionBudget],
    api::rbac::v1: [ClusterRole, ClusterRoleBinding, Role, RoleBinding],
    api::resource::v1: [DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice],
    api::resource::v1alpha3: [DeviceTaintRule, ResourcePoolStatusRequest],
    api::resource::v1beta1: [DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice],
    api::resource::v1beta2: [DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice],
    api::scheduling::v1: [PriorityClass],
    api::scheduling::v1alpha3: [CompositePodGroup, PodGroup, Workload],
    api::scheduling::v1beta1: [PodGroup, Workload],
    api::storage::v1: [CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass],
    api::storagemigration::v1: [StorageVersionMigration],
    api::storagemigration::v1beta1: [StorageVersionMigration],
    apiextensions_apiserver::pkg::apis::apiextensions::v1: [CustomResourceDefinition],
    kube_aggregator::pkg::apis::apiregistration::v1: [APIService],
}

fn kind<T: Resource + DeserializeOwned + Serialize + PartialEq + Debug>() -> (Kind, Compare) {
    ((T::API_VERSION, T::KIND), compare::<T>)
}

fn compare<T: Resource + DeserializeOwned + Serialize + PartialEq + Debug>(
    protobuf: &[u8],
    json: &[u8],
) -> Result<Option<Value>, String> {
    match (view::<T>(Encoding::Protobuf, protobuf), view::<T>(Encoding::Json, json)) {
        (Ok(from_protobuf), Ok(from_json)) if from_protobuf == from_json => {
            Ok(Some(serde_json::to_value(&from_protobuf).unwrap()))
        }
        (Err(protobuf), Err(json)) => {
            println!("{} cannot hold what came: {protobuf}; {json}", T::KIND);
            Ok(None)
        }
        (protobuf, json) => Err(format!("{protobuf:?}\nand: {json:?}")),
    }
}

fn view<T: Resource + DeserializeOwned>(encoding: Encoding, document: &[u8]) -> Result<T, String> {
    let rules = Rules::default().managed_fields(ManagedFields::Keep);
    let Ok(codec) = Codec::new(encoding, T::API_VERSION, T::KIND, rules) else {
        // No object: a question and its answer.
        return decode_protobuf(document).map_err(|error| error.to_string());
    };
    let mut stored = Vec::new();
    codec.ingest(document, &mut stored).unwrap();
    codec.view(&stored).map_err(|error| error.to_string())
}

/// The documents of a folder, by their kinds: protobuf and JSON.
fn documents(folder: &Path) -> BTreeMap<(String, String), (Vec<u8>, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let protobuf = paths.filter(|path| path.extension().is_some_and(|ending| ending == "pb"));
    let read = |path: std::path::PathBuf| {
        let json = std::fs::read(path.with_extension("json")).unwrap();
        let document: Value = serde_json::from_slice(&json).unwrap();
        let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        ((text("apiVersion"), text("kind")), (std::fs::read(path).unwrap(), json))
    };
    protobuf.map(read).collect()
}

#[test]
fn every_type_reads_the_same_from_both_encodings_with_every_field_filled() {
    let api = require!(go_module("k8s.io/api"));
    let extensions = require!(go_module("k8s.io/apiextensions-apiserver"));
    let mut documents = documents(&api.join("testdata/HEAD"));
    documents.extend(self::documents(&extensions.join("pkg/apis/testdata/HEAD")));
    let (mut wrong, mut without_data) = (Vec::new(), Vec::new());
    let kinds = kinds();
    for ((api_version, kind), compare) in &kinds {
        let Some((protobuf, json)) = documents.get(&((*api_version).to_owned(), (*kind).to_owned())) else {
            without_data.push((*api_version, *kind));
            continue;
        };
        match compare(protobuf, json) {
            Err(error) => wrong.push(format!("{api_version} {kind}: {error}")),
            // It has a time in a map that is null.
            Ok(None) => assert_eq!(*kind, "PodDisruptionBudget"),
            Ok(Some(mut shown)) => {
                // Nothing is lost: what the type shows is the document.
                let document: Value = serde_json::from_slice(json).unwrap();
                without_types_of_templates(&mut shown);
                if shown != document {
                    wrong.push(format!("{api_version} {kind}: {shown}\nand: {document}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), kinds.len(), wrong.join("\n"));
    assert_eq!(without_data, [("apiregistration.k8s.io/v1", "APIService")]);
    println!("{} types", kinds.len() - without_data.len());
}

/// The type puts them where the document has none.
fn without_types_of_templates(shown: &mut Value) {
    let templates = shown.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten().filter_map(Value::as_object_mut) {
        template.retain(|key, _| key != "apiVersion" && key != "kind");
    }
}

/// `None` where the server itself has collected it, as it does with candidates that do not renew.
async fn get(endpoint: &Endpoint, path: &str, accept: &'static str) -> Option<Bytes> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
    let answer = endpoint.request(Method::GET, path, headers, "").await.unwrap();
    if answer.status.as_u16() == 404 && path.contains("/leasecandidates/") {
        return None;
    }
    Some(answer.success().unwrap().body)
}

#[tokio::test]
async fn every_type_reads_the_same_from_both_encodings_of_the_real_server() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let kinds = kinds();
    let served: BTreeSet<Kind> =
        world.creatable().map(|resource| (&*resource.api_version, &*resource.kind)).collect();
    let without_type: Vec<_> = served.iter().filter(|kind| !kinds.contains_key(*kind)).collect();
    assert!(without_type.is_empty(), "{without_type:?}");
    let (mut wrong, mut not_held) = (Vec::new(), Vec::new());
    for (resource, object) in world.objects() {
        let compare = kinds[&(&*resource.api_version, &*resource.kind)];
        let mut result = Err(String::new());
        // Another may change it between the two reads.
        for _ in 0..ATTEMPTS {
            let protobuf = get(&endpoint, &object.path, "application/vnd.kubernetes.protobuf").await;
            let json = get(&endpoint, &object.path, "application/json").await;
            let (Some(protobuf), Some(json)) = (protobuf, json) else {
                result = Ok(Some(Value::Null));
                break;
            };
            result = compare(&protobuf, &json);
            if result.is_ok() {
                break;
            }
        }
        match result {
            Ok(Some(_)) => {}
            Ok(None) => not_held.push(&*resource.kind),
            Err(error) => wrong.push(format!("{}: {error}", object.path)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), world.objects().count(), wrong.join("\n"));
    // The last second of the year 9999 is beyond the range of their times.
    assert_eq!(not_held, ["Pod", "Lease"]);
}
