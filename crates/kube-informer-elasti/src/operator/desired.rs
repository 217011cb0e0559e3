//! The objects that are to be for an ElastiService: pure functions from what there is.
//!
//! - The *private Service* leads to the pods alone, whoever answers for the public one. It has the public one's selector and
//!   ports, and nothing else of it: no node ports, no load balancer, no labels, no owners. It has an address of its own,
//!   unless the public one is headless: clients of a headless Service ask at the port that the pods listen on, the resolver
//!   asks at the same, and an address of the cluster would know only the Service's own ports.
//! - The *slices to the resolver* lead from the public Service to the resolver, beside the slices of its own pods: one for
//!   each address family that both have. They name every TCP port of the Service, all leading to the resolver's one port.
//!   Other protocols cannot be kept for later, and are left out. Only endpoints that are ready are in them, said to be so in
//!   so many words: there are proxies that take nothing for granted. They are in order, so that the same endpoints are the
//!   same slice. A slice without endpoints stays: it says the truth, and goes only when the pods answer for themselves: by
//!   each [`Way`] by itself.
//!
//! All of them say who manages them, and are owned by the ElastiService: whatever happens to the operator, they go with it.
//! Labels and owners that others add stay. Of objects that an operator before us made, nothing stays: they are copies of what
//! belongs to the public Service.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::{api, names};

mod notes;
mod ways;

pub(super) use notes::{
    MOST_NOTED, is_noted, noted_sleep, noted_targets, sleep_note, target_note, target_notes,
};
pub(super) use ways::{Way, answered, named_ways, ways, ways_of, without};

/// The label that says which Service a slice is for.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The label of slices that says who looks after them.
pub(super) const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The label of everything else that says the same.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Who it is.
pub(super) const MANAGER: &str = "kube-informer-elasti";

/// On the ElastiService: what is being put to sleep. It is there before anything is scaled, and until it was looked what
/// happened meanwhile; whoever finds it of somebody who is not there any more sees to it.
pub(super) const SLEEPING: &str = "elasti.truefoundry.com/putting-to-sleep";

/// On the private Service: whose pods may be asleep because of us. It is read when the ElastiService names another target.
pub(super) const TARGET: &str = "elasti.truefoundry.com/scale-target";

/// So many endpoints may be in one slice.
const MOST_ENDPOINTS: usize = 1000;

/// For whom objects are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// Why nothing can be done for a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    NameTooLong,
    ExternalName,
    NoSelector,
    NoPorts,
    NoTcpPorts,
}

/// An address family, as slices call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    V4,
    V6,
}

/// Where the resolver can be reached now: its ready endpoints, by address family, in order and each once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Resolver {
    families: BTreeMap<Family, BTreeMap<String, Place>>,
}

/// Where an endpoint is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    node: Option<String>,
    zone: Option<String>,
}

impl Owner {
    fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: format!("{}/{}", api::GROUP, api::VERSION),
            kind: api::KIND.to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    fn metadata(&self, name: String, labels: BTreeMap<String, String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels),
            owner_references: Some(vec![self.reference()]),
            ..ObjectMeta::default()
        }
    }
}

impl Family {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn slice(self, service: &str) -> String {
        match self {
            Self::V4 => names::resolver_slice(service),
            Self::V6 => format!("{}-ipv6", names::resolver_slice(service)),
        }
    }
}

impl Resolver {
    /// The ready endpoints of the slices of its Service.
    pub(super) fn of<'a>(slices: impl IntoIterator<Item = &'a EndpointSlice>) -> Self {
        let mut families = BTreeMap::<Family, BTreeMap<String, Place>>::new();
        for slice in slices {
            let Some(family) = Family::parse(&slice.address_type) else { continue };
            let places = families.entry(family).or_default();
            for endpoint in slice.endpoints.iter().flatten().filter(|endpoint| is_ready(endpoint)) {
                let place = Place { node: endpoint.node_name.clone(), zone: endpoint.zone.clone() };
                // Consumers take the first of several addresses; so do we.
                if let Some(address) = endpoint.addresses.first() {
                    places.insert(address.clone(), place);
                }
            }
        }
        Self { families }
    }

    /// Whether nobody could take a request that comes by one of these families.
    fn is_deaf_to(&self, families: &BTreeSet<Family>) -> bool {
        families.iter().all(|family| self.families.get(family).is_none_or(BTreeMap::is_empty))
    }

    /// Whether a Service could be redirected to it now.
    pub(super) fn hears(&self, public: &Service) -> bool {
        !self.is_deaf_to(&families(public))
    }

    /// Whether there is nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        self.families.values().all(BTreeMap::is_empty)
    }
}

/// Whether an endpoint takes requests. Where nothing is said, it does. `serving` is asked, too: a Service that publishes
/// what is not ready calls everything `ready`.
pub(super) fn is_ready(endpoint: &Endpoint) -> bool {
    let none = EndpointConditions::default();
    let EndpointConditions { ready, serving, terminating } = endpoint.conditions.as_ref().unwrap_or(&none);
    *ready != Some(false) && *serving != Some(false) && *terminating != Some(true)
}

/// Whether an object of that name leads to the resolver, whoever made it.
pub(super) fn is_to_resolver(slice: &str, service: &str) -> bool {
    [Family::V4, Family::V6].iter().any(|family| family.slice(service) == slice)
}

/// The names of the slices that there may be for a Service.
pub(super) fn slice_names(service: &str) -> [String; 2] {
    [Family::V4.slice(service), Family::V6.slice(service)]
}

/// Whether something can be done for a Service.
pub(super) fn check(public: &Service) -> Result<(), Unfit> {
    let name = public.metadata.name.as_deref().unwrap_or_default();
    let none = ServiceSpec::default();
    let spec = public.spec.as_ref().unwrap_or(&none);
    if !names::fits(name) {
        return Err(Unfit::NameTooLong);
    }
    if spec.type_.as_deref() == Some("ExternalName") {
        return Err(Unfit::ExternalName);
    }
    if spec.selector.as_ref().is_none_or(BTreeMap::is_empty) {
        return Err(Unfit::NoSelector);
    }
    if spec.ports.as_ref().is_none_or(Vec::is_empty) {
        return Err(Unfit::NoPorts);
    }
    if ports(public).all(|port| !is_tcp(port)) {
        return Err(Unfit::NoTcpPorts);
    }
    Ok(())
}

/// The ports whose requests cannot be kept, as people call them.
pub(super) fn left_out(public: &Service) -> Vec<String> {
    let others = ports(public).filter(|port| !is_tcp(port));
    others.map(|port| format!("{}/{}", port.port, port.protocol.as_deref().unwrap_or_default())).collect()
}

/// The Service that leads to the pods alone.
pub(super) fn private_service(owner: &Owner, public: &Service, target: String) -> Service {
    let name = public.metadata.name.as_deref().unwrap_or_default();
    let none = ServiceSpec::default();
    let spec = public.spec.as_ref().unwrap_or(&none);
    let labels = BTreeMap::from([(MANAGED_BY.to_owned(), MANAGER.to_owned())]);
    let metadata = ObjectMeta {
        annotations: Some(BTreeMap::from([(TARGET.to_owned(), target)])),
        ..owner.metadata(names::private_service(name), labels)
    };
    let without_node = |port: &ServicePort| ServicePort { node_port: None, ..port.clone() };
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            cluster_ip: is_headless(public).then(|| "None".to_owned()),
            selector: spec.selector.clone(),
            ports: Some(ports(public).map(without_node).collect()),
            ip_families: spec.ip_families.clone(),
            ip_family_policy: spec.ip_family_policy.clone(),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// What is to be written so that a Service that is there becomes the wanted one. What others decide, such as addresses,
/// stays.
pub(super) fn amended_service(there: &Service, wanted: &Service) -> Amended<Service> {
    if is_headless(there) != is_headless(wanted) {
        // An address is for life.
        return Amended::Anew;
    }
    let first = |service: &Service| service.spec.as_ref()?.ip_families.as_ref()?.first().cloned();
    if let (Some(before), Some(now)) = (first(there), first(wanted))
        && before != now
    {
        // So is the family of the first one.
        return Amended::Anew;
    }
    let mut new = there.clone();
    amend_metadata(&mut new.metadata, &wanted.metadata);
    let (spec, wanted) = (new.spec.get_or_insert_default(), wanted.spec.clone().unwrap_or_default());
    spec.selector = wanted.selector;
    spec.ports = wanted.ports;
    spec.type_ = wanted.type_;
    // A server that says nothing of families knows one.
    if let (Some(families), Some(policy)) = (wanted.ip_families, wanted.ip_family_policy) {
        // By this policy, a server with both families adds the second one to whatever is written.
        let has_them = policy == "PreferDualStack"
            && spec.ip_families.as_ref().is_some_and(|there| there.starts_with(&families));
        if !has_them {
            spec.ip_families = Some(families);
        }
        spec.ip_family_policy = Some(policy);
    }
    spec.publish_not_ready_addresses = spec.publish_not_ready_addresses.filter(|publish| !publish);
    // What only other types have, where somebody made it one.
    spec.external_name = None;
    if *spec == there.spec.clone().unwrap_or_default() && new.metadata == there.metadata {
        return Amended::Same;
    }
    Amended::Changed(Box::new(new))
}

/// What becomes of an object that is there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Amended<T> {
    /// It is as it should be.
    Same,
    /// This is to be written.
    Changed(Box<T>),
    /// It cannot become that: it is to be deleted, and made anew.
    Anew,
}

/// The slices that lead from a Service to the resolver.
pub(super) fn slices(owner: &Owner, public: &Service, resolver: &Resolver, port: u16) -> Vec<EndpointSlice> {
    let name = public.metadata.name.as_deref().unwrap_or_default();
    let mut families = families(public);
    if !resolver.is_deaf_to(&families) {
        families.retain(|family| resolver.families.contains_key(family));
    }
    let labels = BTreeMap::from([
        (SERVICE_NAME.to_owned(), name.to_owned()),
        (SLICE_MANAGED_BY.to_owned(), MANAGER.to_owned()),
    ]);
    let ports: Vec<_> =
        ports(public).filter(|port| is_tcp(port)).map(|each| to_resolver(each, port)).collect();
    let slice = |family: Family| {
        let places = resolver.families.get(&family).into_iter().flatten().take(MOST_ENDPOINTS);
        EndpointSlice {
            metadata: owner.metadata(family.slice(name), labels.clone()),
            address_type: family.as_str().to_owned(),
            endpoints: Some(places.map(|(address, place)| endpoint(address, place)).collect()),
            ports: Some(ports.clone()),
        }
    };
    families.into_iter().map(slice).collect()
}

/// A slice to the resolver, with where that is now.
pub(super) fn refreshed(slice: &EndpointSlice, resolver: &Resolver) -> EndpointSlice {
    let family = Family::parse(&slice.address_type);
    let places = family.and_then(|family| resolver.families.get(&family));
    let places = places.into_iter().flatten().take(MOST_ENDPOINTS);
    let endpoints = places.map(|(address, place)| endpoint(address, place)).collect();
    EndpointSlice { endpoints: Some(endpoints), ..slice.clone() }
}

/// Why a Service is not redirected: its clients would ask the resolver where it does not listen. What to do, in words.
pub(super) fn misled(public: &Service, proxy: u16) -> Option<String> {
    // Without an address of its own, clients ask an endpoint at the port that they would ask a pod at.
    let is_elsewhere = |port: &ServicePort| match &port.target_port {
        Some(IntOrString::Int(target)) => *target != i32::from(proxy),
        Some(IntOrString::String(_)) => true,
        None => port.port != i32::from(proxy),
    };
    let mut tcp = ports(public).filter(|port| is_tcp(port));
    (is_headless(public) && tcp.any(is_elsewhere)).then(|| {
        format!(
            "the Service is headless: clients would ask the resolver at the pods' port, and it listens at {proxy} only, so \
             requests are not redirected, and lost while the target sleeps: name a Service with a cluster IP"
        )
    })
}

/// The family by which requests to a Service do not come to the resolver though it is redirected. What to do, in words.
pub(super) fn unheard(public: &Service, resolver: &Resolver) -> Option<String> {
    let families = families(public);
    let missing =
        families.into_iter().find(|family| resolver.families.get(family).is_none_or(BTreeMap::is_empty));
    missing.map(|family| {
        format!(
            "the resolver has no ready endpoint of the family {0}, by which this Service is asked, too, so these requests are \
             lost while the target sleeps: give the resolver {0} addresses, or the Service one family",
            family.as_str()
        )
    })
}

/// What is to be written so that a slice that is there becomes the wanted one.
pub(super) fn amended_slice(there: &EndpointSlice, wanted: &EndpointSlice) -> Amended<EndpointSlice> {
    if there.address_type != wanted.address_type {
        return Amended::Anew;
    }
    let mut new = there.clone();
    amend_metadata(&mut new.metadata, &wanted.metadata);
    // Nothing and an empty list are the same.
    let same_endpoints =
        there.endpoints.as_deref().unwrap_or_default() == wanted.endpoints.as_deref().unwrap_or_default();
    if same_endpoints && there.ports == wanted.ports && new.metadata == there.metadata {
        return Amended::Same;
    }
    new.endpoints.clone_from(&wanted.endpoints);
    new.ports.clone_from(&wanted.ports);
    Amended::Changed(Box::new(new))
}

/// Whether an object may be taken over: nobody manages it, or an ElastiService does.
pub(super) fn is_free(metadata: &ObjectMeta) -> bool {
    let controller = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    controller.is_none_or(|owner| {
        owner.kind == api::KIND
            && owner.api_version.split_once('/').is_some_and(|(group, _)| group == api::GROUP)
    })
}

/// What others add to an object that we made stays.
fn amend_metadata(metadata: &mut ObjectMeta, wanted: &ObjectMeta) {
    let label = |metadata: &ObjectMeta, key: &str| metadata.labels.as_ref()?.get(key).cloned();
    let is_ours = [MANAGED_BY, SLICE_MANAGED_BY].into_iter().all(|key| {
        let manager = label(wanted, key);
        manager.is_none() || label(metadata, key) == manager
    });
    if is_ours {
        for (key, value) in wanted.labels.iter().flatten() {
            metadata.labels.get_or_insert_default().insert(key.clone(), value.clone());
        }
        for owner in wanted.owner_references.iter().flatten() {
            let owners = metadata.owner_references.get_or_insert_default();
            // There is one controller, and ElastiServices of before are none any more.
            owners.retain(|other| other.controller != Some(true) || other == owner);
            if !owners.contains(owner) {
                owners.retain(|other| other.uid != owner.uid);
                owners.push(owner.clone());
            }
        }
    } else {
        metadata.labels.clone_from(&wanted.labels);
        metadata.owner_references.clone_from(&wanted.owner_references);
    }
    for (key, value) in wanted.annotations.iter().flatten() {
        metadata.annotations.get_or_insert_default().insert(key.clone(), value.clone());
    }
}

fn ports(service: &Service) -> impl Iterator<Item = &ServicePort> {
    service.spec.iter().flat_map(|spec| spec.ports.iter().flatten())
}

fn is_tcp(port: &ServicePort) -> bool {
    port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP")
}

fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None"))
}

/// The families that a Service is asked by. A server that says nothing of them knows one.
fn families(service: &Service) -> BTreeSet<Family> {
    let said = service.spec.iter().flat_map(|spec| spec.ip_families.iter().flatten());
    let families: BTreeSet<_> = said.filter_map(|family| Family::parse(family)).collect();
    if families.is_empty() { BTreeSet::from([Family::V4]) } else { families }
}

fn to_resolver(port: &ServicePort, proxy: u16) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(proxy.into()),
        protocol: Some("TCP".to_owned()),
        app_protocol: port.app_protocol.clone(),
    }
}

fn endpoint(address: &str, place: &Place) -> Endpoint {
    Endpoint {
        addresses: vec![address.to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
        }),
        // Services that stay on the node, or in the zone, go by these.
        node_name: place.node.clone(),
        zone: place.zone.clone(),
        ..Endpoint::default()
    }
}

impl Unfit {
    /// In one word.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NameTooLong => "NameTooLong",
            Self::ExternalName => "ExternalName",
            Self::NoSelector => "NoSelector",
            Self::NoPorts => "NoPorts",
            Self::NoTcpPorts => "NoTcpPorts",
        }
    }
}

/// What is wrong, and what to do about it.
impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NameTooLong => {
                "its name is too long for a Service beside it (elasti-NAME-pvt-HASH, 63 characters): give it a shorter one"
            }
            Self::ExternalName => {
                "it is an ExternalName, which no pods stand behind: name a Service with a selector"
            }
            Self::NoSelector => "it has no selector, so nobody knows its pods: give it the selector of the target's pods",
            Self::NoPorts => "it has no ports: give it the ports that it is asked at",
            Self::NoTcpPorts => "none of its ports is TCP, and others cannot be kept: give it a TCP port",
        })
    }
}

#[cfg(test)]
mod tests;
